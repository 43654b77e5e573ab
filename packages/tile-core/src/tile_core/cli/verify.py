"""``tile verify``: check a kernel on random inputs and special values, at each level."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tile_core.cli.arguments import (
    Allow,
    Arguments,
    File,
    Options,
    Reference,
    RuntimeName,
    TargetText,
    read_arguments,
    read_options,
)
from tile_core.cli.console import AsJson, Verbose, console, print_json, show_error, waiting
from tile_core.errors import TileError
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.runtime.verify import VerifyReport

_MOST_SEED = 10**6
_NUMERICS = "numerics"
_Levels = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option("--level", metavar="LEVEL", help="Level of numerics: strict, standard or fast; all by default."),
]
_Seed = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=0, max=_MOST_SEED, help="Seed of the first run; a fresh one by default."),
]


@dataclass(frozen=True)
class _Run:
    """One run: how it was made, and its report or error."""

    level: str
    seed: int
    special: bool
    report: VerifyReport | None
    error: TileError | None

    @property
    def shown(self) -> str:
        level = f"numerics {self.level}, " if self.level else ""
        return f"{level}{'special values' if self.special else 'random values'}, seed {self.seed}"


def verify_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    runtime: RuntimeName = None,
    level: _Levels = None,
    seed: _Seed = None,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Random inputs for each level.")] = 2,
    special: Annotated[
        bool, typer.Option(help="Also check zeros, subnormals, large numbers, infinities and NaN.")
    ] = True,
    reference: Reference = None,
    allow: Allow = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Check a kernel against its reference semantics, on fresh random inputs and special values.

    Each level of numerics that the target has is compiled and judged by its own bounds. The status is 1 if a run finds
    a wrong or unwritten element, NaN or infinity without a cause in the inputs, or undefined behaviour.
    """
    from tile_core.cli.prepare import prepare
    from tile_core.cli.source import named_value

    own = None if reference is None else named_value(reference)
    options = read_options(option) or {}
    first = secrets.randbelow(_MOST_SEED - runs) if seed is None else seed
    found = []
    for one in _levels(target, level, options):
        chosen = {**options, _NUMERICS: one} if one else options
        prepared = prepare(file, target, read_arguments(arg), chosen or None, runtime)
        plan = [(first + n, False) for n in range(runs)] + ([(first, True)] if special else [])
        for number, with_special in plan:
            inputs = prepared.inputs(number, special=with_special)
            report, error = None, None
            with waiting("verifying"):
                try:
                    report = prepared.kernel.verify(*inputs.values, seed=number, reference=own, allow=allow or ())
                except TileError as failure:
                    error = failure
            found.append(_Run(one, number, with_special, report, error))
    if as_json:
        print_json([_json(run) for run in found])
    else:
        _show(prepared.kernel, inputs.sizes, found)
    if any(run.error for run in found):
        raise typer.Exit(1)


def _levels(target: str, given: list[str] | None, options: dict[str, object]) -> list[str]:
    """Return the levels to check; an empty name for a target without levels.

    Raises
    ------
    BadLevel
        For a level that does not exist, or a target without levels.
    """
    from tile_core.errors.cli import BadLevel
    from tile_core.numerics.levels import LEVELS
    from tile_core.plugins.contexts import make_context

    has_levels = hasattr(make_context(target, options or None).options, _NUMERICS)
    for one in given or ():
        if one not in LEVELS or not has_levels:
            legal = ", ".join(LEVELS) if has_levels else f"no --level for {target}"
            raise BadLevel(found=one, legal=legal)
    if _NUMERICS in options or not has_levels:
        return [""]
    return list(given or LEVELS)


def _show(kernel: Any, sizes: dict[str, int], found: list[_Run]) -> None:
    out = console()
    out.print(f"{kernel.signature} for {kernel.target}", markup=False)
    if sizes:
        out.print(f"sizes: {', '.join(f'{name} = {value}' for name, value in sizes.items())}", markup=False)
    for run in found:
        if run.report is None:
            out.print(f"FAILED  {run.shown}", markup=False)
            assert run.error is not None
            show_error(run.error)
        else:
            worst = max(run.report.outputs, key=lambda o: o.worst_error, default=None)
            error = "" if worst is None else f": largest error {worst.worst_error:.3g} in {worst.name}"
            out.print(f"equal   {run.shown}{error}", markup=False)
            for text in run.report.findings:
                out.print(f"        allowed: {text}", markup=False)
    failed = sum(run.error is not None for run in found)
    out.print(f"{failed} of {len(found)} runs failed" if failed else f"all {len(found)} runs passed")


def _json(run: _Run) -> dict[str, object]:
    outputs = [
        {"name": o.name, "elements": o.elements, "worst_index": list(o.worst_index), "worst_error": o.worst_error}
        for o in (run.report.outputs if run.report else ())
    ]
    error = None if run.error is None else {"code": run.error.code, "message": run.error.message}
    return {"level": run.level, "seed": run.seed, "special": run.special, "verified": outputs, "error": error}
