"""The rule of thinned tests: parts rotate and cover everything; named tests run."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("conftest_of_the_workspace", ROOT / "conftest.py")
rule = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rule)


class Item:
    """A test of a module whose mark is ``sweep(3)``."""

    def __init__(self, name: str, own: int | None = None) -> None:
        self.name, self.own, self.path = name, own, ROOT / "tests" / "test_some.py"
        self.nodeid = f"tests/test_some.py::{name}"

    def iter_markers_with_node(self, name: str) -> Iterator[Any]:
        assert name == "sweep"
        if self.own is not None:
            yield self, SimpleNamespace(args=(self.own,))
        yield "the module", SimpleNamespace(args=(3,))


CASES = 12 * rule.ROUNDS
ITEMS = [
    *(Item(f"test_of_the_module[{n}]") for n in range(CASES)),
    *(Item(f"test_of_its_own[{n}]", 2) for n in range(CASES)),
    Item("test_alone", 6), Item("test_always"),
]  # fmt: skip


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Any:
    def choose(part: str, *arguments: str) -> list[str]:
        monkeypatch.setenv("SWEEP_TURN", part)
        items, left = list(ITEMS), []
        hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
        rule.pytest_collection_modifyitems(SimpleNamespace(args=arguments, hook=hook), items)
        assert part == "all" or len(items) + len(left) == len(ITEMS)
        return [item.name for item in items]

    return choose


def test_rounds_are_parts_of_everything(chosen: Any) -> None:
    everything = chosen("all")
    assert everything == [item.name for item in ITEMS]
    count = 6 * rule.ROUNDS
    parts = [chosen(str(part)) for part in range(100, 100 + count)]
    shares = {"test_of_the_module": 3, "test_of_its_own": 2, "test_alone": 6}
    for name in everything:
        share = shares.get(name.split("[")[0], 0) * rule.ROUNDS
        assert sum(name in part for part in parts) == (count // share if share else count)
    assert all(len(part) - ("test_alone" in part) == 12 // 3 + 12 // 2 + 1 for part in parts)


def test_named_tests_run_in_every_round(chosen: Any) -> None:
    named = f"{ROOT}/tests/test_some.py::test_of_the_module[4]"
    for part in ("0", "1", "2"):
        assert "test_of_the_module[4]" in chosen(part, named)
