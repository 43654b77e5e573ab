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


class RuntimeBroken(SetupError):
    """A runtime of the group ``tile.runtimes`` is installed but does not work."""

    code = "S203"
    template = "the runtime {name!r} is installed but broken: {reason}"
    remedy = "reinstall the package that provides it, or use one of the target's own runtimes"


class OutOfMemory(SetupError):
    """The system could not allocate memory for a kernel's buffers other than its arguments."""

    code = "S204"
    template = "{kernel}: there is not enough memory for the kernel's own buffers"
    remedy = "take smaller tiles (T.alloc_shared, T.alloc_fragment), or raise the limit of the process"
