"""One day of serving a language model: ordinary programs beside the best library for each.

    python benchmarks/day.py [--only fp8] [--rounds 10] [--options '{"persistent": "never"}'] [--json FILE]

The programs are those of ``serving_day_kernels.py``, as a user wrote them from the docs, with default options. Each
line tries a short list of tiles; all its kernels and libraries take turns in one run, in an order that is drawn anew
for each round; every kernel is checked first. ``--options`` compiles all kernels with other options.
"""

from __future__ import annotations

import functools
import json
import math
import multiprocessing
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import serving_day_kernels as programs
from cuda_sides import Side, device_of, shuffled_medians
from day_peers import SETUPS, Setup
from sides import Row, run

import tile_core as tile

Tiles = tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """A problem, and the kernels that are tried on it.

    Attributes
    ----------
    family
        The function of ``serving_day_kernels``, and of `SETUPS` if ``data`` is empty.
    problem
        Its arguments without tiles; also those of the setup.
    tiles
        The rest of its arguments, for each kernel.
    data
        The function of `SETUPS`.
    more
        Its named arguments.
    """

    family: str
    problem: tuple[int, ...]
    tiles: tuple[Tiles, ...]
    data: str = ""
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Family and sizes."""
        return f"{self.data or self.family} {' x '.join(map(str, self.problem))}"

    def compiled(self, tiles: Tiles, options: dict[str, Any]) -> Any:
        """Return a kernel."""
        program = getattr(programs, self.family)(*self.problem, *tiles, **dict(self.more))
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
    for b, pages in ((16, 128), (64, 64), (4, 512), (128, 16)):
        tiles = tuple((splits, 128) for splits in (1, 2, 4, 8, 16))
        found.append(Line("paged_decode", (b, 32, 8, 128, 64, pages, b * pages), tiles))
    experts = (8, 14336, 4096, 8192), (64, 2048, 5120, 8192), (128, 768, 2048, 4096), (256, 4096, 7168, 4096)
    for e, n, k, rows in experts:
        tiles = ((128, 256, 64, 256, 4), (128, 256, 64, 384, 3), (128, 128, 64, 256, 4), (64, 128, 64, 128, 4))
        found.append(Line("grouped", (e, n, k, rows), tiles))
    for m in (1, 16, 64, 256):
        few = ((16, 64, 128, 128, 4, 1), (16, 64, 128, 128, 4, 4), (16, 64, 256, 128, 3, 4), (16, 128, 128, 128, 4, 4))
        some = ((64, 64, 128, 128, 3, 2), (64, 128, 128, 256, 3, 2), (64, 64, 128, 128, 4, 4))
        many = (
            (256, 64, 64, 128, 4, 1),
            (128, 128, 64, 256, 4, 1),
            (256, 128, 64, 256, 4, 1),
            (128, 64, 64, 128, 4, 1),
        )
        found.append(Line("w4a16", (m, 8192, 8192, 128), few if m <= 16 else some if m <= 64 else many))
    for m, n, k in ((4096, 4096, 4096), (4096, 7168, 2048), (8192, 8192, 8192), (4096, 24576, 1536)):
        tiles = tuple((m, n, t, s) for m, n, t in ((128, 128, 256), (64, 128, 128)) for s in (4, 6))
        found.append(Line("fp8_blocks", (m, n, k), tiles))
    for m, n in ((8192, 4096), (8192, 16384), (256, 131072)):
        found.append(Line("rms", (m, n), ((256,), (512,), (1024,))))
        found.append(Line("softmax", (m, n), ((256,), (512,), (1024,))))
    found += [Line("swiglu", (8192, n), ((128,), (256,))) for n in (14336, 4093)]
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


def checked(
    torch: Any, line: Line, setup: Setup, options: dict[str, Any], refused: dict[Tiles, str]
) -> dict[str, Side]:
    """Return the right kernels of a line by their tiles."""
    found: dict[str, Side] = {}
    for tiles in line.tiles:
        name = "x".join(map(str, (t for t in tiles if not isinstance(t, str))))
        if refused[tiles]:
            print(f"refused: {line.name} {name}: {refused[tiles]}", flush=True)
            continue
        once = functools.partial(setup.call, line.compiled(tiles, options), tiles)
        for output in setup.outputs:
            output.fill_(float("nan"))
        once()
        torch.cuda.synchronize()
        wrong = setup.wrong()
        if wrong:
            print(f"WRONG: {line.name} {name}: {wrong}", flush=True)
        else:
            found[name] = once
    return found


def measured(torch: Any, line: Line, options: dict[str, Any], refused: dict[Tiles, str], rounds: int) -> Row | None:
    """Return the row of a line."""
    setup = SETUPS[line.data or line.family](torch, *line.problem)
    ours = checked(torch, line, setup, options, refused)
    both = {**ours, **setup.peers}
    times = dict(zip(both, shuffled_medians(torch, list(both.values()), rounds), strict=True))
    if not ours or not setup.peers:
        return None
    best, peer = min(ours, key=lambda n: times[n]), min(setup.peers, key=lambda n: times[n])
    print(f"{line.name}: {', '.join(f'{n} {t:.4f}' for n, t in times.items())}", flush=True)
    return {
        "program": line.name, "tiles": best, "ms": times[best], setup.unit: setup.work / times[best] / 1e9,
        "peer": peer, "peer's ms": times[peer], "ratio": times[peer] / times[best],
    }  # fmt: skip


def compiled(every: Iterable[Job], processes: int) -> dict[tuple[Line, Tiles], str]:
    """Compile kernels in a pool; return the refusals."""
    jobs, begin = list(every), time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        reasons = list(pool.map(Job.run, jobs))
    print(f"{len(jobs)} kernels after {time.perf_counter() - begin:.0f} s", flush=True)
    return {(job.line, job.tiles): reason for job, reason in zip(jobs, reasons, strict=True)}


def measure(arguments: Any) -> list[Row]:
    """Return one row per line: our best tiles beside the best peer."""
    wanted = [line for line in lines() if any(o in line.name for o in arguments.only.split(","))]
    refused = compiled((Job(x, t, arguments.options) for x in wanted for t in x.tiles), arguments.processes)
    import torch

    print(device_of(torch))
    rows: list[Row] = []
    for line in wanted:
        mine = {t: refused[line, t] for t in line.tiles}
        try:
            row = measured(torch, line, json.loads(arguments.options), mine, arguments.rounds)
        except Exception:
            traceback.print_exc()
            continue
        finally:
            torch.cuda.empty_cache()
        rows += [] if row is None else [row]
    for family in dict.fromkeys(x.data or x.family for x in wanted):
        ratios = [r["ratio"] for r in rows if r["program"].split()[0] == family]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{family}: geometric mean {mean:.3f}, least {min(ratios):.3f}")
    return rows


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=16, help="that compile")
    parser.add_argument("--only", default="", help="only lines whose name contains one of these, separated by commas")
    parser.add_argument("--options", default="{}", help="the options of all kernels, as JSON")


if __name__ == "__main__":
    run("a day of serving on a GPU", measure, own_options)
