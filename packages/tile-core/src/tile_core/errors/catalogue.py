"""Look up errors by code, with reasons and examples from ``examples.txt``.

Both ``docs/errors.md`` and ``tile why`` are made of this table.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from types import ModuleType

from tile_core.errors.base import KernelError, SetupError, TileError, UnsupportedError
from tile_core.errors.cli import UnknownCode
from tile_core.records import dataclass

PAGE = "docs/errors.md"
FRAMES: Mapping[str, str] = {
    "kernel": "in a kernel with tensors A and B (32 x 32, float32) and I (32, int32), a scalar n (int32), a shared "
    "tile S and a fragment F (32 x 32, float32), and the block bx",
    "call": "with a compiled kernel add(A, B, C, s) of m x 8 float32 tensors A, B and C and a float32 s, and arrays a, "
    "b and c of 4 x 8",
    "module": "a module that imports numpy as np, tile_core as tile and tile_core.language as T; DEVICE and "
    "NARROW_DEVICE are targets of devices, the second without float64",
    "shell": "beside gemm.py, which has a factory matmul(M, block=32)",
    "none": "",
}
"""Surroundings of the lines of an example."""
_FAMILIES = "KUSIT"
_HEADER = re.compile(r"# (?P<codes>(?:[KUSI]\d{3} )+)(?P<frame>\S+)(?: (?P<rest>.+))?")
_PLACEHOLDER_ONLY = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Example:
    """The reason for an error, with a wrong and a right program.

    Attributes
    ----------
    frame
        The program around the lines, see `FRAMES`; ``"none"`` without an example.
    rest
        The target to compile for if it is not ``"cpu"``; for ``"none"`` why there is no example.
    reason
        Why the rule exists; may be empty.
    wrong, right
        Lines of a program.
    """

    frame: str
    rest: str
    reason: str
    wrong: str
    right: str


@dataclass(frozen=True)
class ErrorEntry:
    """One error of the catalogue, as users read it.

    Attributes
    ----------
    code, name, summary
        The code, and the name and docstring of its class.
    message, remedy
        The texts of the error, with names of facts in angle brackets; the remedy is empty where it depends on the case.
    reason, wrong, right
        As of `Example`.
    setting
        Surroundings of the example, see `FRAMES`; for an error without one the reason for that.
    """

    code: str
    name: str
    summary: str
    message: str
    remedy: str
    reason: str
    wrong: str
    right: str
    setting: str

    @property
    def page(self) -> str:
        """The place of the error in the docs."""
        return f"{PAGE}#{self.code.lower()}"

    def to_json(self) -> dict[str, str]:
        """Return the entry as JSON values."""
        return {**vars(self), "page": self.page}


def entry_of(code: str, more: Callable[[], Mapping[str, type[TileError]]] = dict) -> ErrorEntry:
    """Return the entry of a code.

    Parameters
    ----------
    code
        For example ``"K106"``, in any case.
    more
        Returns errors of other packages, by code; called for a code that is not of the core.

    Raises
    ------
    UnknownCode
        With the nearest codes.
    """
    wanted = code.strip().upper().strip("[]")
    error = entries().get(wanted)
    if error is None:
        known = {**entries(), **{former: e for e in entries().values() for former in e.formerly}, **more()}
        error = known.get(wanted)
    if error is None:
        # Codes differ in their digits, or in the letter of their family.
        near = [k for k in known if len(k) == len(wanted) and sum(map(str.__ne__, k, wanted)) == 1][:6]
        hint = f"nearest: {', '.join(near)}" if near else f"{PAGE} lists all codes"
        raise UnknownCode(found=wanted or "''", hint=hint)
    wanted = error.code
    example = examples().get(wanted)
    usual = error.usual.get(error.remedy.strip("{}"), "")
    remedy = str(usual) if _PLACEHOLDER_ONLY.fullmatch(error.remedy) else shown(error.remedy)
    summary = (error.__doc__ or "").strip().splitlines()[0]
    texts = ("", "", "", "")
    if example is not None:
        setting = FRAMES[example.frame] or f"no example: {example.rest}"
        texts = (example.reason, example.wrong, example.right, setting)
    return ErrorEntry(wanted, error.__name__, summary, shown(error.template), remedy, *texts)


def shown(template: str) -> str:
    """Return a template with the names of facts in angle brackets."""
    text = re.sub(r"(?<!\{)\{(\w+)(?:![rs])?(?::[^{}]*)?\}(?!\})", r"<\1>", template)
    return text.replace("{{", "{").replace("}}", "}").replace("\n", " ").strip()


@functools.cache
def entries() -> Mapping[str, type[TileError]]:
    """Return the errors of the core by code."""
    return {error.code: error for module in modules() for error in classes(module)}


def modules() -> Iterator[ModuleType]:
    """Yield the modules of the catalogue in the order of the families and their codes."""
    import tile_core.errors as package

    found = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    yield from sorted(found, key=lambda m: min(((_FAMILIES.index(e.code[0]), e.code) for e in classes(m)), default=()))


def classes(module: ModuleType) -> list[type[TileError]]:
    """Return the errors that a module or its part in tile-runtime defines, by code."""
    homes = (module.__name__, module.__name__.replace("tile_core", "tile_runtime"), "tile_runtime.errors.dtypes")
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, TileError)]
    families = (TileError, KernelError, UnsupportedError, SetupError)
    own = [e for e in found if e.__module__ in homes and e not in families and "template" in vars(e)]
    return sorted(own, key=lambda e: e.code)


@functools.cache
def examples() -> Mapping[str, Example]:
    """Read ``examples.txt``, whose first lines describe its format."""
    found: dict[str, Example] = {}
    for part in re.split(r"^(?=# [KUSI]\d)", text_of_examples(), flags=re.MULTILINE)[1:]:
        head, *lines = part.rstrip().splitlines()
        match = _HEADER.fullmatch(head)
        assert match is not None, head
        start = next((n for n, line in enumerate(lines) if line[:2] in ("- ", "+ ", "  ")), len(lines))
        reason = " ".join(lines[:start])
        wrong, right = (
            "\n".join(line[2:] for line in lines[start:] if line[:2] in (k, "  ", "")) for k in ("- ", "+ ")
        )
        example = Example(match["frame"], match["rest"] or "", reason.strip(), wrong, right)
        found.update(dict.fromkeys(match["codes"].split(), example))
    return found


def text_of_examples() -> str:
    """Return the text of ``examples.txt``."""
    return files("tile_core.errors").joinpath("examples.txt").read_text(encoding="utf-8")
