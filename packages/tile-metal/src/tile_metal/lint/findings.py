"""Errors in MSL source, as `lint` and `clcpp_findings` report them."""

from __future__ import annotations

from tile_core.records import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """Code that Metal would refuse or misinterpret.

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
