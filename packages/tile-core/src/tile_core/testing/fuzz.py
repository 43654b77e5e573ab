"""The fuzzer: random tile programs on a target, compared with NumPy and with the plain meaning on the CPU.

``python -m tile_core.testing.fuzz --count 2000 --seed 1 --target cpu`` runs programs until the count is reached or
one fails; the failure is made as small as possible and printed as a kernel that anybody can run. A fifth of the
programs are mutants, which may be illegal: they must be refused by an error of the catalogue, or run.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings

from tile_core.errors import InternalError, TileError
from tile_core.testing import strategies
from tile_core.testing.case import Unit
from tile_core.testing.data import poisoned, unharmed
from tile_core.testing.run import Session, load

_PHASES = (Phase.generate, Phase.shrink)
#: Programs of one search.
_TOGETHER = 10


class WrongProgram(AssertionError):
    """A program that computed something else than NumPy, or broke the compiler."""


def fuzz(
    count: int, seed: int = 0, target: str = "cpu", runtime: str | None = None, *, mutated: float = 0.2,
    say: Callable[[str], None] | None = None,
) -> Counter[str]:  # fmt: skip
    """Run random programs.

    Parameters
    ----------
    count
        How many.
    seed
        Of the choice of programs.
    target, runtime
        What runs them.
    mutated
        Fraction of programs that may be illegal.
    say
        Called now and then with a line about the progress.

    Returns
    -------
    Counter
        How many were right, refused, or skipped.

    Raises
    ------
    WrongProgram
        With the smallest program that fails, as a runnable kernel.
    """
    session = Session(target, runtime, seed)
    counts: Counter[str] = Counter()
    start = time.monotonic()

    def told(kind: str) -> None:
        counts[kind] += 1
        if say is not None and counts.total() % 100 == 0:
            say(f"{counts.total()} programs, {time.monotonic() - start:.0f} s: {dict(counts)}")

    few = round(count * mutated)
    _search(strategies.programs(), count - few, seed, lambda unit: told(check(session, unit)))
    _search(strategies.mutants(), few, seed + 1, lambda unit: told(check_mutant(session, unit)))
    return counts


def check(session: Session, unit: Unit) -> str:
    """Run a legal program and compare every launch.

    Raises
    ------
    WrongProgram
        With the program's text and what is wrong.
    """
    cases = unit.cases()
    session.select(cases)
    outcomes = [session.run(case) for case in cases]
    for case, outcome in zip(cases, outcomes, strict=True):
        if outcome.kind == "wrong":
            raise WrongProgram(f"{outcome.detail}\n{_driver(unit, case.launch, session)}")
    return outcomes[0].kind


def check_mutant(session: Session, unit: Unit) -> str:
    """Compile a program that may be illegal, and run it if it is not.

    Raises
    ------
    WrongProgram
        If anything but an error of the catalogue comes out, or memory around an array was written.
    """
    text = unit.text()
    try:
        kernel = session.compile(load(text, "mutant"))
    except InternalError as error:
        raise WrongProgram(f"{error}\n\n{text}") from None
    except TileError:
        return "refused"
    except Exception:
        raise WrongProgram(f"{traceback.format_exc(limit=-6)}\n\n{text}") from None
    for launch in unit.launches.values():
        data = launch.data(np.random.default_rng(0))
        shape = (data["m"], data["n"])
        arrays = {p.name: data[p.name] if p.name in data else poisoned(shape, p.dtype) for p in unit.params}
        try:
            session._call(kernel, unit.params, arrays)
        except InternalError as error:
            raise WrongProgram(f"{error}\n\n{text}") from None
        except TileError:
            return "refused"
        if not all(unharmed(arrays[p.name]) for p in unit.params if p.out):
            raise WrongProgram(f"memory around an output was written\n\n{text}")
    return "ran"


def _driver(unit: Unit, launch_name: str, session: Session) -> str:
    """Lines that run the kernel on the failing data."""
    lines = [
        "",
        "# --- runs it:",
        "import numpy as np, ml_dtypes",
        f"kernel = tile.compile(main, target={session.target.text!r})",
    ]
    data = unit.launches[launch_name].data(np.random.default_rng(0))
    if data["m"] * data["n"] <= 400:
        for p in unit.params:
            if p.shape is None:
                lines.append(f"{p.name} = {data[p.name]}")
            elif p.out:
                lines.append(f"{p.name} = np.zeros({(data['m'], data['n'])}, {_kind(p.dtype)})")
            else:
                lines.append(f"{p.name} = np.array({data[p.name].tolist()}, {_kind(p.dtype)})")
        lines.append(f"kernel({', '.join(p.name for p in unit.params)})")
        lines += [f"print({p.name})" for p in unit.params if p.out]
    return "\n".join(lines)


def _kind(dtype: str) -> str:
    return "ml_dtypes.bfloat16" if dtype == "bfloat16" else f'"{dtype}"'


def _search(strategy: Any, count: int, seed: int, run: Callable[[Unit], None]) -> None:
    """Run ``count`` examples, in small searches of their own: a long one repeats variations of what it has seen."""
    quiet = [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ]
    for start in range(0, count, _TOGETHER):

        @hypothesis.seed(seed * 1_000_003 + start)
        @settings(
            max_examples=min(_TOGETHER, count - start),
            deadline=None,
            database=None,
            phases=_PHASES,
            suppress_health_check=quiet,
            report_multiple_bugs=False,
            print_blob=False,
        )
        @hypothesis.given(strategy)
        def attempt(unit: Unit) -> None:
            run(unit)

        attempt()


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer as a program; 1 if it found something."""
    parser = argparse.ArgumentParser(
        prog="python -m tile_core.testing.fuzz", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=200, help="programs (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of programs (0)")
    parser.add_argument("--target", default="cpu", help="target (cpu)")
    parser.add_argument("--runtime", default=None, help="one of its runtimes; the first by default")
    parser.add_argument("--mutated", type=float, default=0.2, help="fraction of programs that may be illegal (0.2)")
    given = parser.parse_args(arguments)
    try:
        counts = fuzz(given.count, given.seed, given.target, given.runtime, mutated=given.mutated, say=print)
    except WrongProgram as found:
        print(found)
        print(f"\nfound with --seed {given.seed} --target {given.target}")
        return 1
    print(f"{counts.total()} programs: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
