"""Fragments that matrix instructions use, element by element, and layouts on expressions of the IR."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest

from tile_core.layout import (
    DigitLayout,
    Fragment,
    Layout,
    LayoutMap,
    make_swizzled_layout,
    prove,
    row_major,
    strided,
)


def test_accumulator_of_16_by_8() -> None:
    """mma m16n8: c0, c1 in row lane / 4, c2, c3 eight rows below.

    Columns are 2 * (lane % 4) + {0, 1}.
    """
    fragment = Fragment((16, 8), "(2,8,4,2):(2@register,4@lane,1@lane,1@register)")
    assert prove(fragment).bijective
    for lane in range(32):
        for register in range(4):
            i, j = lane // 4 + 8 * (register // 2), 2 * (lane % 4) + register % 2
            assert fragment.apply(i, j) == {"lane": lane, "register": register}
    functions = Fragment((16, 8), lambda i, j: (i % 8 * 4 + j // 2, i // 8 * 2 + j % 2))
    assert all(functions.thread(*c) == fragment.thread(*c) for c in fragment.coordinates())


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("n", [8, 24, 40, 128, 256])
def test_accumulator_of_64_by_n(n: int) -> None:
    """wgmma m64nN: warp w has 16 rows from 16 w on.

    Inside of it the 16 x 8 pattern repeats along N.
    """
    digits = f"(4,2,8,{n // 8},4,2):(1@warp,2@register,4@lane,4@register,1@lane,1@register)"
    fragment = Fragment((64, n), digits)
    assert prove(fragment).bijective
    assert (fragment.threads, fragment.registers) == (128, n // 2)
    for thread in range(128):
        for register in range(n // 2):
            i = thread // 32 * 16 + thread % 32 // 4 + 8 * (register // 2 % 2)
            j = register // 4 * 8 + thread % 4 * 2 + register % 2
            assert (fragment.thread(i, j), fragment.register(i, j)) == (thread, register)


def test_reduced_rows_are_copied_to_four_lanes() -> None:
    """One value per row of the accumulator, copied in the row's four lanes."""
    rows = DigitLayout((16,), "(2,8):(1@register,4@lane)", replica=[(4, 1, "lane")])
    assert prove(rows).bijective
    full = Fragment((16, 8), "(2,8,4,2):(2@register,4@lane,1@lane,1@register)")
    for i in range(16):
        assert {rows.apply(i, replica=r)["lane"] for r in range(4)} == {full.thread(i, j) for j in range(8)}


SYMBOLIC: list[LayoutMap] = [
    row_major((12, 80)),
    strided((12, 80), (96, 1), offset=5),
    make_swizzled_layout((12, 64), 16),
    make_swizzled_layout((12, 80), 32),
    Fragment((16, 24), "(2,8,3,4,2):(2@register,4@lane,4@register,1@lane,1@register)"),
    Layout((12, 20), lambda i, j: i * 20 + (j + i) % 20),
    DigitLayout((4, 3), "(3,4):(1@memory,3@memory)"),
]


OPERATORS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "BitwiseAnd": operator.and_,
    "BitwiseXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}


def value_of(node: Any, known: dict[str, int]) -> int:
    """Evaluate an expression; TVM's simplifier does not fold XOR."""
    if isinstance(node, int):
        return node
    kind = type(node).__name__
    if kind in OPERATORS:
        return int(OPERATORS[kind](value_of(node.a, known), value_of(node.b, known)))
    return int(node) if kind == "IntImm" else known[node.name]


@pytest.mark.parametrize("layout", SYMBOLIC, ids=str)
def test_expressions_of_the_ir(layout: LayoutMap) -> None:
    """The expressions that a layout makes of tirx variables have the values of the layout."""
    from tile_core.compat.tvm import tirx

    found = layout.apply(tirx.Var("i", "int32"), tirx.Var("j", "int32"))
    for i, j in itertools.islice(layout.coordinates(), 0, None, max(1, layout.numel // 60)):
        assert {a: value_of(v, {"i": i, "j": j}) for a, v in found.items()} == layout.apply(i, j)


def test_linear_index_as_an_expression() -> None:
    """``at`` takes the row-major index itself."""
    from tile_core.compat.tvm import tirx

    for layout in SYMBOLIC:
        found = layout.at(tirx.Var("f", "int32"))
        for f in range(0, layout.numel, max(1, layout.numel // 40)):
            assert {a: value_of(v, {"f": f}) for a, v in found.items()} == layout.at(f)
