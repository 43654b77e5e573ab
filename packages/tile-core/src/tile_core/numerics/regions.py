"""Regions of numerics: the marks of operations in ``T.numerics``, and their meaning on a target.

An operation belongs to the region in which it is traced, and its mark goes with it: no pass has to keep statements of
a region together, and an operand computed outside keeps its own level. A strict addition, multiplication or division
becomes the operation with a named rounding that no target fuses with another (``ieee_mul_rn_float32``). Functions, and
quotients of other levels, are calls with the attribute ``NUMERICS``, as are tile ops that accumulate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BinaryNode, Call, Expr, Node
from tile_core.ir import nodes
from tile_core.ir.attributes import NUMERICS, Attrs
from tile_core.ir.visit import collect, map_expr
from tile_core.numerics.build import cast, type_name
from tile_core.numerics.levels import FAST, LEVELS, STANDARD, STRICT, level_of

__all__ = [
    "DIVIDE",
    "NUMERICS",
    "in_region",
    "level_of_call",
    "marked",
    "region_of",
    "regions_text",
    "resolved",
    "text_level",
]

#: The quotient of two floats of a region that is not strict.
DIVIDE = "div"

_OPERATIONS: Mapping[str, BinaryNode] = {"add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "fdiv": tirx.Div}
_NAMES = {node.__name__: name for name, node in _OPERATIONS.items()}
_MARKABLE = (*_OPERATIONS.values(), ir.Call)
#: Types that the operations with a named rounding have; of narrower ones the result of float32 is rounded once more,
#: which gives the same bits: 24 bits are at least twice 11 and two more.
_WIDE = ("float32", "float64")
_FUNCTIONS = frozenset(
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh "
    "acosh atanh sigmoid erf pow hypot".split()
)


def marked(body: Node, level: str, outside: Iterable[Expr] = ()) -> Any:
    """Return an expression or statement whose float operations belong to a region.

    Parameters
    ----------
    level
        The region's level.
    outside
        Operands: their operations, and those that have a mark, remain what they are.
    """
    old = {structural.identity(x) for e in outside for x in collect(e, _MARKABLE)}
    return map_expr(body, lambda e: e if structural.identity(e) in old else _marked(e, level), _MARKABLE)


def _marked(e: Expr, level: str) -> Expr:
    if type(e) is ir.Call:
        if nodes.operator_name(e) not in _FUNCTIONS or region_of(e) is not None:
            return e
        return ir.Call(e.op, list(e.args), attrs={NUMERICS: level}, ret_ty=e.ty, span=e.span)
    dtype, name = type_name(e.a), _NAMES[type(e).__name__]
    if not dtype.startswith(("float", "bfloat")) or _is_negation(e) or (level != STRICT and name != "fdiv"):
        return e
    wide = dtype if dtype in _WIDE else "float32"
    full = f"tirx.ieee_{name}_rn_{wide}" if level == STRICT else f"tirx.{DIVIDE}"
    a, b = cast(wide, e.a), cast(wide, e.b)
    call = ir.Call(nodes.register_scalar_op(full), [a, b], attrs={NUMERICS: level}, ret_ty=a.ty, span=e.span)
    return cast(dtype, call)


def _is_negation(e: Expr) -> bool:
    """Whether an operation is ``-0.0 - x``, which rounds nothing."""
    zero = type(e) is tirx.Sub and type(e.a) is tirx.FloatImm and float(e.a.value) == 0
    return zero and math.copysign(1, float(e.a.value)) < 0


def region_of(e: Expr) -> str | None:
    """Return the level of an expression's region, or ``None`` outside of regions."""
    found = e.attrs.get(NUMERICS) if type(e) is ir.Call and e.attrs else None
    return None if found is None else str(found)


def resolved(body: Node, level: str) -> Any:
    """Return a program without the marks that change nothing at the level of the option.

    At level ``"strict"`` no operation is fused, and strict ones are again what they are outside of regions.
    """

    def resolve(e: Call) -> Expr:
        region = region_of(e)
        name = nodes.operator_name(e)
        if region is None or name.startswith("tile."):
            return e
        operation = next((node for n, node in _OPERATIONS.items() if name.startswith(f"ieee_{n}_rn")), None)
        if operation is not None and level == STRICT:
            return operation(*e.args)
        if operation is None and region != level:
            return e
        return tirx.Div(*e.args) if name == DIVIDE else ir.Call(e.op, list(e.args), ret_ty=e.ty, span=e.span)

    return map_expr(body, resolve, ir.Call)


def in_region(lowered: Node, attrs: Attrs, options: object) -> Any:
    """Return the lowered form of a tile op, with the operations of its region."""
    level = attrs.get(NUMERICS)
    return lowered if level is None else resolved(marked(lowered, str(level)), level_of(options))


def level_of_call(attrs: Attrs, options: object) -> str:
    """Return the level of a tile op's region, or else that of the option."""
    return str(attrs.get(NUMERICS, level_of(options)))


def text_level(options: object, attrs: Attrs) -> str:
    """Return the level of a text with regions, as its compiler translates it.

    A compiler's options hold for all of a text, so level ``"fast"`` yields to stricter regions; functions outside of
    these stay approximate by their names.
    """
    level, regions = level_of(options), _levels(attrs)
    return STANDARD if level == FAST and regions - {FAST} else level


def regions_text(options: object, attrs: Attrs) -> str:
    """Return a report's line about the regions of a launch; empty without any."""
    level, regions = level_of(options), _levels(attrs)
    if not regions:
        return ""
    found = f"regions of numerics: {', '.join(name for name in LEVELS if name in regions)}"
    if level == STRICT and regions - {STRICT}:
        return f"{found}; nothing is fused in looser ones either, as the option strict holds for all of the text"
    if text_level(options, attrs) != level:
        return f"{found}; the options of the compiler are those of level standard, as they hold for all of the text"
    return found


def _levels(attrs: Attrs) -> frozenset[str]:
    return frozenset(str(name) for name in attrs.get(NUMERICS, ()))
