"""One day of serving a language model: ordinary programs beside the best library for each.

    python benchmarks/day.py [--only fp8] [--rounds 10] [--tiles 128x64x256,128x128x256] [--options JSON] [--json FILE]

The programs are those of ``serving_day_kernels.py``, as a user wrote them from the docs, and of ``day_programs.py``,
with default options. Each line tries a short list of tiles; all its kernels and libraries take turns in one run, in an
order that is drawn anew for each round; every kernel is checked first. ``--options`` compiles all kernels with other
options. Memory-bound programs are also measured beside a copy on the device of as many bytes.
"""

from __future__ import annotations

import functools
import json
import math
import multiprocessing
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import day_programs
import serving_day_kernels
from cuda_sides import Side, device_of, shuffled_medians
from day_peers import SETUPS, Setup
from guarded import each, guard, spoken
from sides import Row, run

import tile_core as tile

Tiles = tuple[int, ...]
Kernels = dict[str, tuple[Any, tuple[Any, ...]]]
"""Kernels and their tiles by name."""


@dataclass(frozen=True)
class Line:
    """A problem, and the kernels that are tried on it.

    Attributes
    ----------
    family
        The function of ``serving_day_kernels`` or ``day_programs``, and of `SETUPS` if ``data`` is empty.
    problem
        Its arguments without tiles; also those of the setup.
    tiles
        The rest of its arguments, for each kernel.
    data
        The function of `SETUPS`.
    more
        Its named arguments.
    packed
        Whether the weights ``W`` are in packed order.
    """

    family: str
    problem: tuple[int, ...]
    tiles: tuple[Tiles, ...]
    data: str = ""
    more: tuple[tuple[str, Any], ...] = ()
    packed: bool = False

    @property
    def name(self) -> str:
        """Family and sizes."""
        return f"{self.data or self.family} {' x '.join(map(str, self.problem))}"

    def compiled(self, tiles: Tiles, options: dict[str, Any]) -> Any:
        """Return a kernel."""
        module = serving_day_kernels if hasattr(serving_day_kernels, self.family) else day_programs
        program = getattr(module, self.family)(*self.problem, *tiles, **dict(self.more))
        program = tile.with_packed_weights(program, "W") if self.packed else program
        return tile.compile(program, target="cuda", options=options)


def lines() -> list[Line]:
    """Return all problems."""
    found: list[Line] = []
    for m, n, k in ((16, 6144, 4096), (64, 28672, 4096), (256, 6144, 4096), (256, 4096, 14336), (2048, 10240, 8192)):
        tiles = ((128, 256, 64, 256, 4), (128, 96, 64, 256, 6), (64, 128, 64, 128, 6), (64, 64, 128, 128, 6))
        few = ((16, 64, 128, 128, 5),) if m <= 16 else ((64, 224, 64, 128, 4),)
        found.append(Line("linear", (m, n, k), (*tiles, *few)))
    for s in (1024, 4096, 16384):
        found.append(Line("prefill", (1, 32, 8, s, 128), ((128, 128, 256), (128, 64, 256), (128, 192, 256))))
    for s, more in ((4096, ("window", 1024)), (16384, ("window", 1024)), (4096, ("softcap", 30.0))):
        tiles = ((128, 128, 256), (128, 64, 256), (128, 192, 256))
        found.append(Line("prefill", (1, 32, 8, s, 128), tiles, more[0], (more,)))
    found += gpt_and_gradients()
    for b, pages in ((16, 128), (64, 64), (4, 512), (128, 16)):
        tiles = tuple((splits, 128) for splits in (1, 2, 4, 8, 16))
        found.append(Line("paged_decode", (b, 32, 8, 128, 64, pages, b * pages), tiles))
    experts = (8, 14336, 4096, 8192), (64, 2048, 5120, 8192), (128, 768, 2048, 4096), (256, 4096, 7168, 4096)
    for e, n, k, rows in experts:
        tiles = ((128, 256, 64, 256, 4), (128, 256, 64, 384, 3), (128, 128, 64, 256, 4), (64, 128, 64, 128, 4))
        found.append(Line("grouped", (e, n, k, rows), tiles))
    for m in (1, 16, 64, 256):
        few = (
            (16, 64, 128, 128, 4, 4),
            (16, 128, 128, 128, 4, 4),
            (16, 64, 256, 128, 3, 4),
            (16, 128, 128, 256, 4, 1),
            (16, 64, 256, 128, 8, 1),
            (16, 64, 256, 128, 6, 2),
            (16, 64, 128, 128, 12, 1),
        )
        some = ((64, 64, 128, 128, 4, 2), (64, 64, 128, 128, 3, 2), (64, 128, 128, 256, 3, 2), (64, 64, 128, 128, 4, 4))
        many = (
            (256, 64, 64, 128, 4, 1),
            (128, 128, 64, 256, 4, 1),
            (256, 128, 64, 256, 4, 1),
            (128, 64, 64, 128, 4, 1),
        )
        tried = few if m <= 16 else some if m <= 64 else many
        for kind, group in (("w4a16", 128), ("zeros", 128), ("fp4", 32)):
            problem = (m, 8192, 8192, group)
            found += [Line(kind, problem, tried), Line(kind, problem, tried, f"{kind} packed", packed=True)]
    for m, n, k in ((4096, 4096, 4096), (4096, 7168, 2048), (8192, 8192, 8192), (4096, 24576, 1536)):
        tiles = tuple((m, n, t, s) for m, n, t in ((128, 128, 256), (64, 128, 128)) for s in (4, 6))
        found.append(Line("fp8_blocks", (m, n, k), tiles))
        tiles = ((128, 192, 128, 256, 4), (128, 256, 128, 256, 4), (128, 160, 128, 256, 4), (128, 128, 128, 256, 6))
        found.append(Line("fp8", (m, n, k), tiles, "fp8_rows", (("rows", True),)))
        found.append(Line("fp8", (m, n, k), tiles, "fp8_tensor", (("rows", False),)))
    for m, n in ((8192, 4096), (8192, 16384), (256, 131072)):
        found.append(Line("rms", (m, n), ((256,), (512,), (1024,))))
        found.append(Line("softmax", (m, n), ((256,), (512,), (1024,))))
    found += [Line("swiglu", (8192, n), ((128,), (256,))) for n in (14336, 4093)]
    return found


def gpt_and_gradients() -> list[Line]:
    """Return attention with sinks, and gradients of attention."""
    found: list[Line] = []
    for data, more in (("sinks", ()), ("sinks_window", (("window", 128),))):
        tiles = ((128, 128, 256), (128, 64, 256), (128, 128, 128), (64, 64, 128))
        found.append(Line("sinks", (1, 64, 8, 4096, 64), tiles, data, more))
    for b, h, g, s, d in ((1, 32, 8, 4096, 128), (1, 32, 8, 16384, 128), (2, 32, 8, 4096, 64)):
        wide = ((64, 128, 256, 2), (64, 128, 256, 3), (64, 64, 128, 1), (64, 64, 128, 2))
        narrow = ((64, 128, 256, 2), (64, 128, 256, 3), (128, 128, 256, 2), (64, 64, 128, 2), (128, 64, 128, 2))
        found.append(Line("backward", (b, h, g, s, d), wide if d > 64 else narrow))
    return found


@dataclass(frozen=True)
class Job:
    """A kernel to compile in another process."""

    line: Line
    tiles: Tiles
    options: str

    def run(self) -> str:
        """Compile it into the cache; return the reason if that is refused."""
        try:
            self.line.compiled(self.tiles, json.loads(self.options))
        except tile.TileError as error:
            return str(error).splitlines()[0]
        return ""


def kernels_of(
    line: Line, options: dict[str, Any], refused: dict[tuple[Line, Tiles], str]
) -> Kernels:  # fmt: skip
    """Return the kernels of a line that compile."""
    found: Kernels = {}
    for tiles in line.tiles:
        name = "x".join(map(str, (t for t in tiles if not isinstance(t, str))))
        if refused[line, tiles]:
            print(f"refused: {line.name} {name}: {refused[line, tiles]}", flush=True)
        else:
            found[name] = line.compiled(tiles, options), tiles
    return found


def checked(torch: Any, program: str, setup: Setup, kernels: Kernels) -> dict[str, Side]:
    """Return the kernels whose results are right."""
    found: dict[str, Side] = {}
    for name, (kernel, tiles) in kernels.items():
        once = functools.partial(setup.call, kernel, tiles)
        for output in setup.outputs:
            output.fill_(float("nan"))
        once()
        torch.cuda.synchronize()
        wrong = setup.wrong()
        if wrong:
            print(f"WRONG: {program} {name}: {wrong}", flush=True)
        else:
            found[name] = once
    return found


def working(torch: Any, program: str, sides: Mapping[str, Side]) -> dict[str, Side]:
    """Return the sides that run in this version of their library; print the reasons of the others."""
    found: dict[str, Side] = {}
    for name, side in sides.items():
        try:
            side()
            torch.cuda.synchronize()
            found[name] = side
        except Exception as error:
            print(f"left out: {program}, {name}: {type(error).__name__} {error}".splitlines()[0], flush=True)
    return found


def measured(torch: Any, program: str, setup: Setup, kernels: Kernels, rounds: int) -> Row | None:
    """Return the row of a program: its best kernel beside its best library."""
    ours, peers = checked(torch, program, setup, kernels), working(torch, program, setup.peers)
    both = {**ours, **peers, **working(torch, program, setup.beside)}
    if setup.unit == "TB/s":
        both["copy"] = copy_of(torch, setup.work)
    times = dict(zip(both, shuffled_medians(torch, list(both.values()), rounds), strict=True))
    peer = min(peers, key=lambda n: times[n], default="")
    ratios = {n: f" ({times[peer] / times[n]:.2f})" if peer and n in ours else "" for n in times}
    print(f"{program}: {', '.join(f'{n} {t:.4f}{ratios[n]}' for n, t in times.items())}", flush=True)
    if not ours:
        return None
    best = min(ours, key=lambda n: times[n])
    return {
        "program": program, "tiles": best, "ms": times[best], setup.unit: setup.work / times[best] / 1e9,
        "peer": peer, "peer's ms": times.get(peer), "ratio": times[peer] / times[best] if peer else None,
        "share of a copy's bandwidth": times["copy"] / times[best] if "copy" in times else None,
    }  # fmt: skip


def copy_of(torch: Any, traffic: float) -> Side:
    """Return a copy on the device that reads and writes as many bytes in total."""
    source, to = (torch.zeros(int(traffic) // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    return functools.partial(to.copy_, source)


def compiled(every: Iterable[Job], processes: int) -> dict[tuple[Line, Tiles], str]:
    """Compile kernels in a pool; return the refusals."""
    jobs, begin = list(every), time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        reasons = spoken(pool.map(Job.run, jobs))
    print(f"{len(jobs)} kernels after {time.perf_counter() - begin:.0f} s", flush=True)
    return {(job.line, job.tiles): reason for job, reason in zip(jobs, reasons, strict=True)}


def measure(arguments: Any) -> list[Row]:
    """Return one row per line: our best tiles beside the best peer."""
    wanted = [line for line in lines() if any(o in line.name for o in arguments.only.split(","))]
    if arguments.tiles:
        tiles = tuple(tuple(map(int, x.split("x"))) for x in arguments.tiles.split(","))
        wanted = [replace(line, tiles=tiles) for line in wanted]
    refused = compiled((Job(x, t, arguments.options) for x in wanted for t in x.tiles), arguments.processes)
    import torch

    print(device_of(torch))
    options = json.loads(arguments.options)

    def row(line: Line) -> Row | None:
        setup = SETUPS[line.data or line.family](torch, *line.problem)
        return measured(torch, line.name, setup, kernels_of(line, options, refused), arguments.rounds)

    rows = each(torch, {line.name: functools.partial(row, line) for line in wanted})
    for family in dict.fromkeys(x.data or x.family for x in wanted):
        ratios = [r["ratio"] for r in rows if r["program"].split()[0] == family and r["ratio"]]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{family}: geometric mean {mean:.3f}, least {min(ratios):.3f}")
    return rows


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=16, help="that compile")
    parser.add_argument("--only", default="", help="only lines whose name contains one of these, separated by commas")
    parser.add_argument("--tiles", default="", help="other tiles for all lines, such as 128x64x256,128x128x256")
    parser.add_argument("--options", default="{}", help="the options of all kernels, as JSON")


if __name__ == "__main__":
    guard(lambda: run("a day of serving on a GPU", measure, own_options))
