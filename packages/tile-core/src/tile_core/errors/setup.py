"""S2xx: what this machine lacks."""

from __future__ import annotations

from tile_core.errors.base import SetupError


class NoRuntime(SetupError):
    """A target whose backend only produces text."""

    code = "S201"
    template = "no runtime on this machine launches kernels for {target}"
    remedy = "`tile doctor` says what is missing; text is still produced by `tile compile`"


class UnknownRuntime(SetupError):
    """A runtime that the target's backend does not have."""

    code = "S202"
    template = "{target} has no runtime {found!r}"
    remedy = "its runtimes are: {known}"
