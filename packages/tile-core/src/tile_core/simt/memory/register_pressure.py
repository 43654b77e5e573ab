"""Register pressure: arrays that are live at the same time, and their registers."""

from __future__ import annotations

from math import prod

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import bodies_of, collect
from tile_core.records import dataclass


@dataclass(frozen=True)
class RegisterPressure:
    """The most registers that arrays take at a time.

    Attributes
    ----------
    registers
        Their number, of 32 bits, in each thread.
    arrays
        The arrays that take them, each with its registers, largest first.
    """

    registers: int = 0
    arrays: tuple[tuple[BufferVar, int], ...] = ()


def registers_of(array: BufferVar) -> int:
    """Return the number of 32-bit registers that an array takes."""
    elements = prod(int(nodes.as_int(n)) for n in array.shape)
    return -(-elements * max(8, DTYPES[nodes.element_type(array)].bits) // 32)


def register_pressure(body: Stmt) -> RegisterPressure:
    """Return the largest register pressure of a thread's code.

    An array lives from its first to its last access. One that a loop reads before it writes it, or that is also
    accessed outside of the loop, lives as long as the loop.
    """
    lives = _Lives()
    lives.enter(body)
    best = RegisterPressure()
    for at in {first for first, _ in lives.found.values()}:
        live = [(b, registers_of(b)) for b, (first, last) in lives.found.items() if first <= at <= last]
        total = sum(n for _, n in live)
        if total > best.registers:
            best = RegisterPressure(total, tuple(sorted(live, key=lambda x: -x[1])))
    return best


class _Lives:
    """Finds the first and last access of each private array."""

    def __init__(self) -> None:
        self.found: dict[BufferVar, tuple[int, int]] = {}
        self.time = 0

    def enter(self, s: Stmt) -> None:
        if type(s) is tirx.SeqStmt:
            for x in s.seq:
                self.enter(x)
        elif type(s) in (tirx.For, tirx.While):
            self.loop(s)
        else:
            for part in (s.condition,) if type(s) is tirx.IfThenElse else () if bodies_of(s) else (s,):
                self.access(part)
            for x in bodies_of(s):
                self.enter(x)

    def access(self, s: Stmt) -> None:
        """Record the accesses of a statement without a body, or of an expression."""
        self.time += 1
        stores = [s.buffer] if type(s) is tirx.BufferStore else []
        for buffer in (*(x.source for x in collect(s, ir.TensorLoad)), *stores):
            if nodes.scope_of(buffer) in PRIVATE:
                self.found[buffer] = self.found.get(buffer, (self.time, 0))[0], self.time

    def loop(self, s: Stmt) -> None:
        before, begin = dict(self.found), self.time + 1
        own = {a.buffer for a in collect(s.body, tirx.AllocBuffer)}
        loads = {x.source for x in collect(s.condition, ir.TensorLoad)} if type(s) is tirx.While else set()
        self.enter(s.body)
        self.time += 1
        for buffer, (first, last) in self.found.items():
            carried = buffer in before or buffer in loads or not _written_first(s.body, buffer)
            if last >= begin and buffer not in own and carried:
                self.found[buffer] = min(first, begin) if buffer not in before else first, self.time


def _written_first(s: Stmt, buffer: BufferVar) -> bool:
    """Whether the first access of a buffer is a store."""
    for x in collect(s, (ir.TensorLoad, tirx.BufferStore)):
        if (x.buffer if type(x) is tirx.BufferStore else x.source).same_as(buffer):
            return type(x) is tirx.BufferStore
    return False
