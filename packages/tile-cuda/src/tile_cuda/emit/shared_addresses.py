"""Addresses in shared memory whose index has a loop-variant and a loop-invariant part.

Indices are signed and are widened before they are scaled, so compilers add and scale the whole index in each iteration,
for each of the many operands of a product. As two byte offsets, the invariant part is computed once, and one addition
is left.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.emit.kernel_printer import bits_of
from tile_core.ir import nodes
from tile_core.ir.visit import collect

_CHUNK_BITS = 128


def apart(index: Expr, changing: set[Var]) -> tuple[Any, Any] | None:
    """Split an index into terms with ``changing`` variables and the rest, or return ``None``.

    It is ``None`` if either part is constant.
    """
    kinds: dict[bool, Any] = {}
    for addend in _addends(index):
        kind = not changing.isdisjoint(collect(addend, tirx.Var))
        kinds[kind] = kinds[kind] + addend if kind in kinds else addend
    if len(kinds) < 2 or isinstance(nodes.as_int(kinds[False]), int):
        return None
    return kinds[True], kinds[False]


def without_chunks(address: Expr) -> tuple[Expr, int]:
    """Return an address without constant chunks of 16 bytes, and their number."""
    load = address.args[0] if nodes.is_tile_call(address, "address") else None
    bits = bits_of(nodes.element_type(load.source)) if load is not None else 0
    if load is None or len(load.indices) != 1 or _CHUNK_BITS % bits:
        return address, 0
    addends = _addends(load.indices[0])
    constants = [n for n in map(nodes.as_int, addends) if isinstance(n, int)]
    chunks = max(0, sum(constants)) * bits // _CHUNK_BITS
    rest: Any = nodes.int_const(sum(constants) - chunks * _CHUNK_BITS // bits)
    for addend in (a for a in addends if not isinstance(nodes.as_int(a), int)):
        rest = addend + rest if nodes.as_int(rest) == 0 else rest + addend
    moved = nodes.load(load.source, [rest], load.span)
    return type(address)(address.op, [moved], attrs=address.attrs, ret_ty=address.ty), chunks


def _addends(e: Expr) -> list[Any]:
    if type(e) is not tirx.Add:
        return [e]
    return [*_addends(e.a), *_addends(e.b)]
