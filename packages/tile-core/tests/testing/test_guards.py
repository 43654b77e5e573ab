"""The strategy of guarded loops draws bounds, masks and branches, over constant and symbolic sizes."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings

from tile_core.testing.strategies.guards import guards


def _units(count):
    found = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(guards())
    def collected(unit):
        found.append(unit)

    collected()
    return found


@pytest.mark.sweep(0.25)
def test_guarded_loops_of_every_form_are_drawn():
    texts = [unit.text() for unit in _units(1000)]
    for form in (
        r"if c < n:\n +B\[r, c\] =", r"if r < m and c < n:", r"if c < v:", r"if c < L\[r\]:", r"if M\[r, c\] > 0:",
        r"if c < n and M\[r, c\] != 0:", r"else:\n", r"T\.if_then_else\(c < ", r"T\.Select\(", r"if c < \d+:",
        r"if c >= \d and c < \d+:", r"if .*:\n +t = T\.cast", r"if .*:\n +if .*:\n", r"B\[r, c\] = B\[r, c\] \+",
        r"S\[r, c // (4|8|64)\]", r"if A\[r, c\] > 0:", r"A\[r, n \+ c\]", r"not c >= n",
        r"B\[r \+ zero, c\] = .*\n +B\[r, c\] = T\.cast\(1", r"B\[r \+ zero, c\] = .*\n +B\[r, c\] = .*\n +if",
    ):  # fmt: skip
        assert any(re.search(form, text) for text in texts), form
    symbolic = [text for text in texts if "T.dynamic" in text]
    assert len(symbolic) > 40
    assert len(texts) - len(symbolic) > 40
    widths = {int(n) for text in texts for n in re.findall(r"\bn = (\d+)", text)}
    assert {n % 8 == 0 for n in widths} == {True, False}
