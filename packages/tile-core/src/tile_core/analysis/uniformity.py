"""Uniformity analysis: which values of a kernel differ between the threads of a block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Node, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect, role
from tile_core.ir.warp import WARP_CALLS

#: Calls whose result differs between threads.
VARYING_CALLS = frozenset({"thread_index", "lane_index", "warp_index", "per_thread", "instruction", *WARP_CALLS})
#: Tile ops that every thread executes for itself, even if they do not mention a thread.
PER_THREAD_OPS = frozenset("atomic atomic_fill atomic_load atomic_store dp4a print".split())
#: Scopes with separate storage per thread.


class Varying:
    """The varying variables and private buffers of one block's body, found by iterating to a fixed point.

    Parameters
    ----------
    body
        The program of the block, or of one of its threads.
    seeds
        Variables that differ between threads although the body does not show it.

    Attributes
    ----------
    vars, buffers
        Those that may differ between threads.
    loops
        Induction variables of loops that some threads may leave before others.
    """

    def __init__(self, body: Stmt, seeds: Iterable[Var] = ()) -> None:
        self.vars: set[Any] = set(seeds)
        self.buffers: set[Any] = set()
        self.loops: set[Any] = set()
        size = -1
        while size != len(self.vars) + len(self.buffers) + len(self.loops):
            size = len(self.vars) + len(self.buffers) + len(self.loops)
            self._visit(body, False)

    def expr(self, e: Node) -> bool:
        """Whether an expression may differ between threads."""
        for call in collect(e, ir.Call):
            if nodes.is_tile_call(call) and str(call.op.name)[5:] in VARYING_CALLS:
                return True
        return any(v in self.vars or v in self.buffers for v in collect(e, tirx.Var))

    def stmt(self, s: Stmt) -> bool:
        """Whether a statement uses a value that differs between threads, or is a per-thread op."""
        for mark in collect(s, tirx.AttrStmt):
            if mark.attr_key == nodes.OP_MARK and str(mark.node.value) in PER_THREAD_OPS:
                return True
        if any(str(c.op.name)[5:] in PER_THREAD_OPS for c in collect(s, ir.Call) if nodes.is_tile_call(c)):
            return True
        return self.expr(s) or any(st.buffer in self.buffers for st in collect(s, tirx.BufferStore))

    def loop(self, s: Stmt) -> bool:
        """Whether the trip count of a ``For`` or ``While`` may differ between threads."""
        if isinstance(s, tirx.While):
            return self.expr(s.condition) or self._leaves(s.body, False)
        return self.expr(s.extent) or self.expr(s.min) or s.loop_var in self.loops

    def _visit(self, s: Stmt, divergent: bool) -> None:
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self._visit(x, divergent)
        elif isinstance(s, tirx.For):
            if self.expr(s.extent) or self.expr(s.min):
                self.vars.add(s.loop_var)
                divergent = True
            # Private buffers of a data-parallel loop belong to an iteration, not to a thread.
            if role(s) != "parallel":
                leaves = self._leaves(s.body, False)
                if leaves:
                    self.loops.add(s.loop_var)
                self._visit(s.body, divergent or leaves)
        elif isinstance(s, tirx.While):
            self._visit(s.body, divergent or self.loop(s))
        elif isinstance(s, tirx.IfThenElse):
            inner = divergent or self.expr(s.condition)
            self._visit(s.then_case, inner)
            if s.else_case is not None:
                self._visit(s.else_case, inner)
        elif isinstance(s, tirx.AttrStmt):
            self._visit(s.body, divergent)
        else:
            self._simple(s, divergent)

    def _simple(self, s: Stmt, divergent: bool) -> None:
        if isinstance(s, tirx.Bind):
            if self.expr(s.value):
                self.vars.add(s.var)
        elif isinstance(s, tirx.BufferStore):
            varies = divergent or self.expr(s.value) or any(self.expr(i) for i in s.indices)
            if varies and nodes.scope_of(s.buffer) in PRIVATE:
                self.buffers.add(s.buffer)
        elif isinstance(s, tirx.Evaluate):
            for call in collect(s.value, ir.Call):
                self._written_by(call, divergent)

    def _written_by(self, call: Call, divergent: bool) -> None:
        """Record the private buffers that a call of a per-thread program writes."""
        if nodes.is_tile_call(call, "move"):
            target, source = call.args
            varies = divergent or self.expr(source) or any(self.expr(i) for i in target.indices)
            if varies and nodes.scope_of(target.source) in PRIVATE:
                self.buffers.add(target.source)
        elif nodes.is_tile_call(call, "address") and str(call.attrs["access"]) != "r":
            target = call.args[0].source
            if nodes.scope_of(target) in PRIVATE:
                self.buffers.add(target)

    def _leaves(self, s: Stmt, divergent: bool) -> bool:
        """Whether some threads may leave the loop around ``s``, or its iteration, where others stay."""
        if isinstance(s, (tirx.Break, tirx.Continue)):
            return divergent
        if isinstance(s, tirx.SeqStmt):
            return any(self._leaves(x, divergent) for x in s.seq)
        if isinstance(s, tirx.AttrStmt):
            return self._leaves(s.body, divergent)
        if isinstance(s, tirx.IfThenElse):
            inner = divergent or self.expr(s.condition)
            sides = (s.then_case, s.else_case)
            return any(self._leaves(x, inner) for x in sides if x is not None)
        return False


#: Calls that name a block's threads.
THREAD_CALLS = frozenset({"sync_threads", "sync_warp", *VARYING_CALLS} - {"per_thread", "instruction"})


def uses_threads(body: Stmt) -> bool:
    """Whether a program names its threads."""
    calls = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c)]
    return any(str(c.op.name)[5:] in THREAD_CALLS for c in calls)
