"""Compare two checkouts' compile times of the same kernels, in processor time, interleaved.

    python benchmarks/compile_sides.py FOLDER [--targets cpu,metal] [--rounds 7] [--json FILE]

FOLDER is another checkout, for example of an older commit. Every round starts fresh processes for both sides, one right
after the other; the ratio of a row is the median of the rounds' ratios of this checkout to the other. The kernels are
the other checkout's examples. Both sides use this environment's Python, libraries and bytecode. ``first`` is a process
from its start until its only kernel is text; ``next`` is the fastest of several compilations of one more program, in a
process that has compiled each kernel before.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sides import Row, run

#: A kernel's module, function and arguments. All exist in the examples since the first commit that had three targets.
KERNELS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "GEMM": ("gemm", "matmul", (1024, 1024, 1024, False, False, "float16", "float32", 128, 128, 32)),
    "GEMM, sizes not of a tile": ("gemm", "matmul", (1000, 999, 77, False, True, "float16", "float32", 128, 64, 32)),
    "2:4 sparse GEMM": ("sparse_gemm", "matmul_sp", (1024, 1024, 1024)),
    "attention": ("flash_attention", "attention", (1, 4, 512, 512, 64, False)),
    "causal attention": ("flash_attention", "attention", (1, 4, 500, 512, 64, True)),
    "softmax": ("softmax", "softmax", (1024, 1000)),
    "RMS norm": ("rms_norm", "rms_norm", (1024, 1024, "float16")),
    "int4 GEMM": ("dequant_gemm", "dequant_matmul", (512, 512, 512)),
    "mixture of experts": ("moe", "grouped_matmul", (512, 8, 256, 256, 40)),
}
#: What a process does: ``which`` are the kernels, ``repeats`` how often each is compiled after the first time.
CODE = """
import importlib, json, sys, time
which, repeats, target, examples = json.loads(sys.argv[1])
sys.path.insert(0, examples)
import tile_core
from tile_core.compiler import lower
from tile_core.plugins.manager import installed
try:
    from tile_core.plugins.contexts import make_context
except ImportError:
    from tile_core.context import make_context
plugins = installed()

def once(module, function, arguments):
    program = getattr(importlib.import_module(module), function)(*arguments)
    start = time.process_time()
    lower(program, make_context(target, None, plugins=plugins), plugins, None)
    return time.process_time() - start

for kernel in which:
    once(*kernel)
first = time.process_time()
print(json.dumps([first, [min(once(*kernel) for _ in range(repeats)) for kernel in which] if repeats else []]))
"""


def seconds(side: Path, examples: Path, target: str, which: list[Any], repeats: int, bytecode: str) -> Any:
    """Return a fresh process's processor time to compile all once, then each kernel's."""
    folders = os.pathsep.join(str(folder) for folder in sorted(side.glob("packages/*/src")))
    here = {**os.environ, "PYTHONPATH": folders, "PYTHONPYCACHEPREFIX": bytecode}
    here.pop("PYTHONDONTWRITEBYTECODE", None)
    arguments = json.dumps([which, repeats, target, str(examples)])
    done = subprocess.run([sys.executable, "-c", CODE, arguments], capture_output=True, text=True, check=True, env=here)
    return json.loads(done.stdout)


def measure(arguments: Any) -> list[Row]:
    """Return a row for each target and kernel."""
    other = arguments.folder.resolve()
    here, examples = Path(__file__).resolve().parent.parent, other / "examples"
    rows = []
    with tempfile.TemporaryDirectory() as bytecode:
        for target in arguments.targets.split(","):
            rows += _rows(target, (here, other), examples, arguments.rounds, bytecode)
    return rows


def _rows(target: str, sides: tuple[Path, Path], examples: Path, rounds: int, bytecode: str) -> list[Row]:
    every, found = list(KERNELS.values()), {}
    # Another round, which counts for nothing, writes the bytecode of both sides.
    for round_number in range(rounds + 1):
        order = sides if round_number % 2 else sides[::-1]
        for side in order:
            times = {}
            for name in ("GEMM", "attention"):
                times[f"first compile: {name}"] = seconds(side, examples, target, [KERNELS[name]], 0, bytecode)[0]
            after = seconds(side, examples, target, every, 3, bytecode)[1]
            times |= {f"next compile: {name}": one for name, one in zip(KERNELS, after, strict=True)}
            if round_number:
                for name, one in times.items():
                    found.setdefault(name, ([], []))[sides.index(side)].append(one)
    return [_row(f"{target}: {name}", *pair) for name, pair in found.items()]


def _row(name: str, ours: list[float], theirs: list[float]) -> Row:
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    middle = statistics.median
    return {"what": name, "ms": 1e3 * middle(ours), "other, ms": 1e3 * middle(theirs), "ratio": middle(ratios)}


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="cpu,cuda:sm_80,metal")
    parser.add_argument("--rounds", type=int, default=7)


if __name__ == "__main__":
    run("compile times beside another checkout's", measure, options)
