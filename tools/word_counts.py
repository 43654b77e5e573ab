"""The findings that the rules of glossary.py still have, as numbers per file and rule, which may only shrink."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from glossary import RULES, Finding, findings, is_checked
from repository import files

COUNTS = Path("tools", "word_exceptions_prose.txt")
HEAD = """\
# What the rules of tools/glossary.py find and still accept: `path rule count`. This list may only shrink:
# `tools/check_words.py --shrink` writes the counts that are lower now.
"""
SHRINK = "uv run tools/check_words.py --shrink"

Counts = dict[tuple[str, str], int]


def check_glossary(root: Path, strict: bool) -> list[str]:
    """Compare the findings below ``root`` with the accepted numbers.

    Parameters
    ----------
    root
        A checkout or any folder.
    strict
        Refuse numbers in the data file above the true ones, as CI does. Otherwise one line of hint is printed, and the
        numbers of files that are gone hold for other files, so that a renamed file passes.
    """
    found = all_findings(root)
    counts = {key: len(places) for key, places in found.items()}
    written = read_counts(root / COUNTS)
    accepted = written if strict else follow_moves(root, written, counts)
    problems = []
    for (name, rule), places in sorted(found.items()):
        limit = accepted.get((name, rule), 0)
        if len(places) > limit:
            problems += [f"{name}:{place.line}: {rule}: {place.text}" for place in places]
            allowed = f", {COUNTS.as_posix()} allows {limit}" if limit else ""
            problems.append(f"{name}: {len(places)} of the rule '{rule}'{allowed}: {RULES[rule]}")
    high = {key: number for key, number in written.items() if number > counts.get(key, 0)}
    if high and not strict:
        print(f"words: {len(high)} count(s) of {COUNTS.as_posix()} are lower now; CI wants `{SHRINK}`")
    elif high:
        problems += [too_high(*key, number, counts.get(key, 0)) for key, number in sorted(high.items())]
    return problems


def too_high(name: str, rule: str, number: int, count: int) -> str:
    """Return the message for a number in the data file that is above the true count."""
    remedy = f"write {count}, not {number}" if count else f"remove the line ({number})"
    return f"{COUNTS.as_posix()}: {name} {rule}: {remedy}; `{SHRINK}` does it"


def shrink(root: Path) -> str:
    """Write the true counts into the data file where they are lower, and return one line about it."""
    counts = {key: len(places) for key, places in all_findings(root).items()}
    written = read_counts(root / COUNTS)
    accepted = follow_moves(root, written, counts)
    lower = {key: min(number, counts.get(key, 0)) for key, number in accepted.items()}
    write_counts(root / COUNTS, lower)
    return f"{COUNTS.as_posix()}: {sum(written.values())} findings before, {sum(lower.values())} now"


def all_findings(root: Path) -> dict[tuple[str, str], list[Finding]]:
    """Return the findings below ``root`` by path and rule."""
    found = defaultdict(list)
    for path in files(root, ".py", ".md"):
        name = path.relative_to(root).as_posix()
        if is_checked(name):
            for finding in findings(name, path.read_text(encoding="utf-8")):
                found[name, finding.rule].append(finding)
    return dict(found)


def follow_moves(root: Path, written: Counts, counts: Counts) -> Counts:
    """Give the numbers of files that are gone to files with more findings than accepted.

    A renamed file keeps its numbers that way. The total of a rule does not grow.
    """
    accepted = {key: number for key, number in written.items() if (root / key[0]).is_file()}
    for rule in RULES:
        free = sum(number for key, number in written.items() if key[1] == rule and key not in accepted)
        for key in sorted(key for key in counts if key[1] == rule):
            taken = min(free, max(0, counts[key] - accepted.get(key, 0)))
            if taken:
                accepted[key] = accepted.get(key, 0) + taken
                free -= taken
    return accepted


def read_counts(path: Path) -> Counts:
    """Read lines of the form ``path rule count``; ``#`` starts a comment."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = (line.partition("#")[0].split() for line in lines)
    return {(entry[0], entry[1]): int(entry[2]) for entry in entries if entry}


def write_counts(path: Path, counts: Counts) -> None:
    """Write the data file, without the zeros."""
    lines = [f"{name} {rule} {number}\n" for (name, rule), number in sorted(counts.items()) if number]
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
