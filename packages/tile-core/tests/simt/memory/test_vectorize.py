"""Wide accesses against the loops that they replace: conversions, layouts, guards, aliases, what stays scalar."""

from __future__ import annotations

import numpy as np
import pytest
from machine import Machine, element_of

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import BYTES
from tile_core.ir.visit import collect
from tile_core.layout import column_major, make_swizzled_layout
from tile_core.simt.memory.alignment import Aligned, contiguous_width, factor, row_symbols, strides_of
from tile_core.simt.memory.vector_bodies import leading_conditions
from tile_core.simt.memory.vectorize import vectorize
from tile_core.target import Capabilities

WIDTHS = Capabilities(vector_bytes=(1, 2, 4, 8, 16))
NARROW = Capabilities(vector_bytes=(1, 2, 4, 8))


def memory(shape, dtype, name, scope=""):
    return tirx.decl_buffer(list(shape), dtype, name, scope=scope, layout=None)


def vector_loop(width, body, before=0):
    """A loop that a nest would leave for ``width`` neighbours."""
    v = nodes.fresh("v")
    return nodes.for_loop(v, width, body(v), "unroll", annotations={"tile.vector": width}, start=before)


def moves(body):
    """(buffer written, buffer read, bytes) of every wide access."""
    found = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "move")]
    return [(str(c.args[0].source.name), str(c.args[1].source.name), int(c.attrs[BYTES])) for c in found]


def vectorized(body, aligned):
    """The code alone."""
    return vectorize(body, WIDTHS, aligned)[0]


def everywhere(*buffers):
    return Aligned(dict.fromkeys(buffers, 16))


def check(body, aligned, buffers, values=(), capabilities=WIDTHS, layouts=None):
    """Vectorise, run both, compare all memory; return the new body."""
    new, _ = vectorize(body, capabilities, aligned, layouts)
    rng = np.random.default_rng(5)
    start = {}
    for b in buffers:
        shape, kind = nodes.shape_of(b), element_of(b)
        shape = [dict(values).get(n, n) if not isinstance(n, int) else n for n in shape]
        start[b] = (rng.integers(0, 100, shape) if kind.kind in "iu" else rng.normal(size=shape)).astype(kind)
    if any(kind.kind == "f" for kind in map(element_of, buffers)):
        next(a for b, a in start.items() if element_of(b).kind == "f").reshape(-1)[:3] = [np.nan, -0.0, np.inf]
    results = []
    for s in (body, new):
        arrays = {b: a.copy() for b, a in start.items()}
        Machine(arrays=arrays, values=dict(values)).run(s)
        results.append(arrays)
    for b in buffers:
        assert results[0][b].tobytes() == results[1][b].tobytes(), b.name
    return new


@pytest.mark.parametrize(("dtype", "width", "size"), [
    ("float32", 4, 16), ("float32", 8, 16), ("float16", 8, 16), ("int8", 16, 16), ("float64", 2, 16), ("int8", 4, 4),
    ("float16", 2, 4), ("uint8", 3, 0), ("float32", 6, 8),
])  # fmt: skip
def test_plain_copies(dtype, width, size):
    a, b = memory((3, 4 * width), dtype, "A"), memory((3, 8 * width), dtype, "B")
    t = nodes.fresh("t")
    body = nodes.for_loop(t, 12, vector_loop(width, lambda v: nodes.store(
        b, nodes.load(a, [t // 4, t % 4 * width + v]), [t // 4, t % 4 * width + v])))  # fmt: skip
    new = check(body, everywhere(a, b), [a, b])
    each = width * element_of(a).itemsize
    assert moves(new) == ([("B", "A", size)] * (each // size) if size else [])
    narrow = check(body, everywhere(a, b), [a, b], capabilities=NARROW)
    assert all(found <= 8 for _, _, found in moves(narrow))
    assert bool(collect(new, tirx.BufferStore)) == (not size)


def test_conversion_has_a_width_per_buffer():
    """float32 to float16 by eights: two accesses of 16 bytes in, one out."""
    a, b = memory((5, 16), "float32", "A"), memory((5, 16), "float16", "B", "shared")
    t = nodes.fresh("t")
    body = nodes.for_loop(t, 10, vector_loop(8, lambda v: nodes.store(
        b, nodes.load(a, [t // 2, t % 2 * 8 + v]), [t // 2, t % 2 * 8 + v])))  # fmt: skip
    new = check(body, everywhere(a), [a, b])
    assert moves(new) == [("A_v", "A", 16), ("A_v", "A", 16), ("B", "B_v", 16)]


def test_arithmetic_and_bindings():
    """Several loads of several widths, one of them twice, a scalar that does not move, a binding in between."""
    a, b, c = (memory((4, 24), "float32", n) for n in "ABC")
    row = memory((4,), "float32", "R")
    t = nodes.fresh("t")

    def body(v):
        x = nodes.fresh("x", "float32")
        at = [t // 3, t % 3 * 8 + v]
        return nodes.seq([
            tirx.Bind(x, nodes.load(a, at) * nodes.load(row, [t // 3])),
            nodes.store(c, x + nodes.load(b, [t // 3, t % 3 * 8 + v]) - nodes.load(a, at), at),
            nodes.store(b, x, at),
        ])  # fmt: skip

    new = check(nodes.for_loop(t, 12, vector_loop(8, body)), everywhere(a, b, c, row), [a, b, c, row])
    assert sorted(moves(new)) == sorted(
        [("A_v", "A", 16), ("B_v", "B", 16), ("C", "C_v", 16), ("B", "B_v", 16)] * 2
    )  # fmt: skip
    assert not [x for x in collect(new, ir.TensorLoad) if str(x.source.name) == "R" and not len(x.indices)]


def test_alignment_is_proven():
    a, b = memory((64,), "float32", "A"), memory((64,), "float32", "B")
    start = nodes.fresh("start")

    def copy(source, to=0):
        return vector_loop(4, lambda v: nodes.store(b, nodes.load(a, [source + v]), [v + to]))

    def wide(body, aligned, value):
        return moves(check(body, aligned, [a, b], {start: value}))

    every = everywhere(a, b)
    assert wide(copy(start * 4), every, 3) == [("B", "A", 16)]
    assert wide(copy(start * 2), every, 3) == [("B", "A", 8)] * 2
    assert wide(copy(start), every, 3) == [("B", "B_v", 16)]
    assert wide(copy(start * 4, 1), every, 3) == [("A_v", "A", 16)]
    assert wide(copy(start * 4), Aligned(), 3) == []
    assert wide(copy(start * 4), Aligned({a: 8, b: 16}), 3) == [("B", "A", 8)] * 2
    assert wide(copy(start), Aligned({a: 16, b: 16}, {start: 8}), 8) == [("B", "A", 16)]


def test_symbolic_rows():
    """Rows of n elements are aligned if n is; a buffer with strides has those."""
    n = nodes.fresh("n")
    a, b = memory((3, n), "float16", "A"), memory((3, n), "float16", "B")
    t = nodes.fresh("t")
    body = nodes.for_loop(t, 3, vector_loop(8, lambda v: nodes.store(b, nodes.load(a, [t, 8 + v]), [t, 8 + v])))
    values = {n: 16}
    assert moves(check(body, Aligned({a: 16, b: 16}, {n: 16}), [a, b], values)) == [("B", "A", 16)]
    assert moves(check(body, Aligned({a: 16, b: 16}, {n: 4}), [a, b], values)) == [("B", "A", 8)] * 2
    assert moves(check(body, everywhere(a, b), [a, b], values)) == []
    assert row_symbols(a) == {n}
    assert row_symbols(memory((n, 3), "float16", "C")) == set()
    strided = tirx.decl_buffer([4, 8], "float16", "S", strides=[12, 1], layout=None)
    assert strides_of(strided) == [12, 1]
    row = nodes.fresh("row")
    assert everywhere(strided).of(strided, [row, nodes.int_const(0)]) == 8
    assert everywhere(strided).of(strided, [row * 2, nodes.int_const(0)]) == 16


def test_columns_stay_scalar():
    columns = tirx.decl_buffer([8, 8], "float32", "A", strides=[1, 8], layout=None)
    b = memory((8, 8), "float32", "B")
    by_row = vector_loop(
        4, lambda v: nodes.store(b, nodes.load(columns, [nodes.int_const(0), v]), [nodes.int_const(0), v])
    )
    assert moves(vectorized(by_row, everywhere(columns, b))) == [("B", "B_v", 16)]
    down = vector_loop(4, lambda v: nodes.store(b, nodes.const(1, "float32"), [v, nodes.int_const(0)]))
    twice = vector_loop(4, lambda v: nodes.store(b, nodes.const(1, "float32"), [nodes.int_const(0), v * 2]))
    back = vector_loop(4, lambda v: nodes.store(b, nodes.const(1, "float32"), [nodes.int_const(0), 3 - v]))
    for body in (down, twice, back):
        assert check(body, everywhere(b), [b]).same_as(body)


def test_swizzled_shared_buffers():
    """What a layout keeps together may be moved together, and no more."""
    s, b = memory((8, 64), "float16", "S", "shared"), memory((8, 64), "float16", "B")
    t = nodes.fresh("t")

    def body(width):
        at = lambda v: [t // 4, t % 4 * width + v]  # noqa: E731
        return nodes.for_loop(t, 32, vector_loop(width, lambda v: nodes.store(b, nodes.load(s, at(v)), at(v))))

    swizzled = make_swizzled_layout((8, 64), 16)
    padded = column_major((64, 8))
    assert moves(check(body(8), everywhere(b), [s, b], layouts={s: swizzled})) == [("B", "S", 16)]
    assert moves(check(body(16), everywhere(b), [s, b], layouts={s: swizzled})) == [("B", "S", 16)] * 2
    assert contiguous_width(swizzled, 16) == 8
    assert contiguous_width(padded, 8) == 1
    transposed = column_major((8, 64))
    assert transposed.shape == (8, 64)
    assert moves(check(body(8), everywhere(b), [s, b], layouts={s: transposed})) == [("B", "B_v", 16)]


def test_guards():
    """A condition that all iterations agree on is around the vector access; of another one, that of the last is."""
    n = nodes.fresh("n")
    a, b = memory((16,), "float32", "A"), memory((16,), "float32", "B")

    def copy(v):
        return nodes.store(b, nodes.load(a, [4 + v]), [4 + v])

    for value in (0, 5, 6, 20):
        shared = vector_loop(4, lambda v: tirx.IfThenElse(nodes.int_const(4) < n, copy(v), None))
        new = check(shared, everywhere(a, b), [a, b], {n: value})
        assert moves(new) == [("B", "A", 16)]
        assert isinstance(new, tirx.IfThenElse)
        own = vector_loop(4, lambda v: tirx.IfThenElse(v + 4 < n, copy(v), None))
        new = check(own, everywhere(a, b), [a, b], {n: value})
        assert moves(new) == [("B", "A", 16)]
        assert str(new.condition).splitlines()[-1] == "7 < n"
        assert moves(new.else_case) == []
        chosen = vector_loop(4, lambda v: nodes.store(
            b, tirx.if_then_else(v + 4 < n, nodes.load(a, [4 + v]), nodes.const(0, "float32")), [4 + v]))  # fmt: skip
        assert moves(check(chosen, everywhere(a, b), [a, b], {n: value})) == [("B", "A", 16), ("B", "B_v", 16)]
    # A condition on memory that the loop itself writes is evaluated by each iteration.
    carried = vector_loop(4, lambda v: tirx.IfThenElse(nodes.load(b, [0]) > nodes.const(0, "float32"), copy(v), None))
    assert moves(check(carried, everywhere(a, b), [a, b])) == [("A_v", "A", 16)]


def test_aliases():
    a, b = memory((16,), "float32", "A"), memory((16,), "float32", "B")
    view = tirx.decl_buffer([16], "float32", "V", data=tirx.buffer_data(b), layout=None)
    declare = tirx.DeclBuffer(view, data=tirx.buffer_data(b))
    every = everywhere(a, b, view)
    one = nodes.const(1, "float32")

    updated = vector_loop(4, lambda v: nodes.store(b, nodes.load(b, [v]) + one, [v]))
    assert moves(check(updated, every, [a, b])) == [("B_v", "B", 16), ("B", "B_v", 16)]
    after = vector_loop(4, lambda v: nodes.seq([
        nodes.store(b, nodes.load(a, [v]), [v]), nodes.store(a, nodes.load(b, [v]) + one, [v + 8])]))  # fmt: skip
    assert ("B", "B_v", 16) not in moves(check(after, every, [a, b]))
    shifted = vector_loop(4, lambda v: nodes.store(b, nodes.load(b, [v + 4]), [v]))
    assert check(shifted, every, [a, b]).same_as(shifted)
    seen = nodes.seq([declare, vector_loop(4, lambda v: nodes.seq([
        nodes.store(b, nodes.load(a, [v]), [v]), nodes.store(a, nodes.load(view, [v]) + one, [v + 8])]))])  # fmt: skip
    found = moves(check(seen, every, [a, b]))
    assert not {"B", "V"} & {name for pair in found for name in pair[:2]}
    twice = vector_loop(4, lambda v: nodes.seq([nodes.store(b, nodes.load(a, [v]), [v]), nodes.store(b, one, [v])]))
    assert moves(check(twice, every, [a, b])) == [("A_v", "A", 16), ("B", "B_v", 16)]


def test_what_is_no_loop_of_neighbours():
    a, b = memory((16,), "float32", "A"), memory((16,), "float32", "B")
    v = nodes.fresh("v")
    plain = nodes.for_loop(v, 4, nodes.store(b, nodes.load(a, [v]), [v]), "unroll")
    inner = nodes.fresh("j")
    nested = vector_loop(4, lambda u: nodes.for_loop(inner, 2, nodes.store(b, nodes.load(a, [u]), [u + inner])))
    index = memory((16,), "int32", "I")
    gathered = vector_loop(4, lambda u: nodes.store(b, nodes.load(a, [nodes.load(index, [u])]), [u]))
    called = vector_loop(4, lambda u: nodes.store(b, nodes.tile_call("shfl", [nodes.load(a, [u])], ret="float32"), [u]))
    every = everywhere(a, b, index)
    for body in (plain, nested, called):
        assert vectorized(body, every).same_as(body)
    assert moves(vectorized(gathered, every)) == [("I_v", "I", 16), ("B", "B_v", 16)]


def test_factors():
    x, y = nodes.fresh("x"), nodes.fresh("y")
    known = {x: 12}
    for value, want in (
        (x, 12), (y, 1), (x * 2 + 8, 8), (x - 6, 6), (tirx.floordiv(x, 4), 3), (tirx.floordiv(x, 5), 1),
        (tirx.floormod(x, 8), 4), (nodes.cast(x, "int64"), 12), (tirx.Select(y > 0, x, x * 2), 12),
        (nodes.int_const(0), 0), (nodes.int_const(-8), 8), (x * y, 12), (tirx.shift_left(y, 3), 8), (tirx.min(x, 8), 4),
    ):  # fmt: skip
        assert factor(value, known) == want, value


def chosen(condition, x, other):
    return tirx.if_then_else(condition, x, other)


def test_rows_by_number_are_read_whole():
    """A condition that all iterations share is asked once, and the number of a row may be read from memory."""
    a, b, rows = memory((5, 16), "float16", "A"), memory((6, 16), "float16", "B"), memory((6,), "int32", "R")
    t = nodes.fresh("t")

    def body(v):
        row = nodes.load(rows, [t // 2])
        inside = tirx.all(row >= 0, row < 5)
        there = nodes.load(a, [tirx.floormod(row, 5), t % 2 * 8 + v])
        return nodes.store(b, chosen(inside, there, nodes.const(7, "float16")), [t // 2, t % 2 * 8 + v])

    new = check(nodes.for_loop(t, 12, vector_loop(8, body)), everywhere(a, b), [a, b, rows])
    assert sorted(moves(new)) == [("B", "A", 16), ("B", "B_v", 16)]


def test_conditions_that_differ_select():
    """Under a condition on the element, a binding, or memory that the loop writes, all elements are loaded."""
    a, b, r = memory((16,), "int32", "A"), memory((16,), "int32", "B"), memory((16,), "int32", "R")

    def by_element(v):
        return nodes.store(b, chosen(v < 3, nodes.load(a, [v]), nodes.const(7, "int32")), [v])

    def by_binding(v):
        x = nodes.fresh("x", "int32")
        inside = chosen(x > 50, nodes.load(a, [v]), nodes.const(7, "int32"))
        return nodes.seq([tirx.Bind(x, nodes.load(r, [v])), nodes.store(b, inside, [v])])

    def by_written(v):
        return nodes.store(b, chosen(nodes.load(b, [0]) > 50, nodes.load(a, [v]), nodes.const(7, "int32")), [v])

    def number_is_written(v):
        return nodes.store(b, nodes.load(a, [tirx.floormod(nodes.load(b, [1]), 4) + v]), [v])

    for body in (by_element, by_binding, by_written):
        assert ("A_v", "A", 16) in moves(check(vector_loop(4, body), everywhere(a, b, r), [a, b, r]))
    new = check(vector_loop(4, number_is_written), everywhere(a, b, r), [a, b, r])
    assert not {("A_v", "A", 16), ("B", "A", 16)} & set(moves(new))


def test_loads_under_conditions_stay_where_they_are_not_safe():
    """An element outside of the buffer, of a buffer that is written, or of shared memory is loaded as written."""
    b, short = memory((16,), "int32", "B"), memory((15,), "int32", "A")
    t, zero = nodes.fresh("t"), nodes.const(0, "int32")

    def body(a, at):
        return nodes.for_loop(t, 4, vector_loop(4, lambda v: nodes.store(
            b, chosen(tirx.floormod(v, 3) < 2, nodes.load(a, [at + v]), zero), [t * 4 + v])))  # fmt: skip

    for a, at in ((short, nodes.int_const(8)), (memory((16,), "int32", "A", "shared"), t * 4)):
        new = check(body(a, at), everywhere(a, b), [a, b])
        assert [m for m in moves(new) if m[1] == "A"] == ([("A_v", "A", 16)] if a is short else [])
    assert [m for m in moves(vectorized(body(short, t * 4), everywhere(short, b))) if m[1] == "A"] == []
    a = memory((16,), "int32", "A")
    written = nodes.seq([body(a, t * 4), nodes.store(a, zero, [0])])
    assert [m for m in moves(check(written, everywhere(a, b), [a, b])) if m[1] == "A"] == []


@pytest.mark.parametrize("width", [4, 8])
def test_stores_under_conditions_that_differ(width):
    """A vector is stored whole if all its elements are, otherwise by element; the other elements keep their values."""
    m, x, y, z = (
        memory((5, width), k, n) for k, n in (("int8", "M"), ("float32", "X"), ("float16", "Y"), ("int32", "Z"))
    )
    t = nodes.fresh("t")

    def body(v):
        flag = nodes.load(m, [t, v])
        other = nodes.store(z, nodes.const(-1, "int32"), [t, v])
        return nodes.seq([
            tirx.IfThenElse(flag > nodes.const(60, "int8"), nodes.seq([
                nodes.store(y, nodes.cast(nodes.load(x, [t, v]), "float16"), [t, v]),
                nodes.store(z, nodes.cast(flag, "int32"), [t, v])]), other)])  # fmt: skip

    new = check(nodes.for_loop(t, 5, vector_loop(width, body)), everywhere(m, x, y, z), [m, x, y, z])
    found = moves(new)
    assert ("M_v", "M", width) in found
    assert ("X_v", "X", 16) in found
    assert ("Y", "Y_v", 2 * width) in found
    assert ("Z", "Z_v", 16) in found
    assert [
        s for s in collect(new, tirx.IfThenElse) if s.else_case is not None and moves(s) == [("Y", "Y_v", 2 * width)]
    ]


def test_divisors_that_decide_conditions_are_required():
    n, k = nodes.fresh("n"), nodes.fresh("k")
    a, b = memory((n,), "float32", "A"), memory((3, k), "float32", "B")
    t = nodes.fresh("t")

    def body(v):
        at = [t * 4 + v]
        return tirx.IfThenElse(t * 4 + v < k, nodes.store(a, nodes.load(a, at) * nodes.const(2, "float32"), at), None)

    loop = vector_loop(4, body)
    new, needed = vectorize(loop, WIDTHS, Aligned({a: 16, b: 16}, {k: 4}))
    assert isinstance(new, tirx.IfThenElse)
    assert new.else_case is None
    assert needed == Aligned({a: 16}, {k: 4})


def test_choices_within_choices():
    """Two conditions are decided around loops, the outer one first; a third one stays inside."""
    arrays = [memory((16,), "int32", name) for name in "ABCD"]
    b, r = memory((16,), "int32", "O"), memory((3,), "int32", "R")

    def body(v):
        x = nodes.load(arrays[0], [v])
        for i, other in enumerate(arrays[1:]):
            x = chosen(nodes.load(r, [i]) > 50, nodes.load(other, [v]), x)
        return nodes.store(b, x, [v])

    new = check(vector_loop(4, body), everywhere(*arrays, b), [*arrays, b, r])
    assert len(collect(new, tirx.IfThenElse)) == 2


def test_views_begin_where_their_buffer_does():
    """A view has the alignment of its buffer, which the launch then has to promise."""
    a, b = memory((64,), "float16", "A"), memory((16,), "uint64", "B")
    view = tirx.decl_buffer([16], "uint64", "view", data=tirx.buffer_data(a), layout=None)
    t = nodes.fresh("t")
    copy = nodes.for_loop(t, 8, vector_loop(2, lambda v: nodes.store(b, nodes.load(view, [t * 2 + v]), [t * 2 + v])))
    body = nodes.seq([tirx.DeclBuffer(view, data=tirx.buffer_data(a)), copy])
    assert moves(vectorized(body, everywhere(a, b))) == [("B", "view", 16)]
    assert moves(vectorized(body, Aligned({b: 16}))) == [("B", "B_v", 16)]
    _, promised = vectorize(body, WIDTHS, everywhere(a, b))
    assert promised.addresses[a] == 16


def test_bindings_that_iterations_share_are_made_before_them():
    """The number of a row is read once; a binding behind a store, or of an element, stays where it is."""
    a, b, rows = memory((5, 16), "float16", "A"), memory((6, 16), "float16", "B"), memory((6,), "int32", "R")
    t = nodes.fresh("t")

    def body(v):
        row, again = nodes.fresh("row"), nodes.fresh("again")
        there = nodes.load(a, [tirx.floormod(row, 5), t % 2 * 8 + v])
        return nodes.seq([
            tirx.Bind(row, nodes.load(rows, [t // 2])),
            nodes.store(b, chosen(tirx.all(row >= 0, row < 90), there, there), [t // 2, t % 2 * 8 + v]),
            tirx.Bind(again, nodes.load(rows, [t // 2]) + 1),
            nodes.store(rows, again, [t // 2]),
        ])  # fmt: skip

    def first_two(v):
        return nodes.seq(list(body(v).seq)[:2])

    new = check(nodes.for_loop(t, 12, vector_loop(8, first_two)), everywhere(a, b), [a, b, rows])
    assert set(moves(new)) == {("B", "A", 16)}
    new = check(nodes.for_loop(t, 12, vector_loop(8, body)), everywhere(a, b), [a, b, rows])
    assert ("B", "A", 16) not in moves(new)


def test_a_condition_of_many_statements_is_tried_once():
    a, b = memory([64], "float32", "a"), memory([64], "float32", "b")
    n, v = nodes.fresh("n"), nodes.fresh("v")
    loads = [
        tirx.if_then_else(v + k % 2 < n, nodes.load(a, [v + k % 2]), nodes.const(0.0, "float32")) for k in range(30)
    ]
    body = nodes.seq([nodes.store(b, x, [v + k]) for k, x in enumerate(loads)])
    assert len(leading_conditions(body)) == 2
