"""The choice to overlap iterations of a loop of several products."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ops.base import View
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_core.simt.pipelining.overlap import Candidates
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.options import MOST_REGISTERS
from tile_cuda.target import REGISTERS

OTHER_REGISTERS = 32
"""Registers of a thread beside the accumulators and, with overlap, register operands; in attention."""
LEAST_ACCUMULATORS = 64
"""Of a thread, of a product that others work beside."""


def not_faster(found: Candidates, ping_pong: bool, most: int | None, shared_bytes: int | None) -> str:
    """Return why overlapped iterations are not faster; empty if they are.

    Measured on an H200 with attention forward, relative to cuDNN: ping-pong reached 0.94 (d = 128, tiles of
    128 keys; 0.79 without overlap), overlap without ping-pong on an H100 0.69, since all warpgroups add at the same
    time. Two blocks of a multiprocessor fill each other's gaps as well: 1.10, ping-pong 0.81 (d = 64). Tiles of 64 keys
    give products that are too short to work beside: 0.55, without overlap 0.68.
    """
    if not found.trips:
        return ""  # waits move behind what does not need them
    if not ping_pong:
        return "it has one warpgroup" if found.threads <= WARPGROUP else "its warpgroups cannot ping-pong"
    registers = _registers(replace(found, calls=found.calls[:1]), False) - OTHER_REGISTERS
    if registers < LEAST_ACCUMULATORS:
        return f"its first product, with {registers} accumulators a thread, is too short to overlap"
    needed = _registers(found, True)
    limit = min(MOST_REGISTERS if most is None else most, REGISTERS // found.threads // 8 * 8)
    if needed > limit:
        return f"it would need about {needed} registers of a thread, which has {limit}"
    apart = _registers(found, False)
    fits = apart * 2 * found.threads <= REGISTERS and found.shared_bytes * 2 <= (shared_bytes or 0)
    return f"two blocks of about {apart} registers a thread run beside each other" if fits else ""


def _registers(found: Candidates, overlaps: bool) -> int:
    """Return how many registers of a thread the products of a loop need."""
    held: dict[BufferVar, View] = {}
    for call in found.calls:
        accumulator = call.args[accumulator_of(call)]
        held |= {v.buffer: v for v in call.args if isinstance(v, View) and (overlaps or v is accumulator)}
    fragments = [v for v in held.values() if v.scope == "local.fragment"]
    bits = sum(prod(map(int, v.extents)) * DTYPES[v.dtype].bits for v in fragments)
    return -(-bits // (32 * found.threads)) + OTHER_REGISTERS
