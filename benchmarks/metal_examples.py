"""All examples on both Metal targets, run by the emulator: a page with what each takes of a threadgroup's limits.

``--only gemm`` runs some examples, ``--page FILE`` writes the page.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import tile_core as tile

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
TARGETS = ("metal", "metal:metal4")
_HEAD = """# Examples on Metal targets, {date}

Commit {commit}. Written by `benchmarks/metal_examples.py`; not edited.

Each example is compiled for both targets, unchanged, and passes its checks in the emulator: tiles are its defaults, or
those of `tile.tilings` where it calls that. Threadgroup memory and threads are the most of its kernels, of 32,768 bytes
and 1,024 threads. *Matrices* are the kernels with products on matrix instructions.

"""


def main() -> None:
    """Run the examples, and write the page that the command line requests."""
    parser = argparse.ArgumentParser(description="examples on Metal targets")
    parser.add_argument("--only", default="", help="examples whose names contain this")
    parser.add_argument("--page", type=Path, help="write a page of evidence")
    arguments = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    warnings.simplefilter("ignore")
    found = [_measured(p.stem) for p in sorted(EXAMPLES.glob("*.py")) if arguments.only in p.stem != "checks"]
    titles = "checks | kernels | matrices | threadgroup bytes | threads"
    lines = [f"| example | {' | '.join(f'`{t}`: {titles}' for t in TARGETS)} |", f"| --- |{' ---: |' * 10}", *found]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    head = _HEAD.format(date=datetime.date.today().isoformat(), commit=commit.stdout.strip())
    page = head + "\n".join(lines) + "\n"
    if arguments.page:
        arguments.page.write_text(page, encoding="utf-8")
    else:
        print(page)


def _measured(name: str) -> str:
    """Return the row of an example."""
    cells = [f"`{name}`"]
    for target in TARGETS:
        passed, texts = _run(name, target)
        assert passed, f"{name} has no checks"
        assert all(passed), f"{name} is wrong on {target}"
        matrices = sum("simdgroup_multiply_accumulate(" in t or "matmul2d<" in t for t in texts)
        memory = max(int(n) for t in texts for n in re.findall(r"smem\[(\d+)\]", t) or ["0"])
        threads = max(int(n) for t in texts for n in re.findall(r"max_total_threads_per_threadgroup\((\d+)\)", t))
        cells += [str(len(passed)), str(len(texts)), str(matrices), f"{memory:,}", str(threads)]
        print(" | ".join(cells), file=sys.stderr)
    return f"| {' | '.join(cells)} |"


def _run(name: str, target: str) -> tuple[list[bool], list[str]]:
    """Run an example's checks in the emulator; return their results and the distinct texts."""
    texts: dict[str, None] = {}
    compile_program = tile.compile

    def emulated(program: Any, target: Any = None, **options: Any) -> Any:
        kernel = compile_program(program, target, **{**options, "runtime": "emulator"})
        texts[str(kernel.source)] = None
        return kernel

    tile.compile = emulated
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name).main(target), list(texts)
    finally:
        tile.compile = compile_program


if __name__ == "__main__":
    main()
