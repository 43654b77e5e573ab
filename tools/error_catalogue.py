"""Write docs/errors.md, the page of all errors, from the classes in tile_core/errors/.

    python tools/error_catalogue.py            write the page
    python tools/error_catalogue.py --check    fail if the page is not what this would write

The page is committed, so that it can be read where the sources are read.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from repository import ROOT, report

sys.path.insert(0, str(ROOT / "packages" / "tile-core" / "src"))

import tile_core.errors
from tile_core.errors import KernelError, SetupError, TileError, UnsupportedError

PAGE = Path("docs", "errors.md")
FAMILIES = "KUSIT"

HEAD = """\
# Errors

<!-- Written by tools/error_catalogue.py; change the classes in tile_core/errors/ instead. -->

Everything that tile refuses is one of these. An error has a stable code, says what was found and what was expected,
names the line of your kernel, and gives one thing to do. All are subclasses of `tile.TileError`:

| family | codes | what it means |
| --- | --- | --- |
| `KernelError` | K | your kernel, or a call of it, is wrong |
| `UnsupportedError` | U | the kernel is legal, but this target cannot run it |
| `SetupError` | S | this machine lacks something that was asked for |
| `InternalError` | I | a defect of tile or of a backend; please report it |

```python
import tile_core as tile
import tile_core.language as T

try:

    @T.prim_func
    def kernel(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32) as bx:
            tile_of_A = T.alloc_shared((16, 16), "float32")
            T.copy(A, tile_of_A)
            B[0, 16] = tile_of_A[0, 0]

except tile.TileError as error:
    print(error)
    assert error.code == "K106" and "extent 16" in error.message and error.where.line > 0
else:
    raise SystemExit("it should have been refused")
```

In the tables below, words in braces stand for what the error at hand found.
"""

TABLE = """\
| code | class | what it says | what to do |
| --- | --- | --- | --- |
"""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="do not write, compare")
    text = page()
    if parser.parse_args().check:
        return report("error catalogue", check(text))
    (ROOT / PAGE).write_text(text, encoding="utf-8")
    return report("error catalogue", duplicates())


def check(text: str) -> list[str]:
    """Compare the page with its expected text, and check for duplicate codes."""
    path = ROOT / PAGE
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    stale = [] if written == text else [f"{PAGE.as_posix()} is out of date: run python tools/error_catalogue.py"]
    return stale + duplicates()


def duplicates() -> list[str]:
    """Codes of more than one class."""
    owners: dict[str, list[str]] = {}
    for module in modules():
        for error in classes(module):
            owners.setdefault(error.code, []).append(f"{module.__name__}.{error.__name__}")
    return [f"{code} is the code of {' and of '.join(names)}" for code, names in owners.items() if len(names) > 1]


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for module in modules():
        found = sorted(classes(module), key=lambda error: error.code)
        if not found:
            continue
        title = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        rows = "\n".join(row(error) for error in found)
        parts.append(
            f"\n## {title}\n\n| code | class | what it says | what to do |\n| --- | --- | --- | --- |\n{rows}\n"
        )
    return "".join(parts)


def modules() -> Iterator[ModuleType]:
    """Yield the modules of the catalogue in the order of the families and their codes."""
    names = [m.name for m in pkgutil.iter_modules(tile_core.errors.__path__)]
    found = [importlib.import_module(f"tile_core.errors.{name}") for name in names]
    yield from sorted(found, key=lambda m: min(((FAMILIES.index(e.code[0]), e.code) for e in classes(m)), default=()))


def classes(module: ModuleType) -> list[type[TileError]]:
    """Return the errors that a module defines and that are raised themselves."""
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, TileError)]
    families = (TileError, KernelError, UnsupportedError, SetupError)
    return [e for e in found if e.__module__ == module.__name__ and e not in families and "template" in vars(e)]


def row(error: type[TileError]) -> str:
    """Return one line of the table."""
    cells = (f"`{error.code}`", f"`{error.__name__}`", cell(error.template), cell(error.remedy))
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """Return text as one cell: no line breaks, no Markdown syntax."""
    for mark in ("\\", "|", "*", "_", "<", ">", "[", "]", "`"):
        text = text.replace(mark, f"\\{mark}")
    # As str.format would print it.
    text = text.replace("{{", "\0").replace("}}", "\1").replace("!r}", "}")
    return text.replace("\0", "{").replace("\1", "}").replace("\n", " ").strip()


if __name__ == "__main__":
    sys.exit(main())
