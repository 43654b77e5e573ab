"""The support page, read back and compared with its data row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest
from pages import support, support_page
from pages.columns import targets
from pages.support_rows import Row
from repository import ROOT

Key = tuple[tuple[str, ...], tuple[str, ...]]
SECTIONS = list(dict.fromkeys(row.name for row in support.rows()))


def key(row: Row) -> Key:
    """Return the types and the scopes of a row."""
    return tuple(row.types.values()), tuple(row.scopes.values())


def codes(text: str) -> list[str]:
    """Return the code spans of a text."""
    return re.findall(r"`([^`]+)`", text)


def inputs(text: str) -> Iterator[tuple[str, str, str]]:
    """Read what stands before the arrow: the types of A and B, and of metadata."""
    if text.startswith("any two of"):
        yield from ((a, b, "int16") for a, b in product(codes(text), repeat=2))
        return
    for one in re.split(r",(?: |$)", text.strip()):
        metadata = re.search(r"with `(\w+)` metadata", one)
        a, *b = codes(one.partition(" with ")[0])
        yield a, (b or [a])[0], metadata[1] if metadata else "int16"


def types(text: str, mine: list[Row]) -> set[tuple[str, ...]]:
    """Read a cell of element types."""
    if "→" in text:
        found = set()
        for line in text.split("<br>"):
            before, _, totals = line.partition("→")
            for (a, b, e), c in product(inputs(before.strip()), codes(totals)):
                found.add((a, b, c, e) if "E" in mine[0].types else (a, b, c))
        return found
    every = dict.fromkeys(next(iter(row.types.values())) for row in mine)
    text, _, into = text.partition(" into ")
    named = set(codes(text)) if "`" in text else set(every)
    if text.startswith("all but"):
        named = set(every) - named
    return {(one, *codes(into)) if into else (one,) * len(mine[0].types) for one in named}


def scopes(text: str) -> set[tuple[str, ...]]:
    """Read a cell of scopes."""
    lines = ([one.partition("&nbsp;")[2].split("/") for one in line.split(", ")] for line in text.split("<br>"))
    return {found for line in lines for found in product(*line)}


def columns(head: list[str]) -> list[str]:
    """Read column titles: targets, whose architecture stands below the kind."""
    return ["".join(codes(title)) for title in head]


def read(name: str) -> dict[Key, dict[str, str]]:
    """Read a section of the page: the text of each row on each target."""
    page = support_page.pages()["reference/support.md"]
    section = page.partition(f"{{ #{support_page.anchor(name)} }}")[2].partition("\n## ")[0]
    head, _, *lines = (
        [part.strip() for part in line.strip("| \n").split(" | ")] for line in section.splitlines() if "|" in line
    )
    mine = [row for row in support.rows() if row.name == name]
    said: dict[Key, dict[str, str]] = {}
    for types_cell, scopes_cell, *cells in lines:
        for one in product(types(types_cell, mine), scopes(scopes_cell)):
            for text, found in zip(columns(head[2:]), cells, strict=True):
                before = said.setdefault(one, {}).setdefault(text, found)
                assert before == found, f"{one} on {text}: {before}, and {found}"
    return said


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_says_what_its_cells_say_and_nothing_else(name: str) -> None:
    mine = [row for row in support.rows() if row.name == name]
    assert read(name) == {key(row): {text: support_page.cell(row, text) for text in targets()} for row in mine}


@pytest.mark.sweep(0.25)
def test_columns_show_the_instructions_of_their_architecture() -> None:
    half = (("float16", "float16", "float32"), ("shared", "shared", "fragment"))
    found = read("gemm")[half]
    assert list(found) == list(targets())
    assert found["cuda:sm_90"] == "`mma.sync`"
    assert found["cuda:sm_90a"] == "`wgmma`"
    assert found["cuda:sm_100a"] == '`mma.sync`<br>`tcgen05="always"`: `tcgen05`'
    assert (found["metal"], found["metal:metal4"], found["rocm:gfx942"]) == ("`simdgroup`", "`tensor_ops`", "`mfma`")
    pipelined = read("pipelined copy")[("float16", "float16"), ("global", "shared")]
    assert '`tma="always"`: `copy.bulk`' in pipelined["cuda:sm_90a"]


#: The rows of the table in the guide to 8-bit floats, and their targets.
GUIDE = {
    "NVIDIA GPUs from `sm_89` on": ("cuda:sm_89", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120"),
    "NVIDIA GPUs before": ("cuda:sm_80", "cuda:sm_86"),
    "AMD `gfx942`": ("rocm:gfx942",),
    "AMD `gfx950`": ("rocm:gfx950",),
    "Apple GPUs": ("metal", "metal:metal4"),
    "CPU": ("cpu",),
}


def test_the_guide_to_8_bit_floats_says_what_the_tables_say() -> None:
    text = (ROOT / "docs" / "fp8.md").read_text(encoding="utf-8").partition("## What targets do")[2]
    first = text[text.index("\n|") + 1 :].partition("\n\n")[0]  # other tables may follow
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in first.splitlines()]
    assert [cells[0] for cells in table[2:]] == list(GUIDE)
    for name, direct, converted in table[2:]:
        for target in (targets()[t] for t in GUIDE[name]):
            for row in (r for r in support.rows() if r.name == "fp8_scaled_matmul" and r.types["A"] == r.types["B"]):
                variant = next(v for v in support.variants(target) if v.name == support.chosen(row, target))
                into = support.computes(row, target)
                if any(atom.computes for atom in variant.legality.atoms):
                    assert (row.types["A"] in codes(direct)) == (into == ()), f"{row} on {target}"
                    assert set(into) <= set(codes(converted)), f"{row} on {target}"
                else:
                    assert direct == "none"
