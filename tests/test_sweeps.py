"""The rule of thinned tests: parts rotate and cover everything; named tests run."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("conftest_of_the_workspace", ROOT / "conftest.py")
rule = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rule)
pytest_plugins = ["pytester"]


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
        rule.pytest_collection_modifyitems(SimpleNamespace(args=arguments, hook=hook, stash={}), items)
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


FILE = """
import pytest

@pytest.fixture(params="ab")
def letter(request):
    return request.param

@pytest.mark.sweep(1)
@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("m", range(3))
def test_products_of_cases(m, n): pass

@pytest.mark.sweep(2)
class TestClass:
    def test_cases_of_a_fixture(self, letter): pass
    def test_alone(self): pass
    @pytest.mark.sweep(0.5)
    def test_of_its_own(self, letter): pass

@pytest.mark.sweep(2)
def test_without_cases(): pass

@pytest.mark.parametrize("n", range(2))
def test_always(n): pass
"""


@pytest.fixture
def collected(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    conftest = (ROOT / "conftest.py").read_text(encoding="utf-8")
    pytester.makeconftest(conftest.replace(f"ROUNDS = {rule.ROUNDS}", "ROUNDS = 2"))
    pytester.makeini("[pytest]\nmarkers = sweep(n)")
    path = pytester.makepyfile(test_file=FILE)

    def collect(part: str, name: str = "") -> list[str]:
        monkeypatch.setenv("SWEEP_TURN", part)
        run = pytester.inline_run(*["-q", "-p", "no:cacheprovider", f"{path}{name}"])
        passed, skipped, failed = run.listoutcomes()
        assert not skipped + failed
        return [report.nodeid.split("::", 1)[1] for report in passed]

    return collect


def test_cases_are_chosen_before_items_are_made(collected: Any) -> None:
    everything = collected("all")
    assert len(everything) == len(set(everything)) == 15 + 2 + 1 + 2 + 1 + 2
    parts = [collected(str(part)) for part in range(4)]
    shares = {"test_products_of_cases": 2, "TestClass::test_cases_of_a_fixture": 4, "test_without_cases": 4}
    for name in everything:
        share = shares.get(name.split("[")[0], 1)
        assert sum(name in part for part in parts) == 4 // share, name


def test_named_cases_are_made_in_every_rotation(collected: Any) -> None:
    for part in ("0", "1"):
        case = "test_products_of_cases[2-3]"
        assert collected(part, f"::{case}") == [case]
        assert collected(part, "::TestClass") == [name for name in collected("all") if "TestClass" in name]


def test_parts_of_the_suite_in_ci_are_the_suite() -> None:
    """Evaluate the parts that ``.ci/run`` chooses, in consecutive rotations."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.findall(r'^ *(part=".*")$', script, re.MULTILINE)
    assert len(found) == script.count("--tile-part") >= 4
    (parts,) = re.findall(r"^parts=\d+$", script, re.MULTILINE)
    for line in found:
        command = f"{parts}; target=x=5; for SWEEP_TURN in {{100..147}}; do {line}; echo $part; done"
        done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=True)
        count = int(done.stdout.split()[0].partition("/")[2])
        assert set(done.stdout.split()) == {f"{k}/{count}" for k in range(1, count + 1)}, line
