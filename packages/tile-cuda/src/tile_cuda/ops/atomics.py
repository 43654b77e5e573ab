"""Atomic updates, loads and stores as instructions, or as loops of compare and exchange where there is none.

An element of 8 bits is exchanged with its neighbour in the aligned 16-bit word that holds both: the neighbour's value
is put back as it was, whoever owns it, and no byte outside of that word is touched. A word never straddles the end of
an allocation, since allocations are multiples of words. ``red.global.add.f32`` and ``atom.global.add.f32`` flush
subnormal numbers to zero; in shared memory they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.lowering.variant import Accept, Reject, Variant
from tile_core.ops.atomic import combine
from tile_core.ops.base import OpCall, View
from tile_core.ops.copy import convert
from tile_core.simt import calls
from tile_core.simt.variant import SimtVariant
from tile_cuda.ptx import atomics

if TYPE_CHECKING:
    from tile_core.context import Context

MEMORY = ("global", "shared")


class _Atomic(SimtVariant):
    """What the atomics of elements share: one thread does them, for itself or for the block."""

    priority = 10
    in_thread_code = True

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept every element; one that is private to a thread needs no instruction."""
        view = call.args[0]
        if view.scope not in MEMORY:
            return Accept(note="plain: no other thread sees it")
        return Accept(note=self.function(call, ctx).name)

    def function(self, call: Any, ctx: Context) -> atomics.Atomic:
        """Return the function that does it."""
        raise NotImplementedError


class AtomicElement(_Atomic):
    """An update of one element, with or without its previous value."""

    name = "cuda.atomic.instruction"
    op = "atomic"

    def function(self, call: Any, ctx: Context, returns: bool = False) -> atomics.Atomic:
        """Return the function that does it."""
        return update_of(call, call.args[0], ctx, returns)

    def lower(self, call: Any, ctx: Context) -> Any:
        """Update the element, if it exists."""
        dst, value = call.args
        return guarded(call, dst, updated(call, dst, dst.at([0] * len(dst.extents)), value, ctx))

    def lower_value(self, call: Any, ctx: Context) -> tuple[Any, Any]:
        """Update the element and return what it was; zero if it does not exist."""
        dst, value = call.args
        at = dst.at([0] * len(dst.extents))
        before, make = nodes.alloc([1], dst.dtype, "before", "local")
        if dst.scope not in MEMORY:
            keep = nodes.store(before, nodes.load(dst.buffer, at), [0])
            parts = [keep, updated(call, dst, at, value, ctx)]
        else:
            found = self.function(call, ctx, True)
            answer = nodes.tile_call(
                "instruction", [calls.address(dst.buffer, at, "rw"), operand(value, dst.dtype, found)],
                {"name": found.name}, ret=found.dtype,
            )  # fmt: skip
            parts = [*fence(found), nodes.store(before, bits(answer, dst.dtype), [0], call.span)]
        return once(call, before, make, guarded(call, dst, nodes.seq(parts)))


class AtomicFill(Variant):
    """An update of every element of a tile with one number: once for the block, or by every thread of thread code."""

    name = "cuda.atomic_fill.nest"
    op = "atomic_fill"
    priority = 10
    in_thread_code = True

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept every tile."""
        return _tile_note(call, ctx)

    def lower(self, call: Any, ctx: Context) -> Any:
        """Return the nest."""
        dst, value = call.args
        role = "serial" if call.divergent else "parallel"
        return nodes.nest(dst.shape, lambda *i: element(call, dst, i, value, ctx), role, span=call.span)


class AtomicTile(Variant):
    """An update of every element of a tile with another tile: a nest that is distributed like any other."""

    name = "cuda.atomic_tile.nest"
    op = "atomic_tile"
    priority = 10
    in_thread_code = True

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept every tile."""
        return _tile_note(call, ctx)

    def lower(self, call: Any, ctx: Context) -> Any:
        """Return the nest; the few neighbours of a vector are for one thread."""
        dst, src = call.args
        role = "serial" if "vector" in call.attrs or call.divergent else "parallel"

        def body(*indices: Any) -> Any:
            return element(call, dst, indices, nodes.load(src.buffer, src.spread(indices)), ctx)

        return nodes.nest(dst.shape, body, role, span=call.span)


class AtomicLoad(_Atomic):
    """An element as it is at one moment."""

    name = "cuda.atomic_load.instruction"
    op = "atomic_load"

    def function(self, call: Any, ctx: Context) -> atomics.Atomic:
        """Return the function that does it."""
        del ctx
        return atomics.load(call.args[0].dtype, call.args[0].scope, str(call.attrs["order"]))

    def lower(self, call: Any, ctx: Context) -> Any:
        """Do nothing: nobody wants the value."""
        del call, ctx
        return nodes.seq([])

    def lower_value(self, call: Any, ctx: Context) -> tuple[Any, Any]:
        """Return the element; zero if it does not exist."""
        src = call.args[0]
        at = src.at([0] * len(src.extents))
        value, make = nodes.alloc([1], src.dtype, "value", "local")
        if src.scope not in MEMORY:
            body = nodes.store(value, nodes.load(src.buffer, at), [0])
        else:
            found = self.function(call, ctx)
            args = [calls.address(src.buffer, at, "r")]
            answer = nodes.tile_call("instruction", args, {"name": found.name}, ret=found.dtype)
            body = nodes.seq([*fence(found), nodes.store(value, bits(answer, src.dtype), [0], call.span)])
        return once(call, value, make, guarded(call, src, body))


class AtomicStore(_Atomic):
    """An element that appears at one moment."""

    name = "cuda.atomic_store.instruction"
    op = "atomic_store"

    def function(self, call: Any, ctx: Context) -> atomics.Atomic:
        """Return the function that does it."""
        del ctx
        return atomics.store(call.args[0].dtype, call.args[0].scope, str(call.attrs["order"]))

    def lower(self, call: Any, ctx: Context) -> Any:
        """Store, if the element exists."""
        dst, value = call.args
        at = dst.at([0] * len(dst.extents))
        if dst.scope not in MEMORY:
            body = nodes.store(dst.buffer, convert(value, dst.dtype), at, call.span)
        else:
            found = self.function(call, ctx)
            args = [calls.address(dst.buffer, at, "w"), operand(value, dst.dtype, found)]
            body = nodes.seq([*fence(found), calls.execute(found.name, args, call.span)])
        return guarded(call, dst, body)


def _tile_note(call: Any, ctx: Context) -> Accept:
    dst = call.args[0]
    return Accept(note=update_of(call, dst, ctx, False).name if dst.scope in MEMORY else "plain: it is private")


def update_of(call: Any, dst: View, ctx: Context, returns: bool) -> atomics.Atomic:
    """Return the function that updates an element of memory."""
    kind, order = str(call.attrs["kind"]), str(call.attrs["order"])
    return atomics.update(kind, dst.dtype, dst.scope, order, returns=returns, arch=ctx.target.arch)


def element(call: OpCall, dst: View, indices: Sequence[Any], value: Any, ctx: Context) -> Any:
    """Return the update of one element of a tile, under the conditions that it exists."""
    at = dst.spread(list(indices))
    return when_inside(call, dst, at, updated(call, dst, at, value, ctx))


def updated(call: OpCall, dst: View, at: list[Any], value: Any, ctx: Context) -> Any:
    """Return the update of an element that exists."""
    if dst.scope not in MEMORY:
        new = combine(str(call.attrs["kind"]), dst.dtype, nodes.load(dst.buffer, at), convert(value, dst.dtype))
        return nodes.store(dst.buffer, new, at, call.span)
    found = update_of(call, dst, ctx, False)
    args = [calls.address(dst.buffer, at, "rw"), operand(value, dst.dtype, found)]
    return nodes.seq([*fence(found), calls.execute(found.name, args, call.span)])


def operand(value: Any, dtype: str, found: atomics.Atomic) -> Any:
    """Return a value as a function takes it: converted to the element's type, then its bits."""
    return bits(convert(value, dtype), found.dtype)


def bits(value: Any, dtype: str) -> Any:
    """Return the bits of a value as another type of the same width."""
    return value if nodes.dtype_of(value) == dtype else tirx.reinterpret(dtype, value)


def fence(found: atomics.Atomic) -> list[Any]:
    """Return the fence that must come first, if there is one."""
    return [calls.execute(found.fence, [])] if found.fence else []


def guarded(call: Any, view: View, body: Any) -> Any:
    """Return a statement about a view's only element, under the conditions that it exists."""
    return when_inside(call, view, view.at([0] * len(view.extents)), body)


def when_inside(call: Any, view: View, at: Sequence[Any], body: Any) -> Any:
    """Return a statement under the conditions that an index is inside of a buffer, where that is not certain."""
    ranges = getattr(call, "ranges", None)
    conditions: list[Any] = []
    for d, (index, size) in enumerate(zip(at, nodes.shape_of(view.buffer), strict=True)):
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


def once(call: Any, value: Any, make: Any, body: Any) -> tuple[Any, Any]:
    """Return statements that leave a result in a register, and the result.

    Outside of thread code one thread does it for the block, and the others learn the result from shared memory.
    """
    dtype = nodes.element_type(value)
    safe = call.places.safe_values.get(call.args[0].buffer)
    start = nodes.store(value, nodes.zero(dtype) if safe is None else nodes.cast(safe, dtype), [0])
    if call.divergent or call.block.count == 1:
        return nodes.seq([make, start, body]), value[0]
    scratch, allocate = nodes.alloc([1], dtype, "known", "shared")
    first = tirx.EQ(call.block.thread, nodes.int_const(0))
    tell = tirx.IfThenElse(first, nodes.seq([body, nodes.store(scratch, value[0], [0])]), None)
    learn = nodes.store(value, scratch[0], [0])
    return nodes.seq([allocate, make, calls.step(nodes.seq([start, tell])), calls.step(learn)]), value[0]


VARIANTS = (AtomicElement, AtomicFill, AtomicTile, AtomicLoad, AtomicStore)
"""One for each op."""
