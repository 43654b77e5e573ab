"""Where the buffers of pipelined loops are allocated, once their copies are placed."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.simt.pipelining.dependences import uses


class Moved(StmtRewriter):
    """Drop allocations outside of the loops that they have moved into."""

    def __init__(self, inside: dict[Any, Any]) -> None:
        self.inside = inside
        self.loops: list[Any] = []

    def visit_For(self, s: Stmt) -> Stmt:
        """Note the loop."""
        self.loops.append(s.loop_var)
        new = super().visit_For(s)
        self.loops.pop()
        return new

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        """Keep an allocation where it belongs."""
        loop = self.inside.get(s.buffer)
        return s if loop is None or any(v.same_as(loop) for v in self.loops) else nodes.seq([])


class Allocations(StmtRewriter):
    """Allocates versioned buffers where the originals were, and drops originals that are unused."""

    def __init__(self, body: Stmt, placed: dict[Any, list[Any]]) -> None:
        self.placed = placed
        self.left = {b for b in placed if uses(body, b)}
        self.done = {a.buffer for a in collect(body, tirx.AllocBuffer)}

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        """Return the new buffers' allocations."""
        if s.buffer not in self.placed:
            return s
        new = [tirx.AllocBuffer(v, None, s.span) for v in self.placed[s.buffer] if v not in self.done]
        return nodes.seq([s if s.buffer in self.left else None, *new])
