"""Move buffers to shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, substitute


def rescope(body: Stmt, buffers: Mapping[BufferVar, str]) -> tuple[Stmt, dict[BufferVar, BufferVar]]:
    """Return the body with buffers, and the views onto them, in shared memory.

    Returns
    -------
    tuple
        The new body, and the new buffer of each moved one.
    """
    mapping = {b: _moved(b) for b in buffers}
    if not mapping:
        return body, mapping
    for view in collect(body, tirx.DeclBuffer):
        base = next((mapping[v] for v in collect(view.data, tirx.Var) if v in mapping), None)
        if base is not None:
            mapping[view.buffer] = _moved(view.buffer, tirx.buffer_data(base))
    return _MoveDefinitions(mapping).stmt(_regions(substitute(body, mapping), mapping)), mapping


def _moved(buffer: BufferVar, data: Expr | None = None) -> BufferVar:
    return tirx.decl_buffer(
        list(buffer.shape), nodes.element_type(buffer), buffer.name, data=data, scope="shared", layout=None
    )


def _regions(body: Stmt, mapping: dict[BufferVar, BufferVar]) -> Stmt:
    """Rebuild regions, which substitution may skip."""

    def region(r: Expr) -> Expr:
        new = mapping.get(r.source)
        return r if new is None else tirx.BufferRegion(new, list(r.region))

    return tvm_ffi.structural_map(body, (ir.TensorRegion, region))


class _MoveDefinitions(StmtRewriter):
    """Rebuild the defining statements, which substitution skips."""

    def __init__(self, mapping: Mapping[BufferVar, BufferVar]) -> None:
        self.mapping = mapping

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.mapping.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, dict(s.annotations or {}), s.span)

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        new = self.mapping.get(s.buffer)
        return s if new is None else tirx.DeclBuffer(new, data=s.data)
