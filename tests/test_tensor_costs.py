"""The table of costs in the docs equals the compiler's current texts."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tensor-costs.md"
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if " x " in line and line.startswith("| ")]
NAMES = [line[2:].partition(" | ")[0] for line in LINES]
WRITE = "run python benchmarks/tensor_costs.py --page docs/tensor-costs.md"


@cache
def costs():
    spec = importlib.util.spec_from_file_location("tensor_costs", ROOT / "benchmarks" / "tensor_costs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tensor_costs"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_all_kernels():
    module, page = costs(), PAGE.read_text(encoding="utf-8")
    assert [name for name, _ in module.kernels()] == NAMES, WRITE
    assert page == module.in_page(page, "\n".join([module.table([]), *LINES])), WRITE
    ours = [line for name, line in zip(NAMES, LINES, strict=True) if "256 x 256" in name and "by default" in name]
    assert len(ours) == 2
    assert all(line.endswith(" | tensor unit |") for line in ours)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_line_says_what_the_text_of_now_moves(name):
    module = costs()
    iteration = dict(module.kernels())[name]()
    assert module.table([(name, iteration)]).splitlines()[-1] == LINES[NAMES.index(name)], WRITE
    clocks = iteration.clocks()
    assert iteration.loaded > 0
    assert (iteration.moved == 0) == ("sparse" not in name and "FP" not in name)
    columns = int(name.split(" x ")[-2])
    assert (clocks["shared memory"] <= clocks["tensor unit"]) == (columns >= 128 and "sparse" not in name)
