"""Layouts of digits against enumeration."""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.layout import (
    AXES,
    Digit,
    DigitLayout,
    LayoutMap,
    Swizzle,
    TableLayout,
    prove,
    recover,
    row_major,
    strided,
)
from tile_core.layout.proof import difference

FAST = settings(max_examples=60, deadline=None)
EXTENTS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 12])
PHYSICAL = AXES[:5]


def shape_of(draw: Any, size: int) -> list[int]:
    """A random shape of ``size`` elements."""
    shape = []
    while size > 1 and draw(st.booleans()):
        factor = draw(st.sampled_from([f for f in range(1, size + 1) if size % f == 0]))
        shape.append(factor)
        size //= factor
    return [*shape, size]


@st.composite
def any_layouts(draw: Any, axes: tuple[str, ...] = PHYSICAL, swizzles: bool = True) -> DigitLayout:
    """Digits with gaps, overlaps, reversals, offsets, copies, swizzles."""
    extents = draw(st.lists(EXTENTS, max_size=4).filter(lambda e: prod(e) <= 200))
    digits = [Digit(n, draw(st.integers(-2, 40)), draw(st.sampled_from(axes))) for n in extents]
    copies = [Digit(draw(st.integers(1, 3)), draw(st.integers(0, 40)), draw(st.sampled_from(axes)))]
    copies = draw(st.sampled_from([[], [], copies]))
    offset = {a: 2 * sum(d.extent for d in digits if d.axis == a and d.stride < 0) for a in axes}
    chosen = []
    if swizzles and draw(st.booleans()) and any(d.axis == "memory" for d in digits):
        bits = draw(st.integers(0, 3))
        chosen = [Swizzle(bits, draw(st.integers(0, 3)), draw(st.sampled_from([-1, 1])) * draw(st.integers(bits, 4)))]
    return DigitLayout(shape_of(draw, prod(extents)), digits, offset=offset, replica=copies, swizzles=chosen)


@st.composite
def bijections(draw: Any, swizzles: bool = True) -> DigitLayout:
    """Any mixed radix is a bijection, on any axes, unless a swizzle leaves it."""
    extents = draw(st.lists(EXTENTS, max_size=5).filter(lambda e: prod(e) <= 400))
    span = dict.fromkeys(PHYSICAL, 1)
    digits = []
    for extent in extents:
        axis = draw(st.sampled_from(PHYSICAL))
        digits.append(Digit(extent, span[axis], axis))
        span[axis] *= extent
    digits = draw(st.permutations(digits))
    copies = draw(st.integers(0, min(1, len(digits))))
    replica, digits = digits[:copies], digits[copies:]
    chosen = []
    if swizzles and any(d.axis == "memory" for d in (*digits, *replica)):
        for bits in draw(st.lists(st.integers(1, 2), max_size=2)):
            swizzle = Swizzle(
                bits, draw(st.integers(0, 2)), draw(st.sampled_from([-1, 1])) * draw(st.integers(bits, 3))
            )
            if swizzle.keeps_window(span["memory"]):
                chosen.append(swizzle)
    size = prod(d.extent for d in digits)
    return DigitLayout(shape_of(draw, size), digits, replica=replica, swizzles=chosen)


def by_hand(layout: DigitLayout, flat: int, replica: int) -> dict[str, int]:
    """The definition, digit by digit."""
    position = {a: layout.offset.get(a, 0) for a in layout.axes}
    for index, digits in ((flat, layout.digits), (replica, layout.replica)):
        for digit in reversed(digits):
            position[digit.axis] += index % digit.extent * digit.stride
            index //= digit.extent
    for s in layout.swizzles:
        bits = (position["memory"] >> (s.base + max(s.shift, 0))) % 2**s.bits
        position["memory"] ^= bits << (s.base + max(-s.shift, 0))
    return position


def rows(layout: LayoutMap) -> list[tuple[int, ...]]:
    """Every place by ``apply``, copies after each other."""
    return [
        tuple(layout.apply(*c, replica=r)[a] for a in layout.axes)
        for c in layout.coordinates()
        for r in range(layout.replicas)
    ]


def meaning(layout: LayoutMap) -> list[dict[str, int]]:
    """The same with names, without indices of 0."""
    return [{a: v for a, v in zip(layout.axes, row, strict=True) if v} for row in rows(layout)]


@FAST
@given(any_layouts())
def test_apply_is_the_definition(layout: DigitLayout) -> None:
    expected = [by_hand(layout, f, r) for f in range(layout.numel) for r in range(layout.replicas)]
    assert [dict(zip(layout.axes, row, strict=True)) for row in rows(layout)] == expected
    assert [layout.at(f, r) for f in range(layout.numel) for r in range(layout.replicas)] == expected
    assert list(zip(*layout.tables().values(), strict=True)) == rows(layout)
    assert layout.sizes == {a: max(e[a] for e in expected) + 1 for a in layout.axes}


@FAST
@given(any_layouts())
def test_proof_agrees_with_enumeration(layout: DigitLayout) -> None:
    positions = rows(layout)
    proof = prove(layout)
    assert proof.method == "digits"
    assert proof.injective == (len(set(positions)) == len(positions))
    assert proof.bijective == (proof.injective and len(positions) == prod(layout.sizes.values()))
    assert (proof.collision is None) == proof.injective
    if proof.collision is not None:
        (first, r1), (second, r2) = proof.collision.first, proof.collision.second
        assert (first, r1) != (second, r2)
        assert layout.apply(*first, replica=r1) == layout.apply(*second, replica=r2) == dict(proof.collision.position)


@FAST
@given(bijections())
def test_a_mixed_radix_is_a_bijection(layout: DigitLayout) -> None:
    proof = prove(layout)
    assert proof.injective
    assert proof.bijective
    assert sorted(rows(layout)) == list(itertools.product(*(range(layout.size(a)) for a in layout.axes)))


@FAST
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(-30, 30)), max_size=4))
def test_difference_is_exact(terms: list[tuple[int, int]]) -> None:
    ranges = [range(1 - n, n) for n, _ in terms]
    solutions = [e for e in itertools.product(*ranges) if any(e) and not sum(a * s for a, (_, s) in zip(e, terms))]  # noqa: B905
    found = difference(terms)
    assert (found is None) == (not solutions)
    assert found is None or tuple(found) in solutions


def test_difference_of_interleaved_strides() -> None:
    """(2,3):(3,2) is one-to-one although no stride exceeds the reach of smaller ones.

    It visits 0 2 4 3 5 7.
    """
    assert difference([(2, 3), (3, 2)]) is None
    assert difference([(3, 3), (4, 2)]) is not None
    # Far too many elements to try.
    assert prove(strided((3, 1 << 40, 5), (5 << 40, 5, 1))).bijective


def test_search_gives_way_to_enumeration() -> None:
    terms = [Digit(7, s) for s in (1009, 1013, 1019, 1021, 1031)]
    layout = DigitLayout([7] * 5, terms)
    positions = rows(layout)
    with pytest.raises(TimeoutError):
        difference([(d.extent, d.stride) for d in terms], steps=10)
    assert prove(layout).injective == (len(set(positions)) == len(positions))


def test_replicas() -> None:
    layout = DigitLayout((8,), "(8):(4@lane)", replica=[(4, 1, "lane")])
    assert layout.replicas == 4
    assert [layout.apply(3, replica=r)["lane"] for r in range(4)] == [12, 13, 14, 15]
    assert prove(layout).bijective
    assert not prove(DigitLayout((8,), "(8):(4@lane)", replica=[(2, 2, "lane"), (4, 1, "lane")])).injective


def test_digits_of_each_dimension() -> None:
    assert DigitLayout((4, 6), "(24):(1@memory)").dims == ((Digit(4, 6),), (Digit(6, 1),))
    assert DigitLayout((2, 2, 6), "(24):(1@memory)").dims == ((Digit(2, 12),), (Digit(2, 6),), (Digit(6, 1),))
    # Where digits do not end at the dimensions, elements still have their places.
    odd = DigitLayout((4, 3), "(3,4):(1@memory,3@memory)")
    assert odd.dims is None
    assert rows(odd) == [(i // 4 + i % 4 * 3,) for i in range(12)]


@FAST
@given(any_layouts(), st.data())
def test_equality_is_of_maps(layout: DigitLayout, data: st.DataObject) -> None:
    split: list[Digit] = []
    for digit in layout.digits:
        factor = data.draw(st.sampled_from([f for f in range(1, digit.extent + 1) if digit.extent % f == 0]))
        split += [
            Digit(digit.extent // factor, digit.stride * factor, digit.axis),
            Digit(factor, digit.stride, digit.axis),
        ]
    same = DigitLayout(
        layout.shape, split, swizzles=layout.swizzles, replica=layout.replica, offset=layout.offset, note="again"
    )
    assert same == layout
    assert hash(same) == hash(layout)
    assert same.canonical().digits == layout.canonical().digits
    assert rows(same.canonical()) == rows(layout)


@FAST
@given(any_layouts(axes=("memory",), swizzles=False), any_layouts(axes=("memory",), swizzles=False))
def test_different_maps_are_unequal(a: DigitLayout, b: DigitLayout) -> None:
    if a.replicas == b.replicas == 1:
        assert (a == b) == (a.shape == b.shape and rows(a) == rows(b))


@FAST
@given(any_layouts())
def test_recover_finds_the_digits(layout: DigitLayout) -> None:
    found = recover(TableLayout(layout.shape, layout.tables(), layout.replicas))
    if found is not None:
        assert meaning(found) == meaning(layout)
    else:
        assert layout.swizzles or layout.replicas > 1


def test_text() -> None:
    layout = DigitLayout((4, 8), "(4,8):(8,1)")
    assert repr(layout) == str(layout) == "(4,8):(8@memory,1@memory)"
    assert layout == row_major((4, 8))
    assert DigitLayout((2, 8), "(2, 8):(4@reg, 1@lane)") == DigitLayout((2, 8), [(2, 4, "register"), (8, 1, "lane")])
    full = DigitLayout(
        (4,), "(4):(8@memory)", swizzles=[Swizzle(1, 0, 3)], replica=[(2, 4, "memory")], offset={"memory": 3}
    )
    assert str(full) == "(4):(8@memory) ^Swizzle(1,0,3) x2:4@memory +3@memory"
    assert row_major(()).shape == ()
    assert row_major(())() == 0
    assert row_major((3, 5)).numel == 15
