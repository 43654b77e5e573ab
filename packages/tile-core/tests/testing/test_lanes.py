"""Strategies of vector loops draw wrapping loads beside guards, and all conversions."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings

from tile_core.testing.data import COMPUTED
from tile_core.testing.strategies.lanes import lanes, vector_casts


def _texts(strategy, count):
    found = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def collect(unit):
        found.append(unit.text())

    collect()
    return found


@pytest.mark.sweep(0.25)
def test_remainders_are_drawn_beside_guards():
    text = "\n".join(_texts(lanes(), 300))
    loads = [line for line in text.splitlines() if line.lstrip().startswith("B")]
    masks = r"C\d\[.*, \(j \+ -?\d+\) (% (2|4|8|16)|& \d+)\]"
    assert sum(bool(re.search(masks + r" \+ T\.if_then_else\(j", line)) for line in loads) > 20
    for form in (
        masks + r" \+ A\[i, j \+ T\.min\(v, 0\)\]",  # the guard is the compiler's
        r"T\.if_then_else\(i > 1, T\.if_then_else\(",
        r"% (3|5|7), .*\(j \+ -?\d+\) % (2|4|8)\]",
        r"T\.cast\(T\.cast\(j \* \d+ \+ -?\d+, '(int8|uint8|int16|uint16)'\), 'int32'\)",
        r"B\d\[i, j \+ T\.min\(v, 0\)\] =",
    ):
        assert any(re.search(form, line) for line in loads), form
    assert "uint64" in text


@pytest.mark.sweep(0.25)
def test_conversions_between_all_types_are_drawn():
    pairs = set()
    for text in _texts(vector_casts(), 400):
        source = re.search(r'A: T\.Tensor\(\(\d+,\), "?(?:T\.)?(\w+)', text)[1]
        pairs |= {(source, kind) for kind in re.findall(r"B_(\w+)\[i\] = ", text)}
    assert {("uint64", "float32"), ("uint64", "float64"), ("float32", "uint64")} <= pairs
    assert len(pairs) > 0.9 * len(COMPUTED) * (len(COMPUTED) - 1)
