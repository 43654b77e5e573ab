"""What is written out stays within a budget: large tiles on few threads, long and nested loops, many statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.errors.lowering import TooMuchCode, UnrolledTooFar
from tile_core.ir import nodes
from tile_core.ir.attributes import UNROLL_FACTOR
from tile_core.ir.visit import collect
from tile_core.simt.code_size import bounded, operations
from tile_core.simt.register_loops import LONGEST_VECTOR, MOST_REGISTERS

from .whole import context, planned, run

MOST = context().capabilities.code_operations


def gemm(threads: int, dtype: str, accum: str, k: int = 32) -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, k), dtype), B: T.Tensor((k, 128), dtype), C: T.Tensor((128, 128), accum)):
        with T.Kernel(1, threads=threads):
            a, b = T.alloc_shared((128, k), dtype), T.alloc_shared((k, 128), dtype)
            c = T.alloc_fragment((128, 128), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    return main


def sparse(threads: int, dtype: str, accum: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128, 32), dtype), E: T.Tensor((128, 4), "int16"), B: T.Tensor((64, 128), dtype),
        C: T.Tensor((128, 128), accum),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a, e = T.alloc_shared((128, 32), dtype), T.alloc_shared((128, 4), "int16")
            b, c = T.alloc_shared((64, 128), dtype), T.alloc_fragment((128, 128), accum)
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.clear(c)
            T.gemm_sp(a, e, b, c)
            T.copy(c, C)

    return main


def softmax(threads: int, dtype: str, accum: str) -> Any:
    del accum

    @T.prim_func
    def main(A: T.Tensor((128, 128), dtype), B: T.Tensor((128, 128), dtype)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((128, 128), dtype)
            top, total = T.alloc_fragment((128,), dtype), T.alloc_fragment((128,), dtype)
            T.copy(A, a)
            T.reduce_max(a, top, dim=1)
            for i, j in T.Parallel(128, 128):
                a[i, j] = T.exp(a[i, j] - top[i])
            T.reduce_sum(a, total, dim=1)
            for i, j in T.Parallel(128, 128):
                a[i, j] = a[i, j] / total[i]
            T.copy(a, B)

    return main


def scans(threads: int, dtype: str, accum: str) -> Any:
    del accum

    @T.prim_func
    def main(A: T.Tensor((128, 128), dtype), B: T.Tensor((128, 128), dtype), C: T.Tensor((128, 128), dtype)):
        with T.Kernel(1, threads=threads):
            a, b, c = (T.alloc_fragment((128, 128), dtype) for _ in range(3))
            T.copy(A, a)
            T.cumsum(a, b, dim=1)
            T.cumsum(a, c, dim=0, reverse=True)
            T.copy(b, B)
            T.copy(c, C)

    return main


def deep(threads: int, dtype: str, accum: str) -> Any:
    del accum

    @T.prim_func
    def main(A: T.Tensor((4, 4, 4, 4, 4, 4), dtype), B: T.Tensor((4, 4, 4, 4, 4, 4), dtype)):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment((4, 4, 4, 4, 4, 4), dtype)
            T.copy(A, f)
            for a, b, c, d, e, g in T.Parallel(4, 4, 4, 4, 4, 4):
                f[a, b, c, d, e, g] = T.sin(f[a, b, c, d, e, g]) + T.erf(f[a, b, c, d, e, g])
            T.copy(f, B)

    return main


def narrow(threads: int, dtype: str, accum: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, 128), "float32"), B: T.Tensor((128, 128), dtype), C: T.Tensor((128, 128), accum)):
        with T.Kernel(1, threads=threads):
            f, g = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((128, 128), dtype)
            T.copy(A, f)
            T.copy(f, g)
            T.copy(g, B)
            T.copy(g, C)

    return main


PROGRAMS = [
    (gemm, "float16", "float32"), (gemm, "int8", "int32"), (gemm, "float64", "float64"),
    (sparse, "float16", "float32"), (softmax, "float32", "float32"), (softmax, "bfloat16", "bfloat16"),
    (scans, "float32", "float32"), (deep, "float32", "float32"), (narrow, "float8_e4m3fnuz", "float16"),
]  # fmt: skip


def written_out(body: Any) -> int:
    """Operations with every loop that is to be written out multiplied by its turns: counted apart from the pass."""
    if isinstance(body, tirx.SeqStmt):
        return sum(written_out(s) for s in body.seq)
    if isinstance(body, tirx.For):
        trips = int(body.extent.value) if body.kind != tirx.ForKind.SERIAL else 1
        return trips * written_out(body.body)
    if isinstance(body, tirx.IfThenElse):
        return written_out(body.then_case) + (0 if body.else_case is None else written_out(body.else_case))
    if isinstance(body, (tirx.AttrStmt, tirx.While)):
        return written_out(body.body)
    return operations(body)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", [1, 31, 32])
@pytest.mark.parametrize(("make", "dtype", "accum"), PROGRAMS)
def test_large_tiles_on_few_threads(make: Any, dtype: str, accum: str, threads: int) -> None:
    plan = planned(make(threads, dtype, accum), last="budget")
    assert written_out(plan.body) <= MOST
    assert plan.code_size.operations <= MOST


@pytest.mark.parametrize("threads", [1, 31, 32])
def test_arrays_that_are_no_registers_have_no_numbers(threads: int) -> None:
    plan = planned(gemm(threads, "float32", "float32"), last="budget")
    large = {
        a.buffer
        for a in collect(plan.body, tirx.AllocBuffer)
        if nodes.scope_of(a.buffer) == "local" and int(a.buffer.shape[0].value) > MOST_REGISTERS
    }
    assert large
    for loop in collect(plan.body, tirx.For):
        used = {s.buffer for s in collect(loop.body, tirx.BufferStore) if loop.loop_var in collect(s.indices, tirx.Var)}
        if loop.kind != tirx.ForKind.SERIAL and used & large:
            assert int(loop.extent.value) <= LONGEST_VECTOR
            assert not collect(loop.body, tirx.For)
    assert any("registers a thread" in why for why in plan.code_size.kept.values())


@pytest.mark.parametrize("threads", [31])
def test_products_in_memory_are_right(threads: int) -> None:
    rng = np.random.default_rng(threads)
    a, b = rng.integers(-9, 9, (128, 4), dtype=np.int8), rng.integers(-9, 9, (4, 128), dtype=np.int8)
    c = np.zeros((128, 128), np.int32)
    run(gemm(threads, "int8", "int32", 4), a, b, c, then=lambda body: bounded(body, MOST)[0])
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b)


def unrolled(count: int, factor: int | None = None) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(count, unroll_factor=factor):
                B[i] = A[i] * 2.0

    return main


def test_long_loops_stay_loops() -> None:
    short, long = (planned(unrolled(n), last="budget") for n in (64, 1 << 20))
    assert not short.code_size.kept
    (why,) = long.code_size.kept.values()
    assert why.startswith("1,048,576 iterations of 12 operations are more than")
    assert long.code_size.operations < 100


def test_nested_loops_are_written_out_from_the_inside() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16, 16, 16), "float32")):
        with T.Kernel(1, threads=32):
            for a in T.unroll(16):
                for b in T.unroll(16):
                    for c in T.unroll(16):
                        for d in T.unroll(16):
                            A[a, b, c, d] = 1.0

    plan = planned(main, last="budget")
    kinds = [loop.kind == tirx.ForKind.SERIAL for loop in collect(plan.body, tirx.For) if loop.kind is not None]
    loops = [f for f in collect(plan.body, tirx.For) if str(f.loop_var.name) in "abcd"]
    by_name = {str(f.loop_var.name): f.kind == tirx.ForKind.SERIAL for f in loops}
    assert kinds
    assert by_name == {"a": True, "b": True, "c": False, "d": False}


def test_many_loops_share_the_budget() -> None:
    i = nodes.fresh("i")
    out = tirx.decl_buffer([1 << 10], "float32", "B", layout=None)
    one = nodes.for_loop(i, 100, nodes.store(out, nodes.const(1, "float32"), [i]), "unroll")
    body, written = bounded(nodes.seq([one] * 60), 20_000)
    assert written_out(body) <= written.operations <= 20_000


def test_a_factor_that_is_asked_for_is_kept_or_refused() -> None:
    kept = planned(unrolled(1 << 20, 8), last="budget")
    assert not kept.code_size.kept
    with raises_error(UnrolledTooFar, factor=100000, each=12, total=1200000) as error:
        planned(unrolled(1 << 20, 100_000), last="budget")
    assert "T.unroll(count" in str(error.value)


def test_short_loops_in_loops_that_are_written_out_are_left_alone() -> None:
    """Compilers would write out the inner loop too, 3,968 times in all."""
    r, g = nodes.fresh("r"), nodes.fresh("g")
    out = tirx.decl_buffer([128], "float32", "B", layout=None)
    total = tirx.decl_buffer([31, 128], "float32", "S", layout=None)
    step = nodes.store(out, nodes.load(out, [r]) + nodes.load(total, [g, r]), [r])
    body, _ = bounded(nodes.for_loop(r, 128, nodes.for_loop(g, 31, step), "unroll"), MOST)
    assert dict(body.body.annotations)[UNROLL_FACTOR] == 1
    assert body.kind == tirx.ForKind.UNROLLED
    short, _ = bounded(nodes.for_loop(r, 8, nodes.for_loop(g, 31, step), "unroll"), MOST)
    assert UNROLL_FACTOR not in dict(short.body.annotations)


@pytest.mark.sweep(0.25)
def test_too_many_statements_are_refused_with_the_numbers() -> None:
    out = tirx.decl_buffer([1 << 14], "float32", "B", layout=None)
    stores = [nodes.store(out, nodes.const(1, "float32"), [nodes.int_const(n)]) for n in range(10_000)]
    bounded(nodes.seq(stores[:6_000]), MOST)
    with raises_error(TooMuchCode, found=60000, most=40000):
        bounded(nodes.seq(stores), MOST)
