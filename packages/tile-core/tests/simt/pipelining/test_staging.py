"""Copies through registers: what is loaded when, where tiles lie, and the numbers of whole programs."""

from __future__ import annotations

import numpy as np
import pytest
from machine import Machine

import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import COMPLETION
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Accept
from tile_core.passes.spine import SPINE, Plan, Spine
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.pipelining.plan import REGISTERS
from tile_core.simt.pipelining.software_pipeline import plan_pipeline
from tile_core.simt.pipelining.staging import MOST_BYTES
from tile_core.simt.spine import SimtHooks, simt_spine

from ..whole import context, variants

THROUGH_REGISTERS = Accept(facts={COMPLETION: REGISTERS})


def planned(program):
    spine = simt_spine(SPINE, SimtHooks(lambda call, ctx, aligned: THROUGH_REGISTERS))
    names = [p.name for p in spine.passes]
    plan = Plan.of(program, variants())
    plan = Spine(spine.passes[: names.index("arena") + 1]).run(KernelPlan.extending(plan, aligned=Aligned()), context())
    return plan.replace(body=insert_barriers(plan.body, plan.block)[0])


def run(plan, arrays, **scalars):
    tensors = [p for p in plan.params if tirx.is_buffer_var(p)]
    values = {p: scalars[str(p.name)] for p in plan.params if not tirx.is_buffer_var(p)}
    held = dict(zip(tensors, arrays, strict=True))
    Machine(plan.block.extents, plan.block.thread, held, values, races=True, lenient=True).run(plan.body)


def attention_like(keys, outer=1, first="together"):
    """Two tiles that are used one after the other; copied together, or each before its use."""

    @T.prim_func
    def main(
        K: T.Tensor((keys, 16), "float32"), V: T.Tensor((keys, 16), "float32"), n: T.int32,
        O: T.Tensor((16, 16), "float32"),  # noqa: E741
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            k = T.alloc_shared((16, 16), "float32")
            v = T.alloc_shared((16, 16), "float32")
            scores = T.alloc_fragment((16, 16), "float32")
            out = T.alloc_fragment((16, 16), "float32")
            T.clear(out)
            for _ in T.serial(outer):
                for i in T.Pipelined(n, num_stages=2):
                    T.copy(K[i * 16, 0], k)
                    if first == "together":
                        T.copy(V[i * 16, 0], v)
                    for a, b in T.Parallel(16, 16):
                        scores[a, b] = k[b, a] + k[a, b]
                    if first != "together":
                        T.copy(V[i * 16, 0], v)
                    for a, b in T.Parallel(16, 16):
                        out[a, b] = out[a, b] + scores[a, b] * v[b, a]
            T.copy(out, O)

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("first", ["together", "each"])
@pytest.mark.parametrize("outer", [1, 2])
def test_tiles_with_disjoint_lifetimes_share_memory(outer, first):
    plan = planned(attention_like(75, outer, first))
    assert str(plan.pipeline) == "loop i: k, v through registers"
    assert plan.arena.bytes == 16 * 16 * 4
    rng = np.random.default_rng(outer)
    for trips in range(6):
        # The last tile has rows outside of the arrays.
        k, v = (rng.integers(-4, 5, (75, 16)).astype("float32") for _ in range(2))
        out = np.full((16, 16), np.nan, "float32")
        run(plan, (k, v, out), n=trips)
        want = np.zeros((16, 16), "float32")
        for x, y in zip(
            np.pad(k, ((0, 5), (0, 0))).reshape(5, 16, 16), np.pad(v, ((0, 5), (0, 0))).reshape(5, 16, 16), strict=True
        ):
            want += (x + x.T) * y.T if trips > 0 else 0
            trips -= 1
        np.testing.assert_array_equal(out, outer * want)


def steps(body, name):
    """Return what a trip does: copies by source and destination, loads of the next trip in brackets."""
    (loop,) = [x for x in collect(body, tirx.For) if str(x.loop_var.name) == name]
    found = []
    for s in loop.body.seq:
        copies = [c for c in collect(s, ir.Call) if nodes.is_tile_call(c, "copy")]
        shown = [f"{c.args[0].source.name} to {c.args[1].source.name}" for c in copies]
        if shown:
            found += [f"({x})" for x in shown] if isinstance(s, tirx.IfThenElse) else shown
        elif not isinstance(s, (tirx.AllocBuffer, tirx.Bind)):
            found.append("use")
    return found


def pipelined(program, threads=32):
    return plan_pipeline(program.func.body, lambda call: THROUGH_REGISTERS, threads=threads)


def test_tiles_used_one_after_another_form_groups():
    for first in ("together", "each"):
        body, _ = pipelined(attention_like(75, 1, first))
        assert steps(body, "i") == [
            "k_ahead to k", "V to v_ahead", "use", "v_ahead to v", "(K to k_ahead)", "use",
        ]  # fmt: skip


def product(block_K=16, dtype="float16", threads=32, twice=False):
    total = "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(A: T.Tensor((32, 67), dtype), B: T.Tensor((67, 32), dtype), C: T.Tensor((32, 32), total)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((32, block_K), dtype)
            b = T.alloc_shared((block_K, 32), dtype)
            c = T.alloc_fragment((32, 32), total)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(67, block_K), num_stages=3):
                T.copy(A[0, k * block_K], a)
                T.copy(B[k * block_K, 0], b)
                T.gemm(a, b, c)
            if twice:
                for k in T.Pipelined(T.ceildiv(67, block_K), num_stages=3):
                    T.copy(A[0, k * block_K], a)
                    T.gemm(a, b, c)
            T.copy(c, C)

    return main


def test_tiles_used_at_once_form_one_group():
    body, report = pipelined(product())
    assert steps(body, "k") == [
        "a_ahead to a", "b_ahead to b", "(A to a_ahead)", "(B to b_ahead)", "use",
    ]  # fmt: skip
    assert [(x.stages, x.through, x.reason) for x in report.loops] == [(0, ("a", "b"), "")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_products(dtype):
    plan = planned(product(8, dtype))
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((32, 67), (67, 32)))
    c = np.full((32, 32), -77, "int32" if dtype == "int8" else "float32")
    run(plan, (a, b, c))
    np.testing.assert_array_equal(c, a.astype("float64") @ b.astype("float64"))


def test_tiles_that_exceed_registers_are_not_staged():
    small, large = (product(k, threads=32) for k in (MOST_BYTES // 4, MOST_BYTES // 2))
    assert str(pipelined(small)[1]).endswith("a, b through registers")
    body, report = pipelined(large)
    assert "its tiles take too many registers" in str(report)
    assert "a_ahead" not in str(body)


@pytest.mark.parametrize(("threads", "dtype", "reason"), [
    (96, "float16", "its elements do not divide among 96 threads"),
    (32, "int4", "no registers hold int4 tiles of its shape"),
])  # fmt: skip
def test_tiles_with_unequal_shares_of_threads_are_not_staged(threads, dtype, reason):
    program = attention_like(75) if dtype == "float16" else None
    if program is None:

        @T.prim_func
        def program(A: T.Tensor((64, 16), dtype), C: T.Tensor((16, 16), "int32")):
            with T.Kernel(1, threads=32):
                a = T.alloc_shared((16, 16), dtype)
                c = T.alloc_fragment((16, 16), "int32")
                T.clear(c)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[k * 16, 0], a)
                    for i, j in T.Parallel(16, 16):
                        c[i, j] = c[i, j] + T.cast(a[j, i], "int32")
                T.copy(c, C)

    _, report = pipelined(program, threads)
    assert reason in str(report)
    assert not any(x.through for x in report.loops)


def test_a_buffer_of_two_loops_is_allocated_around_both():
    body, report = pipelined(product(twice=True))
    assert [x.through for x in report.loops] == [("a",), ("a",)]
    assert "b is used outside of the loop too" in str(report)
    loops = [x for x in collect(body, tirx.For) if str(x.loop_var.name).startswith("k")]
    assert len(loops) == 2
    assert not any(str(x.buffer.name) == "a" for loop in loops for x in collect(loop, tirx.AllocBuffer))
