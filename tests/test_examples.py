"""Every example runs on the CPU and passes its checks, which can fail."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.sweep(3)

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("checks", "metal_selftest", "metal_probes")
)


@pytest.fixture(autouse=True)
def _beside_examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in ("checks", *NAMES):
        sys.modules.pop(name, None)


def test_there_are_examples() -> None:
    assert {"gemm", "flash_attention", "softmax", "rms_norm"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_example_passes_its_checks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    passed = importlib.import_module(name).main("cpu")
    lines = capsys.readouterr().out.splitlines()
    assert len(passed) == len(lines) >= 3
    assert all(passed), "\n".join(line for line in lines if not line.startswith("ok"))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3.1])
def test_a_wrong_element_is_reported(wrong: float, capsys: pytest.CaptureFixture[str]) -> None:
    checks = importlib.import_module("checks")
    good = np.arange(4, dtype="float32")
    bad = good.copy()
    bad[3] = wrong
    assert checks.check("good", good, np.arange(4.0), 1e-6)
    assert not checks.check("bad", bad, np.arange(4.0), 1e-6)
    assert [line[:5] for line in capsys.readouterr().out.splitlines()] == ["ok   ", "WRONG"]


def test_a_result_of_another_shape_is_reported() -> None:
    checks = importlib.import_module("checks")
    assert not checks.check("shape", np.zeros((2, 1)), np.zeros((2, 2)), 1.0)
