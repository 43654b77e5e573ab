"""Assumptions of launches about arrays, checked with the real MLX, possibly its CPU build."""

import numpy as np
import pytest

from tile_core.abi.signature import Signature
from tile_core.errors.launch import ReadOnlyOutput, StrideMismatch, WrongDevice
from tile_metal.runtime.mlx import storage_of
from tile_metal.runtime.pack import words_of
from tile_metal.runtime.source import ArraySlot, mlx_source, split
from tile_runtime.calls.arrays import facts_of, share_memory
from tile_runtime.calls.binder import Binder

from .fake_mlx import Mlx
from .test_source import accidents
from .texts import adapter, add_some, gemm, kernel, scale, scale_params, tensor

mx = pytest.importorskip("mlx.core", reason="mlx is not installed")

HOST = not mx.metal.is_available()
TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_dlpack_says_what_an_array_is(dtype):
    array = mx.zeros((5, 7), storage_of(mx, dtype))
    facts = facts_of(array)
    assert (facts.library, facts.dtype, facts.shape, facts.strides) == ("mlx", dtype, (5, 7), (7, 1))
    assert facts.itemsize == array.dtype.size
    assert facts.device == ((1, 0) if HOST else (8, 0))
    assert (facts.handle == 0) is HOST
    assert not facts.writable


def test_float8_is_stored_as_bytes():
    assert storage_of(mx, "float8_e4m3fn") == storage_of(mx, "float4_e2m1fn") == mx.uint8
    assert storage_of(mx, "float64") is None


def test_views_have_an_offset():
    array = mx.arange(64).astype(mx.float32)
    base, part = facts_of(array), facts_of(array[3:9])
    assert part.pointer - base.pointer == 12
    assert share_memory(base, part)
    assert facts_of(array.reshape(8, 8).T).strides == (1, 8)


@pytest.mark.skipif(not HOST, reason="arrays are on the device")
class TestTheBinder:
    """Without Metal, MLX's arrays are in host memory: DLPack works, launches are rejected."""

    def bound(self, params, *args):
        seen = []
        Binder(Signature("f", tuple(params)), lambda *values: seen.append([np.array(v) for v in values]))(*args)
        return seen[0]

    def test_values_arrive(self):
        array = mx.arange(12).astype(mx.float32).reshape(3, 4)
        (found,) = self.bound([tensor("a", "m", "n")], array)
        np.testing.assert_array_equal(found, np.arange(12, dtype=np.float32).reshape(3, 4))

    def test_bfloat16_arrives_as_bits(self):
        (found,) = self.bound([tensor("a", "n", dtype="bfloat16")], mx.array([1.0, -2.0]).astype(mx.bfloat16))
        assert found.tolist() == [0x3F80, 0xC000]

    def test_refusals(self):
        array = mx.arange(12).astype(mx.float32)
        with pytest.raises(StrideMismatch):
            self.bound([tensor("a", "m", "n")], array.reshape(3, 4).T)
        with pytest.raises(ReadOnlyOutput):
            self.bound([tensor("a", "n", access="write")], array)
        with pytest.raises(WrongDevice, match="the runtime 'metal' serves"):
            kernel(scale(), scale_params(), adapter(mx), hidden=("n",))(array, array, 1.0)


def test_content_is_replaced_for_all_who_hold_the_object():
    array = mx.zeros((3, 4))
    same, earlier = array, array.reshape(-1)
    array[...] = mx.ones((3, 4))
    assert same is array
    assert np.array(same).sum() == 12
    assert np.array(earlier).sum() == 0
    scalar = mx.array(3.0)
    scalar[...] = mx.array(4.0)
    assert (scalar.item(), scalar.shape) == (4.0, ())


@pytest.mark.parametrize("dtype", ["bool_", "bfloat16", "uint8", "int64"])
def test_replaced_content_has_the_same_type(dtype):
    kind = getattr(mx, dtype)
    array = mx.zeros((9,), kind)
    array[...] = mx.ones((9,), kind)
    assert array.dtype == kind
    assert hash(array.dtype) == hash(kind)


def test_words_of_scalars():
    words = words_of(b"\xff" * 8 + b"\0" * 7 + b"\x80" + b"\1")
    array = mx.array(words, dtype=mx.int64)
    assert np.array(array).tolist() == [-1, -(2**63), 1]


def test_arrays_of_numpy_are_copied():
    image = np.arange(600, dtype=np.uint8)
    array = mx.array(image)
    image[:] = 0
    assert array.dtype == mx.uint8
    assert np.array(array, np.uint8)[5] == 5


def test_objects_can_be_watched():
    import weakref

    array = mx.zeros((3,))
    watch = weakref.ref(array)
    assert watch() is array
    del array
    assert watch() is None


def generated(capfd, tmp_path, given, shapes, outputs):
    """Return the text that the real MLX generates, by export where it has no device."""

    def call(*arrays):
        kernel = mx.fast.metal_kernel(**given)
        return kernel(
            inputs=list(arrays), output_shapes=[(9,)] * len(outputs), output_dtypes=[getattr(mx, d) for d in outputs],
            grid=(9, 1, 1), threadgroup=(9, 1, 1), verbose=True, stream=mx.gpu,
        )  # fmt: skip

    arrays = [mx.zeros(shape, getattr(mx, dtype)) for shape, dtype in shapes]
    capfd.readouterr()
    try:
        mx.export_function(str(tmp_path / "f.mlxfn"), call, *arrays)
    except RuntimeError as error:
        pytest.skip(f"this MLX shows no text: {error}")
    return capfd.readouterr().out.partition("```\n")[2].rpartition("\n```")[0]


FORMS = {
    "output": (scale, [ArraySlot("input"), ArraySlot("output")], [((9,), "float32"), ((1,), "int64")], ["float32"]),
    "renewed": (add_some, [ArraySlot("input"), ArraySlot("renewed")],
                [((3, 3), "float32"), ((9,), "float32"), ((1,), "int64")], ["uint8"]),
    "guarded": (add_some, [ArraySlot("input", 256), ArraySlot("renewed", 260)],
                [((600,), "uint8"), ((600,), "uint8"), ((1,), "int64")], ["uint8"]),
    "many": (gemm, [ArraySlot("input"), ArraySlot("input"), ArraySlot("output")],
             [((8, 8), "float16"), ((8, 8), "float16"), ((8,), "int64")], ["float32"]),
    "words": (accidents, [ArraySlot("output")], [((1,), "int64")], ["float32"]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_double_makes_the_text_that_mlx_makes(form, capfd, tmp_path):
    make, slots, shapes, outputs = FORMS[form]
    source = mlx_source(split(make()), slots, shapes[-1][0][0], 32)
    given = {
        "name": "f", "input_names": list(source.inputs), "output_names": list(source.outputs), "header": source.header,
        "source": source.source, "ensure_row_contiguous": True,
    }  # fmt: skip
    found = generated(capfd, tmp_path, given, shapes, outputs)
    double = Mlx()
    arrays = [double.zeros(shape, getattr(double, dtype)) for shape, dtype in shapes]
    expected = double.fast.metal_kernel(**given).text(arrays, [getattr(double, d) for d in outputs])
    assert found == expected


def test_what_launches_use():
    for name in ("async_eval", "eval", "synchronize", "default_stream", "gpu", "device_info"):
        assert hasattr(mx, name)
    how = {"input_names": ["a"], "output_names": ["b"], "source": "b[0] = a[0];", "name": "f"}
    call = mx.fast.metal_kernel(**how, ensure_row_contiguous=False, compile_options={"math_mode": "fast"})
    if HOST:
        given = {"output_shapes": [(1,)], "output_dtypes": [mx.float32], "grid": (1, 1, 1), "threadgroup": (1, 1, 1)}
        with pytest.raises(RuntimeError, match="No Metal back-end"):
            call(inputs=[mx.zeros((9,))], stream=mx.gpu, **given)
