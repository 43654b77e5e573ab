"""Which values of a kernel differ between the threads of a block."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.cpu.warp import WARP_CALLS
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role

#: Calls whose result differs between threads.
VARYING_CALLS = frozenset({"thread_index", "lane_index", "warp_index", "per_thread", *WARP_CALLS})
#: Tile ops that every thread does for itself, also when nothing in them names a thread.
PER_THREAD_OPS = frozenset("atomic atomic_fill atomic_load atomic_store dp4a print".split())
PRIVATE = ("local", "local.var")


class Varying:
    """The varying variables and private buffers of one block's body, found by iterating to a fixed point."""

    def __init__(self, body: Any) -> None:
        self.vars: set[Any] = set()
        self.buffers: set[Any] = set()
        size = -1
        while size != len(self.vars) + len(self.buffers):
            size = len(self.vars) + len(self.buffers)
            self._visit(body, False)

    def expr(self, e: Any) -> bool:
        """Whether an expression may differ between threads."""
        for call in collect(e, ir.Call):
            if nodes.is_tile_call(call) and str(call.op.name)[5:] in VARYING_CALLS:
                return True
        return any(v in self.vars or v in self.buffers for v in collect(e, tirx.Var))

    def stmt(self, s: Any) -> bool:
        """Whether a statement names something that differs between threads, or is a per-thread op."""
        for mark in collect(s, tirx.AttrStmt):
            if mark.attr_key == nodes.OP_MARK and str(mark.node.value) in PER_THREAD_OPS:
                return True
        if any(str(c.op.name)[5:] in PER_THREAD_OPS for c in collect(s, ir.Call) if nodes.is_tile_call(c)):
            return True
        return self.expr(s) or any(st.buffer in self.buffers for st in collect(s, tirx.BufferStore))

    def _visit(self, s: Any, divergent: bool) -> None:
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self._visit(x, divergent)
        elif isinstance(s, tirx.For):
            if self.expr(s.extent) or self.expr(s.min):
                self.vars.add(s.loop_var)
                divergent = True
            # Iterations of a data-parallel loop keep private buffers for themselves, not per thread.
            if role(s) != "parallel":
                self._visit(s.body, divergent)
        elif isinstance(s, tirx.While):
            self._visit(s.body, divergent or self.expr(s.condition))
        elif isinstance(s, tirx.IfThenElse):
            inner = divergent or self.expr(s.condition)
            self._visit(s.then_case, inner)
            if s.else_case is not None:
                self._visit(s.else_case, inner)
        elif isinstance(s, tirx.AttrStmt):
            self._visit(s.body, divergent)
        elif isinstance(s, tirx.Bind):
            if self.expr(s.value):
                self.vars.add(s.var)
        elif isinstance(s, tirx.BufferStore):
            varies = divergent or self.expr(s.value) or any(self.expr(i) for i in s.indices)
            if varies and nodes.scope_of(s.buffer) in PRIVATE:
                self.buffers.add(s.buffer)
