"""The search: draws programs, runs them in a session, counts outcomes, reduces failures."""

from __future__ import annotations

import random
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings

from tile_core.errors import InternalError, TileError
from tile_core.errors.launch import TextRefused
from tile_core.errors.plugins import ProvidedElsewhere
from tile_core.records import dataclass
from tile_core.testing import indices, strategies
from tile_core.testing.case import Case, Unit
from tile_core.testing.data import poisoned, unharmed
from tile_core.testing.driver import driver
from tile_core.testing.run import Session, differences, load, referenced, shape_of
from tile_core.testing.strategies.mutants import MANY

#: Programs of one search: a long one repeats variations of earlier programs.
CHUNK_SIZE = 10
#: Expressions of one kernel.
EXPRESSIONS = 80
_PHASES = (Phase.generate, Phase.shrink)
_QUIET = [
    HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example,
]  # fmt: skip
#: Seconds that are spent to make a failing program small.
SHRINKING = 60.0

#: A mutant of these may legally never end, run for long, or assert a false fact: it is only compiled.
_NOT_RUN = re.compile(rf"while |T\.assume|T\.device_assert|T\.make_tensor|^ *(for|with) .*\b{MANY}\b", re.MULTILINE)

Note = Callable[[str], None]


class WrongProgram(AssertionError):
    """A program that computed something else than the references, or broke the compiler.

    Attributes
    ----------
    example
        Its number within the chunk.
    lost
        Whether a launch failed on a device: what this process launches later may fail for that alone.
    launched
        Whether no launch failed.
    """

    example: int = 0
    lost: bool = False
    launched: bool = True

    def __init__(self, report: str, launched: bool = True) -> None:
        super().__init__(report)
        self.launched = launched


class _Enough(BaseException):
    """The search for a smaller program has lasted long enough."""


@dataclass(frozen=True)
class Chunk:
    """A part of a search that is repeated by its numbers alone.

    Attributes
    ----------
    kind
        ``"programs"``, ``"mutants"`` or ``"indices"``.
    seed
        Of the choice of programs.
    count
        Programs, or expressions.
    only
        Name of one strategy; empty for all.
    alone
        Run only the program of this number, to see whether it fails by itself; -1 for all.
    """

    kind: str
    seed: int
    count: int
    only: str = ""
    alone: int = -1


def chunks(count: int, seed: int, mutated: float, only: str = "", expressions: int = 0) -> list[Chunk]:
    """Return the chunks of a search, legal programs and mutants shuffled."""
    few = round(count * mutated)
    found = [
        Chunk(kind, base * 1_000_003 + start, min(CHUNK_SIZE, total - start), only)
        for kind, base, total in (("programs", seed, count - few), ("mutants", seed + 1, few))
        for start in range(0, total, CHUNK_SIZE)
    ]
    random.Random(seed).shuffle(found)
    kernels = range(0, expressions, EXPRESSIONS)
    return found + [
        Chunk("indices", seed * 1_000_003 + start, min(EXPRESSIONS, expressions - start)) for start in kernels
    ]


def search(chunk: Chunk, session: Session, report: Callable[[str, int], None], note: Note = lambda text: None) -> None:
    """Run a chunk.

    Parameters
    ----------
    chunk
        What to run.
    session
        On which target.
    report
        Called with the counts of outcomes.
    note
        Called with the text of every program before it runs.

    Raises
    ------
    WrongProgram
        With the smallest program that fails, as a runnable kernel.
    """
    if chunk.kind == "indices":
        _search_indices(chunk, session, report, note)
        return
    attempts = _Attempts(chunk, session, report, note)
    strategy = (strategies.programs if attempts.legal else strategies.mutants)(chunk.only, target=session.target)

    @hypothesis.seed(chunk.seed)
    @settings(
        max_examples=chunk.count, deadline=None, database=None, phases=_PHASES, suppress_health_check=_QUIET,
        report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    @hypothesis.given(strategy)
    def each(unit: Unit) -> None:
        attempts.run(unit)

    try:
        each()
    except (Exception, _Enough):
        if not attempts.found:
            raise
        raise _wrong(min(attempts.found)[1], attempts.at, attempts.lost) from None


@dataclass
class _Attempts:
    """The attempts of a search, and ever smaller forms of the failing program.

    Attributes
    ----------
    found
        Length and report of each form that failed.
    since
        When the first one failed.
    at
        Number of the program that failed.
    lost
        Whether the device was lost with it.
    """

    chunk: Chunk
    session: Session
    report: Callable[[str, int], None]
    note: Note
    found: list[tuple[int, str]] = field(default_factory=list)
    since: float = 0.0
    at: int = -1
    lost: bool = False

    @property
    def legal(self) -> bool:
        return self.chunk.kind == "programs"

    def run(self, unit: Unit) -> None:
        if self.found and time.monotonic() - self.since > SHRINKING:
            raise _Enough
        if not self.found:
            self.at += 1
        if self.chunk.alone not in (-1, self.at):
            return
        self.note(unit.text())
        try:
            kind = (check if self.legal else check_mutant)(self.session, unit)
        except WrongProgram as error:
            self.since = self.since or time.monotonic()
            self.found.append((len(unit.text()), str(error)))
            self.lost = not error.launched and not self.session.alive()
            if self.lost or self.chunk.alone >= 0:
                raise _Enough from None
            raise
        if not self.found:
            self.report(kind, 1)


def _wrong(report: str, example: int, lost: bool) -> WrongProgram:
    wrong = WrongProgram(report)
    wrong.example, wrong.lost = example, lost
    return wrong


def check(session: Session, unit: Unit) -> str:
    """Run a legal program and compare every launch.

    Raises
    ------
    WrongProgram
        With the program's text and the failure.
    """
    cases = unit.cases()
    session.select(cases)
    outcomes = [session.run(case) for case in cases]
    for case, outcome in zip(cases, outcomes, strict=True):
        if outcome.kind == "wrong":
            raise WrongProgram(f"{outcome.detail}\n{driver(unit, case.launch, session.target.text)}", outcome.launched)
    if session.interpreted and not unit.illegal and not unit.reported:
        _second(unit)
    return outcomes[0].kind


def _second(unit: Unit) -> None:
    """Run the reference interpreter on the traced program: both oracles must agree."""
    try:
        program = load(unit.text(), "reference")
    except ProvidedElsewhere:  # a name of a package that is not installed: the program was skipped
        return
    except TileError as error:
        if error.code not in unit.refusals:
            raise WrongProgram(f"the reference: {error}\n\n{unit.text()}") from None
        return
    for name, launch in unit.launches.items():
        data = launch.data(np.random.default_rng(0))
        for part in unit.parts.values():
            try:
                arrays = referenced(program, [*unit.params, *part.params], data)
            except Exception:
                raise WrongProgram(f"the reference: {traceback.format_exc(limit=-4)}\n\n{unit.text()}") from None
            problems = differences(unit, Case(unit, next(iter(unit.parts)), name), data, arrays, data)
            if problems:
                report = "\n".join(["the two references differ; the interpreter has:", *problems, "", unit.text()])
                raise WrongProgram(report + driver(unit, name, "cpu"))


def check_mutant(session: Session, unit: Unit) -> str:
    """Compile a program that may be illegal, and run it if it is not.

    Raises
    ------
    WrongProgram
        If anything but an error of the catalogue comes out, a toolchain refuses the text, or memory around an array was
        written.
    """
    text = unit.text()
    params = [*unit.params, *(p for part in unit.parts.values() for p in part.params)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python's own doubts about what was exchanged
            program = load(text, "mutant")
        kernel = session.compile(program)
    except (InternalError, TextRefused) as error:  # of the text nothing is the program's own
        raise WrongProgram(f"{error}\n\n{text}") from None
    except (TileError, SyntaxError):  # the second is Python's own refusal
        return "refused"
    except Exception:
        raise WrongProgram(f"{traceback.format_exc(limit=-6)}\n\n{text}") from None
    if not session.launches:
        return "compiled"
    if _NOT_RUN.search(text):
        return "ran"
    for launch in unit.launches.values():
        data = launch.data(np.random.default_rng(0))
        tensors = [p for p in params if not p.of]
        arrays = {p.name: data[p.name] if p.name in data else poisoned(shape_of(p, data), p.dtype) for p in tensors}
        try:
            session.call(kernel, params, arrays)
        except InternalError as error:
            raise WrongProgram(f"{error}\n\n{text}") from None
        except TileError as error:
            if not session.alive():
                raise WrongProgram(f"the launch failed: {error}\n\n{text}", launched=False) from None
            return "refused"
        if not all(unharmed(arrays[p.name]) for p in tensors if p.out and p.name not in data):
            raise WrongProgram(f"memory around an output was written\n\n{text}")
    return "ran"


def _search_indices(chunk: Chunk, session: Session, report: Callable[[str, int], None], note: Note) -> None:
    """Run one kernel of many expressions; remove failing ones and run the others again."""
    k = indices.kernel(indices.Dice(random.Random(chunk.seed)), chunk.count, chunk.seed)

    def fails(k: indices.IndexKernel) -> str:
        unit = k.unit()
        note(unit.text())
        try:
            check(session, unit)
        except WrongProgram as error:
            return str(error)
        return ""

    kind = "right" if session.launches else "compiled"
    if not fails(k):
        report(kind, len(k.statements))
        return
    bad = indices.guilty(k, fails)
    left = replace(k, statements=tuple(s for s in k.statements if s not in bad.statements))
    if left.statements and not fails(left):
        report(kind, len(left.statements))
    raise WrongProgram(fails(indices.smallest(bad, fails)) or fails(bad))


def count_into(counts: Counter[str], say: Callable[[str], Any] | None = None) -> Callable[[str, int], None]:
    """Return a function that counts outcomes and reports progress after every hundred."""
    start = time.monotonic()

    def report(kind: str, number: int) -> None:
        before = counts.total()
        counts[kind] += number
        if say is not None and before // 100 != counts.total() // 100:
            say(f"{counts.total()} programs, {time.monotonic() - start:.0f} s: {dict(counts)}")

    return report
