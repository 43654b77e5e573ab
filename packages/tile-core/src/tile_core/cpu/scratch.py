"""Scratch memory on a CPU: small buffers on the stack, large ones in the workspace.

All of a block's scratch is allocated at its beginning: allocation inside loops costs time, and inside a ``while`` TVM's
code generator does not order it before the uses.
"""

from __future__ import annotations

import math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.attributes import IN_REGISTERS
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role, substitute

#: Buffers up to this many bytes go on the stack, where LLVM may keep them in registers.
STACK_BYTES = 2048
_SCRATCH = ("shared", "local.fragment", "local", "local.var")


def lower_scratch(body: Stmt) -> Stmt:
    """Return the body with scratch buffers in scopes that the code generator supports."""
    mapping: dict[Var, Expr] = {}
    allocs = collect(body, tirx.AllocBuffer)
    views = collect(body, tirx.DeclBuffer)
    for alloc in allocs:
        buffer = alloc.buffer
        if nodes.scope_of(buffer) in _SCRATCH and not _placed(alloc):
            mapping[buffer] = _moved(buffer, _scope(buffer))
    for view in views:
        base = _base(view, mapping)
        if base is not None:
            mapping[view.buffer] = _moved(view.buffer, nodes.scope_of(base), tirx.buffer_data(base))
    # Substitution renames the definitions too; their other fields are set again.
    moved = _AnnotateScratch(set(mapping.values())).stmt(substitute(body, mapping)) if mapping else body
    return _HoistAllocations().whole(moved)


class _HoistAllocations(StmtRewriter):
    """Moves allocations to the beginning of the block (or of a program that launches nothing)."""

    def __init__(self) -> None:
        self.allocs: list[Stmt] = []

    def whole(self, body: Stmt) -> Stmt:
        rest = self.stmt(body)
        return nodes.seq([*self.allocs, rest])

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return super().visit_For(s)
        block = _HoistAllocations()
        return replace_for(s, block.whole(s.body))

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        self.allocs.append(s)
        return nodes.seq([])


class _AnnotateScratch(StmtRewriter):
    """Keeps small scratch on the stack."""

    def __init__(self, placed: set[BufferVar]) -> None:
        self.placed = placed

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        if s.buffer not in self.placed or nodes.scope_of(s.buffer) != "local":
            return s
        return tirx.AllocBuffer(s.buffer, {IN_REGISTERS: nodes.int_const(1)})


def _placed(alloc: Stmt) -> bool:
    return bool(alloc.annotations) and IN_REGISTERS in alloc.annotations


def _scope(buffer: BufferVar) -> str:
    shape = nodes.shape_of(buffer)
    size = math.prod(shape) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8
    return "local" if size <= STACK_BYTES else "global"


def _moved(buffer: BufferVar, scope: str, data: Expr | None = None) -> BufferVar:
    scope = "" if scope == "global" else scope
    shape, dtype = list(buffer.shape), nodes.element_type(buffer)
    alignment = 64 if data is None else 1
    return tirx.decl_buffer(shape, dtype, buffer.name, data=data, scope=scope, layout=None, data_alignment=alignment)


def _base(view: Stmt, mapping: dict[BufferVar, BufferVar]) -> BufferVar | None:
    for var in collect(view.data, tirx.Var):
        if var in mapping:
            return mapping[var]
    return None
