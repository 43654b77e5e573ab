"""Scratch memory initialized with poison, to expose results that depend on uninitialized memory."""

from __future__ import annotations

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter


def poison(body: Stmt) -> Stmt:
    """Return the program with poisoned scratch buffers: NaN, or large integers, at allocation.

    Where a program names its threads, only per-thread buffers are filled: the others are shared.
    """
    return _Poison(threads=uses_threads(body)).stmt(body)


class _Poison(StmtRewriter):
    def __init__(self, threads: bool) -> None:
        self.threads = threads

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        scope, dtype = nodes.scope_of(s.buffer), nodes.element_type(s.buffer)
        if scope == "local.var" or (self.threads and scope not in PRIVATE):
            return s
        value = _value(dtype)
        if value is None:
            return s
        fill = nodes.nest(nodes.shape_of(s.buffer), lambda *i: tirx.BufferStore(s.buffer, value, list(i)), "serial")
        return nodes.seq([s, fill])


def _value(dtype: str) -> Expr:
    if dtype == "bool":
        return nodes.const(True, dtype)
    if dtype.startswith(("int", "uint")):
        bits = int("".join(c for c in dtype if c.isdigit()))
        return nodes.const(0x7B7B7B7B7B7B7B7B & ((1 << bits - 1) - 1), dtype)
    if dtype.startswith(("float16", "float32", "float64", "bfloat16", "float8")):
        return nodes.const(float("nan"), dtype)
    return None
