"""Neighbouring branches on one condition are one; what lies between them, or another condition, keeps them apart."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.passes.join_branches import join_branches

from .plain import run

X, N = tirx.Var("x", "int32"), tirx.Var("n", "int32")
OUT = tirx.decl_buffer([8], "int32", "out", layout=None)
FLAG = tirx.decl_buffer([1], "int32", "flag", layout=None)


def put(at: int, value: Any) -> Any:
    return nodes.store(OUT, nodes.int_const(0) + value, [nodes.int_const(at)])


def branch(at: int, condition: Any = None, sides: int = 2) -> Any:
    other = put(at, N + 10) if sides == 2 else None
    return tirx.IfThenElse(X + 3 < N if condition is None else condition, put(at, X), other)


def loaded() -> Any:
    return nodes.load(FLAG, [nodes.int_const(0)]) < N


#: Statements, and how many branches they become.
CASES: dict[str, tuple[list[Any], int]] = {
    "two": ([branch(0), branch(1)], 1),
    "three, and others": ([put(5, N), branch(0), branch(1), branch(2), put(6, X)], 1),
    "a statement between them": ([branch(0), put(5, N), branch(1)], 2),
    "another condition": ([branch(0), branch(1, X + 4 < N)], 2),
    "one side": ([branch(0, sides=1), branch(1)], 2),
    "a condition in memory": ([branch(0, loaded()), branch(1, loaded())], 2),
    "alone": ([branch(0)], 1),
    "what stores nothing": ([tirx.IfThenElse(X + 3 < N, tirx.Evaluate(N), put(0, N)), branch(0)], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_branches(name: str) -> None:
    statements, count = CASES[name]
    inner = nodes.seq(statements)
    body = nodes.for_loop(tirx.Var("k", "int32"), 2, inner, "serial")
    new = join_branches(body)
    assert len(collect(new, tirx.IfThenElse)) == count
    assert new.same_as(body) == (count == len(collect(body, tirx.IfThenElse)))
    for i, n in ((0, 0), (0, 3), (0, 4), (5, 7)):
        found: list[dict[int, Any]] = []
        for s in (body, new):
            memory: dict[Any, dict[int, Any]] = {OUT: {}, FLAG: {(0,): 2}}
            run(s, memory, {X: i, N: n})
            found.append(memory[OUT])
        assert found[0] == found[1]
