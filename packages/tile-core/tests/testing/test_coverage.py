"""Every public name of T is emitted by a strategy, or excluded with a reason."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import Phase, given, settings

from tile_core.testing import strategies
from tile_core.testing.coverage import UNDRAWN, emitted, names_in
from tile_core.testing.strategies.tiles import tile_programs
from tile_core.vocabulary import NAMES

#: Draws per strategy; index expressions and steps of tiles take longest.
_FEW = {
    "indices": 2,
    "tiles": 5,
    "casts": 40,
    "threads": 25,
    "divisions": 25,
    "reductions": 25,
    "functions": 25,
    "mathematics": 40,
}


#: Draws end when every name was seen; a rare name may need many rounds of them.
_ROUNDS = 80


def drawn(name, seed=0):
    return emitted(_FEW.get(name, 10), [name], seed)[name]


@pytest.mark.sweep(3)
def test_every_name_is_drawn_or_has_a_reason():
    every = Counter()
    for seed in range(_ROUNDS):
        for name in strategies.STRATEGIES:
            every.update(drawn(name, seed))
        if set(NAMES) <= set(every) | set(UNDRAWN):
            break
    assert not sorted(set(NAMES) - set(every) - set(UNDRAWN)), "no strategy emits these names"
    assert not sorted(set(UNDRAWN) & set(every)), "these names are drawn: remove them from UNDRAWN"
    assert not sorted(set(UNDRAWN) - set(NAMES)), "these are no names of T"
    assert all(UNDRAWN.values())


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", strategies.STRATEGIES)
def test_every_strategy_emits_something_of_its_own(name):
    assert sum(drawn(name).values()) > 20


@pytest.mark.sweep(0.25)
def test_expressions_of_tiles_are_drawn():
    forms = {r"t\d+\[\.\.\.\] = ", r"t\d+\[\d+:\d+, :\] = ", r"t\d+ \+= ", r"w\d+ = ", "None", r"T\.where"}
    seen = set()

    @settings(max_examples=200, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(tile_programs())
    def collect(unit):
        seen.update(form for form in forms - seen if re.search(form, unit.text()))

    collect()
    assert seen == forms


def test_what_is_never_drawn_is_missing(monkeypatch):
    """The count is of texts that were drawn, not of what a strategy could draw."""
    monkeypatch.setitem(
        strategies.STRATEGIES, "tiles", (tile_programs().filter(lambda u: "T.gemm(" not in u.text()), 1)
    )
    assert emitted(10, ["tiles"])["tiles"]["gemm"] == 0
    assert names_in("T.copy(a, b)\nx.copy(T.exp(1))\n'T.gemm'") == {"copy": 1, "exp": 1}
