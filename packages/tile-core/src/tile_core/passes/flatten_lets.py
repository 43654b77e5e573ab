"""Let-expressions as one flat chain per expression: no value of a ``Let`` contains another one.

TVM's analyses bind the variable of a ``Let`` and then simplify its value again: that doubles the work with every level
of nesting, and an inner variable visited again with a differently simplified value is an error for
them. The sides of an ``if_then_else`` cannot join the chain, since one of them is not evaluated: where they hold a
``Let``, the expression becomes a branch that stores its result in a variable.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import HoistingRewriter, collect


def flatten_lets(body: Stmt) -> Stmt:
    """Return the statement with flat chains of ``Let``."""
    return _FlattenLets().stmt(body) if collect(body, tirx.Let) else body


class _FlattenLets(HoistingRewriter):
    def expr(self, e: Expr) -> Expr:
        if not collect(e, tirx.Let):
            return e
        if any(_is_choice(c) for c in collect(e, ir.Call)):
            return _Statements(self.before, {}).expr(e)
        return _chain(e)


def _is_choice(e: Call) -> bool:
    return nodes.operator_name(e) == "if_then_else" and any(collect(side, tirx.Let) for side in list(e.args)[1:])


def _chain(e: Expr) -> Expr:
    """Return the expression with all its bindings hoisted."""
    found: dict[Var, Expr] = {}

    def let(x: Expr, mutator: Mutator) -> Expr:
        if x.var not in found:
            value = mutator.mutate(x.value)
            found[x.var] = value
        return mutator.mutate(x.body)

    result = structural.mutated(e, [(tirx.Let, let)])
    for var, value in reversed(found.items()):
        result = tirx.Let(var, value, result)
    return result


class _Statements:
    """Hoists bindings and conditional expressions into statements before the expression.

    ``names`` maps each variable to its replacement in scope: a binding that occurs on both sides of a conditional is
    made twice.
    """

    def __init__(self, out: list[Stmt], names: dict[Var, Var]) -> None:
        self.out = out
        self.names = names

    def expr(self, e: Expr) -> Expr:
        return structural.mutated(e, [(tirx.Let, self.let), (ir.Call, self.call), (tirx.Var, self.var)])

    def var(self, v: Var, _: Mutator) -> Var:
        return self.names.get(v, v)

    def let(self, x: Expr, mutator: Mutator) -> Expr:
        if x.var not in self.names:
            value = mutator.mutate(x.value)
            name = self.names[x.var] = tirx.Var(x.var.name, x.var.ty)
            self.out.append(tirx.Bind(name, value))
        return mutator.mutate(x.body)

    def call(self, x: Call, mutator: Mutator) -> Expr:
        if not _is_choice(x):
            return mutator.default_mutate(x)
        condition = mutator.mutate(x.args[0])
        buffer, allocate = nodes.alloc([1], nodes.dtype_of(x), "chosen", "local")
        sides = []
        for side in list(x.args)[1:]:
            inner: list[Stmt] = []
            value = _Statements(inner, dict(self.names)).expr(side)
            sides.append(nodes.seq([*inner, nodes.store(buffer, value, [0])]))
        self.out += [allocate, tirx.IfThenElse(condition, *sides)]
        return buffer[0]
