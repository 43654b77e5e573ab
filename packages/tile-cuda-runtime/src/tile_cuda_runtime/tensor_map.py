"""Tensor maps: descriptors of a tensor and its boxes for TMA.

CUDA Driver API, ``cuTensorMapEncodeTiled``, gives the rules. They are a table here, so that a lowering checks them
before it chooses such a copy, a launch reports violations readably, and the emulator refuses what the driver would
refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile_runtime.abi.descriptor import PlacedDescriptor
from tile_runtime.dtypes import dtype
from tile_runtime.records import dataclass

#: Bytes of an encoded map, and their alignment.
BYTES, ALIGN = 128, 64
#: Bytes of a row over which chunks are permuted in shared memory, with the code of each.
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
#: Elements along a dimension, at most, and bytes between rows that are too many.
MOST_EXTENT, LEAST_STRIDE_BEYOND = 1 << 32, 1 << 40
_LINE, _SECTORS_OF_A_LINE, _WIDE_SECTORS = 128, 2, 3
_CODES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9,
}  # fmt: skip
_OF_BITS = {8: "uint8", 16: "uint16"}


@dataclass(frozen=True)
class TensorMap:
    """The fields of a map.

    Attributes
    ----------
    address
        Of element (0, ..., 0).
    dtype
        Type of the elements.
    extents
        Elements along each dimension, the innermost first, as in ``box``.
    strides
        Bytes between neighbours along all dimensions but the innermost.
    box
        Elements that a copy moves.
    swizzle
        Bytes of a row over which chunks of 16 bytes are permuted; 0 if they are not.
    nan
        Whether elements outside of the tensor are NaN, and not zero.
    """

    address: int
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    nan: bool = False

    @staticmethod
    def of(placed: PlacedDescriptor) -> TensorMap:
        """Return the fields of a descriptor of a launch."""
        data = placed.descriptor
        size = dtype(data.dtype).bits // 8
        strides = tuple(n * size for n in reversed(placed.strides[:-1]))
        box, extents = tuple(reversed(data.box)), tuple(reversed(placed.shape))
        nan = data.fill == "nan"
        return TensorMap(placed.address, data.dtype, extents, strides, box, data.swizzle, nan)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return dtype(self.dtype).bits // 8

    @property
    def code(self) -> int:
        """``CUtensorMapDataType`` of the elements; types without one are copied as bits."""
        return _CODES[self.dtype if self.dtype in _CODES else _OF_BITS[dtype(self.dtype).bits]]

    @property
    def promotion(self) -> int:
        """``CUtensorMapL2promotion``: 256 or 128 bytes per L2 request.

        A row that begins inside of a line of 128 bytes touches one more line; with promotion to 256 bytes it would load
        two more: products of such tensors took 1.1 to 1.25 times as long on an H100. Other rows are not affected.
        """
        aligned = all(n % _LINE == 0 for n in (self.address, *self.strides))
        return _WIDE_SECTORS if aligned else _SECTORS_OF_A_LINE

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no elements: all boxes lie outside, and no driver map exists."""
        return 0 in self.extents

    def of_zeros(self, address: int) -> TensorMap:
        """Return a one-element map to replace an empty one: its element must be zero."""
        strides = tuple(16 for _ in self.strides)
        return replace(self, address=address, extents=tuple(1 for _ in self.extents), strides=strides)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the box in shared memory."""
        return self.box[0] * self.element_bytes


@dataclass(frozen=True)
class Rule:
    """A condition of the driver.

    Attributes
    ----------
    what
        The field that it is about.
    expected
        What is legal.
    found
        Gives what a map has there.
    holds
        Whether that is legal.
    """

    what: str
    expected: str
    found: Callable[[TensorMap], object]
    holds: Callable[[TensorMap], bool]


def has_type(name: str) -> bool:
    """Whether maps have elements of a type, if only as bits."""
    return name in _CODES or dtype(name).bits in _OF_BITS


def broken_rules(fields: TensorMap) -> Iterator[Rule]:
    """Return the rules that a map breaks, in table order; empty if it is valid."""
    for rule in RULES:
        if not rule.holds(fields):
            yield rule
            if rule in RULES[:_FORM]:
                return


#: CUDA Driver API, ``cuTensorMapEncodeTiled``, without interleaving. Where one of the first does not hold, the others
#: have no meaning.
RULES = (
    Rule("dimensions", "1 to 5", lambda m: len(m.extents), lambda m: 1 <= len(m.extents) <= 5),
    Rule("the element type", "8 to 64 bits, whole bytes", lambda m: m.dtype,
         lambda m: has_type(m.dtype)),
    Rule("the swizzle", "0, 32, 64 or 128 bytes", lambda m: m.swizzle, lambda m: m.swizzle in SWIZZLES),
    Rule("the address", "a multiple of 16", lambda m: m.address, lambda m: m.address % 16 == 0),
    Rule("extents", "1 to 2**32", lambda m: m.extents, lambda m: all(1 <= n <= MOST_EXTENT for n in m.extents)),
    Rule("strides in bytes", "multiples of 16 below 2**40", lambda m: m.strides,
         lambda m: all(n % 16 == 0 and 0 <= n < LEAST_STRIDE_BEYOND for n in m.strides)),
    Rule("the box", "1 to 256 elements along each dimension", lambda m: m.box,
         lambda m: all(1 <= n <= 256 for n in m.box)),
    Rule("bytes of a row of the box", "a multiple of 16", lambda m: m.row_bytes,
         lambda m: m.row_bytes % 16 == 0),
    # The driver accepts fewer, and then leaves gaps between rows, as an H200 showed.
    Rule("bytes of a row of the box", "those of the swizzle", lambda m: m.row_bytes,
         lambda m: not m.swizzle or m.row_bytes == m.swizzle),
    Rule("fill", "NaN for types of floats only", lambda m: m.dtype, lambda m: not m.nan or 6 <= m.code <= 9),
)  # fmt: skip
_FORM = 3
