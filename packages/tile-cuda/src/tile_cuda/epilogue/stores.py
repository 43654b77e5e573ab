"""The way of results from accumulators to global memory.

The matrix units leave a thread two adjacent elements of a row, so a warp that stores its accumulators directly writes
sectors of eight rows with each instruction. Through a tile in shared memory it writes whole rows: by a bulk copy, or 16
bytes per thread. The tile reuses the storage of the operands' rings (`tile_core.simt.memory.arena`). Where it does not
fit, lanes exchange elements of 8, 16 or 32 bits until each has 16 bytes (`tile_cuda.ops.copy_lanes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import COALESCED_WIDTH, HINTS, ROUND, SUBTILE, VARIANT
from tile_core.ir.visit import role
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, with_attributes
from tile_core.records import dataclass
from tile_core.simt.accumulators import ResultStore
from tile_core.simt.launch.store_nests import StoreNest, store_nests
from tile_core.simt.memory.alignment import Aligned, factor, strides_of
from tile_cuda.attributes import DIRECT, LANES, MATRICES, STAGED
from tile_cuda.cost.stores import estimate
from tile_cuda.epilogue.copies import copy_of, whole
from tile_cuda.epilogue.shared_memory import SCRATCH, bytes_of
from tile_cuda.ops.copy_lanes import EXCHANGES
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.target import STMATRIX

if TYPE_CHECKING:
    from tile_core.analysis.point import Point
    from tile_cuda.epilogue.facts import EpilogueFacts

_WIDE = 16
"""Bytes that a thread stores at a time."""
_HALF, _HELD = 16, 192
"""Bits of an element that an overlapped epilogue may have; registers of a thread for it and the accumulators."""
SHARED, OF_LANES = "shared memory", "registers of other lanes"
"""Ways of results."""


@dataclass(frozen=True)
class Store:
    """The way of a result to global memory.

    Attributes
    ----------
    point
        The copy, or nest, that stores it.
    call
        The same as a copy of a fragment to a tensor.
    nest
        The nest; ``None`` for a copy.
    way
        ``SHARED``: through a tile in shared memory; ``OF_LANES``: lanes exchange elements; empty: directly.
    reason
        Why this is the best way.
    rejected
        Better ways, each with the rejection reason.
    subtiles
        Parts that overlap the main loop of the next tile; 0 if the epilogue does not overlap it.
    """

    point: Point
    call: OpCall
    nest: StoreNest | None
    way: str
    reason: str
    rejected: tuple[tuple[str, str], ...]
    subtiles: int = 0

    @property
    def fragment(self) -> BufferVar:
        """The fragment with the results."""
        return self.call.args[0].buffer if self.nest is None else self.nest.accumulator

    def described(self) -> ResultStore:
        """Return its description."""
        size, where = _bytes(self.call) if self.way == SHARED else 0, nodes.where_of(self.point.stmt)
        return ResultStore(where, self.call.args[1].name, self.way, self.reason, self.rejected, size, self.subtiles)


class StoreChoices:
    """Chooses the ways of a program's results, and writes them."""

    def __init__(self, facts: EpilogueFacts) -> None:
        self.facts, self.option = facts, facts.ctx.options.epilogue
        self.results = list(facts.every if self.option in ("lanes", "always") else facts.accumulators)
        self.plain = {b for b in facts.plain if b in self.results}
        self.matrices = facts.ctx.options.stmatrix == "always" and facts.ctx.capabilities.fact(STMATRIX)

    def chosen(self) -> tuple[dict[Point, Stmt], list[Store]]:
        """Return the statements that replace stores, by their points, and the ways of all stores."""
        new: dict[Point, Stmt] = {}
        stores: list[Store] = []
        for p in self.facts.flow.walk(lambda p: p not in new):
            found = self.stores(p) if self.option != "never" else []
            stores += found
            if any(store.way or store.nest is None for store in found):
                new[p] = nodes.seq([self.written(store) for store in found])
            elif self.matrices and p in self.facts.calls and self.is_to_shared(self.facts.calls[p]):
                new[p] = with_attributes(p.stmt, {MATRICES: 1})
        return new, stores

    # Decisions

    def stores(self, p: Point) -> list[Store]:
        """Return the ways of a statement's results; none if it stores none."""
        call = self.facts.calls.get(p)
        if call is not None:
            leaves = call.name == "copy" and call.args[1].scope == "global" and call.args[0].buffer in self.results
            return [self.way(p, call, None)] if leaves else []
        parallel = p.kind == "for" and role(p.stmt) == "parallel" and not self.facts.diverges(p)
        nests = store_nests(p.stmt, self.results) if parallel else []
        return [self.way(p, nest.call(self.values(nest)), nest) for nest in nests]

    def values(self, nest: StoreNest) -> BufferVar:
        """Return the tile that a nest's values are in before they are stored."""
        if nest.is_conversion:
            return nest.accumulator
        suffix, scope = ("staged", "shared") if nest.transposed else ("values", "local.fragment")
        name = self.facts.name(f"{nest.accumulator.name}_{suffix}")
        values, _ = nodes.alloc(nest.extents, nodes.element_type(nest.store.buffer), name, scope)
        if nest.transposed:
            self.plain.add(values)
            return values
        self.results.append(values)
        self.plain |= {values} if nest.accumulator in self.plain else set()
        self.facts.origins[values] = self.facts.origins.get(nest.accumulator, nest.accumulator)
        return values

    def way(self, p: Point, call: OpCall, nest: StoreNest | None) -> Store:
        """Return the best way of a copy."""
        rectangle = nest is None or nest.rectangle
        ways = [(SHARED, self.through_memory)] if rectangle else []
        ways += [(OF_LANES, self.through_lanes)] if nest is None or not nest.transposed else []
        rejected: list[tuple[str, str]] = []
        for way, decide in ways:
            answer = decide(p, call)
            if isinstance(answer, Accept):
                columns = EXCHANGES[_HALF].columns if way == OF_LANES and rectangle and self.may_overlap(p, call) else 0
                subtiles = -(-int(call.args[0].extents[1]) // columns) if columns else 0
                return Store(p, call, nest, way, answer.note, tuple(rejected), subtiles)
            rejected.append((way, answer.reason))
        return Store(p, call, nest, "", "", tuple(rejected))

    def through_memory(self, p: Point, call: OpCall) -> Accept | Reject:
        """Decide whether a copy goes through shared memory."""
        source, tensor = call.args[:2]
        facts, memory = self.facts, self.facts.memory
        if self.option == "lanes":
            return Reject('the option is "lanes"')
        for reason in _obstacles(call):
            return Reject(reason)
        if facts.stays and self.option != "always" and not facts.ends_in_iterations(source.buffer):
            return Reject("its block is persistent")
        if _is_nested(p):
            return Reject("it is inside of a loop or condition")
        # Slots of a persistent kernel are never free: operands of the next tile arrive during the epilogue. Other roles
        # run at the same time.
        occupied = memory.own if facts.stays or p.role is not None else memory.behind(p)
        if source.buffer not in self.plain:
            # Passes below may move it to shared memory.
            occupied += prod(source.extents) * DTYPES[source.dtype].bits // 8
        size, free = _bytes(call), memory.limit - occupied - SCRATCH
        if size > free:
            return Reject(f"its tile of {size:,} bytes does not fit: {max(free, 0):,} are free")
        if self.option == "always":
            return Accept("through shared memory, as the option requires")
        width = _width(tensor, facts.aligned)
        if width < _WIDE:
            return Reject(f"rows of {tensor.name} are only known to begin at multiples of {width} bytes")
        found = estimate(tuple(map(int, source.extents)), DTYPES[tensor.dtype].bits)
        if memory.tiles_at_a_time(max(size, memory.own)) < memory.tiles_at_a_time(memory.own):
            return Reject(f"with its tile of {size:,} bytes fewer blocks would fit on a multiprocessor")
        return Accept(str(found)) if found.is_worth_it else Reject(f"it is not faster: {found}")

    def through_lanes(self, p: Point, call: OpCall) -> Accept | Reject:
        """Decide whether lanes exchange elements before the store."""
        source, tensor = call.args[:2]
        for reason in _obstacles(call):
            return Reject(f"no exchange between lanes: {reason}")
        if self.facts.diverges(p):
            return Reject("not all threads execute it")
        how = EXCHANGES.get(DTYPES[tensor.dtype].bits)
        if how is None or call.attrs.get(ROUND) or len(source.extents) != 2:
            return Reject("lanes exchange only two-dimensional tiles with elements of 8, 16 or 32 bits")
        if int(source.extents[-1]) % how.columns:
            return Reject(f"lanes exchange {how.columns} columns")
        width = _width(tensor, self.facts.aligned)
        if width < _WIDE and self.option == "auto":
            return Reject(f"rows of {tensor.name} are only known to begin at multiples of {width} bytes")
        found = estimate(tuple(map(int, source.extents)), DTYPES[tensor.dtype].bits)
        return Accept(f"estimated {found.lanes:,} cycles, {found.direct:,} without")

    def may_overlap(self, p: Point, call: OpCall) -> bool:
        """Whether the epilogue may be stored in subtiles during a block's next tile.

        Threads then have registers for it beside the accumulators, and each warp has a part of each subtile.
        """
        facts, (source, tensor) = self.facts, call.args[:2]
        if not facts.stays or _is_nested(p) or DTYPES[tensor.dtype].bits != _HALF:
            return False
        if DTYPES[source.dtype].bits not in (_HALF, 2 * _HALF):
            return False
        if facts.ends_in_iterations(source.buffer):
            return False  # no product of the next tile is in flight beside its stores
        if source.name in facts.plan.program.layouts or tuple(tensor.extents[-2:]) != tuple(source.extents):
            return False
        held = sum(map(bytes_of, self.results)) + (0 if self.keeps(call) else _bytes(call))
        whole_rows = facts.origins.get(source.buffer, source.buffer) in facts.rows and source.buffer in self.plain
        return facts.threads > WARPGROUP and held <= 4 * _HELD * facts.threads and whole_rows

    def keeps(self, call: OpCall) -> bool:
        """Whether only the epilogue uses a fragment of converted results, which then keeps them."""
        source, tensor = call.args[:2]
        if source.dtype != tensor.dtype or source.buffer in self.facts.promotion:
            return False
        last = max(p.path[-1].last for p in self.facts.products_at if p.path)
        return all(a.point.order > last for a in self.facts.flow.accesses if a.buffer.same_as(source.buffer))

    def is_to_shared(self, call: OpCall) -> bool:
        """Whether a copy takes accumulators to 16-bit elements in shared memory."""
        if call.name != "copy" or call.args[1].scope != "shared" or call.args[0].buffer not in self.facts.every:
            return False
        return DTYPES[call.args[1].dtype].bits == _HALF

    # Statements

    def written(self, store: Store) -> Stmt:
        """Return the statements of a store."""
        call, nest, old = store.call, store.nest, store.point.stmt
        source, tensor = call.args[:2]
        if not store.way and nest is not None:
            return nest.direct()
        if not store.way:
            reasons = "; ".join(reason for _, reason in store.rejected)
            return with_attributes(old, {DIRECT: f"it does not go through shared memory: {reasons}"})
        made: list[Stmt] = []
        if nest is not None and not nest.is_conversion:
            made = [tirx.AllocBuffer(source.buffer), nest.valued(source.buffer)]
        if store.subtiles:
            return nodes.seq([*made, *self.in_subtiles(store)])
        if nest is not None and nest.transposed:
            self.facts.memory.add(source.buffer, store.point)
            rest = {**call.attrs, STAGED: store.reason}
            return nodes.seq([*made, copy_of(whole(source.buffer), _region(tensor), rest, old.span)])
        scope = "shared" if store.way == SHARED else "local.fragment"
        tile, new = nodes.alloc(list(source.extents), tensor.dtype, self.facts.name(f"{source.name}_staged"), scope)
        attrs = {k: v for k, v in call.attrs.items() if k not in (HINTS, COALESCED_WIDTH)}
        if store.way == OF_LANES:
            first, rest = {**attrs, LANES: store.reason}, {}
        else:
            self.facts.memory.add(tile, store.point)
            first, rest = attrs, {STAGED: store.reason}
            first = {**first, MATRICES: 1} if self.matrices and DTYPES[tensor.dtype].bits == _HALF else first
        moved = copy_of(whole(source.buffer), whole(tile), first, old.span)
        if nest is not None and not nest.rectangle:
            return nodes.seq([*made, new, moved, nest.stored(tile)])
        rest = {k: v for k, v in call.attrs.items() if k != ROUND} | rest
        return nodes.seq([*made, new, moved, copy_of(whole(tile), _region(tensor), rest, old.span)])

    def in_subtiles(self, store: Store) -> list[Stmt]:
        """Return the conversion of results, and exchanges and copies of some columns at a time."""
        call, span, name = store.call, store.point.stmt.span, self.facts.name
        source, tensor = call.args[:2]
        rows, columns = source.extents
        width = EXCHANGES[_HALF].columns
        attrs = {k: v for k, v in call.attrs.items() if k not in (HINTS, COALESCED_WIDTH)}
        rest = {k: v for k, v in call.attrs.items() if k != ROUND}
        kept, new, parts = source.buffer, list[Stmt](), list[Stmt]()
        if not self.keeps(call):
            kept, made = nodes.alloc([rows, columns], tensor.dtype, name(f"{source.name}_kept"), "local.fragment")
            new, parts = [made], [copy_of(whole(source.buffer), whole(kept), attrs, span)]
        for number, at in enumerate(range(0, int(columns), width)):
            piece, made = nodes.alloc([rows, width], tensor.dtype, name(f"{source.name}_piece"), "local.fragment")
            of = nodes.region(kept, [nodes.int_const(0), nodes.int_const(at)], [rows, width])
            corner = [*tensor.mins[:-1], tensor.mins[-1] + nodes.int_const(at) if at else tensor.mins[-1]]
            there = nodes.region(tensor.buffer, corner, [*tensor.extents[:-1], width])
            new.append(made)
            parts.append(copy_of(of, whole(piece), {LANES: store.reason, SUBTILE: number}, span))
            parts.append(copy_of(whole(piece), there, {**rest, SUBTILE: number}, span))
        return [*new, *parts]


def _obstacles(call: OpCall) -> Iterator[str]:
    """Yield why a copy takes no detour at all."""
    source, tensor = call.args[:2]
    if any(nodes.as_int(m) != 0 for m in source.mins) or source.extents != tuple(nodes.shape_of(source.buffer)):
        yield f"it copies a part of {source.name}"
    if call.attrs.get(VARIANT):
        yield f"it requests {call.attrs[VARIANT]}"
    if DTYPES[tensor.dtype].bits < 8:
        yield f"elements of {tensor.dtype} share bytes"


def _is_nested(p: Point) -> bool:
    """Whether a statement stands in a loop of its block, or under a condition."""
    return any(x.kind in ("while", "if") or (x.kind == "for" and role(x.stmt) != "grid") for x in p.path)


def _bytes(call: OpCall) -> int:
    """Return the bytes of a copy's results."""
    return prod(call.args[0].extents) * DTYPES[call.args[1].dtype].bits // 8


def _width(tensor: View, aligned: Aligned) -> int:
    """Return the alignment in bytes of all rows of a part of a tensor.

    It is at most that of a vector store of a thread.
    """
    size = DTYPES[tensor.dtype].bits // 8
    if nodes.as_int(strides_of(tensor.buffer)[-1]) != 1:
        return size
    origin = [nodes.int_const(0) + m for m in tensor.mins]
    steps = [factor(s, aligned.divisors) * size for s in strides_of(tensor.buffer)[:-1]]
    row = int(tensor.extents[-1]) * size
    width = aligned.of(tensor.buffer, origin) if tensor.buffer in aligned.addresses else size
    while width > size and any(n % width for n in (*steps, row)):
        width //= 2
    return width


def _region(view: View) -> Expr:
    return nodes.region(view.buffer, list(view.mins), list(view.extents))
