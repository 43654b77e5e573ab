"""Atomic updates, loads and stores by functions of the text, see ``emit/atomics.py``.

All are relaxed: MSL has no other memory order before 3.2, and none that orders device memory between threadgroups on
all devices of the baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import factor
from tile_core.simt.ops.atomics import Atomics
from tile_metal.emit import atomics

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

_WORD = 4


class MetalAtomics(Atomics):
    """Elements of up to 32 bits, relaxed."""

    legality = Legality(operands=("dst",), dtypes=frozenset((name,) for name in (*atomics.WORDS, *atomics.SMALL)))

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept relaxed operations on elements of up to 32 bits."""
        dtype, order = call.args[0].dtype, str(call.attrs[attributes.ORDER])
        if dtype not in (*atomics.WORDS, *atomics.SMALL):
            return Reject(f"Metal has no atomics of {dtype}; nearest legal: int32, uint32 or float32")
        if order != "relaxed":
            return Reject(f"Metal's atomics have no memory_order={order!r}; nearest legal: 'relaxed'")
        rest = _beyond(call.args[0]) if dtype in atomics.SMALL else ""
        return Reject(rest) if rest else Accept(note=_name(call))

    def update(self, call: SimtCall, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
        """Return the call of the function."""
        return calls.execute(_name(call), [calls.address(dst.buffer, at, "a"), value], call.span)

    def fetch(self, call: SimtCall, dst: View, at: list[Expr], value: Expr, ctx: Context) -> tuple[Stmt, Expr]:
        """Return the call of the function, which returns the previous value."""
        return None, calls.instruction(_name(call), [calls.address(dst.buffer, at, "a"), value], dst.dtype)

    def load(self, call: SimtCall, src: View, at: list[Expr], ctx: Context) -> tuple[Stmt, Expr]:
        """Return the call of the function."""
        return None, calls.instruction(_name(call), [calls.address(src.buffer, at, "a")], src.dtype)

    def store(self, call: SimtCall, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
        """Return the call of the function."""
        return calls.execute(_name(call), [calls.address(dst.buffer, at, "a"), value], call.span)


def _beyond(view: View) -> str:
    """Return why an element's word may extend beyond its array, or an empty string."""
    size = DTYPES[view.dtype].bits // 8
    for extent in nodes.shape_of(view.buffer):
        size *= factor(nodes.int_const(0) + extent, {})
    if size % _WORD == 0 or view.scope == "shared":
        return ""
    least = _WORD * 8 // DTYPES[view.dtype].bits
    return (
        f"Metal's atomics exchange words of {_WORD} bytes, and {view.buffer.name} does not end at one; "
        f"nearest legal: a constant extent that is a multiple of {least}"
    )


def _name(call: SimtCall) -> str:
    """Return the function that implements a call."""
    view = call.args[0]
    space = "threadgroup" if view.scope == "shared" else "device"
    if call.name == "atomic_load":
        return atomics.load_name(view.dtype, space)
    if call.name == "atomic_store":
        return atomics.store_name(view.dtype, space)
    return atomics.update_name(str(call.attrs[attributes.KIND]), view.dtype, space)
