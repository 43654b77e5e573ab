"""Print the jobs that check the installed backends, as JSON.

::

    python tools/ci_matrix.py [--backend NAME] [--target TEXT] [--runtime NAME] [--python VERSION] ...
"""

from __future__ import annotations

import functools
import json
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from command import run_command

from tile_core.cli.console import Verbose, print_text
from tile_core.errors.base import TileError
from tile_core.errors.cli import BadPair, CommandError
from tile_core.errors.plugins import DamagedDistribution, DuplicateBackend, OutOfStep
from tile_core.errors.setup import RuntimeBroken
from tile_core.records import dataclass
from tile_runtime.compat.distributions import classifiers_of
from tile_runtime.errors.guess import hint

if TYPE_CHECKING:
    from tile_core.plugins.manager import Plugins
    from tile_core.target import Target

#: Jobs that a matrix may have where it is usually run.
LIMIT = 256

#: The files that the commands of a row write.
KIT_REPORT, FUZZ_REPORT = "tile-kit.xml", "tile-fuzz.json"

#: More programs than the fuzzer runs in any time: what ends it is ``--seconds``.
ENDLESS = 1_000_000

HOSTED = "ubuntu-latest"

_EXAMPLE = "driver=self-hosted,gpu"

Several = Optional[list[str]]  # noqa: UP045 - typer evaluates it on Python 3.10


class EmptyMatrix(CommandError):
    """A selection of targets, runtimes and Python versions without jobs."""

    code = "S315"
    template = "the matrix has no jobs: {what} {found!r} is not one of {known}"
    remedy = "{hint}"


class LargeMatrix(CommandError):
    """A matrix with more jobs than a service takes."""

    code = "S316"
    template = "the matrix has {found} jobs; expected at most {limit}"
    remedy = "choose among them with --target, --runtime and --python; this one has: {targets}"


@dataclass(frozen=True)
class Row:
    """One job.

    Attributes
    ----------
    name
        What it checks, in a few words.
    backend, distribution, target, runtime, python
        Which backend of which distribution, on which of its targets, run by what, in which Python. The runtime is
        ``text`` or ``build`` where nothing is launched: the source code is generated, or also compiled.
    device
        Whether it needs the target's device.
    runs_on
        Labels of the machine that runs it.
    kit, fuzz
        The command of the conformance kit, and of the fuzzer; the latter is empty where nothing is launched.
    """

    name: str
    backend: str
    distribution: str
    target: str
    runtime: str
    python: str
    device: bool
    runs_on: tuple[str, ...]
    kit: str
    fuzz: str


@dataclass(frozen=True)
class Choice:
    """The selection of a matrix: see the options of the command."""

    backends: Sequence[str] = ()
    targets: Sequence[str] = ()
    runtimes: Sequence[str] = ()
    pythons: Sequence[str] = ()
    runners: Mapping[str, str] = field(default_factory=dict)
    devices: bool = False
    part: str = ""
    seconds: int = 60
    jobs: int = 1


def ci_matrix(
    backend: Annotated[Several, typer.Option(help="Only these backends (all that are installed).")] = None,
    target: Annotated[Several, typer.Option(help="Only these targets (all that the backends list).")] = None,
    runtime: Annotated[
        Several, typer.Option(help="Only these: text, build, or runtimes by name (all that serve the target).")
    ] = None,
    python: Annotated[
        Several, typer.Option(help="Only these versions (all that the backend's package is made for).")
    ] = None,
    runner: Annotated[
        Several,
        typer.Option(
            metavar="RUNTIME=LABELS", help=f"Machine with a runtime's device, as {_EXAMPLE}; its jobs then too."
        ),
    ] = None,
    devices: Annotated[bool, typer.Option("--devices", help="Also all other jobs that need a device.")] = False,
    part: Annotated[str, typer.Option(metavar="K/N", help="Only the K-th of N parts of the kit in each job.")] = "",
    seconds: Annotated[int, typer.Option(help="How long the fuzzer runs in each job; 0 omits it.")] = 60,
    jobs: Annotated[int, typer.Option(help="Processes of each job.")] = 1,
    pretty: Annotated[bool, typer.Option("--pretty", help="Indent the JSON.")] = False,
    verbose: Verbose = False,
) -> None:
    """Print the CI jobs of the installed backends by target, runtime and Python, as JSON.

    The output is the value of a GitHub workflow's `strategy.matrix`. Each row has the commands that its job runs.
    Options that take several values may be repeated, or their values separated by commas.
    """
    from tile_core.plugins.manager import installed

    choice = Choice(
        backends=_split(backend), targets=_targets(target), runtimes=_split(runtime), pythons=_split(python),
        runners=_runners(runner), devices=devices, part=part, seconds=seconds, jobs=jobs,
    )  # fmt: skip
    rows = [vars(row) | {"runs_on": list(row.runs_on)} for row in matrix(installed(), choice)]
    print_text(json.dumps({"include": rows}, indent=2 if pretty else None))


def matrix(plugins: Plugins, choice: Choice) -> list[Row]:
    """Return the jobs for the installed backends.

    Parameters
    ----------
    plugins
        The backends.
    choice
        Which of the jobs.

    Raises
    ------
    EmptyMatrix
        A value of ``choice`` matches nothing.
    LargeMatrix
        There are more than ``LIMIT``.
    TileError
        A backend is broken.
    """
    targets = list(_targets_of(plugins, choice))
    runtimes = {text: _runtimes(plugins, target) for _, text, target in targets}
    known = {name: device for found in runtimes.values() for name, device in found}
    _require("runtime", (*choice.runtimes, *choice.runners), known)
    chosen = choice.runtimes or known
    wanted = {n for n in chosen if not known[n] or choice.devices or n in choice.runners}
    rows = [
        _row(distribution, text, target, runtime, device, python, choice)
        for distribution, text, target in targets
        for runtime, device in runtimes[text]
        if runtime in wanted
        for python in choice.pythons or pythons_of(distribution)
    ]
    if not rows:
        advice = "add --devices, or --runner RUNTIME=LABELS"
        raise EmptyMatrix(what="runtime", found=", ".join(chosen), known="the runtimes without a device", hint=advice)
    if len(rows) > LIMIT:
        raise LargeMatrix(found=len(rows), limit=LIMIT, targets=", ".join(runtimes))
    return rows


def pythons_of(distribution: str) -> tuple[str, ...]:
    """Return the Python versions that both a distribution and the core support by classifiers.

    A distribution that states none is made for those of the core; a core without metadata for the one that runs.
    """
    core = _classified("tile-core") or (".".join(platform.python_version_tuple()[:2]),)
    own = _classified(distribution)
    return tuple(version for version in core if version in own) if own else core


def _targets_of(plugins: Plugins, choice: Choice) -> Iterator[tuple[str, str, Target]]:
    """Yield the distributions, texts and values of the chosen targets.

    A text may name another target elsewhere.
    """
    offers = {info.name: info.distribution for info in plugins.targets()}
    _require("backend", choice.backends, plugins.names())
    for text in choice.targets:
        target = plugins.resolve_target(text)
        if not choice.backends or target.backend in choice.backends:
            yield offers[target.backend], text, target
    for name in () if choice.targets else choice.backends or plugins.names():
        manifest = plugins.manifest(name)
        for text in manifest.architectures or manifest.target_kinds:
            yield offers[name], text, plugins.resolve_target(text)


def _runtimes(plugins: Plugins, target: Target) -> list[tuple[str, bool]]:
    """Return the checks that a target's kernels can have, and whether they need its device."""
    from tile_core.abi.adapter import HOST_DEVICE
    from tile_core.plugins.runtimes import make_runtime, offered
    from tile_core.testing.compile_only import BUILD, TEXT, toolchain_of

    own = [(a.name, HOST_DEVICE not in a.devices) for a in plugins.runtimes(target) if getattr(a, "launches", True)]
    if any(not device for _, device in own):  # running it there checks its text too
        return own
    found = [(TEXT, False)]
    if _works(lambda: toolchain_of(plugins, target)):
        found.append((BUILD, False))
    made = {name: functools.partial(make_runtime, entries, target, plugins) for name, entries in offered().items()}
    shared = [name for name, make in made.items() if _works(make) and make().launches]
    return [*found, *((name, False) for name in shared), *own]


def _row(distribution: str, text: str, target: Target, runtime: str, device: bool, python: str, choice: Choice) -> Row:
    where = ["--tile-backend", text, "--tile-runtime", runtime]
    where += ["--tile-part", choice.part] if choice.part else []
    many = ["-n", str(choice.jobs), "--dist", "loadgroup"] if choice.jobs > 1 else []
    kit = ["python", "-m", "pytest", "-q", "--pyargs", "tile_core.testing", *where, *many, "--junitxml", KIT_REPORT]
    fuzz = ["python", "-m", "tile_core.testing.fuzz", "--target", text, "--runtime", runtime]
    fuzz += ["--count", str(ENDLESS), "--seconds", str(choice.seconds), "--limit", "60"]
    fuzz += ["--jobs", str(choice.jobs), "--json", FUZZ_REPORT]
    labels = choice.runners.get(runtime, f"self-hosted,{target.kind}" if device else HOSTED)
    return Row(
        name=f"{text}, {runtime}, Python {python}", backend=target.backend, distribution=distribution,
        target=text, runtime=runtime, python=python, device=device, runs_on=tuple(labels.split(",")),
        kit=shlex.join(kit), fuzz=shlex.join(fuzz) if choice.seconds and _launches(runtime) else "",
    )  # fmt: skip


def _runners(values: Sequence[str] | None) -> dict[str, str]:
    found = {}
    for value in values or ():
        name, equals, labels = value.partition("=")
        if not (name and equals and labels):
            raise BadPair(option="--runner", found=value, example=_EXAMPLE)
        found[name.strip()] = labels.strip()
    return found


def _launches(runtime: str) -> bool:
    from tile_core.testing.compile_only import MODES

    return runtime not in MODES


def _require(what: str, found: Sequence[str], known: Any) -> None:
    for value in found:
        if value not in known:
            advice = hint(value, sorted(known), "choose one of these", "'{}'")
            raise EmptyMatrix(what=what, found=value, known=", ".join(sorted(known)), hint=advice)


def _classified(distribution: str) -> tuple[str, ...]:
    lines = classifiers_of(distribution)
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in lines)
    return tuple(sorted((m[1] for m in found if m), key=lambda v: int(v.partition(".")[2])))


def _works(action: Any) -> bool:
    try:
        action()
    except (
        DuplicateBackend,
        OutOfStep,
        DamagedDistribution,
        RuntimeBroken,
    ):  # fewer jobs would not show that something is broken
        raise
    except TileError:
        return False
    return True


def _split(values: Sequence[str] | None) -> list[str]:
    return [value.strip() for text in values or () for value in text.split(",") if value.strip()]


def _targets(values: Sequence[str] | None) -> list[str]:
    """Split at commas, except before the options of a target: ``kind:arch,key=value``."""
    found: list[str] = []
    for value in _split(values):
        if "=" in value and found:
            found[-1] += f",{value}"
        else:
            found.append(value)
    return found


if __name__ == "__main__":
    sys.exit(run_command(ci_matrix))
