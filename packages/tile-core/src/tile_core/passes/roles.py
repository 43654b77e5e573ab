"""Roles, the work of a part of a block's threads (``T.ws``): checks and removal."""

from __future__ import annotations

from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point
from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.errors.ops import BadRole
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.names import as_written
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.ops.effects import effects

_Threads = tuple[int, int]


def check_roles(body: Stmt, reducers: frozenset[str] = frozenset()) -> None:
    """Check the marks of ``T.ws``.

    Raises
    ------
    BadRole
        In a kernel that names its threads; where a variable or a thread's own array that a role writes is used
        outside of it; where a role uses a reducer.
    """
    marks = [s for s in collect(body, tirx.AttrStmt) if s.attr_key == attributes.ONLY]
    if not marks:
        return
    if uses_threads(body):
        found = "T.ws stands in a kernel that names its threads"
        fix = "use T.ws, or thread indices with `if`, not both"
        raise BadRole(found=found, fix=fix, where=nodes.where_of(marks[0]))
    flow = Flow(body, effects)
    written: dict[BufferVar, _Threads] = {}
    for a in flow.accesses:
        role, root = role_of(a.point), flow.root(a.buffer)
        if role is not None and str(root.name) in reducers:
            fix = "reduce to a tile with T.reduce_* inside of it"
            raise BadRole(found=f"T.ws uses the reducer {root.name}", fix=fix, where=nodes.where_of(a.statement))
        if a.write and role is not None and nodes.scope_of(root) in PRIVATE:
            written[root] = role
    for a in flow.accesses:
        root = flow.root(a.buffer)
        if root in written and role_of(a.point) != written[root]:
            where = nodes.where_of(a.statement)
            name = as_written(str(root.name), where)
            found = f"{name} is private to each thread and written in T.ws, but other threads use it"
            raise BadRole(found=found, fix=f"keep {name} inside of T.ws, or use T.alloc_shared", where=where)


def without_roles(body: Stmt) -> Stmt:
    """Return the body without ``T.ws`` and barriers, for one thread per block.

    A barrier stays that an op names; if the target has no such op, it is refused by its name.
    """
    others = [s for s in collect(body, tirx.Evaluate) if not _is_of_barriers(s)]
    return _DropMarks({v for s in others for v in collect(s, tirx.Var)}).stmt(body)


def _is_of_barriers(s: Stmt) -> bool:
    return nodes.operator_name(s.value).removeprefix("tile.") in calls.BARRIER_CALLS


class _DropMarks(StmtRewriter):
    def __init__(self, named: set[Var]) -> None:
        self.named = named

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        dropped = attributes.ARRIVALS in (s.annotations or {}) and s.buffer not in self.named
        return nodes.seq([]) if dropped else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if _is_of_barriers(s) else s

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self.stmt(s.body) if s.attr_key == attributes.ONLY else super().visit_AttrStmt(s)


def role_of(p: Point) -> _Threads | None:
    """Return the first thread and the count of a point's role, if it has one."""
    for x in reversed(p.path):
        if x.kind == "mark" and x.stmt.attr_key == attributes.ONLY:
            return int(nodes.as_int(x.stmt.node[1])), int(nodes.as_int(x.stmt.node[2]))
    return None
