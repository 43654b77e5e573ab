"""Tiles of 4-bit elements whose bytes are copied as they are.

A shared buffer of 4-bit elements has a byte for each element, because threads cannot store half a byte independently of
each other. A tile that only copies of whole bytes write needs none of that: it and the tensors at the other end become
arrays of bytes, which all ways to copy take, also asynchronous ones, and an element is a half of a byte where it is
converted::

    copy(W[n, k], q)                copy(W[n, k // 2], q)
    x = float(q[i, j])       ->     x = float(half(q[i, j // 2], j % 2))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr
from tile_core.numerics.exprs import int4_expr, nibble_expr
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.element_units import UseUnits, ends_of, in_units, units_of

__all__ = ["pack_tiles", "renamed_addresses"]

#: Attributes of a copy that demand an instruction, which may not know bytes, or complete elsewhere.
_DEMANDS = frozenset({"variant", "async", "round"})


def pack_tiles(body: Stmt, params: Collection[Var], kept: Collection[str]) -> tuple[Stmt, dict[Var, BufferVar]]:
    """Return a program whose tiles of 4-bit elements are bytes where that is legal.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    params
        Its parameters.
    kept
        Names of tensors and buffers with a layout, or with values outside of their own.

    Returns
    -------
    tuple
        The program, and the new buffers by the old ones.
    """
    tiles = {a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"}
    tiles = {b for b in tiles if _is_even(b, kept)}
    ends = {v.buffer for s in collect(body, tirx.Evaluate) for v in ends_of(s) if tiles.intersection(_names(s))}
    chosen = tiles | {p for p in params if p in ends and _is_even(p, kept)}
    while chosen:
        rewriter = _UseBytes({b: units_of(b, 2, "uint8") for b in chosen})
        new = rewriter.stmt(body)
        left = chosen.intersection(collect(new, tirx.Var)) | rewriter.refused
        if not left:
            return new, dict(rewriter.buffers)
        chosen -= left
    return body, {}


def renamed_addresses(aligned: Aligned, buffers: Mapping[Var, BufferVar]) -> Aligned:
    """Return an assumption about the addresses of other buffers."""
    return replace(aligned, addresses={buffers.get(b, b): size for b, size in aligned.addresses.items()})


class _UseBytes(UseUnits):
    def __init__(self, buffers: dict[Var, BufferVar]) -> None:
        super().__init__(buffers, 2, 2, _DEMANDS)

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.converted, tirx.Cast)

    def converted(self, e: Expr) -> Expr:
        """Return the conversion of an element, which is half of a byte."""
        load = e.value
        if type(load) is not ir.TensorLoad or load.source not in self.buffers:
            return e
        *rows, last = load.indices
        byte = nodes.load(self.buffers[load.source], [*rows, in_units(last, 2)], load.span)
        code, kind, to = nibble_expr(byte, last), nodes.element_type(load.source), nodes.dtype_of(e)
        if not DTYPES[kind].is_float:
            return nodes.cast(int4_expr(code, kind), to)
        return nodes.cast(tirx.reinterpret(kind, code), to)


def _names(s: Stmt) -> list[Var]:
    return [v.buffer for v in ends_of(s)]


def _is_even(buffer: Var, kept: Collection[str]) -> bool:
    """Whether each row of a buffer of 4-bit elements is a number of whole bytes."""
    if not tirx.is_buffer_var(buffer) or not DTYPES[nodes.element_type(buffer)].is_packed:
        return False
    last = nodes.shape_of(buffer)[-1] if len(buffer.shape) else 1
    return isinstance(last, int) and last % 2 == 0 and str(buffer.name) not in kept
