"""Values that differ between threads, in programs of one thread."""

from __future__ import annotations

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes

TID = nodes.fresh("tid")


def local(name, scope="local"):
    return nodes.alloc([4], "int32", name, scope)[0]


def test_seeds_bindings_and_calls():
    a, b, c, d = (nodes.fresh(n) for n in "abcd")
    body = nodes.seq([
        tirx.Bind(a, calls.block_index(0) + 1), tirx.Bind(b, a + TID), tirx.Bind(c, calls.thread_index(1)),
        tirx.Bind(d, calls.instruction("lane_mask", [], ret="int32")),
    ])  # fmt: skip
    assert Varying(body, [TID]).vars == {TID, b, c, d}
    assert Varying(body).vars == {c, d}


def test_private_arrays_that_moves_and_instructions_write():
    s = nodes.alloc([64], "int32", "S", "shared")[0]
    same, own, shown, read = (local(n) for n in ("same", "own", "shown", "read"))
    body = nodes.seq([
        calls.move(same, [0], s, [8], 16), calls.move(own, [0], s, [TID * 4], 16),
        calls.execute("fill", [calls.address(shown, [0], "w"), calls.address(read, [0], "r")]),
    ])  # fmt: skip
    assert Varying(body, [TID]).buffers == {own, shown}


def test_loops_that_threads_leave_at_different_times():
    k, m, n = (nodes.fresh(x) for x in "kmn")
    counter = local("counter", "local.var")

    def leaving(var, condition):
        body = nodes.seq([nodes.store(counter, var, [0]), tirx.IfThenElse(condition, tirx.Break(), None)])
        return nodes.for_loop(var, 4, body)

    first, second = leaving(k, k > 2), leaving(m, TID < 3)
    assert not Varying(first, [TID]).loop(first)
    assert not Varying(first, [TID]).buffers
    assert Varying(second, [TID]).loop(second)
    assert Varying(second, [TID]).buffers == {counter}
    inner = nodes.for_loop(n, 4, second)
    assert not Varying(inner, [TID]).loop(inner)
    spin = tirx.While(nodes.load(counter, [0]) > 0, tirx.IfThenElse(TID < 1, tirx.Break(), None))
    assert Varying(spin, [TID]).loop(spin)
