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
from tile_core.ir.visit import StmtRewriter, collect, map_expr
from tile_core.numerics.exprs import int4_expr, nibble_expr
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.memory.alignment import Aligned, factor

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
    ends = {v.buffer for s in collect(body, tirx.Evaluate) for v in _ends(s) if tiles.intersection(_names(s))}
    chosen = tiles | {p for p in params if p in ends and _is_even(p, kept)}
    while chosen:
        rewriter = _UseBytes({b: _bytes_of(b) for b in chosen})
        new = rewriter.stmt(body)
        left = chosen.intersection(collect(new, tirx.Var)) | rewriter.refused
        if not left:
            return new, rewriter.buffers
        chosen -= left
    return body, {}


def renamed_addresses(aligned: Aligned, buffers: Mapping[Var, BufferVar]) -> Aligned:
    """Return an assumption about the addresses of other buffers."""
    return replace(aligned, addresses={buffers.get(b, b): size for b, size in aligned.addresses.items()})


class _UseBytes(StmtRewriter):
    def __init__(self, buffers: dict[Var, BufferVar]) -> None:
        self.buffers = buffers
        #: Buffers that other statements use, too, or whose tiles may begin within a byte.
        self.refused: set[Var] = set()
        self.known: dict[Var, int] = {}

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.buffers.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, s.annotations, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.known[s.var] = factor(s.value, self.known)
        return super().visit_Bind(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        views = [v for v in _ends(s) if v.buffer in self.buffers]
        if not views:
            return super().visit_Evaluate(s)
        call = OpCall.decode(s)
        whole = (
            len(views) == len(call.args) == 2
            and views[0].dtype == views[1].dtype
            and not _DEMANDS.intersection(call.attrs)
        )
        if not whole or not all(map(self.has_whole_bytes, views)):
            self.refused |= {v.buffer for v in views}
            return s
        regions = [
            nodes.region(
                self.buffers[v.buffer], [*v.mins[:-1], _half(v.mins[-1])], [*v.extents[:-1], v.extents[-1] // 2]
            )
            for v in views
        ]
        return tirx.Evaluate(nodes.tile_call("copy", regions, dict(call.attrs)), s.span)

    def has_whole_bytes(self, view: View) -> bool:
        """Whether each row of a view is a number of whole bytes."""
        extent = view.extents[-1]
        return (
            isinstance(extent, int)
            and extent % 2 == 0
            and factor(nodes.int_const(0) + view.mins[-1], self.known) % 2 == 0
        )

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.converted, tirx.Cast)

    def converted(self, e: Expr) -> Expr:
        """Return the conversion of an element, which is half of a byte."""
        load = e.value
        if type(load) is not ir.TensorLoad or load.source not in self.buffers:
            return e
        *rows, last = load.indices
        byte = nodes.load(self.buffers[load.source], [*rows, _half(last)], load.span)
        code, kind, to = nibble_expr(byte, last), nodes.element_type(load.source), nodes.dtype_of(e)
        if not DTYPES[kind].is_float:
            return nodes.cast(int4_expr(code, kind), to)
        return nodes.cast(tirx.reinterpret(kind, code), to)


def _ends(s: Stmt) -> list[View]:
    """Return the tiles and tensors of a copy; none of other statements."""
    if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
        return []
    return [a for a in OpCall.decode(s).args if isinstance(a, View)]


def _names(s: Stmt) -> list[Var]:
    return [v.buffer for v in _ends(s)]


def _is_even(buffer: Var, kept: Collection[str]) -> bool:
    """Whether each row of a buffer of 4-bit elements is a number of whole bytes."""
    if not tirx.is_buffer_var(buffer) or not DTYPES[nodes.element_type(buffer)].is_packed:
        return False
    last = nodes.shape_of(buffer)[-1] if len(buffer.shape) else 1
    return isinstance(last, int) and last % 2 == 0 and str(buffer.name) not in kept


def _bytes_of(buffer: BufferVar) -> BufferVar:
    shape = [*buffer.shape[:-1], nodes.int_const(int(buffer.shape[-1]) // 2, nodes.dtype_of(buffer.shape[-1]))]
    return tirx.decl_buffer(shape, "uint8", buffer.name, scope=buffer.scope(), layout=None)


def _half(index: Expr) -> Expr:
    """Return the number of the byte of an element."""
    if isinstance(index, int):
        return index // 2
    return tirx.floordiv(index, nodes.int_const(2, nodes.dtype_of(index)))
