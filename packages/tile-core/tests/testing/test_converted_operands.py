"""The strategy of converted operands draws all storages, values, places and trip counts."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings

from tile_core.testing.strategies.converted_operands import converted_operands
from tile_core.testing.tables import TABLES
from tile_core.testing.tables import converted_operands as table

FORMS = {
    "int4": r"q = .*int4'?\"?\)", "uint4": r"q = .*uint4", "float4": r"q = .*float4_e2m1fn", "int8": r"q = .*\"int8",
    "fp8": r"q = .*float8_e4m3fn", "bytes": r"% 2\) \* 4\) & 15\)", "signed": r"15 \^ 8\)", "words": r"\(j % 8\) \* 4",
    "long words": r"\(j % 16\) \* 4", "high bits": r"\* 4 \+ 40", "conditions": r"T\.if_then_else\(o > 1",
    "zeros": r" - T\.cast\(Z\[", "mask": r"T\.if_then_else\(i != 1", "first": r"T\.gemm\(w, a", "total": r"c\[i, j\] \+= p", "second": r"T\.gemm\(a, w",
    "held": r"w = T\.alloc_fragment", "no iteration": r"T\.Pipelined\(0", "one": r"T\.Pipelined\(1", "more": r"T\.Pipelined\(5",
    "direct": r"cast\(W\[bx \* \d+ \+ i, o \* \d+ \+ j\]", "direct words": r"W\[bx \* \d+ \+ i, \(o \* \d+ \+ j\) // ",
    "packed": r"with_packed_weights", "columns": r"W\[o \* \d+ \+ j, bx",
}  # fmt: skip


@pytest.mark.sweep(4)
def test_all_forms_are_drawn():
    found: list[str] = []

    @settings(max_examples=300, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(converted_operands())
    def collect(unit):
        found.append(unit.text())

    collect()
    text = "\n".join(found)
    assert [name for name, form in FORMS.items() if not re.search(form, text)] == []


def test_all_forms_are_in_the_suite():
    assert "converted_operands" in TABLES
    units = table.units()
    names = " ".join(unit.name for unit in units)
    assert [x for x in (*table.SOURCES, *table.VALUES) if x.replace(" ", "-") not in names] == []
    assert {
        int(unit.name.removesuffix("-packed").removesuffix("-direct").removesuffix("-total").rsplit("-", 1)[1])
        for unit in units
    } >= {
        0,
        1,
        2,
        3,
        5,
    }
    assert sum(unit.name.endswith("-total") for unit in units) >= 3
    assert sum(unit.name.endswith("-direct") for unit in units) >= 7
