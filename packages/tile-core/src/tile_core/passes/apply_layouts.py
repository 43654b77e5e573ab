"""Annotated layouts of tensor parameters: where the program's elements lie in the caller's memory.

The program indexes such a tensor by its logical coordinates; this pass rewrites each access to the address given by
the layout. Layouts of scratch buffers change nothing that a program can see; a target that follows them does so when
it plans its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.errors.lowering import LayoutUnsupported
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, map_expr
from tile_core.layout.expressions import memory_index

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap


def apply_layouts(body: Stmt, params: tuple[Var, ...], layouts: Mapping[str, LayoutMap]) -> Stmt:
    """Return the body with accesses of annotated parameters at their addresses in memory.

    Parameters
    ----------
    body
        A statement whose accesses lie inside their buffers (after the guard pass).
    params
        The program's parameters.
    layouts
        Layouts by the name of the buffer.

    Raises
    ------
    LayoutUnsupported
        If a layout needs more elements than its tensor has.
    """
    chosen = {p: layouts[str(p.name)] for p in params if tirx.is_buffer_var(p) and str(p.name) in layouts}
    for buffer, layout in chosen.items():
        if layout.span != layout.numel:
            raise LayoutUnsupported(buffer=buffer.name, span=layout.span, size=layout.numel)
    return _ApplyToTensors(chosen).stmt(body) if chosen else body


class _ApplyToTensors(StmtRewriter):
    def __init__(self, layouts: Mapping[BufferVar, LayoutMap]) -> None:
        self.layouts = layouts

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        return e if e.source not in self.layouts else nodes.load(e.source, self.at(e.source, e.indices), e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        if new.buffer not in self.layouts:
            return new
        return tirx.BufferStore(new.buffer, new.value, self.at(new.buffer, new.indices), new.span)

    def at(self, buffer: BufferVar, indices: Sequence[Expr]) -> list[Expr]:
        index = memory_index(self.layouts[buffer], list(indices))
        shape = nodes.shape_of(buffer)
        result = []
        for extent in reversed(shape[1:]):
            result.append(tirx.floormod(index, extent))
            index = tirx.floordiv(index, extent)
        return [index, *reversed(result)]
