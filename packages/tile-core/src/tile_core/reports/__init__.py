"""Reports of the compiler's decisions about a kernel, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_runtime.traces import short_traces

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.reports.facts import Facts
    from tile_core.reports.report import ReportText
    from tile_core.runtime.kernel import Kernel
    from tile_core.target import Target


@short_traces
def explain(program: Program | Kernel, target: Target | str = "auto", options: object = None) -> ReportText:
    """Explain how a program is compiled for a target, without a device.

    Parameters
    ----------
    program
        The result of ``@T.prim_func``, or a compiled kernel.
    target
        A target or its text; ``"auto"`` is the best device of this machine.
    options
        The backend's options: an instance, a mapping of its fields, or ``None``.

    Returns
    -------
    ReportText
        Text. For each tile op its line, the selected variant, and the rejected ones with reasons; then grid, threads,
        memory, vector widths, and the passes and the builder's steps with their times. For a target with threads also
        the placement of tiles, pipelines, barriers, launch assumptions, and, if its toolchain is installed, facts of
        the binary. Several lines without colours; a notebook shows the same as tables.

    Raises
    ------
    KernelError
        The program is wrong.
    UnsupportedError
        The target cannot run it.
    """
    from tile_core.reports.report import ReportText

    return ReportText(explain_launches(program, target, options))


def report_json(program: Program | Kernel, target: Target | str = "auto", options: object = None) -> dict[str, Any]:
    """Return `explain` as JSON values; several launches are the list ``"launches"``."""
    return as_json(explain_launches(program, target, options))


def as_json(facts: list[Facts]) -> dict[str, Any]:
    """Return the facts of all launches as one value."""
    return facts[0].to_json() if len(facts) == 1 else {"launches": [one.to_json() for one in facts]}


def explain_facts(program: Program | Kernel, target: Target | str = "auto", options: object = None) -> Facts:
    """Like `explain`, as data, for a program of one launch."""
    (facts,) = explain_launches(program, target, options)
    return facts


def explain_launches(program: Program | Kernel, target: Target | str = "auto", options: object = None) -> list[Facts]:
    """Like `explain`, as data of each launch."""
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed
    from tile_core.reports.built import building
    from tile_core.reports.facts import estimate_of, gather
    from tile_core.reports.timing import timed
    from tile_core.runtime.kernel import Kernel
    from tile_core.runtime.settings import program_of

    plugins = installed()
    ctx = make_context(target, options, plugins=plugins)
    traced: Any = program_of("tile.explain", program.program if isinstance(program, Kernel) else program)
    plans = [timed(one, ctx, plugins) for one in traced.stages]
    return [gather(plan, ctx, building(plan.lowered, ctx, plugins), estimate_of(plan, ctx, plugins)) for plan in plans]
