"""The content of a report, as plain data gathered from a finished plan."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import dtype
from tile_core.errors import Where
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect, role
from tile_core.lowering.tilings import PlanEstimates
from tile_core.lowering.variant import Reject
from tile_core.numerics.regions import regions_text
from tile_core.ops.base import View
from tile_core.passes.performance import PerformanceNote
from tile_core.plugins.manager import installed
from tile_core.records import dataclass
from tile_core.reports.block import BlockFacts, block_facts
from tile_core.reports.built import Building
from tile_core.reports.lines import SourceLine, source_of
from tile_core.reports.slow import notes_of_build, notes_of_plan
from tile_core.runtime.bench import time_text
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.longest_first import LongestFirst

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan
    from tile_core.plugins.manager import Plugins
    from tile_core.simt.launch.grid import Order

#: Scopes of scratch in the order of a report; what the user allocates has one of them.
SCOPES = ("shared", "local.fragment", "local", "local.var")


@dataclass(frozen=True)
class RejectionFacts:
    """A rejected variant of higher priority, and the reason."""

    variant: str
    reason: str


@dataclass(frozen=True)
class OpFacts:
    """The decisions about one tile op.

    Attributes
    ----------
    op
        Its name.
    location, source
        ``file:line`` and the text of the user's line; empty if it is not known.
    operands
        Its operands as text: ``A_s: float16[128, 32] in shared``.
    variant, note
        The variant that lowers it, and its note on the choice.
    rejected
        Variants of higher priority that rejected the call, in the order of selection.
    forced, fallback
        Whether the program named the variant; whether it is the slow fallback that always exists.
    addon
        The add-on that the variant comes from, with its distribution; empty if it is of the target's own backend.
    """

    op: str
    location: str
    source: str
    operands: tuple[str, ...]
    variant: str
    note: str = ""
    rejected: tuple[RejectionFacts, ...] = ()
    forced: bool = False
    fallback: bool = False
    addon: str = ""


@dataclass(frozen=True)
class BufferFacts:
    """A buffer that the program allocates."""

    name: str
    scope: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class VectorFacts:
    """The parallel loops of the lowered program from one line.

    Attributes
    ----------
    location
        The line.
    lanes
        The lanes of its vectors, in program order; empty where iterations have no common form, and run one by one
        unless the target's compiler makes vectors of them.
    """

    location: str
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class PassFacts:
    """A pass, or a step of the builder: its name, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True)
class EstimateFacts:
    """The estimated time of a launch, and its limit.

    Attributes
    ----------
    microseconds
        The time; ``None`` without an estimate.
    reason
        The limit, or why there is no estimate.
    """

    microseconds: float | None
    reason: str

    def __str__(self) -> str:
        if self.microseconds is None:
            return f"no estimate of its time: {self.reason}"
        return f"estimated {time_text(self.microseconds * 1e-6)}: {self.reason}"


@dataclass(frozen=True)
class Facts:
    """The complete content of a report.

    Attributes
    ----------
    kernel, where, target
        The kernel's name, its location (``file:line``) and the target's text.
    options
        The backend's options by name.
    grid, threads
        Extents of the launch (fastest axis first, as text where symbolic) and the threads of a block.
    rasterization
        The order of blocks, if it is not that of the grid.
    regions
        The levels of the regions of numerics, and what the level of the text changes in them.
    source
        The lines of the program's function, and other lines from which its ops are; empty if not available.
    estimate
        The backend's estimate of the kernel's time; ``None`` if none was requested.
    ops, buffers, vectors, passes
        See there.
    shared_bytes, shared_limit
        Bytes of shared memory that a block uses, and what a block of the target may use.
    block
        For a target with threads: placement of tiles, pipelines, barriers, widths of accesses.
    warnings
        Warnings about avoidable slowness.
    notes
        Annotations of the program that this target ignores.
    built
        The toolchain's statistics of the binary: registers, spills; empty if it is not installed.
    building
        The steps of the builder with their times; empty where it is not installed.
    """

    kernel: str
    where: str
    target: str
    options: dict[str, Any]
    grid: tuple[str, ...]
    threads: tuple[int, ...]
    ops: tuple[OpFacts, ...]
    buffers: tuple[BufferFacts, ...]
    shared_bytes: int
    shared_limit: int
    vectors: tuple[VectorFacts, ...] = ()
    passes: tuple[PassFacts, ...] = ()
    block: BlockFacts | None = None
    warnings: tuple[PerformanceNote, ...] = ()
    notes: tuple[str, ...] = ()
    built: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    building: tuple[PassFacts, ...] = ()
    rasterization: str = ""
    regions: str = ""
    source: tuple[SourceLine, ...] = ()
    estimate: EstimateFacts | None = None

    def to_json(self) -> dict[str, Any]:
        """A value of dicts, lists, strings and numbers."""
        block = None if self.block is None else dataclasses.replace(self.block, drawn=None)
        found = {"schema": 2, **dataclasses.asdict(dataclasses.replace(self, block=block))}
        if block is not None:
            del found["block"]["drawn"]
        return found


def gather(plan: Plan, ctx: Context, build: Building | None = None, estimate: EstimateFacts | None = None) -> Facts:
    """Gather the facts of a plan that has run through all passes.

    Parameters
    ----------
    plan
        The plan.
    ctx
        The compilation's context.
    build
        The facts of the binary, see `tile_core.reports.built`.
    estimate
        See `estimate_of`.
    """
    build = build or Building()
    program = plan.program
    grid, threads = _launch(program.func.body)
    buffers = tuple(_buffer(a.buffer) for a in collect(program.func.body, tirx.AllocBuffer))
    lowered, block = plan.lowered, block_facts(plan)
    ops = tuple(_op(choice, functools.partial(installed().addon_of, ctx.target)) for choice in plan.choices)
    declared = sum(b.bytes for b in buffers if b.scope == "shared")
    vectors = () if getattr(ctx.options, "generic", False) else _vectors(getattr(lowered, "body", None))
    return Facts(
        kernel=program.name,
        where="" if program.where is None else str(program.where),
        target=ctx.target.text,
        options={k: _plain(v) for k, v in vars(ctx.options).items()} if ctx.options is not None else {},
        grid=grid,
        threads=threads,
        ops=ops,
        buffers=tuple(sorted(buffers, key=lambda b: _rank(b.scope))),
        shared_bytes=declared if block is None else block.shared_bytes,
        shared_limit=ctx.capabilities.shared_bytes,
        vectors=vectors,
        passes=tuple(PassFacts(name, seconds) for name, seconds in plan.seconds),
        block=block,
        warnings=(*notes_of_plan(plan), *notes_of_build(build.facts)),
        built=dict(build.facts),
        building=tuple(PassFacts(name, seconds) for name, seconds in build.steps),
        notes=_unused_layouts(program) if block is None else (),
        regions=regions_text(ctx.options, program.attrs),
        rasterization=_rasterization(plan.order) if isinstance(plan, KernelPlan) else "",
        source=source_of(program.where, _locations(ops, vectors, block)),
        estimate=estimate,
    )


def _locations(ops: Sequence[OpFacts], vectors: Sequence[VectorFacts], block: BlockFacts | None) -> list[str]:
    """Return the lines about which there are facts."""
    found = [*(op.location for op in ops), *(v.location for v in vectors)]
    if block is not None:
        found += [*(x.location for x in block.loops), *(a.location for a in block.accesses)]
        found += [*(x.location for x in block.rolled), *(b.before for b in block.barriers)]
    return found


def estimate_of(plan: Plan, ctx: Context, plugins: Plugins) -> EstimateFacts:
    """Return the estimate of the target's backend for a finished plan."""
    model = plugins.tilings(ctx.target)
    if not isinstance(model, PlanEstimates):
        return EstimateFacts(None, f"backend {ctx.target.backend!r} has none")
    found = model.estimate_plan(plan, ctx)
    if isinstance(found, Reject):
        return EstimateFacts(None, found.reason)
    return EstimateFacts(found.microseconds, found.reason)


def _rasterization(order: Order) -> str:
    """Return the order of blocks as text."""
    if not order:
        return ""
    if isinstance(order, LongestFirst):
        return f"from the {'last' if order.descends else 'first'} along {'xyz'[order.axis]}, which has most iterations"
    lines = "rows" if str(order["order"]) == "row" else "columns"
    return f"along panels of {int(nodes.as_int(order['panel']))} {lines} of the grid"


def _unused_layouts(program: Program) -> tuple[str, ...]:
    """Return a sentence per scratch layout on a target without threads."""
    tensors = {p.name for p in program.params}
    return tuple(f"the layout of {name} has no effect here" for name in program.layouts if name not in tensors)


def _launch(body: Stmt) -> tuple[tuple[str, ...], tuple[int, ...]]:
    axes: dict[int, str] = {}
    threads: tuple[int, ...] = ()
    for loop in collect(body, tirx.For):
        if role(loop) == "grid":
            axes[int(annotation(loop, attributes.AXIS, len(axes)))] = _text(loop.extent)
            found = annotation(loop, attributes.THREADS)
            threads = threads if found is None else tuple(int(nodes.as_int(t)) for t in found)
    return tuple(axes[axis] for axis in sorted(axes)), threads


def _op(choice: OpChoice, addon_of: Callable[[str], str]) -> OpFacts:
    call, selection = choice.call, choice.selection
    return OpFacts(
        op=call.name,
        location="" if call.where is None else str(call.where),
        source="" if call.where is None else call.where.source,
        operands=tuple(_operand(a) for a in call.args if isinstance(a, View)),
        variant=selection.variant.name,
        note=selection.accepted.note,
        rejected=tuple(RejectionFacts(r.name, r.reason) for r in selection.rejected),
        forced=selection.forced,
        fallback=selection.variant.fallback,
        addon=addon_of(selection.variant.name),
    )


def _operand(view: View) -> str:
    extents = ", ".join(_text(e) for e in view.extents)
    return f"{view.name}: {view.dtype}[{extents}] in {view.scope or 'global'}"


def _buffer(buffer: BufferVar) -> BufferFacts:
    kind = dtype(nodes.element_type(buffer))
    shape = tuple(int(nodes.as_int(e)) for e in buffer.shape)
    size = -(-math.prod(shape) * kind.bits // 8)
    return BufferFacts(str(buffer.name), nodes.scope_of(buffer), str(kind), shape, size)


def _vectors(body: Stmt) -> tuple[VectorFacts, ...]:
    """Collect the lanes of vector loops by line, each number once."""
    found: dict[str, dict[int, None]] = {}
    for loop in collect(body, tirx.For) if body is not None else ():
        lanes, line = nodes.as_int(loop.extent), _line_of(nodes.where_of(loop))
        if loop.kind == tirx.ForKind.VECTORIZED and isinstance(lanes, int):
            found.setdefault(line, {})[lanes] = None
        elif role(loop) == "parallel" and lanes != 1 and not collect(loop.body, tirx.For):
            found.setdefault(line, {})
    return tuple(VectorFacts(line, tuple(lanes)) for line, lanes in found.items())


def _line_of(where: Where | None) -> str:
    return "" if where is None else str(where)


def _rank(scope: str) -> int:
    return SCOPES.index(scope) if scope in SCOPES else len(SCOPES)


def _text(extent: Expr) -> str:
    return str(nodes.as_int(extent))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
