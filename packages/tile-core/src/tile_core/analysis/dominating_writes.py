"""Tensors whose initial content is unused: each read is dominated by a write.

A write dominates a read if every path to the read passes it (A. Aho et al., *Compilers*, section 9.6). Here it is an
earlier statement of the same scope, or of one around it, that stores the same elements: equal indices, equal regions
or the whole tensor. A loop's stores hold for all of its iterations once it has ended: a later loop over the same range
may read them back, and any statement if they fill the tensor, as tiles of a grid do. Stores in branches (except one
that only keeps an index inside of the tensor), in loops that may not run or end early, and through views are passed
over.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tile_core.analysis.accesses import Access, Effects
from tile_core.analysis.affine import LinearForm, linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, runs
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, substitute


def initialised_by_program(body: Stmt, effects: Effects) -> set[str]:
    """Return the names of the buffers whose reads are all dominated by writes.

    Parameters
    ----------
    body
        A program.
    effects
        From a decoded tile call (statement or binding) to (views read, views written).
    """
    flow = Flow(body, effects)
    exposed = {str(v.name) for view in collect(body, tirx.DeclBuffer) for v in collect(view.data, tirx.Var)}
    writes: dict[str, list[Access]] = {}
    for a in flow.accesses:
        name = str(a.buffer.name)
        if a.how not in ("element", "tile"):
            exposed.add(name)
        elif a.write:
            writes.setdefault(name, []).append(a)
        elif name not in exposed and not any(_covers(flow, w, a) for w in reversed(writes.get(name, []))):
            exposed.add(name)
    return set(writes) - exposed


def _covers(flow: Flow, w: Access, r: Access) -> bool:
    """Whether an earlier access writes all elements that a later one reads, on each path."""
    # What memory holds may change before the read, and an equal index is another element then.
    if not w.buffer.same_as(r.buffer) or any(map(loads_of, _expressions(w))) or flow.exclusive(w.point, r.point):
        return False
    over = _ended(flow, w, flow.apart(w.point, r.point))
    if over is None:
        return False
    if _is_whole(w) or _fills(flow, w, over):
        return True
    if not all(map(_equal, _extents(w), _extents(r))):
        return False
    return any(
        all(_equal(substitute(m, names) if names else m, r) for m, r in zip(w.indices, r.indices, strict=True))
        for names in _namings(over, r.loops)
    )


def _ended(flow: Flow, w: Access, around: Sequence[Point]) -> list[Stmt] | None:
    """Return the ended loops around a write, or ``None`` if it may have been skipped."""
    over = []
    for p in around:
        if p.kind == "mark" and not p.is_part():
            continue
        if p.kind == "if" and p.contains(w.point) and _guards(p, w):
            continue
        if p.kind != "for" or any(map(loads_of, p.own)) or collect(p.stmt.body, (tirx.Break, tirx.Continue)):
            return None
        if any(p.stmt.loop_var.same_as(v) for m in _expressions(w) for v in collect(m, tirx.Var)):
            over.append(p.stmt)
        elif not runs(p):
            return None
    return over


def _guards(branch: Point, w: Access) -> bool:
    """Whether a condition skips only stores outside of the tensor.

    ``i < n and j < m`` for an element ``[i, j]`` does.
    """
    conditions = [branch.stmt.condition]
    while any(isinstance(c, tirx.And) for c in conditions):
        conditions = [x for c in conditions for x in ((c.a, c.b) if isinstance(c, tirx.And) else (c,))]
    inside = next((c for c, holds in w.point.conditions if c.same_as(branch.stmt.condition) and holds), None)
    bounds = list(zip(w.indices, w.buffer.shape, strict=True)) if w.extents is None else []
    return inside is not None and all(
        isinstance(c, tirx.LT) and any(_equal(c.a, i) and _equal(c.b, n) for i, n in bounds) for c in conditions
    )


def _fills(flow: Flow, w: Access, over: Sequence[Stmt]) -> bool:
    """Whether the iterations of ended loops write all elements: the loops count through each dimension.

    ``32 * bx + i`` does so with ``i`` up to 32 and ``32 * extent(bx)`` of at least the dimension, if no other dimension
    uses these loops.
    """
    analyzer, left = Analyzer(), list(over)
    for index, extent, size in zip(w.indices, _extents(w), w.buffer.shape, strict=True):
        while flow.binds.keys() & (names := collect(index, tirx.Var) if not isinstance(index, int) else []):
            index = substitute(index, {v: flow.binds[v] for v in names if v in flow.binds})
        loops = [x for x in left if any(x.loop_var.same_as(v) for v in names)]
        form = linear_form(index, [x.loop_var for x in loops]) if loops else LinearForm((), index)
        if form is None:
            return False
        first, covered, size = (nodes.cast(nodes.int_const(0) + e, "int64") for e in (form.rest, extent, size))
        for c, loop in sorted(zip(form.steps, loops, strict=True), key=lambda x: x[0]):
            if c <= 0 or not analyzer.can_prove(covered >= c):
                return False
            start, count = (nodes.cast(nodes.int_const(0) + e, "int64") for e in (loop.min, loop.extent))
            first, covered = first + c * start, c * (count - 1) + covered
        if not analyzer.can_prove(tirx.And(tirx.EQ(first, nodes.const(0, "int64")), covered >= size)):
            return False
        left = [x for x in left if x not in loops]
    return not left


def _expressions(a: Access) -> list[Expr]:
    return [e for e in a.indices if not isinstance(e, int)]


def _extents(a: Access) -> tuple[Expr, ...]:
    return a.extents if a.extents is not None else (1,) * len(a.indices)


def _is_whole(a: Access) -> bool:
    shape = tuple(map(nodes.as_int, a.buffer.shape))
    extents = _extents(a)
    starts_at_0 = all(isinstance(m, int) and m == 0 for m in map(nodes.as_int, a.indices))
    return starts_at_0 and len(shape) == len(extents) and all(map(_equal, shape, extents))


def _namings(over: Sequence[Stmt], loops: tuple[Stmt, ...]) -> Iterator[dict[Var, Var]]:
    """Yield the renamings of ended loops' variables to running loops over the same range."""
    for chosen in itertools.permutations(loops, len(over)):
        if all(_equal(a.min, b.min) and _equal(a.extent, b.extent) for a, b in zip(over, chosen, strict=True)):
            yield {a.loop_var: b.loop_var for a, b in zip(over, chosen, strict=True)}


def _equal(a: Expr, b: Expr) -> bool:
    a, b = nodes.as_int(a), nodes.as_int(b)
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(tvm_ffi.structural_equal(a, b, map_free_vars=False))
