"""Bindings that nothing reads go; what acts, and what something reads, stays."""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect
from tile_core.passes.drop_unused import drop_unused


def var(name):
    return tirx.Var(name, "int32")


def bound(s):
    return [str(b.var.name) for b in collect(s, tirx.Bind)]


def test_chains_go_from_their_end():
    a, b, c, d = map(var, "abcd")
    out = tirx.decl_buffer([4], "int32", "out", layout=None)
    body = nodes.seq([
        tirx.Bind(a, calls.thread_index(0)), tirx.Bind(b, a + 1), tirx.Bind(c, b * b), tirx.Bind(d, a * 2),
        nodes.store(out, d, [a]),
    ])  # fmt: skip
    assert bound(drop_unused(body)) == ["a", "d"]


def test_a_binding_inside_of_a_loop_and_a_branch():
    i, a, b = map(var, ("i", "a", "b"))
    out = tirx.decl_buffer([4], "int32", "out", layout=None)
    inner = nodes.seq([tirx.Bind(a, i + 1), tirx.Bind(b, i + 2), nodes.store(out, b, [i])])
    body = nodes.for_loop(i, 4, tirx.IfThenElse(i < 3, inner, None), "serial")
    assert bound(drop_unused(body)) == ["b"]


def test_what_acts_stays():
    a, b, x = var("a"), var("b"), tirx.decl_buffer([4], "int32", "x", layout=None)
    zero = nodes.int_const(0)
    acts = calls.instruction("atom_global_add_u32", [calls.address(x, [zero]), zero], "int32")
    body = nodes.seq([tirx.Bind(a, acts), tirx.Bind(b, nodes.load(x, [zero])), nodes.store(x, zero, [zero])])
    assert bound(drop_unused(body)) == ["a"]


def test_nothing_to_do_is_the_same_object():
    a, x = var("a"), tirx.decl_buffer([4], "int32", "x", layout=None)
    body = nodes.seq([tirx.Bind(a, calls.block_index(1)), nodes.store(x, a, [a])])
    assert drop_unused(body) is body


def test_buffers_that_nothing_accesses():
    names = ("stored", "loaded", "viewed", "view", "idle", "idle_view")
    stored, loaded, viewed, view, idle, idle_view = (tirx.decl_buffer([4], "int32", n, layout=None) for n in names)
    zero = nodes.int_const(0)
    body = nodes.seq([
        *(tirx.AllocBuffer(b) for b in (stored, loaded, viewed, idle)),
        *(tirx.DeclBuffer(v, data=tirx.buffer_data(b)) for v, b in ((view, viewed), (idle_view, stored))),
        nodes.store(stored, nodes.load(loaded, [zero]), [zero]), tirx.Evaluate(nodes.load(view, [zero])),
    ])  # fmt: skip
    kept = collect(drop_unused(body), (tirx.AllocBuffer, tirx.DeclBuffer))
    assert [str(d.buffer.name) for d in kept] == ["stored", "loaded", "viewed", "view"]


def test_nothing_is_left():
    body = drop_unused(tirx.Bind(var("a"), nodes.int_const(1)))
    assert not bound(body)
    assert nodes.is_nop(body)
