"""Run the conformance kit on the reference interpreter with checked memory."""

import numpy as np
import pytest

from tile_core.debugging.names import VisibleNames
from tile_core.debugging.snapshots import types_of
from tile_core.numerics.levels import STANDARD
from tile_core.reference import execute
from tile_core.reference.nonfinite import FirstBad
from tile_core.testing import tables
from tile_core.testing.admitted import Admitted
from tile_core.testing.case import LANES, Case
from tile_core.testing.data import seed_of
from tile_core.testing.run import argument, differences, load, referenced, with_tables

pytestmark = pytest.mark.sweep(24)

#: Ops whose expected results have an order of additions that the reference does not follow.
ORDERED = ("regions", "long_rows")
UNITS = [u for u in tables.units() if not u.illegal and not u.reported]


def problems(unit, width=32, **how):
    """Execute every launch of a unit and return what is wrong."""
    parts = list(unit.parts)
    program = load(unit.text(parts), unit.op)
    params = [*unit.params, *(p for part in parts for p in unit.parts[part].params)]
    for name, launch in unit.launches.items():
        data = launch.data(np.random.default_rng([0, seed_of(unit.op, unit.name, name)]))
        arrays = {p.name: argument(p, data) for p in params if not p.of}
        tables_too = with_tables(params, arrays)
        given = {p.name: tables_too[p.name] for p in params}
        unwritten = [i for i, p in enumerate(params) if p.out and p.name not in data]
        symbols = {k: v for k, v in data.items() if k in program.symbols}
        execute(
            program, {p.name: given[p.name] for p in params}, symbols=symbols, unwritten=unwritten, width=width, **how
        )
        inputs = {**data, LANES: width, **{p.name: data[p.name] for p in params if p.name in data}}
        admitted = None
        if unit.op in ORDERED:
            admitted = Admitted(lambda seed, d=data: referenced(program, params, d, seed, STANDARD, width))
        for part in parts:
            if not launch.parts or part in launch.parts:
                yield from differences(unit, Case(unit, part, name), inputs, arrays, data, admitted)


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{u.op}-{u.name}")
def test_right(unit):
    assert not list(problems(unit))


#: 100,003 squares that are added one by one in float32 lose more than the tolerance.
SHORT = [u for u in UNITS if (u.op, u.name) != ("long_rows", "norm-float32-1x100003-256")]


@pytest.mark.parametrize("unit", SHORT, ids=lambda u: f"{u.op}-{u.name}")
def test_loops_are_right_too(unit):
    assert not list(problems(unit, loops=True))


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("unit", [u for u in UNITS if u.op == "warps"][::7], ids=lambda u: f"{u.op}-{u.name}")
def test_warps_of_any_width(unit, width):
    assert not list(problems(unit, width))


class Everything(FirstBad):
    """An observer that reads all names at each statement."""

    def __init__(self):
        super().__init__(infinities=True)
        self.types, self.depth = {}, 0

    def start(self, compiled, state=None):
        super().start(compiled, state)
        self.types = types_of(compiled)

    def before(self, state, site):
        self.depth += 1
        self.look(state, site)

    def after(self, state, site):
        self.depth -= 1
        self.look(state, site)

    def look(self, state, site):
        names = VisibleNames(state, site, self.types)
        for name in names:
            assert names.value(name) is not None


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{u.op}-{u.name}")
def test_an_observer_changes_nothing(unit):
    watching = Everything()
    assert not list(problems(unit, observer=watching))
    assert not watching.depth
