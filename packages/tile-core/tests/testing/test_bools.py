"""Bools as values: suite and fuzzer cover every known defect and find it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from tile_core.compat.tvm import ir, tirx
from tile_core.cpu import spill
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.testing import fuzz
from tile_core.testing.case import Unit
from tile_core.testing.run import Session, load
from tile_core.testing.strategies.bools import bools
from tile_core.testing.tables import units

UNITS = [u for u in units() if u.op == "bools" and not u.illegal]
FORMS = {"==", "!=", "chosen", "selected", "used again", "chain", "as a number", "named"}


def _of_bools(e: Any) -> bool:
    return nodes.dtype_of(e) == "bool"


def forms(unit: Unit) -> set[str]:
    """Return which forms a program has, by the nodes that it is traced to."""
    body = load(unit.text()).func.body
    found = {"==" for e in collect(body, tirx.EQ) if _of_bools(e.a)}
    found |= {"!=" for e in collect(body, tirx.NE) if _of_bools(e.a)}
    found |= {"chosen" for e in collect(body, ir.Call) if nodes.operator_name(e) == "if_then_else" and _of_bools(e)}
    found |= {"selected" for e in collect(body, tirx.Select) if _of_bools(e)}
    found |= {"as a number" for e in collect(body, tirx.Cast) if _of_bools(e.value)}
    bound = [s for s in collect(body, tirx.Bind) if _of_bools(s.var)]
    found |= {"named"} if bound else set()
    uses = Counter(v.name for v in collect(body, tirx.Var))
    found |= {"used again" for s in bound if uses[s.var.name] > 1}
    return found | ({"chain"} if len(bound) > 20 else set())


@pytest.mark.sweep(0.25)
def test_the_kit_has_every_form() -> None:
    assert set().union(*map(forms, UNITS)) == FORMS


def drawn(count: int, look: Callable[[Unit], bool]) -> None:
    """Draw programs until ``look`` has seen enough."""
    done = [False]

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(bools())
    def draw(unit: Unit) -> None:
        done[0] = done[0] or look(unit)

    draw()


@pytest.mark.sweep(1)
def test_the_fuzzer_draws_every_form() -> None:
    seen: set[str] = set()

    def look(unit: Unit) -> bool:
        seen.update(forms(unit))
        return seen == FORMS

    drawn(300, look)
    assert seen == FORMS


@pytest.mark.sweep(0.25)
def test_bools_that_stay_names_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name for a vector of bools was an internal error of TVM's analyzer."""
    monkeypatch.setattr(spill, "_holds_bools", lambda value: False)
    session, found = Session(), []
    (unit,) = (u for u in UNITS if u.name == "numbers-67")
    with pytest.raises(fuzz.WrongProgram, match="I000"):
        fuzz.check(session, unit)

    def look(unit: Unit) -> bool:
        try:
            fuzz.check(session, unit)
        except fuzz.WrongProgram as wrong:
            found.append(str(wrong))
        return bool(found)

    drawn(100, look)
    assert "I000" in "".join(found)
