"""Statements of a block that another role repeats around pipelined loops.

A producer executes the conditions and loops around a pipelined loop, and the statements that compute their bounds and
the corners of the copies. These may use coordinates of the block, parameters, elements of tensors that the kernel does
not write, and variables computed from such values. So all threads of all roles get the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, bodies_of, collect, loads_of, role
from tile_core.simt.pipelining.dependences import Analysis, is_uniform_call, top_level

_DEPENDS = "its copies depend on values computed in the block"


class RoleSlice:
    """The statements of a block that a role repeats.

    Parameters
    ----------
    body
        The statements of the block.
    values
        By variable of a pipelined loop, the expressions that the role computes in it.
    """

    def __init__(self, body: Sequence[Stmt], values: Mapping[Var, Sequence[Expr]]) -> None:
        self.body, self.values = body, values
        self.needed: set[Var] = set()
        self.kept: dict[int, Stmt] = {}
        size = -1
        while size != len(self.needed):
            size = len(self.needed)
            for s in reversed(body):
                self._keeps(s)

    def _keeps(self, s: Stmt) -> bool:
        """Whether the role repeats a statement; note the values that it needs."""
        if type(s) is tirx.For and s.loop_var in self.values:
            self._need(s, self.values[s.loop_var])
            return True
        inside = [self._keeps(x) for x in reversed(top_level(s) if type(s) is tirx.SeqStmt else bodies_of(s))]
        defines = s.var if type(s) is tirx.Bind else getattr(s, "buffer", None)
        kept = any(inside) or (defines is not None and defines in self.needed)
        if kept and type(s) is not tirx.SeqStmt:
            self._need(s, _operands(s))
        return kept

    def _need(self, s: Stmt, values: Sequence[Expr]) -> None:
        self.kept[identity(s)] = s
        self.needed |= {v for e in values for v in collect(nodes.int_const(0) + e, tirx.Var)}

    def reason(self, known: Collection[Var], analysis: Analysis, kernel: Stmt) -> str:
        """Return the reason why another role cannot compute the values; empty if it can.

        Parameters
        ----------
        known
            Variables with one value in a block.
        kernel
            All statements of the kernel: a tensor that these write is not read.
        """
        written = analysis.written(kernel)
        loops = [s for s in self.kept.values() if type(s) is tirx.For and s.loop_var in self.values]
        stored = {b for s in loops for b in analysis.written(s.body)}
        others = (s for s in collect(kernel, (tirx.Evaluate, tirx.Bind)) if nodes.is_tile_call(s.value))
        stored |= {b for s in others for b in analysis.written(s)}
        defined = set(known) | {v for s in self.kept.values() for v in _defined(s)}
        for s in self.kept.values():
            is_loop = type(s) is tirx.For and s.loop_var in self.values
            own = self.values[s.loop_var] if is_loop else _operands(s)
            if not is_loop and type(s) is tirx.For and role(s) not in ("serial", "unroll"):
                return _DEPENDS
            for e in own:
                value = nodes.int_const(0) + e
                read = {x.source for x in loads_of(value)}
                outside = {b for b in read if nodes.scope_of(b) == "global"}
                if any(nodes.scope_of(b) not in ("global", *PRIVATE) or b in stored for b in read - outside):
                    return _DEPENDS
                if any(analysis.root(b) in written for b in outside):
                    return _DEPENDS
                if any(nodes.is_tile_call(c) and not is_uniform_call(c) for c in collect(value, ir.Call)):
                    return _DEPENDS
                inside = {v for v in collect(value, tirx.Var) if v not in outside}
                if inside - defined - _inside(s):
                    return _DEPENDS
        return ""

    def written(self, write: Callable[[Stmt], Sequence[Stmt]], known: Sequence[Stmt] = ()) -> list[Stmt]:
        """Return the repeated statements, with others in place of pipelined loops.

        Parameters
        ----------
        known
            Statements of the block that all roles have executed.
        """
        projection = _Projection(self, write)
        return [projection.stmt(s) for s in self.body if not any(s.same_as(x) for x in known)]


class _Projection(StmtRewriter):
    """Leaves the statements of a slice."""

    def __init__(self, of: RoleSlice, write: Callable[[Stmt], Sequence[Stmt]]) -> None:
        self.of, self.write = of, write

    def stmt(self, s: Stmt) -> Stmt:
        """Drop other statements."""
        if type(s) is tirx.SeqStmt:
            return super().stmt(s)
        if identity(s) not in self.of.kept:
            return nodes.seq([])
        return nodes.seq(self.write(s)) if type(s) is tirx.For and s.loop_var in self.of.values else super().stmt(s)


class InPlace(StmtRewriter):
    """Writes other statements in place of pipelined loops."""

    def __init__(self, loops: Collection[Var], write: Callable[[Stmt], Sequence[Stmt]]) -> None:
        self.loops, self.write = loops, write

    def visit_For(self, s: Stmt) -> Stmt:
        """Replace such a loop."""
        return nodes.seq(self.write(s)) if s.loop_var in self.loops else super().visit_For(s)


def _operands(s: Stmt) -> list[Expr]:
    """Return the expressions of a statement itself."""
    if type(s) is tirx.BufferStore:
        return [s.value, *s.indices]
    return [getattr(s, name) for name in ("min", "extent", "condition", "value") if hasattr(s, name)]


def _defined(s: Stmt) -> list[Var]:
    """Return the variables and buffers that a statement defines."""
    if type(s) is tirx.For:
        return [s.loop_var]
    return [s.var] if type(s) is tirx.Bind else [s.buffer] if type(s) is tirx.AllocBuffer else []


def _inside(s: Stmt) -> set[BufferVar]:
    """Return the variables that the body of a loop binds."""
    return {x.var for x in top_level(s.body) if type(x) is tirx.Bind} if type(s) is tirx.For else set()
