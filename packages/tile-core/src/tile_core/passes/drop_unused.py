"""Dead-code elimination of bindings: names that are never read are dropped.

Passes bind coordinates, slots and parts of an index before they know whether an access needs them.
"""

from __future__ import annotations

from collections import Counter

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect

#: Tile calls that only query a thread's indices.
_PLACES = frozenset({"tile.thread_index", "tile.block_index", "tile.lane_index", "tile.warp_index"})


def drop_unused(body: Stmt) -> Stmt:
    """Return a statement without the bindings whose names are not used.

    A binding stays if evaluating its value may have a side effect: an atomic access, an instruction, a shuffle.
    """
    binds: dict[Var, list[Expr]] = {}
    for bind in collect(body, tirx.Bind):
        binds.setdefault(bind.var, []).append(bind)
    # A binding's own name occurs once at the binding.
    uses = Counter(collect(body, tirx.Var))
    unused: set[Var] = set()
    candidates = list(binds)
    while candidates:
        var = candidates.pop()
        if var in unused or uses[var] > len(binds[var]) or not all(_is_pure(b.value) for b in binds[var]):
            continue
        unused.add(var)
        for bind in binds[var]:
            for read in collect(bind.value, tirx.Var):
                uses[read] -= 1
                if read in binds:
                    candidates.append(read)
    return _Drop(unused).stmt(body) if unused else body


class _Drop(StmtRewriter):
    def __init__(self, unused: set[Var]) -> None:
        self.unused = unused

    def visit_Bind(self, s: Stmt) -> Stmt:
        return tirx.Evaluate(nodes.int_const(0)) if s.var in self.unused else s


def _is_pure(e: Expr) -> bool:
    return all(not nodes.is_tile_call(c) or str(c.op.name) in _PLACES for c in collect(e, ir.Call))
