"""The base classes of the error catalogue, in four families.

``KernelError``       your kernel (or the arguments that you call it with) is wrong
``UnsupportedError``  the kernel is fine, but this target cannot run it
``SetupError``        this machine lacks something
``InternalError``     a defect of ours

Nothing else leaves the public API. Every class states a stable ``code``, a one-line ``template`` and a ``remedy``;
keyword arguments fill both. An error raised while a kernel is traced carries the kernel's file, line and source line.
"""

from __future__ import annotations

import contextlib
import linecache
import numbers
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tile_runtime.errors.interrupts import passed_on
from tile_runtime.records import dataclass


def printable(text: str) -> str:
    """Escape control characters, so that foreign text cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Where:
    """A location in the user's source: ``file`` and 1-based ``line``."""

    file: str
    line: int

    @property
    def source(self) -> str:
        """The text of that line without its indentation; empty when it is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class TileError(Exception):
    """Base of the catalogue.

    Parameters
    ----------
    where
        The location in the user's source that the error is about, if there is one.
    **facts
        Values for the placeholders of ``template`` and ``remedy``.

    Notes
    -----
    Errors can be pickled and copied. Facts that are neither numbers nor texts, nor tuples, lists and dicts of them,
    become their text in the copy: the objects may not exist in another process.
    """

    code: ClassVar[str] = "T000"
    #: Codes that earlier versions used for it.
    formerly: ClassVar[tuple[str, ...]] = ()
    template: ClassVar[str] = "{message}"
    remedy: ClassVar[str] = ""
    #: Facts that are optional when the error is raised.
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    #: Whether the class covers any exception, as a defect does: with no frames left it becomes `StackExhausted`.
    unexpected: ClassVar[bool] = False

    def __new__(cls, *args: object, **facts: Any) -> TileError:
        """Create the error, or `StackExhausted` if Python has no frames left."""
        if cls.unexpected and _exhausted(sys.exc_info()[1]):
            return StackExhausted(limit=sys.getrecursionlimit(), where=facts.get("where"))
        return super().__new__(cls, *args)

    def __init__(self, *, where: Where | None = None, **facts: object) -> None:
        self.where = where
        self.facts = {**self.usual, **facts}
        super().__init__(printable(self.template.format(**self.facts)))
        #: Tracebacks end with it (Python 3.11 and newer).
        self.__notes__ = [f"   = more: tile why {self.code}"]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without calling the class, with facts that any process can read."""
        state = {name: _sendable(value) for name, value in vars(self).items()}
        state["facts"] = {name: _sendable(value) for name, value in self.facts.items()}
        return _restored, (type(self), self.args), state

    @property
    def message(self) -> str:
        """The fact and the expectation, in one line."""
        return printable(self.template.format(**self.facts))

    @property
    def help(self) -> str:
        """The remedy, in one line."""
        return printable(self.remedy.format(**self.facts))

    def _repr_html_(self) -> str:
        from tile_runtime import markup

        parts = [markup.paragraph(f"{self.code}: {self.message}", "error")]
        if self.where is not None:
            source = self.where.source
            parts.append(markup.code(printable(f"{self.where}\n    {source}" if source else str(self.where))))
        parts += [markup.paragraph(f"help: {self.help}")] if self.help else []
        return markup.page(*parts, markup.paragraph(f"more: tile why {self.code}"))

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.message}"]
        if self.where is not None:
            lines.append(f"  --> {printable(str(self.where))}")
            if self.where.source:
                lines.append(f"   |  {printable(self.where.source)}")
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)

    def at(self, where: Where | None) -> TileError:
        """Set the error's location unless it has one, and return it."""
        if self.where is None:
            self.where = where
        return self


class KernelError(TileError):
    """The kernel, or a call of it, is wrong."""

    code = "K000"


class UnsupportedError(TileError):
    """The kernel is legal, but this target cannot run it."""

    code = "U000"


class SetupError(TileError):
    """A requirement that this machine does not meet."""

    code = "S000"


class InternalError(TileError):
    """A defect of tile itself."""

    code = "I000"
    template = "internal error in {stage}: {detail}"
    remedy = "this is a defect of tile, please report it to its authors with the kernel"
    unexpected = True


class StackExhausted(SetupError):
    """A call from so deep a recursion that Python's limit leaves too few frames."""

    code = "S209"
    template = "too few frames are left of Python's recursion limit, which is {limit}"
    remedy = "call it from fewer nested functions, or raise the limit with sys.setrecursionlimit"


def _exhausted(error: BaseException | None) -> bool:
    """Whether an error or its cause is of Python's recursion limit, also as C++ text."""
    for _ in range(_DEEPEST):
        with contextlib.suppress(Exception):  # an object of the user's that cannot even be shown
            if "maximum recursion depth exceeded" in str(error):  # code may raise a RecursionError of its own
                return True
        error = error and (error.__cause__ or error.__context__)
    return False


class FactText(str):
    """The text of a fact that cannot leave its process, with the fact's ``repr``."""

    shown: str

    def __new__(cls, text: str, shown: str) -> FactText:
        """Create it from the ``str`` and ``repr`` of the fact."""
        made = super().__new__(cls, text)
        made.shown = shown
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return FactText, (str(self), self.shown)

    def __repr__(self) -> str:
        return self.shown


#: Largest nesting depth of containers: a list may contain itself.
_DEEPEST = 8


def _restored(cls: type[TileError], args: tuple[object, ...]) -> TileError:
    error = cls.__new__(cls)
    error.args = args
    return error


def _sendable(value: Any) -> Any:
    """Return a value if every process can read it, otherwise its text."""
    try:
        return _data(value, _DEEPEST)
    except RecursionError:
        return _text(value)


def _data(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (str, bytes, Where, FactText):
        return value
    if isinstance(value, numbers.Number) and kind.__module__ in ("builtins", "numpy"):
        return value
    if kind not in (tuple, list, dict):
        return _text(value)
    if depth == 0:
        raise RecursionError
    if kind is dict:
        return {_data(k, depth - 1): _data(v, depth - 1) for k, v in value.items()}
    return kind(_data(v, depth - 1) for v in value)


def _text(value: object) -> FactText:
    try:
        return FactText(str(value), repr(value))
    except Exception as error:  # an object of the user's that cannot even be shown
        passed_on(error)
        shown = object.__repr__(value)
        return FactText(shown, shown)
