"""Check tile on a Mac: assumptions, 40 kernels beside MLX's, and the conformance suite.

It writes one page to send back, and one file of JSON.

python -m tile_metal.selftest               everything, on the GPU of this Mac, in about 5 minutes
python -m tile_metal.selftest --dry-run     the parts that run without a Mac: by the emulator, with small sizes

Each assumption is checked in its own process with a time limit, so that a crash or hang is a line of the report. The
report lists which statements of docs/metal.md hold on this Mac.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

import tile_core as tile
from tile_core.errors import TileError
from tile_core.plugins.manager import installed
from tile_core.plugins.runtimes import find_runtime
from tile_metal.testing import kernels
from tile_metal.testing.cases import Case, cases
from tile_metal.testing.probes import CLAIMS, PROBES, Left

REPORT = "metal-selftest"
PACKAGES = ("tile-core", "tile-metal", "tile-emulator", "mlx", "torch", "numpy", "apache-tvm")
MINUTES = 5.0
PROBE_SECONDS = 40.0
"""Limit of one probe: the first kernel of a process compiles for some seconds."""


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """The findings of a run; rows of part, name, outcome and detail."""

    machine: dict[str, str] = field(default_factory=dict)
    findings: list[tuple[str, str, str, str]] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    conformance: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, part: str, name: str, outcome: str, detail: str = "") -> None:
        """Add a finding, and print it."""
        self.findings.append((part, name, outcome, detail))
        print(f"{outcome:<6} {part}: {name} {detail.splitlines()[0] if detail else ''}".rstrip())

    def claims(self) -> Iterator[tuple[str, str, str]]:
        """Yield each statement of docs/metal.md, its verdict, and the evidence."""
        for claim, probes in CLAIMS:
            found = [(row[1], row[2]) for row in self.findings if row[0].startswith("assumption") and row[1] in probes]
            asked = [outcome for _, outcome in found if outcome != "left"]
            verdict = "not asked" if not asked else "yes" if set(asked) == {"ok"} else "NO"
            yield claim.replace("\n", " "), verdict, "; ".join(f"{name}: {outcome}" for name, outcome in found)

    @property
    def failed(self) -> int:
        """Number of findings that are wrong."""
        return sum(outcome not in ("ok", "left") for _, _, outcome, _ in self.findings)

    def markdown(self) -> str:
        """Return the page."""
        lines = ["# Self-test of tile on Metal", "", "| what | |", "| --- | --- |"]
        lines += [f"| {name} | {value} |" for name, value in self.machine.items()]
        lines += ["", "## Statements of docs/metal.md", "", "| statement | holds here | by |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in self.claims()]
        lines += ["", "## Findings", "", "| part | name | outcome | detail |", "| --- | --- | --- | --- |"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in self.findings]
        for library, found in self.conformance.items():
            lines += ["", f"## Conformance, {library}", "", "```", found["summary"], "```"]
        if self.timings:
            lines += ["", "## Speed", "", "| what | side | median | fastest |", "| --- | --- | --- | --- |"]
        for row in self.timings:
            for side, samples in row["seconds"].items():
                median, least = statistics.median(samples) * 1e6, min(samples) * 1e6
                lines.append(f"| {row['name']} | {side} | {median:.1f} us | {least:.1f} us |")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> Path:
        """Write the page and the file of JSON; return the page."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{REPORT}.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        page = folder / f"{REPORT}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        return page


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")[:500]


# --- what the backend takes for granted ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """The remaining time."""

    end: float

    def left(self, most: float) -> float:
        """Return the seconds that something may take; 0 if there are none."""
        return max(0.0, min(most, self.end - time.monotonic()))


def ask(name: str, adapter: Any) -> tuple[str, str]:
    """Run a probe in this process; return its outcome and remark."""
    try:
        return "ok", PROBES[name](adapter)
    except Left as reason:
        return "left", str(reason)
    except (AssertionError, TileError) as error:
        return "WRONG", str(error).strip()


def check_assumptions(report: Report, adapter: Any, names: Iterable[str] = PROBES) -> None:
    """Run probes on an adapter, in this process."""
    for name in names:
        report.add(f"assumption, {adapter.name}", name, *ask(name, adapter))


def check_apart(report: Report, runtime: str, names: Iterable[str], clock: Clock, command: list[str]) -> None:
    """Run probes on a runtime, each in its own process with a time limit."""
    for name in names:
        part, seconds = f"assumption, {runtime}", clock.left(PROBE_SECONDS)
        if not seconds:
            report.add(part, name, "left", "no time is left")
            continue
        try:
            done = subprocess.run([*command, "--probe", name, "--runtime", runtime], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=seconds)  # fmt: skip
        except subprocess.TimeoutExpired:
            report.add(part, name, "WRONG", f"did not end within {seconds:.0f} seconds")
            continue
        said = re.findall(r"^PROBE (\{.*\})$", done.stdout, re.MULTILINE)
        if done.returncode or not said:
            tail = (done.stderr.strip() or done.stdout.strip())[-1500:]
            report.add(part, name, "WRONG", f"the process ended with {done.returncode}: {tail}")
        else:
            answer = json.loads(said[-1])
            report.add(part, name, answer["outcome"], answer["detail"])


def answer(name: str, runtime: str) -> int:
    """Run one probe and print its outcome: what a process of `check_apart` does."""
    plugins = installed()
    adapter = find_runtime(plugins, plugins.resolve_target("metal"), runtime)
    outcome, detail = ask(name, adapter)
    print("PROBE " + json.dumps({"outcome": outcome, "detail": detail}))
    return 0


# --- the target ---------------------------------------------------------------------------------------------------


def target_here() -> str:
    """Return the target of ``auto`` on this Mac, or ``metal`` elsewhere.

    Speed and the conformance suite use it.
    """
    chosen = installed().resolve_target("auto").text
    return chosen if chosen.startswith("metal") else "metal"


# --- the conformance kit ------------------------------------------------------------------------------------------


def conformance(report: Report, runtime: str, part: str, folder: Path, seconds: float) -> None:
    """Run the suite in its own process, within the time, and keep summary and log."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "tile_core.testing", "--tile-backend", target_here(), "-q"]
    command += ["-p", "no:cacheprovider", "--tile-runtime", runtime, *(["--tile-part", part] if part else [])]
    if not seconds:
        report.add("conformance", runtime, "left", "no time is left")
        return
    log = folder / f"{REPORT}-conformance-{runtime}.log"
    with log.open("w+", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        try:
            code = str(process.wait(seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = ""
        file.seek(0)
        said = file.read()
    summary = re.search(r"=+ tile conformance.*", said, re.DOTALL)
    text = summary[0][-4000:] if summary else said[-4000:]
    report.conformance[runtime] = {"command": " ".join(command[1:]), "summary": text.strip(), "code": code}
    if code:
        report.add("conformance", runtime, "ok" if code == "0" else "WRONG", f"exit code {code}, {log.name}")
    else:
        dots = "".join(re.findall(r"^[.FEsxX]+(?=\s|$)", said, re.MULTILINE))
        outcome = "WRONG" if set(dots) & set("FE") else "ok" if dots else "left"
        detail = f"stopped after {seconds:.0f} seconds: {dots.count('.')} cases passed, {log.name}"
        report.add("conformance", runtime, outcome, detail)


# --- speed --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One side of a comparison: ``launch`` queues the work, ``wait`` waits for all of it.

    ``allocates`` is whether a launch allocates a new output.
    """

    name: str
    launch: Callable[[], object]
    wait: Callable[[], object]
    allocates: bool


def compare(
    sides: list[Side], *, warmup: int = 5, repeat: int = 20, launches: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:  # fmt: skip
    """Time sides against each other, fairly; return each side's samples in seconds per launch.

    All sides allocate their outputs or none does; each has the same number of launches before the first sample, the
    same number of samples and of launches per sample, and waits at the start and the end of each; samples are
    interleaved, so that all see the same state of the machine.
    """
    if len({side.allocates for side in sides}) > 1:
        kinds = ", ".join(f"{s.name}: {'allocates' if s.allocates else 'given'}" for s in sides)
        raise ValueError(f"outputs must be allocated by all sides or by none ({kinds})")
    if len({side.name for side in sides}) != len(sides):
        raise ValueError("sides have names of their own")
    for side in sides:
        for _ in range(warmup):
            side.launch()
        side.wait()
    found: dict[str, list[float]] = {side.name: [] for side in sides}
    for round_number in range(repeat):
        for i in range(len(sides)):
            side = sides[(round_number + i) % len(sides)]
            side.wait()
            start = clock()
            for _ in range(launches):
                side.launch()
            side.wait()
            found[side.name].append((clock() - start) / launches)
    return found


Sides = tuple[list[Side], Callable[[], Any], Callable[[], Any]]
"""The sides of a case, and functions that return the results of tile and of the other side as NumPy arrays."""


def mlx_sides(case: Case, arguments: list[Any]) -> Sides:
    """Return a case through MLX, and MLX's own function; both allocate."""
    import mlx.core as mx

    given = [on_mlx(mx, array) for array in arguments]
    kernel = tile.compile(case.make(), target=target_here(), runtime="mlx", out_idx=-1)

    def wait() -> None:
        mx.synchronize(mx.default_stream(mx.gpu))

    def back(array: Any) -> Any:
        return np.array(array.astype(mx.float32))

    sides = [
        Side("tile (mlx)", lambda: mx.async_eval(kernel(*given)), wait, True),
        Side("MLX", lambda: mx.async_eval(case.theirs(mx, *given)), wait, True),
    ]
    return sides, lambda: back(kernel(*given)), lambda: back(case.theirs(mx, *given))


def on_mlx(mx: Any, array: Any) -> Any:
    """Return a NumPy array as one of MLX, which takes no bfloat16 from NumPy."""
    is_bfloat = array.dtype.name == "bfloat16"
    return mx.array(array.astype("float32")).astype(mx.bfloat16) if is_bfloat else mx.array(array)


def emulated_sides(case: Case, arguments: list[Any]) -> Sides:
    """Return a case in the emulator and its reference, to test the measuring."""
    kernel = tile.compile(case.make(), target="metal", runtime="emulator", out_idx=-1)
    wide = [x if x.dtype == np.int32 else x.astype("float64") for x in arguments]
    sides = [
        Side("tile (emulator)", lambda: kernel(*arguments), lambda: None, True),
        Side("reference", lambda: case.reference(*wide), lambda: None, True),
    ]
    return sides, lambda: kernel(*arguments), lambda: case.reference(*wide)


SIDES: Mapping[str, Callable[[Case, list[Any]], Sides]] = {"mlx": mlx_sides, "emulator": emulated_sides}


def check_kernels(report: Report, runtime: str, chosen: Iterable[Case], clock: Clock, **how: Any) -> None:
    """Compile, run and check each case, then time it beside the other side."""
    for case in chosen:
        part = f"kernel, {runtime}"
        if not clock.left(1):
            report.add(part, case.name, "left", "no time is left")
            continue
        arguments = case.arguments()
        try:
            sides, ours, theirs = SIDES[runtime](case, arguments)
            wrong, other = (case.wrong(np.asarray(result()), arguments) for result in (ours, theirs))
            if wrong:
                report.add(part, case.name, "WRONG", wrong)
                continue
            seconds = compare(sides, **how)
        except (TileError, RuntimeError, ValueError) as error:  # MLX computes results, and reports errors, late
            report.add(part, case.name, "WRONG", str(error))
            continue
        report.timings.append({"name": case.name, "runtime": runtime, "seconds": seconds, **how})
        mine, its = (statistics.median(samples) for samples in seconds.values())
        remark = f"; {sides[1].name} is not within the tolerance: {other}" if other else ""
        detail = f"{mine * 1e6:.0f} us, {its / mine:.2f} times the speed of {sides[1].name}{remark}"
        report.add(part, case.name, "ok", detail)


def torch_rows(sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Side]]]:
    """Yield comparisons with torch.mps. Both sides are given their output."""
    import torch

    wait = torch.mps.synchronize
    for size in sizes:
        a, b = (torch.randn(size, size, device="mps", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        program = kernels.product(size, size, size, "float16")
        ours = tile.compile(program, target=target_here(), runtime="torch")
        bias = torch.empty(size, device="mps", dtype=torch.float16)
        yield (
            f"matmul float16 {size}",
            [
                Side("tile (torch)", partial(ours, a, b, bias, c), wait, False),
                Side("torch.mm", partial(torch.mm, a, b, out=c), wait, False),
            ],
        )
    x = torch.randn(sizes[-1] ** 2, device="mps")
    y = torch.empty_like(x)
    program = kernels.elements(x.numel(), "float32", lambda x, y: x * 2.0)
    twice = tile.compile(program, target=target_here(), runtime="torch")
    yield (
        f"scale float32 {x.numel()}",
        [
            Side("tile (torch)", lambda: twice(x, x, y), wait, False),
            Side("torch.mul", lambda: torch.mul(x, 2.0, out=y), wait, False),
        ],
    )


def benchmark(report: Report, runtime: str, sizes: tuple[int, ...], **how: Any) -> None:
    """Compare with the library of a runtime."""
    try:
        for name, sides in torch_rows(sizes):
            seconds = compare(sides, **how)
            report.timings.append({"name": name, "runtime": runtime, "seconds": seconds, **how})
            medians = ", ".join(f"{side} {statistics.median(s) * 1e6:.0f} us" for side, s in seconds.items())
            report.add(f"speed, {runtime}", name, "ok", medians)
    except TileError as error:
        report.add(f"speed, {runtime}", "kernels", "WRONG", str(error))


# --- the command --------------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return the properties of this machine for readers of the report."""
    from tile_metal import doctor

    known = {d.metadata["Name"].lower(): d.version for d in distributions() if d.metadata["Name"]}
    rows = {"system": f"{platform.platform()} {platform.machine()}", "Python": platform.python_version()}
    rows |= {name: known[name] for name in PACKAGES if name in known}
    rows["target"] = target_here()
    return rows | {check.name: f"{check.status}: {check.detail}" for check in doctor.checks()}


def runtimes() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the adapters of the libraries that launch here, and why others do not."""
    found, reasons = {}, {}
    for adapter in installed().runtimes(installed().resolve_target("metal")):
        if adapter.name != "metal":
            try:
                adapter.preferred("the self-test")
                found[adapter.name] = adapter
            except TileError as error:
                reasons[adapter.name] = str(error.facts["reason"])
    return found, reasons


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="no Mac: by the emulator, tiny sizes")
    parser.add_argument("--output", type=Path, default=Path(REPORT), help="folder of the report")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="parts that do not fit are skipped and listed")
    parser.add_argument("--part", default="", metavar="K/N", help="only a part of the conformance kit")
    parser.add_argument("--skip", nargs="*", default=(), choices=("conformance", "speed"), help="what to leave out")
    parser.add_argument(
        "--only", nargs="*", default=(), choices=tuple(PROBES), metavar="NAME", help="these assumptions"
    )
    parser.add_argument("--kernels", nargs="*", default=(), metavar="NAME", help="these kernels; by default all")
    parser.add_argument("--sizes", type=int, nargs="+", default=(1024, 2048), help="of the products through torch")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    parser.add_argument("--runtime", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run the command line."""
    given = options()
    if given.probe:
        return answer(given.probe, given.runtime)
    clock = Clock(time.monotonic() + 60 * given.minutes)
    found, reasons = runtimes()
    if given.dry_run:
        plugins = installed()
        found = {"emulator": find_runtime(plugins, plugins.resolve_target("metal"), "emulator")}
    elif not found:
        why = "; ".join(reasons.values())
        print(f"There is no Metal device here ({why}). Run this on a Mac with Apple silicon, or pass --dry-run.")
        return 0
    report = Report(machine())
    for name, why in reasons.items():
        report.add("library", name, "left", why)
    given.output.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tile_metal.selftest"]
    for name in found:
        check_apart(report, name, given.only or PROBES, clock, command)
    dry = given.dry_run
    for name in found:
        if "speed" in given.skip:
            continue
        how = {"warmup": 1, "repeat": 1, "launches": 1} if dry else {}
        if name in SIDES:
            chosen = [case for case in cases(dry) if not given.kernels or case.name in given.kernels]
            check_kernels(report, name, chosen, clock, **how)
        elif clock.left(1):
            benchmark(report, name, tuple(given.sizes))
    for name in found:
        if "conformance" not in given.skip:
            part = given.part or ("1/400" if dry else "")
            conformance(report, name, part, given.output, clock.left(60 * given.minutes / len(found)))
    page = report.write(given.output)
    print(f"\n{report.failed} findings are wrong. Please send {page} back: it has all details.")
    return 1 if report.failed else 0
