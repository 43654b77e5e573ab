"""Test outputs that a kernel reads: refused unless written before (K427)."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import BadOutIdx

N = 37


@T.prim_func
def the_same_element(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            C[i] = A[i]
            C[i] = C[i] * 2.0


@T.prim_func
def a_second_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 16), threads=32) as b:
        for i in T.Parallel(16):
            C[b * 16 + i] = A[b * 16 + i]
        for j in T.Parallel(16):
            C[b * 16 + j] += A[b * 16 + j]


@T.prim_func
def a_part_that_is_cleared(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 16), threads=32) as b:
        s = T.alloc_shared((16,), "float32")
        T.clear(C[b * 16 : b * 16 + 16])
        T.copy(C[b * 16 : b * 16 + 16], s)
        for i in T.Parallel(16):
            s[i] += 2.0 * A[b * 16 + i]
        T.copy(s, C[b * 16 : b * 16 + 16])


@T.prim_func
def the_whole_tensor(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        T.clear(C)
        for _ in T.serial(2):
            for i in T.Parallel(N):
                C[i] += A[i]


@T.prim_func
def in_a_branch(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            if A[0] > 0.0:
                C[i] = A[i]
        for i in T.Parallel(N):
            C[i] = C[i] + A[i]


@T.prim_func
def a_shorter_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N - 1):
            C[i] = A[i]
        for i in T.Parallel(N):
            C[i] = C[i] + A[i]


@T.prim_func
def another_element(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N - 1):
            C[i] = A[i]
            C[i] = C[i + 1] + A[i]


@T.prim_func
def a_loop_that_may_not_run(A: T.Tensor((N,), "float32"), n: T.int32, C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for _ in T.serial(n):
            C[0] = A[0]
        C[0] = C[0] + A[1]


@T.prim_func
def a_loop_that_ends_early(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N):
            if A[i] > 0.0:
                break
            C[i] = A[i]
        for i in T.serial(N):
            C[i] = C[i] + A[i]


@T.prim_func
def in_the_next_trip(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N):
            C[0] = C[0] + A[i]
            C[0] = A[i]


@T.prim_func
def an_index_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        j = T.alloc_var("int32", init=2)
        C[j] = A[0]
        j = 5
        C[j] = C[j] + 1.0


@T.prim_func
def a_while_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        i = T.alloc_var("int32", init=0)
        while i < N - 1:
            C[i] = A[i]
            i = i + 1
            C[i] = C[i] * 2.0


@T.prim_func
def a_corner_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        n = T.alloc_var("int32", init=8)
        f = T.alloc_fragment((8,), "float32")
        T.copy(A[0:8], f)
        T.copy(f, C[n : n + 8])
        n = 0
        T.copy(C[n : n + 8], f)


@T.prim_func
def a_bound_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        n = T.alloc_var("int32", init=3)
        for i in range(n):
            C[i] = A[i]
        n = 8
        for i in range(n):
            C[i] += 1.0


@pytest.mark.parametrize("program", [the_same_element, a_second_loop, a_part_that_is_cleared, the_whole_tensor])
def test_an_output_that_is_written_first_is_allocated(program):
    a = np.random.default_rng(0).standard_normal(N).astype("float32")
    kernel = tile.compile(program, target="cpu", out_idx=-1)
    np.testing.assert_array_equal(kernel(a), 2 * a)
    kernel.verify(a)


@pytest.mark.parametrize(
    "program",
    [
        in_a_branch,
        a_shorter_loop,
        another_element,
        a_loop_that_may_not_run,
        a_loop_that_ends_early,
        in_the_next_trip,
        an_index_that_changes,
        a_while_loop,
        a_corner_that_changes,
        a_bound_that_changes,
    ],
)
def test_an_output_that_may_be_read_first_is_refused(program):
    with pytest.raises(BadOutIdx):
        tile.compile(program, target="cpu", out_idx=-1)


# Statements of a launch over `b` that fill the output C of shape (m, 5), or leave something out.
FILLS = {
    "slices": (3, "T.fill(C[b * 13 : b * 13 + 13, 0:5], 0)"),
    "tiles": (3, "f = T.alloc_fragment((16, 5), 'float32')\nT.clear(f)\nT.copy(f, C[b * 16, 0])"),
    "elements": (37, "for i in T.Parallel(5):\n    C[b, i] = 0"),
    "elements of tiles": (3, "for i, j in T.Parallel(13, 5):\n    C[b * 13 + i, j] = 0"),
    "guarded": (3, "for i, j in T.Parallel(13, 5):\n    if b * 13 + i < N:\n        C[b * 13 + i, j] = 0"),
    "guarded twice": (
        3, "for i, j in T.Parallel(13, 8):\n    if b * 13 + i < N and j < 5:\n        C[b * 13 + i, j] = 0",
    ),
    "computed": (3, "n = b * 13\nfor i, j in T.Parallel(13, 5):\n    m = n + i\n    C[m, j] = 0"),
    "backwards from 1": (37, "for j in T.serial(1, 6):\n    C[b, j - 1] = 0"),
    "by size": ("T.ceildiv(M, 16)", "for i, j in T.Parallel(16, 5):\n    C[b * 16 + i, j] = 0"),
    "by size, guarded": (
        "T.ceildiv(M, 16)", "for i, j in T.Parallel(16, 5):\n    if b * 16 + i < M:\n        C[b * 16 + i, j] = 0",
    ),
    "one row less": (36, "for i in T.Parallel(5):\n    C[b, i] = 0", True),
    "a gap": (13, "for i in T.Parallel(5):\n    C[b * 3, i] = 0\n    C[b * 3 + 1, i] = 0", True),
    "not from 0": (37, "for i in T.Parallel(5):\n    C[b + 1, i] = 0", True),
    "a diagonal": (37, "C[b, b % 5] = 0", True),
    "a diagonal without remainders": (37, "C[b, b] = 0", True),
    "another condition": (37, "for i in T.Parallel(5):\n    if b < N - 1:\n        C[b, i] = 0", True),
    "the other side": (37, "for i in T.Parallel(5):\n    if not b < N:\n        C[b, i] = 0", True),
    "a condition on data": (37, "for i in T.Parallel(5):\n    if A[b] > 0:\n        C[b, i] = 0", True),
    "too few by size": ("T.ceildiv(M, 32)", "for i, j in T.Parallel(16, 5):\n    C[b * 16 + i, j] = 0", True),
    "rounded down": ("M // 16", "for i, j in T.Parallel(16, 5):\n    C[b * 16 + i, j] = 0", True),
    "by the input's size": ("A.shape[0]", "for i in T.Parallel(5):\n    C[b, i] = 0", True),
}  # fmt: skip

SECOND = """
import tile_core.language as T
M = T.dynamic("m")
N = 37 if {constant} else M
@T.prim_func
def k(A: T.Tensor((T.dynamic("a"),), "float32"), L: T.Tensor((N,), "float32"), C: T.Tensor((N, 5), "float32")):
    with T.Kernel({blocks}, threads=32) as b:
{fill}
    with T.Kernel(T.ceildiv(A.shape[0], 8), threads=32) as b:
        for i in T.Parallel(8):
            if b * 8 + i < A.shape[0]:
                T.atomic_add(C[(b * 8 + i) % N, 2], A[b * 8 + i])
"""


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", FILLS)
def test_an_output_that_an_earlier_launch_fills_is_allocated(name, tmp_path):
    blocks, fill, *refused = FILLS[name]
    constant = not isinstance(blocks, str) or "A.shape" in blocks
    fill = "\n".join(" " * 8 + line for line in fill.splitlines())
    file = tmp_path / "kernel.py"
    file.write_text(SECOND.format(blocks=blocks, fill=fill, constant=constant))
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    if refused:
        with pytest.raises(BadOutIdx):
            tile.compile(space["k"], target="cpu", out_idx=-1)
        return
    a = np.random.default_rng().integers(-9, 9, 80).astype("float32")
    want = np.zeros((37, 5), "float32")
    np.add.at(want[:, 2], np.arange(80) % 37, a)
    kernel = tile.compile(space["k"], target="cpu", out_idx=-1)
    np.testing.assert_array_equal(kernel(a, np.zeros(37, "float32")), want)
    kernel.verify(a, np.zeros(37, "float32"))
