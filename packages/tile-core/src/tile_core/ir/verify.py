"""The verifier: checks a statement against the grammar of its stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from tile_core.compat.structural import identity, items
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.errors import InternalError
from tile_core.ir import attributes, nodes
from tile_core.ir.attributes import ANY_CALL, ANY_OP, LAUNCH, STAGE_ORDER, Attribute, Attrs
from tile_core.ir.grammar import ATTRIBUTES, STAGES, Stage
from tile_core.ir.visit import collect

#: The expressions of a kind of statements.
_FIELDS = {
    "For": ("min", "extent"),
    "While": ("condition",),
    "IfThenElse": ("condition",),
    "Bind": ("value",),
    "BufferStore": ("value",),
    "Evaluate": ("value",),
}


def verify(
    body: Stmt, stage: str, params: Sequence[Var] = (), tile_ops: frozenset[str] = frozenset(),
    launch: Attrs | None = None, declared: Mapping[str, Attribute[Any]] = ATTRIBUTES,
) -> None:  # fmt: skip
    """Check a statement.

    Parameters
    ----------
    body
        The statement.
    stage
        A key of ``STAGES``.
    params
        Variables and buffers that are defined outside.
    tile_ops
        Names (without prefix) of the calls that count as tile ops.
    launch
        The attributes of the launch.
    declared
        The declared attributes.

    Raises
    ------
    InternalError
        Naming the first node that breaks the grammar.
    """
    verifier = _Verifier(stage, STAGES[stage], tile_ops, params, declared)
    verifier.check_attributes(LAUNCH, launch)
    verifier.statement(body)


class _Verifier:
    def __init__(
        self, name: str, stage: Stage, tile_ops: frozenset[str], params: Sequence[Var],
        declared: Mapping[str, Attribute[Any]],
    ) -> None:  # fmt: skip
        self.name, self.stage, self.tile_ops, self.declared = name, stage, tile_ops, declared
        #: Identities of variables: the statement keeps them alive.
        self.defined: set[int] = set()
        for p in params:
            self.defined |= {identity(v) for v in (p, *collect(p, tirx.Var))}
            if tirx.is_buffer_var(p):
                for d in [*p.shape, *(p.ty.strides or [])]:
                    self.defined |= {identity(v) for v in collect(d, tirx.Var)}
        self.bound: set[int] = set()
        self.inner: list[int] = []  # what the innermost scope defines

    def fail(self, detail: str) -> None:
        raise InternalError(stage=f"verifier ({self.name})", detail=detail)

    def statement(self, s: Stmt) -> None:
        kind = type(s).__name__
        if kind not in self.stage.statements:
            self.fail(f"a {kind} is not part of this stage")
        getattr(self, f"check_{kind}", self.expressions)(s)

    def define(self, var: Var) -> None:
        own = identity(var)
        if own in self.bound:
            self.fail(f"{var.name} is defined twice")
        self.bound.add(own)
        if own not in self.defined:
            self.defined.add(own)
            self.inner.append(own)

    def expressions(self, s: Stmt) -> None:
        for e in _expressions_of(s):
            self.expression(e)

    def expression(self, e: Expr) -> None:
        found = [e] if type(e) is tirx.Var else collect(e, (tirx.Var, tirx.Let, ir.Call))
        own = {identity(let.var) for let in found if type(let) is tirx.Let}
        for node in found:
            if type(node) is tirx.Var:
                number = identity(node)
                if number not in self.defined and number not in own and nodes.dtype_of(node) != "handle":
                    self.fail(f"{node.name} is used where it is not defined")
            elif not self.stage.tile_ops and nodes.is_tile_call(node) and str(node.op.name)[5:] in self.tile_ops:
                self.fail(f"the tile op {node.op.name} has not been lowered")
            if type(node) is ir.Call and node.attrs:
                name = nodes.operator_name(node).removeprefix("tile.")
                tile = {ANY_OP} if nodes.is_tile_call(node) else set()
                self.check_attributes(f"a call of {name}", node.attrs, {name, ANY_CALL, *tile})

    def check_attributes(self, on: str, given: Any, kinds: Set[str] = frozenset()) -> None:
        """Check the attributes of a node; ``kinds`` are names of the node, beside ``on``."""
        for key, value in dict(given or {}).items():
            found = self.declared.get(str(key))
            if found is None:
                self.fail(f"the attribute {str(key)!r} of {on} is not declared")
            elif not found.on & {on, *kinds}:
                self.fail(f"the attribute {str(key)!r} stands on {on}, declared for {', '.join(sorted(found.on))}")
            elif self.name not in found.stages:
                stages = ", ".join(s for s in STAGE_ORDER if s in found.stages)
                self.fail(f"the attribute {str(key)!r} of {on} belongs to the stages {stages} only")
            elif not found.kind.holds(value):
                self.fail(f"the attribute {str(key)!r} of {on} is {value}, expected {found.kind.name}")

    def scoped(self, s: Stmt) -> None:
        """Check a statement; what it defines ends with it."""
        outer, self.inner = self.inner, []
        self.statement(s)
        self.defined.difference_update(self.inner)
        self.inner = outer

    def check_SeqStmt(self, s: Stmt) -> None:
        for part in items(s.seq):
            self.statement(part)

    def check_For(self, s: Stmt) -> None:
        self.expressions(s)
        self.check_attributes(attributes.LOOP, s.annotations)
        outer, self.inner = self.inner, []
        self.define(s.loop_var)
        self.statement(s.body)
        self.defined.difference_update(self.inner)
        self.inner = outer

    def check_While(self, s: Stmt) -> None:
        self.expressions(s)
        self.scoped(s.body)

    def check_IfThenElse(self, s: Stmt) -> None:
        self.expressions(s)
        self.scoped(s.then_case)
        if s.else_case is not None:
            self.scoped(s.else_case)

    def check_AttrStmt(self, s: Stmt) -> None:
        self.check_attributes(attributes.MARK, {s.attr_key: s.node})
        self.statement(s.body)

    def check_AllocBuffer(self, s: Stmt) -> None:
        scope = nodes.scope_of(s.buffer)
        if scope not in self.stage.scopes:
            self.fail(f"{s.buffer.name} is allocated in scope {scope!r}")
        self.check_attributes(attributes.ALLOCATION, s.annotations)
        self.define(s.buffer)

    def check_DeclBuffer(self, s: Stmt) -> None:
        self.define(s.buffer)

    def check_Bind(self, s: Stmt) -> None:
        self.expressions(s)
        self.define(s.var)


def _expressions_of(s: Stmt) -> list[Expr]:
    found = [getattr(s, f) for f in _FIELDS.get(type(s).__name__, ())]
    return [*found, *items(s.indices), s.buffer] if type(s) is tirx.BufferStore else found
