"""S2xx: what this machine lacks."""

from __future__ import annotations

from tile_core.errors.base import SetupError


class UnknownProcessor(SetupError):
    """A processor name that the code generator does not know."""

    code = "S201"
    template = "{found!r} is not a processor that LLVM knows"
    remedy = "nearest names: {near}"
