"""Write requirements.lock, and the constraints in pyproject.toml that hold `uv run` to the same versions.

    python tools/lock.py             resolve everything anew, to the newest versions that the bounds allow
    python tools/lock.py --check     fail when the two files do not agree with the requirements of the packages

requirements.lock has hashes, is for every platform and for Python 3.10 to 3.13, and names no registry:
`pip install --require-hashes -r requirements.lock`. uv.lock is not committed because it records where each file was
found. Resolving happens on a copy of the project files, so nothing but the two results is written.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# What tile runs and is tested with. Written by tools/lock.py; use it with
#     pip install --require-hashes -r requirements.lock
# and then, without their dependencies, the packages: pip install --no-deps ./packages/*
"""
BLOCK = re.compile(r"(# constraints: begin\n).*?( *# constraints: end\n)", re.DOTALL)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    check = parser.parse_args().check

    workspace = (ROOT / "pyproject.toml").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        copy = copy_project(Path(scratch), workspace if check else with_constraints(workspace, []))
        uv(copy, "lock", "--quiet")
        locked = HEADER + export(copy, "--group", "dev")
        constraints = pins(export(copy, "--all-groups", "--no-hashes"))

    results = {"pyproject.toml": with_constraints(workspace, constraints), "requirements.lock": locked}
    stale = [name for name, text in results.items() if not same(ROOT / name, text)]
    if check:
        for name in stale:
            print(f"{name} is out of date: run python tools/lock.py")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(results[name])
        print(f"wrote {name}")
    return 0


def with_constraints(workspace: str, pinned: list[str]) -> str:
    """Return the text of pyproject.toml with this list between the two marks."""
    block = "".join(f'    "{pin}",\n' for pin in pinned)
    text, found = BLOCK.subn(lambda marks: marks[1] + block + marks[2], workspace)
    if found != 1:
        raise SystemExit("pyproject.toml needs one pair of the marks 'constraints: begin' and 'constraints: end'")
    return text


def pins(exported: str) -> list[str]:
    """Return the requirements of an export, quoted for a TOML string."""
    lines = (line.strip() for line in exported.splitlines())
    return [line.replace('"', "'") for line in lines if line and not line.startswith("#")]


def export(project: Path, *options: str) -> str:
    """Return the locked third-party requirements in the format of pip."""
    fixed = ("--quiet", "--all-packages", "--no-emit-workspace", "--no-header", "--no-annotate", "--frozen")
    return uv(project, "export", "--format", "requirements.txt", *fixed, *options)


def copy_project(scratch: Path, workspace: str) -> Path:
    """Copy uv's inputs for resolving: project files of workspace and packages."""
    (scratch / "pyproject.toml").write_text(workspace)
    for source in ROOT.glob("packages/*/pyproject.toml"):
        target = scratch / source.relative_to(ROOT)
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
    return scratch


def uv(project: Path, *arguments: str) -> str:
    """Run uv on a project and return its output."""
    program = shutil.which("uv")
    if program is None:
        raise SystemExit("uv is not on PATH: pip install uv")
    done = subprocess.run([program, *arguments, "--project", str(project)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"uv {arguments[0]} failed with exit code {done.returncode}")
    return done.stdout


def same(path: Path, text: str) -> bool:
    """Return whether the file has exactly this text."""
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
