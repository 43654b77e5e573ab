"""``Kernel.verify`` finds wrong kernels of the CPU: its reference shares nothing with the CPU's lowering."""

import dataclasses

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu import micro_gemm, pipeline
from tile_core.errors.launch import VerifyMismatch
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr
from tile_core.passes import scalars
from tile_core.reference import execute


def reversed_quotients(dtype="float32"):
    @T.prim_func
    def reversed_quotients(A: T.Tensor((64,), dtype), B: T.Tensor((128,), dtype)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = A[(127 - i) // 2]

    return reversed_quotients


def test_an_index_that_a_pass_rewrote_wrongly(monkeypatch):
    """``(127 - i) // 2`` becomes ``i // -2 + 63``, as a pass of TVM once had it."""

    def rewrite(e):
        if not (isinstance(e.a, tirx.Sub) and isinstance(e.a.a, tirx.IntImm)):
            return e
        start, divisor = int(e.a.a.value), int(nodes.as_int(e.b))
        return tirx.FloorDiv(e.a.b, nodes.int_const(-divisor)) + start // divisor

    right = scalars.total_divisions
    monkeypatch.setattr(
        scalars, "total_divisions", lambda body, *rest: right(map_expr(body, rewrite, tirx.FloorDiv), *rest)
    )
    with pytest.raises(VerifyMismatch):
        tile.compile(reversed_quotients(), "cpu", out_idx=1).verify()


def test_a_wrong_guard(monkeypatch):
    @T.prim_func
    def edge(A: T.Tensor((100,), "int32"), B: T.Tensor((100,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(100):
                B[i] = A[i - 3]

    def shifted(plan, ctx):
        def move(e):
            return tirx.Sub(e.a, nodes.int_const(2)) if int(getattr(e.b, "value", 0)) == 3 else e

        return right(plan.replace(body=map_expr(plan.body, move, tirx.Sub)), ctx)

    right = pipeline._guard
    kernel = tile.compile(edge, "cpu", out_idx=1)
    kernel.verify()
    monkeypatch.setattr(pipeline, "_guard", shifted)
    with pytest.raises(VerifyMismatch):
        tile.compile(edge, "cpu", out_idx=1).verify()


def test_a_micro_kernel_that_leaves_out_a_step(monkeypatch):
    @T.prim_func
    def product(A: T.Tensor((33, 17), "float32"), B: T.Tensor((17, 40), "float32"), C: T.Tensor((33, 40), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((33, 17), "float32"), T.alloc_shared((17, 40), "float32")
            c = T.alloc_fragment((33, 40), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    right = micro_gemm._block
    tile.compile(product, "cpu", out_idx=2).verify()
    monkeypatch.setattr(micro_gemm, "_block", lambda call: right(dataclasses.replace(call, k=call.k - 1)))
    with pytest.raises(VerifyMismatch):
        tile.compile(product, "cpu", out_idx=2).verify()


def long_product():
    @T.prim_func
    def long_product(
        A: T.Tensor((64, 3000), "float32"), B: T.Tensor((3000, 64), "float32"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float32"), T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(3000, 64)):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return long_product


def long_reductions():
    @T.prim_func
    def long_reductions(
        A: T.Tensor((4, 20000), "float32"), R: T.Tensor((4,), "float32"), S: T.Tensor((4, 20000), "float32")
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((4, 20000), "float32")
            T.copy(A, a)
            T.reduce_sum(a, R, dim=1)
            T.cumsum(a, S, dim=1)

    return long_reductions


@pytest.mark.parametrize(("program", "outputs"), [(long_product, [2]), (long_reductions, [1, 2])])
def test_another_order_of_additions_is_no_mismatch(program, outputs):
    kernel = tile.compile(program(), "cpu", out_idx=outputs)
    for seed in range(3):
        kernel.verify(seed=seed)


def test_tolerances_that_are_given_are_obeyed():
    with pytest.raises(VerifyMismatch):
        tile.compile(long_product(), "cpu", out_idx=2).verify(rtol=0.0, atol=0.0)


def test_a_term_of_a_long_sum_is_missed(monkeypatch):
    right = micro_gemm._block
    monkeypatch.setattr(micro_gemm, "_block", lambda call: right(dataclasses.replace(call, k=call.k - 1)))
    with pytest.raises(VerifyMismatch):
        tile.compile(long_product(), "cpu", out_idx=2).verify()


def test_thread_arrays_that_tile_ops_fill():
    """Each thread has its own ``alloc_local`` array, also where a tile op writes it."""

    @T.prim_func
    def own(A: T.Tensor((32, 4), "float32"), B: T.Tensor((32, 4), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding(0)
            mine = T.alloc_local((4,), "float32")
            twice = T.alloc_local((4,), "float32")
            T.copy(A[t, 0:4], mine)
            for k in T.serial(4):
                twice[k] = mine[k] * 2
            for k in T.serial(4):
                B[t, k] = twice[k]

    a, b = np.arange(128, dtype="float32").reshape(32, 4), np.zeros((32, 4), "float32")
    execute(own, [a, b])
    np.testing.assert_array_equal(b, a * 2)
    tile.compile(own, "cpu", out_idx=1).verify(a)


def test_the_cpu_is_right_about_reversed_indices():
    tile.compile(reversed_quotients(), "cpu", out_idx=1).verify()
    tile.compile(reversed_quotients("int8"), "cpu", out_idx=1).verify()
