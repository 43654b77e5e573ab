"""Completeness of rules of bulk copies: a violating and a legal copy for each."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import FunctionType

import pytest

from tile_core.lowering.variant import Reject
from tile_cuda.ops import boxes, contiguous, copy_bulk, store_bulk

from . import test_contiguous, test_copy_bulk, test_store_bulk

#: The functions that yield, or return, why a copy is none, with the tests that have their rules.
SOURCES = {
    boxes.of_tensor: (test_copy_bulk, test_store_bulk),
    boxes.of_map: (test_copy_bulk, test_store_bulk),
    boxes.unpaneled: (test_copy_bulk, test_store_bulk),
    copy_bulk.can_copy_bulk: (test_copy_bulk,),
    copy_bulk._reasons: (test_copy_bulk,),
    store_bulk.can_store_bulk: (test_store_bulk,),
    store_bulk._reasons: (test_store_bulk,),
    contiguous._reasons: (test_contiguous,),
}


def patterns(function: FunctionType) -> Iterator[tuple[str, str]]:
    """Yield rejection reasons of a function as regular expressions, with their lines."""
    tree = ast.parse(inspect.getsource(function))
    for node in ast.walk(tree):
        value = node.value if isinstance(node, (ast.Yield, ast.Return)) else None
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Reject":
            value = value.args[0]
        if isinstance(value, (ast.Constant, ast.JoinedStr)):
            yield f"{function.__module__}:{function.__name__}:{node.lineno}", _pattern(value)


def _pattern(text: ast.expr) -> str:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in parts)


@pytest.mark.parametrize("source", SOURCES, ids=lambda f: f"{f.__module__.rpartition('.')[2]}-{f.__name__}")
def test_each_reason_is_one_of_a_table(source):
    answers = [table.answer(**changes) for table in SOURCES[source] for changes, _, _ in table.RULES.values()]
    assert all(isinstance(answer, Reject) for answer in answers)
    rules = list(patterns(source))
    assert rules
    missing = [f"{at}: {rule}" for at, rule in rules if not any(re.search(rule, a.reason) for a in answers)]
    assert not missing, missing
