"""The texts of some kernels, kept beside the tests: a change of a pass shows what it does to them.

``pytest packages/tile-metal/tests/zoo/test_golden.py --update-golden`` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_metal.lint import lint

from .launch import METAL, METAL4, text_of
from .table import KEPT, ZOO

GOLDEN = Path(__file__).parent / "golden"


def test_no_text_is_left_over():
    assert sorted(p.stem for p in GOLDEN.glob("*.metal")) == sorted(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_text(name, request):
    path = GOLDEN / f"{name}.metal"
    text = text_of(name).text
    if request.config.getoption("update_golden", default=False):
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text.splitlines() == kept.splitlines(), f"{name}: run with --update-golden if this change is wanted"


@pytest.mark.parametrize("target", [METAL, pytest.param(METAL4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [e.name for e in ZOO])
def test_no_finding(name, target):
    """What only Apple's compiler would find is in no text of the zoo, as far as the package's own rules see it."""
    assert lint(text_of(name, target).text) == ()
