"""Shared tiles for elements that threads convert to an operand of a product.

In a pipelined loop, a nest that reads a tile of a tensor waits for global memory in each iteration. A copy of the tile
to shared memory is prefetched, and the operand that the nest computes may then be in registers::

    for k:                                      for k:
        for i, j in parallel(64, 32):               copy(W[n, k * 32], tile)
            w[i, j] = f(W[n + i, k * 32 + j])   ->  for i, j in parallel(64, 32): w[i, j] = f(tile[i, j])
        gemm(a, w, c)                               gemm(a, w, c)

A tile is staged if a pipeline prefetches its copy, if nothing writes the tensor, and if shared memory holds the slots.
Elements outside of the tensor are zero in both forms. Elements that several iterations of a nest share, such as scales
of groups, are too few for a tile: ``simt/threads/load_prefetch.py`` loads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import HINTS, SAFE_VALUES
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.program import Program
from tile_core.ir.visit import StmtRewriter, collect, distinct, loads_of, map_expr, replace_for, role
from tile_core.ops.base import OpCall, View
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import factor
from tile_core.simt.memory.rematerialization import constant_tensors
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.pipelining.dependences import Analysis, top_level
from tile_core.simt.pipelining.loop_note import LoopNote
from tile_core.simt.pipelining.plan import CanCopy, choose, not_pipelined
from tile_core.simt.pipelining.stage_limit import pipelined_bytes
from tile_core.simt.placement.tile_uses import PARALLEL, nest_of

__all__ = ["StagedTile", "kept_names", "not_staged", "notes_of", "stage_tiles"]

#: Bits of a tensor for each element of the operand, at least.
_LEAST_BITS = 4
#: Shared memory for barriers, and between buffers that are aligned to more than their size.
_RESERVED = 4096


@dataclass(frozen=True)
class StagedTile:
    """A tile of a tensor that a loop copies to shared memory.

    Attributes
    ----------
    number
        Its number among the tiles of the program that could be staged.
    loop
        The pipelined loop, as it was.
    tensor, tile
        The tensor, and the buffer in shared memory.
    """

    number: int
    loop: Stmt
    tensor: BufferVar
    tile: BufferVar


def stage_tiles(body: Stmt, kept: Collection[str] = (), refused: Collection[int] = ()) -> tuple[Stmt, list[StagedTile]]:
    """Return a program that copies the tiles which nests convert, and these tiles.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    kept
        Names of tensors with a layout, or with values outside of their own.
    refused
        Numbers of tiles that are not staged.
    """
    stage = _Stage(body, kept, refused)
    new = stage.stmt(body)
    return (new, stage.staged) if stage.staged else (body, [])


def kept_names(program: Program) -> frozenset[str]:
    """Return the names of buffers with a layout, or with values outside."""
    return frozenset(map(str, (*program.layouts, *(program.attrs.get(SAFE_VALUES) or ()))))


def not_staged(
    body: Stmt, params: Iterable[Var], staged: Sequence[StagedTile], can_copy: CanCopy, shared_bytes: int
) -> dict[int, str]:
    """Return the reasons why tiles must not be staged, by their numbers.

    Parameters
    ----------
    body, params
        The program with staged tiles, as it is pipelined, and its parameters.
    can_copy
        Whether the target can make a copy asynchronous.
    shared_bytes
        Shared memory of a block.
    """
    if not staged:
        return {}
    analysis, outcomes = Analysis(body), dict[str, str]()
    for loop in collect(body, tirx.For):
        if role(loop) == "pipelined":
            choice = choose(analysis, loop, loop, can_copy, ())
            outcomes |= {str(c.buffer.name): "" for c in choice.chosen} | dict(choice.kept)
    constant = {str(b.name) for b in constant_tensors(body, params) - analysis.written(body)}
    found = dict[int, str]()
    for x in staged:
        written = "" if str(x.tensor.name) in constant else "the kernel writes it"
        found[x.number] = written or outcomes.get(str(x.tile.name), "its loop is not pipelined")
    need, most = pipelined_bytes(body) + _RESERVED, shared_bytes
    if not any(found.values()) and need > most:
        found[staged[-1].number] = f"with its slots shared memory has {need} bytes, and a block has {most}"
    return {number: reason for number, reason in found.items() if reason}


def notes_of(
    staged: Iterable[StagedTile], refused: Mapping[int, StagedTile], reasons: Mapping[int, str]
) -> list[tuple[Stmt, LoopNote]]:
    """Return notes on tiles that are staged or refused, each with its loop."""
    texts = {x.number: (x, f"staged in shared memory as {x.tile.name}, which threads convert") for x in staged}
    texts |= {n: (x, f"threads read it where they convert it: {reasons[n]}") for n, x in refused.items()}
    return [(x.loop, LoopNote(str(x.tensor.name), text)) for _, (x, text) in sorted(texts.items())]


@dataclass(frozen=True)
class _Tile:
    """The elements that a nest reads of a tensor, and their indices in a tile."""

    mins: tuple[Expr, ...]
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    indices: tuple[Expr, ...]


class _Stage(StmtRewriter):
    def __init__(self, body: Stmt, kept: Collection[str], refused: Collection[int]) -> None:
        self.kept, self.refused = kept, refused
        self.names: FreshNames | None = None
        self.program = body
        self.known: dict[Var, int] = {}
        self.staged: list[StagedTile] = []
        self.count = 0

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.known[s.var] = factor(s.value, self.known)
        return s

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) in PARALLEL:
            return s
        if role(s) != "pipelined" or not_pipelined(s):
            return super().visit_For(s)
        before, operands, parts = len(self.staged), _operands(s.body), list[Stmt]()
        for x in top_level(s.body):
            is_nest = isinstance(x, tirx.For) and role(x) in PARALLEL
            parts += self.nest(x, s, operands) if is_nest else [self.stmt(x)]
        new = replace_for(s, nodes.seq(parts))
        return nodes.seq([*(tirx.AllocBuffer(x.tile) for x in self.staged[before:] if x.loop is s), new])

    def nest(self, s: Stmt, loop: Stmt, operands: set[BufferVar]) -> list[Stmt]:
        """Return a nest of a loop, behind the copies of the tiles that it reads."""
        loops, body = nest_of(s)
        extents = {x.loop_var: nodes.as_int(x.extent) for x in loops if nodes.as_int(x.min) == 0}
        constant = len(extents) == len(loops) and all(isinstance(e, int) for e in extents.values())
        stores = [x for x in collect(body, tirx.BufferStore) if x.buffer in operands]
        if not constant or not any(_converts(x) for x in stores) or any(map(nodes.is_tile_call, collect(s, ir.Call))):
            return [s]
        inner = {*extents, *(x.loop_var for x in collect(body, tirx.For)), *(x.var for x in collect(body, tirx.Bind))}
        inner |= {x.var for x in collect(body, tirx.Let)}
        copies, tiles = list[Stmt](), dict[Any, tuple[BufferVar, _Tile]]()
        for load in loads_of(body):
            key, found = tvm_ffi.StructuralKey(load), self.tile_of(load, extents, inner)
            if found is None or key in tiles:
                continue
            self.count += 1
            if self.count in self.refused:
                continue
            tile = self.buffer(load.source, found)
            self.staged.append(StagedTile(self.count, loop, load.source, tile))
            tiles[key] = tile, found
            to = nodes.region(tile, [nodes.int_const(0)] * len(found.shape), found.shape)
            call = nodes.tile_call("copy", [nodes.region(load.source, found.mins, found.extents), to], {HINTS: {}})
            copies.append(tirx.Evaluate(call, s.span))
        return [*copies, _Reads(tiles).stmt(s)] if tiles else [s]

    def buffer(self, tensor: BufferVar, found: _Tile) -> BufferVar:
        """Return a new buffer for a tile of a tensor."""
        if self.names is None:
            self.names = FreshNames(str(v.name) for v in distinct(collect(self.program, tirx.Var)))
        name, kind = self.names(f"{tensor.name}_tile"), nodes.element_type(tensor)
        return tirx.decl_buffer(list(found.shape), kind, name, scope="shared", layout=None)

    def tile_of(self, load: Expr, extents: Mapping[Var, int], inner: set[Var]) -> _Tile | None:
        """Return the tile of which a nest reads each element, or ``None``."""
        if nodes.scope_of(load.source) != "global" or str(load.source.name) in self.kept:
            return None
        left, parts, tile = dict(extents), 1, list[tuple[Expr, int, Expr | None]]()
        for index in load.indices:
            per = nodes.as_int(index.b) if type(index) is tirx.FloorDiv else 1
            form = linear_form(index.a if type(index) is tirx.FloorDiv else index, list(extents))
            if form is None or inner.intersection(collect(form.rest, tirx.Var)):
                return None
            used = [v for v, step in zip(extents, form.steps, strict=True) if step]
            if not used:
                tile.append((index, 1, None))
                continue
            extent = left.pop(used[0], 0) if len(used) == 1 and sum(form.steps) == 1 else 0
            if not extent or not isinstance(per, int) or extent % per or factor(form.rest, self.known) % per:
                return None
            tile.append((_divided(form.rest, per), extent // per, _divided(used[0], per)))
            parts *= per
        if any(e > 1 for e in left.values()) or DTYPES[nodes.element_type(load.source)].bits < _LEAST_BITS * parts:
            return None
        held = [(extent, at) for _, extent, at in tile if at is not None]
        mins, sizes = tuple(x[0] for x in tile), tuple(x[1] for x in tile)
        return _Tile(mins, sizes, tuple(x[0] for x in held), tuple(x[1] for x in held)) if held else None


class _Reads(StmtRewriter):
    """Redirects loads of tensors to tiles."""

    def __init__(self, tiles: Mapping[Any, tuple[BufferVar, _Tile]]) -> None:
        self.tiles = tiles

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        """Return the load of an element from its tile, if it has one."""
        tile, found = self.tiles.get(tvm_ffi.StructuralKey(e), (None, None))
        return e if found is None else nodes.load(tile, found.indices, e.span)


def _operands(body: Stmt) -> set[BufferVar]:
    """Return the buffers that products of a loop read."""
    calls = [OpCall.decode(s) for s in products_of(body)]
    return {a.buffer for c in calls for a in c.args[: accumulator_of(c)] if isinstance(a, View)}


def _converts(store: Stmt) -> bool:
    """Whether a stored value is more than an element or a constant."""
    value = store.value
    if nodes.operator_name(value) == "if_then_else" and not loads_of(value.args[2]):
        value = value.args[1]
    return type(value) is not ir.TensorLoad and bool(loads_of(value))


def _divided(e: Expr, by: int) -> Expr:
    return e if by == 1 else tirx.floordiv(e, nodes.int_const(by, nodes.dtype_of(e)))
