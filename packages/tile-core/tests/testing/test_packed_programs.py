"""The strategy of 16-bit floats draws operations on pairs, and what must not be one."""

from __future__ import annotations

import re

from hypothesis import Phase, given, settings

from tile_core.testing.strategies.packed import packed


def test_pairs_and_dependent_iterations_are_drawn():
    found = []

    @settings(max_examples=150, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(packed())
    def collect(unit):
        found.append(unit.text())

    collect()
    for form in (
        r'X: T\.Tensor\(\(\d+,\), "float16"\)[\s\S]*Out\[i\] = Y\[i\] \* s \+ Y\[i\]',
        r"bfloat16[\s\S]*s = X\[i\] [+*-] Y\[i\]",
        r"if Y\[i\] > 0:\n\s+Out\[i\] = ",
        r"alloc_fragment[\s\S]*\n\s+x\[i\] = T\.(max|min)\(",
        r"x\[v \+ 1\] = x\[v\] ",
        r"x\[v \+ 4\] = ",
        r"x\[(.*)\] = .*\n\s+x\[\1\] = x\[\1\] \+ Y\[v \+ 1\]",
        r"T\.if_then_else\(i \+ 1 < \d+, X\[i \+ 1\]",
        r"'float8_e4m3fn'",
    ):
        assert any(re.search(form, text) for text in found), form
