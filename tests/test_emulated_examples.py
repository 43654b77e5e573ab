"""Examples pass their checks on emulated devices: they fit every target, or name the type that it lacks."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
from repository import ROOT

import tile_core as tile

EXAMPLES = ROOT / "examples"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "checks" and not p.stem.startswith("metal_"))
TARGETS = ("metal", "metal:metal4", "cuda:sm_80", "cuda:sm_90a", "rocm:gfx942")


@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes_its_checks(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_program = tile.compile

    def emulated(program: Any, target: Any = None, **options: Any) -> Any:
        compiled.append(str(target))
        return compile_program(program, target, **{**options, "runtime": "emulator"})

    monkeypatch.setattr(tile, "compile", emulated)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    try:
        passed = importlib.import_module(name).main(target)
    finally:
        for module in ("checks", *NAMES):
            sys.modules.pop(module, None)
    assert len(passed) >= 3
    assert all(passed)
    assert set(compiled) == {target}
