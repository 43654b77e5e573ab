"""Names that a program does not have yet, for the buffers that passes add."""

from __future__ import annotations

from collections.abc import Iterable


class FreshNames:
    """Makes names: ``base``, or ``base_1``, ``base_2`` and so on if it is taken.

    Parameters
    ----------
    taken
        The names of the program.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def __call__(self, base: str) -> str:
        """Return a name that is not taken, and take it."""
        name, count = base, 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        return name
