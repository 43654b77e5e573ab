"""Loops whose trips overlap: the order of a trip's statements, and what keeps a product in its trip."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.errors.base import InternalError
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import COMPLETION, IN_FLIGHT, PING_PONG, ROLE
from tile_core.ir.visit import collect, loads_of, replace_for
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.pipelining.async_products import PENDING
from tile_core.simt.pipelining.ping_pong import require_no_shared_barrier
from tile_core.simt.pipelining.plan import GROUP, IMMEDIATE, TRANSACTIONS
from tile_core.simt.pipelining.schedule import Issue, WaitUses
from tile_core.simt.pipelining.software_pipeline import plan_pipeline

M = 8


def chained(extra="", stages=2, trips=4, same=False, tails=1):
    """``S = Q K``, then ``P`` of it, then ``O += P V``: what is between is what tests change."""

    @T.prim_func
    def main(
        Q: T.Tensor((M, M), "float16"),
        K: T.Tensor((trips * M, M), "float16"),
        V: T.Tensor((trips * M, M), "float16"),
        R: T.Tensor((M, M), "float32"),
    ):
        with T.Kernel(1, threads=4):
            Q_s = T.alloc_shared((M, M), "float16")
            K_s = T.alloc_shared((M, M), "float16")
            V_s = T.alloc_shared((M, M), "float16")
            S = T.alloc_fragment((M, M), "float32")
            P = T.alloc_fragment((M, M), "float16")
            O_f = T.alloc_fragment((M, M), "float32")
            D_f = T.alloc_fragment((M, M), "float32")
            R_f = T.alloc_fragment((M, M), "float16")
            T.copy(Q, Q_s)
            T.clear(O_f)
            T.clear(D_f)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(K[k * M, 0], K_s)
                T.copy(V[k * M, 0], V_s)
                if extra == "accumulator":
                    for i, j in T.Parallel(M, M):
                        O_f[i, j] = O_f[i, j] * 2
                if extra == "reader":
                    T.copy(V_s, R_f)
                if extra == "operand":
                    T.clear(P)
                T.gemm(Q_s, K_s, S, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(M, M):
                    S[i, j] = S[i, j] * 2
                T.copy(S, P)
                at = T.alloc_var("int32", init=0) if extra == "named" else 0
                if extra == "condition":
                    if k > 1:
                        T.gemm(P, V_s, O_f)
                elif extra == "local":
                    W = T.alloc_fragment((M, M), "float16")
                    T.copy(S, W)
                    T.gemm(W, V_s, O_f)
                else:
                    T.gemm(P, (K_s if same else V_s)[at : at + M, :] if extra == "named" else K_s if same else V_s, O_f)
                if tails > 1:
                    T.gemm(P, V_s, D_f)
                if extra == "behind":
                    T.clear(P)
            T.copy(O_f, R)

    return main


def planned(program, completion=GROUP, **hooks):
    facts = Accept(facts={COMPLETION: completion})
    hooks = {"is_async": lambda call, threads: True, **hooks}
    return plan_pipeline(program.func.body, lambda call: facts, threads=4, **hooks)


PING_PONG_HOOKS = {"can_overlap": lambda found: Accept(facts={PING_PONG: 2} if found.alone else {})}


def found_in(s):
    """What happens in a statement: products by their accumulator, waits, barriers, and other uses of tiles."""
    found = []
    for x in collect(s, (tirx.Evaluate, tirx.For)):
        if isinstance(x, tirx.For):
            if str(x.annotations.get(ROLE)) == "parallel" and str(x.loop_var.name) == "i":
                found.append("work")
        elif nodes.is_tile_call(x.value, "gemm"):
            assert IN_FLIGHT in x.value.attrs
            found.append(str(x.value.args[2].source.name))
        elif nodes.is_tile_call(x.value, "wait_uses"):
            (ended,) = (str(a.source.name) for a in x.value.args)
            found.append(f"{int(x.value.attrs[PENDING])} left, {ended}")
        elif nodes.is_tile_call(x.value, "sync_threads"):
            found.append("sync")
        elif nodes.is_tile_call(x.value, "barrier_arrive") or nodes.is_tile_call(x.value, "barrier_wait"):
            found.append(f"{str(x.value.op.name)[13:]} {loads_of(x.value)[0].source.name}")
        elif nodes.is_tile_call(x.value, "copy") and x.value.args[1].source.scope() == "local.fragment":
            found.append(f"{x.value.args[1].source.name} =")
    return found


def loop_of(body):
    (loop,) = [s for s in collect(body, tirx.For) if str(s.loop_var.name) == "k"]
    return loop


WAITS = ("wait k_arrived", "wait k_arrived_1")
ORDER = ["sync", "S", "O_f", "1 left, S", "work", "0 left, O_f", "P ="]


@pytest.mark.parametrize("completion", [GROUP, TRANSACTIONS, IMMEDIATE])
def test_the_tail_of_a_trip_runs_beside_the_head_of_the_next(completion):
    body, report = planned(chained(), completion)
    loop = loop_of(body)
    assert [x for x in found_in(loop.body) if x not in WAITS] == ORDER
    assert (nodes.as_int(loop.min), nodes.as_int(loop.extent)) == (1, 3)
    every = [x for x in found_in(body) if x not in WAITS]
    assert every[1:6] == ["sync", "S", "0 left, S", "work", "P ="]
    assert every[-3:] == ["O_f", "0 left, O_f", "sync"]
    assert not report.loops[0].notes
    assert report.loops[0].stages == 2


def test_ping_pong_of_thread_groups():
    body, report = planned(chained(), TRANSACTIONS, **PING_PONG_HOOKS)
    loop = loop_of(body)
    order_barriers = ["wait k_turn", "wait k_turn_1"], ["arrive k_turn_1", "arrive k_turn"], ["arrive k_turn_1"]
    assert found_in(loop.body) == [
        *WAITS,
        *order_barriers[0],
        "S",
        "O_f",
        *order_barriers[1],
        *ORDER[3:],
        *order_barriers[2],
    ]
    programs = report.loops[0].schedule.programs
    assert [(p.role.first, p.role.count) for p in programs] == [(0, 2), (2, 2)]
    assert [any(isinstance(s, Issue) for s in p.iteration) for p in programs] == [False, True]


@pytest.mark.parametrize(("completion", "extra"), [(GROUP, ""), (IMMEDIATE, ""), (TRANSACTIONS, "reader")])
def test_no_ping_pong_with_other_readers_of_slots_or_other_completions(completion, extra):
    body, report = planned(chained(extra, stages=3), completion, **PING_PONG_HOOKS)
    assert "sync" in found_in(loop_of(body).body)
    assert len(report.loops[0].schedule.programs) == 1


def test_several_tails_in_their_order():
    body, _ = planned(chained(tails=2))
    assert found_in(loop_of(body).body) == [
        "sync",
        "S",
        "O_f",
        "D_f",
        "2 left, S",
        "work",
        "0 left, O_f",
        "0 left, D_f",
        "P =",
    ]


def test_a_tile_that_head_and_tail_read_needs_three_slots():
    _, report = planned(chained(same=True))
    assert tuple((n.subject, n.text) for n in report.loops[0].notes) == (
        ("S", "no overlap of its products between iterations: K_s would need a third slot"),
    )
    body, report = planned(chained(same=True, stages=3))
    assert found_in(loop_of(body).body) == ORDER
    assert report.loops[0].stages == 3


KEPT = {
    "accumulator": "line {} uses what it computes or writes what it reads",
    "operand": "line {} uses what it computes or writes what it reads",
    "behind": "line {} uses what it computes or writes what it reads",
    "condition": "a product is nested in a condition or an inner loop",
    "local": "W is allocated in the loop",
    "named": "it uses values of its own iteration",
}


@pytest.mark.parametrize("extra", KEPT)
def test_what_keeps_trips_apart(extra):
    _, report = planned(chained(extra))
    ((name, note),) = ((n.subject, n.text) for n in report.loops[0].notes)
    before, _, after = KEPT[extra].partition("{}")
    assert name == "S"
    assert note.startswith(f"no overlap of its products between iterations: {before}")
    assert note.endswith(after)


def test_products_that_stay_in_their_trip_run_beside_each_other():
    body, report = planned(chained("behind", tails=2))
    order = ["sync", "S", "0 left, S", "work", "P =", "O_f", "D_f", "0 left, O_f", "0 left, D_f"]
    assert found_in(loop_of(body).body) == order
    (program,) = report.loops[0].schedule.programs
    assert not any(isinstance(s, WaitUses) for s in program.iteration)
    assert nodes.as_int(loop_of(body).extent) == 4


def test_targets_decide():
    asked = []

    def can_overlap(found):
        asked.append(([c.args[2].name for c in found.calls], found.threads, found.alone, found.shared_bytes))
        return Reject("too few registers")

    _, report = planned(chained(), can_overlap=can_overlap)
    assert asked == [(["S", "O_f"], 4, False, 128 * 5)]  # nothing runs beside within a trip
    assert report.loops[0].notes[0].text.endswith("too few registers")


def test_unknown_trip_counts_are_tested_once():
    body, _ = planned(chained(trips=T.dynamic("n")))
    assert found_in(loop_of(body).body) == ORDER
    around = [s for s in collect(body, tirx.IfThenElse) if collect(s, tirx.For)]
    assert len(around) == 1


def test_a_block_barrier_between_wait_and_signal_is_refused():
    body, report = planned(chained(), TRANSACTIONS, **PING_PONG_HOOKS)
    schedules = [report.loops[0].schedule]
    require_no_shared_barrier(body, schedules)
    loop = loop_of(body)
    at = next(i for i, s in enumerate(loop.body.seq) if found_in(s) == ["S"])
    new = nodes.seq([*loop.body.seq[:at], calls.sync_threads(), *loop.body.seq[at:]])
    with pytest.raises(InternalError, match="between the wait and the signal"):
        require_no_shared_barrier(replace_for(loop, new), schedules)
