"""The pages of names and of support agree with the dispatcher.

The commit determines which cells of the table are compared with the dispatcher's choice, which takes the first passes
only, and which of them are compiled to the end.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from pathlib import Path

import pytest
from pages import names, support, support_page
from pages.columns import accepts, targets
from pages.support_rows import Row

import tile_core as tile
from tile_core.compiler import lower
from tile_core.errors import UnsupportedError
from tile_core.lowering.dispatch import Selection
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.target import Target

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROWS = {str(row): row for row in support.rows()}
EVERYWHERE = [n for n in names.names() if n.is_common and n.example is not None]


#: How the names of instructions, from which ``explain`` reports, spell element types.
SPELLED = {
    "float16": ("f16",), "bfloat16": ("bf16",), "float32": ("f32",), "tfloat32": ("tf32", "xf32"), "float64": ("f64",),
    "int8": ("s8", "i8"), "uint8": ("u8",), "float4_e2m1fn": ("e2m1",),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz"), ("e4m3", "fp8")),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz"), ("e5m2", "bf8")),
}  # fmt: skip


def multiplied(selection: Selection) -> tuple[str, str]:
    """Return A's and B's types in an instruction's name, after the accumulator's."""
    name = selection.accepted.note.split(",")[0]
    _, a, *others = re.findall(r"(?<=_)(?:(?:[btx]?f|[siu])\d+|fp8|e4m3|e5m2|e2m1)(?=_|$)", name)
    return a, (others or [a])[0]


def found(row: Row, target: Target) -> set[str]:
    """Compile a row's program; return its op's variants, empty if rejected."""
    program = support.fitted(row, target).program()
    try:
        plan = lower(program, make_context(target, None, plugins=installed()), installed())
        if target.backend == "cpu":
            tile.compile(program, target)  # what remains is done by the builder
    except UnsupportedError:
        return set()
    return {c.selection.variant.name for c in plan.choices if c.selection.variant.op == row.op}


def compared(name: str) -> list[str]:
    """Return the first target of each column, and one more: which one differs between rows."""
    one = list(targets())[zlib.crc32(name.encode()) % len(targets())]
    return list(dict.fromkeys([*support.columns(), one]))


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", ROWS)
def test_every_cell_is_what_the_dispatcher_does(name: str) -> None:
    wrong, row = [], ROWS[name]
    for text in compared(name):
        program = support.fitted(row, targets()[text]).program()
        says, does = support.chosen(row, targets()[text]), support.dispatched(program, row.op, targets()[text])
        if {s.variant.name for s in does} != ({says} if says else set()):
            wrong.append(f"{row} on {text}: the page says {says or 'refused'}, the dispatcher {does or 'refuses'}")
        wrong += [f"{row} on {text}: {reason}" for s in does if (reason := converted(s, row, targets()[text]))]
    assert wrong == []


def converted(selection: Selection, row: Row, target: Target) -> str:
    """Return the difference between an instruction's types and the page's."""
    says = support.computes(row, target)
    if not any(atom.computes for atom in selection.variant.legality.atoms):
        return f"the page says that {selection.variant.name} computes in {says}" if says else ""
    a, b = says or (row.types["A"], row.types["B"])
    does = multiplied(selection)
    right = does[0] in SPELLED[a] and does[1] in SPELLED[b]
    return "" if right else f"the page says {a} times {b}, the instruction has {does}"


@pytest.mark.sweep(100)
@pytest.mark.parametrize("name", ROWS)
def test_a_row_compiles_where_the_page_says(name: str) -> None:
    for text in compared(name):
        says = support.chosen(ROWS[name], targets()[text])
        assert found(ROWS[name], targets()[text]) == ({says} if says else set()), text


def test_wrong_types_of_an_instruction_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a cell with the types of a product."""
    row = next(row for row in ROWS.values() if row.name == "gemm" and row.types["A"] == "float8_e4m3fn")
    row = dataclasses.replace(row, types={**row.types, "C": "float32"})
    text, target = next((text, t) for text, t in targets().items() if support.computes(row, t))
    (does,) = support.dispatched(row.program(), row.op, target)
    assert converted(does, row, target) == "", text
    monkeypatch.setattr(support, "computes", lambda row, target: ())
    assert "the page says float8_e4m3fn times float8_e4m3fn" in converted(does, row, target)


def test_a_wrong_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that allows more than its code has a cell that is rejected."""
    row = next(row for row in ROWS.values() if row.name == "gemm" and row.scopes["A"] == "global")
    target = targets()["cpu"]
    best = next(variant for variant in support.variants(target) if variant.name == "cpu.gemm.packed")
    monkeypatch.setattr(type(best), "legality", type(best.legality)())
    assert found(row, target) != {support.chosen(row, target)}


@pytest.mark.parametrize("text", targets())
def test_rows_differ_and_each_target_has_a_column(text: str) -> None:
    assert len(ROWS) == len(support.rows())
    assert sum(text in mine for mine in support.columns().values()) == 1


def test_the_page_has_every_row() -> None:
    page = support_page.pages()["reference/support.md"]
    for row in ROWS.values():
        assert f"{{ #{support_page.anchor(row.name)} }}" in page
        assert all(f"`{t}`" in page or "all" in page for t in row.types.values())


@pytest.mark.sweep(40)
@pytest.mark.parametrize("name", EVERYWHERE, ids=lambda name: name.text)
def test_a_name_is_accepted_where_its_page_says(name: names.Name, tmp_path: Path) -> None:
    program = names.program_of(name.example, tmp_path)
    assert program is None or {text: accepts(program, targets()[text]) for text in support.columns()} == dict.fromkeys(
        support.columns(), ""
    )


def test_every_name_has_an_example_and_a_meaning() -> None:
    assert names.problems() == []


def test_names_that_some_targets_lack_are_lacking_somewhere() -> None:
    assert [n.text for n in names.names() if n.text[2:] in names.OPTIONAL and n.targets == "all"] == []
