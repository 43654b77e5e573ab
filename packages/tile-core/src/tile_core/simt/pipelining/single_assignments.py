"""Names for variables of pipelined loops that each iteration assigns once.

``page = table[i]`` in a loop is a variable of the iteration, whose value a copy of a later iteration needs. A name for
the value is computed where that copy is issued, like other bindings.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tile_core.analysis.flow import names_of
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, loads_of, map_expr, replace_for, role
from tile_core.simt.pipelining.dependences import top_level


def name_single_assignments(body: Stmt) -> Stmt:
    """Bind variables of pipelined loops that each iteration assigns once, before it reads them."""
    stores = Counter(s.buffer for s in collect(body, tirx.BufferStore))
    named = Counter(v for v in collect(body, tirx.Var) if tirx.is_buffer_var(v))
    loaded = Counter(x.source for x in loads_of(body))
    cells = {
        s.buffer
        for s in collect(body, tirx.AllocBuffer)
        if nodes.scope_of(s.buffer) == "local.var" and list(nodes.shape_of(s.buffer)) == [1]
    }
    # Named by its allocation, its store and loads, and by nothing else.
    once = {b for b in cells if stores[b] == 1 and named[b] == loaded[b] + 2}
    return _Name(once).stmt(body) if once else body


class _Name(StmtRewriter):
    def __init__(self, once: set[BufferVar]) -> None:
        self.once = once

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite the body of a pipelined loop."""
        s = super().visit_For(s)
        if role(s) != "pipelined":
            return s
        statements = top_level(s.body)
        made = {x.buffer for x in statements if type(x) is tirx.AllocBuffer} & self.once
        names: dict[BufferVar, Var] = {}
        read: set[Any] = set()
        for x in statements:
            if type(x) is tirx.BufferStore and x.buffer in made and x.buffer not in read | names_of(x.value):
                names[x.buffer] = nodes.fresh(str(x.buffer.name), nodes.element_type(x.buffer))
            read |= names_of(x)
        if not names:
            return s
        rewriter = _Use(names)
        return replace_for(s, nodes.seq([rewriter.stmt(x) for x in statements]))


class _Use(StmtRewriter):
    """Uses names in place of variables."""

    def __init__(self, names: dict[BufferVar, Var]) -> None:
        self.names = names

    def expr(self, e: Expr) -> Expr:
        """Replace loads."""
        return map_expr(e, lambda x: self.names.get(x.source, x), ir.TensorLoad)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        """Drop the allocation."""
        return nodes.seq([]) if s.buffer in self.names else s

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Bind the value."""
        name = self.names.get(s.buffer)
        return super().visit_BufferStore(s) if name is None else tirx.Bind(name, self.expr(s.value), s.span)
