"""Keep TVM's simplifier away from comparisons of floats, whose rules it applies as if there were no NaN.

It turns ``not (a < b)`` into ``b <= a``, takes ``b <= a`` for granted in the ``else`` of ``if a < b``, and code
generators make ``a != b`` false if one is NaN. ``hide`` replaces the comparisons by opaque calls before the first
simplification; ``reveal`` puts them back after the last one, with "not equal" as the negation of "equal".
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr

_NODES = {"eq": tirx.EQ, "ne": tirx.NE, "lt": tirx.LT, "le": tirx.LE, "gt": tirx.GT, "ge": tirx.GE}
_NAMES = {node.__name__: name for name, node in _NODES.items()}
_PREFIX = "tile.float_"


def hide(body: Any) -> Any:
    """Return the statement with every comparison of floats as a call, and those of bools as ones of integers."""

    def replace(e: Any) -> Any:
        if nodes.dtype_of(e.a) == "bool":
            return type(e)(tirx.Cast("int32", e.a), tirx.Cast("int32", e.b), e.span)
        if not nodes.dtype_of(e.a).startswith(("float", "bfloat")):
            return e
        return ir.Call(_op(_NAMES[type(e).__name__]), [e.a, e.b], ret_ty=e.ty, span=e.span)

    return map_expr(body, replace, tuple(_NODES.values()))


def reveal(body: Any) -> Any:
    """Return the statement with the comparisons that ``hide`` replaced, in lanes where they were vectorised."""

    def restore(e: Any) -> Any:
        name = str(getattr(e.op, "name", ""))
        if not name.startswith(_PREFIX):
            return e
        a, b = e.args
        kind = name[len(_PREFIX) :]
        return tirx.Not(tirx.EQ(a, b)) if kind == "ne" else _NODES[kind](a, b)

    return map_expr(body, restore, ir.Call)


def _op(name: str) -> Any:
    full = _PREFIX + name
    if full not in _registered:
        register = tvm.ir.op.register_op_attr
        register(full, "TCallEffectKind", tirx.CallEffectKind.Pure.value)
        register(full, "TVectorizable", True)
        _registered.add(full)
    return ir.Op.get(full)


_registered: set[str] = set()
