"""Check a program's own barriers: they balance, and order the buffers between them.

A program's statements have the semantics of program order, in any role (see ``T.ws``); barriers only order threads.
So in program order every wait passes. To check this for all trip counts, and for every interleaving of threads, the
calls are executed with vector clocks (``analysis/phases.py``), for trip counts 0, 1, 2, ... until states repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from tile_core.analysis.cluster_uniform import InCluster
from tile_core.analysis.flow import Flow
from tile_core.analysis.phases import PhaseError
from tile_core.analysis.point import Point, is_grid
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.errors.ops import BadBarrier, UnbalancedBarrier
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect, role
from tile_core.ops.copy_to_block import is_send
from tile_core.ops.effects import effects
from tile_core.passes.barrier_block import BlockSteps, Lost, step_of
from tile_core.passes.barrier_steps import Execution, settled

_MOST_RUNS = 500


def barriers_of(body: Stmt) -> dict[BufferVar, tuple[int, ...]]:
    """Return the barriers that a program allocates, with the arrivals of their objects."""
    found = {}
    for alloc in collect(body, tirx.AllocBuffer):
        counts = (alloc.annotations or {}).get(attributes.ARRIVALS)
        if counts is not None:
            found[alloc.buffer] = tuple(int(nodes.as_int(n)) for n in counts)
    return found


def check_barriers(body: Stmt, cluster: Sequence[int] = (1, 1, 1)) -> frozenset[str]:
    """Check the barriers of a program, and return the shared buffers that they order.

    Between the first and the last barrier statement of a block, conflicting accesses of these buffers by different
    threads are ordered by arrivals and waits.

    Parameters
    ----------
    cluster
        Blocks of a cluster along x, y and z.

    Raises
    ------
    BadBarrier
        Where not all threads of the block or of a role come together, in a pipelined loop, and where what happens
        depends on more than constants and loop variables.
    UnbalancedBarrier
        With the barrier, and the trip counts.
    """
    made = barriers_of(body)
    if not made and not any(map(is_send, collect(body, tirx.Evaluate))):
        return frozenset()
    flow = Flow(body, effects)
    _check_arrivals(flow, Varying(body))
    ordered: set[str] = set()
    for launch, points in _blocks(flow):
        mine = {b: n for b, n in made.items() if any(_allocates(q.stmt, b) for q in flow.inside(launch))}
        if mine or any(is_send(q.stmt) for q in flow.inside(launch)):
            known = InCluster(
                cluster, _axes(launch), {v: e for v, e in flow.binds.items() if not nodes.is_tile_call(e)}
            )
            ordered |= _checked(BlockSteps(flow, points, _threads(launch), mine, known))
    return frozenset(ordered)


def _checked(block: BlockSteps) -> set[str]:
    """Execute a block for all relevant trip counts; return the buffers that are ordered."""
    groups = _groups(block)
    most = [max((settled(a) for a in map(block.advances, g) if a is not None), default=2) + 2 for g in groups]
    done: dict[tuple[int, ...], Execution] = {}
    try:
        _run(block, groups, most, done)
    except (UnbalancedBarrier, BadBarrier):
        # The error is that of the smallest trip counts.
        for chosen in sorted(product(*(range(n) for n in most)), key=sum)[:_MOST_RUNS]:
            _run(block, groups, chosen, done)
        raise
    while True:
        ranges = [sorted({*range(_settled(g, done) + 1), n}) for g, n in zip(groups, most, strict=True)]
        left = [c for c in sorted(product(*ranges), key=sum) if c not in done]
        if not left:
            break
        if len(left) > _MOST_RUNS:
            found = "barriers in loops with too many different trip counts"
            raise BadBarrier(found=found, fix="give them the same bounds", where=nodes.where_of(groups[0][0].stmt))
        for chosen in left:
            _run(block, groups, chosen, done)
    unordered = {_own(b) for run in done.values() for b in run.phases.unordered}
    return {_own(b) for run in done.values() for b in run.phases.accesses} - unordered


def _own(name: str) -> str:
    """Return the name of a buffer without the rank of the block."""
    return name.partition("@")[0]


def _run(
    block: BlockSteps, groups: Sequence[Sequence[Point]], chosen: Sequence[int], done: dict[tuple[int, ...], Execution]
) -> None:
    """Execute a block for the trip counts of each group of loops."""
    run = Execution(block, {loop: n for group, n in zip(groups, chosen, strict=True) for loop in group})
    try:
        run.run()
    except PhaseError as found:
        where = None if run.at is None else nodes.where_of(run.at.stmt)
        raise UnbalancedBarrier(what=found.what, when=_when(run), reason=found.reason, where=where) from None
    except Lost as lost:
        fix = "name barriers, parities and conditions by constants and loop variables, as (k // stages) % 2"
        raise BadBarrier(found=f"barriers: {lost.what}", fix=fix, where=nodes.where_of(lost.point.stmt)) from None
    done[tuple(chosen)] = run


def _groups(block: BlockSteps) -> list[list[Point]]:
    """Return the loops with barriers whose extents are unknown, together where the extents are equal."""
    groups: list[list[Point]] = []
    for loop in sorted(block.loops, key=lambda p: p.order):
        if not _is_known(block, loop):
            same = [g for g in groups if tvm_ffi.structural_equal(g[0].stmt.extent, loop.stmt.extent)]
            same[0].append(loop) if same else groups.append([loop])
    return groups


def _settled(group: Sequence[Point], done: Mapping[tuple[int, ...], Execution]) -> int:
    return max((run.settled.get(p, 0) for run in done.values() for p in group), default=0)


def _is_known(block: BlockSteps, loop: Point) -> bool:
    """Whether a loop's extent follows from constants and the variables of loops around it."""
    known = {x.stmt.loop_var for x in loop.loops if x in block.loops and x.kind == "for"}
    extent = block.expanded(loop.stmt.extent)
    return set(collect(extent, tirx.Var)) <= known | set(block.variables.values())


def _check_arrivals(flow: Flow, varying: Varying) -> None:
    """Refuse barriers that some threads skip or reach in another order."""
    apart = {p.stmt for p in varying.flow.points if _is_apart(p, varying)}
    for p in flow.points:
        step = step_of(p.stmt)
        if step is None:
            continue
        for around in p.path:
            found, fix = _fault(around, flow), "move it out of it"
            if not found and around.stmt in apart:
                found, fix = "not all threads execute it together", "let the whole block, or a role of T.ws, execute it"
            if found:
                barrier = step.barrier
                what = "a tile goes to another block" if barrier is None else f"the barrier {barrier.name} is used"
                raise BadBarrier(found=f"{what} here, but {found}", fix=fix, where=nodes.where_of(p.stmt))


def _fault(around: Point, flow: Flow) -> str:
    """Return why barriers may not be used inside a statement, if they may not."""
    kind = role(around.stmt) if around.kind == "for" else around.kind
    if kind in ("parallel", "vectorized"):
        return "the iterations of this loop have no order"
    if kind == "pipelined":
        return "a pipelined loop inserts its own barriers"
    if kind == "while":
        return "the trip count of a while loop is unknown at compile time"
    return (
        "a break or continue leaves this loop" if kind != "grid" and around.kind == "for" and flow.jumps(around) else ""
    )


def _is_apart(p: Point, varying: Varying) -> bool:
    """Whether threads of a block or a role part at a statement."""
    return varying.parts(p) and not (p.kind == "mark" and p.stmt.attr_key == attributes.ONLY)


def _blocks(flow: Flow) -> Iterator[tuple[Point, Sequence[Point]]]:
    """Yield the launches of a program, each with the statements of its blocks."""
    for p in flow.points:
        if is_grid(p) and not (p.around is not None and is_grid(p.around)):
            inner = p
            while len(inner.parts[0]) == 1 and is_grid(inner.parts[0][0]):
                inner = inner.parts[0][0]
            yield p, inner.parts[0]


def _axes(launch: Point) -> dict[int, Var]:
    loops = [s for s in collect(launch.stmt, tirx.For) if role(s) == "grid"]
    return {int(annotation(s, attributes.AXIS)): s.loop_var for s in loops}


def _threads(launch: Point) -> int:
    loops = collect(launch.stmt, tirx.For)
    found = [s.annotations[attributes.THREADS] for s in loops if attributes.THREADS in (s.annotations or {})]
    return prod(int(nodes.as_int(n)) for n in found[0]) if found else 1


def _allocates(s: Stmt, buffer: BufferVar) -> bool:
    return isinstance(s, tirx.AllocBuffer) and bool(s.buffer.same_as(buffer))


def _when(run: Execution) -> str:
    """Return the trip counts and current iterations of the loops, for a message."""
    now = [f" in iteration {t} of {n} of the loop {p.stmt.loop_var}" for p, (t, n) in run.trips.items()]
    other = [p for p in sorted(run.block.loops, key=lambda p: p.order) if p not in run.trips and p.kind == "for"]
    counts = [f" for {_iterations(run.count(p))} of the loop {p.stmt.loop_var}" for p in other if p in run.counts]
    return ",".join([*now, *counts])


def _iterations(n: int) -> str:
    return "1 iteration" if n == 1 else f"{n} iterations"
