"""``KernelParam``: a kernel's parameter as TileLang's suppliers of inputs read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.abi.signature import Signature
from tile_core.dtypes import DType, dtype
from tile_core.records import dataclass

__all__ = ["KernelParam", "params_of"]


@dataclass(frozen=True)
class KernelParam:
    """A parameter: an array, or a number with an empty shape."""

    dtype: DType
    shape: Sequence[Any]
    name: str = ""

    def torch_dtype(self) -> Any:
        """Return the element type as torch's."""
        return self.dtype.as_torch()

    def is_scalar(self) -> bool:
        """Return whether it is a number."""
        return not self.shape

    def is_unsigned(self) -> bool:
        """Return whether its elements are unsigned integers."""
        return self.dtype.kind == "uint"

    def is_float8(self) -> bool:
        """Return whether its elements are 8-bit floats."""
        return self.dtype.is_float and self.dtype.bits == 8

    def is_float4(self) -> bool:
        """Return whether its elements are 4-bit floats."""
        return self.dtype.is_float and self.dtype.bits == 4

    def is_boolean(self) -> bool:
        """Return whether its elements are truth values."""
        return str(self.dtype) == "bool"


def params_of(signature: Signature) -> list[KernelParam]:
    """Return the parameters of a kernel without its workspaces."""
    given = signature.params[: len(signature.params) - signature.workspaces]
    return [KernelParam(dtype(p.dtype), list(getattr(p, "shape", ()) or ()), p.name) for p in given]
