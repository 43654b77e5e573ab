"""U71x: what an architecture lacks."""

from __future__ import annotations

from tile_core.errors import UnsupportedError


class InstructionMissing(UnsupportedError):
    """A kernel needs an instruction that the target does not have."""

    code = "U710"
    template = "{arch} has no instruction {name}"
    remedy = "it is an instruction of {hint}: choose such a target, or another variant of the op"
