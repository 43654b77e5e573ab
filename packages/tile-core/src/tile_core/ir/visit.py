"""Rewriting statements: a base class whose methods return new IR, or the same object if nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Node, Stmt, UnaryNode, Var
from tile_core.ir import nodes


class StmtRewriter:
    """Rebuilds a statement bottom-up.

    Override ``visit_<node>`` for statements and ``expr`` for the expressions that they hold. Identity is kept: a
    statement whose parts did not change is returned itself.
    """

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite one statement; the result may be a sequence."""
        return getattr(self, "visit_" + type(s).__name__)(s)

    def expr(self, e: Expr) -> Expr:
        """Rewrite one expression; the default keeps it."""
        return e

    def body(self, s: Stmt) -> Stmt:
        """Rewrite a statement that is a scope of its own (a loop's or branch's body)."""
        return self.stmt(s)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        """Rewrite each statement of a sequence."""
        old = structural.items(s.seq)
        new = [self.stmt(x) for x in old]
        return s if all(a is b or a.same_as(b) for a, b in zip(old, new, strict=True)) else nodes.seq(new)

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite a loop."""
        start, extent, body = self.expr(s.min), self.expr(s.extent), self.body(s.body)
        if start.same_as(s.min) and extent.same_as(s.extent) and body.same_as(s.body):
            return s
        return replace_for(s, body, start=start, extent=extent)

    def visit_While(self, s: Stmt) -> Stmt:
        """Rewrite a while loop."""
        condition, body = self.expr(s.condition), self.body(s.body)
        same = condition.same_as(s.condition) and body.same_as(s.body)
        return s if same else tirx.While(condition, body, s.span)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        """Rewrite a branch."""
        condition, then = self.expr(s.condition), self.body(s.then_case)
        other = None if s.else_case is None else self.body(s.else_case)
        same = condition.same_as(s.condition) and then.same_as(s.then_case)
        if same and (other is None or other.same_as(s.else_case)):
            return s
        return tirx.IfThenElse(condition, then, other, s.span)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        """Rewrite an attribute's body."""
        value, body = self.expr(s.value), self.body(s.body)
        same = value.same_as(s.value) and body.same_as(s.body)
        return s if same else tirx.AttrStmt(s.node, s.attr_key, value, body, s.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Rewrite a store."""
        value = self.expr(s.value)
        old = structural.items(s.indices)
        new = [self.expr(i) for i in old]
        same = value.same_as(s.value) and all(a.same_as(b) for a, b in zip(old, new, strict=True))
        return s if same else tirx.BufferStore(s.buffer, value, new, s.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Rewrite an evaluated expression."""
        value = self.expr(s.value)
        return s if value.same_as(s.value) else tirx.Evaluate(value, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Rewrite a binding."""
        value = self.expr(s.value)
        return s if value.same_as(s.value) else tirx.Bind(s.var, value, s.span)

    def visit_AssertStmt(self, s: Stmt) -> Stmt:
        """Keep an assertion."""
        return s

    visit_AllocBuffer = visit_DeclBuffer = visit_Break = visit_Continue = visit_Return = visit_AssertStmt


def replace_for(s: Stmt, body: Stmt, **changes: object) -> Stmt:
    """Return a copy of a loop with another body and the given fields changed."""
    keep = {k: changes.get(k, getattr(s, k)) for k in ("loop_var", "min", "extent", "kind", "annotations", "step")}
    return tirx.For(
        keep["loop_var"], keep["min"], keep["extent"], keep["kind"], body, s.thread_binding, keep["annotations"],
        keep["step"], s.span,
    )  # fmt: skip


def bodies_of(s: Stmt) -> list[Stmt]:
    """Return the bodies of a loop, a branch or a mark; none for any other statement."""
    if isinstance(s, tirx.IfThenElse):
        return [s.then_case] if s.else_case is None else [s.then_case, s.else_case]
    return [s.body] if isinstance(s, (tirx.For, tirx.While, tirx.AttrStmt)) else []


def with_bodies(s: Stmt, bodies: Sequence[Stmt]) -> Stmt:
    """Return a statement with other bodies, as many as before; the same one if they did not change."""
    if all(new.same_as(old) for new, old in zip(bodies, bodies_of(s), strict=True)):
        return s
    if isinstance(s, tirx.IfThenElse):
        return tirx.IfThenElse(s.condition, bodies[0], bodies[1] if len(bodies) == 2 else None, s.span)
    if isinstance(s, tirx.While):
        return tirx.While(s.condition, bodies[0], s.span)
    if isinstance(s, tirx.AttrStmt):
        return tirx.AttrStmt(s.node, s.attr_key, s.value, bodies[0], s.span)
    return replace_for(s, bodies[0])


def role(loop: Stmt) -> str:
    """Return the role of a loop (see ``ir/grammar.py``)."""
    return str(loop.annotations.get(nodes.ROLE, "serial")) if loop.annotations else "serial"


def annotation(loop: Stmt, key: str, default: Any = None) -> Any:
    """Return an annotation of a loop."""
    value = loop.annotations.get(key, default) if loop.annotations else default
    return nodes.as_int(value)


def map_expr(e: Node, callback: UnaryNode, kinds: Any) -> Node:
    """Rewrite the nodes of ``kinds`` in an expression, innermost first."""
    return structural.mapped(e, kinds, callback)


def substitute(node: Node, mapping: dict[Var, Expr]) -> Node:
    """Replace variables in an expression or statement."""
    if not mapping:
        return node
    return structural.mapped(node, tirx.Var, lambda v: mapping.get(v, v))


def renamed(s: Stmt) -> Stmt:
    """Return a copy of a statement that defines variables and scratch buffers of its own."""
    mapping: dict[Var, Expr] = {}
    for node in collect(s, (tirx.For, tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer, tirx.Let)):
        if isinstance(node, (tirx.AllocBuffer, tirx.DeclBuffer)):
            data = substitute(node.data, mapping) if isinstance(node, tirx.DeclBuffer) else None
            mapping[node.buffer] = another_buffer(node.buffer, data=data)
        else:
            var = node.loop_var if isinstance(node, tirx.For) else node.var
            mapping[var] = tirx.Var(var.name, var.ty)
    if not mapping:
        return s
    s = map_expr(
        substitute(s, mapping), lambda e: tirx.Let(mapping.get(e.var, e.var), e.value, e.body, e.span), tirx.Let
    )
    return _RenameDefinitions(mapping).stmt(s)


def another_buffer(b: BufferVar, name: str = "", data: Expr | None = None) -> BufferVar:
    """Return a buffer of its own like another one, at the memory ``data`` if that is given."""
    facts = {"data": data, "scope": b.scope(), "layout": None, "data_alignment": b.ty.data_alignment}
    return tirx.decl_buffer(list(b.shape), nodes.element_type(b), name or b.name, **facts)


class _RenameDefinitions(StmtRewriter):
    """Renames definitions, which substitution leaves alone."""

    def __init__(self, mapping: dict[Var, Var]) -> None:
        self.mapping = mapping

    def visit_For(self, s: Stmt) -> Stmt:
        return replace_for(s, self.stmt(s.body), loop_var=self.mapping.get(s.loop_var, s.loop_var))

    def visit_Bind(self, s: Stmt) -> Stmt:
        var = self.mapping.get(s.var)
        return s if var is None else tirx.Bind(var, s.value, s.span)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.mapping.get(s.buffer)
        return s if new is None else tirx.AllocBuffer(new, dict(s.annotations or {}))

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        new = self.mapping.get(s.buffer)
        return s if new is None else tirx.DeclBuffer(new, data=s.data, span=s.span)


def walk(node: Node, kinds: Any, callback: Callable[[Node], None]) -> None:
    """Call ``callback`` on each node of ``kinds``."""

    def visit(x: Expr) -> None:
        callback(x)

    structural.walk(node, kinds, visit)


def collect(node: Node, kinds: Any) -> list[Node]:
    """Return all nodes of ``kinds``."""
    found: list[Node] = []
    structural.walk(node, kinds, found.append)
    return found


def uses_var(node: Node, var: Var) -> bool:
    """Whether a variable occurs in a node."""
    return any(v.same_as(var) for v in collect(node, tirx.Var))


def loads_of(node: Node) -> list[Expr]:
    """Return the loads in a node."""
    return collect(node, ir.TensorLoad)


def statements(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements of a sequence, or the statement itself."""
    if isinstance(s, tirx.SeqStmt):
        yield from s.seq
    else:
        yield s
