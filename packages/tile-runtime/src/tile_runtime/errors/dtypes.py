"""K101, S501: names of element types."""

from __future__ import annotations

from types import MappingProxyType

from tile_runtime.errors.base import KernelError, SetupError


class UnknownDType(KernelError):
    """A name or object that is not an element type."""

    code = "K101"
    template = "{found!r} is not an element type"
    remedy = "{hint}"


class TorchMissing(SetupError):
    """torch is required for its tensors or the names of its types."""

    code = "S501"
    template = "torch is not installed ({reason})"
    remedy = "install torch, or {instead}"
    usual = MappingProxyType({"instead": "keep the NumPy arrays that compress returned"})
