"""Common parts of the CUDA benchmarks: kernels, files, and interleaved device timing.

A machine with a GPU may lack the compiler, and one with the compiler a GPU, so each of them runs in three ways:

    python benchmarks/cuda_gemm.py                      compile and measure
    python benchmarks/cuda_gemm.py --export FOLDER      compile and write files; needs no GPU, driver or torch
    python benchmarks/cuda_gemm.py --artefacts FOLDER   load these files and measure; needs no TVM

All sides of a comparison are interleaved, so that a change of clocks affects all of them, and medians are compared.
Every kernel is checked first, on random data, with outputs full of NaN (or -1) before.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sides import Row

import tile_core as tile

Side = Callable[[], object]

_WINDOW_MS = 2.0  # least time of a side per round, which hides the host's part of a launch


@dataclass(frozen=True)
class Candidate:
    """A kernel to measure.

    Attributes
    ----------
    name
        What it is called in tables; also the name of its file.
    program
        Makes its program; not called where it is loaded from a file.
    options
        The backend's options that it is compiled with.
    """

    name: str
    program: Callable[[], Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def compiled(self, target: str) -> Any:
        """Return its kernel."""
        return tile.compile(self.program(), target=target, options=dict(self.options))


def options(parser: Any) -> None:
    """Add the options that all CUDA benchmarks have."""
    parser.add_argument("--target", default="", help="this machine's device by default; of files cuda:sm_90a")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write the kernels to files instead of measuring")
    parser.add_argument("--artefacts", type=Path, metavar="FOLDER", help="measure the kernels in these files")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=2.0, help="per comparison")
    parser.add_argument("--only", default="", help="only kernels whose name contains this")


def wanted(arguments: argparse.Namespace, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that the command line requests."""
    return [c for c in candidates if arguments.only in c.name]


def export(arguments: argparse.Namespace, candidates: Iterable[Candidate]) -> list[Row]:
    """Write candidates to files; return one row for each built one."""
    from tile_runtime.files.artefact import from_bytes

    rows: list[Row] = []
    arguments.export.mkdir(parents=True, exist_ok=True)
    for candidate in wanted(arguments, candidates):
        file = arguments.export / f"{candidate.name}.tile"
        kernel = candidate.compiled(arguments.target or "cuda:sm_90a")
        kernel.export(file)
        text = from_bytes(file.read_bytes(), file).text
        facts = {} if text.built is None else dict(text.built.facts)
        rows.append({
            "kernel": candidate.name, "registers": facts.get("registers"), "spill bytes": facts.get("spill_bytes"),
            "shared bytes": text.facts.shared_bytes, "file bytes": file.stat().st_size,
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def kernels(arguments: argparse.Namespace, candidates: Iterable[Candidate]) -> list[tuple[str, Any]]:
    """Return the candidates' names and kernels, compiled or loaded.

    A missing file is reported and skipped.
    """
    found: list[tuple[str, Any]] = []
    for candidate in wanted(arguments, candidates):
        if arguments.artefacts is None:
            found.append((candidate.name, candidate.compiled(arguments.target or "cuda")))
            continue
        file = arguments.artefacts / f"{candidate.name}.tile"
        if file.exists():
            found.append((candidate.name, tile.load(file)))
        else:
            print(f"left out: {file} is not there")
    return found


def device_of(torch: Any) -> str:
    """Return the device's name and versions; also enable full-precision float32 products."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def poisoned(torch: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Return a poisoned output."""
    return torch.full(tuple(shape), float("nan") if dtype.is_floating_point else -1, dtype=dtype, device="cuda")


def fault(torch: Any, found: Any, expected: Any, bound: Any) -> str:
    """Report the element furthest beyond its bound; empty if all are within."""
    torch.cuda.synchronize()
    error = (found.double() - expected).abs()
    outside = ~(error <= bound)  # NaN is outside
    if not bool(outside.any()):
        return ""
    at = int(torch.where(outside, error.nan_to_num(float("inf")), torch.zeros_like(error)).argmax())
    value, right = float(found.reshape(-1)[at]), float(expected.reshape(-1)[at])
    return f"{int(outside.sum())} of {found.numel()} elements, for example {at}: {value:g}, not {right:g}"


def medians(torch: Any, sides: Sequence[Side], seconds: float, least: int = 10) -> list[float]:
    """Return each side's median time in ms by device events, interleaved."""
    batches = [max(1, round(_WINDOW_MS / max(_once(torch, side, 3), 1e-3))) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    total = 0.0
    while len(times[0]) < least or total < seconds * 1e3:
        # Every other round is reversed, so that no side always follows the same one.
        for at in range(len(sides))[:: -1 if len(times[-1]) % 2 else 1]:
            spent = _once(torch, sides[at], batches[at])
            times[at].append(spent)
            total += spent * batches[at]
    return [statistics.median(found) for found in times]


def shuffled_medians(torch: Any, sides: Sequence[Side], rounds: int, seed: int = 0) -> list[float]:
    """Return each side's median time in ms by device events; each round has a random order of all sides."""
    batches = [max(1, round(_WINDOW_MS / max(_once(torch, side, 2), 1e-3))) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    source = random.Random(seed)
    for _ in range(rounds):
        for at in source.sample(range(len(sides)), len(sides)):
            times[at].append(_once(torch, sides[at], batches[at]))
    return [statistics.median(found) for found in times]


def _once(torch: Any, side: Side, count: int) -> float:
    """Return the mean time of a few runs in ms after a warm-up."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    side()
    begin.record()
    for _ in range(count):
        side()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / count


def compare(torch: Any, ours: Sequence[tuple[str, Side]], others: Sequence[tuple[str, Side]], seconds: float,
            work: float, unit: str) -> list[Row]:  # fmt: skip
    """Time our kernels and their references; return a row each, our best marked.

    Parameters
    ----------
    ours, others
        Names and sides; the first of the others is the one that ratios are taken to.
    work, unit
        What one run does, and the unit of that per second: operations and ``"TFLOP/s"``, bytes and ``"TB/s"``.
    """
    both = [*ours, *others]
    if not both:
        return []
    times = medians(torch, [side for _, side in both], seconds)
    reference = times[len(ours)] if others else None
    best = min(times[: len(ours)], default=None)
    rows: list[Row] = []
    for (name, _), ms in zip(both, times, strict=True):
        mine = len(rows) < len(ours)
        rows.append({
            "kernel": name, "ms": ms, unit: work / ms / 1e9, "ratio": None if reference is None else reference / ms,
            "": "best of ours" if mine and ms == best else "" if mine else "compared with",
        })  # fmt: skip
    return rows
