"""The fuzzer puts statements of programs of all strategies into regions of numerics."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tile_core.testing import strategies
from tile_core.testing.case import Unit

FORMS = {
    "a strict region of a product": r'T\.numerics\("strict"\):\n(?:( +).*\n(?:\1.*\n)*?)?\s+T\.gemm\(',
    "a strict region of a reduction": r'T\.numerics\("strict"\):\n(?:( +).*\n(?:\1.*\n)*?)?\s+T\.reduce_\w+\(',
    "a region around a parallel loop": r'T\.numerics\("\w+"\):\n +for [^\n]+ in T\.Parallel',
    "a region in a parallel loop": r'T\.Parallel\([^\n]*:\n(?: +\w+ =[^\n]*\n)* +with T\.numerics\("\w+"\):',
    "a region in a pipelined loop": r"\n( +)for \w+ in T\.Pipelined.*\n(?:\1 +.*\n)*?\1 +with T\.numerics",
    "a level other than strict": r'T\.numerics\("(standard|fast)"\)',
    "nested regions": r'T\.numerics\("\w+"\):\n +with T\.numerics',
}


@pytest.mark.sweep(0.25)
def test_programs_of_all_strategies_have_regions() -> None:
    found: list[str] = []

    def collect(strategy: str, number: int) -> None:
        @seed(number)
        @settings(
            max_examples=10, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(strategies.programs(strategy))
        def draw(unit: Unit) -> None:
            found.append(unit.text())

        draw()

    for name, chunks in {
        "": 2,
        "tiles": 4,
        "regions": 1,
        "odd-products": 2,
        "reductions": 2,
        "product-loops": 2,
    }.items():
        for number in range(chunks):
            collect(name, number)
    text = [t for t in found if "T.numerics" in t]
    regions = [x for t in text for x in re.findall(r'T\.numerics\("(?:standard|fast)"\):\n( +)(.*)', t)]
    assert regions
    assert not any(" / " in line for _, line in regions)
    assert len(text) > len(found) / 8
    assert [form for form, pattern in FORMS.items() if not any(re.search(pattern, t) for t in text)] == []
