"""The table of costs in the docs is that of the texts which the compiler emits now."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tensor-costs.md"


def costs():
    spec = importlib.util.spec_from_file_location("tensor_costs", ROOT / "benchmarks" / "tensor_costs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tensor_costs"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_now():
    module, page = costs(), PAGE.read_text(encoding="utf-8")
    rows = list(module.rows())
    found = module.table(rows)
    assert page == module.in_page(page, found), "run python benchmarks/tensor_costs.py --page docs/tensor-costs.md"
    ours = [turn for name, turn in rows if "256 x 256" in name and "by default" in name]
    assert len(ours) == 2
    assert all(max(turn.clocks(), key=lambda unit: turn.clocks()[unit]) == "tensor unit" for turn in ours)
    for name, turn in rows:
        clocks = turn.clocks()
        assert turn.loaded > 0
        assert (turn.moved == 0) == ("sparse" not in name and "FP" not in name)
        columns = int(name.split(" x ")[-2])
        dense = "sparse" not in name
        assert (clocks["shared memory"] <= clocks["tensor unit"]) == (columns >= 128 and dense), name
