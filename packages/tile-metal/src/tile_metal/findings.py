"""What is wrong with an MSL text, as ``lint`` and the emulator's front end report it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """Something that Metal would refuse, or take for something else.

    Attributes
    ----------
    line
        The 1-based line of the text.
    rule
        A short name of what was looked for, for example ``"address-space"``.
    message
        What is wrong.
    """

    line: int
    rule: str
    message: str
