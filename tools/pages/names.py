"""Pages of all names of ``T`` and ``tile``: signature, meaning, targets, example."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import inspect
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import tile_core
from pages.columns import accepts, targets, those
from pages.docstrings import docstring_of, signature_of, wrapped_signature_of
from pages.examples import FRAMES, HEAD, Example, example_of
from pages.support import columns, rows
from tile_core.dtypes import DTYPES
from tile_core.plugins.manager import installed
from tile_core.vocabulary import NAMES, PAGE_OF, word

#: Page -> title. ``vocabulary.py`` lists the names of each page.
TITLES = {
    "programs": "Programs and parameters",
    "launch": "The launch and memory",
    "loops": "Loops, choices and checks",
    "moves": "Moving data",
    "products": "Matrix products",
    "reductions": "Reductions, scans and atomics",
    "scalars": "Scalars",
    "threads": "Threads and warps",
    "layouts": "Layouts",
    "types": "Element types",
}

#: Names that not every target has; a test compiles the examples of all others for all targets.
OPTIONAL = ("ptr", "make_tensor", "print", "device_assert", "float64", "double", "ieee_frsqrt", "ws")

#: Modules of ``tile`` whose public names are listed with them.
MODULES = ("layout", "sparse")


@dataclass(frozen=True)
class Name:
    """One name.

    Attributes
    ----------
    text
        As it is written: ``T.copy``, ``tile.compile``.
    page
        The page that describes it.
    value
        What it is.
    backend
        The backend that adds it; empty for the core's.
    """

    text: str
    page: str
    value: Any
    backend: str = ""

    @property
    def example(self) -> Example | None:
        """Its example."""
        return example_of(self.text.removeprefix("T."))

    @property
    def anchor(self) -> str:
        """The part of a link after ``#``."""
        return self.text.lower().replace(".", "").replace("__", "")

    @property
    def meaning(self) -> str:
        """One sentence."""
        if isinstance(self.value, str) and self.value in DTYPES:
            d = DTYPES[self.value]
            alias = "" if self.text == f"T.{d}" else f"The same as `T.{d}`. "
            layout = f", {d.exponent} of them exponent and {d.mantissa} mantissa" if d.is_float else ""
            kind = {
                "int": "Signed integer",
                "uint": "Unsigned integer",
                "float": "Floating point",
                "bool": "Truth value",
            }
            return f"{alias}{kind[d.kind]} of {d.bits} bits{layout}."
        if self.text == "tile.__version__":
            return "The version of `tile-core`."
        return docstring_of(self.value).summary

    @cached_property
    def same_as(self) -> Name | None:
        """Return an earlier name on the page with the same function or class."""
        if not (inspect.isclass(self.value) or inspect.isroutine(self.value)):
            return None
        first = next(name for name in names() if name.value is self.value and name.page == self.page)
        return None if first.text == self.text else first

    @property
    def is_common(self) -> bool:
        """Whether every target has it."""
        return not self.backend and self.text.removeprefix("T.") not in OPTIONAL

    @property
    def targets(self) -> str:
        """Where it can be used, in words."""
        return "all" if self.is_common else _where(self)


@cache
def names() -> tuple[Name, ...]:
    """Return all names, in the order of their pages."""
    found = [Name(f"T.{name}", PAGE_OF[module], word(name)) for name, (module, _) in NAMES.items()]
    order = list(TITLES)
    found.sort(key=lambda name: order.index(name.page))
    for text, backend in sorted(installed().language_names().items(), key=lambda item: (item[1], item[0])):
        found.append(Name(f"T.{text}", "backends", installed().language_name(text), backend))
    found += [Name(f"tile.{name}", "tile", getattr(tile_core, name)) for name in tile_core.__all__]
    return tuple(found)


def problems() -> list[str]:
    """Names without an example, or without a sentence on what they mean."""
    bare = [f"{n.text}: no example in its docstring or tools/pages/examples.py" for n in names() if n.example is None]
    inherited = {docstring_of(kind).summary for kind in (object, str, int, dict, tuple, list, type)}
    return bare + [f"{n.text}: its docstring has no summary" for n in names() if n.meaning in ("", *inherited)]


def pages() -> dict[str, str]:
    """Return the pages as Markdown, by their paths below ``docs``."""
    found = {"reference/names.md": _table()}
    for page, title in TITLES.items():
        found[f"reference/{page}.md"] = _details(page, title)
    found["reference/backends.md"] = _details("backends", "Names that backends add")
    found["reference/tile.md"] = _details("tile", "The package `tile`") + _kernel() + _modules()
    return found


def module_of(example: Example, folder: Path) -> Any:
    """Return an example as a module, written to a file for source inspection."""
    path = folder / f"{example.name.strip('_').replace('.', '_')}.py"
    path.write_text(example.program, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program_of(example: Example, folder: Path) -> Any:
    """Return the program of an example, or ``None`` if it defines none."""
    from tile_core.ir.program import Program

    found = getattr(module_of(example, folder), "kernel", None)
    return found if isinstance(found, Program) else None


@cache
def _where(name: Name) -> str:
    """Compile the example for all targets, and report the legal ones."""
    example = name.example
    if example is None:
        return f"`{name.backend}`"
    with tempfile.TemporaryDirectory() as folder:
        program = program_of(example, Path(folder))
    found: set[str] = set()
    for first, alike in columns().items():
        if name.backend in ("", targets()[first].backend) and not accepts(program, targets()[first]):
            found.update(alike)
    if not found:
        raise LookupError(f"no target accepts the example of {name.text}")
    return those(found)


def _table() -> str:
    parts = [_NAMES_HEAD]
    parts += [f'??? note "What is around {what}"\n\n{_fenced(HEAD + FRAMES[kind], " " * 4)}' for kind, what in _KINDS]
    for page, title in {**TITLES, "backends": "Names that backends add", "tile": "The package `tile`"}.items():
        rows = [_row(name) for name in names() if name.page == page]
        head = f"\n## [{title}]({page}.md)\n\n| name | what it is | targets | example |\n| --- | --- | --- | --- |\n"
        parts.append(head + "\n".join(rows) + "\n" if rows else "")
    return "\n".join(parts)


def _row(name: Name) -> str:
    example = name.example
    lines = example.line.splitlines() if example else []
    shown = (
        f"`{lines[0]}`" if len(lines) == 1 else f"[{len(lines)} lines]({name.page}.md#{name.anchor})" if lines else ""
    )
    link = f"[`{name.text}`]({name.page}.md#{name.anchor})"
    cells = (link, name.meaning, name.targets, shown)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _details(page: str, title: str) -> str:
    parts = [f"# {title}\n\n{_DETAILS.get(page, '')}"]
    for name in (n for n in names() if n.page == page):
        parts.append(f"\n## `{name.text}` {{ #{name.anchor} }}\n")
        if name.same_as is not None:
            parts.append(f"The same as [`{name.same_as.text}`](#{name.same_as.anchor}).\n")
            continue
        if inspect.isclass(name.value) and issubclass(name.value, enum.Enum):
            parts.append(_fenced("\n".join(f"{name.text}.{member}" for member in name.value.__members__)))
        elif callable(name.value) and not isinstance(name.value, str):
            parts.append(_fenced(wrapped_signature_of(name.value, name.text)))
        documented = inspect.isclass(name.value) or inspect.isroutine(name.value) or inspect.ismodule(name.value)
        text = docstring_of(name.value)
        if name.example is not None and name.example.kind == "block":  # shown below, as on other pages
            text = text.without("Examples")
        parts.append(text.markdown() if documented and name.meaning else name.meaning + "\n")
        if not documented and callable(name.value) and not isinstance(name.value, str):
            parts.append(dataclasses.replace(docstring_of(type(name.value).__call__), summary="").markdown())
        if name.targets != "all":
            parts.append(f"Targets: {name.targets}.\n")
        elif name.text.removeprefix("T.") in {row.name for row in rows()}:
            op = name.text.removeprefix("T.")
            parts.append(f"Which target does what with which types: [Support](support.md#{op}).\n")
        if name.example:
            parts.append(f"Example:\n\n{_fenced(name.example.line)}")
    return "\n".join(parts)


def _kernel() -> str:
    """Return the methods of a compiled kernel."""
    from tile_core.runtime.kernel import Kernel

    parts = ["\n## Methods of a kernel\n"]
    for name, value in vars(Kernel).items():
        if not name.startswith("_"):
            what = value.fget if isinstance(value, property) else value
            call = f"kernel.{name}" if isinstance(value, property) else wrapped_signature_of(value, f"kernel.{name}")
            parts.append(f"\n### `kernel.{name}`\n\n{_fenced(call.replace('(self, ', '(').replace('(self)', '()'))}")
            parts.append(docstring_of(what).markdown())
    return "\n".join(parts)


def _modules() -> str:
    """Return the public functions of modules, one line each."""
    parts = []
    for module in MODULES:
        value = getattr(tile_core, module)
        rows = []
        for name in value.__all__:
            item = getattr(value, name)
            if inspect.isroutine(item) or inspect.isclass(item):
                rows.append(f"| `{signature_of(item, name)}` | {docstring_of(item).summary} |".replace(" | None", ""))
        parts.append(
            f"\n## Functions of `tile.{module}`\n\n| name | what it is |\n| --- | --- |\n" + "\n".join(rows) + "\n"
        )
    return "\n".join(parts)


def _fenced(code: str, indent: str = "") -> str:
    lines = ["```py", *code.strip("\n").splitlines(), "```"]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines) + "\n"


_KINDS = (
    ("block", "a statement of a block"),
    ("value", "an expression of a parallel loop"),
    ("thread", "an expression of a thread"),
)

_NAMES_HEAD = """\
# All names

Every name of `T` (`import tile_core.language as T`) and of `tile` (`import tile_core as tile`). A name leads to its
signature and full description. *Targets* says where a name can be used; element types and tile ops may have limits of
their own, which [Support](support.md) lists. Every example on this page is compiled for every target and run on the
CPU.
"""

_DETAILS = {
    "backends": (
        "A backend that is installed adds these names to `T`. Each promises an instruction: where it does not fit, "
        "compiling is refused.\n"
    ),
    "types": (
        'A type is written as a name of `T` or as a string: `T.float16`, `"float16"`. [Declarations]'
        "(../language/declarations.md) has the rules for 4-bit types, [Scalars](../language/scalars.md) has the "
        "conversions.\n"
    ),
}
