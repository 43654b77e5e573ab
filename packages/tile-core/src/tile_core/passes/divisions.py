"""Integer division for every operand: by zero, and of the least number by -1.

Processors stop a process at ``x / 0`` and at ``INT_MIN / -1``. In the language a quotient and a remainder by zero are
0, and the quotient of the least number by -1 is the least number, as wrapping says. The pass replaces divisors that are
not constant so that both hold; a division costs more than the two comparisons.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.numerics.build import bind, constant, equal, select, type_name

__all__ = ["total_divisions"]

_QUOTIENTS = (tirx.FloorDiv, tirx.Div)
_REMAINDERS = (tirx.FloorMod, tirx.Mod)


def total_divisions(body: Any) -> Any:
    """Return the statement with divisions that have a result for all operands."""

    def divide(e: Any, mutator: Any) -> Any:
        new = mutator.default_mutate(e)
        if not type_name(new).startswith(("int", "uint")) or isinstance(new.b, (tirx.IntImm, tirx.Broadcast)):
            return new
        return bind(new.a, lambda a: bind(new.b, lambda b: _total(type(new), a, b), "divisor"), "dividend")

    return tvm_ffi.structural_mutate(body, [(_QUOTIENTS + _REMAINDERS, divide)])


def _total(node: Any, a: Any, b: Any) -> Any:
    name = type_name(b)
    by_zero = equal(b, constant(0, name, b))
    unsafe = by_zero
    if name.startswith("int"):
        least = constant(-(2 ** (int(name[3:]) - 1)), name, b)
        unsafe = tirx.Or(by_zero, tirx.And(equal(b, constant(-1, name, b)), equal(a, least)))
    result = node(a, select(unsafe, constant(1, name, b), b))
    # By 1 the remainder is 0, and the quotient of the least number is itself.
    return select(by_zero, constant(0, name, b), result) if node in _QUOTIENTS else result
