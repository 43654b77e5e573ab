"""The catalogue of everything that can go wrong, in four families.

``KernelError``       your kernel (or the arguments that you call it with) is wrong
``UnsupportedError``  the kernel is fine, but this target cannot run it
``SetupError``        this machine lacks something
``InternalError``     a defect of ours

Nothing else leaves the public API. Every class states a stable ``code``, a one-line ``template`` and a ``remedy``;
keyword arguments fill both. An error raised while a kernel is traced carries the kernel's file, line and source line.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tile_core.records import dataclass


def printable(text: str) -> str:
    """Return a text with control characters escaped: foreign text must not control the reader's terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True)
class Where:
    """A place in the user's source: ``file`` and 1-based ``line``."""

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
        The place in the user's source that the error is about, if there is one.
    **facts
        Values for the placeholders of ``template`` and ``remedy``.
    """

    code: ClassVar[str] = "T000"
    template: ClassVar[str] = "{message}"
    remedy: ClassVar[str] = ""
    #: Facts that are optional when the error is raised.
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, *, where: Where | None = None, **facts: object) -> None:
        self.where = where
        self.facts = {**self.usual, **facts}
        super().__init__(printable(self.template.format(**self.facts)))

    @property
    def message(self) -> str:
        """One line: what was found, and what was expected."""
        return printable(self.template.format(**self.facts))

    @property
    def help(self) -> str:
        """One thing to do about it."""
        return printable(self.remedy.format(**self.facts))

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
    """This machine lacks something that was asked for."""

    code = "S000"


class InternalError(TileError):
    """A defect of tile itself."""

    code = "I000"
    template = "internal error in {stage}: {detail}"
    remedy = "this is a defect of tile, please report it to its authors with the kernel"
