"""Float types that a target only stores: arithmetic in float32, rounded after every operation.

The rule is that of ``legalize_floats``; here the elements keep their type. Loads, stores, variables, selects and
reinterpretations stay, casts convert between the type and float32 or float64, and every other operation takes its
operands as float32 and rounds its result once. The target then needs text only for the casts.
"""

from __future__ import annotations

from tile_core.analysis.ranges import Ranges
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt
from tile_core.ir import nodes
from tile_core.numerics.build import cast, type_name
from tile_core.numerics.exprs import widen_expr
from tile_core.passes.float_rules import PREFIX

__all__ = ["STORED", "widen_floats"]

STORED = frozenset({"float16", "bfloat16"})
"""The types that many targets convert but do not compute with."""

_BINARY = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max,
    tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE,
)  # fmt: skip
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
#: Calls that pass a value through unchanged.
_CARRY = frozenset({"if_then_else", "reinterpret", "address_of", "buffer_data", "likely"})
#: The largest integer up to which float32 holds all of them.
_EXACT = 2**24
_WIDE_INTEGERS = frozenset({"int32", "uint32", "int64", "uint64"})


def widen_floats(body: Stmt, types: frozenset[str] = STORED, *, rounds_integers: bool = False) -> Stmt:
    """Return the statement with operations on ``types`` in float32.

    Parameters
    ----------
    body
        A statement of scalar operations. Tile calls keep their operands.
    types
        Names of types that float32 holds exactly.
    rounds_integers
        Whether the target's text converts integers of 32 and 64 bits to them with one rounding. Otherwise they go
        through float64 where float32 would round first.

    Returns
    -------
    Stmt
        ``body`` itself if it computes with none of them.
    """
    rewriter = _RewriteWide(types, rounds_integers)
    entries = [(_BINARY, rewriter.binary), (tirx.Cast, rewriter.cast), (ir.Call, rewriter.call)]
    return structural.mutated(body, entries)


class _RewriteWide:
    def __init__(self, types: frozenset[str], rounds_integers: bool) -> None:
        self.types, self.rounds_integers = types, rounds_integers

    def wide(self, e: Expr) -> Expr:
        """Return the value of an operand in float32."""
        return cast("float32", e) if type_name(e) in self.types else e

    def binary(self, e: Expr, mutator: Mutator) -> Expr:
        name = type_name(e.a)
        if name not in self.types:
            return mutator.default_mutate(e)
        result = type(e)(self.wide(mutator.mutate(e.a)), self.wide(mutator.mutate(e.b)), e.span)
        return result if isinstance(e, _COMPARISONS) else cast(name, result)

    def cast(self, e: Expr, mutator: Mutator) -> Expr:
        """Round once: a wide integer may go through float32 only without double rounding.

        That is, if every value that float32 rounds is infinite here.
        """
        new = mutator.default_mutate(e)
        source, target = type_name(new.value), type_name(new)
        if target not in self.types or source not in _WIDE_INTEGERS or self.rounds_integers:
            return new
        exact = max(map(abs, Ranges().of(new.value))) <= _EXACT
        value = cast("float32", new.value) if exact or target == "float16" else widen_expr(new.value)
        return cast(target, value)

    def call(self, e: Expr, mutator: Mutator) -> Expr:
        new = mutator.default_mutate(e)
        name = nodes.operator_name(new)
        if name in _CARRY or (name.startswith("tile.") and not name.startswith(PREFIX)):
            return new
        values = [a for a in new.args if isinstance(a, ir.Expr) and hasattr(a.ty, "dtype")]
        result = type_name(new)
        if result not in self.types and not any(type_name(a) in self.types for a in values):
            return new
        args = [self.wide(a) if isinstance(a, ir.Expr) and hasattr(a.ty, "dtype") else a for a in new.args]
        compute = "float32" if result in self.types else new.ty
        wide = ir.Call(new.op, args, attrs=new.attrs, ret_ty=compute, span=new.span)
        return cast(result, wide) if result in self.types else wide
