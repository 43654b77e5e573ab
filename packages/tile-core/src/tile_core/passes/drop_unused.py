"""Dead-code elimination: bindings that are never read, and buffers that nothing accesses, are dropped.

Passes bind coordinates, slots and parts of an index before it is known whether an access needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect

#: Tile calls that only query a thread's indices.
_COORDINATES = frozenset({"tile.thread_index", "tile.block_index", "tile.lane_index", "tile.warp_index"})


def drop_unused(body: Stmt) -> Stmt:
    """Return a statement without the bindings and buffers whose names are not used.

    A binding stays if evaluating its value may have a side effect: an atomic access, an instruction, a shuffle.
    """
    binds: dict[Var, list[Expr]] = {}
    for bind in collect(body, tirx.Bind):
        binds.setdefault(bind.var, []).append(bind)
    # A binding's own name occurs once at the binding.
    uses = Counter(identity(v) for v in collect(body, tirx.Var))
    uses.update(identity(s.buffer) for s in collect(body, tirx.BufferStore))
    unused = set(_unnamed(body, uses))
    candidates = list(binds)
    while candidates:
        var = candidates.pop()
        if var in unused or uses[identity(var)] > len(binds[var]) or not all(_is_pure(b.value) for b in binds[var]):
            continue
        unused.add(var)
        for bind in binds[var]:
            for read in collect(bind.value, tirx.Var):
                uses[identity(read)] -= 1
                if read in binds:
                    candidates.append(read)
    return _Drop(unused).stmt(body) if unused else body


class _Drop(StmtRewriter):
    def __init__(self, unused: set[Var]) -> None:
        self.unused = unused

    def visit_Bind(self, s: Stmt) -> Stmt:
        return tirx.Evaluate(nodes.int_const(0)) if s.var in self.unused else s

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return tirx.Evaluate(nodes.int_const(0)) if s.buffer in self.unused else s

    visit_DeclBuffer = visit_AllocBuffer


def _unnamed(body: Stmt, uses: Counter[int]) -> Iterator[BufferVar]:
    """Yield the buffers that nothing but their definition names, not even a view."""
    for s in collect(body, (tirx.AllocBuffer, tirx.DeclBuffer)):
        own = identity(s.buffer)
        if uses[own] == sum(identity(v) == own for v in collect(s, tirx.Var)):
            yield s.buffer


def _is_pure(e: Expr) -> bool:
    return all(not nodes.is_tile_call(c) or str(c.op.name) in _COORDINATES for c in collect(e, ir.Call))
