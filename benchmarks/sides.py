"""Common parts of the benchmarks: interleaved timing, a table, and JSON.

Both sides of a comparison run in one process and interleaved, so that a slow moment of the machine affects both, and
the minimum of each is compared: disturbances only ever make a measurement slower.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

#: Least seconds of a side per round.
_WINDOW = 0.1


def example(name: str) -> Any:
    """Return a module of examples/: the kernels measured here are the ones shown there."""
    folder = str(Path(__file__).resolve().parent.parent / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def interleaved(*sides: Callable[[], object], seconds: float = 1.0, least: int = 5) -> list[float]:
    """Return the fastest run of each function, in seconds. Parameters are those of ``rounds_of``."""
    return [min(rounds) for rounds in rounds_of(*sides, seconds=seconds, least=least)]


def rounds_of(*sides: Callable[[], object], seconds: float = 1.0, least: int = 5) -> list[list[float]]:
    """Return each function's fastest run in each round, in seconds.

    Each round runs its side for a while: the threads of the other side's library spin for tens of milliseconds after
    its last run, which slows down the first runs of this one.

    Parameters
    ----------
    *sides
        What to time.
    seconds
        How long to go on, all sides together.
    least
        The fewest rounds.
    """
    best: list[list[float]] = [[] for _ in sides]
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < least or time.perf_counter() < end:
        # Every other round is reversed, so that no side always follows the same one.
        for at, side in list(enumerate(sides))[:: -1 if rounds % 2 else 1]:
            end_of_window = time.perf_counter() + _WINDOW
            runs, fastest = 0, float("inf")
            while runs < 3 or time.perf_counter() < end_of_window:
                start = time.perf_counter()
                side()
                fastest = min(fastest, time.perf_counter() - start)
                runs += 1
            best[at].append(fastest)
        rounds += 1
    return best


def paired(one: Callable[[], object], other: Callable[[], object], seconds: float) -> tuple[float, float, float]:
    """Return the ratio of two functions' processor times, and its 99 % interval.

    Both run right after each other, in either order, thousands of times, and the median of the ratios counts. What the
    machine does besides then disturbs single pairs, and the time that a process waits for a processor is not counted:
    differences of less than one percent show while other work runs. Functions should take a millisecond or less on one
    thread, and fit into the caches of a processor.
    """
    clock, ratios, end = time.process_time_ns, [], time.perf_counter() + seconds
    for _ in range(20):
        one()
        other()
    while len(ratios) < 100 or time.perf_counter() < end:
        first, second = (one, other) if len(ratios) % 2 else (other, one)
        begin = clock()
        first()
        first()
        middle = clock()
        second()
        second()
        times = middle - begin, clock() - middle
        mine, theirs = times if len(ratios) % 2 else times[::-1]
        ratios.append(mine / max(theirs, 1))
    found, rng = np.array(ratios), np.random.default_rng(0)
    medians = [np.median(rng.choice(found, len(found))) for _ in range(300)]
    return float(np.median(found)), float(np.quantile(medians, 0.005)), float(np.quantile(medians, 0.995))


def table(title: str, rows: Sequence[Row]) -> None:
    """Print rows with the keys of the first as columns.

    ``demand`` of a row is the required ratio or time.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_text(row.get(c)) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    print(title)
    for line in cells:
        print(
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        )
    print()


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 10 else f"{value:.0f}"
    return "" if value is None else str(value)


def demanded(value: float, least: float) -> str:
    """Return a cell with whether a ratio reaches its demand."""
    return f"{'met' if value >= least else 'MISSED'}: >= {least:g}"


def at_most(value: float, most: float) -> str:
    """Return a cell with whether a time stays below its demand."""
    return f"{'met' if value <= most else 'MISSED'}: <= {most:g}"


def run(
    title: str, measure: Callable[[argparse.Namespace], list[Row]], add: Callable[[Any], None] | None = None
) -> None:
    """Measure and print the rows that the command line requests."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    if add is not None:
        add(parser)
    arguments = parser.parse_args()
    rows = measure(arguments)
    table(f"{title} ({platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__})", rows)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"title": title, "rows": rows}, indent=1) + "\n", encoding="utf-8")
