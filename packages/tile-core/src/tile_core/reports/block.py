"""Decisions of the passes about a block: placement, barriers and access widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors import Where
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.layout import bank_conflicts, row_major
from tile_core.layout.base import LayoutMap
from tile_core.passes.spine import Plan
from tile_core.records import dataclass
from tile_core.simt.accumulators import Accumulator
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.schedule import Schedule

#: Bytes of an access, and rows, for which bank conflicts are counted: matrix loads read such rows.
_CHUNK, _ROWS = 16, 8


@dataclass(frozen=True)
class FragmentFacts:
    """A fragment in registers.

    Attributes
    ----------
    name, dtype, shape
        As in the program.
    threads, registers
        Threads that hold elements of it, and elements per thread.
    replicas
        Threads that hold the same element.
    vector
        Adjacent elements of a row in consecutive registers of a thread.
    digits
        The layout: for each dimension its digits ``extent:stride@thread`` or ``@register``, outermost first.
    recomputed
        Why it has no registers: its elements are computed where they are read. Empty if it has.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    threads: int
    registers: int
    replicas: int
    vector: int
    digits: str
    recomputed: str = ""


@dataclass(frozen=True)
class SharedFacts:
    """A buffer in shared memory.

    Attributes
    ----------
    name, dtype, shape
        As in the program; a pipelined buffer has its slots as the first dimension.
    offset, bytes
        Where it lies.
    first, last
        Locations of its first and last use.
    why
        Why it is there.
    layout
        The layout of its elements, and the reason.
    conflicts
        Extra cycles of 16-byte accesses at one column of 8 adjacent rows; ``None`` if rows are not a multiple of 16
        bytes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    first: str
    last: str
    why: str
    layout: str
    conflicts: int | None


@dataclass(frozen=True)
class LoopFacts:
    """A pipelined loop; ``stages`` is 0 if it is unchanged, for the ``reason``.

    Attributes
    ----------
    buffers
        Buffers that are prefetched, without stages through registers.
    kept
        Buffers whose copies are not moved, each with the reason.
    schedule
        Its groups, barriers and steps, a line each.
    notes
        Buffers that are prefetched, each with the target's notes on the copy.
    """

    location: str
    name: str
    stages: int
    buffers: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    reason: str
    schedule: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AccumulatorFacts:
    """A step of an accumulator's life, from its initialization to global memory.

    Attributes
    ----------
    location
        The statement that makes it; empty if the compiler does.
    name
        Of the accumulator.
    step, outcome
        The step and its outcome, or the rejection reason of a better one.
    """

    location: str
    name: str
    step: str
    outcome: str


@dataclass(frozen=True)
class BarrierFacts:
    """An inserted barrier.

    Attributes
    ----------
    after, before
        Locations of the accesses that it orders.
    source, sink
        Buffers of these accesses.
    hazard
        Kinds of these accesses.
    role
        Its threads, if not all of the block.
    """

    after: str
    before: str
    source: str
    sink: str
    hazard: str
    role: str = ""


@dataclass(frozen=True)
class AccessFacts:
    """Accesses of a line to a buffer in global memory.

    Attributes
    ----------
    action
        ``"read"``, ``"write"``, or the name of the instruction that gets an address.
    bytes
        Widths of one thread's accesses, widest first; empty for an instruction.
    """

    location: str
    buffer: str
    action: str
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class AssumptionFacts:
    """An assumption of the text about a launch, which checks it.

    Attributes
    ----------
    name
        A parameter (its address) or a symbol (its value).
    multiple
        The required divisor of the address or value.
    is_address
        Whether it is an address.
    """

    name: str
    multiple: int
    is_address: bool


@dataclass(frozen=True)
class KeptFacts:
    """A loop that is not unrolled, despite a request, because of its code size."""

    location: str
    reason: str


@dataclass(frozen=True)
class Drawn:
    """Facts of which the page draws pictures; JSON does not contain them.

    Attributes
    ----------
    layouts
        Layouts of shared buffers and fragments, by name.
    schedules
        Of the pipelined loops, in their order; ``None`` for a loop without one.
    times
        The line of each time of a thread's program.
    spans
        The times of the first and last use of the shared buffers, in their order.
    """

    layouts: Mapping[str, LayoutMap]
    schedules: tuple[Schedule | None, ...]
    times: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BlockFacts:
    """All facts of a block.

    Attributes
    ----------
    operations
        Approximate number of operations in the code of one thread, with its loops unrolled.
    array_bytes, reserved_bytes
        Bytes of the arrays of a thread, in registers or not, and those that a launch reserves if they are in memory.
    rolled
        Loops that are not unrolled.
    ordered
        Shared buffers whose accesses the program's own barriers order.
    accumulators
        What happens to accumulators of products, if the target decides it.
    drawn
        Facts for pictures; ``None`` if these facts are converted to JSON.
    """

    fragments: tuple[FragmentFacts, ...]
    shared: tuple[SharedFacts, ...]
    shared_bytes: int
    loops: tuple[LoopFacts, ...]
    barriers: tuple[BarrierFacts, ...]
    accesses: tuple[AccessFacts, ...]
    assumptions: tuple[AssumptionFacts, ...]
    operations: int = 0
    array_bytes: int = 0
    reserved_bytes: int = 0
    rolled: tuple[KeptFacts, ...] = ()
    ordered: tuple[str, ...] = ()
    accumulators: tuple[AccumulatorFacts, ...] = ()
    drawn: Drawn | None = None


def block_facts(plan: Plan) -> BlockFacts | None:
    """Gather the facts of a plan; ``None`` if it skipped the passes for threads."""
    if not isinstance(plan, KernelPlan):
        return None
    return BlockFacts(
        fragments=tuple(
            _fragment(b, d, plan.recomputed.get(str(b.name), "")) for b, d in plan.placement.placement.fragments.items()
        ),
        shared=_shared(plan),
        shared_bytes=plan.arena.bytes,
        loops=tuple(
            LoopFacts(
                _line_of(r.where),
                r.name,
                r.stages,
                (*r.buffers, *r.through),
                r.kept,
                r.reason,
                r.steps,
                tuple((n.subject, n.text) for n in r.notes),
            )
            for r in plan.pipeline.loops
        ),
        barriers=tuple(
            BarrierFacts(_line_of(b.after), _line_of(b.where), b.source, b.sink, b.hazard, b.role)
            for b in plan.barriers
        ),
        accesses=_Accesses().of(plan.body),
        assumptions=_assumptions(plan.relied),
        operations=plan.code_size.operations,
        array_bytes=plan.arrays.bytes,
        reserved_bytes=plan.arrays.reserved_bytes,
        rolled=tuple(KeptFacts(line, why) for line, why in plan.code_size.kept.items()),
        ordered=tuple(sorted(plan.ordered)),
        accumulators=_accumulators(plan.accumulators),
        drawn=_drawn(plan),
    )


def _drawn(plan: KernelPlan) -> Drawn:
    found, names = plan.placement.placement, _declared_names(plan)
    layouts: dict[str, LayoutMap] = {names.get(str(b.name), str(b.name)): x for b, x in found.layouts.items()}
    layouts |= {str(b.name): x for b, x in found.fragments.items()}
    return Drawn(
        layouts,
        tuple(r.schedule for r in plan.pipeline.loops),
        tuple(map(_line_of, plan.arena.times)),
        tuple(a.span for a in plan.arena.arrays),
    )


def _declared_names(plan: KernelPlan) -> dict[str, str]:
    """Return the name in the program of each buffer with slots."""
    return {str(new.name): str(old.name) for new, old in plan.pipeline.versions.items()}


def _accumulators(found: Sequence[Accumulator]) -> tuple[AccumulatorFacts, ...]:
    steps = ((x.name, *step) for x in found for step in x.steps())
    return tuple(AccumulatorFacts(_line_of(where), name, step, text) for name, where, step, text in steps)


def _fragment(buffer: BufferVar, d: Var, recomputed: str) -> FragmentFacts:
    digits, name, kind = str(d).partition(": ")[2], str(buffer.name), nodes.element_type(buffer)
    threads, held = d.size("thread"), d.registers
    return FragmentFacts(name, kind, d.shape, threads, held, d.replicas, d.vector, digits, recomputed)


# Shared memory


def _shared(plan: KernelPlan) -> tuple[SharedFacts, ...]:
    layouts = {str(b.name): layout for b, layout in plan.placement.placement.layouts.items()}
    versions = _declared_names(plan)
    declared = {str(a.buffer.name): nodes.scope_of(a.buffer) for a in collect(plan.program.func.body, tirx.AllocBuffer)}
    found = []
    for array in plan.arena.arrays:
        name = versions.get(array.name, array.name)
        why = "scratch of an op"
        if name in plan.demoted:
            why = f"no fragment: {plan.demoted[name]}"
        elif name in versions.values() and array.name in versions:
            why = f"declared; {array.shape[0]} slots of the pipeline"
        elif name in declared:
            why = "declared"
        layout = layouts.get(array.name)
        text = "row-major" if layout is None else getattr(layout, "note", "") or str(layout)
        first, last = array.lives
        found.append(
            SharedFacts(
                name, array.dtype, array.shape, array.offset, array.bytes, _line_of(first), _line_of(last), why, text,
                _conflicts(array, layout),
            )
        )  # fmt: skip
    return tuple(found)


def _conflicts(array: Any, layout: Any) -> int | None:
    bits = DTYPES[array.dtype].bits
    if len(array.shape) < 2 or array.shape[-2] < _ROWS or array.shape[-1] * bits % (8 * _CHUNK) or bits > 8 * _CHUNK:
        return None
    used = row_major(array.shape) if layout is None else layout
    if "memory" not in used.axes:
        return None
    outer = (0,) * (len(array.shape) - 2)
    return bank_conflicts(used, [(*outer, row, 0) for row in range(_ROWS)], bits, 8 * _CHUNK // bits)


# Global memory


class _Accesses:
    """Collects the accesses of a thread's code to global memory, by line."""

    def __init__(self) -> None:
        self.widths: dict[tuple[str, str, str], set[int]] = {}

    def of(self, body: Stmt) -> tuple[AccessFacts, ...]:
        self.visit(body, None)
        return tuple(AccessFacts(*key, tuple(sorted(w, reverse=True))) for key, w in self.widths.items())

    def visit(self, s: Stmt, line: Where | None) -> None:
        line = nodes.where_of(s) or line
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self.visit(x, line)
            return
        if isinstance(s, tirx.BufferStore):
            self.note(line, s.buffer, "write")
        for part in ("value", "condition", "min", "extent"):
            if hasattr(s, part):
                self.expression(getattr(s, part), line)
        for part in ("body", "then_case", "else_case"):
            if getattr(s, part, None) is not None:
                self.visit(getattr(s, part), line)

    def expression(self, e: Expr, line: Where | None) -> None:
        if not hasattr(e, "ty"):
            return
        for call in [c for c in collect(e, ir.Call) if nodes.is_tile_call(c)]:
            if nodes.is_tile_call(call, "move"):
                for load, action in zip(call.args, ("write", "read"), strict=True):
                    self.note(line, load.source, action, int(nodes.as_int(call.attrs[attributes.BYTES])))
                return
            if nodes.is_tile_call(call, "instruction"):
                for address in (a for a in call.args if nodes.is_tile_call(a, "address")):
                    self.instruction(line, address.args[0].source, str(call.attrs[attributes.NAME]))
                return
        for load in collect(e, ir.TensorLoad):
            self.note(line, load.source, "read")

    def note(self, line: Where | None, buffer: BufferVar, action: str, size: int = 0) -> None:
        if nodes.scope_of(buffer) == "global":
            bits = DTYPES[nodes.element_type(buffer)].bits
            self.widths.setdefault((_line_of(line), str(buffer.name), action), set()).add(size or max(bits, 8) // 8)

    def instruction(self, line: Where | None, buffer: BufferVar, name: str) -> None:
        if nodes.scope_of(buffer) == "global":
            self.widths.setdefault((_line_of(line), str(buffer.name), name), set())


def _assumptions(relied: Any) -> tuple[AssumptionFacts, ...]:
    found = []
    for buffer, multiple in relied.addresses.items():
        if multiple * 8 > max(DTYPES[nodes.element_type(buffer)].bits, 8):
            found.append(AssumptionFacts(str(buffer.name), multiple, True))
    found += [AssumptionFacts(str(v.name), n, False) for v, n in relied.divisors.items() if n > 1]
    return tuple(found)


def _line_of(where: Where | None) -> str:
    return "" if where is None else str(where)
