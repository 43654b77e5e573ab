"""``run``: execute a kernel's source on arrays, and report its results and faults."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.dtypes import dtype
from tile_core.emit.dialect import Dialect
from tile_core.errors.launch import DeviceAssertFailed
from tile_core.records import dataclass
from tile_emulator import build
from tile_emulator.compilers import find_compiler
from tile_emulator.errors import BadArguments, FaultFound, LaunchRefused
from tile_emulator.image import Array, Image, make_image
from tile_emulator.limits import RunLimits
from tile_emulator.process import Ended, launch_options, run_process
from tile_emulator.registers import differing, with_undefined
from tile_emulator.reports import Report, ReportReader
from tile_emulator.symbols import Symbols
from tile_runtime.texts.launch_grid import require_whole_clusters

Order = Literal["forward", "reverse", "random"]
Completion = Literal["early", "late"]

#: What to do about a race between blocks, which nothing orders within a launch.
_BETWEEN_BLOCKS = (
    "let each block write elements of its own, combine with T.atomic_add and its siblings, or use a second launch; "
)
_METADATA = {
    "advice": "create metadata with sparse.compress, the two indices of a group increase: verify() of the kernel for "
    "the CPU names an illegal word; ",
    "cause": "that does",
}
CHECKS = ("bounds", "race", "uninit", "align")

# Options of engine/core.h.
_COMPLETION = {"early": 0, "late": 1}
_ORDER = {"forward": 0, "reverse": 2, "random": 4}
_CHECK = {"bounds": 8, "race": 16, "uninit": 32, "align": 64}
_PROXIES = 128
_OTHER = 256  # other bytes in unwritten registers
MAX_THREADS = 13000  # of a cluster: the engine counts clock components in 16 bits


@dataclass(frozen=True)
class Stats:
    """Costs of a run.

    Attributes
    ----------
    compile_seconds, run_seconds
        Time to make the library (or to find it), and time of the process that ran it.
    cached
        Whether the library was there before.
    counters
        ``switches`` between threads, ``meetings`` of collectives, ``barriers`` (arrivals), checked ``accesses``,
        asynchronous ``operations``, ``blocks`` that ended; bytes of accesses to arrays and to shared memory:
        ``array_reads``, ``array_writes``, ``shared_reads``, ``shared_writes``. What is read and written in one step
        counts as written. Without any check accesses are not seen.
    met
        How many times each collective was executed by a group of threads, by its name.
    confined
        Whether the process could only compute: no other files, processes or network.
    """

    compile_seconds: float
    run_seconds: float
    cached: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    met: Mapping[str, int] = field(default_factory=dict)
    confined: bool = False


@dataclass(frozen=True)
class RunResult:
    """Results of a run.

    Attributes
    ----------
    outputs
        For each array that the kernel may write, by name: a new array of the caller's shape and element type. After a
        fault that ended the run it holds what was written until then.
    reports
        The faults that were found; empty if there were none.
    stats
        What it cost.
    printed
        Text that the kernel printed.
    """

    outputs: dict[str, Array]
    reports: tuple[Report, ...]
    stats: Stats
    printed: str = ""

    @property
    def ok(self) -> bool:
        """Whether no fault was found."""
        return not self.reports

    def check(self, kernel: str) -> RunResult:
        """Return itself, or raise ``FaultFound`` with the reports; ``DeviceAssertFailed`` for an assertion."""
        failed = next((r for r in self.reports if r.kind == "assertion"), None)
        if failed is not None:
            raise DeviceAssertFailed(message=failed.detail, where=failed.where)
        if self.reports:
            shown = "\n".join(str(report) for report in self.reports)
            where = next((r.where for r in self.reports if r.where is not None), None)
            facts = {"advice": _BETWEEN_BLOCKS} if "by another block" in shown else {}
            if any(report.kind == "metadata" for report in self.reports):
                facts = _METADATA
            raise FaultFound(kernel=kernel, count=len(self.reports), reports=shown, where=where, **facts)
        return self


def run(
    text: str,
    launch: LaunchFacts,
    args: Sequence[Any] | Mapping[str, Any],
    dialect: Dialect,
    *,
    checks: Iterable[str] = CHECKS,
    order: Order = "forward",
    completion: Completion = "early",
    seed: int = 0,
    limits: RunLimits | None = None,
) -> RunResult:
    """Execute a text.

    Parameters
    ----------
    text
        As it was emitted for the device.
    launch
        How to launch it.
    args
        One value per parameter, in order or by name: a NumPy array for a pointer, a number for a scalar. They are never
        written; what the kernel writes is in the result.
    dialect
        The model of the text's language.
    checks
        Checks to make, of ``CHECKS``; without any, the kernel is fast, and only accesses outside all arrays are found.
    order
        Which ready thread runs next; races are found in every order.
    completion
        When asynchronous operations take effect: ``"early"``, at their issue, exposes writes to what is still in use;
        ``"late"``, at the last legal moment, exposes missing waits.
    seed, limits
        Of the random order; what the run may use.

    Returns
    -------
    RunResult
        Faults of the kernel are reports in it.

    Raises
    ------
    SetupError
        There is no compiler, or the engine does not run here.
    NotModelled, LaunchRefused, BadArguments
        The dialect has no model of something in the text; the device would refuse the launch.
    """
    options, values = _options(checks, order, completion, dialect), _by_name(launch, args)
    arguments = make_image(launch, values, dialect)
    grid = _geometry(launch, values, dialect)
    settings = {
        **launch_options(limits or RunLimits()), "options": options, "cluster": math.prod(launch.cluster),
        "warp": dialect.warp, "seed": seed, "shared_bytes": launch.shared_bytes,
    }  # fmt: skip
    twice = bool(options & _CHECK["uninit"]) and with_undefined(dialect.prepare(text), launch.entry)[1]
    other = make_image(launch, values, dialect) if twice else contextlib.nullcontext()
    with arguments as image, other as second:
        job = {"grid": grid, "block": launch.block, "clusters": launch.cluster, "launch": settings}
        return _execute(text, launch, dialect, image, second, job, limits or RunLimits().holding(image.size))


def _execute(
    text: str, launch: LaunchFacts, dialect: Dialect, image: Image, other: Image | None, job: dict[str, Any],
    limits: RunLimits,
) -> RunResult:  # fmt: skip
    """Compile, run, and read the results."""
    compiler = find_compiler()
    begin = time.perf_counter()
    checked = bool(job["launch"]["options"] & sum(_CHECK.values()))
    with (
        build.engine(compiler) as (engine, _),
        build.kernel(compiler, text, launch, dialect, checked) as (library, cached),
    ):
        compiled = time.perf_counter()
        job = {**job, "engine": str(engine), "kernel": str(library)}
        ended = _run(job, image, limits)
        if other is not None and not ended.records:
            ended = _compared(ended, job, image, other, limits)
        reader = ReportReader(launch, image, text, Symbols(library))
        reports = tuple(reader.report(record) for record in ended.records)
        counters = {name: n for name, n in ended.end.items() if isinstance(n, int)}
        took, met = time.perf_counter() - compiled, ended.end.get("met", {})
        stats = Stats(compiled - begin, took, cached, counters, met, ended.confined)
        return RunResult(image.outputs(), reports, stats, ended.output)


def _run(job: dict[str, Any], image: Image, limits: RunLimits, watches: Sequence[tuple[int, int]] = ()) -> Ended:
    arrays = {"buffers": image.buffers, "args": image.args, "patches": image.patches, "watches": watches}
    return run_process({**job, **arrays}, image.file.fileno(), limits)


def _compared(ended: Ended, job: dict[str, Any], image: Image, other: Image, limits: RunLimits) -> Ended:
    """Run again with other register bytes, and report results that differ."""
    settings = job["launch"]
    fast = settings["options"] & ~sum(_CHECK.values()) | _OTHER
    second = _run({**job, "launch": {**settings, "options": fast}}, other, limits)
    watches = differing(image, other)
    if not second.records and not watches:
        return ended
    other.fill()
    whole = {**job, "launch": {**settings, "options": settings["options"] | _OTHER}}
    compared = _run(whole, other, limits, watches)
    return Ended(compared.records or second.records, ended.end, ended.output)


def _options(checks: Iterable[str], order: str, completion: str, dialect: Dialect) -> int:
    options = _PROXIES if dialect.proxies else 0
    for what, value, known in (
        *(("a check", check, _CHECK) for check in set(checks)),
        ("an order", order, _ORDER),
        ("a completion", completion, _COMPLETION),
    ):
        if value not in known:
            raise ValueError(f"{value!r} is not {what}; it is one of {', '.join(known)}")
        options |= known[value]
    return options


def _by_name(launch: LaunchFacts, args: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(args, Mapping):
        return dict(args)
    names = [p.name for p in launch.given]
    if len(args) != len(names):
        detail = f"{len(args)} arguments for {len(names)} parameters"
        raise BadArguments(kernel=launch.kernel, detail=detail, expected=", ".join(names), where=launch.where)
    return dict(zip(names, args, strict=True))


def _geometry(launch: LaunchFacts, values: Mapping[str, Any], dialect: Dialect) -> tuple[int, int, int]:
    """Return the grid, within the limits of the device."""
    integers = {
        p.name: int(values[p.name])
        for p in launch.params
        if p.kind == "scalar" and p.name in values and dtype(p.dtype).is_integer
    }
    grid = launch.blocks(integers)
    require_whole_clusters(launch, grid)
    cluster, limits = math.prod(launch.cluster), dialect.limits
    most_threads, most_bytes, most_blocks = limits.max_threads, limits.max_shared_bytes, limits.max_cluster
    for holds, what, expected, found in (
        (launch.threads <= most_threads, "the threads of a block", f"at most {most_threads}", launch.threads),
        (launch.shared_bytes <= most_bytes, "shared bytes of a block", f"at most {most_bytes}", launch.shared_bytes),
        (cluster <= most_blocks, "a cluster", f"at most {most_blocks} blocks", launch.cluster),
        (launch.threads * cluster <= MAX_THREADS, "the threads of a cluster", f"at most {MAX_THREADS}",
         launch.threads * cluster),
    ):  # fmt: skip
        if not holds:
            raise LaunchRefused(kernel=launch.kernel, what=what, expected=expected, found=found, where=launch.where)
    return grid
