"""Boxes of a tensor: the tiles of bulk copies and their layouts in shared memory.

The copy engine knows the tensor by a tensor map (`tile_cuda_runtime.tensor_map`), a constant of the launch. It copies a
box, which is a *panel* of the tile in shared memory: rows of at most the bytes over which chunks are permuted, one row
after another. A tile with longer rows takes several boxes.

PTX ISA, "cp.async.bulk.tensor" and "Tensors"; CUDA Driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import prod
from typing import Protocol

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.compat.types import Call, Expr
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError
from tile_core.ir import attributes, nodes
from tile_core.ir.program import Dim, dim_of
from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle
from tile_core.layout.digits import Digit
from tile_core.layout.layout import row_major
from tile_core.ops.base import OpCall, View
from tile_core.records import dataclass
from tile_core.simt.launch.constants import descriptor
from tile_core.simt.memory.alignment import Aligned, factor, strides_of
from tile_cuda.attributes import READABLE_ROWS
from tile_cuda.ptx.bulk import MOST_DIMENSIONS
from tile_cuda_runtime.tensor_map import ALIGN, BYTES, LEAST_STRIDE_BEYOND, MOST_EXTENT, SWIZZLES, has_type

#: Kind of asynchronous copies of a target.
BULK = "tma"

MOST = 256
"""Elements of a box along a dimension."""
CHUNK = 16
"""Bytes that a swizzle keeps together, and that rows, strides and the first element of a row are multiples of."""
LINE = 128
"""Bytes of shared memory whose number is the mask of a swizzle; the alignment of a box there."""
_BOXES = 16
"""Boxes of a copy: one thread issues all of them."""


class Boxed(Protocol):
    """A tile that is cut into boxes of one kind."""

    @property
    def box(self) -> tuple[int, ...]:
        """Extents of a box in the tensor."""

    @property
    def swizzle(self) -> int:
        """Bytes of a row over which chunks are permuted."""


@dataclass(frozen=True)
class Panel:
    """How a tile is cut into boxes.

    Attributes
    ----------
    extents
        Of the tile in the tensor, one per dimension of it.
    shape
        Of the tile in shared memory: the same extents, but for those that are 1.
    size
        Bytes of an element.
    swizzle
        Bytes of a row over which chunks are permuted; 0 for whole rows in plain order.
    shares
        What the number of boxes is a multiple of.
    across
        Whether boxes may begin within the pattern of the swizzle, as those of fewer than 8 rows of 128 bytes do.
    """

    extents: tuple[int, ...]
    shape: tuple[int, ...]
    size: int
    swizzle: int
    shares: int = 1
    across: bool = False
    box: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        columns = self.swizzle // self.size if self.swizzle else _divisor(self.extents[-1])
        box = [*self.extents[:-1], columns]
        long = [d for d, n in enumerate(self.extents[:-1]) if n != 1]
        if long and (self.swizzle or self.extents[-1] == columns):
            # Boxes lie one after another only if what is cut is the slowest dimension.
            box[long[0]] = _divisor(box[long[0]])
            if prod(n // b for n, b in zip(self.extents, box, strict=True)) % self.shares:
                box[long[0]] = max(box[long[0]] // self.shares, 1)
        object.__setattr__(self, "box", tuple(box))

    @property
    def rows(self) -> int:
        """Rows of a panel."""
        return prod(self.extents[:-1])

    @property
    def align(self) -> int:
        """Alignment of the tile in bytes: where the pattern of its swizzle repeats."""
        return self.swizzle // CHUNK * LINE if self.swizzle else LINE

    @property
    def layout(self) -> LayoutMap:
        """The order of the tile's elements in shared memory."""
        plain = row_major(self.shape)
        if not self.swizzle:
            return Layout(self.shape, plain, note="plain rows for bulk copies")
        *outer, last = self.extents
        columns = self.swizzle // self.size
        digits = [Digit(last // columns, self.rows * columns), Digit(columns, 1)]
        step = columns
        for extent in reversed(outer):
            digits.insert(0, Digit(extent, step))
            step *= extent
        bits = (self.swizzle // CHUNK).bit_length() - 1
        base = (CHUNK // self.size).bit_length() - 1
        swizzles = (Swizzle(bits, base, 3),)
        made = DigitLayout(self.shape, [d for d in digits if d.extent > 1] or plain.digits, swizzles=swizzles)
        return Layout(self.shape, made, note=f"{self.swizzle}-byte swizzle of bulk copies")

    @property
    def is_legal(self) -> bool:
        """Whether boxes of these extents exist, and land where the tile's elements belong."""
        row, whole = self.box[-1] * self.size, prod(self.shape) * self.size
        counts = [n // b for n, b in zip(self.extents, self.box, strict=True)]
        cut = [d for d, n in enumerate(counts) if n > 1]
        return (
            max(self.box) <= MOST
            and row % CHUNK == 0
            and whole % self.align == 0
            and (self.swizzle > 0 or len(counts) - 1 not in cut or self.rows == 1)
            # The first chunk of a box is where the pattern permutes none, or at a line of its own.
            and (not cut or prod(self.box) * self.size % (LINE if self.across else self.align) == 0)
            and prod(counts) <= _BOXES
            and prod(counts) % self.shares == 0
            and all(n % b == 0 for n, b in zip(self.extents, self.box, strict=True))
        )

    def corners(self) -> Iterator[tuple[int, ...]]:
        """Yield the first element of each box, in the tile's coordinates in the tensor."""
        found: list[tuple[int, ...]] = [()]
        for extent, step in zip(self.extents, self.box, strict=True):
            found = [(*at, i) for at in found for i in range(0, extent, step)]
        yield from found

    def indices(self, corner: tuple[int, ...]) -> list[int]:
        """Return the indices in shared memory of the first element of a corner's box."""
        kept = [i for i, n in zip(corner, self.extents, strict=True) if n != 1]
        if not self.swizzle:
            return kept or [0]
        row, columns = 0, self.swizzle // self.size
        for i, n in zip(corner[:-1], self.extents, strict=False):
            row = row * n + i
        line = (corner[-1] // columns * self.rows + row) * self.swizzle // LINE
        return [*kept[:-1], kept[-1] + line % (self.swizzle // CHUNK) * (CHUNK // self.size)]


def readable_rows(call: OpCall, tile: View) -> int:
    """Return the readable row lengths of all products of a tile as a bit mask.

    The mask is 0 if any row length is readable.
    """
    given = call.attrs.get(READABLE_ROWS, ())
    return next((int(rows) for x, rows in zip(call.args, given, strict=False) if x is tile), 0)


def row_lengths(call: OpCall, tile: View) -> tuple[int, ...]:
    """Return the row lengths (bytes) that a call may swizzle, the best first.

    Plain rows are 0. A tile that products read gets rows that they can read (`tile_cuda.copies.operand_rows`). Others
    come last where a call requests its instruction, and are legal where a layout is decided.
    """
    every, sum_of = sorted(SWIZZLES, reverse=True), readable_rows(call, tile)
    if not sum_of or attributes.ASKED_LAYOUT in call.attrs:
        return tuple(every)
    legal = [n for n in every if n & sum_of]
    return (*legal, *(n for n in every if n not in legal and attributes.VARIANT in call.attrs))


def panels(
    extents: Sequence[int], shape: Sequence[int], dtype: str, asked: LayoutMap | None, rows: Sequence[int],
    shares: int = 1, across: bool = False,
) -> Iterator[Panel]:  # fmt: skip
    """Yield the legal panels of a tile with the requested layout, the best first.

    Parameters
    ----------
    extents, shape
        Of the tile in the tensor, and in shared memory.
    rows
        The bytes that rows may have, the best first: see ``row_lengths``.
    shares
        What the number of boxes is a multiple of.
    across
        Whether boxes may begin within the pattern of their swizzle.
    """
    size = DTYPES[dtype].bits // 8
    for swizzle in rows:
        if swizzle and (extents[-1] * size % swizzle or prod(shape) == shape[-1]):
            continue
        panel = Panel(tuple(extents), tuple(shape), size, swizzle, shares, across)
        if panel.is_legal and (asked is None or same_layout(asked, panel.layout)):
            yield panel


def of_tensor(tensor: View, tile: View, aligned: Aligned) -> Iterator[str]:
    """Yield reasons why a tile is not made of boxes in any layout.

    Later reasons assume the earlier conditions.

    Parameters
    ----------
    aligned
        Guarantees of the launch about addresses and symbols.
    """
    if tensor.dtype != tile.dtype:
        yield f"it converts {tensor.dtype} and {tile.dtype}"
    if not has_type(tensor.dtype):
        yield f"no tensor map has elements of {tensor.dtype}"
    if not all(isinstance(n, int) for v in (tensor, tile) for n in v.extents):
        yield "its extents are not known"
    if not 1 <= len(tensor.extents) <= MOST_DIMENSIONS:
        yield f"{tensor.name} has {len(tensor.extents)} dimensions; boxes have 1 to {MOST_DIMENSIONS}"
    if tensor.extents[-1] != tile.shape[-1]:
        yield f"it takes single elements of the rows of {tensor.name}"
    yield from of_map(tensor, aligned)


def slots_of(tile: View, rank: int = 0) -> int:
    """Return the number of tiles that the first index of a buffer selects, or 0.

    Parameters
    ----------
    tile
        The view.
    rank
        Dimensions of a tile, where only that many are legal: a buffer of one more may have a single tile.
    """
    first = nodes.shape_of(tile.buffer)[0]
    several = isinstance(first, int) and (first > 1 or len(tile.extents) == rank + 1 > 1)
    return int(first) if several and len(tile.extents) > 1 and tile.extents[0] == 1 else 0


def unpaneled(tensor: View, tile: View, asked: LayoutMap | None, rows: Sequence[int]) -> str:
    """Return why a tile has no legal panel."""
    if asked is not None:
        return f"no box has the layout of {tile.name}: {asked}"
    size = DTYPES[tensor.dtype].bits // 8
    extents = "x".join(map(str, tensor.extents))
    return (
        f"tiles of {extents} elements of {size} bytes are not made of {_BOXES} boxes at most, "
        f"of up to {MOST} elements along a dimension and rows of a multiple of {CHUNK} bytes, "
        f"at multiples of {LINE} bytes{read_by_products(rows)}"
    )


def read_by_products(rows: Sequence[int]) -> str:
    """Return the suffix of a rejection reason about the row lengths that products require."""
    if len(rows) == len(SWIZZLES):
        return ""
    return f", with swizzles of {' or '.join(map(str, rows))} bytes, which the products that read the tile take"


def described(tensor: View, panel: Boxed, access: Call, dtype: str = "") -> Call:
    """Return the tensor map of a box, as an operand.

    Parameters
    ----------
    access
        The address, with the kind of access to the tensor.
    dtype
        Of the map's elements, if not the tensor's.
    """
    shape, strides = _dims(nodes.shape_of(tensor.buffer)), _dims(strides_of(tensor.buffer))
    fields = TensorDescriptor(
        source=tensor.name, dtype=dtype or tensor.dtype, shape=shape, strides=strides, box=panel.box,
        swizzle=panel.swizzle,
    )  # fmt: skip
    made: Call = descriptor(fields, BYTES, ALIGN, access)
    return made


def same_layout(asked: LayoutMap, layout: LayoutMap) -> bool:
    """Whether two layouts order a tile's elements alike."""
    if "memory" not in asked.axes or asked.replicas != 1:
        return False
    return list(asked.tables()["memory"]) == list(layout.tables()["memory"])


def of_map(src: View, aligned: Aligned) -> Iterator[str]:
    """Yield reasons against a tensor map of a tensor or a box at a corner."""
    size = DTYPES[src.dtype].bits // 8
    if src.buffer not in aligned.addresses:
        yield f"{src.name} is not a parameter"
    if aligned.addresses[src.buffer] % CHUNK:
        yield f"{src.name} is not known to begin at a multiple of {CHUNK} bytes"
    *steps, last = strides_of(src.buffer)
    if nodes.as_int(last) != 1:
        yield f"rows of {src.name} are not contiguous"
    for stride in steps:
        found = factor(stride, aligned.divisors) * size
        if found % CHUNK:
            yield f"rows of {src.name} are {found} bytes apart, or multiples of it; boxes need multiples of {CHUNK}"
        if isinstance(nodes.as_int(stride), int) and found >= LEAST_STRIDE_BEYOND:
            yield f"rows of {src.name} are {found} bytes apart; boxes need fewer than {LEAST_STRIDE_BEYOND}"
    try:
        _dims([*nodes.shape_of(src.buffer), *steps])
    except InternalError:
        yield f"the launch cannot compute the extents of {src.name}"
    for extent in nodes.shape_of(src.buffer):
        if isinstance(extent, int) and extent > MOST_EXTENT:
            yield f"{src.name} has {extent} elements along a dimension; tensor maps have at most {MOST_EXTENT}"
    for low in src.mins:
        if nodes.dtype_of(nodes.int_const(0) + low) != "int32":
            yield "coordinates of boxes have 32 bits"
    begins = factor(nodes.int_const(0) + src.mins[-1], aligned.divisors) * size
    if begins % CHUNK:
        yield f"it begins at multiples of {begins} bytes of a row of {src.name}; boxes begin at multiples of {CHUNK}"


def _dims(values: list[Expr]) -> tuple[Dim, ...]:
    return tuple(dim_of(value) for value in values)


def _divisor(extent: int) -> int:
    """Return the largest divisor of an extent that a box can have."""
    return next(n for n in range(min(extent, MOST), 0, -1) if extent % n == 0)
