"""Keep accumulators in tensor memory; move them to registers only where other code needs them.

A product marks where its accumulator would enter and leave tensor memory. For each fragment this pass tracks whether
registers, tensor memory or both hold the current values, and keeps the moves that are needed: those before a statement
that accesses the registers, and those before a product that adds to their values. A loop whose first access is an
accumulating product begins and ends with the accumulator in tensor memory, so it moves once; other loops begin and end
with it in registers.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.ir.attributes import CALLED
from tile_core.ir.visit import bodies_of, collect, map_statements, with_bodies
from tile_core.lowering.dispatch import refused
from tile_core.simt.pipelining.dependences import uses
from tile_cuda.attributes import DEMAND, ENTERS, HOLDS, LEAVES
from tile_cuda.ops.accumulator_marks import MARKS, MATRIX
from tile_cuda.vocabulary.products import DEMANDED, PIN_ACCUMULATOR, TENSOR_ACCUMULATOR

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan


def keep_accumulators(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Return the plan with the moves that are needed, without marks."""
    marks = [s for s in collect(plan.body, tirx.AttrStmt) if str(s.attr_key) in MARKS]
    # Of accumulators that only tensor memory holds, only their columns are left.
    body = map_statements(
        plan.body, lambda s: nodes.seq([]) if nodes.scope_of(s.buffer) == MATRIX else s, tirx.AllocBuffer
    )
    for registers in dict.fromkeys(s.node[0] for s in marks):
        own = [s for s in marks if s.node[0].same_as(registers)]
        if not any(str(s.attr_key) in (HOLDS, LEAVES) for s in own):
            reason = f"the last product that adds to {registers.name} has no accumulator in tensor memory"
            mark = own[0].node
            where = Where(str(mark[1].value), int(mark[2])) if len(mark) > 2 else None
            raise refused({CALLED: DEMANDED}, TENSOR_ACCUMULATOR, PIN_ACCUMULATOR, reason, ctx.target.text, where)
        body = _Accumulator(registers, own).whole(body)
    return plan if body is plan.body else plan.replace(body=body)


class _Held(enum.Enum):
    """The storage of the current values: registers, tensor memory, or both."""

    UNWRITTEN = enum.auto()
    """They have not been written yet."""
    REGISTERS = enum.auto()
    TENSOR = enum.auto()
    BOTH = enum.auto()


class _Accumulator:
    """The accumulator of one register array."""

    def __init__(self, registers: BufferVar, marks: Sequence[Stmt]) -> None:
        self.registers = registers
        moves = {str(s.attr_key): s.body for s in marks}
        self.enter: Stmt | None = moves.get(ENTERS)
        self.leave: Stmt = moves.get(LEAVES) or moves[HOLDS]

    def whole(self, body: Stmt) -> Stmt:
        """Return a program with the moves that are needed."""
        return nodes.seq(self.moved(body, _Held.UNWRITTEN)[0])

    def moved(self, s: Stmt, held: _Held) -> tuple[list[Stmt], _Held]:
        """Return a statement with the required moves, and the storage of the accumulator behind it."""
        if isinstance(s, tirx.SeqStmt):
            found = list[Stmt]()
            for one in s.seq:
                new, held = self.moved(one, held)
                found += new
            return found, held
        mark = self._mark(s)
        if mark == ENTERS:
            return ([s.body], _Held.BOTH) if held is _Held.REGISTERS else ([], _Held.TENSOR)
        if mark in (HOLDS, LEAVES):
            return [], _Held.TENSOR
        if mark == DEMAND:
            return [], held
        if isinstance(s, tirx.AllocBuffer) or not uses(s, self.registers):
            return [s], held
        if not any(self._mark(x) for x in collect(s, tirx.AttrStmt)):
            before = [self.leave] if held is _Held.TENSOR else []
            changes = held in (_Held.UNWRITTEN, _Held.REGISTERS) or self._writes(s)
            return [*before, s], _Held.REGISTERS if changes else _Held.BOTH
        if isinstance(s, (tirx.For, tirx.While)):
            return self._loop(s, held)
        if isinstance(s, tirx.IfThenElse):
            return self._branch(s, held)
        (body,) = bodies_of(s)
        new, held = self.moved(body, held)
        return [with_bodies(s, [nodes.seq(new)])], held

    def _loop(self, s: Stmt, held: _Held) -> tuple[list[Stmt], _Held]:
        """Return a loop that begins and ends with the accumulator in the same storage."""
        if any(a.buffer.same_as(self.registers) for a in collect(s.body, tirx.AllocBuffer)):
            return [with_bodies(s, [nodes.seq(self.moved(s.body, _Held.UNWRITTEN)[0])])], held
        if self._first(s.body) == ENTERS and self.enter is not None:
            before = [self.enter] if held is _Held.REGISTERS else []
            body, end = self.moved(s.body, _Held.TENSOR)
            body += [self.enter] if end is _Held.REGISTERS else []
            return [*before, with_bodies(s, [nodes.seq(body)])], _Held.TENSOR
        before = [self.leave] if held is _Held.TENSOR else []
        body, end = self.moved(s.body, _Held.REGISTERS)
        body += [self.leave] if end is _Held.TENSOR else []
        return [*before, with_bodies(s, [nodes.seq(body)])], _Held.REGISTERS

    def _branch(self, s: Stmt, held: _Held) -> tuple[list[Stmt], _Held]:
        """Return a branch whose sides end with one storage of the accumulator."""
        sides = [self.moved(x, held) for x in bodies_of(s)]
        sides += [([], held)] if s.else_case is None else []
        ends = {end for _, end in sides} - {_Held.UNWRITTEN} or {_Held.UNWRITTEN}
        after = next(iter(ends)) if len(ends) == 1 else _Held.REGISTERS
        if ends == {_Held.TENSOR, _Held.BOTH}:
            after = _Held.TENSOR
        if after is _Held.REGISTERS:
            sides = [([*new, self.leave] if end is _Held.TENSOR else new, after) for new, end in sides]
        then, other = (nodes.seq(new) for new, _ in sides)
        return [tirx.IfThenElse(s.condition, then, other if sides[1][0] else None, s.span)], after

    def _first(self, s: Stmt) -> str:
        """Return the mark of the first access of the accumulator: empty for one of registers."""
        if isinstance(s, tirx.SeqStmt):
            return next((self._first(x) for x in s.seq if uses(x, self.registers)), "")
        mark = self._mark(s)
        inside = bodies_of(s)
        return mark or (self._first(inside[0]) if inside and uses(inside[0], self.registers) else "")

    def _mark(self, s: Stmt) -> str:
        """Return the kind of mark that a statement is; empty for another statement."""
        key = str(s.attr_key) if isinstance(s, tirx.AttrStmt) else ""
        return key if key in MARKS and s.node[0].same_as(self.registers) else ""

    def _writes(self, s: Stmt) -> bool:
        """Whether a statement may write the registers, by a store or through their address."""
        stores = any(x.buffer.same_as(self.registers) for x in collect(s, tirx.BufferStore))
        given = any(a.same_as(self.registers) for call in collect(s, ir.Call) for a in call.args)
        return stores or given
