"""A mistake that a compiler could make, as a change of an emitted text."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A change of a kernel's text.

    Attributes
    ----------
    kernel
        Name of the kernel in the zoo.
    name
        What is wrong with the changed text.
    pattern, new
        A regular expression and what replaces it.
    at
        Which of its matches; ``None``: all.
    """

    kernel: str
    name: str
    pattern: str
    new: str
    at: int | None = None

    def changes(self, text: str) -> bool:
        """Whether the text has such a place."""
        try:
            return self.apply(text) != text
        except LookupError:
            return False

    def apply(self, text: str) -> str:
        """Return the changed text.

        Raises
        ------
        LookupError
            The text has no such place: the passes write something else now, and the mutant has to follow.
        """
        found = list(re.finditer(self.pattern, text))
        if not found or (self.at is not None and self.at >= len(found)):
            raise LookupError(f"{self.kernel} has no {self.pattern}")
        for match in reversed(found) if self.at is None else [found[self.at]]:
            text = text[: match.start()] + match.expand(self.new) + text[match.end() :]
        return text
