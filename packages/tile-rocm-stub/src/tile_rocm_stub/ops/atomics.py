"""Atomic updates, loads and stores by functions of the text (``emit/atomics.py``), with every memory order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.ops.atomics import Atomics, bits
from tile_rocm_stub.emit.atomics import STORED, name_of
from tile_rocm_stub.target import ATOMIC

if TYPE_CHECKING:
    from tile_core.context import Context


class RocmAtomics(Atomics):
    """Atomics as calls; ``"a"`` marks the address of an atomic access."""

    def accepts(self, call: Any, ctx: Context) -> Accept | Reject:
        """Accept all but 8-bit and 4-bit floats and 4-bit integers."""
        dtype = call.args[0].dtype
        if dtype not in ATOMIC:
            return Reject(f"there are no atomics of {dtype}; nearest legal: float16")
        return Accept(note=_name(call))

    def update(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Context) -> Any:
        """Return the call of the function."""
        return calls.execute(_name(call), [calls.address(dst.buffer, at, "a"), _code(value, dst.dtype)], call.span)

    def fetch(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Context) -> tuple[Any, Any]:
        """Return the call of the function, which returns the previous value."""
        args = [calls.address(dst.buffer, at, "a"), _code(value, dst.dtype)]
        return None, _answer(_name(call), args, dst.dtype)

    def load(self, call: Any, src: View, at: list[Any], ctx: Context) -> tuple[Any, Any]:
        """Return the call of the function."""
        return None, _answer(_name(call), [calls.address(src.buffer, at, "a")], src.dtype)

    def store(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Context) -> Any:
        """Return the call of the function."""
        return calls.execute(_name(call), [calls.address(dst.buffer, at, "a"), _code(value, dst.dtype)], call.span)


def _name(call: Any) -> str:
    kind = {"atomic_load": "load", "atomic_store": "store"}.get(call.name) or str(call.attrs[attributes.KIND])
    return name_of(kind, call.args[0].dtype, str(call.attrs[attributes.ORDER]))


def _code(value: Any, dtype: str) -> Any:
    return bits(value, STORED.get(dtype, dtype))


def _answer(name: str, args: list[Any], dtype: str) -> Any:
    return bits(nodes.tile_call("instruction", args, {attributes.NAME: name}, ret=STORED.get(dtype, dtype)), dtype)
