"""A walk over a program that tracks where all threads of a block converge."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.analysis.uniformity import Varying
from tile_core.compat.types import Stmt
from tile_core.ir.visit import StmtRewriter, role
from tile_core.simt.role_threads import is_shared, role_of
from tile_cuda.ops.warpgroup_plan import WARPGROUP


class TeamRewriter(StmtRewriter):
    """Tracks which threads of a block or role reach a statement together.

    Attributes
    ----------
    apart
        Whether not all threads come to the statement together, of the block or of a role that is a warpgroup: it stands
        in a data-parallel loop, in another role, or under a condition that differs between threads.
    role
        The mark of that role; ``None`` outside of roles.
    """

    def __init__(self, body: Stmt) -> None:
        self.varying = Varying(body)
        self.apart = False
        self.role: Stmt | None = None

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite a loop."""
        return self.inside(s, super().visit_For)

    def visit_While(self, s: Stmt) -> Stmt:
        """Rewrite a while loop."""
        return self.inside(s, super().visit_While)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        """Rewrite a branch."""
        return self.inside(s, super().visit_IfThenElse)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        """Rewrite a mark."""
        return self.inside(s, super().visit_AttrStmt)

    def inside(self, s: Stmt, rewrite: Callable[[Stmt], Stmt]) -> Stmt:
        """Rewrite a compound statement with the convergence of its threads."""
        outer = self.apart, self.role
        self.apart, self.role = self.apart or self._parts(s), s if is_shared(s) else self.role
        new = rewrite(s)
        self.apart, self.role = outer
        return new

    @property
    def team(self) -> tuple[int, int] | None:
        """The first thread of that role, and how many it has."""
        return None if self.role is None else (role_of(self.role).first, role_of(self.role).count)

    def _parts(self, s: Stmt) -> bool:
        kind = type(s).__name__
        if kind == "For":
            return role(s) != "grid" and (role(s) in ("parallel", "vectorized") or self.varying.loop(s))
        if kind == "IfThenElse":
            return bool(self.varying.expr(s.condition))
        if kind == "While":
            return bool(self.varying.loop(s))
        if not is_shared(s):
            return False
        threads = role_of(s)
        return bool(threads.count != WARPGROUP or threads.first % WARPGROUP)
