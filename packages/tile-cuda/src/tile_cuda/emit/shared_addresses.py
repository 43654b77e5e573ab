"""Addresses in shared memory whose index has a loop-variant and a loop-invariant part.

Indices are signed and are widened before they are scaled, so compilers add and scale the whole index in each iteration,
for each of the many operands of a product. As two byte offsets, the invariant part is computed once, and one addition
is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect


def apart(index: Expr, changing: set[Var]) -> tuple[Any, Any] | None:
    """Split an index into terms with ``changing`` variables and the rest, or return ``None``.

    It is ``None`` if either part is constant.
    """
    kinds: dict[bool, Any] = {}
    for addend in _addends(index):
        kind = any(v in changing for v in collect(addend, tirx.Var))
        kinds[kind] = kinds[kind] + addend if kind in kinds else addend
    if len(kinds) < 2 or isinstance(nodes.as_int(kinds[False]), int):
        return None
    return kinds[True], kinds[False]


def _addends(e: Expr) -> Iterator[Any]:
    if isinstance(e, tirx.Add):
        yield from _addends(e.a)
        yield from _addends(e.b)
    else:
        yield e
