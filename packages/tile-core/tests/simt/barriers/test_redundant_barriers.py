"""Barriers at the end of a kernel after which threads work for themselves."""

from __future__ import annotations

import pytest

from tile_core.ir import calls, nodes
from tile_core.simt.barriers.redundant_barriers import drop_redundant_barriers

from ..cases import Case, N, barriers, loop, shared, when


def left(*parts):
    return barriers(drop_redundant_barriers(nodes.seq(list(parts))))


def staged(c):
    s, alloc = shared("S")
    put = nodes.store(s, nodes.load(c.A, [c.tid]), [c.tid])
    return s, [alloc, put]


def test_a_barrier_before_private_work_goes():
    c = Case()
    _, before = staged(c)
    local, new = nodes.alloc([1], "int32", "x", "local")
    work = [new, nodes.store(local, nodes.load(c.A, [c.tid]), [0]), nodes.store(c.B, local[0], [c.tid])]
    assert left(*before, calls.sync_threads(), *work) == 0
    assert left(*before, calls.sync_threads()) == 0


def test_a_barrier_before_a_read_of_shared_memory_stays():
    c = Case()
    s, before = staged(c)
    read = nodes.store(c.B, nodes.load(s, [N - 1 - c.tid]), [c.tid])
    assert left(*before, calls.sync_threads(), read) == 1
    assert left(*before, calls.sync_threads(), when(c.tid < 3, read)) == 1
    assert left(*before, calls.sync_threads(), read, calls.sync_threads()) == 1


@pytest.mark.parametrize("first", ["write", "read"])
def test_a_barrier_that_orders_global_memory_stays(first):
    c = Case()
    write = nodes.store(c.B, nodes.load(c.A, [c.tid]), [c.tid])
    local, new = nodes.alloc([1], "int32", "x", "local")
    read = nodes.store(local, nodes.load(c.B, [N - 1 - c.tid]), [0])
    before, after = (write, read) if first == "write" else (read, write)
    assert left(new, before, calls.sync_threads(), after) == 1


def test_a_barrier_in_a_loop_stays():
    c = Case()
    _, before = staged(c)
    k = nodes.fresh("k")
    assert left(loop(k, 3, nodes.seq([*before, calls.sync_threads()]))) == 1


def test_a_vector_is_a_write():
    c = Case()
    s, before = staged(c)
    move = calls.move(c.B, [c.tid], s, [c.tid], 4)
    assert left(*before, calls.sync_threads(), move) == 1
    local, new = nodes.alloc([4], "int32", "x", "local")
    assert left(*before, new, calls.sync_threads(), calls.move(c.B, [c.tid], local, [0], 4)) == 0


def test_an_instruction_that_nobody_knows_stays_behind():
    c = Case()
    _, before = staged(c)
    assert left(*before, calls.sync_threads(), calls.execute("anything", [])) == 1


def test_an_instruction_on_global_memory_alone_is_private_work():
    c = Case()
    s, before = staged(c)
    outside = calls.execute("add", [calls.address(c.B, [c.tid], "rw"), nodes.int_const(1)])
    assert left(*before, calls.sync_threads(), outside) == 0
    assert left(outside, calls.sync_threads(), outside) == 1
    assert left(*before, calls.sync_threads(), calls.execute("add", [calls.address(s, [c.tid], "rw")])) == 1
