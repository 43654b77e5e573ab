"""Expressions over the names of a program, which a debugger evaluates.

Only numbers, names, indices, operators, comparisons and a few functions are allowed; nothing else is ever evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.debugging.names import VisibleNames
from tile_core.errors.debugging import BadExpression, NoSuchName
from tile_core.records import dataclass
from tile_runtime.errors.guess import hint

__all__ = ["UserExpression", "parse"]

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: np.logical_not}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "all": np.all, "any": np.any, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "max": np.max, "mean": np.mean, "min": np.min, "sum": np.sum,
}  # fmt: skip
_ALLOWED = f"numbers, names, indices, operators, comparisons, and/or/not, and {', '.join(_FUNCTIONS)}"
_MOST = 200


@dataclass(frozen=True)
class UserExpression:
    """An expression that was checked.

    Attributes
    ----------
    text
        As it was given.
    tree
        Its syntax, of allowed nodes.
    """

    text: str
    tree: ast.expr

    def value(self, names: VisibleNames) -> Array:
        """Return its value.

        Raises
        ------
        NoSuchName, BadExpression
            A name has no value here, or the operation is not possible.
        """
        try:
            with np.errstate(all="ignore"):
                return _value(self.tree, names)
        except (ArithmeticError, IndexError, RecursionError, TypeError, ValueError) as error:
            raise BadExpression(text=self.text, found=str(error), expected="values that fit") from None

    def holds(self, names: VisibleNames) -> bool:
        """Whether it is true, of an array anywhere."""
        return bool(np.any(self.value(names)))


def parse(text: str) -> UserExpression:
    """Parse and check an expression.

    Raises
    ------
    BadExpression
        The text is not an expression, or contains a construct that is not allowed.
    """
    if len(text) > _MOST:
        raise BadExpression(text=f"{text[:40]}...", found=f"{len(text)} characters", expected=f"at most {_MOST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadExpression(text=text, found="it cannot be parsed", expected=f"an expression of {_ALLOWED}") from None
    return UserExpression(text.strip(), tree)


def _check(node: ast.AST, text: str) -> None:
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Constant):
        good = type(node.value) in (int, float, bool)
    elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
        good = type(node.op) in (_BINARY if isinstance(node, ast.BinOp) else _UNARY)
    elif isinstance(node, ast.Compare):
        good = all(type(op) in _COMPARED for op in node.ops)
    elif isinstance(node, ast.Call):
        good = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and len(node.args) == 1
        good, children = good and not node.keywords, list(node.args)
    else:
        good = isinstance(node, (ast.Name, ast.BoolOp, ast.Subscript, ast.Slice, ast.Tuple))
    if not good:
        found = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        raise BadExpression(text=text, found=found, expected=_ALLOWED)
    for child in children:
        if isinstance(child, (ast.expr, ast.slice)):
            _check(child, text)


def _value(node: ast.expr, names: VisibleNames) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        found = names.value(node.id)
        if found is None:
            raise NoSuchName(name=node.id, hint=hint(node.id, list(names), f"the names are {', '.join(names)}"))
        return found
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, names))
    if isinstance(node, ast.BoolOp):
        combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        values = [_value(x, names) for x in node.values]
        result = values[0]
        for x in values[1:]:
            result = combine(result, x)
        return result
    if isinstance(node, ast.Compare):
        sides = [_value(x, names) for x in (node.left, *node.comparators)]
        result = np.True_
        for op, a, b in zip(node.ops, sides, sides[1:], strict=False):
            result = np.logical_and(result, _COMPARED[type(op)](a, b))
        return result
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _FUNCTIONS[node.func.id](_value(node.args[0], names))
    if isinstance(node, ast.Subscript):
        return np.asarray(_value(node.value, names))[_index(node.slice, names)]
    assert isinstance(node, ast.Tuple)
    return tuple(_value(x, names) for x in node.elts)


def _index(node: ast.expr, names: VisibleNames) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(x, names) for x in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if x is None else int(_value(x, names)) for x in (node.lower, node.upper, node.step)))
    value = _value(node, names)
    return value if isinstance(value, np.ndarray) else int(value)
