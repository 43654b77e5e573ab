"""Tile ops that each thread executes for itself, in programs that name their threads.

There, an array from ``T.alloc_local`` belongs to one thread. An op that reads or writes one, or whose operands
depend on the thread index, is not collective: each thread does all of it, one element after another.
"""

from __future__ import annotations

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, collect, loads_of, replace_for, role, substitute

__all__ = ["private_ops"]


def private_ops(body: Stmt, names_threads: bool) -> Stmt:
    """Return the body with plain loops for the ops that threads execute for themselves.

    Parameters
    ----------
    body
        A program whose ops that no variant took are loops.
    names_threads
        Whether the traced program names its threads; barriers of the compiler's own do not count.
    """
    return _Own(body).stmt(body) if names_threads else body


class _Own(StmtRewriter):
    def __init__(self, body: Stmt) -> None:
        self.varying = Varying(body)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key != attributes.OP_MARK:
            return super().visit_AttrStmt(s)
        loops = [x for x in collect(s, tirx.For) if role(x) == "parallel"]
        if not loops or not (self.varying.expr(s.body) or _touches_private(s)):
            return s
        return tirx.AttrStmt(s.node, s.attr_key, s.value, _Serial().stmt(_private_scratch(s.body)), s.span)


class _Serial(StmtRewriter):
    def visit_For(self, s: Stmt) -> Stmt:
        body = self.stmt(s.body)
        if role(s) != "parallel":
            return replace_for(s, body)
        return replace_for(s, body, annotations={**s.annotations, attributes.ROLE: "serial"}, kind=tirx.ForKind.SERIAL)


def _touches_private(s: Stmt) -> bool:
    inside = {a.buffer for a in collect(s, tirx.AllocBuffer)}
    used = {x.source for x in loads_of(s)} | {x.buffer for x in collect(s, tirx.BufferStore)}
    return any(nodes.scope_of(b) in PRIVATE for b in used - inside)


def _private_scratch(s: Stmt) -> Stmt:
    """Return the statement with its own scratch as per-thread arrays."""
    mapping = {}
    for alloc in collect(s, tirx.AllocBuffer):
        old = alloc.buffer
        if nodes.scope_of(old) not in PRIVATE:
            kind = nodes.element_type(old)
            mapping[old] = tirx.decl_buffer(list(old.shape), kind, old.name, scope="local", layout=None)
    return substitute(s, mapping)
