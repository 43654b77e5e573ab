"""Barriers: where they are, how many, and that threads in any order then do what they do in lock step."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import MANAGED, OP_MARK, OVER_BLOCKS
from tile_core.ir.visit import collect
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.memory.arena import plan_arena
from tile_core.simt.variant import Block

from ..cases import Case, N, barriers, loop, put_zero, shared, tensor, when

pytestmark = pytest.mark.sweep(2)


def test_a_read_of_what_another_thread_wrote_waits():
    c = Case()
    s, alloc = shared("S")
    t = c.tid
    new, report = c.check(
        alloc, nodes.store(s, nodes.load(c.A, [t]), [t]), nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t]), count=1
    )
    assert nodes.is_tile_call(list(new.seq)[2].value, "sync_threads")
    assert [(b.source, b.sink, b.hazard) for b in report] == [("S", "S", "write, read")]


def test_a_threads_own_elements_need_no_barrier():
    c = Case(threads=32)
    s, alloc = shared("S", (128,))
    t, i, j = c.tid, nodes.fresh("i"), nodes.fresh("j")
    body = [
        alloc,
        loop(i, 4, nodes.store(s, nodes.load(c.A, [t]) + i, [t * 4 + i])),
        loop(j, 4, nodes.store(c.B, nodes.load(s, [t * 4 + (3 - j)]), [t])),
    ]
    _, report = c.check(*body, count=0)
    assert report == ()
    assert c.insert(*body)[0].same_as(nodes.seq(body)) or barriers(c.insert(*body)[0]) == 0


def test_elements_that_two_threads_share_are_nobodys_own():
    c = Case()
    s, alloc = shared("S", (32,))
    t = c.tid
    half = tirx.floordiv(t, 2)
    body = [alloc, when(tirx.EQ(tirx.floormod(t, 2), 0), nodes.store(s, nodes.load(c.A, [t]), [half]))]
    c.check(*body, nodes.store(c.B, nodes.load(s, [half]), [t]), count=1)


def test_what_one_thread_keeps_for_itself_needs_no_barrier():
    c = Case()
    s, alloc = shared("S", (1,))
    first = tirx.EQ(c.tid, 0)
    put = when(first, nodes.store(s, nodes.load(c.A, [3]), [0]))
    c.check(alloc, put, when(first, nodes.store(c.B, nodes.load(s, [0]), [0])), count=0)


def test_own_elements_of_threads_on_two_axes():
    c = Case(threads=1)
    c.block = Block((8, 4, 2), None)
    c.tid = None
    x, y, z = (calls.thread_index(d) for d in range(3))
    s, alloc = shared("S", (64,))
    mine = x + y * 8 + z * 32
    put = nodes.store(s, nodes.load(c.A, [mine]), [mine])
    c.check(alloc, put, nodes.store(c.B, nodes.load(s, [mine]), [mine]), count=0)
    c.check(alloc, put, nodes.store(c.B, nodes.load(s, [y * 8 + x]), [mine]), count=1)


def test_the_threads_number_may_be_bound_at_the_top():
    c = Case()
    s, alloc = shared("S")
    top, t = tirx.Bind(c.tid, calls.thread_index(0) + 0), c.tid
    put = nodes.store(s, nodes.load(c.A, [t]), [t])
    c.check(top, alloc, put, nodes.store(c.B, nodes.load(s, [t]), [t]), count=0)
    c.check(top, alloc, put, nodes.store(c.B, nodes.load(s, [tirx.bitwise_xor(t, 1)]), [t]), count=1)


def product(c, trips, managed=False):
    """Copies of two tiles and an instruction that reads both, in a loop."""
    t, k = c.tid, nodes.fresh("k")
    (a, alloc_a), (b, alloc_b) = shared("As"), shared("Bs")
    total, alloc = nodes.alloc([1], "int32", "total", "local")
    part, alloc_part = nodes.alloc([2], "int32", "part", "local")

    def copy(dst, shift):
        at = tirx.floormod(t + shift + k, N)
        return calls.step(calls.move(dst, [t], c.A, [at], 4))

    def use(source, offset):
        args = [calls.address(part, [offset], "w"), calls.address(source, [0], "r")]
        return calls.execute("sum", args)

    add = nodes.store(total, nodes.load(total, [0]) + (nodes.load(part, [0]) - nodes.load(part, [1]) * k), [0])
    gemm = calls.step(nodes.seq([use(a, 0), use(b, 1), add]))
    body = [
        alloc_a, alloc_b, alloc, alloc_part, nodes.store(total, nodes.int_const(0), [0]),
        loop(k, trips, copy(a, 0), copy(b, 1), gemm), nodes.store(c.B, nodes.load(total, [0]), [t]),
    ]  # fmt: skip
    return body


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_product_has_two_barriers_per_iteration(trips):
    c = Case()
    new, report = c.check(*product(c, trips), count=2)
    (main,) = collect(new, tirx.For)
    assert barriers(main.body) == 2
    assert {b.hazard for b in report} == {"write, read", "read, write"}


def test_copies_into_different_buffers_need_none_between_them():
    c = Case()
    new, _ = c.insert(*product(c, 4))
    (main,) = collect(new, tirx.For)
    kinds = ["sync" if isinstance(s, tirx.Evaluate) else "step" for s in main.body.seq]
    assert kinds == ["sync", "step", "step", "sync", "step"]


def test_a_barrier_of_the_program_counts():
    c = Case()
    s, alloc = shared("S")
    t = c.tid
    put, get = nodes.store(s, nodes.load(c.A, [t]), [t]), nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t])
    body = nodes.seq([alloc, put, calls.sync_threads(), get])
    new, report = insert_barriers(body, c.block)
    assert new.same_as(body)
    assert report == ()


def test_private_registers_need_none():
    c = Case()
    r, alloc = nodes.alloc([4], "int32", "r", "local")
    t = c.tid
    body = [alloc, nodes.store(r, nodes.load(c.A, [t]), [1]), nodes.store(c.B, nodes.load(r, [1]), [t])]
    c.check(*body, count=0)


def test_a_store_that_reads_others_is_done_in_two_steps():
    c = Case()
    s, alloc = shared("S")
    t = c.tid
    body = [
        alloc, nodes.store(s, nodes.load(c.A, [t]), [t]), nodes.store(s, nodes.load(s, [N - 1 - t]), [t]),
        nodes.store(c.B, nodes.load(s, [t]), [t]),
    ]  # fmt: skip
    c.check(*body, count=2)


def test_a_move_that_reads_others_is_done_in_two_steps():
    c = Case(threads=16)
    s, alloc = shared("S")
    t = c.tid
    fill = calls.step(calls.move(s, [t * 4], c.A, [t * 4], 16))
    body = calls.move(s, [t * 4], s, [(15 - t) * 4], 16)
    c.check(alloc, fill, body, calls.step(calls.move(c.B, [t * 4], s, [t * 4], 16)), count=2)


def test_a_loop_that_rewrites_what_others_read():
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    body = nodes.store(s, nodes.load(s, [tirx.floormod(t + 1, N)]) + k, [t])
    new, _ = c.check(
        alloc, nodes.store(s, nodes.load(c.A, [t]), [t]), loop(k, 5, body), nodes.store(c.B, nodes.load(s, [t]), [t])
    )
    (main,) = collect(new, tirx.For)
    assert barriers(main.body) == 2


def test_what_only_the_code_before_a_loop_needs_stands_before_it():
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    total, alloc_total = nodes.alloc([1], "int32", "total", "local")
    add = nodes.store(total, nodes.load(total, [0]) + nodes.load(s, [tirx.floormod(t + k, N)]), [0])
    new, _ = c.check(
        alloc, alloc_total, nodes.store(total, nodes.int_const(0), [0]),
        nodes.store(s, nodes.load(c.A, [t]), [t]), loop(k, 7, add), nodes.store(c.B, nodes.load(total, [0]), [t]),
        count=1,
    )  # fmt: skip
    (main,) = collect(new, tirx.For)
    assert barriers(main) == 0


def test_global_memory_is_seen_after_a_barrier():
    c = Case()
    t = c.tid
    other = tensor("C")
    body = [
        nodes.store(other, nodes.load(c.A, [t]), [t]), nodes.store(c.B, nodes.load(other, [N - 1 - t]), [t]),
    ]  # fmt: skip
    c.check(*body, count=1, extra=[(other, np.zeros(N, np.int32))])


@pytest.mark.parametrize("blocks", [False, True])
def test_grid_iterations_of_one_block_are_not_ordered_in_global_memory(blocks):
    c = Case()
    t, k = c.tid, nodes.fresh("k")
    write = nodes.store(c.B, nodes.load(c.A, [t]), [tirx.floormod(t + k, N)])
    tiles = nodes.for_loop(k, 5, write, annotations={OVER_BLOCKS: 1} if blocks else None)
    assert barriers(c.insert(tiles)[0]) == (0 if blocks else 1)


def test_nor_do_they_share_shared_memory():
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    body = [
        nodes.store(s, nodes.load(c.A, [t]) + k, [t]), nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t]),
    ]  # fmt: skip
    new, _ = c.check(alloc, nodes.for_loop(k, 5, nodes.seq(body), annotations={OVER_BLOCKS: 1}))
    assert barriers(new) == 2


def test_what_they_wrote_is_seen_behind_them():
    c = Case()
    t, k = c.tid, nodes.fresh("k")
    other = tensor("C")
    write = nodes.store(other, nodes.load(c.A, [t]), [tirx.floormod(t + k, N)])
    body = [
        nodes.for_loop(k, 1, write, annotations={OVER_BLOCKS: 1}),
        nodes.store(c.B, nodes.load(other, [N - 1 - t]), [t]),
    ]
    c.check(*body, count=1, extra=[(other, np.zeros(N, np.int32))])


def test_global_rows_of_a_thread_are_its_own_whatever_the_blocks_row_is():
    c = Case()
    t, row = c.tid, nodes.fresh("row")
    big = tensor("big", (1000, N))
    body = [tirx.Bind(row, calls.block_index(0) * 8), nodes.store(big, nodes.load(big, [row, t]) + 1, [row, t])]
    body.append(nodes.store(c.B, nodes.load(big, [row, t]), [t]))
    assert barriers(c.insert(*body)[0]) == 0
    body[-1] = nodes.store(c.B, nodes.load(big, [row, N - 1 - t]), [t])
    assert barriers(c.insert(*body)[0]) == 1


def test_atomics_on_one_buffer_need_none_between_them_but_reads_do():
    c = Case()
    s, alloc = shared("S", (1,))
    t = c.tid
    add = calls.execute("atom_add", [calls.address(s, [0], "a"), nodes.load(c.A, [t])])
    zero = when(tirx.EQ(t, 0), nodes.store(s, nodes.int_const(0), [0]))
    new, _ = c.check(alloc, zero, add, add, nodes.store(c.B, nodes.load(s, [0]), [t]), count=2)
    kinds = [nodes.is_tile_call(getattr(s, "value", None), "sync_threads") for s in new.seq]
    assert kinds == [False, False, True, False, False, True, False]


def test_while_loops_test_what_the_body_wrote():
    c = Case()
    s, alloc = shared("S", (1,))
    t = c.tid
    first = tirx.EQ(t, 0)
    down = when(first, nodes.store(s, nodes.load(s, [0]) - 1, [0]))
    body = [
        alloc, when(first, nodes.store(s, nodes.int_const(3), [0])), nodes.store(c.B, nodes.int_const(0), [t]),
        tirx.While(nodes.load(s, [0]) > 0, nodes.seq([nodes.store(c.B, nodes.load(c.B, [t]) + 1, [t]), down])),
    ]  # fmt: skip
    new, _ = c.check(*body)
    (main,) = collect(new, tirx.While)
    assert barriers(main.body) == 2
    assert barriers(new) == 3


def test_a_bound_that_the_body_overwrites_is_read_once():
    c = Case()
    s, alloc = shared("S", (1,))
    t, k = c.tid, nodes.fresh("k")
    first = tirx.EQ(t, 0)
    body = [
        alloc, when(first, nodes.store(s, nodes.int_const(3), [0])), nodes.store(c.B, nodes.int_const(0), [t]),
        loop(k, nodes.load(s, [0]), nodes.store(c.B, nodes.load(c.B, [t]) + 1, [t]),
             when(first, nodes.store(s, nodes.int_const(9), [0]))),
    ]  # fmt: skip
    c.check(*body, count=2)


def test_uniform_branches_hold_barriers_and_merge():
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    put = nodes.store(s, nodes.load(c.A, [t]) + k, [t])
    get = nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t])
    even = tirx.EQ(tirx.floormod(k, 2), 0)
    c.check(alloc, put_zero(s, t), loop(k, 4, when(even, put, get)))


def test_atomic_access_is_told_by_the_address():
    c = Case()
    s, alloc = shared("S", (1,))
    add = calls.execute("anything", [calls.address(s, [0], "a"), nodes.load(c.A, [c.tid])])
    k = nodes.fresh("k")
    assert barriers(c.insert(alloc, add, loop(k, c.tid, add))[0]) == 0
    plain = calls.execute("anything", [calls.address(s, [0], "rw"), nodes.load(c.A, [c.tid])])
    assert barriers(c.insert(alloc, plain, plain)[0]) == 1


# Memory that is used again


def test_buffers_that_share_bytes_depend_on_each_other():
    c = Case()
    (s, alloc_s), (r, alloc_r) = shared("S"), shared("R")
    t = c.tid
    body = [
        alloc_s, alloc_r, nodes.store(s, nodes.load(c.A, [t]), [t]), nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t]),
        nodes.store(r, nodes.load(c.B, [t]) + 1, [t]), nodes.store(c.B, nodes.load(r, [N - 1 - t]), [t]),
    ]  # fmt: skip
    planned, arena = plan_arena(nodes.seq(body), 1 << 15)
    assert arena.bytes == 256
    assert [a.offset for a in arena.arrays] == [0, 0]
    _new, report = c.check(planned, count=3)
    assert ("S", "R", "read, write") in [(b.source, b.sink, b.hazard) for b in report]
    free = [a if not isinstance(a, tirx.AllocBuffer) else tirx.AllocBuffer(a.buffer, {}) for a in body]
    assert barriers(c.insert(*free)[0]) == 2


def test_a_zero_fill_of_what_was_just_read_waits():
    c = Case(threads=16)
    s, alloc = shared("S")
    t = c.tid
    zeros, alloc_zeros = nodes.alloc([4], "int32", "zeros", "local")
    i = nodes.fresh("i")
    fill = calls.step(calls.move(s, [t * 4], zeros, [0], 16))
    body = [
        alloc, alloc_zeros, loop(i, 4, nodes.store(zeros, nodes.int_const(0), [i])),
        calls.step(calls.move(s, [t * 4], c.A, [t * 4], 16)),
        nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t]), fill, nodes.store(c.B, nodes.load(s, [63 - t]), [t + 16]),
    ]  # fmt: skip
    _, report = c.check(*body, count=3)
    assert [b.hazard for b in report] == ["write, read", "read, write", "write, read"]


def test_views_are_the_bytes_of_their_buffer():
    c = Case(threads=16)
    s, alloc = shared("S", (16,))
    data = tirx.buffer_data(s)
    view = tirx.decl_buffer([64], "int8", "V", data=data, scope="shared", layout=None)
    t = c.tid
    get = nodes.store(c.B, tirx.Cast("int32", nodes.load(view, [t * 4 + 1])), [t])
    body = [alloc, tirx.DeclBuffer(view, data=data), nodes.store(s, nodes.load(c.A, [t]), [t])]
    planned, _ = plan_arena(nodes.seq([*body, get]), 1 << 15)
    c.check(planned, count=0)
    other = nodes.store(c.B, tirx.Cast("int32", nodes.load(view, [t])), [t])
    planned, _ = plan_arena(nodes.seq([*body, other]), 1 << 15)
    c.check(planned, count=1)


# Regions that order their buffers themselves


@pytest.mark.parametrize("by_name", [False, True])
def test_managed_buffers_do_not_conflict_inside_but_stay_pending(by_name):
    c = Case()
    s, alloc = shared("S", (2, N))
    t, k = c.tid, nodes.fresh("k")
    slot = tirx.floormod(k, 2)
    put = calls.step(nodes.store(s, nodes.load(c.A, [t]) + k, [slot, t]))
    get = calls.step(nodes.store(c.B, nodes.load(s, [slot, N - 1 - t]), [t]))
    main = loop(k, 4, put, calls.sync_threads(), get)
    region = calls.managed([s], main)
    if by_name:
        region = tirx.AttrStmt(["S"], MANAGED, nodes.int_const(0), main)
    plain = nodes.store(c.B, nodes.load(s, [1, t]), [N - 1 - t])
    new, _ = c.check(alloc, region, nodes.store(s, nodes.int_const(4), [0, t]), plain)
    (kept,) = collect(new, tirx.For)
    assert barriers(kept) == 1
    outer = nodes.fresh("o")
    new, _ = c.insert(alloc, loop(outer, 3, region))
    assert barriers(new) == 2


def test_marks_and_grid_loops_stay():
    c = Case()
    s, alloc = shared("S")
    t, b = c.tid, nodes.fresh("b")
    put, get = nodes.store(s, nodes.load(c.A, [t]), [t]), nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t])
    mark = tirx.AttrStmt(ir.StringImm("op"), OP_MARK, nodes.int_const(0), nodes.seq([put, get]))
    new, _ = c.insert(nodes.for_loop(b, 4, nodes.seq([alloc, mark]), "grid"))
    assert barriers(new) == 1
    assert len(collect(new, tirx.AttrStmt)) == 1
