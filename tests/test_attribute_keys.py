"""Code names attributes of the IR by their declarations, never by text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from repository import ROOT

SOURCES = sorted(p for p in ROOT.glob("packages/*/src/**/*.py"))
MAPS = ("attrs", "annotations")
READERS, LOOKUPS = ("annotation", "attribute", "entry"), ("get", "setdefault", "pop")
WRITERS = (
    "tile_call",
    "with_attributes",
    "for_loop",
    "replace_for",
    "AllocBuffer",
    "Call",
    "emit",
    "OpCall",
    "SimtCall",
)


def bypasses(text: str) -> list[str]:
    """Return the expressions that name an attribute by text."""
    tree = ast.parse(text)
    texts = {
        t.id
        for s in tree.body
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        for t in s.targets
        if isinstance(t, ast.Name)
    }

    def is_text(e: ast.expr | None) -> bool:
        constant = isinstance(e, ast.Constant) and isinstance(e.value, str)
        return constant or isinstance(e, ast.JoinedStr) or (isinstance(e, ast.Name) and e.id in texts)

    return [ast.unparse(e) for e in ast.walk(tree) for key in _keys(e) if is_text(key)]


def _keys(e: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the keys of attributes that an expression reads or writes."""
    if isinstance(e, ast.Subscript) and _is_map(e.value):
        yield e.slice
    elif isinstance(e, ast.Compare):
        if _is_map(e.comparators[0]) and isinstance(e.ops[0], (ast.In, ast.NotIn)):
            yield e.left
        if _name(e.left) == "attr_key" or _name(e.comparators[0]) == "attr_key":
            yield from (e.left, *getattr(e.comparators[0], "elts", e.comparators))
    elif isinstance(e, ast.Call):
        name = _name(e.func)
        if name in READERS and len(e.args) > 1:
            yield e.args[1]
        elif name in LOOKUPS and isinstance(e.func, ast.Attribute) and _is_map(e.func.value) and e.args:
            yield e.args[0]
        elif name == "AttrStmt":
            yield e.args[1]
        elif name == "mark" and e.args:
            yield e.args[0]
        elif name in WRITERS:
            given = [*e.args, *(k.value for k in e.keywords if k.arg in MAPS)]
            yield from (key for a in given if isinstance(a, ast.Dict) for key in a.keys)


def _is_map(e: ast.expr) -> bool:
    return _name(e) in MAPS


def _name(e: ast.expr) -> str:
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""


def test_no_source_names_an_attribute_by_text() -> None:
    wanted = re.compile(r"attr|annotation|tile_call|\.Call\(|\bmark\(|\bemit\(|for_loop|\bentry\(")
    found = [
        f"{path.relative_to(ROOT)}: {expression}"
        for path in SOURCES
        if wanted.search(text := path.read_text(encoding="utf-8"))
        for expression in bypasses(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "call.attrs['kind']",
        "x = s.value.attrs[f'transpose_{r}']",
        "call.attrs.get('round', 0)",
        "attrs.get('round')",
        "'round' in call.attrs",
        "'round' not in loop.annotations",
        "s.attr_key == 'tile.only'",
        "s.attr_key in (STEP, 'tile.only')",
        "annotation(s, 'tile.unroll_factor')",
        "structural.attribute(address, 'proxy')",
        "structural.entry(s.annotations, 'tile.shape')",
        "nodes.tile_call('copy', [], {'hints': {}})",
        "with_attributes(s, {LANES: 1, 'lanes': 2})",
        "nodes.for_loop(i, 4, body, annotations={'tile.vector': 1})",
        "tirx.AllocBuffer(b, {'tile.align': 8}, span)",
        "tirx.AttrStmt(node, 'tile.step', zero, body)",
        "nodes.mark('tile.step', 0, body)",
        "operands.emit('atomic', [a], [a], {'order': 'relaxed'})",
        "KEY = 'own.key'\ndef f(call):\n    return call.attrs[KEY]",
    ],
)
def test_a_key_by_text_is_found(code: str) -> None:
    assert len(bypasses(code)) == 1


@pytest.mark.parametrize("code", ["call.attrs[KIND]", "KIND in call.attrs", "{'kind': 1}['kind']", "emit('copy', [a])"])
def test_other_code_is_not(code: str) -> None:
    assert bypasses(code) == []
