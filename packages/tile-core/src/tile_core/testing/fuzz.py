"""The fuzzer: random programs on a target, compared with NumPy and plain Python.

``python -m tile_core.testing.fuzz --count 2000 --seed 1 --target cpu`` runs programs of all strategies; a fifth of them
are mutants, which may be illegal: they must be refused by an error of the catalogue, or run. ``--indices 20000`` runs
index expressions, many to a kernel. What fails is made as small as possible and printed as a kernel that anybody can
run. A build or a run that uses more than ``--limit`` seconds of the processor is a failure too.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping

from tile_core.errors import TileError
from tile_core.pairs import pairs
from tile_core.plugins.manager import installed
from tile_core.runtime.files import write_named
from tile_core.testing.run import Session
from tile_core.testing.search import WrongProgram, check, check_mutant, chunks, count_into, search
from tile_core.testing.strategies import strategies_of
from tile_core.testing.watch import Summary, Watch

__all__ = ["WrongProgram", "check", "check_mutant", "fuzz", "main", "watched"]


def fuzz(
    count: int, seed: int = 0, target: str = "cpu", runtime: str | None = None, *, mutated: float = 0.2, only: str = "",
    expressions: int = 0, say: Callable[[str], None] | None = None,
) -> Counter[str]:  # fmt: skip
    """Run random programs in this process until one fails.

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
    only
        Name of one strategy; empty for all.
    expressions
        The number of index expressions in addition.
    say
        Called now and then with a line about the progress.

    Returns
    -------
    Counter
        How many were right, compiled, refused, or skipped.

    Raises
    ------
    WrongProgram
        With the smallest program that fails, as a runnable kernel.
    """
    session = Session(target, runtime, seed)
    counts: Counter[str] = Counter()
    report = count_into(counts, say)
    for chunk in chunks(count, seed, mutated, only, expressions):
        search(chunk, session, report)
    return counts


def watched(
    count: int, seed: int = 0, target: str = "cpu", runtime: str | None = None, *, mutated: float = 0.2, only: str = "",
    expressions: int = 0, jobs: int = 1, limit: float = 20.0, seconds: float = math.inf,
    options: Mapping[str, object] | None = None, say: Callable[[str], object] | None = None,
) -> Summary:  # fmt: skip
    """Run random programs in worker processes, and continue after a failure (see ``fuzz``).

    Parameters
    ----------
    jobs
        Processes.
    limit
        Seconds of the processor that a build or a run may take; more is a failure.
    seconds
        Start no further run this many seconds after the first one, regardless of ``count``.
    options
        Fields of the backend's options.
    """
    say = say or functools.partial(print, flush=True)
    watch = Watch(target, runtime, seed, jobs, limit, seconds, options)
    report = count_into(watch.summary.counts, say)
    return watch.run(chunks(count, seed, mutated, only, expressions), report, say)


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer as a program; return 1 on failures, 2 on set-up errors."""
    parser = _parser()
    try:
        return _run(parser, parser.parse_args(arguments))
    except TileError as error:
        print(error, file=sys.stderr)
        return 2


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    known = strategies_of(installed().resolve_target(given.target))
    if given.only and given.only not in known:
        parser.error(f"--only {given.only}: the strategies are {', '.join(known)}")
    if given.list:
        for name, (strategy, often) in known.items():
            print(f"{name:12} weight {often:2}  {_about(strategy)}")
        return 0
    os.environ.setdefault("TILE_VERIFY_IR", "1")  # for the processes that compile, too
    count = given.count if given.count is not None else 0 if given.indices else 200
    summary = watched(
        count, given.seed, given.target, given.runtime, mutated=given.mutated, only=given.only,
        expressions=given.indices, jobs=given.jobs, limit=given.limit, seconds=given.seconds,
        options=pairs("--option", given.option, "numerics=strict") or None,
    )  # fmt: skip
    table = summary.table()
    if given.json:
        where = {"target": given.target, "runtime": given.runtime or "its first runtime", "seed": given.seed}
        write_named(given.json, json.dumps({**where, **table}, indent=2))
    for name, (seconds, _) in sorted(summary.slowest.items()):
        print(f"slowest {name}: {seconds:.1f} s")
    print(f"{summary.counts.total()} programs in {summary.seconds:.0f} s: {table['counts']}")
    if summary.failures:
        print(
            f"found with --seed {given.seed} --target {given.target}" + (f" --only {given.only}" if given.only else "")
        )
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tile_core.testing.fuzz", description=about)
    parser.add_argument("--count", type=int, help="programs (200; 0 with --indices)")
    parser.add_argument("--indices", type=int, default=0, help="index expressions (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of programs (0)")
    parser.add_argument("--target", default="cpu", help="target (cpu)")
    parser.add_argument(
        "--runtime", default=None, help="one of its runtimes, the first by default; text or build: nothing is launched"
    )
    parser.add_argument("--mutated", type=float, default=0.2, help="fraction of programs that may be illegal (0.2)")
    parser.add_argument("--only", default="", help="one strategy instead of all, see --list")
    parser.add_argument("--list", action="store_true", help="list the strategies")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds of the processor that a build or a run may take (20)"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no chunk after this time (no bound)")
    parser.add_argument("--option", action="append", metavar="NAME=VALUE", help="an option of the target's backend")
    parser.add_argument("--json", default="", help="file for a summary")
    return parser


def _about(strategy: object) -> str:
    function = getattr(getattr(strategy, "wrapped_strategy", strategy), "definition", None)
    return (getattr(function, "__doc__", "") or "").strip().splitlines()[0] if function is not None else ""


if __name__ == "__main__":
    sys.exit(main())
