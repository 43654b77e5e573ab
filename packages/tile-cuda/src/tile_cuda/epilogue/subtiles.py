"""Division of statements on whole tiles into statements on subtiles of rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tile_core.analysis.flow import names_of
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ROLE, VARIANT
from tile_core.ir.visit import StmtRewriter, collect, loads_of, map_expr, renamed, role, substitute
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.ops.effects import effects

#: Ops whose elements are independent, with the operands that are tiles of one shape.
_ELEMENTWISE = {"copy": (0, 1), "fill": (0,), "atomic_tile": (0, 1)}


class NotDivisible(Exception):
    """A statement that takes all of a tile at once: which tile, and how."""

    def __init__(self, buffer: BufferVar, reason: str) -> None:
        super().__init__(buffer, reason)
        self.buffer, self.reason = buffer, reason


def divided(
    s: Stmt, shape: Sequence[int], own: Mapping[BufferVar, BufferVar], at: Sequence[Expr], extents: Sequence[int],
    example: BufferVar,
) -> Stmt:  # fmt: skip
    """Return the part of a statement on two-dimensional tiles that works on one subtile.

    Parameters
    ----------
    shape
        Of the tiles.
    own
        By tile the buffer that replaces it for the subtile.
    at, extents
        First row and column of the subtile, and its extents.
    example
        The tile that an error names.

    Raises
    ------
    NotDivisible
        The statement is neither a supported op nor a loop over equal element positions of all tiles.
    """
    if is_op(s):
        return _op(s, shape, own, at, extents, example)
    if isinstance(s, tirx.For) and role(s) == "parallel":
        return _nest(s, shape, own, at, extents, example)
    raise NotDivisible(example, f"a statement {_line(s)}uses single elements of it")


def fragments_of(s: Stmt) -> list[BufferVar]:
    """Return the fragments that a statement uses."""
    return [b for b in dict.fromkeys(_accessed(s)) if nodes.scope_of(b) == "local.fragment"]


def reads_of(parts: Sequence[Stmt], buffer: BufferVar) -> bool:
    """Whether statements read a tile before the first of them overwrites all of it."""
    first = next(s for s in parts if buffer in _accessed(s))
    if is_op(first):
        return any(v.buffer.same_as(buffer) for v in effects(first)[0])
    inner = _innermost(first)
    whole = list(inner.seq) if isinstance(inner, tirx.SeqStmt) else [inner]
    certain = any(isinstance(s, tirx.BufferStore) and s.buffer.same_as(buffer) for s in whole)
    return not certain or any(x.source.same_as(buffer) for x in loads_of(first))


def writes_of(parts: Sequence[Stmt], buffer: BufferVar) -> bool:
    """Whether statements write a tile."""
    return any(buffer in _written(s) for s in parts)


def may_move(parts: Sequence[Stmt], own: Iterable[BufferVar]) -> bool:
    """Whether parts of statements are independent, apart from ``own``, and may be interleaved."""
    apart, moving = set(own), [s for s in parts if not isinstance(s, tirx.AllocBuffer)]
    for at, s in enumerate(moving):
        if isinstance(s, tirx.Bind):
            if collect(s.value, (ir.Call, ir.TensorLoad)):
                return False
            continue
        others = {b for i, x in enumerate(moving) if i != at for b in _accessed(x)}
        if (_written(s) - apart) & others:
            return False
    return True


def _op(
    s: Stmt, shape: Sequence[int], own: Mapping[BufferVar, BufferVar], at: Sequence[Expr], extents: Sequence[int],
    example: BufferVar,
) -> Stmt:  # fmt: skip
    call = OpCall.decode(s)
    tiles = _ELEMENTWISE.get(call.name, ())
    if not tiles or VARIANT in call.attrs or sum(isinstance(a, View) for a in call.args) != len(tiles):
        raise NotDivisible(example, f"{call.written} {_line(s)}needs all of it")
    args = list(s.value.args)
    for position in tiles:
        view: View = call.args[position]
        whole = tuple(view.extents) == tuple(shape) and all(nodes.as_int(m) == 0 for m in view.mins)
        if view.buffer in own and whole:
            args[position] = nodes.region(own[view.buffer], [nodes.int_const(0)] * 2, list(extents))
            continue
        wide = [d for d, n in enumerate(view.extents) if n != 1]
        if view.buffer in own or tuple(view.shape) != tuple(shape):
            raise NotDivisible(example, f"{call.written} {_line(s)}uses a part of it")
        mins, sizes = list(view.mins), list(view.extents)
        for d, first, size in zip(wide, at, extents, strict=True):
            mins[d], sizes[d] = _sum(mins[d], first), size
        args[position] = nodes.region(view.buffer, mins, sizes)
    return with_attributes(s, {}, args)


def _nest(
    s: Stmt, shape: Sequence[int], own: Mapping[BufferVar, BufferVar], at: Sequence[Expr], extents: Sequence[int],
    example: BufferVar,
) -> Stmt:  # fmt: skip
    loops, body = [s], s.body
    while isinstance(body, tirx.For) and role(body) == "parallel" and len(loops) < 2:
        loops.append(body)
        body = body.body
    sizes = [nodes.as_int(x.extent) for x in loops]
    if sizes != list(shape) or any(nodes.as_int(x.min) != 0 for x in loops):
        raise NotDivisible(example, f"a loop {_line(s)}is not over its {' x '.join(map(str, shape))} elements")
    if any(nodes.is_tile_call(c) and not str(c.op.name).startswith("tile.per_thread") for c in collect(body, ir.Call)):
        raise NotDivisible(example, f"a loop {_line(s)}calls ops")
    old = [x.loop_var for x in loops]
    new = [nodes.fresh(str(v.name), nodes.dtype_of(v)) for v in old]
    accesses = [x.indices for x in loads_of(body) if x.source in own]
    accesses += [x.indices for x in collect(body, tirx.BufferStore) if x.buffer in own]
    if any(len(p) != 2 or any(not i.same_as(v) for i, v in zip(p, old, strict=True)) for p in accesses):
        raise NotDivisible(example, f"a loop {_line(s)}uses an element at another position")
    body = _Elements(own, new).stmt(body)
    moved = {v: _sum(n, nodes.cast(a, nodes.dtype_of(v))) for v, n, a in zip(old, new, at, strict=True)}
    body = substitute(body, moved)
    for loop, var, size in reversed(list(zip(loops, new, extents, strict=True))):
        notes = {k: v for k, v in structural.entries(loop.annotations).items() if k != ROLE}
        body = nodes.for_loop(var, size, body, "parallel", annotations=notes, span=loop.span)
    return renamed(body)


class _Elements(StmtRewriter):
    """Puts the element of an iteration in the place of that of whole tiles."""

    def __init__(self, own: Mapping[BufferVar, BufferVar], new: Sequence[Any]) -> None:
        self.own, self.new = own, new

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        own = self.own.get(e.source)
        return e if own is None else nodes.load(own, list(self.new))

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        s, own = super().visit_BufferStore(s), self.own.get(s.buffer)
        return s if own is None else nodes.store(own, s.value, list(self.new), s.span)


def _innermost(s: Stmt) -> Stmt:
    while isinstance(s, tirx.For) and role(s) == "parallel":
        s = s.body
    return s


def _accessed(s: Stmt) -> list[BufferVar]:
    """Return the buffers that a statement names."""
    return [v for v in names_of(s) if tirx.is_buffer_var(v)]


def _written(s: Stmt) -> set[BufferVar]:
    """Return the buffers that a statement writes."""
    found = {x.buffer for x in collect(s, tirx.BufferStore)}
    ops = [x for x in collect(s, (tirx.Evaluate, tirx.Bind)) if nodes.is_tile_call(x.value)]
    return found | {v.buffer for x in ops for v in effects(x)[1]}


def _sum(a: Expr, b: Expr) -> Expr:
    zero = nodes.as_int(b) == 0 and not isinstance(nodes.as_int(b), bool)
    return a if zero else a + b


def _line(s: Stmt) -> str:
    where = nodes.where_of(s)
    return "" if where is None else f"in line {where.line} "
