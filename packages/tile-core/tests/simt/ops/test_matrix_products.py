"""The frame of products on matrix instructions, filled in by a target that multiplies element by element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.errors import InternalError
from tile_core.ir import nodes
from tile_core.layout import Layout, row_major
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Atom
from tile_core.lowering.variant import Reject
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import Lifetime, MatrixInstruction, MatrixOperand, OperandKind
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.ops.products.operand import ProductOperand
from tile_core.simt.ops.products.plan import ProductPlan
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_core.simt.ops.warp_partition import splits

from ..bench import CTX
from .test_threads_gemm import Product

WIDTHS = (16, 32, 64)
MMA = {width: MatrixInstruction(16, 8, 4, width) for width in WIDTHS}
TYPES = ("float32", "float32", "float32")
HALF = ("float32", "float32", "float16")


@dataclass(frozen=True)
class Plan(ProductPlan):
    """``each`` lanes hold a row, ``own`` neighbouring columns of it each."""

    instruction: MatrixInstruction = MMA[32]
    total: str = "float32"

    @property
    def each(self) -> int:
        return self.instruction.threads // 16

    @property
    def own(self) -> int:
        return self.instruction.accumulators

    def held(self, role: int) -> FragmentLayout:
        assert role == 2
        p, s, width = self.problem, self.split, self.instruction.threads
        rows = (
            Digit(s.warps_m, width * s.warps_n, "thread"), Digit(s.atoms_m, s.atoms_n * self.own, "register"),
            Digit(16, self.each, "thread"),
        )  # fmt: skip
        columns = (
            Digit(s.warps_n, width, "thread"), Digit(s.atoms_n, self.own, "register"), Digit(self.each, 1, "thread"),
            Digit(self.own, 1, "register"),
        )  # fmt: skip
        return FragmentLayout((p.m, p.n), (rows, columns), self.threads)

    @classmethod
    def facts(cls, call: Any, problem: Problem) -> tuple[int, ...]:
        return (policy_of(call, problem),)

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> list[Plan] | Reject:
        policy, group = facts
        if problem.k == 13:
            return Reject("no instruction takes a K of 13")
        every = splits(-(-problem.m // 16), -(-problem.n // 8), threads // group, policy)
        return [cls(problem, s, threads, MMA[group]) for s in every]

    def __str__(self) -> str:
        return f"element by element, {self.split}"


class Loops(RegisterProduct[Plan]):
    lane_names = ("lane", "lane_row", "lane_column")

    def lane_coordinates(self, number: Any) -> tuple[Any, Any]:
        return tirx.floordiv(number, self.plan.each), tirx.floormod(number, self.plan.each) * self.plan.own

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        return (("e", self.plan.own),)

    def element(self, i: Any, j: Any, *within: Any) -> tuple[Any, Any, Any]:
        (e,) = within
        register = (i * self.plan.split.atoms_n + j) * self.plan.own + e
        return register, self.rows + i * 16 + self.lane.row, self.columns + j * 8 + self.lane.column + e

    def loop(self, guarded: bool, totals: Any, whole: bool) -> list[Any]:
        k, p = nodes.fresh("k"), self.plan.problem
        a, b = (ProductOperand(**self.operand(role, guarded), dtype="float32", depth=p.k) for role in (0, 1))

        def value(o: ProductOperand, line: Any) -> Any:
            return o.load(o.clamped(line), k)

        def add(r: Any, i: Any, j: Any) -> Any:
            return nodes.store(totals, totals[r] + value(a, i) * value(b, j), [r])

        return [nodes.for_loop(k, p.k, self.each(add))]


class Elements(MatrixVariant):
    name, op, priority, group_name = "core.elements", "gemm", 5, "troop"

    def __init__(self, group: int = 32) -> None:
        self.group = group
        atom = Atom({"M": 16, "N": 8, "K": 4}, frozenset({TYPES, HALF}))
        scopes = {"A": ("shared",), "B": ("shared",), "C": ("shared", "fragment")}
        self.legality = matrix_legality([atom], scopes)

    def refuses(self, call: Any) -> str:
        return "a K of 7 brings bad luck" if Problem.of(call).k == 7 else ""

    def plan(self, call: Any) -> Plan | Reject:
        return Plan.for_call(call, self.group)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> Layout | None:
        return Layout(shape, row_major(shape), note=f"elements of {bits} bits") if shape[-1] % 2 == 0 else None

    def statement(self, plan: Plan, call: Any) -> Any:
        return Loops(plan, call).statement()


VARIANT = Elements()


def check(*args: Any, **options: Any) -> Product:
    product = Product(*args, **{"variant": VARIANT, **options})
    clear = options.get("clear", False)
    found, start = product.run(), product.start
    want = product.product + (0 if clear is True else start)
    if callable(clear):
        assert np.array_equal(found, want) or np.array_equal(found, product.product)
    else:
        np.testing.assert_array_equal(found, want)
    return product


@pytest.mark.parametrize("scopes", ["sss", "ssr"])
@pytest.mark.parametrize("types", [TYPES, HALF])
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "threads"), [(16, 8, 4, 32), (33, 17, 5, 64), (40, 24, 8, 160)])
def test_sizes_scopes_and_types(m: int, n: int, k: int, threads: int, clear: bool, types: Any, scopes: str) -> None:
    check(m, n, k, types, scopes=scopes, threads=threads, clear=clear)


@pytest.mark.parametrize("scopes", ["sss", "ssr"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("m", "n", "threads"), [(16, 8, 64), (33, 17, 128), (40, 24, 200)])
def test_widths(m: int, n: int, threads: int, width: int, scopes: str) -> None:
    check(m, n, 5, TYPES, scopes=scopes, threads=threads, variant=Elements(width))


@pytest.mark.parametrize("turned", [(False, True), (True, False), (True, True)])
def test_turned_operands(turned: Any) -> None:
    check(20, 12, 6, TYPES, turned=turned)


@pytest.mark.parametrize("corner", [(3, 5), (0, 2)])
def test_tiles_in_larger_buffers(corner: Any) -> None:
    check(18, 10, 6, TYPES, scopes="sss", corner=corner, margin=(2, 3))


def test_a_condition_decides_whether_c_is_cleared() -> None:
    for scopes in ("sss", "ssr"):
        for odd in (0, 1):
            check(16, 8, 4, TYPES, scopes=scopes, clear=lambda thread, odd=odd: tirx.EQ(thread * 0 + odd, 1))


@pytest.mark.parametrize("start", [0, 3, 6])
def test_tiles_that_may_reach_beyond_their_buffers(start: int) -> None:
    """The corner is known when the kernel runs: inside, elements are read as they are, else those outside are zero."""
    product = Product(16, 8, 4, TYPES, corner=(0, 4), margin=(0, 4), runtime=start, variant=VARIANT)
    whole = {name: np.nan_to_num(product.full[name]) for name in "AB"}
    a, b = (whole[name][:, start : start + extent] for name, extent in (("A", 4), ("B", 8)))
    full = {name: np.zeros((rows, columns)) for name, rows, columns in (("A", 16, 4), ("B", 4, 8))}
    full["A"][:, : a.shape[1]], full["B"][:, : b.shape[1]] = a, b
    for name in "AB":
        product.bench.machine.memory.arrays[product.args["AB".index(name)].buffer][...] = whole[name]
    np.testing.assert_array_equal(product.run(), full["A"] @ full["B"] + product.start)


class TestVariant:
    @staticmethod
    def call(k: int = 4, **changes: Any) -> Any:
        return replace(Product(16, 8, k, TYPES).call, **changes)

    def test_one_thread_for_itself(self) -> None:
        answer = VARIANT.accepts(self.call(divergent=True), CTX)
        assert answer == Reject("one thread executes it for itself; the instruction needs a troop")

    def test_too_few_threads(self) -> None:
        call = self.call()
        few = SimpleNamespace(count=31, thread=call.block.thread)
        answer = VARIANT.accepts(self.call(block=few), CTX)
        assert answer == Reject("threads=31 is below the limit 32; nearest legal: 32")

    def test_a_reason_of_its_own(self) -> None:
        assert VARIANT.accepts(self.call(7), CTX) == Reject("a K of 7 brings bad luck")

    def test_the_reason_of_its_plan(self) -> None:
        assert VARIANT.accepts(self.call(13), CTX) == Reject("no instruction takes a K of 13")
        assert VARIANT.layouts(self.call(13), CTX) == {}

    def test_what_it_asks_of_operands(self) -> None:
        product = Product(16, 8, 4, TYPES, scopes="ssr", variant=VARIANT)
        assert isinstance(product.wants[2], FragmentLayout)
        assert [str(product.wants[i].note) for i in (0, 1)] == ["elements of 32 bits"] * 2
        product.call.placement.layouts[product.args[0].buffer] = product.wants[0]
        assert 0 not in VARIANT.layouts(product.call, CTX)

    def test_a_descriptor_asks_for_no_fragment(self) -> None:
        product = Product(16, 8, 4, TYPES, scopes="ssr", variant=VARIANT)
        tensor = MatrixOperand(OperandKind.TENSOR_MEMORY, Lifetime.WAITED)
        instruction = MatrixInstruction(16, 8, 4, 32, c=tensor)
        plan = VARIANT.plan(product.call)
        other = Plan(plan.problem, plan.split, plan.threads, instruction)
        assert set(other.wanted(product.call, lambda shape, bits: None)) == set()
        assert set(plan.wanted(product.call, lambda shape, bits: None)) == {2}


def test_the_frame_in_registers_takes_no_other_instruction() -> None:
    product = Product(16, 8, 4, TYPES, variant=VARIANT)
    plan = VARIANT.plan(product.call)
    waited = MatrixOperand(OperandKind.REGISTERS, Lifetime.WAITED)
    for instruction in (
        MatrixInstruction(16, 8, 4, 32, b=MatrixOperand(OperandKind.DESCRIPTOR)),
        MatrixInstruction(16, 8, 4, 32, c=waited),
    ):
        with pytest.raises(InternalError, match="synchronous instructions on registers only"):
            Loops(Plan(plan.problem, plan.split, plan.threads, instruction), product.call)
