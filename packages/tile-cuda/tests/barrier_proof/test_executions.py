"""Executions of a translated kernel: one for each combination of values that it reads."""

from __future__ import annotations

import pytest

from tile_core.simt.barrier_proof import check
from tile_core.simt.barrier_proof.translation import Translated

TEXTS = {
    "block": "def program(x, tid, block0, data):\n  yield\n",
    "symbol": "def program(x, tid, n, data):\n  yield\n",
    "few": "def program(x, tid, block0, data):\n  yield\n",
    "memory": "def program(x, tid, block0, data):\n  yield\n  data('lens', 0)\n",
}
EXTENTS = {
    "block": "(643 - block0) // 132",
    "symbol": "n // 32",
    "few": "block0 // 4",
    "memory": "data('lens', 0) - 64 + block0",
}


def kernel(name: str) -> Translated:
    symbols = ("n",) if name == "symbol" else ("block0",)
    return Translated(TEXTS[name], (), symbols, (), (), (), (EXTENTS[name],))


@pytest.mark.parametrize(("name", "count"), [("block", 1), ("symbol", 7), ("few", 3), ("memory", 9)])
def test_equal_values_are_executed_once(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    translated, executed = kernel(name), []

    class Execution(check.KernelExecution):
        def go(self) -> None:
            executed.append(self)
            super().go()

    monkeypatch.setattr(check, "KernelExecution", Execution)
    monkeypatch.setattr(check, "_DIFFERENT", ())
    assert check._found.__wrapped__(translated, 64, (1, 1, 1), (132, 1, 1)) == ""
    assert len(executed) == count
