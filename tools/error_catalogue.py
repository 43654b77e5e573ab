"""Write docs/errors.md, the page of all errors, from the classes in tile_core/errors/ and tile_runtime/errors/.

    python tools/error_catalogue.py            write the page
    python tools/error_catalogue.py --check    fail if the page is not what this would write

The page is committed, so that it can be read where the sources are read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from repository import ROOT, report

sys.path.insert(0, str(ROOT / "packages" / "tile-core" / "src"))

from tile_core.errors import catalogue
from tile_core.errors.catalogue import classes, entries, entry_of, modules

PAGE = Path("docs", "errors.md")

HEAD = """\
# Errors

<!-- Written by tools/error_catalogue.py; change the classes in tile_core/errors/ or tile_runtime/errors/ instead. -->

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
    assert error.code == "K106" and "extent 16" in error.message and error.where is not None
else:
    raise SystemExit("it should have been refused")
```

`tile why K106` shows the entry of a code in a terminal. Below, words in angle brackets stand for what the error at hand
found. All examples are run: the wrong one raises exactly this error, the right one compiles. Their lines stand

{frames}
"""
_TITLES = {"kernel": "in a kernel", "call": "calls of add", "module": "module", "shell": "command line"}


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
            for code in (error.code, *error.formerly):
                owners.setdefault(code, []).append(f"{module.__name__}.{error.__name__}")
    return [f"{code} is the code of {' and of '.join(names)}" for code, names in owners.items() if len(names) > 1]


def page() -> str:
    """Return the text of the page."""
    frames = (f"- {_TITLES[name]}: {text}" for name, text in catalogue.FRAMES.items() if text)
    parts = [HEAD.replace("{frames}", "\n".join(frames))]
    for module in modules():
        found = classes(module)
        if found:
            title = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
            parts.append(f"\n## {title}\n")
            parts += [section(error.code) for error in found]
    return "".join(parts)


def section(code: str) -> str:
    """Return the section of a code, with its anchor."""
    entry, example = entry_of(code), catalogue.examples().get(code)
    former = "".join(f'<a id="{c.lower()}"></a>' for c in entries()[code].formerly)
    lines = [
        f"\n### {code} {entry.name} {{ #{code.lower()} }}\n",
        *([f"{former}Formerly {' and '.join(entries()[code].formerly)}.\n"] if former else []),
        escaped(entry.summary),
        f"\n> {escaped(entry.message)}\n",
    ]
    texts = (("What to do", entry.remedy), ("Reason", entry.reason))
    lines += [f"**{title}:** {escaped(text)}\n" for title, text in texts if text]
    if example is not None and example.frame != "none":
        kind = "sh" if example.frame == "shell" else "py"
        # Not the language `python`, whose examples the pages' checks run as they stand.
        lines += [
            f'```{kind} title="{title}, {_TITLES[example.frame]}"\n{text}\n```\n'
            for title, text in (("wrong", entry.wrong), ("right", entry.right))
        ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Return text without Markdown syntax, in one line."""
    for mark in ("\\", "|", "*", "_", "<", ">", "[", "]", "`"):
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ").strip()


if __name__ == "__main__":
    sys.exit(main())
