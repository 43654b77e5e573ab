"""Swizzle shared tiles that threads access across rows, to avoid bank conflicts.

Shared memory serves a group of threads at once unless two of them access different words of the same bank. All accesses
are known at this pass, so their cost is counted for the row-major order and for XOR swizzles of 16-byte chunks, which
keep every vector access contiguous. A tile gets a swizzle only if that saves a good part of the cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.point import Point
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect, distinct, loads_of
from tile_core.layout.digits import row_major_strides
from tile_core.layout.layout import DigitLayout
from tile_core.layout.swizzle import Swizzle
from tile_core.records import dataclass
from tile_core.simt.memory.shared_layouts import base_of
from tile_core.simt.variant import Block

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap

_WORD = 4
_CHUNK = 16
_BITS = 3
_KEPT = 0.7  # of the cost: a swizzle costs arithmetic on addresses
_LANES = 96  # threads that are looked at


def spread_over_banks(
    body: Stmt, block: Block, layouts: Mapping[BufferVar, LayoutMap], banks: int, rings: Collection[str] = ()
) -> dict[BufferVar, LayoutMap]:
    """Return layouts of shared buffers that have none, where one makes their accesses cheaper.

    Parameters
    ----------
    body
        The code of a thread, with vector accesses and logical indices.
    block
        The block's threads.
    layouts
        Layouts that are decided.
    banks
        Banks of four bytes of shared memory.
    rings
        Names of the buffers with one slot for each stage of a pipelined loop.
    """
    found = _Candidates(body, layouts, rings)
    if not found.buffers:
        return {}
    counted = {b: _Counted() for b in found.buffers}
    values = _Values(block.thread, min(block.count, _LANES))
    for point in Flow(body).points:
        _count(point, values, counted)
    chosen = {b: _best(b, found.slots(b), c.accesses, banks) for b, c in counted.items()}
    return {b: layout for b, layout in chosen.items() if layout is not None}


@dataclass(frozen=True)
class _Access:
    """Row-major indices of the first accessed elements, the access size, and the access count."""

    elements: Array
    size: int
    times: int


@dataclass
class _Counted:
    """The accesses of a buffer."""

    accesses: list[_Access] = field(default_factory=list)


class _Candidates:
    """The shared buffers with a free layout: only plain accesses, and no views."""

    def __init__(self, body: Stmt, layouts: Mapping[BufferVar, LayoutMap], rings: Collection[str]) -> None:
        self.rings = rings
        allocated = [a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
        allocated = [b for b in allocated if b not in layouts and _fits(b, self.slots(b))]
        used: set[Any] = set()
        if allocated:
            used = {base_of(v) for v in collect(body, tirx.DeclBuffer)}
            for call in (c for c in collect(body, ir.Call) if _is_other(c)):
                used |= distinct(x.source for x in loads_of(call))
                used |= distinct(v for a in structural.items(call.args) for v in collect(a, tirx.Var))
        self.buffers = [b for b in allocated if b not in used]

    def slots(self, buffer: BufferVar) -> int:
        """Return the number of tiles in a buffer, of a pipelined loop or the user's."""
        shape = nodes.shape_of(buffer)
        several = len(shape) > 2 or str(buffer.name) in self.rings
        return shape[0] if several and isinstance(shape[0], int) else 1


def _is_other(call: Expr) -> bool:
    """Whether a call may use an address for more than a vector access."""
    if nodes.is_tile_call(call, "instruction"):
        return False  # its operands are calls themselves
    return nodes.is_tile_call(call) and not nodes.is_tile_call(call, "move") and not _chunk(call)


def _chunk(call: Expr) -> int:
    """Return the bytes of the vector access at an address; 0 for other calls."""
    return int(nodes.as_int(call.attrs.get(attributes.CHUNK, 0))) if nodes.is_tile_call(call, "address") else 0


def _fits(buffer: BufferVar, slots: int) -> bool:
    bits = DTYPES[nodes.element_type(buffer)].bits
    shape = nodes.shape_of(buffer)
    constant = len(shape) > 1 and all(isinstance(n, int) for n in shape)
    return constant and bits % 8 == 0 and bits // 8 <= _CHUNK and _swizzle(shape, slots, bits, _BITS) is not None


def _swizzle(shape: Sequence[int], slots: int, bits: int, shift: int) -> Swizzle | None:
    """Return an XOR swizzle of chunks, if it permutes the elements of a tile.

    Each chunk number is combined with the bits at a fixed distance above it. The slots of a pipelined tile must keep
    their elements, and an address its slot: copies to one are in flight while another is read.
    """
    per = _CHUNK * 8 // bits
    found = Swizzle(_BITS, per.bit_length() - 1, shift)
    size = prod(shape)
    keeps = found.keeps_window(size) if slots == 1 else size // slots % found.period == 0
    return found if keeps and found.period <= 2 * size else None


def _count(point: Point, values: _Values, counted: Mapping[BufferVar, _Counted]) -> None:
    """Add the accesses of a point, and the value of the variable that it defines."""
    s = point.stmt
    if point.kind == "for":
        values.define(s.loop_var, s.min)
    elif type(s) is tirx.Bind and nodes.dtype_of(s.var) != "handle":
        values.define(s.var, s.value)
    for buffer, indices, size in _accesses(point):
        if buffer in counted:
            times = prod(_trips(loop) for loop in point.loops)
            shape = nodes.shape_of(buffer)
            try:
                flat = sum(
                    np.asarray(values.of(i)) * stride
                    for i, stride in zip(indices, row_major_strides(shape), strict=True)
                )
            except Unknown:
                continue
            counted[buffer].accesses.append(_Access(np.broadcast_to(flat, values.lanes), size, times))


def _trips(loop: Point) -> int:
    extent = nodes.as_int(loop.stmt.extent) if loop.kind == "for" else None
    return extent if isinstance(extent, int) and extent > 0 else 1


class _Values:
    """The values of variables in each thread, evaluated on demand."""

    def __init__(self, thread: Var, count: int) -> None:
        self.lanes = (count,)
        self.known: dict[Var, Array] = {thread: np.arange(count)}
        self.defined: dict[Var, Expr] = {}

    def define(self, variable: Var, value: Expr) -> None:
        """Record the value of a variable."""
        self.defined[variable] = value
        self.known.pop(variable, None)

    def of(self, value: Expr) -> Array:
        """Evaluate an index, with 0 for uniform values: blocks, sizes, loop iterations."""
        value = nodes.as_int(value)
        if isinstance(value, int):
            return value
        variables = distinct(v for v in collect(value, tirx.Var) if not tirx.is_buffer_var(v))
        return evaluate(value, {v: self.variable(v) for v in variables})

    def variable(self, v: Var) -> Array:
        """Return the value of a variable."""
        if v not in self.known:
            try:
                self.known[v] = self.of(self.defined.get(v, 0))
            except Unknown:
                self.known[v] = 0
        return self.known[v]


def _accesses(point: Point) -> Iterable[tuple[BufferVar, Sequence[Expr], int]]:
    """Yield the accesses of a point: a buffer, indices, and the bytes of one access."""
    for x in point.own:
        whole = x.value if type(x) is tirx.Evaluate and nodes.is_tile_call(x.value, "move") else None
        if whole is not None:
            size = int(nodes.as_int(whole.attrs[attributes.BYTES]))
            for side in structural.items(whole.args)[:2]:
                yield side.source, structural.items(side.indices), size
            continue
        addresses = [c for c in collect(x, ir.Call) if _chunk(c)]
        for c in addresses:
            yield c.args[0].source, structural.items(c.args[0].indices), _chunk(c)
        at = {structural.identity(c.args[0]) for c in addresses}
        for load in (e for e in loads_of(x) if structural.identity(e) not in at):
            yield load.source, structural.items(load.indices), _size(load.source)
        if type(x) is tirx.BufferStore:
            yield x.buffer, structural.items(x.indices), _size(x.buffer)


def _size(buffer: BufferVar) -> int:
    return DTYPES[nodes.element_type(buffer)].bits // 8


def _best(buffer: BufferVar, slots: int, accesses: Sequence[_Access], banks: int) -> LayoutMap | None:
    """Return the cheapest layout if it is better than the row-major one by far."""
    size, shape = _size(buffer), nodes.shape_of(buffer)
    plain = _cost(accesses, None, size, banks)
    least, best = _KEPT * plain, None
    for shift in range(_BITS, prod(shape).bit_length()):
        swizzle = _swizzle(shape, slots, 8 * size, shift)
        cost = None if swizzle is None else _cost(accesses, swizzle, size, banks)
        if cost is not None and cost < least:
            least, best = cost, swizzle
    if best is None:
        return None
    digits = [(n, stride, "memory") for n, stride in zip(shape, row_major_strides(shape), strict=True)]
    note = f"{best}: its accesses take {least / plain:.0%} of the turns of a row-major tile"
    return DigitLayout(shape, digits, swizzles=[best], note=note)


def _cost(accesses: Sequence[_Access], swizzle: Swizzle | None, size: int, banks: int) -> float:
    """Return the mean number of shared-memory wavefronts per group of threads served at once."""
    total = 0.0
    for access in accesses:
        offsets = access.elements if swizzle is None else swizzle.apply(access.elements)
        unit = max(access.size, _WORD)
        lanes = max(banks * _WORD // unit, 1)
        rows = [np.unique(offsets[at : at + lanes] * size // unit) for at in range(0, len(offsets), lanes)]
        wavefronts = [int(np.bincount(row % lanes).max()) for row in rows]
        total += access.times * sum(wavefronts) / len(offsets) * lanes * (unit / _WORD)
    return total
