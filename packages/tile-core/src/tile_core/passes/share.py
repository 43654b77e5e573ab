"""Common-subexpression elimination for integer operations that no index simplification looks into.

Additions and multiplications that wrap, divisions by values of the launch, conditions of several comparisons: their
texts are long, and a name or a guard repeats them at each use. The first of several equal ones gets a name before its
statement, and those that it dominates use it: nothing moves out of a loop or a branch. Linear combinations of variables
stay as they are, because a printer combines them with the strides of a buffer, and assemblers share them.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Call, Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import HoistingRewriter, collect
from tile_core.numerics.build import type_name

__all__ = ["share"]

_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
_JUNCTIONS = (tirx.And, tirx.Or)
_CHOICES = (*_JUNCTIONS, tirx.Select)
_CANDIDATES = (ir.Call, tirx.Let, *_DIVISIONS, *_CHOICES)
#: Signed ones do not overflow where they are evaluated, but may elsewhere.
_PLAIN = (tirx.Add, tirx.Sub, tirx.Mul)
_PURE_CALLS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")


def share(body: Stmt, in_vectors: bool = True) -> Stmt:
    """Return a program whose repeated integer operations have names.

    Parameters
    ----------
    body
        A program of scalar operations, whose divisions are defined for all operands.
    in_vectors
        Whether vectorized loops may bind names.
    """
    found = [int(tvm_ffi.structural_hash(e)) for e in collect(body, _CANDIDATES) if _is_operation(e)]
    if len(found) == len(set(found)):
        return body
    counting = _Share(None, in_vectors)
    counting.stmt(body)
    uses = [value.uses for value in counting.values]
    return _Share(uses, in_vectors).stmt(body) if any(uses) else body


class _Value:
    """An expression computed at one point, with its dominated uses, and its name if any."""

    def __init__(self, e: Expr) -> None:
        self.e, self.uses = e, 0
        self.var: Var | None = None


class _Share(HoistingRewriter):
    """Counts uses, or, given the counts of all values in order, names those with several."""

    def __init__(self, uses: list[int] | None, in_vectors: bool) -> None:
        super().__init__()
        self.uses, self.in_vectors = uses, in_vectors
        self.values: list[_Value] = []
        #: The values that are available, by hash, of each open scope.
        self.scopes: list[dict[int, list[_Value]]] = [{}]
        #: Variables that expressions around the current one bind.
        self.inner: list[Var] = []
        #: Whether the current expression is always evaluated with its statement.
        self.always = True
        self.binding: Stmt | None = None

    def body(self, s: Stmt) -> Stmt:
        self.scopes.append({})
        new = super().body(s)
        self.scopes.pop()
        return new

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite a loop, unless no name may be bound in it."""
        return super().visit_For(s) if self.in_vectors or s.kind != tirx.ForKind.VECTORIZED else s

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Rewrite a binding; a value that it names needs no other name."""
        self.binding = s
        new = super().visit_Bind(s)
        self.binding = None
        return new

    def expr(self, e: Expr) -> Expr:
        if structural.is_atom(e) or not any(map(_is_operation, collect(e, _CANDIDATES))):
            return e
        return structural.mutated(e, [(_CANDIDATES, self.candidate)])

    def candidate(self, e: Expr, mutator: Mutator) -> Expr:
        if not _is_candidate(e) or not self.may_move(e):
            return self.parts(e, mutator)
        key = int(tvm_ffi.structural_hash(e))
        for scope in self.scopes:
            for known in scope.get(key, ()):
                if tvm_ffi.structural_equal(known.e, e):
                    known.uses += 1
                    return e if known.var is None else known.var
        value = _Value(e)
        self.values.append(value)
        bind = self.binding if self.binding is not None and self.binding.value.same_as(e) else None
        if self.uses is not None and self.uses[len(self.values) - 1]:
            value.var = nodes.fresh("common", type_name(e)) if bind is None else bind.var
        new = self.parts(e, mutator)
        self.scopes[-1].setdefault(key, []).append(value)
        if bind is not None or value.var is None:
            return new
        self.before.append(tirx.Bind(value.var, new))
        return value.var

    def may_move(self, e: Expr) -> bool:
        """Whether an expression may be evaluated before its statement."""
        if not self.always and collect(e, _PLAIN):
            return False
        return not any(v.same_as(x) for v in collect(e, tirx.Var) for x in self.inner)

    def parts(self, e: Expr, mutator: Mutator) -> Expr:
        """Rewrite the parts of an expression, some of them evaluated only on a condition."""
        outer = self.always
        if type(e) is tirx.Let:
            value = mutator.mutate(e.value)
            self.inner.append(e.var)
            body = mutator.mutate(e.body)
            self.inner.pop()
            return e if value.same_as(e.value) and body.same_as(e.body) else tirx.Let(e.var, value, body, e.span)
        if type(e) in _JUNCTIONS:
            left = mutator.mutate(e.a)
            self.always = False
            right = mutator.mutate(e.b)
            self.always = outer
            return e if left.same_as(e.a) and right.same_as(e.b) else type(e)(left, right, e.span)
        if type(e) is tirx.Select or nodes.operator_name(e) == "if_then_else":
            old = [e.condition, e.true_value, e.false_value] if type(e) is tirx.Select else list(e.args)
            condition = mutator.mutate(old[0])
            self.always = False
            sides = [mutator.mutate(x) for x in old[1:]]
            self.always = outer
            if all(a.same_as(b) for a, b in zip((condition, *sides), old, strict=True)):
                return e
            if type(e) is tirx.Select:
                return tirx.Select(condition, *sides, e.span)
            return ir.Call(e.op, [condition, *sides], ret_ty=e.ty, span=e.span)
        return mutator.default_mutate(e)


def _is_candidate(e: Any) -> bool:
    """Whether an expression is an operation worth a name, of integers and conditions only."""
    return _is_operation(e) and _is_pure(e)


def _is_operation(e: Any) -> bool:
    if type(e) is ir.Call:
        return nodes.operator_name(e).startswith(nodes.WRAPPING_PREFIX)
    if type(e) in _DIVISIONS:
        return not isinstance(e.b, tirx.IntImm)
    if type(e) is tirx.Select:
        return any(type(x) in _CANDIDATES and _is_operation(x) for x in (e.condition, e.true_value, e.false_value))
    return True


def _is_pure(e: Expr) -> bool:
    """Whether an integer or bool expression has one value wherever its variables are bound."""
    if collect(e, (ir.TensorLoad, ir.StringImm)) or not all(map(_is_total, collect(e, ir.Call))):
        return False
    return all(
        type_name(x).startswith(("int", "uint", "bool")) for x in collect(e, (tirx.Var, tirx.FloatImm, tirx.Cast))
    )


def _is_total(call: Call) -> bool:
    name = nodes.operator_name(call)
    return name.startswith(nodes.WRAPPING_PREFIX) or name in _PURE_CALLS or name == "if_then_else"
