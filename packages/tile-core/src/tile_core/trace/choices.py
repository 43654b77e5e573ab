"""Conditional selection between scalars, and ``any`` and ``all``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.errors.naming import naming
from tile_core.trace.conditions import as_condition
from tile_core.trace.logic import and_, or_
from tile_core.values.checks import argument, truth
from tile_core.values.value import Buffer, Region, Scalar, Value, derive, elementwise, promote

Chosen = TypeVar("Chosen")


@elementwise
def if_then_else(condition: Scalar, yes: Chosen, no: Chosen) -> Chosen | Value:
    """Return ``yes`` or ``no``; only the chosen side is evaluated."""
    return _choice("if_then_else", tirx.if_then_else, condition, yes, no)


@elementwise
def Select(condition: Scalar, yes: Chosen, no: Chosen) -> Chosen | Value:
    """Return ``yes`` or ``no``; both sides are evaluated."""
    return _choice("Select", tirx.Select, condition, yes, no)


@naming("where")
def where(condition: Scalar, yes: Chosen, no: Chosen) -> Chosen | Value:
    """Return elements of ``yes`` where ``condition`` holds, else of ``no``, with broadcasting.

    Both sides are computed everywhere, as in NumPy.
    """
    return Select(condition, yes, no)


def _choice(
    name: str, node: Callable[[Expr, Expr, Expr], Expr], condition: Scalar, yes: Chosen, no: Chosen
) -> Chosen | Value:
    value = as_condition(condition)
    if value is None:
        return yes if truth(name, condition) else no
    a, b = promote(yes, no)
    return derive(node(value.expr, a.expr, b.expr), a.dtype, value, a, b)


def any_of(*items: object) -> object:
    """Return whether an element of a buffer, slice or list is true (not zero)."""
    return _combined("any_of", items)


def all_of(*items: object) -> object:
    """Return whether all elements of a buffer, slice or list are true (not zero)."""
    return _combined("all_of", items)


def _combined(name: str, items: tuple[object, ...]) -> object:
    elements = [e for item in items for e in _elements(name, item)]
    if name == "any_of":
        result: Any = False
        for e in elements:
            result = or_(result, functools.partial(_same, e))
        return result
    result = True
    for e in elements:
        result = and_(result, functools.partial(_same, e))
    return result


def _same(x: Expr) -> Expr:
    return x


def _elements(name: str, item: object) -> list[Any]:
    if isinstance(item, (tuple, list)):
        return [e for i in item for e in _elements(name, i)]
    if isinstance(item, Buffer) and not item.is_scalar:
        item = item.whole()
    if not isinstance(item, Region):
        if not isinstance(item, (Value, Buffer)):
            truth(name, item)
        return [item]
    count = 1
    for extent in item.extents:
        if not isinstance(extent, int):
            found, instead = "of runtime size", "write a loop with a T.alloc_var flag"
            raise argument(name, "the slice", found, "a static slice", instead)
        count *= extent
    indices: list[tuple[Any, ...]] = [()]
    for low, extent in zip(item.mins, item.extents, strict=True):
        indices = [(*i, low + d) for i in indices for d in range(extent)]
    return [item.buffer[i] for i in indices]
