"""Tensor descriptors: opaque constants of a launch through which instructions address boxes of a tensor.

A descriptor is data here: which parameter, its extents and strides, the box and its placement in shared memory. The
runtime encodes it for each launch from the address and the values of the call. It refers to parameters by name, so that
an exported kernel and the emulator need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from tile_runtime.abi.signature import Dim, dim_from, evaluate, plain_dim, renamed_dim, symbols_of
from tile_runtime.dtypes import dtype
from tile_runtime.errors.base import InternalError
from tile_runtime.records import dataclass

Detail = bool | int | str


@dataclass(frozen=True)
class TensorDescriptor:
    """A tensor in global memory, and the box of it that one instruction transfers.

    Attributes
    ----------
    source
        Name of the parameter that holds the array's address.
    dtype
        Type of the elements that are transferred.
    shape
        Extents in elements, the slowest dimension first; dims of scalar parameters.
    strides
        Elements between neighbours along each dimension; the last one is 1.
    box
        Extents of the box in elements, along the same dimensions.
    offset
        Elements from the array's address to element (0, ..., 0).
    swizzle
        Bytes of a row over which chunks of 16 bytes are permuted in shared memory, a power of two; 0 if they are not.
    fill
        The value of elements outside the tensor.
    details
        Private to the backend: hints, and fields that its encoding has besides.

    Raises
    ------
    InternalError
        If a field contradicts its meaning: a lowering is at fault.
    """

    source: str
    dtype: str
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    box: tuple[int, ...]
    offset: Dim = 0
    swizzle: int = 0
    fill: Literal["zero", "nan"] = "zero"
    details: Mapping[str, Detail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ranks = {len(self.shape), len(self.strides), len(self.box)}
        for holds, detail in (
            (self.source.isidentifier(), f"{self.source!r} is not a name"),
            (len(ranks) == 1 and ranks != {0}, f"shape, strides and box of {sorted(ranks)} dimensions"),
            (self.strides[-1:] == (1,), f"strides {self.strides} end in no 1"),
            (all(n >= 1 for n in self.box), f"a box of {self.box} elements"),
            (self.swizzle >= 0 and not self.swizzle & (self.swizzle - 1), f"a swizzle over {self.swizzle} bytes"),
            (self.fill == "zero" or dtype(self.dtype).is_float, f"{self.fill} outside of {self.dtype}"),
        ):
            if not holds:
                raise InternalError(stage="tensor descriptor", detail=detail)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the scalar parameters that it depends on."""
        dims = (*self.shape, *self.strides, self.offset)
        return tuple(sorted({s for dim in dims for s in symbols_of(dim)}))

    def at(self, values: Mapping[str, int]) -> PlacedDescriptor:
        """Return the descriptor of a launch.

        Parameters
        ----------
        values
            The address of ``source``, and the values of `symbols`, by name.

        Raises
        ------
        InternalError
            A value is missing, or divides by zero.
        """
        found = [evaluate(dim, values) for dim in (*self.shape, *self.strides, self.offset)]
        if self.source not in values or any(n is None for n in found):
            detail = f"a descriptor of {self.source} does not follow from {dict(values)}"
            raise InternalError(stage="launch", detail=detail)
        numbers, rank = [int(n or 0) for n in found], len(self.shape)
        start = int(values[self.source]) + numbers[-1] * dtype(self.dtype).bits // 8
        return PlacedDescriptor(self, start, tuple(numbers[:rank]), tuple(numbers[rank:-1]))

    def renamed(self, names: Mapping[str, str]) -> TensorDescriptor:
        """Return the descriptor with other names of parameters."""
        source = names.get(self.source, self.source)
        shape, strides = (tuple(renamed_dim(d, names) for d in dims) for dims in (self.shape, self.strides))
        offset = renamed_dim(self.offset, names)
        rest = (self.swizzle, self.fill, self.details)
        return TensorDescriptor(source, self.dtype, shape, strides, self.box, offset, *rest)

    def to_json(self) -> dict[str, object]:
        """Return a value of lists, dicts, strings, numbers and booleans that `from_json` reads."""
        return {
            "source": self.source, "dtype": self.dtype, "shape": [plain_dim(d) for d in self.shape],
            "strides": [plain_dim(d) for d in self.strides], "box": list(self.box), "offset": plain_dim(self.offset),
            "swizzle": self.swizzle, "fill": self.fill, "details": dict(self.details),
        }  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TensorDescriptor:
        """Read what `to_json` wrote."""
        return TensorDescriptor(
            data["source"], data["dtype"], tuple(map(dim_from, data["shape"])), tuple(map(dim_from, data["strides"])),
            tuple(data["box"]), dim_from(data["offset"]), data["swizzle"], data["fill"], dict(data["details"]),
        )  # fmt: skip


@dataclass(frozen=True)
class PlacedDescriptor:
    """A descriptor of one launch.

    Attributes
    ----------
    descriptor
        What does not change between launches.
    address
        Of element (0, ..., 0).
    shape, strides
        Extents and strides in elements.
    """

    descriptor: TensorDescriptor
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
