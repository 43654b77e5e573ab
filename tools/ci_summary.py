"""Print reports of the conformance kit and the fuzzer as one table.

::

    python tools/ci_summary.py FILE... [--matrix FILE] [--badge FILE] [--label TEXT]
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from command import run_command

from tile_core.cli.console import Verbose, print_text
from tile_core.errors.cli import CannotWrite, CommandError, NoSuchFile
from tile_core.records import dataclass
from tile_core.runtime.files import write_named

#: What becomes of a case of the kit, and what of a program of the fuzzer counts as a failure.
KINDS = ("right", "compiled", "refused", "skipped", "wrong")
FAILURES = ("wrong", "internal error", "over time", "crashed")

#: Cases that went wrong, or programs that failed, of which a summary shows the report.
SHOWN = 10


class BadReport(CommandError):
    """A file that is not a report of the conformance kit or the fuzzer."""

    code = "S317"
    template = "{file} is not a report of the conformance kit or the fuzzer: {reason}"
    remedy = "pass files written by pytest --junitxml or by python -m tile_core.testing.fuzz --json"


@dataclass
class Line:
    """The results of one target with one runtime.

    Attributes
    ----------
    target, runtime
        What ran.
    kit
        The number of cases of each kind.
    ops
        The same per op.
    programs, failures
        How many programs the fuzzer ran, and how many of them failed.
    reports
        What went wrong: a title and a text each.
    jobs, missing
        How many jobs left a report of the kit, and how many more there should be.
    """

    target: str
    runtime: str
    kit: Counter[str] = field(default_factory=Counter)
    ops: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    programs: int = 0
    failures: int = 0
    reports: list[tuple[str, str]] = field(default_factory=list)
    jobs: int = 0
    missing: int = 0

    @property
    def wrong(self) -> int:
        """How many cases and programs failed."""
        return self.kit["wrong"] + self.failures

    @property
    def mark(self) -> str:
        """Whether every case passed; a line without runs neither passed nor failed."""
        if self.wrong or self.missing:
            return "✗"
        return "✓" if self.kit["right"] or self.kit["compiled"] or self.programs else "-"


def ci_summary(
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Argument(metavar="FILE...", help="Reports of the kit and of the fuzzer."),
    ] = None,
    badge: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option(metavar="FILE", help="Also write a badge: JSON for an endpoint of shields.io."),
    ] = None,
    label: Annotated[str, typer.Option(help="What the badge is about.")] = "tile conformance",
    matrix: Annotated[
        Optional[Path],  # noqa: UP045 - as above
        typer.Option(metavar="FILE", help="What ci_matrix.py printed: a job that left no report has failed."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Print reports as Markdown, a line per target and runtime. Exit code 1 on failures.

    Reports are the files of `pytest --pyargs tile_core.testing --junitxml FILE` (*.xml) and of
    `python -m tile_core.testing.fuzz --json FILE` (*.json); several of one target and runtime are added up.
    """
    lines = read_reports(files or ())
    if matrix is not None:
        lines = with_missing(lines, matrix)
    elif not files:
        raise typer.BadParameter("name the reports, or the jobs with --matrix", param_hint="FILE...")
    print_text(as_markdown(lines))
    if badge is not None:
        try:
            write_named(badge, json.dumps(as_badge(lines, label)) + "\n")
        except OSError as error:
            raise CannotWrite(file=badge, reason=error.strerror or str(error)) from error
    if any(line.wrong or line.missing for line in lines):
        raise typer.Exit(1)


def read_reports(files: Iterable[Path]) -> list[Line]:
    """Read reports, and add up those of one target and runtime.

    Parameters
    ----------
    files
        JUnit files of the kit (``*.xml``) and summaries of the fuzzer (anything else).

    Raises
    ------
    NoSuchFile, BadReport
        One of them cannot be read, or is something else.
    """
    found: dict[tuple[str, str], Line] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise NoSuchFile(file=file, reason=error.strerror or str(error), hint="check the path") from error
        read = _read_kit if file.suffix == ".xml" else _read_fuzz
        try:
            read(text, found)
        except (ElementTree.ParseError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadReport(file=file, reason=f"{type(error).__name__}: {error}") from error
    return sorted(found.values(), key=lambda line: (line.target, line.runtime))


def with_missing(lines: Sequence[Line], matrix: Path) -> list[Line]:
    """Count the jobs of a matrix without a report, because of installation or time-out.

    Raises
    ------
    NoSuchFile, BadReport
        The matrix cannot be read, or is something else.
    """
    found = {(line.target, line.runtime): line for line in lines}
    try:
        rows = json.loads(matrix.read_text(encoding="utf-8"))["include"]
        jobs = Counter((str(row["target"]), str(row["runtime"])) for row in rows)
    except OSError as error:
        raise NoSuchFile(file=matrix, reason=error.strerror or str(error), hint="check the path") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadReport(file=matrix, reason=f"{type(error).__name__}: {error}") from error
    for (target, runtime), number in jobs.items():
        line = found.setdefault((target, runtime), Line(target, runtime))
        line.missing = max(0, number - line.jobs)
        if line.missing:
            text = "The job was stopped, or failed before the conformance kit ran: see its log."
            line.reports.append((f"{line.missing} of {number} jobs left no report", text))
    return sorted(found.values(), key=lambda line: (line.target, line.runtime))


def as_markdown(lines: Sequence[Line]) -> str:
    """Return a table by target and runtime, followed by numbers per op and failures."""
    columns = ("", "target", "runtime", *KINDS, "fuzzed programs", "failed")
    rows = [
        (n.mark, f"`{n.target}`", n.runtime, *_counts(n.kit), _number(n.programs), _number(n.failures)) for n in lines
    ]
    parts = ["## Conformance\n", _table(columns, rows)]
    for line in lines:
        title = f"{line.target}, {line.runtime}"
        if line.ops:
            rows = [(f"`{op}`", *_counts(counts)) for op, counts in sorted(line.ops.items())]
            parts.append(_folded(f"{title}: by op", _table(("op", *KINDS), rows)))
        for what, report in line.reports[:SHOWN]:
            parts.append(_folded(f"{title}: {what}", f"```text\n{report.replace('```', '` ` `')}\n```"))
        if len(line.reports) > SHOWN:
            parts.append(f"... and {len(line.reports) - SHOWN} more of {title}\n")
    return "\n".join(parts)


def as_badge(lines: Sequence[Line], label: str) -> dict[str, Any]:
    """Return the badge of all lines: the number that passed, or that failed."""
    total = sum((line.kit for line in lines), Counter())
    wrong, missing = sum(line.wrong for line in lines), sum(line.missing for line in lines)
    if wrong or missing:
        parts = [f"{wrong:,} wrong"] * bool(wrong) + [f"{missing:,} of the jobs failed"] * bool(missing)
        message, colour = ", ".join(parts), "red"
    elif total["right"] or total["compiled"]:
        numbers = (f"{total[kind]:,} {kind}" for kind in ("right", "compiled", "refused") if total[kind])
        message, colour = ", ".join(numbers), "brightgreen"
    else:
        message, colour = "nothing ran", "lightgrey"
    return {"schemaVersion": 1, "label": label, "message": message, "color": colour}


def _read_kit(text: str, found: dict[tuple[str, str], Line]) -> None:
    cases, lines = 0, set()
    for case in ElementTree.fromstring(text).iter("testcase"):
        record = {p.attrib["name"]: p.attrib.get("value", "") for p in case.iter("property")}
        broken = [part for kind in ("failure", "error") for part in case.iter(kind)]
        if "tile_outcome" not in record:
            if not broken:
                continue
            # A case that did not come as far as an outcome: the run is not right, whatever it was about.
            record = {"tile_target": "(unknown)", "tile_runtime": "", "tile_op": "(none)", "tile_outcome": "wrong"}
        cases += 1
        line = _line(found, record["tile_target"], record["tile_runtime"])
        kind = "wrong" if broken else record["tile_outcome"]
        lines.add((line.target, line.runtime))
        line.kit[kind] += 1
        line.ops[record["tile_op"]][kind] += 1
        line.reports += [(case.attrib.get("name", ""), part.text or part.attrib.get("message", "")) for part in broken]
    if not cases:
        raise ValueError("it has no case of the kit")
    for key in lines:
        found[key].jobs += 1


def _read_fuzz(text: str, found: dict[tuple[str, str], Line]) -> None:
    record = json.loads(text)
    line = _line(found, record["target"], record["runtime"])
    counts = {kind: int(number) for kind, number in record["counts"].items()}
    line.programs += sum(counts.values())
    line.failures += sum(counts.get(kind, 0) for kind in FAILURES)
    line.reports += [(f"fuzzer, seed {record['seed']}: {f['kind']}", f["report"]) for f in record["failures"]]


def _line(found: dict[tuple[str, str], Line], target: str, runtime: str) -> Line:
    return found.setdefault((target, runtime), Line(target, runtime))


def _counts(counts: Counter[str]) -> list[str]:
    return [_number(counts[kind]) for kind in KINDS]


def _number(value: int) -> str:
    return f"{value:,}" if value else "-"


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(columns)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, rule, *rows))


if __name__ == "__main__":
    sys.exit(run_command(ci_summary))
