"""Translate accesses of threads and asynchronous instructions to lines of the proof's function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt
from tile_core.ir.attributes import NAME
from tile_core.ir.visit import loads_of
from tile_core.simt.barrier_proof.accesses import Address, AsyncAccesses, is_product
from tile_core.simt.barrier_proof.expressions import EmittedValue, Untranslated, sum_of
from tile_core.simt.barrier_proof.instructions import AsyncInstructions, TensorAccess
from tile_core.simt.barrier_proof.lines import EmittedLine, Level


class AccessLines:
    """Translates accesses.

    Parameters
    ----------
    uses
        The kernel's asynchronous accesses.
    value
        Translates an expression.
    """

    def __init__(
        self, uses: AsyncAccesses, instructions: AsyncInstructions, value: Callable[[Expr], EmittedValue]
    ) -> None:
        self.uses, self.instructions, self.value = uses, instructions, value
        self.aliased = frozenset(uses.aliases())
        #: By buffer, its shape before it became flat.
        self.shapes: dict[int, list[int]] = {}

    def instruction(self, s: Stmt, call: Call, given: Sequence[Address]) -> list[EmittedLine]:
        """Translate an instruction without a barrier."""
        lines = [self.tensor(access) for access in self.instructions.tensor(call)]
        return [*lines, *self.access_memory(s, str(call.attrs[NAME]), given)]

    def tensor(self, access: TensorAccess) -> EmittedLine:
        """Return the access to columns of tensor memory."""
        at = self.of_slot(access.address)
        facts = f"{at.text} & 0xffff, {access.columns}, {access.writes}"
        text = f"x.multiply({facts}, {access.of_pair})" if access.is_async else f"x.tensor({facts})"
        return EmittedLine(text, at.uses, level=Level.ORDER, period=at.period)

    def access_memory(self, s: Stmt, name: str, given: Sequence[Address]) -> list[EmittedLine]:
        """Translate the accesses of an instruction to shared memory and registers."""
        reads = [a for a in given if a.access == "r" and a.is_async and a.is_shared]
        if reads and not is_product(given):
            return [line for a in reads for line in self.slot("store", a.buffer, a.index, Level.SOFT)]
        if is_product(given):
            into = sorted(str(a.buffer.name) for a in given if "w" in a.access)
            of = sorted(str(a.buffer.name) for a in given if a.access == "r" and not a.is_async)
            return [x for a in reads for x in self.slot("use", a.buffer, a.index, Level.WAITS, f", {into!r}, {of!r}")]
        if name in self.instructions.fills:
            return [x for a in given if a.access == "w" for x in self.slot("fill", a.buffer, a.index, Level.SOFT)]
        written = [a for a in given if "w" in a.access and not a.is_async]
        lines = [x for a in written for x in self.plain("write", a.buffer, [a.index])]
        return [*lines, *self.accesses(s, [a.buffer for a in given if a.access == "w"], "touch")]

    def accesses(self, s: Stmt, written: Sequence[BufferVar] = (), method: str = "read") -> list[EmittedLine]:
        """Translate the threads' own accesses in a statement.

        Parameters
        ----------
        written
            Buffers that it only writes, though their addresses are loads.
        method
            ``"touch"`` for an instruction of a whole warp.
        """
        if not self.uses.shared and not self.uses.accumulators:
            return []
        loads = [x for x in loads_of(s) if not any(x.source.same_as(b) for b in written)]
        lines = [x for load in loads for x in self.plain(method, load.source, load.indices)]
        if type(s) is tirx.BufferStore:
            lines += self.plain("write", s.buffer, s.indices)
        return list({x.text: x for x in lines}.values())

    def plain(self, method: str, buffer: BufferVar, indices: Any) -> list[EmittedLine]:
        """Translate a thread's own access to one element."""
        key = structural.identity(buffer)
        if key in self.uses.accumulators:
            return [EmittedLine(f"x.register({str(buffer.name)!r})", level=Level.SOFT)]
        if key in self.uses.operands and method == "write":
            return [EmittedLine(f"x.operand({str(buffer.name)!r})", level=Level.SOFT)]
        if not self.uses.has(key):
            name = str(buffer.name)
            return [EmittedLine(f"x.enter({name!r})", level=Level.SOFT)] if name in self.aliased else []
        return self.slot(method, buffer, next(iter(indices)), Level.SOFT)

    def slot(self, method: str, buffer: BufferVar, index: Expr, level: Level, more: str = "") -> list[EmittedLine]:
        """Return the access to the slot of an element, if its index is known."""
        key = structural.identity(buffer)
        size = self.uses.granule(key, self.shapes.get(key) or [1])
        if method == "use" and type(index) is tirx.Add and type(index.b) is tirx.IntImm:
            whole = int(index.b) // size * size
            index = index.a + whole if whole else index.a  # a part of a tile begins in the tile's slot
        try:
            at = self.of_slot(index) if key in self.uses.rings and level == Level.SOFT else self.value(index)
        except Untranslated:
            if method in ("touch", "read", "write") and key not in self.uses.rings:
                return []
            raise
        text = f"x.{method}({str(buffer.name)!r}, {at.text} // {size}, {size}{more})"
        return [EmittedLine(text, at.uses, level=level, period=at.period)]

    def of_slot(self, index: Expr) -> EmittedValue:
        """Translate the terms of an index that choose a slot.

        Terms of the thread's number alone and of unknown values choose an element of it.
        """
        if type(index) is not tirx.Add:
            return self.value(index)
        chosen = []
        for term in (index.a, index.b):
            with contextlib.suppress(Untranslated):
                chosen.append(self.of_slot(term))
        chosen = [v for v in chosen if not v.of_thread]
        return sum_of(chosen)
