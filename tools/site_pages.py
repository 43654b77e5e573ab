"""Write the generated pages of the site, or check them.

    python tools/site_pages.py FOLDER     write them as Markdown
    python tools/site_pages.py --check    fail if a name has no example or an example does not run

mkdocs adds the same pages when it builds the site (``tools/pages/hooks.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from repository import report


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where to write the pages")
    parser.add_argument("--check", action="store_true", help="run every example on the CPU")
    given = parser.parse_args()
    if given.folder is not None:
        write(given.folder)
    return report("examples of names", check()) if given.check else 0


def write(folder: Path) -> None:
    """Write all generated pages below a folder."""
    from pages.generate import generated

    for path, text in generated().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def check() -> list[str]:
    """Return names without an example, and examples that fail on the CPU."""
    from pages.names import names, problems

    found = problems()
    with tempfile.TemporaryDirectory() as folder:
        for name in names():
            if name.example is not None and not name.backend:
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        run(name.text, Path(folder))
                except Exception as error:
                    found.append(f"{name.text}: {type(error).__name__}: {error}")
    return found


def run(text: str, folder: Path) -> None:
    """Compile the example of a name for the CPU and call it with zeros."""
    from pages.examples import example_of
    from pages.names import program_of

    import tile_core
    from tile_core.reports.idle import IdleKernel

    example = example_of(text.removeprefix("T."))
    assert example is not None
    program = program_of(example, folder)
    if program is None or any(p.kind == "pointer" or p.addresses for p in program.params):  # zeros are no addresses
        return
    arrays = [_zeros(p.shape, p.dtype) for p in program.params if p.name not in program.workspaces]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdleKernel)  # of one line alone
        tile_core.compile(program, "cpu")(*arrays)


def _zeros(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.zeros([int(n) for n in shape], dtype)


if __name__ == "__main__":
    sys.exit(main())
