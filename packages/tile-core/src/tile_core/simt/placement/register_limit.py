"""Fragments beyond a thread's registers: recomputed, in shared memory, or reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.ops import request_registers
from tile_core.ops.base import OpCall, View, is_op
from tile_core.passes.performance import PerformanceNote
from tile_core.records import dataclass
from tile_core.simt.memory.register_pressure import RegisterPressure

if TYPE_CHECKING:
    from tile_core.context import Context

#: Registers that a thread needs beside its arrays, for addresses, counters and intermediate values. Kernels of 1,024
#: threads with arrays of 50 registers did not spill where 64 were the limit, with 54 they did.
OTHERS = 14
#: Registers of an array that are worth being computed again, or in shared memory.
LEAST = 8
#: Ops that are as good on a fragment as on a shared buffer: products have notes of their own.
_ELEMENTWISE = frozenset({"copy", "fill", "reduce"})
#: The share of shared memory that padding against bank conflicts may add.
_PADDING = 8


def most_registers(program: Stmt, threads: int, ctx: Context) -> int | None:
    """Return the registers that each of ``threads`` threads can have; ``None`` if unknown.

    A role that requests registers has them beside those that other roles give back.
    """
    most = ctx.capabilities.registers_of(threads)
    found = [OpCall.decode(s) for s in collect(program, tirx.Evaluate) if is_op(s)]
    requested = [int(c.attrs[attributes.COUNT]) for c in found if c.name == request_registers.OP.name]
    return None if most is None else max([most, *requested])


@dataclass(frozen=True)
class RegisterLimit:
    """The registers of a thread, and the fragments of a program that exceed them.

    Attributes
    ----------
    most
        Registers that a thread can have.
    threads
        Threads of a block.
    pressure
        Its arrays.
    fragments
        The fragment of each array.
    program
        The program before fragments were distributed.
    """

    most: int
    threads: int
    pressure: RegisterPressure
    fragments: Mapping[BufferVar, BufferVar]
    program: Stmt

    @property
    def is_near(self) -> bool:
        """Whether arrays leave a thread too few registers for everything else."""
        return self.pressure.registers + OTHERS > self.most

    @property
    def is_exceeded(self) -> bool:
        """Whether arrays must spill."""
        return self.pressure.registers > self.most

    def large(self) -> list[BufferVar]:
        """Return the arrays of fragments that are worth being computed again, largest first."""
        return [a for a, n in self.pressure.arrays if a in self.fragments and n >= LEAST]

    def reason(self, array: BufferVar) -> str:
        """Return the reason why an array has no registers."""
        needed = dict(self.pressure.arrays)[array]
        rest = self.pressure.registers - needed
        beside = f" beside {rest} of other fragments" if rest else ""
        return f"it needs {needed} registers of a thread{beside}, of at most {self.most}"

    def shareable(self, shared_bytes: int, body: Stmt) -> BufferVar | None:
        """Return the array of a fragment to move to shared memory.

        The smallest one that suffices, else the largest; not an array that the program itself makes private.

        Parameters
        ----------
        shared_bytes
            Bytes of shared memory that a block can have.
        body
            The code of a thread, with all buffers in shared memory.
        """
        if not self.is_exceeded:
            return None
        shared = [a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer).startswith("shared")]
        left = shared_bytes - sum(map(nodes.bytes_of, shared))
        fixed = self._operands_of_products()
        found = [
            (n, a) for a, n in self.pressure.arrays
            if a in self.fragments and n >= LEAST and self.fragments[a] not in fixed
            and nodes.scope_of(self.fragments[a]) == "local.fragment"
            and nodes.bytes_of(self.fragments[a]) * (_PADDING + 1) // _PADDING <= left
        ]  # fmt: skip
        enough = [x for x in found if self.pressure.registers - x[0] + OTHERS <= self.most]
        if not found:
            return None
        return min(enough, key=lambda x: x[0])[1] if enough else max(found, key=lambda x: x[0])[1]

    def performance_note(self, kept: Mapping[BufferVar, str]) -> PerformanceNote | None:
        """Return the performance note of a kernel whose largest fragment spills.

        Parameters
        ----------
        kept
            Why arrays are not computed again.
        """
        found = [a for a, _ in self.pressure.arrays if a in self.fragments]
        if not self.is_exceeded or not found or self.fragments[found[0]] in self._operands_of_products():
            return None
        name, array = self.fragments[found[0]].name, found[0]
        allocs = (s for s in collect(self.program, tirx.AllocBuffer) if s.buffer.same_as(self.fragments[array]))
        where = next((w for w in map(nodes.where_of, allocs) if w is not None), None)
        line = "" if where is None else f" ({PurePath(where.file).name}:{where.line})"
        why = f"; {kept[array]}" if array in kept else ""
        return PerformanceNote(
            "spills",
            f"fragment {name}{line} spills: {self.reason(array)}{why}; use fewer elements, more than {self.threads} "
            f"threads, or T.alloc_shared if its {nodes.bytes_of(self.fragments[array]):,} bytes fit in shared memory",
        )

    def _operands_of_products(self) -> set[BufferVar]:
        calls = [OpCall.decode(s) for s in collect(self.program, tirx.Evaluate) if is_op(s)]
        return {v.buffer for c in calls if c.name not in _ELEMENTWISE for v in c.args if isinstance(v, View)}
