"""The texts of some kernels, kept beside the tests: a change of a pass shows what it does to them.

``pytest packages/tile-cuda/tests/zoo/test_golden.py --update-golden`` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .launch import text_of
from .table import KEPT

GOLDEN = Path(__file__).parent / "golden"


def test_no_text_is_left_over():
    assert sorted(p.stem for p in GOLDEN.glob("*.cu")) == sorted(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_text(name, request):
    path = GOLDEN / f"{name}.cu"
    text = text_of(name).text
    if request.config.getoption("update_golden", default=False):
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text.splitlines() == kept.splitlines(), f"{name}: run with --update-golden if this change is wanted"
