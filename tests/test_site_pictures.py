"""The site's pictures equal their layouts."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from pages import pictures, plots
from pages.tables import tables_of
from repository import ROOT

from tile_core.layout import row_major

PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
ASKED = [
    pytest.param(text[: found.start()], found, id=f"{name}-{found['name']}")
    for name, text in PAGES.items()
    for found in pictures.DIRECTIVE.finditer(text)
]
RESULTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(plots.RESULTS.glob("*.md"))}


def figures(text: str, kind: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(f) for f in re.findall(rf'<figure class="{kind}".*?</figure>', text)]


def plain(tag: str) -> str:
    return tag.rpartition("}")[2]


@pytest.mark.parametrize(("before", "asked"), ASKED)
def test_a_picture_is_the_layout_of_its_page(before: str, asked: re.Match[str]) -> None:
    layout = pictures.layout_of(before, asked["name"])
    figure = figures(pictures.draw_pictures(before + asked[0]), "layout")[-1]
    (svg,) = figure
    texts = [e.text or "" for e in svg if plain(e.tag) == "text" and "fill" not in e.attrib]
    rows, columns = (int(asked[n]) if asked[n] else layout.shape[d] for d, n in enumerate(("rows", "columns")))
    expected = []
    for i in range(rows):
        for j in range(columns):
            entry = layout.at(i * layout.shape[1] + j)
            if "memory" in entry:
                expected.append(str(entry["memory"]))
            else:
                thread = entry.get("thread", entry.get("lane"))
                expected.append(f"{thread}:{entry.get('register', 0)}" if "warp" not in entry else texts[len(expected)])
    assert texts == expected
    assert sum(plain(e.tag) == "rect" for e in svg) == rows * columns


def test_pages_ask_for_pictures() -> None:
    assert len(ASKED) >= 4


def test_a_picture_takes_the_last_assignment_above_it() -> None:
    page = "```python\nx = row_major((2, 3))\nx = row_major((4, 8))\n```\n<!-- picture: x, 2 rows -->\n"
    assert pictures.layout_of(page.partition("<!--")[0], "x") == row_major((4, 8))
    (figure,) = figures(pictures.draw_pictures(page), "layout")
    assert sum(plain(e.tag) == "rect" for e in figure.iter()) == 16
    with pytest.raises(LookupError, match="assigns y"):
        pictures.draw_pictures("<!-- picture: y -->")


@pytest.mark.parametrize("name", RESULTS)
def test_a_chart_shows_the_numbers_of_its_table(name: str) -> None:
    drawn = figures(plots.charted(RESULTS[name]), "chart")
    expected = []
    for table in tables_of(RESULTS[name]):
        for bars in (plots.rate_bars(table), *(plots.ratio_bars(table, column) for column in plots.RATIOS)):
            expected += [[(bar.low, bar.high) for bar in bars]] if bars else []
    found = [
        [(float(e.attrib["data-low"]), float(e.attrib["data-high"])) for e in figure.iter() if plain(e.tag) == "rect"]
        for figure in drawn
    ]
    assert found == expected
    assert found


def test_bars_are_read_from_tables() -> None:
    text = "| kernel | rate | |\n| - | - | - |\n| x | 10 TB/s | best of ours |\n| y | 9 TB/s | |\n"
    (table,) = tables_of(text)
    assert [(bar.label, bar.low, bar.ours) for bar in plots.rate_bars(table)] == [("x", 10, True)]
    text = "| op | beside | one thread |\n| - | - | - |\n| a | NumPy | 0.65 to 1.5 |\n| b | NumPy | |\n"
    (table,) = tables_of(text)
    assert [(bar.label, bar.low, bar.high) for bar in plots.ratio_bars(table, "one thread")] == [
        ("a, NumPy", 0.65, 1.5)
    ]
    assert plots.charted(text).count("<figure") == 1


def test_the_text_of_results_stays_as_it_is() -> None:
    for text in RESULTS.values():
        kept = [line for line in plots.charted(text).splitlines() if line and not line.startswith("<figure")]
        assert kept == [line for line in text.splitlines() if line]
