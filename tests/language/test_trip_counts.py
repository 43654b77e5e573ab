"""Trip counts equal Python's ``len(range(...))`` for all bounds, on every target."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reference import execute

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)

TOP, LEAST, STEP = 2**31 - 1, -(2**31), 2**30
m, n = T.dynamic("m"), T.dynamic("n")
PAIRS = [
    (0, TOP), (-TOP, TOP), (LEAST, TOP), (5, LEAST), (TOP, LEAST), (LEAST, 5), (3, 10), (-7, -5), (TOP - 1, TOP),
]  # fmt: skip


def run(program: Any, target: str, **values: Any) -> None:
    if target == "reference":
        execute(program, values, check=False, symbols={})
    else:
        compiled(program, target)(*values.values())


@T.prim_func
def strides(a: T.int32, b: T.int32, B: T.Tensor((9, 2), "int64")):
    with T.Kernel(1, threads=1):
        for i in range(0, b, STEP):
            B[0, 0] += 1
            B[0, 1] = i
        for i in range(LEAST, TOP, STEP):
            B[1, 0] += 1
            B[1, 1] = i
        for i in range(a, b, STEP):
            B[2, 0] += 1
            B[2, 1] = i
        for i in T.serial(b, a, -STEP):
            B[3, 0] += 1
            B[3, 1] = i
        for i in T.serial(5, b, STEP):
            B[4, 0] += 1
            B[4, 1] = i
        for i in range(b, -5, -STEP):
            B[5, 0] += 1
            B[5, 1] = i
        for i in T.unroll(a, b, STEP, unroll_factor=2):
            B[6, 0] += 1
            B[6, 1] = i
        for i in range(a, b, 3 * 2**29):
            B[7, 0] += 1
            B[7, 1] = i
        for i in range(TOP, LEAST, -STEP):
            B[8, 0] += 1
            B[8, 1] = i


def trips(numbers: range, most: int = 2**62) -> list[int]:
    count = min(most, max(0, -(-(numbers.stop - numbers.start) // numbers.step)))
    return [count, numbers[count - 1] if count else 0]


@pytest.mark.parametrize("target", ["reference", *TARGETS])
def test_long_strides_between_distant_bounds(target: str) -> None:
    for a, b in PAIRS:
        found = np.zeros((9, 2), np.int64)
        run(strides, target, a=a, b=b, B=found)
        assert found.tolist() == [
            trips(range(0, b, STEP)), trips(range(LEAST, TOP, STEP)), trips(range(a, b, STEP)),
            trips(range(b, a, -STEP)), trips(range(5, b, STEP)), trips(range(b, -5, -STEP)), trips(range(a, b, STEP)),
            trips(range(a, b, 3 * 2**29)), trips(range(TOP, LEAST, -STEP)),
        ], (a, b)  # fmt: skip


@T.prim_func
def left(a: T.int32, b: T.int32, B: T.Tensor((6, 2), "int64")):
    with T.Kernel(1, threads=1):
        for i in range(0, b, 2):
            B[0, 0] += 1
            B[0, 1] = i
            if B[0, 0] > 2:
                break
        for i in range(a, b):
            B[1, 0] += 1
            B[1, 1] = i
            if B[1, 0] > 2:
                break
        for i in range(-TOP, TOP):
            B[2, 0] += 1
            B[2, 1] = i
            if B[2, 0] > 2:
                break
        for i in range(a, b, 2):
            B[3, 0] += 1
            B[3, 1] = i
            if B[3, 0] > 2:
                break
        for i in T.serial(b, -1, -1):
            B[4, 0] += 1
            B[4, 1] = i
            if B[4, 0] > 2:
                break
        for i in range(7, b):
            B[5, 0] += 1
            B[5, 1] = i
            if B[5, 0] > 2:
                break


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_loops_of_billions_of_trips_that_are_left(target: str) -> None:
    """A ``break`` ends the loop: targets with threads count every iteration."""
    for a, b in PAIRS:
        found = np.zeros((6, 2), np.int64)
        run(left, target, a=a, b=b, B=found)
        ranges = [range(0, b, 2), range(a, b), range(-TOP, TOP), range(a, b, 2), range(b, -1, -1), range(7, b)]
        assert found.tolist() == [trips(r, 3) for r in ranges], (a, b)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_texts_count_in_64_bits_where_32_may_not_do(target: str) -> None:
    @T.prim_func
    def main(a: T.int32, b: T.int32, B: T.Tensor((m,), "int32")):
        with T.Kernel(4, threads=1) as bx:
            for i in range(-TOP, TOP):
                if bx == 0 and i > b:
                    T.atomic_add(B[1], i)
            for i in range(a, b):
                T.atomic_add(B[i], 1)
            for i in range(bx, m):
                T.atomic_add(B[i], 2)
            for i in range(bx * 8, b, 2):
                T.atomic_add(B[i], 3)

    text = lower(main, make_context(target), installed()).lowered.text
    loops = [line.strip() for line in text.splitlines() if line.strip().startswith("for (")]
    assert [line.startswith("for (long") for line in loops] == [True, True, False, False]
    assert f"{2 * TOP}" in loops[0]


@T.prim_func
def wide(c: T.int64, d: T.int64, u: T.uint32, w: T.uint64, B: T.Tensor((6, 2), "int64")):
    with T.Kernel(1, threads=1):
        for i in range(c, d, STEP):
            B[0, 0] += 1
            B[0, 1] = i
        for i in range(d, c, -STEP):
            B[1, 0] += 1
            B[1, 1] = i
        for i in range(5, u, STEP):
            B[2, 0] += 1
            B[2, 1] = i
        for i in T.serial(2**32, d, TOP):
            B[3, 0] += 1
            B[3, 1] = i
        if w < 10:
            for i in range(2, w):
                B[4, 0] += 1
                B[4, 1] = i
        for i in T.serial(w, 5):
            B[5, 0] += 1
            B[5, 1] = i


@pytest.mark.parametrize("target", ["reference", *TARGETS])
@pytest.mark.parametrize(
    ("c", "d", "u", "w"),
    [
        (0, 2**33, 3, 4), (-(2**63), -(2**63) + 2**31, 2**32 - 1, 0), (2**34, -5, 5, 2**64 - 1),
        (2**40 - 2**31, 2**40, 2**31 + 7, 3), (-(2**63), -(2**63) + 9, 0, 2**63),
    ],
)  # fmt: skip
def test_wide_and_unsigned_bounds(target: str, c: int, d: int, u: int, w: int) -> None:
    found = np.zeros((6, 2), np.int64)
    run(wide, target, c=c, d=d, u=u, w=w, B=found)
    assert found.tolist() == [
        trips(range(c, d, STEP)), trips(range(d, c, -STEP)), trips(range(5, u, STEP)), trips(range(2**32, d, TOP)),
        trips(range(2, w if w < 10 else 0)), trips(range(w, 5)),
    ]  # fmt: skip


@T.prim_func
def rows(P: T.Tensor((5,), "int32"), A: T.Tensor((n, 64), "float32"), B: T.Tensor((2, 4, 64), "float32")):
    with T.Kernel(4, threads=32) as r:
        total = T.alloc_fragment((64,), "float32")
        s = T.alloc_shared((2, 64), "float32")
        T.clear(total)
        for j in T.serial(P[r], P[r + 1]):
            for i in T.Parallel(64):
                total[i] += A[j, i]
        T.copy(total, B[0, r, :])
        T.clear(total)
        for k in T.Pipelined(P[r], P[r + 1], num_stages=3):
            T.copy(A[k * 2 : k * 2 + 2, :], s)
            for i in T.Parallel(64):
                total[i] += s[0, i] + s[1, i]
        T.copy(total, B[1, r, :])


@pytest.mark.parametrize("target", TARGETS)
def test_rows_between_bounds_in_memory(target: str) -> None:
    a = np.random.default_rng(0).integers(0, 9, (20, 64)).astype(np.float32)
    p = np.array([0, 3, 3, 8, 2], np.int32)
    b = compiled(rows, target, out_idx=2)(p, a)
    parts = [[a[s * x : max(s * y, s * x)].sum(0) for x, y in itertools.pairwise(p)] for s in (1, 2)]
    np.testing.assert_array_equal(b, np.array(parts))


@T.prim_func
def swept(A: T.Tensor((m, n), "int32"), a: T.int32, b: T.int32, first: T.int32, C: T.Tensor((3,), "int32")):
    with T.Kernel(3, threads=1) as x:
        for i, j in T.Persistent((m, n), 3, x):
            A[i, j] += 1
        if x == 0:
            for i, j in T.Persistent((a, b), STEP, first):
                C[0] += 1
                C[1] = i
                C[2] = j


@pytest.mark.parametrize("target", TARGETS)
def test_domains_of_more_tiles_than_a_number_holds(target: str) -> None:
    for a, b, first in [(65536, 65536, STEP - 1), (65536, 32769, 0), (-2, -3, 0), (2, 3, 5), (0, 4, 0)]:
        tiles, found = np.zeros((3, 5), np.int32), np.zeros(3, np.int32)
        compiled(swept, target)(tiles, a, b, first, found)
        assert (tiles == 1).all()
        numbers = range(first, max(a, 0) * max(b, 0), STEP)
        assert found.tolist() == ([len(numbers), numbers[-1] // b, numbers[-1] % b] if numbers else [0] * 3), (a, b)


@pytest.mark.parametrize("bound", [2**63, -(2**63) - 1])
def test_bounds_of_more_than_64_bits_are_refused(bound: int) -> None:
    with pytest.raises(tile.TileError, match="at most 64 bits"):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                for _ in range(0, bound):
                    A[0] = 1
