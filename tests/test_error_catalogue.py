"""The page of errors: as the classes say, each code once, and every cell a cell."""

from __future__ import annotations

import error_catalogue
import pytest


def test_the_page_is_what_the_classes_say() -> None:
    assert error_catalogue.check(error_catalogue.page()) == []


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = error_catalogue.page()
    monkeypatch.setattr(error_catalogue, "duplicates", list)
    (problem,) = error_catalogue.check(text + "more\n")
    assert "run python tools/error_catalogue.py" in problem


def test_rows_have_four_cells() -> None:
    rows = [line for line in error_catalogue.page().splitlines() if line.startswith("| `") and line[4:6].isdigit()]
    assert len(rows) > 100
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{found!r} of {kernel}", "{found} of {kernel}"),
        ("a {{b}}", "a {b}"),
        ("x_y | z\nw", "x\\_y \\| z w"),
        ("options={{...}}", "options={...}"),
    ],
)
def test_cells(text: str, shown: str) -> None:
    assert error_catalogue.cell(text) == shown
