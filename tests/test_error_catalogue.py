"""The page of errors: equal to the classes, unique codes, valid cells."""

from __future__ import annotations

import ast
import functools
import re
import string

import error_catalogue
import pytest
from repository import ROOT

from tile_core.errors import InternalError, KernelError, SetupError, TileError, UnsupportedError

FAMILIES = {KernelError: "K", UnsupportedError: "U", SetupError: "S", InternalError: "I"}


def test_the_page_is_what_the_classes_say() -> None:
    assert error_catalogue.check(error_catalogue.page()) == []


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = error_catalogue.page()
    monkeypatch.setattr(error_catalogue, "duplicates", list)
    (problem,) = error_catalogue.check(text + "more\n")
    assert "run python tools/error_catalogue.py" in problem


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a {b}", "a {b}"),
        ("x_y | z\nw", "x\\_y \\| z w"),
        ("<found> of `x`", "\\<found\\> of \\`x\\`"),
    ],
)
def test_text_on_the_page(text: str, shown: str) -> None:
    assert error_catalogue.escaped(text) == shown


CLASSES = [error for module in error_catalogue.modules() for error in error_catalogue.classes(module)]
SOURCES = ROOT / "packages" / "tile-core" / "src" / "tile_core"


@functools.cache
def texts(*patterns: str) -> str:
    """Return all files of some glob patterns as one text."""
    return "\n".join(path.read_text(encoding="utf-8") for p in patterns for path in sorted(ROOT.glob(p)))


@functools.cache
def words_of_tests() -> frozenset[str]:
    """Return the words in all tests."""
    return frozenset(re.findall(r"\w+", texts("packages/*/tests/**/*.py", "tests/**/*.py")))


def fields(template: str) -> set[str]:
    """Return the names of a template's placeholders."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: f"{error.code}-{error.__name__}")
def test_a_class_is_complete_and_has_a_test(error: type[TileError]) -> None:
    family = next(f for f in FAMILIES if issubclass(error, f))
    assert re.fullmatch(rf"{FAMILIES[family]}\d\d\d", error.code)
    assert error.__doc__, "no docstring"
    assert error.template
    assert error.remedy
    assert {error.code, error.__name__} & words_of_tests(), f"no test names {error.code} or {error.__name__}"


def test_whoever_raises_an_error_gives_all_its_facts() -> None:
    problems = []
    by_name: dict[str, list[type[TileError]]] = {}
    for error in CLASSES:
        by_name.setdefault(error.__name__, []).append(error)
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        raised = by_name.keys() & set(re.findall(r"\w+(?=\()", text))
        for node in ast.walk(ast.parse(text)) if raised else ():
            name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            if not isinstance(node, ast.Call) or name not in by_name or ast.unparse(node.func).startswith("typer."):
                continue
            given = {k.arg for k in node.keywords} - {"where"}
            if None in given:  # **facts
                continue
            if not any(fields(e.template) | fields(e.remedy) <= given | e.usual.keys() for e in by_name[name]):
                problems.append(f"{path.name}:{node.lineno}: {name} got {sorted(map(str, given))}")
    assert problems == []


def test_enough_refusals_are_checked_with_code_line_and_text() -> None:
    """Rows of tests/wrong have their line; kernels of tests/trace mark it."""
    rows = texts("packages/tile-core/tests/wrong/kernels.py")
    codes = set(re.findall(r'"([KUS]\d\d\d)"', rows))
    marked = texts("packages/tile-core/tests/trace/test_*.py")
    codes |= {e.code for e in CLASSES if re.search(rf"\b{e.__name__}\b", marked)}
    assert len(codes) >= 60
