"""Marks around moves of accumulators between registers and tensor memory (`tile_cuda.accumulators.resident`)."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import ir
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_cuda.attributes import DEMAND, ENTERS, HOLDS, LEAVES

MARKS = (ENTERS, HOLDS, LEAVES, DEMAND)
MATRIX = "matrix"
"""Scope of accumulators that registers never hold as a whole (`tile_cuda.accumulators.subtiling`)."""


def enters(registers: BufferVar, moves: Sequence[Stmt]) -> Stmt:
    """Mark moves of an accumulator from registers to tensor memory, before an accumulating product."""
    return nodes.mark(ENTERS, [registers], nodes.seq(list(moves)))


def leaves(registers: BufferVar, moves: Sequence[Stmt]) -> Stmt:
    """Mark moves of an accumulator from tensor memory to registers, behind a product."""
    return nodes.mark(LEAVES, [registers], nodes.seq(list(moves)))


def holds(registers: BufferVar, moves: Sequence[Stmt]) -> Stmt:
    """Mark such moves behind an asynchronous product; the accumulator is not accessed before its wait."""
    return nodes.mark(HOLDS, [registers], nodes.seq(list(moves)))


def must_stay(registers: BufferVar, where: Where | None) -> Stmt:
    """Return the mark of an allocation that requires its accumulator to stay in tensor memory."""
    location = [] if where is None else [ir.StringImm(where.file), nodes.int_const(where.line)]
    return nodes.mark(DEMAND, [registers, *location], nodes.seq([]))
