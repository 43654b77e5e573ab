"""The content of a report as lines and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.numerics.levels import LEVELS
from tile_core.records import dataclass
from tile_core.reports.block import BlockFacts, LoopFacts, SharedFacts
from tile_core.reports.facts import Facts, OpFacts
from tile_core.reports.slow import PRODUCTS
from tile_core.runtime.bench import time_text
from tile_core.simt.memory.private_arrays import IN_REGISTERS
from tile_runtime.traces import cell_of, short_name

RIGHT = ("bytes", "time", "offset", "number")
"""Names of columns that are aligned to the right."""
Line = tuple[str, str]
"""Text, and its style on a console."""


@dataclass(frozen=True)
class Section:
    """A table of a report, with its title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def parts_of(facts: Facts) -> Iterator[Line | Section]:
    """Yield the lines and the tables of the report of some facts."""
    yield f"{facts.kernel} for {facts.target}", "bold"
    yield _launch_line(facts), ""
    options = ", ".join(f"{name}={value}" for name, value in facts.options.items())
    if options:
        yield f"options: {options}", ""
    if "numerics" in facts.options:
        level = str(facts.options["numerics"])
        yield f"numerics {level}: {LEVELS[level]}", ""
    if facts.regions:
        yield facts.regions, ""
    if facts.estimate is not None and facts.estimate.microseconds is not None:
        yield str(facts.estimate), ""
    for warning in facts.warnings:
        yield f"warning: {warning.text}", "yellow"
    for note in facts.notes:
        yield f"note: {note}", ""
    # The copies of a pipeline before the loop and inside it are one row.
    rows = dict.fromkeys(_op_row(op, facts.block is not None) for op in facts.ops)
    yield from _section("tile ops", ("line", "op", "variant", "reason"), list(rows))
    rejections = dict.fromkeys((_line(op.location), r.variant, r.reason) for op in facts.ops for r in op.rejected)
    yield from _section("better variants that were rejected", ("line", "variant", "reason"), list(rejections))
    if facts.block is None:
        memory = [(b.scope, b.name, f"{b.dtype}{list(b.shape)}", f"{b.bytes:,}") for b in facts.buffers]
        yield from _section("memory of a block", ("scope", "buffer", "elements", "bytes"), memory)
    else:
        yield from _block_tables(facts.block)
    if facts.shared_bytes:
        yield f"shared memory: {facts.shared_bytes:,} of {facts.shared_limit:,} bytes", ""
    if facts.block is not None:
        if facts.block.array_bytes > IN_REGISTERS and facts.block.reserved_bytes:
            where = f"{facts.block.reserved_bytes / 1e9:,.1f} GB of the largest device, whatever the grid"
            yield f"arrays of a thread: {facts.block.array_bytes:,} bytes; a launch reserves {where}", ""
        yield from _course(facts.block)
    built = [(n.replace("_", " "), f"{v:,}") for n, v in facts.built.items() if isinstance(v, int)]
    yield from _section("binary", ("of a thread or block", "number"), built)
    vectors = [(_line(v.location), ", ".join(map(str, v.lanes)) or "no common form") for v in facts.vectors]
    yield from _section("vector loops", ("line", "lanes"), vectors)
    passes = [(p.name, time_text(p.seconds)) for p in facts.passes]
    yield from _section("passes", ("pass", "time"), passes)
    yield from _section("building", ("step", "time"), [(p.name, time_text(p.seconds)) for p in facts.building])


def pipelined(loop: LoopFacts) -> str:
    """Return the outcome for a loop."""
    if loop.stages:
        return f"{loop.stages} stages of {', '.join(loop.buffers)}"
    return f"not pipelined: {loop.reason}" if loop.reason else f"{', '.join(loop.buffers)} through registers"


def _block_tables(block: BlockFacts) -> Iterator[Section]:
    """Yield the placement of a block's tiles."""
    fragments = [
        (
            f.name,
            f"{f.dtype}{list(f.shape)}",
            str(f.threads),
            str(f.registers),
            str(f.replicas),
            str(f.vector),
            f.digits,
        )
        for f in block.fragments
        if not f.recomputed
    ]
    columns = (
        "fragment",
        "elements",
        "threads",
        "registers per thread",
        "replicas",
        "vector width",
        "digits of each dimension",
    )
    yield from _section("fragments in registers", columns, fragments)
    computed = [(f.name, f"{f.dtype}{list(f.shape)}", f.recomputed) for f in block.fragments if f.recomputed]
    yield from _section("fragments that are computed where they are read", ("fragment", "elements", "reason"), computed)
    shared = [
        (f"{b.offset:,}", f"{b.bytes:,}", b.name, f"{b.dtype}{list(b.shape)}", _lines(b.first, b.last), b.why)
        for b in block.shared
    ]
    yield from _section("shared memory of a block", ("offset", "bytes", "buffer", "elements", "live", "reason"), shared)
    layouts = [(b.name, b.layout, _conflicts(b)) for b in block.shared if b.conflicts is not None]
    yield from _section(
        "layouts of shared memory", ("buffer", "layout", "16 bytes each of 8 rows at a column"), layouts
    )


def _course(block: BlockFacts) -> Iterator[Section]:
    """Yield pipelines, barriers and accesses of global memory."""
    loops = [
        (
            _line(x.location),
            x.name,
            pipelined(x),
        )
        for x in block.loops
    ]
    loops += [
        (_line(x.location), x.name, f"{name} is not prefetched: {why}") for x in block.loops for name, why in x.kept
    ]
    loops += [(_line(x.location), x.name, f"{name}: {note}") for x in block.loops for name, note in x.notes]
    yield from _section("pipelined loops", ("line", "loop", "result"), loops)
    steps = [(_line(x.location), x.name, line) for x in block.loops for line in x.schedule]
    yield from _section("schedules of pipelined loops", ("line", "loop", "step"), steps)
    lives = dict.fromkeys((_line(x.location), x.name, x.step, x.outcome) for x in block.accumulators)
    yield from _section("accumulators", ("line", "accumulator", "step", "result"), list(lives))
    rolled = [(_line(x.location), x.reason) for x in block.rolled]
    yield from _section("loops that are not unrolled", ("line", "reason"), rolled)
    barriers = [
        (
            _line(b.after) or "?",
            _line(b.before) or "?",
            b.hazard,
            b.source if b.source == b.sink else f"{b.source}, {b.sink}",
            b.role or "whole block",
        )
        for b in block.barriers
    ]
    yield from _section("inserted barriers", ("after", "before", "hazard", "buffers", "threads"), barriers)
    ordered = [(name, "explicit barriers of the program") for name in block.ordered]
    yield from _section("shared memory without inserted barriers", ("buffer", "ordered by"), ordered)
    accesses = [(_line(a.location), a.buffer, a.action, ", ".join(map(str, a.bytes))) for a in block.accesses]
    yield from _section("global memory", ("line", "buffer", "access", "width"), accesses)
    assumptions = [
        (p.name, f"{'its address' if p.is_address else 'its value'} is a multiple of {p.multiple}")
        for p in block.assumptions
    ]
    yield from _section("assumptions that each launch checks", ("name", "assumption"), assumptions)


def _conflicts(buffer: SharedFacts) -> str:
    return "no bank conflicts" if not buffer.conflicts else f"{buffer.conflicts} extra cycles"


def _lines(first: str, last: str) -> str:
    """Return two locations, the second as its line number if the file is the same."""
    a, b = _line(first), _line(last)
    file, _, number = b.rpartition(":")
    if a == b or not b:
        return a
    return f"{a}-{number}" if a.startswith(f"{file}:") else f"{a}-{b}"


def _launch_line(facts: Facts) -> str:
    grid = " x ".join(facts.grid) or "none"
    threads = " x ".join(map(str, facts.threads)) or "1"
    order = f", blocks {facts.rasterization}" if facts.rasterization else ""
    return f"grid {grid}{order}, threads {threads}, defined at {_defined(facts.where)}"


def _op_row(op: OpFacts, has_threads: bool) -> tuple[str, str, str, str]:
    why = [op.note] if op.note else []
    if op.addon:
        why.insert(0, f"from the add-on {op.addon}")
    if op.forced:
        why.append("requested by the program")
    if op.fallback and has_threads and op.op not in PRODUCTS:
        why.append("loops, distributed over the threads")
    elif op.fallback and not op.rejected:
        why.append("the only variant")
    elif op.fallback:
        why.append("plain loops; better variants rejected")
    return _line(op.location), op.source or op.op, op.variant, "; ".join(why)


def _defined(where: str) -> str:
    file, _, line = where.rpartition(":")
    return f"{cell_of(file) or file}:{line}" if file else where or "an unknown location"


def _line(where: str) -> str:
    """Return file name and line: the folder is in the first lines of the report."""
    file, _, line = where.rpartition(":")
    return f"{short_name(file)}:{line}" if file else where


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Section]:
    if rows:
        yield Section(title, columns, rows)
