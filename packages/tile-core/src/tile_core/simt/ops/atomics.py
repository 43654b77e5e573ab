"""Atomics on threads: the executing thread, the guards, and the result's destination.

The backend implements ``Atomics``: the update, load and store of one element of memory. A thread's private data is
updated by ordinary statements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Operand, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject, Variant
from tile_core.ops.atomic import combine
from tile_core.ops.base import OpCall, View
from tile_core.ops.copy import convert
from tile_core.simt.variant import SimtCall, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context

#: Scopes visible to several threads.
MEMORY = ("global", "shared")


class Atomics(ABC):
    """Backend interface for atomic updates, loads and stores of one memory element.

    ``legality`` is the table of elements in memory, with the operand ``dst``; what it leaves out ``accepts`` rejects.

    ``at`` is an index of the view's buffer; the element is known to exist. Values have its type. A method that yields a
    value returns (a statement that must come first or ``None``, an expression evaluated once).
    """

    legality: Legality = Legality()

    @abstractmethod
    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Answer for an op (any of ``atomic_variants``) on memory; the note names the implementation."""

    @abstractmethod
    def update(self, call: Operand, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
        """Return the statement that combines an element with ``value``, by the call's ``kind`` and ``order``."""

    @abstractmethod
    def fetch(self, call: Operand, dst: View, at: list[Expr], value: Expr, ctx: Context) -> tuple[Stmt, Expr]:
        """Update an element, and yield its previous value."""

    @abstractmethod
    def load(self, call: Operand, src: View, at: list[Expr], ctx: Context) -> tuple[Stmt, Expr]:
        """Yield an element, by the call's ``order``."""

    @abstractmethod
    def store(self, call: Operand, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
        """Return the statement that stores an element, by the call's ``order``."""


def atomic_variants(owner: str, atomics: Atomics) -> tuple[Variant, ...]:
    """Return one variant for each op; ``owner`` is the backend's name."""
    kinds = (AtomicElement, AtomicFill, AtomicTile, AtomicLoad, AtomicStore)
    return tuple(kind(owner, atomics) for kind in kinds)


class _Element(SimtVariant):
    """Base of the element atomics: one thread executes them, for itself or the block."""

    priority = 10
    in_thread_code = True

    def __init__(self, owner: str, atomics: Atomics) -> None:
        self.name, self.atomics = f"{owner}.{self.op}.instruction", atomics
        self.legality = atomics.legality

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept thread-private operands; the backend decides about memory."""
        if call.args[0].scope not in MEMORY:
            return Accept(note="plain: no other thread sees it")
        return self.atomics.accepts(call, ctx)


class AtomicElement(_Element):
    """An update of one element, with or without its previous value."""

    op = "atomic"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Update the element, if it exists."""
        dst, value = call.args
        return guarded(call, dst, updated(self.atomics, call, dst, corner(dst), value, ctx))

    def lower_value(self, call: SimtCall, ctx: Context) -> tuple[Stmt, Expr]:
        """Update the element and return its previous value; zero if it does not exist."""
        dst, value = call.args
        at = corner(dst)
        before, make = nodes.alloc([1], dst.dtype, "before", "local")
        if dst.scope not in MEMORY:
            keep = nodes.store(before, nodes.load(dst.buffer, at), [0])
            parts = [keep, updated(self.atomics, call, dst, at, value, ctx)]
        else:
            first, answer = self.atomics.fetch(call, dst, at, convert(value, dst.dtype), ctx)
            parts = [first, nodes.store(before, answer, [0], call.span)]
        return once(call, before, make, guarded(call, dst, nodes.seq(parts)))


class AtomicLoad(_Element):
    """An atomic load of an element."""

    op = "atomic_load"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Do nothing: the value is unused."""
        return nodes.seq([])

    def lower_value(self, call: SimtCall, ctx: Context) -> tuple[Stmt, Expr]:
        """Return the element; zero if it does not exist."""
        src = call.args[0]
        at = corner(src)
        value, make = nodes.alloc([1], src.dtype, "value", "local")
        if src.scope not in MEMORY:
            body = nodes.store(value, nodes.load(src.buffer, at), [0])
        else:
            first, answer = self.atomics.load(call, src, at, ctx)
            body = nodes.seq([first, nodes.store(value, answer, [0], call.span)])
        return once(call, value, make, guarded(call, src, body))


class AtomicStore(_Element):
    """An atomic store of an element."""

    op = "atomic_store"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Store, if the element exists."""
        dst, value = call.args
        at, value = corner(dst), convert(value, dst.dtype)
        if dst.scope not in MEMORY:
            body = nodes.store(dst.buffer, value, at, call.span)
        else:
            body = self.atomics.store(call, dst, at, value, ctx)
        return guarded(call, dst, body)


class _TileAtomic(Variant):
    """Base of the atomics of tiles: they are nests of updates of elements."""

    priority = 10
    in_thread_code = True

    def __init__(self, owner: str, atomics: Atomics) -> None:
        self.name, self.atomics = f"{owner}.{self.op}.nest", atomics

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept thread-private operands; the backend decides about memory."""
        if call.args[0].scope not in MEMORY:
            return Accept(note="plain: it is private")
        return self.atomics.accepts(call, ctx)

    def element(self, call: SimtCall, dst: View, indices: Sequence[Expr], value: Expr, ctx: Context) -> Stmt:
        """Update one element of a tile, with its address guarded like any access."""
        return updated(self.atomics, call, dst, dst.spread(list(indices)), value, ctx)


class AtomicFill(_TileAtomic):
    """An atomic update of every element of a tile with one scalar.

    It is executed once for the block, or by every thread of thread code.
    """

    op = "atomic_fill"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the nest."""
        dst, value = call.args
        role = "serial" if call.divergent else "parallel"
        return nodes.nest(dst.shape, lambda *i: self.element(call, dst, i, value, ctx), role, span=call.span)


class AtomicTile(_TileAtomic):
    """An atomic update of every element of a tile with another tile.

    It is a nest that is distributed like any other.
    """

    op = "atomic_tile"

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the nest; the few elements of a vector go to one thread."""
        dst, src = call.args
        role = "serial" if attributes.VECTOR_WIDTH in call.attrs or call.divergent else "parallel"

        def body(*indices: Var) -> Stmt:
            return self.element(call, dst, indices, nodes.load(src.buffer, src.spread(indices)), ctx)

        return nodes.nest(dst.shape, body, role, span=call.span)


def corner(view: View) -> list[Expr]:
    """Return the index in its buffer of a view's first element."""
    return view.at([0] * len(view.extents))


def updated(atomics: Atomics, call: OpCall, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
    """Return the update of an element that exists."""
    value = convert(value, dst.dtype)
    if dst.scope in MEMORY:
        return atomics.update(call, dst, at, value, ctx)
    new = combine(str(call.attrs[attributes.KIND]), dst.dtype, nodes.load(dst.buffer, at), value)
    return nodes.store(dst.buffer, new, at, call.span)


def bits(value: Var, dtype: str) -> Expr:
    """Return the bits of a value as another type of the same width."""
    return value if nodes.dtype_of(value) == dtype else tirx.reinterpret(dtype, value)


def guarded(call: SimtCall, view: View, body: Stmt) -> Stmt:
    """Guard a statement about a view's only element by its unproven bounds conditions."""
    ranges = getattr(call, "ranges", None)
    conditions: list[Expr] = []
    for d, (index, size) in enumerate(zip(corner(view), nodes.shape_of(view.buffer), strict=True)):
        low, extent = view.mins[d], view.extents[d]
        if all(isinstance(x, int) for x in (low, extent, size)) and 0 <= low <= low + extent <= size:
            continue
        i = nodes.int_const(index) if isinstance(index, int) else index
        n = nodes.int_const(size, nodes.dtype_of(i)) if isinstance(size, int) else size
        if nodes.dtype_of(i) != nodes.dtype_of(n):
            i, n = nodes.cast(i, "int64"), nodes.cast(n, "int64")
        for condition in (i >= nodes.int_const(0, nodes.dtype_of(i)), i < n):
            if ranges is None or not ranges.can_prove(condition):
                conditions.append(condition)
    conditions = [c for c in conditions if nodes.as_int(c) != 1]
    return tirx.IfThenElse(tirx.all(*conditions), body, None, call.span) if conditions else body


def once(call: SimtCall, value: BufferVar, make: Stmt, body: Stmt) -> tuple[Stmt, Expr]:
    """Return statements that leave a result in a register, and the result.

    Outside thread code one thread does it for the block, and the others read the result from shared memory.
    """
    dtype = nodes.element_type(value)
    safe = call.placement.safe_values.get(call.args[0].buffer)
    start = nodes.store(value, nodes.zero(dtype) if safe is None else nodes.cast(safe, dtype), [0])
    if call.divergent or call.block.count == 1:
        return nodes.seq([make, start, body]), value[0]
    scratch, allocate = nodes.alloc([1], dtype, "known", "shared")
    first = tirx.EQ(call.block.thread, nodes.int_const(0))
    publish = tirx.IfThenElse(first, nodes.seq([body, nodes.store(scratch, value[0], [0])]), None)
    # A register that only uniform values are stored to: loops and branches by the result are then those of the block.
    result, new = nodes.alloc([1], dtype, "result", "local")
    learn = nodes.store(result, scratch[0], [0])
    parts = [allocate, make, new, calls.step(nodes.seq([start, publish])), calls.step(learn)]
    return nodes.seq(parts), result[0]
