"""Common parts of the check scripts: the list of the repository's own files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def files(root: Path, *suffixes: str) -> Iterator[Path]:
    """Yield the files that belong to the repository: tracked, or new and not ignored.

    Parameters
    ----------
    root
        A checkout, or any folder: outside a checkout every file counts.
    *suffixes
        Endings to keep, with the dot; all files when there are none.
    """
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True) if (root / ".git").exists() else None
    if listed is not None and listed.returncode == 0:
        paths = [root / name for name in sorted(set(listed.stdout.split("\0"))) if name]
    else:
        paths = sorted(root.rglob("*"))
    for path in paths:
        if path.is_file() and not path.is_symlink() and (not suffixes or path.suffix in suffixes):
            yield path


def report(check: str, problems: list[str]) -> int:
    """Print a check's problems or its success, and return the exit status."""
    for problem in problems:
        print(problem)
    print(f"{check}: {len(problems)} problem(s)" if problems else f"{check}: ok")
    return 1 if problems else 0
