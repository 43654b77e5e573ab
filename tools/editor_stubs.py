"""Write the stubs that editors and type checkers read, or check them.

    python tools/editor_stubs.py             write the files
    python tools/editor_stubs.py --check     fail if a file differs from the vocabulary

Names, signatures and docstrings are those of the running code. `tile_core/language/_types.pyi` is written by hand.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from repository import ROOT, report


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    problems = []
    for path, text in texts().items():
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            problems.append(f"{path.relative_to(ROOT)}: differs: run `uv run tools/editor_stubs.py`")
        if not check:
            path.write_text(text, encoding="utf-8")
    return report("stubs", problems)


def texts() -> dict[Path, str]:
    """Return the files that are generated, formatted."""
    from stubs.files import stub_files

    return {path: _formatted(path, text) for path, text in stub_files().items()}


def _formatted(path: Path, text: str) -> str:
    """Return a stub in the repository's format."""
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr}\n{text}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
