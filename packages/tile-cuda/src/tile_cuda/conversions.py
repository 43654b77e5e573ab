"""Conversions of 8-bit floats by instruction, where the target has them.

Numbers of float8_e4m3fn and float8_e5m2 are numbers of float16, so decoding is one instruction, with another one to
float32. Encoding follows ``tile_core.numerics.rules``, which keeps infinities and NaN where the instruction saturates:
the function ``cvt_rn_e4m3_f32`` looks at the size first. The formats without negative zero have no instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.types import BufferVar, Expr, Stmt, UnaryNode, Var
from tile_core.ir import calls, nodes
from tile_core.numerics.build import cast
from tile_core.passes.legalize_floats import Conversions
from tile_cuda.ptx.exchange_loops import loop_name
from tile_cuda.ptx.values import VALUES

__all__ = ["FP8", "PLAIN", "TRUNCATIONS"]

_KINDS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


def _decoder(kind: str) -> Callable[[Expr, str], Expr]:
    return lambda code, to: cast(to, calls.instruction(f"cvt_f16_{kind}", [code], "float16"))


def _encoder(kind: str) -> UnaryNode:
    return lambda value: calls.instruction(f"cvt_rn_{kind}_f32", [value], "uint8")


def split_byte(buffer: BufferVar, indices: list[Expr], code: Var, half: str) -> Stmt:
    """Return the store of half a byte: a compare-and-swap loop on its word."""
    name = loop_name(half, VALUES["uint8"].name, nodes.scope_of(buffer), "")
    return calls.execute(name, [calls.address(buffer, indices, "a"), code])


PLAIN = Conversions(split=split_byte)
"""What every architecture stores."""

FP8 = Conversions(
    split=split_byte,
    decode={name: _decoder(kind) for name, kind in _KINDS.items()},
    encode={name: _encoder(kind) for name, kind in _KINDS.items()},
)
"""Conversions of every architecture with float8 matrix instructions."""

TRUNCATIONS = frozenset(
    (source, f"{sign}int{bits}") for source in ("float32", "float64") for sign in ("", "u") for bits in (32, 64)
)
"""Conversions to integers that are printed as instructions, which saturate (PTX ISA, "cvt")."""
