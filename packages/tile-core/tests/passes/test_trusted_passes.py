"""Every index pass of the CPU's build, ours and TVM's, preserves sampled values.

A program stores a random expression of its loop's variables; plain Python computes what it stores, before the pass and
after it. The number of expressions grows with ``INDEX_SAMPLES``.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.proofs import Proofs
from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.cpu import build
from tile_core.ir import nodes
from tile_core.passes import wrapping
from tile_core.passes.divisions import total_divisions

from .plain import Expressions, Overflow, run, value

pytestmark = pytest.mark.sweep(3)

SAMPLES = int(os.environ.get("INDEX_SAMPLES", "25"))
PASSES = {str(p.info.name): p for p in build.index_passes()}
ROWS, COLUMNS = 5, 8


class Placement(dict[Any, Any]):
    """The contents of a matrix whose elements are their own offsets."""

    def __missing__(self, at: tuple[int, ...]) -> int:
        return at[0] if len(at) == 1 else at[0] * COLUMNS + at[1]


class Program:
    """Return a loop nest that reads a random row of a matrix, and its scalars."""

    def __init__(self, rng: random.Random, kind: str, role: str) -> None:
        i, j, m, c = (nodes.fresh(name, kind) for name in "ijmc")
        make = Expressions(rng, [i, j, m, c], [m])
        make.lanewise = role == "vectorized"
        self.index = make.index(rng.choice([2, 3, 4]))
        self.scalars = {m: rng.choice([1, 2, 5, 16]), c: rng.choice([-9, 0, 3, 40])}
        at = [value(self.index, {}, {**self.scalars, i: x, j: y}) for x in range(ROWS) for y in range(COLUMNS)]
        low, high = min(at), max(at)
        if high - low > 2**28:
            raise Overflow
        shift = min(low, 0)
        rows = nodes.int_const(high - shift + 1, kind)
        self.table = tirx.decl_buffer([rows, nodes.int_const(COLUMNS, kind)], "int64", "table", layout=None)
        self.sized = tirx.decl_buffer([m, 4], "int64", "sized", layout=None)
        self.out = tirx.decl_buffer([ROWS, COLUMNS], "int64", "out", layout=None)
        bound = nodes.fresh("bound", kind)
        read = tirx.BufferLoad(self.table, [self.index - nodes.int_const(shift, kind), j])
        body = nodes.seq([tirx.Bind(bound, self.index),
                          tirx.BufferStore(self.out, read + tirx.Cast("int64", bound), [i, j])])  # fmt: skip
        zero, loops = nodes.int_const(0, kind), [(j, COLUMNS, role), (i, ROWS, "serial")]
        for var, extent, form in loops:
            body = nodes.for_loop(var, nodes.int_const(extent, kind), body, form, start=zero)
        self.plain = tirx.PrimFunc([self.sized, self.table, self.out, c], body).with_attr("global_symbol", "main")
        self.func = self.plain.with_body(total_divisions(body))

    def results(self, func: Any) -> list[int]:
        """Return the stores of a form of the function."""
        memory: dict[Any, Any] = {self.table: Placement(), self.out: {}, self.sized: {}}
        run(func.body, memory, dict(self.scalars))
        stored = {at[0] if len(at) == 1 else at[0] * COLUMNS + at[1]: v for at, v in memory[self.out].items()}
        return [stored[k] for k in range(ROWS * COLUMNS)]


def programs(rng: random.Random, kind: str, role: str, count: int) -> Iterator[tuple[Program, list[int]]]:
    """Yield programs without overflow, and what they store."""
    while count:
        try:
            made = Program(rng, kind, role)
            yield made, made.results(made.func)
            count -= 1
        except Overflow:
            continue


@pytest.mark.parametrize("role", ["serial", "vectorized", "unroll"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_passes_keep_what_programs_store(kind: str, role: str) -> None:
    target = tvm.target.Target({"kind": "llvm"}, host={"kind": "llvm"})
    for made, expected in programs(random.Random(f"{kind} {role}"), kind, role, SAMPLES):
        module = ir.IRModule({"main": made.func.with_attr("target", target)})
        for name, step in PASSES.items():
            module = step(module)
            assert made.results(module["main"]) == expected, f"{name}: {made.index} with {made.scalars}"


def test_sampling_finds_what_is_wrong_with_the_pass_that_was_replaced() -> None:
    wrong = 0
    for made, expected in programs(random.Random(7), "int32", "serial", 40):
        module = tirx.transform.FlattenBuffer()(ir.IRModule({"main": made.plain}))
        wrong += made.results(module["main"]) != expected
    assert wrong


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_ranges_hold_every_value(kind: str) -> None:
    rng = random.Random(kind)
    i, m = nodes.fresh("i", kind), nodes.fresh("m", kind)
    make = Expressions(rng, [i, m], [m])
    make.conversions = True
    for _ in range(SAMPLES * 20):
        e = make.index(4)
        ranges = Ranges()
        ranges.set(i, (-3, 12))
        ranges.set(m, (1, 9))
        low, high = ranges.of(e)
        for _ in range(8):
            names = {i: rng.randint(-3, 12), m: rng.randint(1, 9)}
            with contextlib.suppress(Overflow):
                assert low <= value(e, {}, names) <= high, f"{e} with {names}"


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("node", [tirx.Add, tirx.Sub, tirx.Mul])
def test_ranges_of_arithmetic_that_wraps(node: Any, kind: str) -> None:
    x, y = nodes.fresh("x", kind), nodes.fresh("y", kind)
    function = {tirx.Add: operator.add, tirx.Sub: operator.sub, tirx.Mul: operator.mul}[node]
    base = -128 if kind == "int8" else 0
    sides = [(base, base + 2), (0, 1), (5, 9), (100, 127), (base, base + 255)]
    for (a, b), (c, d) in itertools.product(sides, sides):
        ranges = Ranges()
        ranges.set(x, (a, b))
        ranges.set(y, (c, d))
        low, high = ranges.of(wrapping.operation(node(x, y), x, y))
        results = [function(p, q) for p in range(a, b + 1) for q in range(c, d + 1)]
        assert all(low <= (r - base) % 256 + base <= high for r in results)
        if base <= min(results) and max(results) < base + 256:
            assert (low, high) == (min(results), max(results))


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_proofs_are_right_about_narrow_types_and_symbols(kind: str) -> None:
    rng = random.Random(f"proofs {kind}")
    i, m = nodes.fresh("i", kind), nodes.fresh("m", kind)
    make = Expressions(rng, [i, m], [m])
    make.conversions = True
    for _ in range(SAMPLES * 10):
        e = make.index(rng.choice([2, 3]))
        proofs = Proofs()
        proofs.size(m)
        proofs.loop(nodes.for_loop(i, nodes.int_const(15, kind), nodes.seq([]), start=nodes.int_const(-3, kind)))
        limit = nodes.int_const(rng.randint(-20, 200), kind)
        (low, high), below, simple = proofs.bound(e), proofs.holds(tirx.LT(e, limit)), proofs.simplify(e)
        for _ in range(12):
            names = {i: rng.randint(-3, 11), m: rng.choice([0, 1, 2, 7, 300])}
            with contextlib.suppress(Overflow):
                exact, about = value(e, {}, names), f"{e} with {names}"
                assert low <= exact <= high, about
                assert not below or exact < int(limit.value), about
                assert value(simple, {}, names) == exact, f"{about}: {simple}"


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_the_analyzer_is_right_about_narrow_types(kind: str) -> None:
    """An analyzer queried about all expressions of a program, under their conditions."""
    rng = random.Random(f"analyzer {kind}")
    i, m = nodes.fresh("i", kind), nodes.fresh("m", kind)
    make = Expressions(rng, [i, m], [m])
    make.conversions = True
    analyzer = Analyzer()
    analyzer.bind(i, ir.Range.from_min_extent(nodes.int_const(-3, kind), nodes.int_const(15, kind)))
    analyzer.bind(m, ir.Range.from_min_extent(nodes.int_const(1, kind), nodes.int_const(300, kind)))
    for _ in range(SAMPLES * 10):
        e, c = make.index(rng.choice([2, 3])), tirx.LT(make.index(2), nodes.int_const(rng.randint(-5, 40), kind))
        limit = nodes.int_const(rng.randint(-20, 200), kind)
        with analyzer.constraint_scope(c):
            (low, high), below = analyzer.const_int_bound(e), analyzer.can_prove(tirx.LT(e, limit))
            simple, modulus = analyzer.simplify(e), analyzer.modular_set(e)
        for _ in range(12):
            names = {i: rng.randint(-3, 11), m: rng.choice([1, 2, 7, 300])}
            with contextlib.suppress(Overflow):
                if not value(c, {}, names):
                    continue
                exact, about = value(e, {}, names), f"{e} with {names} where {c}"
                assert low <= exact <= high, about
                assert not below or exact < int(limit.value), about
                assert value(simple, {}, names) == exact, f"{about}: {simple}"
                distance = exact - modulus.base
                assert distance % modulus.coeff == 0 if modulus.coeff else distance == 0, f"{about}: {modulus}"


@pytest.mark.parametrize(("least", "most"), [(-(2**31), 0), (-(2**31), 2**30), (2**30, 2**31 - 1), (0, 2**31 - 2)])
def test_simplified_indices_overflow_nowhere(least: int, most: int) -> None:
    """An index that overflows nowhere does not overflow after the analyzer's changes."""
    rng, changed, large = random.Random(f"{least} {most}"), 0, (2**31 - 1, -(2**31), 2**30, -(2**30) - 1)
    i, j, h = (nodes.fresh(name) for name in "ijh")
    make = Expressions(rng, [i, j, h], [])
    while changed < SAMPLES * 10:
        constant = nodes.int_const(rng.choice(large) if rng.random() < 0.3 else rng.randint(-9, 9))
        forms = (constant - tirx.Max(make.index(1), h), (make.index(2) - make.index(1)) + constant, make.index(3))
        e, analyzer, ranges = rng.choice(forms), Analyzer(), Ranges()
        extent = nodes.int_const(most - least + 1, "int64")
        analyzer.bind(i, ir.Range.from_min_extent(nodes.int_const(least, "int64"), extent))
        analyzer.bind(j, ir.Range.from_min_extent(nodes.int_const(-3), nodes.int_const(15)))
        ranges.set(i, (least, most))
        ranges.set(j, (-3, 11))
        if ranges.overflows(e) or (simple := analyzer.simplify(e)).same_as(e):
            continue
        changed += 1
        for _ in range(12):
            names = {i: rng.choice([least, most, rng.randint(least, most)]), j: rng.randint(-3, 11)}
            names[h] = rng.choice([-(2**31), 2**31 - 1, 5])
            assert value(simple, {}, names) == value(e, {}, names), f"{e} with {names}: {simple}"


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_analyses_of_indices_are_right(kind: str) -> None:
    """Queries of our passes to TVM's analyzer: forms, bounds, proofs, and coefficients."""
    rng = random.Random(kind)
    i, j, m = (nodes.fresh(name, kind) for name in "ijm")
    make = Expressions(rng, [i, j, m], [m])

    def const(n: int) -> Any:
        return nodes.int_const(n, kind)

    for _ in range(SAMPLES * 10):
        e = make.index(rng.choice([2, 3]))
        analyzer = tvm.sym.Analyzer()
        analyzer.bind(i, ir.Range.from_min_extent(const(0), const(12)))
        analyzer.bind(j, ir.Range.from_min_extent(const(-3), const(9)))
        analyzer.bind(m, ir.Range.from_min_extent(const(1), const(9)))
        simple, bound = analyzer.simplify(e), analyzer.const_int_bound(e)
        limit = const(rng.randint(-20, 200))
        below = analyzer.can_prove(tirx.LT(e, limit))
        parts = list(tvm.sym.detect_linear_equation(e, [i, j]))
        for _ in range(12):
            names = {i: rng.randint(0, 11), j: rng.randint(-3, 5), m: rng.randint(1, 9)}
            try:
                exact = value(e, {}, names)
            except Overflow:
                continue
            about = f"{e} with {names}"
            assert value(simple, {}, names) == exact, f"simplify: {about}: {simple}"
            assert int(bound.min_value) <= exact <= int(bound.max_value), f"const_int_bound: {about}"
            assert not below or exact < int(limit.value), f"can_prove: {about} < {limit}"
            if parts:
                a, b, c = (value(p, {}, names) for p in parts)
                assert a * names[i] + b * names[j] + c == exact, f"detect_linear_equation: {about}: {parts}"
