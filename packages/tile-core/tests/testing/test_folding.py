"""The fuzzer draws divisors that become 0 in a pass after tracing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.passes import divisions
from tile_core.testing.case import Unit
from tile_core.testing.run import Session, load
from tile_core.testing.strategies.folding import folding

_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)


def _by_zero(e: Any) -> bool:
    divisor = e.b.value if isinstance(e.b, tirx.Broadcast) else e.b
    return isinstance(divisor, tirx.IntImm) and int(divisor.value) == 0


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_divisors_become_zero_after_tracing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, folded, programs = Session(target, "text"), set[str](), set[str]()
    rule = divisions._by_constant

    def seen(e: Any) -> Any:
        if _by_zero(e):
            folded.add(f"{type(e).__name__} {nodes.dtype_of(e)}")
        return rule(e)

    monkeypatch.setattr(divisions, "_by_constant", seen)

    @settings(max_examples=30, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(folding())
    def compile_one(unit: Unit) -> None:
        folded.clear()
        if len(programs) < 3:
            program = load(unit.text())
            assert not any(map(_by_zero, collect(program.func.body, _DIVISIONS)))
            session.compile(program)
            programs.update([unit.name] if folded else [])

    compile_one()
    assert len(programs) == 3, folded
