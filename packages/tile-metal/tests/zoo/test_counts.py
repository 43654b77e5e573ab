"""What products cost per threadgroup, beside kernels that were written by hand (``reference/*.metal``).

Both texts run in the emulator, which counts bytes of accesses and what simdgroups execute together. The table is part
of ``docs/metal.md``; ``pytest packages/tile-metal/tests/zoo/test_counts.py --update-golden`` writes it anew.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import pytest
from zoo import programs
from zoo.launch import edited, text_for, wrong
from zoo.table import F16, NT

from tile_metal.lint import lint

from .launch import context, run

REFERENCE = Path(__file__).parent / "reference"
COUNTS = Path(__file__).parents[4] / "docs" / "metal.md"
FP8 = ("float8_e4m3fn", "float8_e4m3fn", "float32")
CASES = {
    "gemm_f16": functools.partial(programs.gemm_case, 128, 128, 128, F16, (64, 64, 32), 2),
    "gemm_fp8": functools.partial(programs.gemm_case, 128, 128, 128, FP8, (64, 64, 32), 2, NT),
}
ROWS = {
    "simdgroup multiplications": lambda s: s.met["simdgroup_multiply_accumulate"],
    "simdgroup loads": lambda s: s.met.get("simdgroup_load", 0),
    "device bytes read": lambda s: s.counters["array_reads"],
    "device bytes written": lambda s: s.counters["array_writes"],
    "threadgroup bytes read": lambda s: s.counters["shared_reads"],
    "threadgroup bytes written": lambda s: s.counters["shared_writes"],
    "barriers": lambda s: s.counters["barriers"] // 128,
}
MOST = 1.05


@functools.cache
def measured(name: str) -> dict[str, tuple[int, int]]:
    """Return the counts of a product per threadgroup: of the text that is emitted, and of the one written by hand."""
    case = CASES[name]()
    own = text_for(case, context())
    source = (REFERENCE / f"{name}.metal").read_text(encoding="utf-8")
    assert lint(source) == ()
    reference = edited(own, source)
    shared = int(re.search(r"smem\[(\d+)\]", source)[1])
    params = tuple(dataclasses.replace(p, align=16) for p in own.facts.params)
    reference = dataclasses.replace(
        reference, facts=dataclasses.replace(own.facts, shared_bytes=shared, shared=(), params=params)
    )
    stats = []
    for text in (own, reference):
        result = run(case, text)
        assert not result.reports, "\n".join(map(str, result.reports))
        assert not wrong(case, text, result)
        stats.append(result.stats)
    blocks = [s.counters["blocks"] for s in stats]
    assert blocks == [4, 4]
    return {row: tuple(count(s) // 4 for s in stats) for row, count in ROWS.items()}


def table() -> str:
    """Return the counts as a table."""
    head = ["per threadgroup", *(f"{n} {who}" for n in CASES for who in ("emitted", "by hand"))]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    lines += [[row, *(f"{n:,}" for name in CASES for n in measured(name)[row])] for row in ROWS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_no_more_than_by_hand(name):
    for row, (own, reference) in measured(name).items():
        assert own <= MOST * reference, f"{row}: {own}, by hand {reference}"


def test_the_table_is_the_one_that_is_told(request):
    told = COUNTS.read_text(encoding="utf-8")
    if request.config.getoption("update_golden", default=False):
        told = re.sub(r"(<!-- counts -->\n).*?(?=<!-- end -->)", lambda m: f"{m[1]}{table()}\n", told, flags=re.DOTALL)
        COUNTS.write_text(told, encoding="utf-8")
    assert table() in told, "run with --update-golden if this change is wanted"
