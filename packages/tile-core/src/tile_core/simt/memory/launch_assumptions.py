"""Assumptions of a specialized version about launch arguments, which the launch checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect, distinct
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.memory.alignment import WIDEST, Aligned, factor, row_symbols, strides_of

#: The largest divisor of a symbol that is assumed.
_LARGEST = 4096


def given_symbols(params: Sequence[Var], symbols: Iterable[str]) -> dict[str, Var]:
    """Return the parameters named like symbols: a call gives both the same value."""
    scalars = {str(v.name): v for v in params if not tirx.is_buffer_var(v)}
    return {name: scalars[name] for name in symbols if name in scalars}


def assume(params: Sequence[Expr]) -> Aligned:
    """Return the assumptions of the fastest version, see ``levels``."""
    return levels(params)[0]


def levels(params: Sequence[Expr]) -> list[Aligned]:
    """Return the assumptions of specialized versions, from the strongest to the weakest.

    Each one is weaker than the one before, so more launches satisfy it.

    All parameters are aligned, and symbols have divisors by which rows are, too: a row of ``n`` float16 begins at a
    multiple of 16 bytes if 8 divides ``n``, one of ``k // 16`` if 128 divides ``k``, and one of ``64 * n`` always.
    Where rows of several tensors need different divisors of a symbol, the first version assumes the largest, which
    serves all of them, and each further version the next.
    """
    buffers = [p for p in params if tirx.is_buffer_var(p)]
    needs: dict[Var, set[int]] = {}
    for buffer in buffers:
        elements = max(1, WIDEST * 8 // DTYPES[nodes.element_type(buffer)].bits)
        for stride in strides_of(buffer)[:-1]:
            symbols = set(collect(nodes.int_const(0) + stride, tirx.Var))
            divisor = _needed(stride, symbols, elements)
            for symbol in symbols if divisor > 1 else ():
                needs.setdefault(symbol, set()).add(divisor)
    ordered = {symbol: sorted(found, reverse=True) for symbol, found in needs.items()}
    addresses = dict.fromkeys(buffers, WIDEST)
    count = max(map(len, ordered.values()), default=1)
    steps = [{s: found[min(n, len(found) - 1)] for s, found in ordered.items()} for n in range(count)]
    return [Aligned(addresses, divisors) for divisors in steps]


def _needed(stride: Expr, symbols: set[Var], elements: int) -> int:
    """Return the power-of-two divisor of symbols that makes a stride a multiple of ``n`` elements."""
    if factor(stride, {}) % elements == 0:
        return 1
    divisor = 2 if len(symbols) == 1 else elements  # of several, each may stand in other strides alone
    while divisor <= _LARGEST:
        if factor(stride, dict.fromkeys(symbols, divisor)) % elements == 0:
            return divisor
        divisor *= 2
    return elements


def promised(body: Stmt) -> dict[BufferVar, int]:
    """Return the alignment of tensors at addresses from tables, as guaranteed by ``T.make_tensor``."""
    views = [d for d in collect(body, tirx.DeclBuffer) if isinstance(d.data, tirx.Var)]
    return {d.buffer: int(d.buffer.ty.data_alignment) for d in views if not tirx.is_buffer_var(d.data)}


def demanded(body: Stmt, aligned: Aligned) -> Aligned:
    """Restrict an assumption to the accesses of calls that require an instruction."""
    forced = [s for s in collect(body, tirx.Evaluate) if is_op(s) and OpCall.decode(s).attrs.get(attributes.VARIANT)]
    found = [v for s in forced for v in collect(s, tirx.Var)]
    buffers = [b for b in aligned.addresses if any(b.same_as(v) for v in found)]
    symbols = {v for b in buffers for v in row_symbols(b)}.union(v for v in found if v in aligned.divisors)
    addresses = {b: aligned.addresses[b] for b in buffers}
    return Aligned(addresses, {v: n for v, n in aligned.divisors.items() if v in symbols})


def relied(body: Stmt, aligned: Aligned, decided: Collection[Var] = ()) -> Aligned:
    """Return the part of an assumption that a thread's vector accesses require.

    ``decided`` are symbols whose divisors decide more than the alignment of rows.
    """
    calls = [c for c in collect(body, ir.Call) if nodes.operator_name(c) in ("tile.move", "tile.address")]
    used = distinct([a.source for c in calls for a in structural.items(c.args) if type(a) is ir.TensorLoad])
    shown = _shown(body)
    used |= {base for view, base in shown.items() if view in used}
    buffers = [b for b in aligned.addresses if b in used]
    symbols = {v for b in buffers for v in row_symbols(b)}.union(decided)
    addresses = {b: aligned.addresses[b] for b in buffers}
    for view, base in shown.items():
        size = _size(view)
        if max(size, addresses.get(base, 1)) > _size(base):
            addresses[base] = max(size, addresses.get(base, 1))
    return Aligned(addresses, {v: n for v, n in aligned.divisors.items() if v in symbols})


def _shown(body: Stmt) -> dict[BufferVar, BufferVar]:
    """Return the global base buffer of each view.

    Its alignment is at least the element size of the view.
    """
    views = {
        d.buffer: next((v for v in collect(d.data, tirx.Var) if tirx.is_buffer_var(v)), None)
        for d in collect(body, tirx.DeclBuffer)
    }
    found = {}
    for view, base in views.items():
        while base in views:
            base = views[base]
        if base is not None and nodes.scope_of(base) == "global":
            found[view] = base
    return found


def _size(buffer: BufferVar) -> int:
    return max(1, DTYPES[nodes.element_type(buffer)].bits // 8)
