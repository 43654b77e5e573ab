"""Contiguous vector accesses with 64-bit offsets.

TVM's vectoriser leaves the sum of a 64-bit row offset and a widened 32-bit lane as arithmetic on vectors of offsets,
which LLVM turns into one load per lane. As a ramp it is one vector load.
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.nibble_loads import load_pairs


def restore_ramps(body: Stmt) -> Stmt:
    """Return the body with widened ramps as ramps, and also a broadcast plus a ramp.

    Pairs of lanes share a byte.
    """
    return tvm_ffi.structural_map(body, [(tirx.Cast, _cast), (tirx.Add, _add), (ir.TensorLoad, load_pairs)])


def _cast(e: Expr) -> Expr:
    """Widen the base and the stride instead: offsets of an access never wrap."""
    if not isinstance(e.value, tirx.Ramp) or not str(e.ty.dtype).startswith("int64"):
        return e
    ramp = e.value
    return tirx.Ramp(_wide(ramp.base), _wide(ramp.stride), ramp.lanes)


def _add(e: Expr) -> Expr:
    for ramp, other in ((e.a, e.b), (e.b, e.a)):
        if isinstance(ramp, tirx.Ramp) and isinstance(other, tirx.Broadcast):
            return tirx.Ramp(other.value + ramp.base, ramp.stride, ramp.lanes)
    return e


def _wide(scalar: Expr) -> Expr:
    if isinstance(scalar, tirx.IntImm):
        return tirx.IntImm("int64", int(scalar.value))
    return tirx.Cast("int64", scalar)
