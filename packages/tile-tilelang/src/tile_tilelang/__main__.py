"""``python -m tile_tilelang SCRIPT [ARGUMENTS]``: run a script written for TileLang on tile."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from tile_core.errors import TileError
from tile_tilelang.report import lines_of, noted, report
from tile_tilelang.running import also_for, compiled, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = _parser().parse_args(arguments)
    try:
        if given.report:
            for line in lines_of(report(given.report, given.target or "cuda:sm_90a", given.seconds, given.jobs)):
                print(line)
            return 0
        return _run(given)
    except TileError as error:
        print(f"error{error}", file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    with compiled() as kernels:
        outcome: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if given.outcome:
            outcome = noted(given.outcome, given.script, kernels, given.seconds)
        with outcome:
            run(given.script, given.arguments, given.target, given.runtime)
    refusals = [] if given.also is None else also_for(kernels, given.also)
    for refusal in refusals:
        print(refusal, file=sys.stderr)
    return 1 if refusals else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tile_tilelang", description="Run a script that imports tilelang, unmodified, on tile."
    )
    parser.add_argument("--target", help="compile all kernels for it: cpu, cuda, metal; --report tries several, A,B")
    parser.add_argument("--runtime", help="run all kernels by this runtime: emulator")
    parser.add_argument("--also", metavar="TARGET", help="also compile every kernel to text for this one")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--report", metavar="FOLDER", help="list which scripts of a folder compile; launch nothing")
    what.add_argument("script", nargs="?", help="path of the script")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a script of --report")
    parser.add_argument("--jobs", type=int, default=0, help="scripts of --report at a time; by default all cores")
    parser.add_argument("--outcome", help=argparse.SUPPRESS)  # where --report reads what became of a script
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    return parser


if __name__ == "__main__":
    sys.exit(main())
