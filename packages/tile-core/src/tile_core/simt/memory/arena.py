"""Allocation of the block's shared memory: buffers whose live ranges do not overlap share bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import Where
from tile_core.errors.memory import SharedMemoryExceeded
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ALIGN, ALIGNMENT, APART, BETWEEN_BLOCKS, MANAGED, OFFSET, SHAPE, UNTIL
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.records import dataclass
from tile_core.simt.memory.shared_layouts import packed_buffers

_SMALL, _LARGE = 16, 128
#: Bytes of all scratch memory that does not share bytes with other scratch memory, at most.
_APART = 1024
#: Alignment in TVM's type of a buffer whose declaration has none.
_UNSAID = 64


@dataclass(frozen=True)
class Array:
    """A shared buffer's place.

    Attributes
    ----------
    name, dtype
        As in the program.
    offset, bytes
        Where it lies.
    shape
        Its extents, before it became one-dimensional.
    where
        The line that allocates it.
    lives
        The lines of its first and last use, if known.
    span
        The times of its first and last use, see `Arena.times`.
    """

    name: str
    offset: int
    bytes: int
    dtype: str
    shape: tuple[int, ...] = ()
    where: Where | None = None
    lives: tuple[Where | None, Where | None] = (None, None)
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Arena:
    """The block's shared memory.

    Attributes
    ----------
    bytes
        Size of the whole.
    arrays
        The arrays, in program order.
    times
        The line of each time: the statements of a thread's program, in order.
    """

    bytes: int
    arrays: tuple[Array, ...] = ()
    times: tuple[Where | None, ...] = ()


def plan_arena(body: Stmt, limit: int) -> tuple[Stmt, Arena]:
    """Assign each shared buffer an offset.

    Parameters
    ----------
    body
        The per-thread program.
    limit
        Bytes of shared memory that a block of the target has.

    Returns
    -------
    tuple
        The body, in which each ``AllocBuffer`` of scope ``shared`` has the annotation ``OFFSET``, and the arena.

    Raises
    ------
    SharedMemoryExceeded
        If it does not fit.
    """
    packed = packed_buffers(body)
    addresses = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "address")]
    lives, needed = _Lives(body, addresses), _needed(addresses)
    buffers = [
        _Buffer(a, lives.spans.get(a.buffer), a.buffer in packed, a.buffer in lives.managed, needed.get(a.buffer, 1))
        for a in lives.allocs
    ]
    if not buffers:
        return body, Arena(0)
    apart = [b for b in buffers if b.is_apart]
    size, offsets = _smallest(buffers)
    if apart and (size > limit or sum(b.bytes for b in apart) > _APART):
        for b in apart:
            b.is_apart = False
        size, offsets = _smallest(buffers)
    arrays = tuple(b.array(offsets[b.buffer], lives.lines) for b in buffers)
    if size > limit:
        raise _exceeded(buffers, size, limit)
    return _AnnotateOffsets(offsets).stmt(body), Arena(size, arrays, tuple(lives.lines))


class _Buffer:
    """An allocation, its size and its live range."""

    def __init__(self, alloc: Stmt, span: tuple[int, int] | None, packed: bool, managed: bool, needed: int) -> None:
        self.buffer, self.span, self.where = alloc.buffer, span, nodes.where_of(alloc)
        notes = alloc.annotations or {}
        shape = nodes.shape_of(self.buffer)
        self.shape = tuple(int(nodes.as_int(n)) for n in notes.get(SHAPE, shape))
        self.dtype = nodes.element_type(self.buffer)
        bits = DTYPES[self.dtype].bits
        count = prod(shape)
        self.bytes = -(-count * bits // 8) if packed else count * max(8, bits) // 8
        asked, declared = int(nodes.as_int(notes.get(ALIGNMENT, 1))), int(self.buffer.ty.data_alignment)
        asked = max(asked, needed, declared if declared != _UNSAID else 1)
        self.align = max(asked, _LARGE if self.bytes >= _LARGE else _SMALL)
        # The first dimension of a buffer managed by a pipelined loop is the slot.
        self.stages = max(self.shape[0], 1) if managed and self.shape else 1
        self.is_apart = APART in notes

    def meets(self, other: _Buffer) -> bool:
        """Whether the live ranges overlap, or both are scratch memory that stays apart."""
        if self.is_apart and other.is_apart:
            return True
        if self.span is None or other.span is None:
            return False
        return self.span[0] <= other.span[1] and other.span[0] <= self.span[1]

    def array(self, offset: int, lines: Sequence[Where | None]) -> Array:
        first, last = span = self.span or (0, 0)
        lives = (lines[first], lines[last])
        return Array(str(self.buffer.name), offset, self.bytes, self.dtype, self.shape, self.where, lives, span)


class _Lives:
    """Lifetimes of the shared buffers of a program, and those that a region manages."""

    def __init__(self, body: Stmt, addresses: Sequence[Call]) -> None:
        flow = Flow(body)
        self.allocs = [a for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
        buffers = {a.buffer for a in self.allocs}
        bases = {b: flow.root(b) for b in (*buffers, *flow.roots) if flow.root(b) in buffers}
        self.managed: set[BufferVar] = set()

        def region(p: Point) -> set[BufferVar]:
            mine = listed(p.stmt.node, bases) if p.stmt.attr_key == MANAGED else set()
            self.managed.update(mine)
            return mine

        found = flow.lifetimes(buffers, region)
        self.spans = found.spans
        if any(p.attrs.get(UNTIL) == calls.UNTIL_GROUP for p in addresses):
            self.lengthen(found.points, bases)
        always = {bases[p.args[0].source] for p in addresses if BETWEEN_BLOCKS in p.attrs}
        self.spans.update(dict.fromkeys(always, (0, found.now)))
        #: The source line of each time.
        self.lines: list[Where | None] = [None]
        line, by_point = None, {}
        for p in flow.walk(lambda p: not p.is_step()):
            line = by_point[p] = nodes.where_of(p.stmt) or line
        self.lines += [by_point[p] for p in found.points if p is not None]

    def lengthen(self, points: Sequence[Point | None], bases: Mapping[BufferVar, BufferVar]) -> None:
        """Extend a copy destination's live range to the last wait for the copies.

        Parameters
        ----------
        points
            The point of each time.
        """
        filled: set[BufferVar] = set()
        for time, p in enumerate(points):
            for call in _calls_of(p) if p is not None else ():
                if nodes.is_tile_call(call, "address") and call.attrs.get(UNTIL) == calls.UNTIL_GROUP:
                    filled.add(bases[call.args[0].source])
                elif filled and nodes.is_tile_call(call, "async_wait"):
                    self.spans.update({b: (self.spans[b][0], max(self.spans[b][1], time)) for b in filled})


def _calls_of(p: Point) -> list[Call]:
    """Return the calls of a point that is one time."""
    parts = [p.stmt] if p.kind == "plain" or p.is_step() else p.own
    return [c for part in parts for c in collect(part, ir.Call)]


def listed(node: Sequence[BufferVar], bases: dict[BufferVar, BufferVar]) -> set[BufferVar]:
    """Return the buffers that a ``tile.managed`` attribute lists.

    A buffer is listed by itself or by name. Views count as their base buffers.

    Parameters
    ----------
    node
        The attribute's node.
    bases
        The buffer that each buffer aliases; itself for most.
    """
    found: set[BufferVar] = set()
    for x in [node] if isinstance(node, (str, tirx.Var)) else list(node):
        if isinstance(x, tirx.Var):
            found.add(bases.get(x, x))
        else:
            name = str(getattr(x, "value", x))
            found |= {base for b, base in bases.items() if str(b.name) == name}
    return found


def _needed(addresses: Sequence[Call]) -> dict[BufferVar, int]:
    """Return the alignment that instructions rely on, by the buffer whose address they take."""
    found: dict[BufferVar, int] = {}
    for call in addresses:
        if ALIGN in call.attrs:
            source = call.args[0].source
            found[source] = max(found.get(source, 1), int(nodes.as_int(call.attrs[ALIGN])))
    return found


def _orders(buffers: Sequence[_Buffer]) -> list[list[_Buffer]]:
    """Return allocation orders to try, the preferred one first among plans of equal size."""
    by_size = sorted(buffers, key=lambda b: -b.bytes)
    by_start = sorted(buffers, key=lambda b: b.span or (0, 0))
    by_length = sorted(buffers, key=lambda b: -(b.span[1] - b.span[0] if b.span else 0))
    return [by_start, by_size, by_length]


def _smallest(buffers: Sequence[_Buffer]) -> tuple[int, dict[BufferVar, int]]:
    """Return the size and offsets of the smallest plan."""
    return min((_pack(order) for order in _orders(buffers)), key=lambda plan: plan[0])


def _pack(order: Sequence[_Buffer]) -> tuple[int, dict[BufferVar, int]]:
    """Allocate each buffer at the lowest offset that no simultaneously live buffer occupies."""
    placed: list[tuple[_Buffer, int]] = []
    for b in order:
        at = 0
        taken = sorted((start, start + other.bytes) for other, start in placed if other.meets(b))
        for start, end in taken:
            if at + b.bytes > start:
                at = max(at, -(-end // b.align) * b.align)
        placed.append((b, at))
    return max(at + b.bytes for b, at in placed), {b.buffer: at for b, at in placed}


class _AnnotateOffsets(StmtRewriter):
    def __init__(self, offsets: Mapping[BufferVar, int]) -> None:
        self.offsets = offsets

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        offset = self.offsets.get(s.buffer)
        if offset is None:
            return s
        notes = {**dict(s.annotations or {}), OFFSET: nodes.int_const(offset)}
        return tirx.AllocBuffer(s.buffer, notes, s.span)


def _exceeded(buffers: Sequence[_Buffer], size: int, limit: int) -> SharedMemoryExceeded:
    moments = {b.span[0] for b in buffers if b.span}
    peaks = [[b for b in buffers if b.span and b.span[0] <= t <= b.span[1]] for t in sorted(moments)]
    peak = max(peaks, key=lambda bs: sum(b.bytes for b in bs), default=list(buffers))
    peak = sorted(peak, key=lambda b: -b.bytes)
    rows = [(str(b.buffer.name), str(b.shape), str(b.dtype), f"{b.bytes} bytes", _line(b.where)) for b in peak]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    table = "\n".join("  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
    return SharedMemoryExceeded(
        found=size, limit=limit, table=table, advice=_advice(peak, size, limit), where=peak[0].where
    )


def _line(where: Where | None) -> str:
    return "" if where is None else f"line {where.line}"


def _advice(peak: Sequence[_Buffer], size: int, limit: int) -> str:
    """Return the nearest change that helps: fewer stages, or a smaller tile."""
    most = max((b.stages for b in peak), default=1)
    for stages in range(most - 1, 0, -1):
        saved = sum(b.bytes - b.bytes // b.stages * min(stages, b.stages) for b in peak)
        if size - saved <= limit:
            return f"use num_stages={stages} in the pipelined loop instead of {most}, or smaller tiles"
    largest = peak[0]
    return f"make the tiles smaller, {largest.buffer.name} {largest.shape} first: {size - limit} bytes are too many"
