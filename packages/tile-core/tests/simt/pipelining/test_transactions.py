"""Pipelined loops of whole programs whose copies complete by transactions: one thread issues, all wait for phases."""

from __future__ import annotations

import numpy as np
import pytest
from machine import Machine

import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ASYNC, COMPLETION
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Accept, Reject
from tile_core.passes.spine import SPINE, Plan, Spine
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.pipelining.plan import GROUP, IMMEDIATE, TRANSACTIONS
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_core.simt.variant import SimtVariant

from ..whole import context, variants

pytestmark = pytest.mark.sweep(2)


class Bulk(SimtVariant):
    """A copy of a whole tile by one instruction of one thread."""

    name = "wide.copy.bulk"
    op = "copy"
    priority = 200

    def accepts(self, call, ctx):
        return Accept() if call.attrs.get(ASYNC) == TRANSACTIONS else Reject("it is not a bulk copy")

    def lower(self, call, ctx):
        assert call.block.count == 1
        src, dst, barrier = call.args
        at, to, there = ([nodes.int_const(0) + m for m in v.mins] for v in (src, dst, barrier))
        addresses = [
            calls.address(dst.buffer, to, "w", proxy=calls.ASYNC_PROXY, until=calls.UNTIL_PHASE),
            calls.address(src.buffer, at, "r", proxy=calls.ASYNC_PROXY),
            calls.address(barrier.buffer, there, "a", proxy=calls.ASYNC_PROXY),
        ]
        return calls.execute("bulk_" + "_".join(map(str, dst.extents)), addresses, call.span)


def bulk(extents):
    """Return the meaning of the instruction."""

    def run(state, args, on):
        (lane,) = np.flatnonzero(on)
        to, source, barrier = args
        first = [int(i[lane]) for i in source.at]
        slot = [int(i[lane]) for i in to.at]
        window = source.array[tuple(slice(m, m + e) for m, e in zip(first, extents[-len(first) :], strict=True))]
        target = to.array[tuple(slice(m, m + e) for m, e in zip(slot, extents, strict=True))]

        def copy():
            target[...] = 0
            target[(0, *(slice(n) for n in window.shape))] = window

        state.copies.begin(to.region, slot[0], copy, (barrier.region.name, int(barrier.at[0][lane])), target.nbytes)

    return run


def planned(program, kinds, last="warps"):
    asked = []

    def can_copy(call, ctx, aligned):
        asked.append(call)
        return Accept(facts={COMPLETION: kinds[len(asked) % len(kinds)]})

    spine = simt_spine(SPINE, SimtHooks(can_copy=can_copy))
    names = [p.name for p in spine.passes]
    plan = Plan.of(program, (Bulk(), *variants()))
    plan = Spine(spine.passes[: names.index(last) + 1]).run(
        KernelPlan.extending(plan, aligned=Aligned()), context(partial_barriers=15)
    )
    body, report = insert_barriers(plan.body, plan.block)
    return plan.replace(body=body), report


def names(body):
    return [str(c.op.name)[5:] for c in collect(body, ir.Call) if nodes.is_tile_call(c)]


def product(stages, outer=1):
    @T.prim_func
    def main(
        A: T.Tensor((16, 40), "float32"), B: T.Tensor((40, 8), "float32"), n: T.int32, C: T.Tensor((16, 8), "float32")
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 8), "float32")
            b = T.alloc_shared((8, 8), "float32")
            c = T.alloc_fragment((16, 8), "float32")
            T.clear(c)
            for _ in T.serial(outer):
                for k in T.Pipelined(n, num_stages=stages):
                    T.copy(A[0, k * 8], a)
                    T.copy(B[k * 8, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("kinds", [(TRANSACTIONS,), (TRANSACTIONS, GROUP), (IMMEDIATE, TRANSACTIONS)])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("outer", [1, 3])
def test_products(stages, kinds, late, outer):
    program = product(stages, outer)
    plan, _ = planned(program, kinds)
    rng = np.random.default_rng(stages)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((16, 40), (40, 8)))
    tensors = [p for p in plan.params if tirx.is_buffer_var(p)]
    (n,) = (p for p in plan.params if not tirx.is_buffer_var(p))
    for trips in range(6):
        c = np.full((16, 8), np.nan, "float32")
        machine = Machine(
            plan.block.extents, plan.block.thread, dict(zip(tensors, (a, b, c), strict=True)), {n: trips},
            races=True, late=late, lenient=True,
            instructions={f"bulk_{'_'.join(map(str, e))}": bulk(e) for e in ((1, 16, 8), (1, 8, 8))},
        )  # fmt: skip
        machine.run(plan.body)
        np.testing.assert_array_equal(c, outer * (a[:, : 8 * trips] @ b[: 8 * trips]))


def test_one_thread_issues_and_the_barriers_are_visible_before():
    plan, _ = planned(product(3), (TRANSACTIONS,))
    found = names(plan.body)
    assert found.count("barrier_init") == found.count("barrier_drop") == 3
    assert found.count("barrier_wait") == 1
    assert found.count("fence_init") == 1
    assert found.index("barrier_init") < found.index("fence_init") < found.index("sync_threads")
    assert "fence_proxy" not in found  # nothing else is written to the slots
    assert "async_commit" not in found


def test_slots_that_threads_have_written_are_fenced():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8,), "float32")
            f = T.alloc_fragment((8,), "float32")
            g = T.alloc_shared((24,), "float32")
            for i in T.Parallel(24):
                g[i] = B[i]
            for i in T.Parallel(24):
                B[i] = g[23 - i]
            T.clear(f)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[k * 8], a)
                for i in T.Parallel(8):
                    f[i] = f[i] + a[7 - i]
            T.copy(f, B[32:40])

    plan, _ = planned(main, (TRANSACTIONS,), "arena")
    found = names(plan.body)
    # The arena gives the bytes of g to a.
    assert found.count("fence_proxy") == 1
    assert (
        found.index("fence_proxy")
        < found.index("sync_threads", found.index("fence_proxy"))
        < found.index("instruction")
    )


@T.prim_func
def in_a_role(
    A: T.Tensor((16, 40), "float32"), B: T.Tensor((40, 8), "float32"), C: T.Tensor((16, 8), "float32"),
    D: T.Tensor((16, 40), "float32"),
):  # fmt: skip
    with T.Kernel(1, threads=96):
        a = T.alloc_shared((16, 8), "float32")
        b = T.alloc_shared((8, 8), "float32")
        c = T.alloc_fragment((16, 8), "float32")
        d = T.alloc_shared((16, 40), "float32")
        with T.ws(1, 2, size=32):
            T.clear(c)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[0, k * 8], a)
                T.copy(B[k * 8, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)
        with T.ws(0, size=32):
            T.copy(A, d)
            for i, j in T.Parallel(16, 40):
                D[i, j] = d[15 - i, j]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("kinds", [(TRANSACTIONS,), (TRANSACTIONS, GROUP)])
def test_a_role_pipelines_while_another_one_works(kinds, late):
    plan, _ = planned(in_a_role, kinds)
    found = names(plan.body)
    assert "sync_threads" not in found
    assert found.count("barrier_wait") == 1
    a, b = (np.random.default_rng(7).integers(-4, 5, shape).astype("float32") for shape in ((16, 40), (40, 8)))
    c, d = np.full((16, 8), np.nan, "float32"), np.full((16, 40), np.nan, "float32")
    tensors = [p for p in plan.params if tirx.is_buffer_var(p)]
    machine = Machine(
        plan.block.extents, plan.block.thread, dict(zip(tensors, (a, b, c, d), strict=True)), races=True, late=late,
        lenient=True, instructions={f"bulk_{'_'.join(map(str, e))}": bulk(e) for e in ((1, 16, 8), (1, 8, 8))},
    )  # fmt: skip
    machine.run(plan.body)
    np.testing.assert_array_equal(c, a @ b)
    np.testing.assert_array_equal(d, a[::-1])
