"""Five faults that tools find without a look at the program: each marks its line by the comment "fault"."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

RANDOM = np.random.default_rng(5)


@T.prim_func
def attention(
    Q: T.Tensor((32, 16), "float32"), K: T.Tensor((32, 16), "float32"), V: T.Tensor((32, 16), "float32"),
    lengths: T.Tensor((32,), "int32"), Out: T.Tensor((32, 16), "float32"),
):  # fmt: skip
    with T.Kernel(2, threads=32) as bx:
        q, kv = T.alloc_shared((16, 16), "float32"), T.alloc_shared((16, 16), "float32")
        s, out = T.alloc_fragment((16, 16), "float32"), T.alloc_fragment((16, 16), "float32")
        m, before, total = (T.alloc_fragment((16,), "float32") for _ in range(3))
        step = T.alloc_fragment((16,), "float32")
        T.copy(Q[bx * 16, 0], q)
        T.fill(m, -T.infinity("float32"))
        T.clear(total)
        T.clear(out)
        for k in range(2):
            T.copy(K[k * 16, 0], kv)
            T.gemm(q, kv, s, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(16, 16):
                s[i, j] = T.if_then_else(k * 16 + j < lengths[bx * 16 + i], s[i, j], -T.infinity("float32"))
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for i, j in T.Parallel(16, 16):
                s[i, j] = T.exp(s[i, j] - m[i])  # fault: of a row without elements
            T.reduce_sum(s, step, dim=1)
            for i in T.Parallel(16):
                total[i] = total[i] * T.exp(before[i] - m[i]) + step[i]
            for i, j in T.Parallel(16, 16):
                out[i, j] = out[i, j] * T.exp(before[i] - m[i])
            T.copy(V[k * 16, 0], kv)
            T.gemm(s, kv, out)
        for i, j in T.Parallel(16, 16):
            Out[bx * 16 + i, j] = out[i, j] / total[i]


@T.prim_func
def rms(A: T.Tensor((4, 256), "float16"), B: T.Tensor((4, 256), "float16")):
    with T.Kernel(4, threads=64) as bx:
        row, total = T.alloc_fragment((256,), "float16"), T.alloc_fragment((1,), "float16")
        T.copy(A[bx, 0], row)
        for i in T.Parallel(256):
            row[i] = row[i] * row[i]
        T.reduce_sum(row, total, dim=0)  # fault: float16 ends at 65504
        for i in T.Parallel(256):
            B[bx, i] = A[bx, i] / T.sqrt(total[0] / 256)


@T.prim_func
def scaled(A: T.Tensor((32, 64), "int8"), scales: T.Tensor((32, 4), "float32"), B: T.Tensor((32, 64), "float32")):
    with T.Kernel(4, 2, threads=32) as (bx, by):
        for i, j in T.Parallel(16, 16):
            B[by * 16 + i, bx * 16 + j] = A[by * 16 + i, bx * 16 + j] * scales[by * 16 + i, j // 16]  # fault: not bx


@T.prim_func
def histogram(bins: T.Tensor((256,), "int32"), counts: T.Tensor((2, 8), "int32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(8):
            counts[bx, i] = 0
        for i in T.Parallel(128):
            counts[bx, bins[bx * 128 + i]] = counts[bx, bins[bx * 128 + i]] + 1  # fault: not atomic


@T.prim_func
def pages(A: T.Tensor((8, 16), "float32"), table: T.Tensor((6,), "int32"), B: T.Tensor((6, 16), "float32")):
    with T.Kernel(6, threads=32) as bx:
        page = table[bx]
        for i in T.Parallel(16):
            B[bx, i] = A[page, i]  # fault: a page that does not exist


def page_inputs():
    return np.ones((8, 16), "float32"), np.array([0, 3, 7, 2, 9, 1], "int32")


def attention_inputs():
    q, k, v = (RANDOM.standard_normal((32, 16)).astype("float32") for _ in range(3))
    lengths = RANDOM.integers(17, 32, 32).astype("int32")
    lengths[21] = 0
    return q, k, v, lengths


def refusal(program, *arguments, out_idx=-1, **options):
    """Return the error of ``verify``."""
    with pytest.raises(TileError) as info:
        tile.compile(program, "cpu", out_idx=out_idx).verify(*arguments, **options)
    return info.value


def test_a_nan_is_found_by_verify():
    error = refusal(attention, *attention_inputs())
    assert "# fault" in error.where.source
    assert "subtraction of -inf and -inf makes NaN, first in s[5, 0] of block 1" in error.message


def test_an_overflow_is_found_by_find_nan():
    a = np.ones((4, 256), "float16")
    a[2] = 30
    found = tile.find_nan(rms, a, np.zeros_like(a), infinities=True)
    assert "# fault" in found.where.source
    assert (found.operation, found.block, found.buffer, found.index) == ("T.reduce_sum", (2,), "total", (0,))


def test_a_wrong_index_is_found_by_a_reference():
    a = RANDOM.integers(1, 100, (32, 64)).astype("int8")
    scales = RANDOM.uniform(1, 2, (32, 4)).astype("float32")
    error = refusal(scaled, a, scales, reference=lambda a, s: a * np.repeat(s, 16, axis=1))
    assert "# fault" in error.where.source
    assert error.facts["first"] == (0, 16)
    assert "written by block (1, 0)" in error.message


def test_a_race_is_found_by_verify():
    bins, counts = RANDOM.permutation(256).astype("int32") // 32, np.zeros((2, 8), "int32")
    error = refusal(histogram, bins, counts, out_idx=None)
    assert (error.code, "# fault" in error.where.source) == ("K443", True)
    assert re.match(r"counts\[[01], [0-7]\] is written by one iteration and read by another", error.message)


def test_a_wrong_page_is_found_by_the_debugger():
    a, table = page_inputs()
    error = refusal(pages, a, table, reference=lambda a, t: np.ones((6, 16), "float32"))
    assert error.facts["first"] == (4, 0)
    line = error.where.line
    command = [sys.executable, "-m", "tile_core.cli", "debug", f"{Path(__file__)}:pages"]
    command += ["--inputs", f"{Path(__file__)}:page_inputs", "-c", f"break {line} if B[bx - 1, 0] == 0 or page > 7"]
    done = subprocess.run([*command, "-c", "c", "-c", "p page", "-c", "c"], capture_output=True, text=True, check=True)
    assert re.search(rf":{line}, block 4, 16 iterations\n-> .*# fault.*\npage = 9\n", done.stdout)


def test_the_same_kernels_without_their_faults_pass():
    q, k, v, lengths = attention_inputs()
    lengths[21] = 20
    tile.compile(attention, "cpu", out_idx=-1).verify(q, k, v, lengths)
    assert tile.find_nan(attention, q, k, v, lengths, np.zeros_like(q)) is None
