"""K66x, U66x, S66x: refused operators of torch, JAX and MLX, and refused calls of them."""

from __future__ import annotations

from tile_runtime.errors.base import KernelError, SetupError, UnsupportedError


class BadOperatorName(KernelError):
    """A name that cannot be that of an operator."""

    code = "K661"
    formerly = ("K671",)
    template = "{name!r} cannot be the name of an operator: {reason}"
    remedy = "{function}('my_kernels::{near}', program)"


class BadResults(KernelError):
    """Parameters that cannot be results or outputs of an operator."""

    code = "K663"
    formerly = ("K672",)
    template = "{operator}: {found} cannot be {what}: {reason}"
    remedy = "{advice}"


class NoGradient(KernelError):
    """A gradient of an operator without a gradient formula."""

    code = "K664"
    formerly = ("K673", "K804")
    template = "{operator} has no gradient formula"
    remedy = "give it one with register_backward(function), or {instead}"


class BadBatch(KernelError):
    """A symbol along which an operator cannot be batched."""

    code = "K666"
    formerly = ("K674",)
    template = "{operator}: batch={found!r} {reason}"
    remedy = "{advice}"


class NoTargetOf(UnsupportedError):
    """A device of torch, or a platform of JAX, for which no target is known."""

    code = "U663"
    formerly = ("U672",)
    template = "{operator}: {what} {found!r} has no target"
    remedy = "{advice} {known}"


class NoPointers(UnsupportedError):
    """A parameter of a kind that operators cannot take."""

    code = "U664"
    formerly = ("U671",)
    template = "{operator}: parameter {name!r} is a pointer, which an operator cannot take"
    remedy = "declare {name} as T.Tensor(shape, dtype)"


class LibraryNotFound(SetupError, ImportError):
    """The library whose operators a package makes is not installed, or is too old."""

    code = "S661"
    formerly = ("S671",)
    template = "{package} needs {library} {needed}, found {found}"
    remedy = "pip install '{library}{needed}'{more}"
