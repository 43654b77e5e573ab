"""Check the Python of README, docs and examples/ with mypy and pyright, as users' editors do.

    python tools/check_types.py [--pyright] [--mypy] [PATH ...]     both, or one; all pages and files, or the given ones

A page's blocks become one file, whose line numbers are those of the page. The settings are those that docs/editors.md
gives: mypy is strict, on pages but for missing annotations of the page's own functions. Neither checker objects to a
call in an annotation, `A: T.Tensor((M, N), "float16")`. A block that is wrong on purpose, or that a checker cannot
follow, has its reason in the line above it: `<!-- types: skip, a wrong name -->`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from check_examples import documents, python_blocks
from repository import ROOT, report

SKIP = re.compile(r"<!--\s*(example|types):\s*skip,")

#: Settings of mypy. Pages, and a file of another project, do not annotate all of their own functions.
MYPY = """\
[mypy]
python_version = 3.10
strict = True
disable_error_code = valid-type

[mypy-{pages}]
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False
disallow_untyped_decorators = False

[mypy-{untyped}]
ignore_missing_imports = True
follow_imports = skip
"""
#: A file that is shown as it was written elsewhere.
FOREIGN = ("sparse_tutorial",)

#: Packages that the pages import and that have no types, or are not installed.
UNTYPED = ("cuda", "cupy", "jax", "ml_dtypes", "mlx", "torch", "tvm", "tvm_ffi")

#: Settings of pyright.
PYRIGHT = {"pythonVersion": "3.10", "reportInvalidTypeForm": False, "reportMissingImports": False}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--mypy", action="store_true", help="mypy alone")
    parser.add_argument("--pyright", action="store_true", help="pyright alone")
    given = parser.parse_args()
    paths = [path.resolve() for path in given.paths] or documents(ROOT)
    both = given.mypy == given.pyright
    checkers = [mypy] * (both or given.mypy) + [pyright] * (both or given.pyright)
    status = 0
    for checker in checkers:
        status |= report(f"{checker.__name__} ({len(paths)} pages and files)", check(paths, checker))
    return status


def check(paths: list[Path], checker: Callable[[Path], list[str]]) -> list[str]:
    """Return the errors that a checker finds in pages and files, with their paths."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for path in paths:
            name = re.sub(r"\W", "_", path.relative_to(ROOT).with_suffix("").as_posix())
            name = path.stem if path.suffix == ".py" else name  # examples import each other
            names[name] = path.relative_to(ROOT).as_posix()
            text = path.read_text(encoding="utf-8")
            Path(folder, f"{name}.py").write_text(code_of(text) if path.suffix == ".md" else text, encoding="utf-8")
        return [re.sub(r"^(\w+)\.py", lambda m: names[m[1]], line) for line in checker(Path(folder))]


def code_of(page: str) -> str:
    """Return the checked lines of a page: blocks without a mark, and imports, which other blocks need."""
    runnable, checked = python_blocks(page).split("\n"), python_blocks(page, SKIP).split("\n")
    lines = zip_longest(runnable, checked, fillvalue="")
    return "\n".join(b or (a if a.startswith(("import ", "from ")) else "") for a, b in lines)


def mypy(folder: Path) -> list[str]:
    """Return mypy's errors on the files of a folder, each ``NAME.py:LINE: ...``."""
    untyped = ",".join(f"{name}.*" for name in UNTYPED)
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")} - {*FOREIGN}
    pages = ",".join(path.stem for path in folder.glob("*.py") if path.stem not in examples)
    (folder / "mypy.ini").write_text(MYPY.format(pages=pages or "none", untyped=untyped), encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "pages"
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(cache), "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout.splitlines()


def pyright(folder: Path) -> list[str]:
    """Return pyright's errors on the files of a folder, each ``NAME.py:LINE: ...``."""
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [_line(item) for item in found if item["severity"] == "error"]


def _line(item: Mapping[str, Any]) -> str:
    """Return a diagnostic of pyright as text."""
    name, number = Path(item["file"]).name, item["range"]["start"]["line"] + 1
    return f"{name}:{number}: {item['message']} [{item.get('rule', 'syntax')}]"


if __name__ == "__main__":
    sys.exit(main())
