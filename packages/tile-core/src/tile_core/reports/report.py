"""A report as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tile_core.reports.facts import Facts, OpFacts, gather
from tile_core.reports.timing import SECONDS, timed
from tile_core.runtime.bench import time_text

if TYPE_CHECKING:
    from rich.console import Console

    from tile_core.context import Context
    from tile_core.passes.spine import Plan

#: Columns of a report that is made as a string.
WIDTH = 120


def report(plan: Plan, ctx: Context) -> str:
    """Return the report of a compiled plan as text without colours.

    Parameters
    ----------
    plan
        A plan that has run through all passes; they run once more if nobody timed them.
    ctx
        The compilation's context.
    """
    if SECONDS not in plan.notes:
        from tile_core.plugins.manager import installed

        plan = timed(plan.program, ctx, installed())
    return as_text(gather(plan, ctx))


def as_text(facts: Facts) -> str:
    """Return the report of some facts as text without colours."""
    from rich.console import Console

    out = io.StringIO()
    show(facts, Console(file=out, width=WIDTH, color_system=None, highlight=False, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def show(facts: Facts, console: Console) -> None:
    """Print the report of some facts.

    Parameters
    ----------
    facts
        The facts.
    console
        Where to; its width decides how tables are laid out.
    """
    from rich.text import Text

    console.print(Text(f"{facts.kernel} for {facts.target}", style="bold"))
    console.print(Text(_launch_line(facts)))
    options = ", ".join(f"{name}={value}" for name, value in facts.options.items())
    if options:
        console.print(Text(f"options: {options}"))
    _section(console, "tile ops", ("line", "op", "variant", "because"), [_op_row(op) for op in facts.ops])
    refusals = [(_line(op.place), r.variant, r.reason) for op in facts.ops for r in op.refused]
    _section(console, "better variants that refused", ("line", "variant", "reason"), refusals)
    memory = [(b.scope, b.name, f"{b.dtype}{list(b.shape)}", f"{b.bytes:,}") for b in facts.buffers]
    _section(console, "memory of a block", ("scope", "buffer", "elements", "bytes"), memory)
    if facts.shared_bytes:
        console.print(Text(f"shared memory: {facts.shared_bytes:,} of {facts.shared_limit:,} bytes"))
    vectors = [(_line(v.place), ", ".join(map(str, v.lanes))) for v in facts.vectors]
    _section(console, "vector loops", ("line", "lanes"), vectors)
    passes = [(p.name, time_text(p.seconds)) for p in facts.passes]
    _section(console, "passes", ("pass", "time"), passes)


def _launch_line(facts: Facts) -> str:
    grid = " x ".join(facts.grid) or "none"
    threads = " x ".join(map(str, facts.threads)) or "1"
    return f"grid {grid}, threads {threads}, defined at {facts.where or 'an unknown place'}"


def _op_row(op: OpFacts) -> tuple[str, str, str, str]:
    why = [op.note] if op.note else []
    if op.forced:
        why.append("named by the program")
    if op.fallback and not op.refused:
        why.append("plain loops; nothing else is offered")
    elif op.fallback:
        why.append("plain loops; better variants refused")
    return _line(op.place), op.source or op.op, op.variant, "; ".join(why)


def _line(place: str) -> str:
    """Return file name and line: the folder is in the first lines of the report."""
    file, _, line = place.rpartition(":")
    return f"{PurePath(file).name}:{line}" if file else place


def _section(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.print(Text(title, style="bold"))
    table: Any = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        right = column in ("bytes", "time")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
