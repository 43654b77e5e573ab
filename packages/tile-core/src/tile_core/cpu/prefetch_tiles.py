"""Prefetch tiles of global memory while other loops compute.

A block loads its tiles, computes, and stores: a processor waits for memory at both ends and leaves it idle between. Its
own prefetcher sees an access too late, since it begins anew at each page. So the loops of a block fetch the lines that
the next block loads, and make the lines their own that the block stores later. The same holds for the rows of a block
which a loop takes one after the other. The last block or row prefetches its own lines again: no address is outside of a
tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.fuse_loops import counts, ends_of, is_plain
from tile_core.cpu.tile2d import prefetch
from tile_core.cpu.vectorize import has_vector_form, lanes_of
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, renamed, replace_for, role, statements, substitute
from tile_core.records import dataclass

__all__ = ["prefetch_tiles"]

_LINE = 64
#: Bytes of a tile: fewer are one or two lines, more do not stay in L2 beside a block's scratch.
_LEAST, _MOST = 512, 1 << 17
#: Bytes of a tile that goes into L1; larger ones would replace the block's scratch.
_NEAR = 4096
#: Bytes of a row that ends before the processor's own prefetcher is ahead of the loads.
_SHORT = 1024
#: Elements of a loop with prefetches, at least.
_WORK = 512
#: Lines for each step of a loop, at most.
_PER_STEP = 4
#: Vectors of a step where a loop of elements gets prefetches.
_STEP = 4


_ACCESSES = (tirx.BufferStore, ir.TensorLoad)


def prefetch_tiles(body: Stmt, vector_bits: int) -> Stmt:
    """Return the body with prefetches in loops of blocks that have several.

    Parameters
    ----------
    body
        A program before vectorization, whose grid is one loop.
    vector_bits
        Width of the processor's vectors; 0 prefetches nothing.
    """
    return _PrefetchTiles(vector_bits).stmt(body) if vector_bits else body


@dataclass(frozen=True)
class _TensorTile:
    """A box of a tensor: its first element, its rows and the elements of one."""

    buffer: BufferVar
    corner: tuple[Expr, ...]
    rows: int
    columns: int
    writes: bool

    @property
    def lines(self) -> int:
        return self.rows * self.lines_of_row

    @property
    def lines_of_row(self) -> int:
        return -(-self.columns * self.bytes // _LINE)

    @property
    def bytes(self) -> int:
        return DTYPES[nodes.element_type(self.buffer)].bits // 8

    @property
    def is_scattered(self) -> bool:
        """Whether rows are too short for the processor's own prefetcher."""
        return self.rows > 1 and self.columns * self.bytes <= _SHORT

    def line(self, number: Expr) -> Stmt:
        """Return the prefetch of a line by its number, at most the last one."""
        number = tirx.Min(nodes.cast(number, "int32"), nodes.int_const(self.lines - 1))
        *first, last = self.corner
        if self.rows > 1:
            first[-1] = first[-1] + tirx.floordiv(number, self.lines_of_row)
            number = tirx.floormod(number, self.lines_of_row)
        column = tirx.Min(number * (_LINE // self.bytes), nodes.int_const(self.columns - 1))
        near = self.rows * self.columns * self.bytes <= _NEAR
        return prefetch(self.buffer, [*first, last + column], writes=self.writes, near=near)


class _PrefetchTiles(StmtRewriter):
    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid" and not (counts(s) and is_plain(s)):
            return super().visit_For(s)
        parts = list(statements(s.body))
        hosts = [at for at, part in enumerate(parts) if _is_host(part)]
        wanted: dict[int, list[tuple[_TensorTile, int, int]]] = {at: [] for at in hosts}
        dtype = nodes.dtype_of(s.loop_var)
        last = nodes.cast(s.extent, dtype) - nodes.int_const(1, dtype)
        following = tirx.Min(s.loop_var + nodes.int_const(1, dtype), last)
        for at in hosts:
            for tile in _tiles(parts[at]):
                chosen = [h for h in hosts if (h < at if tile.writes else h != at or tile.is_scattered)]
                known = _known(tile, parts, {} if tile.writes else {s.loop_var: following})
                if known is not None and chosen and (tile.writes or nodes.as_int(s.extent) != 1):
                    self.share(known, [(h, self.steps(parts[h])) for h in chosen], wanted)
        if not any(wanted.values()):
            return super().visit_For(s)
        for at, part in enumerate(parts):
            tiles = wanted.get(at, [])
            parts[at] = self.hosted(part, tiles) if tiles else self.stmt(part)
        return replace_for(s, nodes.seq(parts))

    def share(self, tile: _TensorTile, hosts: Sequence[tuple[int, int]], wanted: Mapping[int, list[Any]]) -> None:
        """Share the lines of a tile out to the steps of loops."""
        steps = sum(count for _, count in hosts)
        each = -(-tile.lines // steps)
        if each > _PER_STEP:
            return
        start = 0
        for at, count in hosts:
            if start < tile.lines:
                wanted[at].append((tile, start, each))
            start += count * each

    def steps(self, loop: Stmt) -> int:
        extent = int(nodes.as_int(loop.extent))
        return extent if collect(loop.body, tirx.For) else max(1, extent // (_STEP * lanes_of(loop, self.vector_bits)))

    def hosted(self, loop: Stmt, tiles: Sequence[tuple[_TensorTile, int, int]]) -> Stmt:
        """Return a loop whose steps prefetch."""

        def fetches(step: Expr) -> list[Stmt]:
            return [t.line(step * each + (start + n)) for t, start, each in tiles for n in range(each)]

        if collect(loop.body, tirx.For):
            return replace_for(loop, nodes.seq([*fetches(loop.loop_var), loop.body]))
        width, trips = _STEP * lanes_of(loop, self.vector_bits), self.steps(loop)
        outer, extent = nodes.fresh(f"{loop.loop_var.name}_s"), int(nodes.as_int(loop.extent))
        if extent < width:
            return nodes.seq([*fetches(nodes.int_const(0)), loop])
        inner = nodes.fresh(loop.loop_var.name)
        step = substitute(loop.body, {loop.loop_var: outer * width + inner})
        step = replace_for(loop, step, loop_var=inner, extent=nodes.int_const(width))
        steps = nodes.for_loop(outer, trips, nodes.seq([*fetches(outer), step]), span=loop.span)
        rest = extent - trips * width
        if not rest:
            return steps
        inner = nodes.fresh(loop.loop_var.name)
        tail = substitute(loop.body, {loop.loop_var: inner + trips * width})
        return nodes.seq([steps, renamed(replace_for(loop, tail, loop_var=inner, extent=nodes.int_const(rest)))])


def _is_host(s: Stmt) -> bool:
    """Whether a statement of a block is a loop that prefetches do not disturb."""
    if type(s) is not tirx.For or role(s) not in ("parallel", "serial") or not counts(s) or not is_plain(s):
        return False
    if prod(int(nodes.as_int(x.extent)) for x in collect(s, tirx.For) if counts(x)) < _WORK:
        return False
    return bool(collect(s.body, tirx.For)) or has_vector_form(s)


def _tiles(loop: Stmt) -> Iterator[_TensorTile]:
    """Yield the tiles of tensors that all iterations of a loop access."""
    loops = collect(loop, tirx.For)
    inside = {x.loop_var for x in loops} | {x.var for x in collect(loop, (tirx.Bind, tirx.Let))}
    boxes: dict[tuple[int, bool], list[tuple[BufferVar, list[tuple[Expr, int, int]]]]] = {}
    choices = [c for c in collect(loop, ir.Call) if nodes.operator_name(c) == "if_then_else"]
    # Addresses that no iteration may access.
    skipped = {
        identity(x) for c in [*choices, *collect(loop, (tirx.Select, tirx.IfThenElse))] for x in collect(c, _ACCESSES)
    }
    stores = [(x.buffer, x.indices, True) for x in collect(loop, tirx.BufferStore) if identity(x) not in skipped]
    loads = [(x.source, x.indices, False) for x in collect(loop, ir.TensorLoad) if identity(x) not in skipped]
    for buffer, indices, writes in [*stores, *loads]:
        if nodes.scope_of(buffer) != "global" or DTYPES[nodes.element_type(buffer)].bits < 8:
            continue
        ranges = [_range(i, loops, inside) for i in indices]
        box = [x for x in ranges if x is not None]
        if len(box) == len(ranges):
            boxes.setdefault((identity(buffer), writes), []).append((buffer, box))
    for (_, writes), found in boxes.items():
        tile = _united(found, writes)
        if tile is not None and _LEAST <= tile.rows * tile.columns * tile.bytes <= _MOST:
            yield tile


def _range(index: Expr, loops: Sequence[Stmt], inside: set[Var]) -> tuple[Expr, int, int] | None:
    """Return the start of an index, and the range that loops add."""
    if isinstance(index, tirx.FloorDiv) and nodes.as_int(index.b) == 2:  # the byte of a packed element
        pairs = _range(index.a, loops, inside)
        return None if pairs is None else (tirx.floordiv(pairs[0], 2), pairs[1] // 2, pairs[2] // 2)
    form = linear_form(index, [x.loop_var for x in loops])
    if (
        nodes.dtype_of(index) not in ("int32", "int64")
        or form is None
        or inside.intersection(collect(form.rest, tirx.Var))
        or collect(form.rest, ir.TensorLoad)
    ):
        return None
    ends = list(ends_of(form.steps, loops))
    if None in ends:
        return None
    return form.rest, sum(e[0] for e in ends if e), sum(e[1] for e in ends if e)


def _united(boxes: Sequence[tuple[BufferVar, list[tuple[Expr, int, int]]]], writes: bool) -> _TensorTile | None:
    """Return the box around boxes of one tensor, of which two axes vary at most."""
    buffer, first = boxes[0]
    corner, sizes = [], []
    for axis, (start, low, high) in enumerate(first):
        least, most = low, high
        for _, box in boxes[1:]:
            if nodes.dtype_of(box[axis][0]) != nodes.dtype_of(start):
                return None
            apart = nodes.as_int(Analyzer().simplify(box[axis][0] - start))
            if not isinstance(apart, int):
                return None
            least, most = min(least, box[axis][1] + apart), max(most, box[axis][2] + apart)
        corner.append(start + least)
        sizes.append(most - least + 1)
    if not sizes or any(n > 1 for n in sizes[:-2]):
        return None
    return _TensorTile(buffer, tuple(corner), sizes[-2] if len(sizes) > 1 else 1, sizes[-1], writes)


def _known(tile: _TensorTile, parts: Sequence[Stmt], values: dict[Var, Expr]) -> _TensorTile | None:
    """Return a tile by names that are known where a block begins, else ``None``.

    Parameters
    ----------
    tile
        A tile.
    parts
        The statements of the block.
    values
        The number of the block, if another one's tile is meant.
    """
    for s in parts:
        if isinstance(s, tirx.Bind) and not collect(s.value, (ir.TensorLoad, ir.Call)):
            values = {**values, s.var: substitute(s.value, values)}
    corner = tuple(substitute(i, values) for i in tile.corner)
    own = [x for part in parts for x in collect(part, (tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer))]
    names = {x.var if isinstance(x, tirx.Bind) else x.buffer for x in own}
    if tile.buffer in names or any(v in names for i in corner for v in collect(i, tirx.Var)):
        return None
    return _TensorTile(tile.buffer, corner, tile.rows, tile.columns, tile.writes)
