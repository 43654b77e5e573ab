"""Accesses that last beyond their statement, and those of another proxy: fences where needed, refusals otherwise."""

from __future__ import annotations

import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.errors.ops import NotWaitedFor
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import AXIS, ROLE
from tile_core.ir.visit import collect, replace_for

from ..cases import Case, N, loop, shared, when

ASYNC = calls.ASYNC_PROXY


def order(body):
    """Return the names of the calls and the buffers of the stores, in program order."""
    found = []
    for s in collect(body, (tirx.Evaluate, tirx.BufferStore)):
        found.append(f"store {s.buffer.name}" if isinstance(s, tirx.BufferStore) else str(s.value.op.name)[5:])
    return found


def bulk(*operands):
    return calls.execute("bulk", list(operands))


class Async(Case):
    def __init__(self):
        super().__init__()
        self.S, self.alloc = shared("S")
        self.R, self.more = shared("R")
        self.bar, self.objects = calls.alloc_barriers("full", 2)

    def placed(self, *body):
        new, report = self.insert(self.alloc, self.more, self.objects, *body)
        return order(new), report

    def put(self):
        return nodes.store(self.S, nodes.load(self.A, [self.tid]), [self.tid])

    def get(self):
        return nodes.store(self.B, nodes.load(self.S, [N - 1 - self.tid]), [self.tid])

    def at(self, access, buffer=None, **how):
        return calls.address(self.S if buffer is None else buffer, [0], access, **how)

    def first(self, *body):
        return when(tirx.EQ(self.tid, 0), nodes.seq(list(body)))


def test_a_write_of_threads_is_fenced_before_the_barrier():
    c = Async()
    found, report = c.placed(c.put(), c.first(bulk(c.at("r", proxy=ASYNC))))
    assert found == ["store S", "fence_proxy", "sync_threads", "instruction"]
    assert [b.hazard for b in report] == ["write, read"]


def test_a_fence_covers_global_memory_only_where_that_was_written():
    c = Async()
    write = nodes.store(c.B, nodes.load(c.A, [c.tid]), [c.tid])
    read = c.first(bulk(calls.address(c.B, [0], "r", proxy=ASYNC), c.at("r", proxy=ASYNC)))
    for body, everywhere in (((write, read), [1]), ((c.put(), read), [0]), ((c.put(), write, read), [1])):
        new, _ = c.insert(c.alloc, *body)
        fences = [x.args[0] for x in collect(new, ir.Call) if nodes.is_tile_call(x, "fence_proxy")]
        assert [nodes.as_int(x) for x in fences] == everywhere


def test_the_barrier_may_be_there_already():
    c = Async()
    found, report = c.placed(c.put(), calls.sync_threads(), c.first(bulk(c.at("r", proxy=ASYNC))))
    assert found == ["store S", "fence_proxy", "sync_threads", "instruction"]
    assert not report


def test_other_bytes_and_reads_need_no_fence():
    c = Async()
    found, _ = c.placed(c.put(), calls.sync_threads(), c.first(bulk(c.at("w", c.R, proxy=ASYNC))))
    assert "fence_proxy" not in found
    c = Async()
    found, _ = c.placed(c.get(), c.first(bulk(c.at("w", proxy=ASYNC))))
    assert found == ["store B", "sync_threads", "instruction"]
    c = Async()
    found, _ = c.placed(c.put(), c.first(bulk(c.at("r"))))
    assert found == ["store S", "sync_threads", "instruction"]


def test_a_fence_is_enough_for_all_that_follows():
    c = Async()
    twice = [c.first(bulk(c.at("r", proxy=ASYNC))), c.first(bulk(c.at("r", proxy=ASYNC)))]
    found, _ = c.placed(c.put(), *twice)
    assert found == ["store S", "fence_proxy", "sync_threads", "instruction", "instruction"]


def test_in_a_loop_the_write_of_the_iteration_before_counts():
    c = Async()
    i = nodes.fresh("i")
    found, _ = c.placed(loop(i, 4, c.first(bulk(c.at("r", proxy=ASYNC))), calls.sync_threads(), c.put()))
    assert found == ["fence_proxy", "sync_threads", "instruction", "sync_threads", "store S"]


def test_initialised_barriers_are_fenced_for_what_delivers_to_them():
    c = Async()
    zero = nodes.int_const(0)
    copy = bulk(c.at("w", proxy=ASYNC), calls.address(c.bar, [zero], "a", proxy=ASYNC))
    found, _ = c.placed(
        c.first(calls.barrier_init(c.bar, zero, 1)), c.first(calls.barrier_expect(c.bar, zero, 64), copy),
        calls.barrier_wait(c.bar, zero, zero), calls.sync_threads(), c.get(),
    )  # fmt: skip
    assert found[:3] == ["barrier_init", "fence_init", "sync_threads"]
    assert found[3:] == ["barrier_expect", "instruction", "barrier_wait", "sync_threads", "store B"]


def copy_until(c, what, *more):
    return c.first(bulk(c.at("w", until=what), *more))


def test_a_barrier_of_threads_ends_nothing():
    c = Async()
    with pytest.raises(NotWaitedFor) as caught:
        c.placed(copy_until(c, calls.UNTIL_GROUP), calls.sync_threads(), c.get())
    assert "[K229]" in str(caught.value)
    assert "S is read here while the asynchronous write of line ? may still be in flight" in str(caught.value)
    assert "wait for it first" in str(caught.value)


def test_a_wait_ends_it_for_the_thread_and_a_barrier_for_the_others():
    c = Async()
    found, report = c.placed(copy_until(c, calls.UNTIL_GROUP), calls.async_commit(), calls.async_wait(0), c.get())
    assert found == ["instruction", "async_commit", "async_wait", "sync_threads", "store B"]
    assert [b.hazard for b in report] == ["write, read"]


@pytest.mark.parametrize("before", [(0, 1), (0,), (0, 0), (1,), (2, 0, 2), (0, 2, 0), (0, 0, 2)], ids=str)
def test_a_wait_is_for_groups_that_have_ended_since(before):
    """A step ends a group (0), or waits for all groups but the latest of a number one less."""
    c, ended, groups = Async(), False, 0
    steps = []
    for n in before:
        if n == 0:
            steps.append(calls.async_commit())
            groups += 1
        else:
            steps.append(calls.async_wait(n - 1))
            ended = ended or groups > n - 1
    if ended:
        c.placed(copy_until(c, calls.UNTIL_GROUP), *steps, c.get())
        return
    with pytest.raises(NotWaitedFor):
        c.placed(copy_until(c, calls.UNTIL_GROUP), *steps, c.get())


def test_no_copy_of_a_group_outlives_its_block():
    c = Async()
    i = nodes.fresh("i")
    body = nodes.seq([copy_until(c, calls.UNTIL_GROUP), calls.async_commit()])
    grid = nodes.for_loop(i, 4, body, "grid", annotations={AXIS: nodes.int_const(0)})
    with pytest.raises(NotWaitedFor, match="S is given up at the end of the block while the asynchronous write"):
        c.placed(grid)


def test_operands_that_are_read_may_not_be_written():
    c = Async()
    reads = c.first(bulk(c.at("r", until="mine")))
    with pytest.raises(NotWaitedFor, match="S is written here while the asynchronous read"):
        c.placed(reads, c.put())
    done = tirx.Evaluate(nodes.tile_call("instruction", [], {"name": "wait", "waits": "mine"}))
    found, _ = c.placed(reads, done, c.put())
    assert found == ["instruction", "instruction", "sync_threads", "store S"]


@pytest.mark.parametrize(("awaited", "right"), [(0, True), (1, False)])
def test_a_phase_is_that_of_one_object(awaited, right):
    c = Async()
    zero = nodes.int_const(0)
    copy = copy_until(c, calls.UNTIL_PHASE, calls.address(c.bar, [zero], "a"))
    body = copy, calls.barrier_wait(c.bar, nodes.int_const(awaited), zero), c.get()
    if right:
        assert c.placed(*body)[0] == ["instruction", "barrier_wait", "store B"]
    else:
        with pytest.raises(NotWaitedFor):
            c.placed(*body)


def test_who_has_not_waited_for_a_phase_is_refused_and_the_next_write_needs_a_barrier():
    c = Async()
    zero = nodes.int_const(0)
    copy, wait = (
        copy_until(c, calls.UNTIL_PHASE, calls.address(c.bar, [zero], "a")),
        calls.barrier_wait(c.bar, zero, zero),
    )
    with pytest.raises(NotWaitedFor):
        c.placed(copy, when(c.tid < 7, wait), c.get())
    with pytest.raises(NotWaitedFor):  # a barrier for something else ends nothing
        c.placed(c.put(), calls.sync_threads(), c.get(), copy, when(c.tid < 7, wait), c.put())
    found, report = c.placed(copy, wait, c.put())
    assert found == ["instruction", "barrier_wait", "sync_threads", "store S"]
    assert [b.hazard for b in report] == ["write, write"]
    i = nodes.fresh("i")
    found, _ = c.placed(loop(i, 4, copy, wait, c.get()))
    assert found == ["sync_threads", "instruction", "barrier_wait", "store B"]


def test_a_barrier_that_another_pair_needs_hides_nothing_in_flight():
    for _ in range(8):  # sets of accesses have no order
        c = Async()
        i = nodes.fresh("i")
        flying = c.first(bulk(c.at("w", until=calls.UNTIL_GROUP)))
        with pytest.raises(NotWaitedFor):
            c.placed(c.put(), loop(i, 3, c.get(), calls.sync_threads(), c.put(), flying))


def test_a_phase_of_another_iteration_is_another_one():
    c = Async()
    i, zero = nodes.fresh("i"), nodes.int_const(0)
    copy = copy_until(c, calls.UNTIL_PHASE, calls.address(c.bar, [i], "a"))
    wait = calls.barrier_wait(c.bar, i, zero)
    c.placed(loop(i, 2, calls.sync_threads(), copy, wait, calls.sync_threads(), c.get()))
    with pytest.raises(NotWaitedFor):
        c.placed(loop(i, 2, wait, c.get(), calls.sync_threads(), copy))


def test_a_managed_region_answers_for_its_buffers():
    c = Async()
    region = calls.managed([c.S], nodes.seq([copy_until(c, calls.UNTIL_GROUP), calls.sync_threads(), c.get()]))
    found, _ = c.placed(region, c.put())
    assert found == ["instruction", "sync_threads", "store B", "sync_threads", "store S"]
    assert not [x for x in collect(region, ir.Call) if nodes.is_tile_call(x, "fence_proxy")]


# Copies out of shared memory, whose waits are placed


class Out(Async):
    def store(self, *, atomic=False, corner=0, box=(N,)):
        target = calls.address(
            self.B, [nodes.int_const(0) + corner], "a" if atomic else "w", ASYNC, calls.UNTIL_STORED, box
        )  # fmt: skip
        return self.first(
            bulk(self.at("r", proxy=ASYNC, until=calls.UNTIL_READ), target), calls.store_commit(),
        )  # fmt: skip

    def steps(self, *body):
        """Return the order of a block's steps; waits say whether for what is stored."""
        grid = loop(nodes.fresh("bx"), 1, self.alloc, self.more, *body)
        notes = {ROLE: "grid"}
        new, _ = self.insert(replace_for(grid, grid.body, annotations=notes))
        found = []
        for s in collect(new, (tirx.Evaluate, tirx.BufferStore)):
            if isinstance(s, tirx.BufferStore):
                found.append(f"store {s.buffer.name}")
            elif nodes.is_tile_call(s.value, "store_wait"):
                found.append("stored" if nodes.as_int(s.value.args[0]) else "read")
            else:
                found.append(str(s.value.op.name)[5:])
        return found


LEAVES = ["store S", "fence_proxy", "sync_threads", "instruction", "store_commit"]


def test_a_block_ends_when_its_memory_has_been_read():
    c = Out()
    assert c.steps(c.put(), c.store()) == [*LEAVES, "read"]


def test_memory_is_written_again_when_it_has_been_read():
    c = Out()
    assert c.steps(c.put(), c.store(), c.put()) == [*LEAVES, "read", "sync_threads", "store S"]


def test_reading_it_waits_for_nothing():
    c = Out()
    b = tirx.decl_buffer([N], "int32", "C", layout=None)
    get = nodes.store(b, nodes.load(c.S, [N - 1 - c.tid]), [c.tid])
    assert c.steps(c.put(), c.store(), get) == [*LEAVES, "store C", "read"]


@pytest.mark.parametrize("atomic", [False, True])
def test_what_is_stored_is_there_for_who_reads_it(atomic):
    c = Out()
    b = tirx.decl_buffer([N], "int32", "C", layout=None)
    get = nodes.store(b, nodes.load(c.B, [N - 1 - c.tid]), [c.tid])
    assert c.steps(c.put(), c.store(atomic=atomic), get) == [*LEAVES, "stored", "sync_threads", "store C"]


def test_updates_need_no_order_among_each_other_and_copies_do():
    c = Out()
    twice = c.steps(c.put(), c.store(atomic=True), c.store(atomic=True))
    assert twice == [*LEAVES, "instruction", "store_commit", "read"]
    c = Out()
    twice = c.steps(c.put(), c.store(), c.store())
    assert twice == [*LEAVES, "stored", "sync_threads", "instruction", "store_commit", "read"]


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        (lambda i: i * 8, None, True), (lambda i: i * 4, None, False), (lambda i: i * 16, lambda i: i * 16 + 8, True),
        (lambda i: i * 16, lambda i: i * 16 + 4, False), (lambda i: i * 8, lambda i: i * 8 + 8, False),
        (lambda i: i * 0, None, False), (lambda i: i * -8 + 64, None, True),
    ],
)  # fmt: skip
def test_boxes_of_a_loop_are_apart_by_their_steps(first, second, apart):
    c = Out()
    i = nodes.fresh("i")
    stores = [c.store(corner=f(i), box=(8,)) for f in (first, second) if f is not None]
    found = c.steps(loop(i, 4, c.put(), *stores))
    assert ("stored" in found) != apart
    assert found[-1] == "read"


def test_boxes_that_move_in_an_inner_loop_only_are_not_apart():
    c = Out()
    i, j = nodes.fresh("i"), nodes.fresh("j")
    assert "stored" in c.steps(c.put(), loop(j, 2, loop(i, 4, c.store(corner=i * 8, box=(8,)))))
    c = Out()
    wide = c.steps(c.put(), loop(j, 2, loop(i, 4, c.store(corner=j * 32 + i * 8, box=(8,)))))
    assert "stored" in wide  # of one dimension, so that each would have to have its own


def test_a_wait_before_a_loop_or_a_branch_counts_for_all_inside():
    c = Out()
    i = nodes.fresh("i")
    varying = when(c.tid < 7, c.put())
    assert c.steps(c.put(), c.store(), varying) == [*LEAVES, "read", "sync_threads", "store S"]
    found = c.steps(c.put(), c.store(), loop(i, 3, c.put(), calls.sync_threads(), c.get()))
    assert found.count("stored") == 1  # what the loop writes to B
    assert found.index("stored") < found.index("store B")
