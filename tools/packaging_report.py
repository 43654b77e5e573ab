"""Measure what a user installs: sizes of wheels, weight of environments, seconds of imports.

    uv run tools/packaging_report.py                 print the page
    uv run tools/packaging_report.py --write FILE    write it, for example docs/evidence/packaging-<date>.md

Everything is built and installed as in tests/packaging. Import times are those of the processor, so that other work on
the machine does not count: the least of several fresh processes, with byte code already written.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from distribution import Built, Environment, build, combinations, folders, outside, total

ROUNDS = 3
IMPORTS = {
    "`import tile_core`": "import tile_core",
    "`import tile_core.language`": "import tile_core.language",
    "`tile --help`": "from tile_core.cli.app import run; run(['--help'])",
    "all backends loaded": "import tile_core; tile_core.targets()",
    "`import tvm`": "import tvm",
}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page to a file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        text = page(Path(scratch))
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def page(scratch: Path) -> str:
    """Build and install everything below a folder, and return the page about it."""
    built = {name: build(path, scratch / "dist") for name, path in {**folders(), **outside()}.items()}
    made = {}
    for number, (what, names) in enumerate(combinations().items()):
        made[what] = Environment(scratch / str(number))
        made[what].install(*names, links=scratch / "dist")
    parts = (_head(), _wheels(built), _weights(made), _imports(made))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _head() -> str:
    day = datetime.datetime.now(tz=datetime.timezone.utc).date()
    return f"""# Sizes and import times, {day}

Written by `tools/packaging_report.py` with Python {platform.python_version()} on {platform.system()}
{platform.machine()} ({_processor()}). Packages are built as wheels and installed into fresh environments, third-party
packages at the versions of `requirements.lock`. A megabyte is 10^6 bytes, byte code is not counted. The tests in
`tests/packaging` run the demo in each of these environments.
"""


def _wheels(built: Mapping[str, Built]) -> str:
    rows = [
        (f"`{b.name}` {b.version}", _kilobytes(b.wheel.stat().st_size), _kilobytes(b.sdist.stat().st_size))
        for b in built.values()
    ]
    return "## What is published\n\n" + _table(("package", "wheel, kB", "sdist, kB"), rows)


def _weights(made: Mapping[str, Environment]) -> str:
    weights = {what: env.weights() for what, env in made.items()}
    rows = []
    for what, found in weights.items():
        ours = [n for n in found if n in (*folders(), *outside())]
        tvm = [n for n in found if n.startswith("apache-tvm")]
        numbers = [n for n in ("numpy", "ml-dtypes") if n in found]
        vendor = [n for n in found if n.startswith(("cuda-", "nvidia-", "pyopencl"))]
        rest = [n for n in found if n not in (*ours, *tvm, *numbers, *vendor)]
        sizes = (total(found, names) for names in (ours, tvm, numbers, vendor, rest, found))
        rows.append((what, str(len(found)), *map(_megabytes, sizes)))
    columns = ("installed", "packages", "ours, MB", "TVM", "NumPy, ml-dtypes", "vendor's", "others", "together, MB")
    alone = weights["core alone"]
    others = sorted(((size, n) for n, size in alone.items() if n not in folders() and not n.startswith("apache")))
    named = ", ".join(f"{n} {_megabytes(size)}" for size, n in reversed(others))
    return f"## What an environment weighs\n\n{_table(columns, rows)}\nThe core alone, besides TVM, in MB: {named}.\n"


def _imports(made: Mapping[str, Environment]) -> str:
    rows = [(what, *(f"{_best(env, code):.2f}" for code in IMPORTS.values())) for what, env in made.items()]
    empty = _best(next(iter(made.values())), "")
    title = "## Processor seconds of a fresh process\n\n"
    table = _table(("installed", *IMPORTS), rows)
    return f"{title}{table}\nA process that imports nothing takes {empty:.2f} s of these.\n"


def _best(env: Environment, code: str) -> float:
    """Return the least processor seconds of several processes, after one that writes byte code."""
    seconds = []
    for _ in range(ROUNDS + 1):
        before = os.times()
        done = env.run("-c", code)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        seconds.append(spent)
        if done.returncode:
            raise SystemExit(done.stderr)
    return min(seconds[1:])


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, rule, *rows))


def _kilobytes(size: int) -> str:
    return f"{size / 1e3:,.0f}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}" if size else "-"


def _processor() -> str:
    command = ["lscpu"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("Model name")), "unknown processor"
    )


if __name__ == "__main__":
    sys.exit(main())
