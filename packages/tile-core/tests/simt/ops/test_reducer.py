"""Reducers on threads: which programs allow copies in every thread, and how the copies are combined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout.fragment import spread
from tile_core.simt.ops.reducer import FinalizeByShuffles, alone, assigned, is_update, may_be_partial, partial

from ..bench import CTX, RICH, Bench, buffer, check, numpy_type, view


@pytest.fixture(autouse=True, params=[CTX, RICH], ids=["shuffles", "instructions"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "ctx", request.param)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", [1, 31, 48, 96, 256])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "int64"])
def test_copies_are_combined(threads: int, dtype: str) -> None:
    rng = np.random.default_rng(threads)
    for kind, function in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        bench = Bench(threads)
        b = bench.tile(np.zeros((3, 5), numpy_type(dtype)), dtype, "r", "local.fragment", partial((3, 5), threads))
        copies = rng.integers(-9, 10, (threads, 15)).astype(numpy_type(dtype))
        bench.machine.private[bench.placement.arrays[b]] = copies.copy()
        bench.run(FinalizeByShuffles("core"), "finalize_reducer", (view(b),), {"kind": kind})
        check(bench.value(b), function(copies, axis=0).reshape(3, 5))


def test_one_copy_is_left_alone() -> None:
    bench = Bench(64)
    shared = bench.tile(np.arange(8, dtype=np.float32), "float32", "r", "shared")
    held = bench.tile(np.arange(64, dtype=np.float32), "float32", "f", "local.fragment", spread((64,), 64))
    for b in (shared, held):
        bench.run(FinalizeByShuffles("core"), "finalize_reducer", (view(b),), {"kind": "sum"})
        check(bench.value(b), np.arange(len(bench.value(b))))


def test_every_thread_has_a_copy_of_every_element() -> None:
    dist = partial((3, 5), 96)
    assert (dist.replicas, dist.registers) == (96, 15)
    np.testing.assert_array_equal(dist.register_table, np.arange(15))
    assert alone((7,), 32).replicas == 32


def test_an_assignment_counts_once() -> None:
    thread = nodes.fresh("tid")
    bench = Bench(8)
    bench.machine.values[thread] = np.arange(8, dtype=np.int32)
    value = assigned(nodes.const(7, "float32"), "max", "float32", partial((1,), 8).is_first(thread))
    np.testing.assert_array_equal(bench.machine.eval(value, np.ones(8, bool)), [7] + [-np.inf] * 7)


def test_updates() -> None:
    r, a = buffer((8,), "float32", "r", "local.fragment"), buffer((8,), "float32", "A", "global")
    i = nodes.fresh("i")
    from tile_core.ops.reduce import combiner

    old, x = nodes.load(r, [i]), nodes.load(a, [i])
    pick = {k: combiner(k, "float32", False) for k in ("max", "min")}
    table: list[tuple[Any, str, bool]] = [
        (old + x, "sum", True), (x + old, "sum", True), (old + x + x, "sum", True), (old - x, "sum", True),
        (x - old, "sum", False), (old * x, "sum", False), (old + old, "sum", False), (x, "sum", False),
        (nodes.load(r, [i + 1]) + x, "sum", False), (old + x, "max", False), (pick["max"](old, x), "max", True),
        (pick["max"](x, old), "max", True), (pick["min"](old, x), "max", False), (pick["min"](old, x), "min", True),
        (pick["max"](old, x) + x, "max", False),
    ]  # fmt: skip
    for value, kind, want in table:
        assert is_update(nodes.store(r, value, [i]), kind) == want, (str(value), kind)
    n, m = buffer((8,), "int32", "n", "local.fragment"), buffer((8,), "int32", "M", "global")
    assert is_update(nodes.store(n, tirx.Max(nodes.load(n, [i]), nodes.load(m, [i])), [i]), "max")


def life(program: Any, kind: str = "sum") -> bool:
    body = program.func.body
    buffers = [s.buffer for s in collect(body, tirx.AllocBuffer)]
    return may_be_partial(body, buffers[0], kind)


def test_programs_that_allow_copies() -> None:
    @T.prim_func
    def plain(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((17,), "float32", op="sum")
            for i, j in T.Parallel(17, 40):
                total[i] += A[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    @T.prim_func
    def loop(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32"), n: T.int32):
        with T.Kernel(2, threads=64):
            top = T.alloc_reducer((17,), "float32", op="max")
            for _ in T.serial(n):
                T.fill(top, -1.0)
                for i, j in T.Parallel(17, 40):
                    top[i] = T.max(top[i], A[i, j])
                T.finalize_reducer(top)
                for i in T.Parallel(17):
                    B[i] = B[i] + top[i]

    @T.prim_func
    def several(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((17,), "float32", op="sum")
            for k in T.serial(n):
                if k > 3:
                    for i, j in T.Parallel(17, 40):
                        total[i] += A[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    assert life(plain)
    assert life(several)
    assert life(loop, "max")

    @T.prim_func
    def left(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32"), n: T.int32):
        with T.Kernel(2, threads=64):
            top = T.alloc_reducer((17,), "float32", op="max")
            T.fill(top, -1.0)
            for _ in T.serial(n):
                T.fill(top, -1.0)
                for i, j in T.Parallel(17, 40):
                    top[i] = T.max(top[i], A[i, j])
                T.finalize_reducer(top)
            T.copy(top, B)

    assert life(left, "max") is False  # complete only if the loop runs at all


def test_programs_that_need_one_copy() -> None:
    @T.prim_func
    def read_early(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((17,), "float32", op="sum")
            for i, j in T.Parallel(17, 40):
                total[i] += A[i, j]
            T.copy(total, B)
            T.finalize_reducer(total)

    @T.prim_func
    def updated_again(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((17,), "float32", op="sum")
            for _ in T.serial(2):
                for i, j in T.Parallel(17, 40):
                    total[i] += A[i, j]
                T.finalize_reducer(total)
            T.copy(total, B)

    @T.prim_func
    def another_update(A: T.Tensor((17, 40), "float32"), B: T.Tensor((17,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((17,), "float32", op="sum")
            for i, j in T.Parallel(17, 40):
                total[i] = total[i] * 2.0 + A[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    @T.prim_func
    def large(A: T.Tensor((170, 40), "float32"), B: T.Tensor((170,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((170,), "float32", op="sum")
            for i, j in T.Parallel(170, 40):
                total[i] += A[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    for program in (read_early, updated_again, another_update, large):
        assert not life(program), program
