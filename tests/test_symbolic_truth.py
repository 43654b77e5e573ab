"""Tracing never compares a tile's extent or corner as a Python number.

Extents, corners, shapes and strides are ints or symbols. Python's truth of a comparison of symbols raises K105 for
values of the language, and for expressions of the IR it is whether both are one object. The rule finds ``in``, ``==``,
``!=`` and truth over these attributes, also through the variables of loops over them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT

TRACING = ("tile-core/src/tile_core/ops", "tile-core/src/tile_core/values", "tile-core/src/tile_core/language")
FILES = [path for folder in TRACING for path in sorted((ROOT / "packages" / folder).rglob("*.py"))]
SYMBOLIC = frozenset({"extents", "mins", "strides"})
#: Operands of functions with these annotations were checked: extents of tiles that ops have accepted are constant.
CHECKED = ("OpCall", "View", "SimtCall")


def is_symbolic(e: ast.expr, names: set[str]) -> bool:
    """Return whether an expression is an attribute, its element, or a variable over it."""
    if isinstance(e, ast.Subscript):
        return is_symbolic(e.value, names)
    return (isinstance(e, ast.Attribute) and e.attr in SYMBOLIC) or (isinstance(e, ast.Name) and e.id in names)


def taken(node: ast.AST) -> set[str]:
    """The variables of loops and comprehensions over the attributes, also of ``enumerate``."""
    found = set()
    for x in ast.walk(node):
        if not isinstance(x, (ast.comprehension, ast.For)):
            continue
        source, target = x.iter, x.target
        if isinstance(source, ast.Call) and ast.unparse(source.func) == "enumerate" and isinstance(target, ast.Tuple):
            source, target = source.args[0], target.elts[1]
        if is_symbolic(source, set()) and isinstance(target, ast.Name):
            found.add(target.id)
    return found


def guarded(node: ast.AST) -> set[str]:
    """Names that the code has compared with ``int`` by ``isinstance``: the comparison stands behind it."""
    calls = (c for c in ast.walk(node) if isinstance(c, ast.Call) and ast.unparse(c.func) == "isinstance")
    return {ast.unparse(c.args[0]) for c in calls}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Functions, but for the methods of ``View``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif not (isinstance(node, ast.ClassDef) and node.name == "View"):
            yield from functions(node)


def truths(tree: ast.AST) -> Iterator[ast.expr]:
    """Comparisons and truths of symbols."""
    for function in functions(tree):
        notes = [ast.unparse(a.annotation) for a in function.args.args if a.annotation is not None]
        if any(note.startswith(CHECKED) for note in notes) or "View.of(" in ast.unparse(function):
            continue
        names, known = taken(function), guarded(function)
        for x in ast.walk(function):
            if isinstance(x, ast.Compare) and not isinstance(x.ops[0], (ast.Is, ast.IsNot)):
                sides = [x.left, *x.comparators]
                if any(is_symbolic(s, names) and ast.unparse(s) not in known for s in sides):
                    yield x
            elif isinstance(x, (ast.If, ast.IfExp, ast.While)) and is_symbolic(x.test, names):
                yield x.test


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_truth_of_symbols_while_tracing(path: Path) -> None:
    found = [f"{path.name}:{e.lineno}: {ast.unparse(e)}" for e in truths(ast.parse(path.read_text("utf-8")))]
    assert found == [], "compare constant_of(x), or take Region.is_empty"


@pytest.mark.parametrize(
    "text",
    [
        "def f(r):\n    return 0 in r.extents",
        "def f(r):\n    return any(0 in x.extents for x in r)",
        "def f(r):\n    return [e for e in r.extents if e != 1]",
        "def f(r):\n    return r.mins[0] == 0",
        "def f(r):\n    if r.extents[0]:\n        pass",
        "def f(r):\n    return [d for d, e in enumerate(r.extents) if e == 1]",
    ],
)
def test_the_rule_finds_each_form(text: str) -> None:
    assert list(truths(ast.parse(text)))
