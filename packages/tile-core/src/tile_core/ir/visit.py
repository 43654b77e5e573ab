"""Base classes for rewriting statements, which return the same object if nothing changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Node, Stmt, UnaryNode, Var
from tile_core.ir import attributes, nodes

collect = structural.collect


_PLAIN = (tirx.BufferStore, tirx.Evaluate, tirx.Bind)
_LEAVES = (tirx.AssertStmt, tirx.AllocBuffer, tirx.DeclBuffer, tirx.Break, tirx.Continue, tirx.Return)


class StmtRewriter:
    """Rebuilds a statement bottom-up.

    Override ``visit_<node>`` for statements and ``expr`` for the expressions that they hold. Identity is kept: a
    statement whose parts did not change is returned itself.
    """

    #: Whether the class rewrites expressions.
    _rewrites = False
    #: Kinds of statements that the class keeps in sequences.
    _keeps: frozenset[Any] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._rewrites = cls.expr is not StmtRewriter.expr
        own = [] if cls.stmt is not StmtRewriter.stmt else _LEAVES if cls._rewrites else [*_PLAIN, *_LEAVES]
        names = [(kind, f"visit_{kind.__name__}") for kind in own]
        cls._keeps = frozenset(kind for kind, name in names if getattr(cls, name) is getattr(StmtRewriter, name))

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
        old, keeps = structural.items(s.seq), self._keeps
        new = [x if type(x) in keeps else self.stmt(x) for x in old]
        return s if all(map(structural.is_same, old, new)) else nodes.seq(new)

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite a loop."""
        if not self._rewrites:
            body = self.body(s.body)
            return s if body.same_as(s.body) else replace_for(s, body)
        old = s.min, s.extent, s.body
        start, extent, body = new = self.expr(old[0]), self.expr(old[1]), self.body(old[2])
        return s if _same(old, new) else replace_for(s, body, start=start, extent=extent)

    def visit_While(self, s: Stmt) -> Stmt:
        """Rewrite a while loop."""
        old = s.condition, s.body
        new = self.expr(old[0]), self.body(old[1])
        return s if _same(old, new) else tirx.While(*new, s.span)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        """Rewrite a branch."""
        old = s.condition, *bodies_of(s)
        new = self.expr(old[0]), *(self.body(x) for x in old[1:])
        return s if _same(old, new) else tirx.IfThenElse(*new[:2], new[2] if len(new) == 3 else None, s.span)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        """Rewrite an attribute's body."""
        value = self.expr(s.value) if self._rewrites else s.value
        body = self.body(s.body)
        same = body.same_as(s.body) and (not self._rewrites or value.same_as(s.value))
        return s if same else tirx.AttrStmt(s.node, s.attr_key, value, body, s.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Rewrite a store."""
        if not self._rewrites:
            return s
        old = [s.value, *structural.items(s.indices)]
        new = [self.expr(e) for e in old]
        return s if _same(old, new) else tirx.BufferStore(s.buffer, new[0], new[1:], s.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Rewrite an evaluated expression."""
        if not self._rewrites:
            return s
        old = s.value
        new = self.expr(old)
        return s if new is old or new.same_as(old) else tirx.Evaluate(new, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Rewrite a binding."""
        if not self._rewrites:
            return s
        old = s.value
        new = self.expr(old)
        return s if new is old or new.same_as(old) else tirx.Bind(s.var, new, s.span)

    def visit_AssertStmt(self, s: Stmt) -> Stmt:
        """Keep an assertion."""
        return s

    visit_AllocBuffer = visit_DeclBuffer = visit_Break = visit_Continue = visit_Return = visit_AssertStmt


def map_statements(body: Stmt, callback: Callable[[Stmt], Stmt], kind: Any = tirx.Evaluate) -> Stmt:
    """Rewrite the plain statements of a kind; an empty sequence removes one."""
    return _MapStatements(callback, kind).stmt(body)


class _MapStatements(StmtRewriter):
    def __init__(self, callback: Callable[[Stmt], Stmt], kind: Any) -> None:
        self.callback, self.kind = callback, kind

    def stmt(self, s: Stmt) -> Stmt:
        return self.callback(s) if type(s) is self.kind else super().stmt(s)


class HoistingRewriter(StmtRewriter):
    """A rewriter whose ``expr`` puts statements into ``before``, to run before the current one."""

    def __init__(self) -> None:
        self.before: list[Stmt] = []

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite one statement, and put before it what its own expressions need."""
        outer, self.before = self.before, []
        new = super().stmt(s)
        before, self.before = self.before, outer
        return nodes.seq([*before, new]) if before else new

    def visit_While(self, s: Stmt) -> Stmt:
        """Keep the condition, which is evaluated in every iteration."""
        body = self.body(s.body)
        return s if body.same_as(s.body) else tirx.While(s.condition, body, s.span)


def _same(old: Sequence[Node], new: Sequence[Node]) -> bool:
    return all(map(structural.is_same, old, new))


def replace_for(s: Stmt, body: Stmt, **changes: object) -> Stmt:
    """Return a copy of a loop with another body and the given fields changed."""
    keep = {k: changes.get(k, getattr(s, k)) for k in ("loop_var", "min", "extent", "kind", "annotations", "step")}
    return tirx.For(
        keep["loop_var"], keep["min"], keep["extent"], keep["kind"], body, s.thread_binding, keep["annotations"],
        keep["step"], s.span,
    )  # fmt: skip


_WITH_BODY = frozenset((tirx.For, tirx.While, tirx.AttrStmt))


def bodies_of(s: Stmt) -> list[Stmt]:
    """Return the bodies of a loop, a branch or a mark; none otherwise."""
    if type(s) is tirx.IfThenElse:
        return [s.then_case] if s.else_case is None else [s.then_case, s.else_case]
    return [s.body] if type(s) in _WITH_BODY else []


def with_bodies(s: Stmt, bodies: Sequence[Stmt]) -> Stmt:
    """Return a statement with new bodies, or the same one if they are unchanged."""
    if all(new.same_as(old) for new, old in zip(bodies, bodies_of(s), strict=True)):
        return s
    if type(s) is tirx.IfThenElse:
        return tirx.IfThenElse(s.condition, bodies[0], bodies[1] if len(bodies) == 2 else None, s.span)
    if type(s) is tirx.While:
        return tirx.While(s.condition, bodies[0], s.span)
    if type(s) is tirx.AttrStmt:
        return tirx.AttrStmt(s.node, s.attr_key, s.value, bodies[0], s.span)
    return replace_for(s, bodies[0])


def role(loop: Stmt) -> str:
    """Return the role of a loop (see ``ir/grammar.py``)."""
    return str(structural.entry(loop.annotations, attributes.ROLE, "serial"))


def annotation(loop: Stmt, key: str, default: Any = None) -> Any:
    """Return an annotation of a loop."""
    found = structural.entry(loop.annotations, key, default)
    return int(found.value) if type(found) is tirx.IntImm else found


def map_expr(e: Node, callback: UnaryNode, kinds: Any) -> Node:
    """Rewrite the nodes of ``kinds`` in an expression, innermost first."""
    return structural.mapped(e, kinds, callback)


def substitute(node: Node, mapping: dict[Var, Expr]) -> Node:
    """Replace variables in an expression or statement."""
    if not mapping:
        return node
    found = dict(zip(map(structural.identity, mapping), mapping.values(), strict=True))
    return structural.mapped(node, tirx.Var, lambda v: found.get(structural.identity(v), v))


def renamed(s: Stmt) -> Stmt:
    """Return a copy of a statement that defines variables and scratch buffers of its own."""
    mapping: dict[Var, Expr] = {}
    for node in collect(s, (tirx.For, tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer, tirx.Let)):
        if isinstance(node, (tirx.AllocBuffer, tirx.DeclBuffer)):
            data = substitute(node.data, mapping) if type(node) is tirx.DeclBuffer else None
            mapping[node.buffer] = another_buffer(node.buffer, data=data)
        else:
            var = node.loop_var if type(node) is tirx.For else node.var
            mapping[var] = tirx.Var(var.name, var.ty)
    if not mapping:
        return s
    return _RenameDefinitions(mapping).stmt(_with_lets(s, mapping))


def renamed_lets(e: Expr) -> Expr:
    """Return a copy of an expression whose ``Let`` nodes define variables of its own."""
    mapping: dict[Var, Expr] = {let.var: tirx.Var(let.var.name, let.var.ty) for let in collect(e, tirx.Let)}
    return _with_lets(e, mapping) if mapping else e


def _with_lets(node: Node, mapping: dict[Var, Expr]) -> Node:
    return map_expr(
        substitute(node, mapping), lambda e: tirx.Let(mapping.get(e.var, e.var), e.value, e.body, e.span), tirx.Let
    )


def another_buffer(b: BufferVar, name: str = "", data: Expr | None = None) -> BufferVar:
    """Return a new buffer like another one, at the memory ``data`` if given."""
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


def uses_var(node: Node, var: Var) -> bool:
    """Whether a variable occurs in a node."""
    return any(v.same_as(var) for v in collect(node, tirx.Var))


def distinct(variables: Iterable[Var]) -> set[Var]:
    """Return variables as a set, faster than by comparing equal ones."""
    found = list(variables)
    return set(dict(zip(map(structural.identity, found), found, strict=True)).values())


@functools.lru_cache(maxsize=1024)
def variables(e: Expr) -> frozenset[Var]:
    """Return the variables of an expression."""
    return frozenset(distinct(collect(e, tirx.Var)))


def loads_of(node: Node) -> list[Expr]:
    """Return the loads in a node."""
    return collect(node, ir.TensorLoad)


def statements(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements of a sequence, or the statement itself."""
    if type(s) is tirx.SeqStmt:
        yield from structural.items(s.seq)
    else:
        yield s
