"""Line tables of built code: profilers and debuggers show the user's Python lines."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import tile_core.language as T
from tile_core.abi.kernel_text import LineMap
from tile_core.compiler import lower
from tile_core.errors import Where
from tile_core.errors.launch import TextRefused
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda import build
from tile_cuda.line_tables import with_user_lines
from tile_cuda.options import CudaOptions

from .test_build import with_options
from .texts import SCALE, mapped


@T.prim_func
def linear(A: T.Tensor((256, 128), "float16"), B: T.Tensor((128, 256), "float16"), C: T.Tensor((256, 256), "float32")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        a, b = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 128, k * 64], a)
            T.copy(B[k * 64, bx * 128], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(128, 128):
            c[i, j] = T.exp(c[i, j])
        T.copy(c, C[by * 128, bx * 128])


def lowered(arch, line_info):
    return lower(linear, make_context(f"cuda:{arch}", {"line_info": line_info}), installed()).lowered


def table(text, arch):
    """Return the lines that the assembly of a text has code for, by file."""
    options = CudaOptions(line_info=True)
    status, log, ptx = build._run(text, build.flags(arch.replace("sm_", "compute_"), options), "PTX")
    assert status == 0, log
    code = ptx.decode().rstrip("\0")
    names = dict(re.findall(r'^\s*\.file\s+(\d+) "(.*)"', code, re.MULTILINE))
    found = {}
    for number, line in re.findall(r"^\s*\.loc\s+(\d+) (\d+)", code, re.MULTILINE):
        found.setdefault(names[number], set()).add(int(line))
    # Code of functions that a line calls names its caller, too.
    for number, line in re.findall(r"inlined_at (\d+) (\d+)", code):
        found.setdefault(names[number], set()).add(int(line))
    return found


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_code_has_the_lines_of_the_program(arch):
    kernel = lowered(arch, True)
    lines = table(with_user_lines(kernel, build.FILE), arch)[__file__]
    source, first = inspect.findsource(table)[0], linear.where.line
    found = {source[n - 1].strip() for n in lines if n}
    assert {"T.gemm(a, b, c)", "c[i, j] = T.exp(c[i, j])", "T.copy(c, C[by * 128, bx * 128])"} <= found
    assert lines - {0} <= set(range(first - 1, first + 13)), sorted(lines)  # 0: code that the compiler makes


@pytest.mark.sweep(0.25)
def test_built_code_names_the_file_if_it_is_asked():
    name = Path(__file__).name.encode()
    assert name in build.build(lowered("sm_90a", True), "sm_90a").data
    assert name not in build.build(lowered("sm_90a", "text"), "sm_90a").data
    assert name not in build.build(lowered("sm_90a", False), "sm_90a").data


def test_the_text_itself_stays_as_it_is():
    kernel = lowered("sm_90a", True)
    assert "#line" not in kernel.text
    assert [line for line in with_user_lines(kernel, "k.cu").splitlines() if not line.startswith("#line")] == (
        kernel.text.splitlines()
    )


def test_every_line_of_the_text_has_its_location():
    where, other = Where('C:\\a "b".py', 7), Where("other.py", 9)
    kernel = mapped("one\ntwo\nthree\nfour\nfive\n", None)
    kernel = type(kernel)(kernel.text, _with_map(kernel.facts, [None, where, where, other, None]))
    assert with_user_lines(kernel, "k.cu").splitlines() == [
        "one", '#line 7 "C:\\\\a \\"b\\".py"', "two", '#line 7 "C:\\\\a \\"b\\".py"', "three", '#line 9 "other.py"',
        "four",
        '#line 5 "k.cu"', "five",
    ]  # fmt: skip


def test_refusals_still_name_the_line_of_the_text():
    text = SCALE.replace("x[i] * by;", "x[i] * nothing;")
    kernel = with_options(mapped(text, None, 11, 12, None), line_info=True)
    with pytest.raises(TextRefused, match=r'\[U406\] scale: .* identifier "nothing" is undefined') as caught:
        build.build(kernel, "sm_90a")
    assert caught.value.where == Where("user.py", 12)
    assert "rejected line 3 of the text, `if (i < n) y[i] = x[i] * nothing;`: " in str(caught.value)


def _with_map(facts, locations):
    return dataclasses.replace(facts, line_map=LineMap.of(locations))
