"""Splitting a text and assembling it for MLX: names, address spaces, searched words."""

import dataclasses
import re

import pytest

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.errors import InternalError
from tile_metal.runtime.source import ArraySlot, mlx_source, split

from .texts import INDEX, gemm, scale, text


def test_the_parts():
    parts = split(gemm())
    assert parts.arrays == (("A", "device const half*"), ("B", "device const half*"), ("C", "device float*"))
    assert parts.struct == "gemm_args"
    assert parts.builtins == {"threadgroup_position_in_grid", "thread_position_in_threadgroup"}
    assert parts.restricted == {"A", "B", "C"}
    assert parts.header.startswith("#include <metal_stdlib>")
    assert parts.header.endswith("};")
    assert parts.body.startswith("  const bfloat alpha = args.alpha;")
    assert "kernel" not in parts.header + parts.body


def test_what_mlx_is_given():
    source = mlx_source(split(scale()), (ArraySlot("input"), ArraySlot("output")), 2, 32)
    assert source.inputs == ("tile_arg_0", "tile_arg_2")
    assert source.outputs == ("tile_arg_1",)
    assert not source.token
    assert source.source.splitlines()[1:5] == [
        "  device const float* __restrict a = (device const float*)tile_arg_0;",
        "  device float* __restrict out = (device float*)tile_arg_1;",
        "  constant scale_args& args = *(constant scale_args*)tile_arg_2;",
        "  const float factor = args.factor;",
    ]
    assert "define const" not in source.header


def test_many_scalars_are_in_device_memory():
    source = mlx_source(split(scale()), (ArraySlot("input"), ArraySlot("output")), 8, 32)
    assert "  device const scale_args& args = *(device const scale_args*)tile_arg_2;" in source.source.splitlines()


def test_renewed_arrays_are_not_const():
    source = mlx_source(split(scale()), (ArraySlot("input"), ArraySlot("renewed")), 2, 32)
    assert source.header.endswith("\n#define const\n\n[[max_total_threads_per_threadgroup(32)]]\n")
    assert source.source.splitlines()[1] == "#undef const"
    assert source.inputs == ("tile_arg_0", "tile_arg_1", "tile_arg_2")
    assert (source.outputs, source.token) == (("tile_arg_done",), True)


def test_offsets():
    source = mlx_source(split(scale()), (ArraySlot("input", 272), ArraySlot("renewed", 256)), 2, 32).source
    assert "a = (device const float*)((device const uchar*)tile_arg_0 + 272);" in source
    assert "out = (device float*)((device uchar*)tile_arg_1 + 256);" in source


def test_shared_memory_is_not_restricted():
    made = scale()
    made = dataclasses.replace(made, text=made.text.replace(" __restrict", ""))
    assert "__restrict" not in mlx_source(split(made), (ArraySlot("input"), ArraySlot("output")), 2, 32).source


ACCIDENTS = """\
  const int my_grid_size = g;
  const int a_shape = my_grid_size + thread_index_in_quadgroup_;
  const int tile_arg_0_shape = 1;
  if (i < a_shape) a[i] = float(tile_arg_0_shape) * twice_threads_per_grid(1);
"""


def accidents():
    header = "static inline int twice_threads_per_grid(int x) { return 2 * x; }"
    params = [("a", "float32", "write"), ("thread_index_in_quadgroup_", "int32"), ("g", "int32")]
    return text("f", params, INDEX.format(32) + ACCIDENTS, (1, 1, 1), (32, 1, 1), header=header)


def test_words_that_mlx_would_find():
    source = mlx_source(split(accidents()), (ArraySlot("output"),), 2, 32)
    found = source.header + source.source
    assert not re.search("grid_size|threads_per_grid|quadgroup", found)
    assert source.outputs == ("tile_argx_0",)  # tile_arg is in the text
    for name in (*source.inputs, *source.outputs):
        assert not re.search(f"{name}_(shape|strides|ndim)", source.source)
    assert "  int tile_word_1;" in found  # a field, also where it is declared
    assert "= args.tile_word_1;" in found
    assert "static inline int tile_word_2(int x)" in found
    assert "a_shape" in found  # a is no name of a parameter for MLX


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda k: {"text": k.text.replace("[[threadgroup_position_in_grid]]", "[[thread_position_in_grid]]")},
            "not declared as",
        ),
        (lambda k: {"text": k.text.replace("a [[buffer", "b [[buffer")}, "are not those of its facts"),
        (lambda k: {"text": k.text + "\n// more\n"}, "has no body"),
        (lambda k: {"facts": with_attributes(k.facts)}, "lacks its 'metal.head'"),
        (lambda k: {"facts": with_attributes(k.facts, **{"metal.head": 3, "metal.body": 5})}, "has no body"),
    ],
)
def test_other_texts_are_a_defect(change, message):
    made = scale()
    with pytest.raises(InternalError, match=message):
        split(dataclasses.replace(made, **change(made)))


def with_attributes(facts: LaunchFacts, **attributes):
    return dataclasses.replace(facts, attributes=attributes)
