"""Every op with sizes and corners that calls decide: the kit's kernels with symbols instead of constants."""

from __future__ import annotations

import os
import random
import zlib
from collections import defaultdict

import pytest

from tile_core.testing.case import Unit
from tile_core.testing.run import Session
from tile_core.testing.symbolic import CORNERS, EXTENTS, twin
from tile_core.testing.tables import units

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942")
#: Ops whose kernels have no tensor of constant size, or are whole functions.
WITHOUT = frozenset({"kernels", "out_idx", "launches"})


def by_op() -> dict[str, list[Unit]]:
    """The legal units of each op."""
    found: dict[str, list[Unit]] = defaultdict(list)
    for unit in units():
        if not unit.illegal:
            found[unit.op].append(unit)
    return dict(found)


def drawn(number: int) -> tuple[str, Unit]:
    """A target and a twin, of each op as often as of any other: other ones in each turn of the sweeps."""
    rng = random.Random(zlib.crc32(f"{os.environ['SWEEP_TURN']} {number}".encode()))
    every = by_op()
    while True:
        unit = rng.choice(every[rng.choice(sorted(every))])
        found = twin(unit, rng.choice(EXTENTS), rng.choice(sorted(CORNERS)))
        if found is not None:
            return rng.choice(TARGETS), found


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", range(200))
def test_kernels_with_symbols_are_right_or_refused(number: int) -> None:
    target, unit = drawn(number)
    session = Session(target, None if target == "cpu" else "emulator", seed=number)
    cases = unit.cases()
    session.select(cases)
    wrong = [outcome.detail for case in cases if (outcome := session.run(case)).kind == "wrong"]
    assert not wrong, f"on {target}:\n{wrong[0]}"


def test_every_op_has_kernels_with_symbols() -> None:
    for op, found in by_op().items():
        twins = (twin(unit, "mixed", "read") for unit in found)
        texts = (t.text() for t in twins if t is not None)
        assert op in WITHOUT or any('"int64")' in text and "zeros_[0]" in text for text in texts), op
