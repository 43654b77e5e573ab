"""Join neighbouring branches on one condition.

A copy of a tile at an edge is written twice, with and without conditions, behind a test of the whole tile. Two such
copies have the same test: as one branch, the loads of the second are issued before the values of the first are used.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect

__all__ = ["join_branches"]


def join_branches(body: Stmt) -> Stmt:
    """Join neighbours with two sides each and equal conditions on variables.

    Barriers have their places: a branch that follows another one directly has no hazard with it. Vector moves alone do
    not use what they load, and their branches stay.
    """
    return _Join().stmt(body)


class _Join(StmtRewriter):
    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        new, found = super().visit_SeqStmt(s), list[Stmt]()
        for x in structural.items(new.seq):
            if found and _are_alike(found[-1], x):
                first = found.pop()
                sides = [nodes.seq(both) for both in ((first.then_case, x.then_case), (first.else_case, x.else_case))]
                x = tirx.IfThenElse(first.condition, *sides, first.span)
            found.append(x)
        return new if len(found) == len(new.seq) else nodes.seq(found)


def _are_alike(first: Stmt, second: Stmt) -> bool:
    """Whether two statements are branches with two sides whose conditions have one value."""
    if not all(type(s) is tirx.IfThenElse and s.else_case is not None for s in (first, second)):
        return False
    if collect(first.condition, (ir.TensorLoad, ir.Call)) or not collect(first.then_case, tirx.BufferStore):
        return False
    return bool(tvm_ffi.structural_equal(first.condition, second.condition))
