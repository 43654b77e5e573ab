"""Every example runs on the CPU and passes its checks, which can fail."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pages import programs

pytestmark = pytest.mark.sweep(3)

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("checks",))


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


@pytest.mark.parametrize("name", NAMES)
def test_the_program_of_a_page_runs_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(EXAMPLES)])
    (tmp_path / "copied.py").write_text(programs.standalone(name))
    spec = importlib.util.spec_from_file_location("copied", tmp_path / "copied.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert all(module.main("cpu"))
    monkeypatch.setattr(sys, "argv", ["copied.py", "--help"])
    with pytest.raises(SystemExit):
        module.run(module.main, module.__doc__)


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


def test_kernels_of_triton_are_complete_and_beside_ten_of_tile() -> None:
    """Their text is not run here, but it is Python."""
    text = (Path(__file__).parents[1] / "docs" / "from-triton.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    theirs = [ast.parse(block) for block in blocks if "@triton.jit" in block]
    ours = [block for block in blocks if "@T.prim_func" in block or "@tile.jit" in block]
    assert len(theirs) == len(ours) == 10
    for tree in theirs:
        assert any(isinstance(node, ast.FunctionDef) and len(node.body) > 2 for node in tree.body)
