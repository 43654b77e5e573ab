"""Atomic updates, loads and stores as instructions, or as compare-and-swap loops.

An element of 8 bits is exchanged with its neighbour in the aligned 16-bit word that holds both: the neighbour's value
is put back as it was, whoever owns it, and no byte outside of that word is touched. A word never straddles the end of
an allocation, since allocations are multiples of words. ``red.global.add.f32`` and ``atom.global.add.f32`` flush
subnormal numbers to zero; in shared memory they do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir import attributes, calls, nodes
from tile_core.lowering.variant import Accept
from tile_core.ops.base import View
from tile_core.simt.ops.atomics import Atomics, bits
from tile_cuda.ptx import atomics

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall


class PtxAtomics(Atomics):
    """Every element of memory, by a function of the table."""

    def accepts(self, call: SimtCall, ctx: Context) -> Accept:
        """Accept every element type, scope and order."""
        find = {"atomic_load": load_of, "atomic_store": store_of}.get(call.name)
        found = find(call, call.args[0]) if find else update_of(call, call.args[0], ctx, False)
        return Accept(note=found.name)

    def update(self, call: SimtCall, dst: View, at: list[Expr], value: Expr, ctx: Context) -> Stmt:
        """Return the call of the function."""
        found = update_of(call, dst, ctx, False)
        args = [calls.address(dst.buffer, at, "a"), bits(value, found.dtype)]
        return nodes.seq([fence(found), calls.execute(found.name, args, call.span)])

    def fetch(self, call: SimtCall, dst: View, at: list[int], value: Expr, ctx: Context) -> tuple[Stmt | None, Call]:
        """Return the fence and the call of the function that returns the previous value."""
        found = update_of(call, dst, ctx, True)
        return given(found, [calls.address(dst.buffer, at, "a"), bits(value, found.dtype)], dst.dtype)

    def load(self, call: SimtCall, src: View, at: list[int], ctx: Context) -> tuple[Stmt | None, Call]:
        """Return the fence and the call of the function."""
        return given(load_of(call, src), [calls.address(src.buffer, at, "r")], src.dtype)

    def store(self, call: SimtCall, dst: View, at: list[int], value: Expr, ctx: Context) -> Stmt:
        """Return the call of the function."""
        found = store_of(call, dst)
        args = [calls.address(dst.buffer, at, "w"), bits(value, found.dtype)]
        return nodes.seq([fence(found), calls.execute(found.name, args, call.span)])


def update_of(call: SimtCall, dst: View, ctx: Context, returns: bool) -> atomics.Atomic:
    """Return the function that updates an element of memory."""
    kind, order = str(call.attrs[attributes.KIND]), str(call.attrs[attributes.ORDER])
    return atomics.update(kind, dst.dtype, dst.scope, order, returns=returns, arch=ctx.target.arch)


def load_of(call: SimtCall, src: View) -> atomics.Atomic:
    """Return the function that loads an element of memory."""
    return atomics.load(src.dtype, src.scope, str(call.attrs[attributes.ORDER]))


def store_of(call: SimtCall, dst: View) -> atomics.Atomic:
    """Return the function that stores an element of memory."""
    return atomics.store(dst.dtype, dst.scope, str(call.attrs[attributes.ORDER]))


def given(found: atomics.Atomic, args: list[Expr], dtype: str) -> tuple[Stmt | None, Call]:
    """Return the fence of a function and its result, converted to an element type."""
    answer = nodes.tile_call("instruction", args, {attributes.NAME: found.name}, ret=found.dtype)
    return fence(found), bits(answer, dtype)


def fence(found: atomics.Atomic) -> Stmt | None:
    """Return the fence that must come first, if there is one."""
    return calls.execute(found.fence, []) if found.fence else None
