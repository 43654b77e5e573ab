"""XOR swizzles, against the formula and against enumeration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.errors.layout import BadSwizzle
from tile_core.layout import DigitLayout, Ops, Swizzle, prove


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 3))
    return Swizzle(bits, draw(st.integers(0, 3)), draw(st.sampled_from([-1, 1])) * draw(st.integers(bits, 4)))


@settings(max_examples=150, deadline=None)
@given(swizzles(), st.integers(1, 600))
def test_involution_window_and_period(swizzle: Swizzle, size: int) -> None:
    image = [swizzle.apply(i) for i in range(size)]
    assert [swizzle.apply(i) for i in image] == list(range(size))
    assert swizzle.keeps_window(size) == (sorted(image) == list(range(size)))
    assert all(i // swizzle.block == j // swizzle.block for i, j in enumerate(image))
    assert [swizzle.apply(i + swizzle.period) - swizzle.period for i in range(size)] == image
    layout = DigitLayout((size,), [(size, 1, "memory")], swizzles=[swizzle])
    assert prove(layout).bijective == swizzle.keeps_window(size)
    assert layout.span == max(image) + 1


@pytest.mark.parametrize(("swizzle", "mask"), [(Swizzle(3, 4, 3), 7), (Swizzle(2, 4, 3), 3), (Swizzle(1, 4, 3), 1)])
def test_byte_patterns(swizzle: Swizzle, mask: int) -> None:
    """128, 64 and 32 bytes: addr ^= ((addr >> 7) & mask) << 4."""
    for address in range(4096):
        assert swizzle.apply(address) == address ^ (((address >> 7) & mask) << 4)


@settings(max_examples=60, deadline=None)
@given(swizzles(), st.sampled_from([1, 2, 4]))
def test_recast_moves_the_same_bytes(swizzle: Swizzle, ratio: int) -> None:
    finer = swizzle.recast(8 * ratio, 8)
    assert finer is not None
    for i in range(256):
        for j in range(ratio):
            assert finer.apply(i * ratio + j) == swizzle.apply(i) * ratio + j
    assert finer.recast(8, 8 * ratio) == swizzle
    if swizzle.bits:
        assert swizzle.recast(8, 8 << (swizzle.base + 1)) is None
        assert swizzle.recast(8, 24) is None


@pytest.mark.parametrize(("bits", "base", "shift"), [(3, 0, 2), (3, 0, -2), (-1, 0, 0), (1, -1, 1)])
def test_no_bijection(bits: int, base: int, shift: int) -> None:
    with pytest.raises(BadSwizzle) as caught:
        Swizzle(bits, base, shift)
    near = [caught.value.facts[f"near_{n}"] for n in ("bits", "base", "shift")]
    Swizzle(*near)


def test_operands_with_their_own_arithmetic() -> None:
    class Text(Ops):
        def bitand(self, a: object, b: int) -> str:
            return f"and({a},{b})"

        def shift_right(self, a: object, b: int) -> str:
            return f"shr({a},{b})"

        def xor(self, a: object, b: object) -> str:
            return f"xor({a},{b})"

    assert Swizzle(3, 4, 3).apply("x", Text()) == "xor(x,shr(and(x,896),3))"
    assert Swizzle(0, 4, 3).apply("x", Text()) == "x"
    assert str(Swizzle(3, 4, 3)) == "Swizzle(3,4,3)"
