"""The refusals that no other test asserts, and the pictures."""

from __future__ import annotations

from typing import Any

import pytest
from expected_errors import raises_error

from tile_core.errors import layout as errors
from tile_core.errors.base import KernelError
from tile_core.layout import (
    DigitLayout,
    Fragment,
    Layout,
    Swizzle,
    TableLayout,
    draw,
    make_swizzled_layout,
    prove,
    row_major,
    strided,
    to_svg,
)

TABLE = TableLayout((4,), {"memory": [2, 0, 1, 3]})


@pytest.mark.parametrize("shape", [(0,), (4, -1), ("n",), (2.5,), (True,), None, object()])
def test_bad_shapes(shape: Any) -> None:
    with pytest.raises(errors.BadLayoutShape, match=r"K301.*positive compile-time extents"):
        row_major(shape)


@pytest.mark.parametrize(
    ("digits", "reason"),
    [
        ("(4,2):(2,1)", "the extents multiply to 8, expected 12"),
        ("(4,3):(3@bank,1)", "unknown axis 'bank'"),
        ("(4,0):(3,1)", "extent 0 is not positive"),
        ("4x3", "expected '\\(n,…\\):\\(stride@axis,…\\)'"),
        ("(4,3):(1)", "expected"),
        ("(4,3):(-3,1)", "indices as low as .*-9.* \\(give an offset\\)"),
    ],
)
def test_bad_digits(digits: str, reason: str) -> None:
    with pytest.raises(errors.BadDigits, match=rf"K302.*{reason}"):
        DigitLayout((4, 3), digits)


def test_bad_parts() -> None:
    with pytest.raises(errors.BadDigits, match="a swizzle needs the memory axis"):
        DigitLayout((8,), "(8):(1@lane)", swizzles=[Swizzle(1, 0, 1)])
    with pytest.raises(errors.BadDigits, match="unknown axis 'bank'"):
        DigitLayout((8,), "(8):(1)", offset={"bank": 1})
    with pytest.raises(errors.BadDigits, match="tables of lengths"):
        TableLayout((5,), {"memory": [0, 1]})


@pytest.mark.parametrize("coordinate", [(4, 0), (0, -1), (0,), (0, 0, 0)])
def test_bad_coordinates(coordinate: tuple[int, ...]) -> None:
    with raises_error(errors.BadCoordinate, shape=(4, 3)):
        row_major((4, 3)).apply(*coordinate)


def test_bad_replica() -> None:
    with pytest.raises(errors.BadCoordinate, match=r"K309.*of replica 1"):
        row_major((4, 3)).apply(0, 0, replica=1)


def test_strides_that_do_not_fit() -> None:
    with pytest.raises(errors.LayoutMismatch, match=r"K311.*strided: 1 strides"):
        strided((4, 3), (1,))


def test_too_large_to_try() -> None:
    with raises_error(errors.LayoutTooLarge, bound=2):
        prove(TABLE, bound=2)
    open_window = DigitLayout((3 << 20,), f"({3 << 20}):(1)", swizzles=[Swizzle(1, 20, 1)])
    assert not prove(open_window).bijective
    assert prove(open_window).injective


def test_every_class_has_a_code_of_its_own() -> None:
    found = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.LayoutError)]
    codes = [c.code for c in found]
    assert len(set(codes)) == len(codes) == 11
    assert all(code.startswith("K3") and issubclass(c, KernelError) for code, c in zip(codes, found, strict=True))


def test_draw_memory() -> None:
    assert draw(row_major((2, 3))).splitlines() == [
        "(2,3):(3@memory,1@memory)  shape (2, 3)",
        "  | 0 1 2",
        "--+------",
        "0 | 0 1 2",
        "1 | 3 4 5",
    ]


def test_draw_threads() -> None:
    text = draw(Fragment((2, 4), lambda i, j: (i * 2 + j // 2, j % 2)))
    assert text.splitlines()[-2:] == ["0 | 0:0 0:1 1:0 1:1", "1 | 2:0 2:1 3:0 3:1"]
    warps = draw(DigitLayout((2, 2, 2), "(2,2,2):(1@warp,1@lane,1@register)"))
    assert warps.splitlines()[-1] == "1,1 | 1.1:0 1.1:1"
    copies = draw(DigitLayout((2,), "(2):(1@lane)", replica=[(2, 2, "lane")]))
    assert "2 copies, the first is shown" in copies
    cut = draw(row_major((100, 40)), max_rows=2, max_columns=3)
    assert cut.splitlines()[-1] == "(2 of 100 rows, 3 of 40 columns)"
    assert "# 128-byte swizzle" in draw(make_swizzled_layout((8, 64), 16))
    assert draw(row_major(())).splitlines()[-1].endswith("| 0")


def test_svg_is_well_formed() -> None:
    from xml.etree import ElementTree

    for layout in (row_major((3, 5)), Layout((2, 2), TableLayout((2, 2), {"memory": [3, 1, 0, 2]}))):
        root = ElementTree.fromstring(to_svg(layout))
        assert sum(1 for e in root if e.tag.endswith("rect")) == layout.numel
        assert "3" in [e.text for e in root]
    assert to_svg(row_major((300, 2)), max_rows=4).count("<rect") == 8


def test_import_is_light() -> None:
    import subprocess
    import sys

    code = "import sys, tile_core.layout; print([m for m in ('tvm', 'tvm_ffi', 'numpy', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
