"""The site's pictures equal their layouts."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import speed_chart
from pages import pictures, plots
from pages.configurations import decoded, described, write_out
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
        expected += [[(f"{bar.low:g}", f"{bar.high:g}") for bar in bars] for _, bars, _ in plots.charts_of(table)]
    found = [
        [(e.attrib["data-low"], e.attrib["data-high"]) for e in figure.iter() if plain(e.tag) == "rect"]
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
    text = "## Two\n\n| e4m3 | ms | |\n| - | - | - |\n| `torch` by rows | 2.0 | 1.000 |\n| ours | 4.0 | 0.500 |\n"
    (table,) = tables_of(text)
    assert [(bar.label, bar.low, bar.ours) for bar in plots.timed_bars(table)] == [
        ("torch by rows", 1, False), ("ours", 0.5, True),
    ]  # fmt: skip
    assert plots.ratio_bars(table, "") == []
    text = (
        "| p | sizes | ms | rate | library | its ms | |\n"
        + "| - " * 7
        + "|\n| a | 8 | 2 | 6 TB/s | cuDNN | 1 | 0.5 |\n"
    )
    (table,) = tables_of(text)
    assert [(bar.label, bar.text, bar.high) for bar in plots.paired_bars(table)] == [
        ("a, 8", "tile 6 TB/s, 0.5", 0.5), ("a, 8", "cuDNN 12 TB/s", 1),
    ]  # fmt: skip


def test_the_chart_of_readme_is_that_of_the_results() -> None:
    assert speed_chart.CHART.read_text(encoding="utf-8") == speed_chart.svg()
    bars = [*speed_chart.product_bars(), *speed_chart.day_bars()]
    assert len(ElementTree.fromstring(speed_chart.svg()).findall(".//{*}rect")) == len(bars) + 1
    days = [t for name in speed_chart.DAYS for t in tables_of(RESULTS[name]) if "library" in t.columns]
    assert len(days) == len(speed_chart.DAYS)
    programs = {program for day in days for program in day.column("program")}
    assert sum(bar.ours for bar in speed_chart.day_bars()) == len(programs)
    ratios = {float(ratio) for day in days for ratio in day.column("")}
    assert {bar.high for bar in speed_chart.day_bars() if bar.ours} <= ratios


def test_the_text_of_results_stays_as_it_is() -> None:
    for text in RESULTS.values():
        kept = [line for line in plots.charted(text).splitlines() if line and not line.startswith("<figure")]
        assert kept == [line for line in text.splitlines() if line]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "gemm_4096_float16_float32_256x128x64_t256_s3_p8",
            "gemm, 4096, float16 to float32, tile 256 x 128 x 64, 256 threads, 3 stages, panels of 8",
        ),
        ("8x8192x8192_16x64x64_t128_s8", "8 x 8192 x 8192, tile 16 x 64 x 64, 128 threads, 8 stages"),
        (
            "int8_int32_128x256x128_t256_s5_p0_nt_et",
            "int8 to int32, tile 128 x 256 x 128, 256 threads, 5 stages, B transposed, metadata transposed",
        ),
        (
            "float8_e4m3fn_bfloat16_128x256x128_t256_s4_p0_default",
            "float8_e4m3fn to bfloat16, tile 128 x 256 x 128, 256 threads, 4 stages, default options",
        ),
        ("attention", "attention"),
        ("torch_matmul", "torch_matmul"),
    ],
)
def test_names_of_configurations_are_written_out(name: str, words: str) -> None:
    assert decoded(name) == words
    assert write_out(f"| sparse {name} | 3 |\n{name}\n") == f"| sparse {words} | 3 |\n{name}\n"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            ("linear", "64 x 28672 x 4096", "64x128x64x128x4xbfloat16x2"),
            ("linear layer", "64 x 28672 x 4096", "64 x 128 x 64, 128 threads, 4 stages, split-K 2"),
        ),
        (
            ("paged_decode", "16 x 32 x 8 x 128 x 64 x 128 x 2048", "2x128"),
            ("paged decode", "16 sequences of 8,192, 32 heads, 8 of keys", "2 parts, 128 threads"),
        ),
        (
            ("prefill", "1 x 32 x 8 x 16384 x 128", "128x64x256"),
            ("causal attention", "16,384 positions, 32 heads, 8 of keys, d = 128", "128 x 64, 256 threads"),
        ),
        (
            ("window", "2 x 32 x 8 x 4096 x 128", "128x64x256"),
            ("window of 1024", "2 x 4,096 positions, 32 heads, 8 of keys, d = 128", "128 x 64, 256 threads"),
        ),
        (("another", "8 x 8", "16x16"), ("another", "8 x 8", "16x16")),
        (("linear", "many", "16x16"), ("linear", "many", "16x16")),
    ],
)
def test_arguments_of_programs_are_written_out(row: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert described(*row) == words
    page = "\n".join(["| program | sizes | tiles | ms |", "| - | - | - | - |", f"| {' | '.join(row)} | 1 |", ""])
    assert f"| {' | '.join(words)} | 1 |" in write_out(page)


def test_every_program_of_the_results_is_described() -> None:
    days = [t for name in speed_chart.DAYS for t in tables_of(RESULTS[name]) if "library" in t.columns]
    assert not [row for day in days for row in day.rows if described(*row[:3])[0] == row[0] != "softmax"]


def test_no_coded_name_is_left_in_tables() -> None:
    rows = [line for text in plots.pages().values() for line in text.splitlines() if line.startswith("|")]
    assert not [row for row in rows if re.search(r"\d+x\d+\w*_t\d+_s\d+", row)]
