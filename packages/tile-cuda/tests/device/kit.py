"""Collect evidence on a device: conformance suite, replays under compute-sanitizer, and a report.

::

    python kit.py conformance OUT                       # the kit with the device's own runtime
    python kit.py conformance OUT --option wgmma=always # the same with an option of the backend; may be repeated
    python kit.py replay OUT --recorded DIRECTORY       # launches that replay.py recorded
    python kit.py sanitizer OUT --recorded DIRECTORY    # the same under each tool of compute-sanitizer
    python kit.py report OUT > docs/evidence/cuda-h200-YYYY-MM-DD.md

Each step writes its results to OUT and can be run again; ``report`` needs no device. See `docs/evidence/README.md`
for more. A fault of a kernel takes the context of its process with it, so cases that report one, and those of a process
that died, are run again in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
KINDS = ("right", "refused", "skipped", "wrong")
NODE = "tile_core.testing.test_conformance::test_case[{}]"
#: A context keeps its largest kernel's local memory reserved: processes beside it may find none left.
_LOST = re.compile(r"\[K438\]|crashed while running|Timeout|CUDA_ERROR_OUT_OF_MEMORY")
_MOST_ALONE = 60
_AT_ONCE = 4
_CASE_SECONDS = 150


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make evidence on a device.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("conformance", "replay", "sanitizer", "report"):
        command = commands.add_parser(name)
        command.add_argument("out", type=Path)
        if name == "conformance":
            command.add_argument("--target", default="cuda:sm_90a")
            command.add_argument("--workers", type=int, default=12)
            command.add_argument("--seed", type=int, default=0)
            command.add_argument("-k", dest="cases", default="", help="cases by name, as pytest's -k")
            command.add_argument("--seconds", type=int, default=540, help="stop then, and report what has run")
            command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the backend")
        if name in ("replay", "sanitizer"):
            command.add_argument("--recorded", type=Path, required=True)
            command.add_argument("--only", action="append", default=[], metavar="PATTERN")
        if name == "sanitizer":
            command.add_argument("--tool", action="append", choices=TOOLS, help="may be repeated; all by default")
            command.add_argument("--seconds", type=int, default=540, help="for each tool")
        if name == "report":
            command.add_argument("--commit", default="", help="by default that of this folder, or of the recording")
    given = parser.parse_args(arguments)
    if given.command == "report":
        print(page(given.out, given.commit))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    _write(given.out / "machine.json", machine())
    return {"conformance": conformance, "replay": replay, "sanitizer": sanitizer}[given.command](given)


def conformance(given: argparse.Namespace) -> int:
    """Run the kit, and rerun possibly affected cases in processes of their own."""
    out, begin = given.out, time.monotonic()
    target = ["--tile-backend", given.target, "--tile-seed", str(given.seed)]
    target += [f"--tile-option={option}" for option in given.option]
    name = "-".join(["kit", *(re.sub(r"\W+", "_", option) for option in given.option)])
    chosen = ["-k", given.cases] if given.cases else []
    spread = ["-n", str(given.workers), "--dist", "loadgroup"]
    first = _pytest(out / name, ["--pyargs", "tile_core.testing", *spread, *target, *chosen], given.seconds)
    results = dict(read_junit(out / f"{name}.xml"))
    if not results:
        log = (out / f"{name}.log").read_text(errors="replace").splitlines()
        raise SystemExit("\n".join(["no case was run; the end of what pytest said:", *log[-20:]]))
    units: dict[str, list[str]] = defaultdict(list)
    for case, (kind, _, detail) in results.items():
        if kind == "wrong" and _LOST.search(detail):
            units["/".join(case.split("/")[:2])].append(case)
    left = list(units.items())[:_MOST_ALONE]
    rest = given.seconds - (time.monotonic() - begin)
    if left and rest > 0:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for found in pool.map(lambda x: _alone(out, x[0], x[1], target, begin + given.seconds), left):
                results.update(found)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, op, _ in results.values():
        counts[op][kind] += 1
    wrong = {case: detail for case, (kind, _, detail) in results.items() if kind == "wrong"}
    record = {
        "target": given.target, "options": given.option, "seed": given.seed, "seconds": round(time.monotonic() - begin),
        "finished": first != 124, "alone": len(left), "counts": counts, "wrong": wrong,
        "refused": dict(Counter(_reason(d) for k, _, d in results.values() if k == "refused")),
        "instructions": dict(instructions_of(out / f"{name}.xml")),
    }  # fmt: skip
    _write(out / f"conformance{name.removeprefix('kit')}.json", record)
    print(conformance_text(record))
    return 1 if wrong or first == 124 else 0


def replay(given: argparse.Namespace) -> int:
    """Replay recorded launches between guards."""
    command = [*_replay(given), *_only(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (given.out / "replay.txt").write_text(done.stdout + done.stderr)
    print(done.stdout + done.stderr)
    return done.returncode


def sanitizer(given: argparse.Namespace) -> int:
    """Replay recorded launches under the tools of compute-sanitizer."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        raise SystemExit("compute-sanitizer is not on the path; it is part of the CUDA toolkit")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    results: dict[str, Any] = {}
    for tool in given.tool or TOOLS:
        begin = time.monotonic()
        command = [found, "--tool", tool, "--error-exitcode", "9", *_replay(given), "--exact", *_only(given)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=given.seconds)
            text, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as error:
            text, code = _text(error.stdout) + _text(error.stderr), 124
        (given.out / f"{tool}.txt").write_text(text)
        summary = [line.strip("= \n") for line in text.splitlines() if re.search(r"(ERROR|RACECHECK) SUMMARY", line)]
        results[tool] = {"code": code, "seconds": round(time.monotonic() - begin), "summary": " ".join(summary)}
        print(f"{tool}: exit {code}, {results[tool]['summary'] or 'no summary'}, {results[tool]['seconds']} s")
        _write(given.out / f"{tool}.json", {**results[tool], "version": (version.split("Version ") + [""])[1].strip()})
    return 0 if all(x["code"] == 0 for x in results.values()) else 1


def read_junit(path: Path) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Return cases of the kit: name, and outcome, op and detail."""
    if not path.exists():
        return
    for item in ElementTree.parse(path).iter("testcase"):
        match = re.match(r"test_case\[(.*)\](@[^]]*)?$", item.get("name", ""))
        if match is None:
            continue
        properties = {p.get("name"): p.get("value", "") for p in item.iter("property")}
        op = properties.get("tile_op") or match[1].split("/")[0]
        problem = item.find("failure") if item.find("failure") is not None else item.find("error")
        if problem is not None:
            detail = (problem.get("message") or "") + "\n" + (problem.text or "")
            yield match[1], ("wrong", op, detail.strip())
            continue
        kind = properties.get("tile_outcome") or ("skipped" if item.find("skipped") is not None else "right")
        yield match[1], (kind, op, properties.get("tile_refusal") or "")


def instructions_of(path: Path) -> Counter[str]:
    """Return the number of right cases per instruction, as `instructions` noted."""
    found: Counter[str] = Counter()
    if path.exists():
        for item in ElementTree.parse(path).iter("testcase"):
            properties = {p.get("name"): p.get("value", "") for p in item.iter("property")}
            if properties.get("tile_outcome") == "right":
                found.update((properties.get("tile_instructions") or "").split())
    return found


def page(out: Path, commit: str = "") -> str:
    """Return the evidence in a folder as a page."""
    facts = _read(out / "machine.json")
    kits, replayed = sorted(out.glob("conformance*.json")), out / "replay.txt"
    day = facts.get("day", "")
    lines = [f"# {facts.get('device', 'A device')}, {day}", "", "| | |", "| --- | --- |"]
    facts = {**facts, "commit": commit or facts.get("commit", "")}
    lines += [f"| {name} | {value} |" for name, value in facts.items() if name != "day" and value]
    for kit in map(_read, kits):
        options = "".join(f", `{option}`" for option in kit.get("options", ()))
        lines += ["", f"## Conformance kit{options}", "", *conformance_text(kit, markdown=True).splitlines()]
    if replayed.exists():
        lines += ["", "## Replayed launches", "", "```text", replayed.read_text().strip(), "```"]
    tools = [(tool, _read(out / f"{tool}.json")) for tool in TOOLS]
    if any(found for _, found in tools):
        version = next(found["version"] for _, found in tools if found)
        lines += ["", "## compute-sanitizer", "", f"Version {version}, over the replayed launches with `--exact`.", ""]
        lines += ["| tool | exit | summary | seconds |", "| --- | ---: | --- | ---: |"]
        lines += [f"| {t} | {f['code']} | {f['summary'] or '-'} | {f['seconds']} |" for t, f in tools if f]
    return "\n".join(lines)


def conformance_text(record: dict[str, Any], *, markdown: bool = False) -> str:
    """Return the table of the suite with wrong and refused cases."""
    rows = [[op, *(str(counts.get(k) or "-") for k in KINDS)] for op, counts in sorted(record["counts"].items())]
    total: Counter[str] = sum((Counter(c) for c in record["counts"].values()), Counter())
    rows.append(["all ops", *(str(total[k] or "-") for k in KINDS)])
    state = "" if record["finished"] else ", STOPPED before the end"
    lines = [f"Target `{record['target']}`, seed {record['seed']}, {record['seconds']} s{state}; "
             f"{record['alone']} kernels were run again alone: contexts were lost, or memory.", ""]  # fmt: skip
    if markdown:
        lines += ["| op | " + " | ".join(KINDS) + " |", "| --- |" + " ---: |" * len(KINDS)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    else:
        lines += [f"{row[0]:<20}" + "".join(f"{x:>9}" for x in row[1:]) for row in [["op", *KINDS], *rows]]
    used = sorted(record.get("instructions", {}).items())
    if used:
        lines += ["", "Cases whose kernel has an instruction:", ""]
        lines += [f"- `{name}`: {count}" for name, count in used]
    if record["refused"]:
        lines += ["", "Refused:", ""]
        lines += [f"- {count} x {why}" for why, count in sorted(record["refused"].items(), key=lambda x: -x[1])]
    if record["wrong"]:
        lines += ["", "Wrong:", ""]
        lines += [f"- `{case}`: {detail.splitlines()[0] if detail else ''}" for case, detail in record["wrong"].items()]
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """Return the provenance of the evidence: the device, versions, the commit."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    properties = _output(query).splitlines()
    device, _, driver = (properties[0] if properties else "").partition(", ")
    found = {"device": device, "driver": driver, "python": platform.python_version(), "commit": _commit()}
    from importlib.metadata import PackageNotFoundError, version

    for name in (
        "tile-core",
        "tile-cuda",
        "apache-tvm-ffi",
        "apache-tvm",
        "nvidia-cuda-nvrtc",
        "cuda-bindings",
        "numpy",
    ):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["day"] = time.strftime("%Y-%m-%d")
    return found


def _alone(out: Path, unit: str, cases: list[str], target: list[str], end: float) -> dict[str, tuple[str, str, str]]:
    """Run the cases of a unit in a process of their own."""
    seconds = end - time.monotonic()
    if seconds < 1:
        return {}
    path = out / ("alone-" + re.sub(r"\W+", "-", unit))
    _pytest(path, ["--pyargs", *(NODE.format(case) for case in cases), "-n", "0", *target], seconds)
    return dict(read_junit(path.with_suffix(".xml")))


def _pytest(path: Path, arguments: list[str], seconds: float) -> int:
    """Run pytest with a report and a log side by side; 124 after a timeout."""
    import pytest

    plain = [
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",
        "-p",
        "instructions",
        "-v",
        "--tb=short",
        f"--junitxml={path.with_suffix('.xml')}",
    ]
    if int(pytest.__version__.partition(".")[0]) >= 9:  # a kernel that never ends takes its process, not the run
        plain += ["-o", f"faulthandler_timeout={_CASE_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    path.with_suffix(".xml").unlink(missing_ok=True)
    seen = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    with path.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *plain, *arguments], stdout=log, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(seen)},
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(2)  # pytest writes its report
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            return 124


def _replay(given: argparse.Namespace) -> list[str]:
    return [sys.executable, str(HERE / "replay.py"), "run", str(given.recorded)]


def _only(given: argparse.Namespace) -> list[str]:
    return [x for pattern in given.only for x in ("--only", pattern)]


def _reason(detail: str) -> str:
    return re.sub(r"^\S+: ", "", detail.splitlines()[0]) if detail else "no reason given"


def _commit() -> str:
    commit = _output(["git", "-C", str(HERE), "rev-parse", "HEAD"])
    changed = _output(["git", "-C", str(HERE), "status", "--porcelain", "--untracked-files=no"])
    return f"{commit} with changes" if commit and changed else commit


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if not done.returncode else ""


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
