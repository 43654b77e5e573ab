"""Trim tiles to the leading rows that reach a result.

Programs pad the rows of a product to the least that matrix instructions take: a step of decoding has one query, and a
tile of 16 of them. Rows that no result depends on are not computed here. The rows that each statement needs follow from
its users, backwards from the stores to tensors: a product and a reduction need the rows of their result, a loop over
elements those that its body stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tile_core.analysis.affine import linear_form
from tile_core.analysis.ranges import Ranges
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Operand, Stmt, Var
from tile_core.cpu.fuse_loops import counts
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass

__all__ = ["trim_tiles"]

#: Operators through which a callee may use any element.
_ADDRESSES = ("address_of", "tvm_access_ptr")


def trim_tiles(body: Stmt, layouts: Collection[str] = ()) -> Stmt:
    """Return the program with tiles of the rows that reach a result.

    Parameters
    ----------
    body
        A program before its tile ops are lowered.
    layouts
        Names of buffers with a layout of their own, which are left alone.
    """
    viewed = {v for d in collect(body, tirx.DeclBuffer) for v in (d.buffer, *collect(d.data, tirx.Var))}
    tiles = {
        s.buffer: int(shape[0])
        for s in collect(body, tirx.AllocBuffer)
        if nodes.scope_of(s.buffer) in ("shared", "local.fragment") and s.buffer not in viewed
        for shape in [nodes.shape_of(s.buffer)]
        if s.buffer.name not in layouts and len(shape) in (1, 2) and all(isinstance(x, int) for x in shape)
    }
    needs = _Needs(tiles)
    while True:
        before = dict(needs.rows), dict(needs.trips)
        needs.stmt(body)
        if before == (needs.rows, needs.trips):
            break
    kept = {tile: max(needs.rows.get(tile, 0), 1) for tile in tiles}
    shorter = {tile: _shortened(tile, rows) for tile, rows in kept.items() if rows < tiles[tile]}
    return _Trim(needs, shorter).stmt(substitute(body, shorter)) if shorter else body


@dataclass(frozen=True)
class _RowsOfOp:
    """Operands whose rows belong to those of an op's result: position and dimension."""

    result: tuple[int, int]
    sources: tuple[tuple[int, int], ...]


class _Needs:
    """Finds the rows of tiles and the iterations of parallel loops that results depend on.

    Both only grow from one visit of the program to the next.
    """

    def __init__(self, tiles: dict[BufferVar, int]) -> None:
        self.tiles = tiles
        self.rows: dict[BufferVar, int] = {}
        self.trips: dict[Var, int] = {}
        self.ranges = Ranges()
        #: The parallel loops around a statement, and the conditions under which it runs.
        self.loops: dict[Var, int] = {}
        self.conditions: list[Expr] = []

    def stmt(self, s: Stmt) -> None:
        """Record the needs of a statement."""
        known: dict[type, Callable[[Stmt], None]] = {
            tirx.SeqStmt: self.sequence, tirx.For: self.loop, tirx.IfThenElse: self.branch,
            tirx.BufferStore: self.store, tirx.AllocBuffer: lambda _: None,
        }  # fmt: skip
        if type(s) in known:
            known[type(s)](s)
        elif type(s) is tirx.Bind and not nodes.is_tile_call(s.value):
            self.read(s.value)
        elif is_op(s) and not self.loops:
            self.op(s)
        else:
            self.opaque(s)

    def sequence(self, s: Stmt) -> None:
        """Record the needs of each statement."""
        for part in s.seq:
            self.stmt(part)

    def loop(self, s: Stmt) -> None:
        """Record the needs of a loop."""
        self.read(s.min)
        self.read(s.extent)
        self.ranges.loop(s)
        if role(s) != "parallel" or not counts(s):
            self.stmt(s.body)
            return
        self.loops[s.loop_var] = int(nodes.as_int(s.extent))
        self.stmt(s.body)
        del self.loops[s.loop_var]

    def branch(self, s: Stmt) -> None:
        """Record the needs of a branch."""
        self.read(s.condition)
        self.conditions.append(s.condition)
        self.stmt(s.then_case)
        self.conditions.pop()
        if s.else_case is not None:
            self.stmt(s.else_case)

    def store(self, s: Stmt) -> None:
        """Record the needs of a store."""
        for index in s.indices:
            self.read(index)
        self.read(s.value)
        first = s.indices[0] if len(s.indices) else None
        if s.buffer in self.tiles and first is not None:
            if self.is_row(first) and self.loops[first] == self.tiles[s.buffer]:
                needed = self.rows.get(s.buffer, 0)
                if needed:
                    self.run(first, needed)
                return
            self.need(s.buffer)
        self.run(None, 0)

    def run(self, row: Var | None, needed: int) -> None:
        """Need the loops around a statement, of the one over rows the first iterations."""
        for var, extent in self.loops.items():
            most = needed if row is not None and var.same_as(row) else self.bound(var, extent)
            self.trips[var] = max(self.trips.get(var, 0), most)

    def bound(self, var: Var, extent: int) -> int:
        """Return the number of first iterations that conditions leave."""
        for condition in self.conditions:
            for low, high, strict in _comparisons(condition):
                form = linear_form(high - low, [var]) if nodes.dtype_of(low).startswith("int") else None
                if form is not None and form.steps == (-1,):
                    extent = min(extent, max(0, self.ranges.of(form.rest)[1] + (0 if strict else 1)))
        return extent

    def read(self, e: Expr) -> None:
        """Need the rows that an expression reads."""
        if any(nodes.is_tile_call(c) or nodes.operator_name(c) in _ADDRESSES for c in collect(e, ir.Call)):
            for var in collect(e, tirx.Var):
                self.need(var)
        for load in collect(e, ir.TensorLoad):
            if load.source in self.tiles:
                first = load.indices[0]
                self.need(load.source, self.trips.get(first, 0) if self.is_row(first) else None)

    def is_row(self, index: Expr) -> bool:
        """Whether an index is the variable of a parallel loop."""
        return type(index) is tirx.Var and index in self.loops

    def need(self, tile: BufferVar, rows: int | None = None) -> None:
        """Need the first rows of a tile, all if not given."""
        if tile in self.tiles:
            most = self.tiles[tile]
            self.rows[tile] = max(self.rows.get(tile, 0), most if rows is None else min(rows, most))

    def opaque(self, s: Stmt) -> None:
        """Need everything that a statement uses."""
        for var in collect(s, tirx.Var):
            self.need(var)
        for inner in collect(s, tirx.For):
            self.ranges.loop(inner)
            self.trips[inner.loop_var] = 1 << 31
        self.run(None, 0)

    def op(self, s: Stmt) -> None:
        """Record the needs of a tile op."""
        call = OpCall.decode(s)
        shared = rows_of(call, self.tiles)
        if shared is None:
            self.opaque(s)
            return
        needed = self.needed(call, shared)
        own = {position for position, _ in (shared.result, *shared.sources)}
        for position, dim in shared.sources:
            view = call.args[position]
            if isinstance(view, View) and (dim == 0 or view.buffer not in self.tiles):
                self.need(view.buffer, needed)
            elif isinstance(view, View):
                self.need(view.buffer)
        for position, arg in enumerate(call.args):
            if isinstance(arg, View):
                for low in (m for m in arg.mins if not isinstance(m, int)):
                    self.read(low)
                if position not in own:
                    self.need(arg.buffer)
            else:
                self.read(arg)

    def needed(self, call: OpCall, shared: _RowsOfOp) -> int:
        """Return the rows of a tile op's result that anything depends on."""
        position, dim = shared.result
        view = call.args[position]
        assert isinstance(view, View)
        if view.buffer in self.tiles:
            return self.rows.get(view.buffer, 0)
        low = view.mins[dim]
        left = view.buffer.shape[dim] - low
        most = nodes.as_int(left)
        return max(0, min(view.extents[dim], most if isinstance(most, int) else self.ranges.of(left)[1]))


def rows_of(call: OpCall, tiles: Collection[BufferVar]) -> _RowsOfOp | None:
    """Return operands whose rows belong together; ``None`` if other rows matter."""
    views = [a for a in call.args if isinstance(a, View)]
    forced = attributes.VARIANT in call.attrs
    if forced or call.name not in _KNOWN or any(v.buffer in tiles and not v.is_whole for v in views):
        return None
    return _KNOWN[call.name](call, tiles)


def _of_fill(call: OpCall, tiles: Collection[BufferVar]) -> _RowsOfOp | None:
    return _RowsOfOp((0, 0), ()) if call.args[0].buffer in tiles else None


def _of_copy(call: OpCall, tiles: Collection[BufferVar]) -> _RowsOfOp | None:
    if len(call.args) != 2:
        return None
    pairs = [[d for d, e in enumerate(v.extents) if e != 1] for v in call.args]
    if [v.shape for v in call.args[1:]] != [call.args[0].shape] or not pairs[0]:
        return None
    whole = [at for at, v in enumerate(call.args) if v.buffer in tiles]
    # Rows are the first dimension of each tile, and the same one of both operands.
    if not whole or any(pairs[at][0] != 0 for at in whole):
        return None
    return _RowsOfOp((1, pairs[1][0]), ((0, pairs[0][0]),))


def _of_gemm(call: OpCall, tiles: Collection[BufferVar]) -> _RowsOfOp | None:
    a, _, c = call.args[:3]
    if len(call.args) != 4 or c.buffer not in tiles or len(c.extents) != 2 or len(a.extents) != 2:
        return None
    return _RowsOfOp((2, 0), ((0, 1 if bool(call.attrs[attributes.TRANSPOSE_A]) else 0), (2, 0)))


def _of_reduce(call: OpCall, tiles: Collection[BufferVar]) -> _RowsOfOp | None:
    src, dst = call.args
    if dst.buffer not in tiles or int(call.attrs[attributes.DIM]) != 1 or len(src.extents) != 2 or src.extents[0] == 1:
        return None
    return _RowsOfOp((1, 0), ((0, 0), (1, 0))) if len(dst.extents) == 1 else None


_KNOWN: dict[str, Callable[[OpCall, Collection[BufferVar]], _RowsOfOp | None]] = {
    "fill": _of_fill, "copy": _of_copy, "gemm": _of_gemm, "reduce": _of_reduce,
}  # fmt: skip


class _Trim(StmtRewriter):
    """Shortens loops, operands and allocations; the buffers in the body are the shorter ones already."""

    def __init__(self, needs: _Needs, shorter: dict[BufferVar, BufferVar]) -> None:
        self.needs = needs
        self.shorter = shorter
        self.longer = {new: old for old, new in shorter.items()}

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.shorter.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, dict(s.annotations or {}))

    def visit_For(self, s: Stmt) -> Stmt:
        s = super().visit_For(s)
        if role(s) != "parallel" or not counts(s):
            return s
        trips = max(self.needs.trips.get(s.loop_var, 0), 1)
        return s if trips >= nodes.as_int(s.extent) else replace_for(s, s.body, extent=nodes.int_const(trips))

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s):
            return s
        # Regions still have the extents of the longer tiles.
        call = OpCall.decode(s)
        args = [self.before(a) for a in call.args]
        old = OpCall(call.name, tuple(args), call.attrs, call.where, call.span)
        shared = rows_of(old, self.needs.tiles)
        if shared is None:
            return s
        rows = max(self.needs.needed(old, shared), 1)
        new = list(s.value.args)
        for position, dim in (shared.result, *shared.sources):
            view = call.args[position]
            extents = list(view.extents)
            extents[dim] = min(rows, extents[dim])
            new[position] = nodes.region(view.buffer, view.mins, extents)
        return tirx.Evaluate(nodes.tile_call(call.name, new, structural.entries(s.value.attrs)), s.span)

    def before(self, arg: Operand) -> Operand:
        """Return an operand with the buffer that the program has."""
        if not isinstance(arg, View):
            return arg
        return View(self.longer.get(arg.buffer, arg.buffer), arg.mins, arg.extents)


def _shortened(tile: BufferVar, rows: int) -> BufferVar:
    shape = [rows, *nodes.shape_of(tile)[1:]]
    return tirx.decl_buffer(
        shape, nodes.element_type(tile), tile.name, scope=nodes.scope_of(tile), layout=None,
        data_alignment=tile.ty.data_alignment,
    )  # fmt: skip


def _comparisons(condition: Expr) -> Iterator[tuple[Expr, Expr, bool]]:
    """Yield lesser and greater sides of implied comparisons, and whether they differ."""
    if type(condition) is tirx.And:
        yield from _comparisons(condition.a)
        yield from _comparisons(condition.b)
    elif type(condition) in (tirx.LT, tirx.LE):
        yield condition.a, condition.b, type(condition) is tirx.LT
    elif type(condition) in (tirx.GT, tirx.GE):
        yield condition.b, condition.a, type(condition) is tirx.GT
