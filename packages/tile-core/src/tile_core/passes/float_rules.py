"""Keep TVM's simplifier away from floats: its rules are those of the real numbers.

It rewrites ``(x + c) - c`` to ``x`` and ``x - x`` and ``0 * x`` to 0, ``not (a < b)`` to ``b <= a``, and assumes
``b <= a`` in the ``else`` of ``if a < b``; rounding, NaN, infinities and signed zeros make each of them
wrong. Code generators make ``a != b`` false if one side is NaN, and cannot compare bools. ``hide`` replaces the
operations by opaque calls before the first simplification; ``reveal`` puts them back after the last one, with "not
equal" as the negation of "equal".
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr

_COMPARISONS = {"eq": tirx.EQ, "ne": tirx.NE, "lt": tirx.LT, "le": tirx.LE, "gt": tirx.GT, "ge": tirx.GE}
_OPERATIONS = {**_COMPARISONS, "add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "div": tirx.Div}
_NAMES = {node.__name__: name for name, node in _OPERATIONS.items()}

PREFIX = nodes.FLOAT_PREFIX


def hide(body: Stmt) -> Stmt:
    """Return the statement with float operations as calls, and bool comparisons on integers."""

    def replace(e: Expr) -> Expr:
        dtype = nodes.dtype_of(e.a)
        if dtype == "bool":
            return type(e)(tirx.Cast("int32", e.a), tirx.Cast("int32", e.b), e.span)
        if not dtype.startswith(("float", "bfloat")):
            return e
        return ir.Call(
            nodes.register_scalar_op(PREFIX + _NAMES[type(e).__name__]), [e.a, e.b], ret_ty=e.ty, span=e.span
        )

    return map_expr(body, replace, tuple(_OPERATIONS.values()))


def reveal(body: Stmt) -> Stmt:
    """Return the statement with the operations that ``hide`` replaced, in lanes where they were vectorised."""

    def restore(e: Call) -> Call:
        name = str(getattr(e.op, "name", ""))
        if not name.startswith(PREFIX):
            return e
        kind = name[len(PREFIX) :]
        if kind not in _OPERATIONS:  # one of numerics/extremes.py, which is not an IR node
            return e
        return tirx.Not(tirx.EQ(*e.args)) if kind == "ne" else _OPERATIONS[kind](*e.args)

    return map_expr(body, restore, ir.Call)
