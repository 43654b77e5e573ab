"""Products that last beyond their iteration: the order of a trip's statements, and what keeps one in its trip."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import AFTER_READS, COMPLETION, IN_FLIGHT
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Accept
from tile_core.simt.pipelining.async_products import PENDING
from tile_core.simt.pipelining.plan import GROUP, TRANSACTIONS
from tile_core.simt.pipelining.software_pipeline import plan_pipeline

M = 8


def product(extra="", scope="fragment", clear=False, second=False, inside=False, held=False):
    @T.prim_func
    def main(A: T.Tensor((M, 4 * M), "float16"), B: T.Tensor((4 * M, M), "float16"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1, threads=4):
            A_s = T.alloc_shared((M, M), "float16")
            B_s = T.alloc_shared((M, M), "float16")
            R = T.alloc_shared((M, M), "float16")
            A_f = T.alloc_fragment((M, M), "float16")
            C_f = T.alloc_fragment((M, M), "float32") if scope == "fragment" else T.alloc_shared((M, M), "float32")
            D_f = T.alloc_fragment((M, M), "float32")
            T.clear(C_f)
            T.clear(D_f)
            T.clear(R)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[0, k * M], A_s)
                T.copy(B[k * M, 0], B_s)
                if extra == "accumulator":
                    for i, j in T.Parallel(M, M):
                        C_f[i, j] = C_f[i, j] * 2
                if extra == "written":
                    for i, j in T.Parallel(M, M):
                        R[i, j] = k
                if held:
                    T.copy(A_s, A_f)
                if inside:
                    if k > 1:
                        T.gemm(A_s, B_s, C_f)
                else:
                    T.gemm(A_f if held else R if extra == "written" else A_s, B_s, C_f, clear_accum=clear)
                if second:
                    T.gemm(A_s, B_s, D_f)
            T.copy(C_f, C)

    return main


def planned(program, completion=GROUP, is_async=lambda call, threads: True):
    facts = Accept(facts={COMPLETION: completion})
    return plan_pipeline(program.func.body, lambda call: facts, threads=4, is_async=is_async)


def iteration(body):
    """The calls of the loop's body, without those of copies' conditions."""
    (loop,) = [s for s in collect(body, tirx.For) if str(s.loop_var.name) == "k"]
    return [s.value for s in collect(loop.body, tirx.Evaluate) if nodes.is_tile_call(s.value)]


def named(found):
    return [str(c.op.name)[5:] for c in found]


def test_a_trip_begins_its_product_before_it_waits_for_the_one_before():
    body, report = planned(product())
    found = iteration(body)
    copies = ["copy", "copy", "async_commit"]
    assert named(found) == ["async_wait", "sync_threads", "gemm", "wait_uses", "sync_threads", *copies]
    assert IN_FLIGHT in found[2].attrs
    assert int(found[3].attrs[PENDING]) == 1
    assert not found[3].args
    assert AFTER_READS in found[4].attrs
    assert not found[1].attrs
    every = [s.value for s in collect(body, tirx.Evaluate) if nodes.is_tile_call(s.value, "wait_uses")]
    assert [int(c.attrs[PENDING]) for c in every] == [0, 1, 0]
    assert [len(c.args) for c in every] == [1, 0, 1]
    assert not report.loops[0].notes


def test_phases_need_one_barrier_of_the_block():
    body, _ = planned(product(), TRANSACTIONS)
    order = [
        n
        for n in named(iteration(body))
        if n in ("barrier_wait", "gemm", "wait_uses", "sync_threads", "barrier_expect")
    ]
    assert order == ["barrier_wait", "gemm", "wait_uses", "sync_threads", "barrier_expect"]


KEPT = {
    "C_f is used elsewhere in the loop": {"extra": "accumulator"},
    "C_f is in shared memory": {"scope": "shared"},
    "it may clear C_f": {"clear": True},
    "it is nested in a condition or an inner loop": {"inside": True},
    "the loop writes R, which is not prefetched": {"extra": "written"},
}


@pytest.mark.parametrize("reason", KEPT)
def test_what_keeps_a_product_in_its_trip(reason):
    body, report = planned(product(**KEPT[reason]))
    assert report.loops[0].stages == 3
    assert ("C_f", f"its product is waited for in each iteration: {reason}") in [
        (n.subject, n.text) for n in report.loops[0].notes
    ]
    assert "wait_uses" not in named(iteration(body))
    assert not [c for c in iteration(body) if c.attrs and IN_FLIGHT in c.attrs]


def test_targets_decide():
    asked = []
    body, report = planned(product(), is_async=lambda call, threads: asked.append((call.name, threads)))
    assert asked == [("gemm", 4)]
    assert "wait_uses" not in named(iteration(body))
    assert not report.loops[0].notes


def test_a_product_reads_copies_of_a_fragment():
    body, report = planned(product(held=True))
    assert not report.loops[0].notes
    assert any(IN_FLIGHT in c.attrs for c in iteration(body) if str(c.op.name) == "tile.gemm")
