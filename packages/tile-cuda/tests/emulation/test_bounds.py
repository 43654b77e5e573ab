"""Functions of one argument keep the table of bounds in emulated texts, over all exponents by rotation."""

import os
from collections import Counter

import pytest
from float_sweep import NAMES, mantissas, swept

from tile_core.numerics.levels import LEVELS
from tile_core.testing.run import Session
from tile_core.testing.tables import cases

ROTATION = os.environ.get("SWEEP_TURN", "0")


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_functions_keep_their_bounds(name, level):
    found = swept(name, mantissas(0 if ROTATION == "all" else int(ROTATION) // 7), "cuda:sm_80", "emulator", level)
    assert found.ratio <= 1, found


@pytest.mark.sweep(1)
def test_the_suite_admits_what_fast_functions_flush(monkeypatch):
    """The model's fast functions flush subnormal numbers, and quotients by large divisors are zero."""
    chosen = [
        c for c in cases() if c.id.startswith(("arithmetic/float32-div/", "math/float32-log2/", "math/float32-exp/"))
    ]
    outcomes = []
    for judged in (True, False):
        session = Session("cuda:sm_80", "emulator", options={"numerics": "fast"})
        if not judged:
            monkeypatch.setattr(session, "_admitted", lambda *launch: None)
        session.select(chosen)
        outcomes.append(Counter(session.run(case).kind for case in chosen))
    assert outcomes[0] == {"right": len(chosen)}
    assert outcomes[1]["wrong"] >= 3
