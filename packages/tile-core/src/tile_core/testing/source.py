"""Kernels' statements as written in tables."""

from __future__ import annotations

__all__ = ["lines"]


def lines(text: str) -> str:
    """Return the lines of a block without the indentation of the first one.

    A line of less indentation, which came from a value in braces, keeps its own.

    Parameters
    ----------
    text
        Begins with the end of a line, and ends with a line of blanks.
    """
    found = text.split("\n")[1:-1]
    indent = len(found[0]) - len(found[0].lstrip())
    return "\n".join(line[indent:] if line[:indent].isspace() else line for line in found)
