"""Fragments beyond a thread's registers: computed where they are read, moved to shared memory, or reported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir.attributes import UNROLL_FACTOR
from tile_core.ir.visit import annotation, collect
from tile_core.simt.code_size import bounded
from tile_core.simt.memory.register_pressure import register_pressure

from ..whole import planned, run

THREADS = 32
#: Arrays of more than 10 registers leave a thread too few others, and more than 24 spill.
FEW = {"thread_registers": 24, "block_registers": 24 * THREADS}
EVEN, ODD = 32 * 32, 32 * 32 + 5


def program(n: int, rows: int, steps: Any, dtype: str = "int32") -> Any:
    """Return a kernel that loads ``x``, takes steps, and stores ``x``, ``y`` and ``s``."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, n), dtype), B: T.Tensor((2, n), "int32"), P: T.Tensor((rows, n), "int32"),
        Q: T.Tensor((rows, n), "int32"), R: T.Tensor((rows, n), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            x, y = T.alloc_fragment((rows, n), "int32"), T.alloc_fragment((rows, n), "int32")
            s, t = T.alloc_fragment((rows,), "int32"), T.alloc_shared((n,), "int32")
            T.copy(A, x)
            T.copy(B[0, 0], t)
            T.reduce_max(x, s, dim=1)
            steps(A, B, P, x, y, s, t, rows, n)
            for i, j in T.Parallel(rows, n):
                Q[i, j] = x[i, j]
            for i, j in T.Parallel(rows, n):
                R[i, j] = s[i]

    return main


@T.macro
def softmax(A, B, P, x, y, s, t, rows, n):
    u = T.alloc_fragment((rows,), "int32")
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] - s[i]
    T.reduce_sum(x, u, dim=1)
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] * u[i]


@T.macro
def two(A, B, P, x, y, s, t, rows, n):
    for i, j in T.Parallel(rows, n):
        y[i, j] = x[i, j] * x[i, j]
    T.reduce_sum(y, s, dim=1)
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] + s[i]
    for i, j in T.Parallel(rows, n):
        P[i, j] = y[i, j] - x[i, j]


@T.macro
def conditions(A, B, P, x, y, s, t, rows, n):
    u = T.alloc_fragment((rows,), "int32")
    for i, j in T.Parallel(rows, n):
        if j % 3 == 0:
            x[i, j] = x[i, j] * s[i]
        else:
            x[i, j] = j - x[i, j]
    for i, j in T.Parallel(rows, n):
        if x[i, j] > 0:
            x[i, j] = 7
    T.reduce_min(x, u, dim=1)
    for i, j in T.Parallel(rows, n):
        P[i, j] = u[i]


@T.macro
def effects(A, B, P, x, y, s, t, rows, n):
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] * 2
        y[i, j] = x[i, j] + 1
        P[i, j] = y[i, j]
    for i, j in T.Parallel(rows, n):
        if j % 5 == 0:
            x[i, j] = y[i, j] + x[i, j]
            P[i, j] = x[i, j]
        else:
            P[i, j] = x[i, j] - y[i, j]


@T.macro
def staged(A, B, P, x, y, s, t, rows, n):
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] + t[n - 1 - j]
    T.reduce_max(x, s, dim=1)


@T.macro
def scales_change(A, B, P, x, y, s, t, rows, n):
    v = T.alloc_var("int32", init=3)
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] * v + s[i]
    T.reduce_sum(x, s, dim=1)
    v = 5
    for i, j in T.Parallel(rows, n):
        P[i, j] = x[i, j] * v + s[i]


@T.macro
def input_changes(A, B, P, x, y, s, t, rows, n):
    for i, j in T.Parallel(rows, n):
        A[i, j] = 1


@T.macro
def stage_changes(A, B, P, x, y, s, t, rows, n):
    for i, j in T.Parallel(rows, n):
        x[i, j] = x[i, j] + t[j]
    T.copy(B[1, 0], t)


@T.macro
def carried(A, B, P, x, y, s, t, rows, n):
    T.clear(y)
    for k in T.serial(3):
        for i, j in T.Parallel(rows, n):
            y[i, j] = y[i, j] + B[0, j] * k
        T.reduce_max(y, s, dim=1)
    for i, j in T.Parallel(rows, n):
        P[i, j] = y[i, j]


@T.macro
def inside(A, B, P, x, y, s, t, rows, n):
    for k in T.serial(3):
        for i, j in T.Parallel(rows, n):
            y[i, j] = B[0, j] * k
        T.reduce_max(y, s, dim=1)
        for i, j in T.Parallel(rows, n):
            P[i, j] = y[i, j] + s[i]


RECOMPUTES = {
    "softmax": (softmax, {"x"}), "two": (two, {"x", "y"}), "conditions": (conditions, {"x"}),
    "effects": (effects, {"x", "y"}), "staged": (staged, {"x"}), "scales": (scales_change, {"x"}),
    "inside": (inside, {"x", "y"}),
}  # fmt: skip
KEEPS = {"input": input_changes, "stage": stage_changes, "carried": carried}


def executed(made: Any, rows: int, n: int, dtype: str = "int32", **capabilities: Any) -> tuple[Any, list[Any]]:
    """Return the plan of a program, and the arrays after it ran."""
    rng = np.random.default_rng(1)
    shapes = ((rows, n), (2, n), (rows, n), (rows, n), (rows, n))
    kinds = (dtype, *["int32"] * 4)
    arrays = [rng.integers(-9, 9, s).astype(k) for s, k in zip(shapes, kinds, strict=True)]
    return run(made, *arrays, **capabilities), arrays


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("rows", "n", "dtype"), [(1, EVEN, "int32"), (1, ODD, "int16"), (2, 520, "float16")])
@pytest.mark.parametrize("name", RECOMPUTES)
def test_elements_are_computed_where_they_are_read(name, rows, n, dtype):
    steps, expected = RECOMPUTES[name]
    # A row that is loaded in a loop could keep padding from the iteration before.
    exact = expected if n == EVEN or name != "inside" else expected - {"y"}
    made = program(n, rows, steps, dtype)
    plain, want = executed(made, rows, n, dtype)
    plan, found = executed(made, rows, n, dtype, **FEW)
    assert plain.recomputed == {}
    assert set(plan.recomputed) == exact
    assert re.match(r"it needs \d+ registers of a thread.*, of at most 24$", plan.recomputed["x"])
    assert not {x.buffer.name for x in collect(plan.body, tirx.AllocBuffer)} & exact
    assert register_pressure(plan.body).registers <= 8
    for a, b in zip(found, want, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", KEEPS)
def test_elements_of_values_that_change_are_kept(name):
    """Shared memory holds them, or else a performance warning names the fragment, its line and the reason."""
    made = program(EVEN, 1, KEEPS[name])
    _, want = executed(made, 1, EVEN)
    kept = "y" if name == "carried" else "x"
    plan, found = executed(made, 1, EVEN, **FEW)
    assert kept in plan.demoted
    assert kept not in plan.recomputed
    small, again = executed(made, 1, EVEN, **FEW, shared_bytes=6000)
    assert kept not in {**small.demoted, **small.recomputed}
    (note,) = small.slow
    assert note.kind == "spills"
    for words in (f"fragment {kept} (test_rematerialization.py:", "of at most 24", "computed from", "T.alloc_shared"):
        assert words in note.text or (name == "carried" and words == "computed from"), note.text
    for arrays in (found, again):
        for a, b in zip(arrays, want, strict=True):
            assert np.array_equal(a, b)


def test_loops_interleave_few_elements():
    plan = planned(program(EVEN, 1, softmax), **FEW)
    loops = [x for x in collect(plan.body, tirx.For) if annotation(x, UNROLL_FACTOR) is not None]
    assert {int(annotation(x, UNROLL_FACTOR)) for x in loops} == {4}
    # Where even that is too much code, they are not unrolled: only a program's own factors are refused.
    rolled, _ = bounded(plan.body, 300)
    factors = [annotation(x, UNROLL_FACTOR) for x in collect(rolled, tirx.For)]
    assert 1 in [int(f) for f in factors if f is not None]


def test_registers_suffice_or_are_unknown():
    made = program(EVEN, 1, softmax)
    for facts in ({}, {"thread_registers": 255, "block_registers": 255 * THREADS}, {"thread_registers": 24}):
        plan = planned(made, **facts)
        assert plan.recomputed == {}
        assert plan.slow == ()
