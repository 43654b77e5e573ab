"""Let-expressions as one chain per expression: no value of a ``Let`` contains another one.

TVM's analyses bind the variable of a ``Let`` and then simplify its value again; inner variables that they meet a second
time, with a value that simplified differently, are an error for them. Only the sides of ``if_then_else`` keep their own
chains, since one of them is not evaluated; a value with such a side goes through memory.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect

Chain = list[tuple[Any, Any]]


def flatten_lets(body: Any) -> Any:
    """Return the statement with flat chains of ``Let``."""
    return _Flatten().stmt(body) if collect(body, tirx.Let) else body


class _Flatten(StmtRewriter):
    def __init__(self) -> None:
        self.before: list[Any] = []

    def stmt(self, s: Any) -> Any:
        outer, self.before = self.before, []
        new = super().stmt(s)
        before, self.before = self.before, outer
        return nodes.seq([*before, new]) if before else new

    def visit_While(self, s: Any) -> Any:
        """Keep the condition, which is evaluated again and again."""
        body = self.body(s.body)
        return s if body.same_as(s.body) else tirx.While(s.condition, body, s.span)

    def expr(self, e: Any) -> Any:
        if not collect(e, tirx.Let):
            return e
        chain, result = _chain(e)
        if any(collect(value, tirx.Let) for _, value in chain):
            for var, value in chain:
                self.before.append(tirx.Bind(var, self.stored(value) if collect(value, tirx.Let) else value))
            return result
        return _wrapped(chain, result)

    def stored(self, value: Any) -> Any:
        """Store a value in memory of its own and return its load."""
        buffer, allocate = nodes.alloc([1], nodes.dtype_of(value), "let", "local")
        self.before += [allocate, nodes.store(buffer, value, [0])]
        return buffer[0]


def _chain(e: Any) -> tuple[Chain, Any]:
    """Return the bindings of an expression in order, and what remains of it."""
    found: dict[Any, Any] = {}

    def let(x: Any, mutator: Any) -> Any:
        if x.var not in found:
            value = mutator.mutate(x.value)
            found[x.var] = value
        return mutator.mutate(x.body)

    def call(x: Any, mutator: Any) -> Any:
        if nodes.operator_name(x) != "if_then_else":
            return mutator.default_mutate(x)
        return tirx.if_then_else(mutator.mutate(x.args[0]), *[_wrapped(*_chain(side)) for side in list(x.args)[1:]])

    result = tvm_ffi.structural_mutate(e, [(tirx.Let, let), (ir.Call, call)])
    return list(found.items()), result


def _wrapped(chain: Chain, result: Any) -> Any:
    for var, value in reversed(chain):
        result = tirx.Let(var, value, result)
    return result
