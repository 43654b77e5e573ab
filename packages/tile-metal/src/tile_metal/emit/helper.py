"""One function that texts may call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Helper:
    """A helper function.

    Attributes
    ----------
    name
        Its name.
    text
        Its whole text, in lines.
    needs
        Names of helper functions that it calls.
    headers
        Headers that it needs besides ``metal_stdlib``.
    """

    name: str
    text: str
    needs: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
