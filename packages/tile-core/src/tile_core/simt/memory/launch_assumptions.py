"""Assumptions of a text about the arguments of a launch, which the launch then checks."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.memory.alignment import WIDEST, Aligned, row_symbols


def assume(params: Sequence[Expr], address: int = WIDEST) -> Aligned:
    """Return the assumptions of a fast text: alignment of all parameters, divisors of symbols in their row strides.

    A symbol is assumed to be a multiple of the number of elements in an address's alignment, so a row of float16 need
    not be as long as one of int8.
    """
    buffers = [p for p in params if tirx.is_buffer_var(p)]
    divisors: dict[Var, int] = {}
    for buffer in buffers:
        elements = max(1, address * 8 // DTYPES[nodes.element_type(buffer)].bits)
        for symbol in row_symbols(buffer):
            divisors[symbol] = max(divisors.get(symbol, 1), elements)
    return Aligned(dict.fromkeys(buffers, address), divisors)


def relied(body: Stmt, aligned: Aligned) -> Aligned:
    """Return the part of an assumption that the wide accesses of a thread's code need."""
    used: set[BufferVar] = set()
    for call in collect(body, ir.Call):
        if nodes.is_tile_call(call, "move") or nodes.is_tile_call(call, "address"):
            used |= {a.source for a in call.args if isinstance(a, ir.TensorLoad)}
    buffers = [b for b in aligned.addresses if b in used]
    symbols = {v for b in buffers for v in row_symbols(b)}
    addresses = {b: aligned.addresses[b] for b in buffers}
    for base, size in _shown(body):
        if max(size, addresses.get(base, 1)) > _size(base):
            addresses[base] = max(size, addresses.get(base, 1))
    return Aligned(addresses, {v: n for v, n in aligned.divisors.items() if v in symbols})


def _shown(body: Stmt) -> list[tuple[BufferVar, int]]:
    """Return the required alignment of each global buffer: the size of an element of a view of it."""
    views = {
        d.buffer: next((v for v in collect(d.data, tirx.Var) if tirx.is_buffer_var(v)), None)
        for d in collect(body, tirx.DeclBuffer)
    }
    found = []
    for view, base in views.items():
        while base in views:
            base = views[base]
        if base is not None and nodes.scope_of(base) == "global":
            found.append((base, _size(view)))
    return found


def _size(buffer: BufferVar) -> int:
    return max(1, DTYPES[nodes.element_type(buffer)].bits // 8)
