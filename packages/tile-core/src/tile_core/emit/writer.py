"""Lines of text with indentation, unique names, and the source location of each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.compat.structural import identity
from tile_core.compat.types import Var
from tile_core.errors import Where

_WORD = re.compile(r"\W", re.ASCII)


class Writer:
    """Collects lines.

    Attributes
    ----------
    lines
        The text so far.
    origins
        The user's source location of each line, or ``None``.
    where
        That of the lines that are written next.
    """

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self.lines: list[str] = []
        self.origins: list[Where | None] = []
        self._depth = 0
        self.where: Where | None = None
        #: By the number of the variable, which lives as long.
        self._names: dict[int, tuple[str, Var]] = {}
        self._taken: set[str] = set(reserved)

    def line(self, text: str) -> None:
        """Append one line at the current indentation."""
        self.lines.append("  " * self._depth + text if text else "")
        self.origins.append(self.where)

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Write ``head {``, the lines of the body indented, and ``end``."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line(end)

    def name(self, var: Var) -> str:
        """Return the name of a variable, chosen at its first use: its own if free."""
        found = self._names.get(identity(var))
        if found is None:
            found = self._names[identity(var)] = self.fresh(str(var.name)), var
        return found[0]

    def fresh(self, wanted: str) -> str:
        """Return ``wanted`` as an identifier of ASCII that is not used yet."""
        base = _WORD.sub("_", wanted).lstrip("_") or "v"
        base = f"v{base}" if base[0].isdigit() else base
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def give(self, var: Var, name: str) -> None:
        """Use a fixed text for a variable."""
        self._names[identity(var)] = name, var
        self._taken.add(name)

    def text(self) -> str:
        """Return all lines."""
        return "\n".join(self.lines) + "\n"
