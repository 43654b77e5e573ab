"""Long rows are drawn, and listed in the conformance suite: recomputed, in shared memory and in place."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports.block import block_facts
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.strategies.long_rows import long_rows
from tile_core.testing.tables import TABLES
from tile_core.testing.tables import long_rows as table


def _drawn(count):
    found = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(long_rows())
    def collect(unit):
        found.append(unit)

    collect()
    return found


def _fates(text):
    """Return where the fragments of a program live on a target with few registers."""
    plugins = installed()
    (program,) = load(text).stages
    block = block_facts(lower(program, make_context("cuda:sm_90a", None, plugins=plugins), plugins))
    found = {"recomputed" if f.recomputed else "registers" for f in block.fragments if f.name in ("x", "y")}
    return found | {"shared" for b in block.shared if b.why.startswith("no fragment: it needs")}


@pytest.mark.sweep(0.25)
def test_rows_of_every_fate_are_drawn():
    assert "long-rows" in STRATEGIES
    texts = [unit.text() for unit in _drawn(25)]
    for words in ("A[row + i, j] = T.cast(", "v = v + 2", "T.copy(D[1, 0], t)", "for k in T.serial(", "        P[row"):
        assert any(words in text for text in texts), words
    fates = set()
    for text in texts:
        fates |= _fates(text)
        if len(fates) == 3:
            break
    assert fates == {"recomputed", "registers", "shared"}


def test_rows_of_every_fate_are_in_the_suite():
    assert "long_rows" in TABLES
    fates = [_fates(unit.text()) for unit in table.units()]
    assert sum("recomputed" in x for x in fates) >= 4
    assert any("shared" in x for x in fates)
    assert any(x == {"registers"} for x in fates)
