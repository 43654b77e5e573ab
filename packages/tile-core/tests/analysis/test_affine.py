"""Proofs that executions access different elements, beside brute force over small loops."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.analysis.affine import Digits
from tile_core.analysis.index_evaluation import evaluate
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes

#: Of sizes, and of iterations of a loop.
_MOST = 5
Expr = Any
R, C, J, N = (nodes.fresh(name, "int32") for name in "rcjn")


class Buffer(SimpleNamespace):
    """What a proof looks at of a buffer."""

    def __init__(self) -> None:
        super().__init__(ty=SimpleNamespace(strides=(), shape=()))

    def same_as(self, other: object) -> bool:
        return self is other


@dataclass(frozen=True)
class Drawn:
    """An access in two independent loops and an inner one."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    conditions: tuple[tuple[Expr, bool], ...]

    def executions(self, nest: list[Any], inner: Any) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
        """Return the iterations of the nest that access each element, by (size, element)."""
        grid = np.mgrid[0 : _MOST + 1, 0:_MOST, 0:_MOST, 0:_MOST].reshape(4, -1)
        env: dict[Expr, Any] = {N: grid[0]}
        kept: Any = np.ones(grid.shape[1], bool)
        for loop, k in zip((*nest, inner), grid[1:], strict=True):
            env[loop.loop_var] = evaluate(loop.min, env) + k
            kept &= k < evaluate(loop.extent, env)
        for c, holds in self.conditions:
            kept &= np.asarray(evaluate(c, env), bool) == holds
        at = [np.broadcast_to(evaluate(x, env), kept.shape) for x in self.indices]
        found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for row in np.stack([grid[0], *at, env[R], env[C]], 1)[kept].tolist():
            found.setdefault(tuple(row[:-2]), set()).add(tuple(row[-2:]))
        return found


def loop(var: Expr, extent: Expr, start: int = 0) -> Any:
    return nodes.for_loop(var, extent, nodes.seq([]), start=nodes.int_const(start))


def const(draw: st.DrawFn, low: int, high: int) -> Expr:
    return nodes.int_const(draw(st.integers(low, high)))


@st.composite
def index(draw: st.DrawFn) -> Expr:
    """Draw a sum of digits, the inner variable, the size, and perhaps of something else."""
    found = const(draw, -9, 9)
    for v in draw(st.permutations([R, C])):
        by, factor, lower = (const(draw, *ends) for ends in ((2, 4), (-30, 30), (-9, 9)))
        quotient, rest = tirx.FloorDiv(v, by), tirx.FloorMod(v, by)
        found = found + draw(
            st.sampled_from([v * factor, v, quotient * factor + rest * lower, quotient, rest * factor])
        )
    found = found + draw(st.sampled_from([J, J * 2, tirx.FloorDiv(J - 3, nodes.int_const(2)), nodes.int_const(0)]))
    other = (
        tirx.FloorMod(R - J, nodes.int_const(3)),
        tirx.FloorDiv(C * 2 - 7, nodes.int_const(-3)),
        tirx.Min(R, J),
        R * C,
    )
    return found + draw(st.sampled_from([N, N * R, *other, *[nodes.int_const(0)] * 6]))


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Any], Any, list[Drawn]]:
    """Draw a nest, an inner loop, and accesses of one buffer."""
    extents = [N, *map(nodes.int_const, (0, 1, 2, 3, 4, 5))]
    nest = [loop(v, draw(st.sampled_from(extents)), draw(st.sampled_from([0, 0, 0, -3, 2]))) for v in (R, C)]
    inner = loop(J, draw(st.sampled_from([*extents, R + 1])), draw(st.integers(-3, 3)))
    first = tuple(draw(st.lists(index(), min_size=1, max_size=2)))
    buffer, found = Buffer(), []
    for _ in range(draw(st.integers(1, 2))):
        moved = tuple(x + const(draw, -2, 2) if draw(st.booleans()) else x for x in first)
        guard = draw(st.sampled_from([tirx.EQ(R, N), tirx.EQ(C, nodes.int_const(1)), tirx.LT(R, C), tirx.EQ(R, J)]))
        found.append(Drawn(buffer, moved, ((guard, draw(st.booleans())),) if draw(st.booleans()) else ()))
    return nest, inner, found


def meet(nest: list[Any], inner: Any, accesses: list[Drawn]) -> bool:
    """Whether two iterations access one element."""
    tables = [a.executions(nest, inner) for a in accesses]
    return any(
        len(who | two.get(at, set())) > 1
        for one, two in itertools.combinations_with_replacement(tables, 2)
        for at, who in one.items()
        if at in two
    )


@given(programs())
@settings(max_examples=200, deadline=None)
def test_executions_that_are_proven_to_be_distinct_do_not_meet(program: tuple[list[Any], Any, list[Drawn]]) -> None:
    nest, inner, accesses = program
    if Digits(nest, [inner], {}).distinct(accesses):  # type: ignore[arg-type]
        assert not meet(nest, inner, accesses)


def digit(e: Expr, by: int) -> Expr:
    """Return the remainder."""
    return tirx.FloorMod(e, nodes.int_const(by))


def when(condition: Expr, holds: bool, *indices: Expr) -> tuple[list[Expr], tuple[tuple[Expr, bool], ...]]:
    """Return an access under a condition."""
    return list(indices), ((condition, holds),)


#: Accesses by two independent variables below 5, with an inner one below 4.
DISTINCT = {
    "elements": [[R, C]],
    "rows of tiles": [[R * 4 + J, C]],
    "flat": [[R * 20 + C * 4 + J]],
    "flat and backwards": [[C * 4 - R * 20 + J]],
    "of a size": [[R * 20 + C * 4 + J + N * 7]],
    "quotient and remainder": [[digit(R, 2), C * 3 + tirx.FloorDiv(R, nodes.int_const(2))]],
    "one iteration": [when(tirx.EQ(R, N), True, C)],
    "the same element twice": [[R, C], [R, C]],
    "two parts of a tile": [[R * 4, C], [R * 4 + 3, C]],
}  # fmt: skip
MEETING = {
    "overlapping tiles": [[R * 3 + J, C]],
    "overlapping tiles backwards": [[R * 3 - J, C]],
    "a digit that reaches the next": [[R * 4 + C]],
    "one of two": [[R]],
    "a remainder alone": [[digit(R, 2), C]],
    "a quotient alone": [[tirx.FloorDiv(R, nodes.int_const(2)), C]],
    "forwards and backwards": [[R, C], [4 - R, C]],
    "terms of two signs": [[R * 5 - C], [R * 5 + C]],
    "moved by a size": [[R, C], [R + N, C]],
    "moved by a row": [[R, C], [R + 1, C]],
    "all other iterations": [when(tirx.EQ(R, N), False, C)],
    "an iteration that differs": [when(tirx.EQ(R, J), True, C)],
    "a bound": [when(tirx.LT(R, N), True, C)],
}


@pytest.mark.parametrize("name", [*DISTINCT, *MEETING])
def test_tilings(name: str) -> None:
    """Of usual tilings the proof is complete."""
    given_accesses = {**DISTINCT, **MEETING}[name]
    buffer = Buffer()
    accesses = [
        Drawn(buffer, tuple(a[0]), a[1]) if isinstance(a, tuple) else Drawn(buffer, tuple(a), ())
        for a in given_accesses
    ]
    nest, inner = [loop(v, nodes.int_const(5)) for v in (R, C)], loop(J, nodes.int_const(4))
    assert Digits(nest, [inner], {}).distinct(accesses) is (name in DISTINCT)  # type: ignore[arg-type]
    assert meet(nest, inner, accesses) is (name in MEETING)


@pytest.mark.parametrize(
    ("extents", "indices"),
    [((5, N), [R * 4 + C]), ((N, 5), [R + C * 5]), ((5, 1), [R]), ((5, 0), [R]), ((1, 1), [R])],
)
def test_extents_decide(extents: tuple[Expr, Expr], indices: list[Expr]) -> None:
    nest = [loop(v, nodes.int_const(0) + e) for v, e in zip((R, C), extents, strict=True)]
    inner, access = loop(J, nodes.int_const(1)), Drawn(Buffer(), tuple(indices), ())
    found = Digits(nest, [inner], {}).distinct([access])  # type: ignore[list-item]
    assert found is (1 in extents)
    assert not (found and meet(nest, inner, [access]))


def test_a_loop_of_one_iteration_has_a_value() -> None:
    """Two accesses that differ by it."""
    buffer = Buffer()
    nest, inner = [loop(R, nodes.int_const(5)), loop(C, nodes.int_const(1), 1)], loop(J, nodes.int_const(1))
    accesses = [Drawn(buffer, (R,), ()), Drawn(buffer, (R + C,), ())]
    assert not Digits(nest, [inner], {}).distinct(accesses)  # type: ignore[arg-type]
    assert meet(nest, inner, accesses)
