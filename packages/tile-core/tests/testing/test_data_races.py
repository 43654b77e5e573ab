"""The data-race strategy draws programs of both kinds, and finds missed races."""

from collections import Counter

import hypothesis
import pytest
from hypothesis import Phase, settings

from tile_core.reference.blocks import BlockWatch
from tile_core.testing.fuzz import WrongProgram, fuzz
from tile_core.testing.strategies.data_races import data_races


def test_it_draws_racing_and_other_programs():
    drawn = Counter()

    @hypothesis.seed(3)
    @settings(max_examples=60, database=None, phases=(Phase.generate,), deadline=None)
    @hypothesis.given(data_races())
    def each(unit):
        drawn[bool(unit.reported)] += 1

    each()
    assert min(drawn[True], drawn[False]) >= 10


def test_a_reference_that_misses_races_is_found(monkeypatch):
    monkeypatch.setattr(BlockWatch, "access", lambda self, *args, **how: None)
    with pytest.raises(WrongProgram, match="the reference should report K445, it reports nothing"):
        fuzz(60, 901, "cpu", only="data-races", mutated=0.0)
