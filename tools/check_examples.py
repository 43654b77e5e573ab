"""Execute the Python blocks of README and docs, and the files of examples/.

    python tools/check_examples.py [PATH ...]     the given pages and files, or all of them

The ```python blocks of one page run in order in one process, like one file; line numbers in a traceback are those of
the page. A block that needs something special is left out with its reason in the line above it:
`<!-- example: skip, needs a device -->`. A block below `<!-- example: printed -->` is part of what they print, but for
the names of files and numbers of lines. An example file that needs an optional package says so in a comment,
`# requires: NAME`, and is left out where that package is not installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repository import ROOT, files, report

SECONDS = 120  # for one page or file
PROCESSES = 2
FENCE = re.compile(r"^(?P<indent>[ ]*)```(?P<language>\S*).*$")
SKIP = re.compile(r"<!--\s*example:\s*skip,\s*(?P<reason>.+?)\s*-->")
PRINTED = re.compile(r"^<!--\s*example:\s*printed\s*-->\n+```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LOCATION = re.compile(r"\S+\.py:\d+")
REQUIRES = re.compile(r"^#\s*requires:\s*(?P<names>.+)$", re.MULTILINE)


def main() -> int:
    """Run the command line."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or list(documents(ROOT))
    with ThreadPoolExecutor(PROCESSES) as pool:
        problems = [problem for problem in pool.map(check, paths) if problem]
    return report(f"examples ({len(paths)} pages and files)", problems)


def documents(root: Path) -> list[Path]:
    """Return the pages with runnable blocks and the example files of the repository."""
    return [path for path in files(root, ".md", ".py") if is_example(path, root) or python_of(path)]


def check(path: Path) -> str | None:
    """Execute one page or file; return the errors."""
    code = python_of(path) if path.suffix == ".md" else path.read_text(encoding="utf-8")
    missing = missing_packages(code)
    if missing:
        print(f"{path.name}: left out, needs {', '.join(missing)}")
        return None
    with tempfile.TemporaryDirectory() as scratch:
        # A real file: the language reads the source of kernels. Examples run in a folder that they may write to.
        script = Path(scratch, path.name + ".py") if path.suffix == ".md" else path
        if script is not path:
            script.write_text(code, encoding="utf-8")
        return run(path, script, scratch)


def run(path: Path, script: Path, folder: str) -> str | None:
    """Run a script in a folder; return the errors."""
    start = time.perf_counter()
    command = [sys.executable, "-W", "error::SyntaxWarning", str(script)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{path}: still running after {SECONDS} s"
    output = done.stdout.decode("utf-8", errors="replace")
    if done.returncode:
        return f"{path}: exit code {done.returncode}\n{output[-4000:]}"
    absent = unprinted(path.read_text(encoding="utf-8"), output) if path.suffix == ".md" else []
    if absent:
        return f"{path}: expected output is missing:\n" + "\n".join(absent) + f"\nThe output is:\n{output[-4000:]}"
    print(f"{path.name}: ok, {time.perf_counter() - start:.1f} s")
    return None


def unprinted(markdown: str, output: str) -> list[str]:
    """Return a page's blocks of expected output that are missing in the output."""
    return [found for found in PRINTED.findall(markdown) if _plain(found) not in _plain(output)]


def _plain(text: str) -> str:
    """Return a text without trailing spaces, and with file locations replaced."""
    return "\n".join(LOCATION.sub("FILE", line.rstrip()) for line in text.strip().splitlines())


def python_of(path: Path) -> str:
    """Return a page's runnable blocks at their line numbers, or an empty text."""
    return python_blocks(path.read_text(encoding="utf-8")) if path.suffix == ".md" else ""


def python_blocks(markdown: str, skip: re.Pattern[str] = SKIP) -> str:
    """Return the blocks of a page's text at their lines, but for those below a mark; or an empty text."""
    kept: list[str] = []
    inside, wanted, indent, previous = False, False, "", ""
    for line in markdown.splitlines():
        fence = FENCE.match(line)
        if fence and (not inside or not fence["language"]):
            inside = not inside
            wanted = inside and fence["language"] == "python" and not skip.search(previous)
            indent = fence["indent"]
            kept.append("")
        else:
            kept.append(line.removeprefix(indent) if inside and wanted else "")
        previous = line if line.strip() else previous
    return "\n".join(kept) + "\n" if any(kept) else ""


def missing_packages(code: str) -> list[str]:
    """Return the packages that a script requires and that are not installed."""
    names = [name.strip() for found in REQUIRES.finditer(code) for name in found["names"].split(",")]
    return [name for name in names if importlib.util.find_spec(name) is None]


def is_example(path: Path, root: Path) -> bool:
    """Return whether a file is one of examples/."""
    return path.suffix == ".py" and path.relative_to(root).parts[0] == "examples"


if __name__ == "__main__":
    sys.exit(main())
