"""Atomic updates: one function of the language each, for elements of every type."""

from __future__ import annotations

from tile_core.ir import attributes, calls
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.atomics import Atomics
from tile_toyc.target import FLOATS, INTEGERS


def split_byte(buffer, indices, code, half):
    """Store half a byte whose other half another thread may store."""
    return calls.execute(f"atomic_{half}_half", [calls.address(buffer, indices, "a"), code])


class ToyAtomics(Atomics):
    """Emit each operation as a call; ``"a"`` marks the address of an atomic access."""

    def accepts(self, call, ctx):
        dtype, order = call.args[0].dtype, str(call.attrs[attributes.ORDER])
        if dtype not in (*INTEGERS, *FLOATS):
            return Reject(f"toy C has no atomics of {dtype}; nearest legal: float32")
        if order != "relaxed":
            return Reject(f"toy C's atomics have no memory_order={order!r}; nearest legal: 'relaxed'")
        return Accept()

    def update(self, call, dst, at, value, ctx):
        return calls.execute(f"atomic_{call.attrs['kind']}", [calls.address(dst.buffer, at, "a"), value], call.span)

    def fetch(self, call, dst, at, value, ctx):
        name = f"atomic_{call.attrs['kind']}"
        return None, calls.instruction(name, [calls.address(dst.buffer, at, "a"), value], dst.dtype)

    def load(self, call, src, at, ctx):
        return None, calls.instruction("atomic_load", [calls.address(src.buffer, at, "a")], src.dtype)

    def store(self, call, dst, at, value, ctx):
        return calls.execute("atomic_store", [calls.address(dst.buffer, at, "a"), value], call.span)
