"""Conversions of narrow floats: functions of the text, printed from the expressions of ``tile_core.numerics``.

They are integer arithmetic, so that an implementation that flushes subnormal numbers of half or float (MSL
specification, "Numerical Compliance") does not lose those of 8-bit floats on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_core.compat.types import BufferVar, Expr, Stmt, UnaryNode
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import calls, nodes
from tile_core.numerics.build import cast
from tile_core.passes.legalize_floats import Conversions
from tile_core.passes.packed_instructions import PackedFloats
from tile_metal.emit.atomics import update_name
from tile_metal.emit.helpers import NARROW, PAIRS


def _decoder(name: str) -> Callable[[Expr, str], Expr]:
    return lambda code, to: cast(to, calls.instruction(f"decode_{name}", [code], "float32"))


def _pair_decoder(name: str) -> UnaryNode:
    return lambda codes: calls.instruction(f"decode_pair_{name}", [codes], "uint32")


def _encoder(name: str) -> UnaryNode:
    return lambda value: calls.instruction(f"encode_{name}", [value], "uint8")


def split_byte(buffer: BufferVar, indices: list[Expr], code: Expr, half: str) -> Stmt:
    """Return the store of half a byte: a compare-and-swap loop on its word.

    Raises
    ------
    NotExpressible
        If a word may reach beyond the buffer.
    """
    size = math.prod(n for n in nodes.shape_of(buffer) if isinstance(n, int))
    outside = nodes.scope_of(buffer) == "global"
    if outside and size % _WORD:
        why = f"its extents are not a multiple of {2 * _WORD}"
        what = f"single 4-bit elements of {buffer.name} by several threads: {why}"
        raise NotExpressible(what=what, dialect="Metal")
    name = update_name(half, "uint8", "device" if outside else "threadgroup")
    return calls.execute(name, [calls.address(buffer, indices, "a"), code])


#: Bytes of a word that can be exchanged.
_WORD = 4

CONVERSIONS = Conversions(
    split=split_byte,
    decode={name: _decoder(name) for name in NARROW},
    encode={name: _encoder(name) for name in NARROW},
)

PACKED = PackedFloats(
    join={"float16": lambda low, high: calls.instruction("half_pair", [low, high], "uint32")},
    operations={("float16", "sub_whole"): lambda a, b: calls.instruction("half_pair_difference", [a, b], "uint32")},
    decode={name: _pair_decoder(name) for name in PAIRS},
)
"""Decoding of two adjacent codes in one word."""

TRUNCATIONS = frozenset(("float32", f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))
"""Conversions to integers that the text calls functions for: MSL leaves what is out of range undefined."""
