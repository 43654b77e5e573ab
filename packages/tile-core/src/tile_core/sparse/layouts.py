"""Where metadata elements lie: the orders of CUTLASS, as digits of ``tile_core.layout``.

``natural``
    Row-major. What ``T.gemm_sp`` takes unless a layout is annotated.
``cutlass_sm80``
    CUTLASS 2: rows permuted within blocks of 32 (16-bit metadata) or 16 (32-bit), the off-diagonal of each 2 x 2 block
    swapped, columns interleaved by two. Source: ``reorder_meta`` of its host_reorder.h with
    ``ColumnMajorInterleaved<2>`` of its layout/matrix.h. Tested against PyTorch's restatement
    (torch/sparse/_semi_structured_conversions.py), whose result PyTorch's kernels read.
``cutlass_sm90``
    CUTLASS 3: bytes in atoms of 64 rows and the tile's K, atoms one below the other first. Source: ``TensorEAtom`` and
    ``fill_layoutE`` of its first sparse config; the K of the atom is ``min(K of the tile, 128)``, as its collective
    builder states, and a byte describes 8 elements, or 4 of a 32-bit type (``ValTypeE`` of the instructions' traits).
    Tested against these ordered layouts written out; not run on a device. TileLang's layout of 32-bit operands has one
    byte where this source has two, which is followed here.
``cutlass_sm100``
    CUTLASS 3: bytes in atoms of 128 rows and 16 bytes. Source: ``TensorEAtom`` of its second sparse config; JAX formats
    metadata in the same way. Tested against that definition; not run on a device.

CUTLASS pads the rows and K of the atom layouts; here a shape that is not made of whole atoms is refused.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.errors.sparse import BadBlockK, MetadataShapeRefused, UnknownMetadataLayout
from tile_core.layout import Digit, DigitLayout, Layout, row_major
from tile_core.layout.digits import as_shape
from tile_core.sparse.format import META_DTYPES, NATURAL, meta_type, nearest, operand_type

KINDS = (NATURAL, "cutlass_sm80", "cutlass_sm90", "cutlass_sm100")
"""The names of the layouts."""

SEMI_STRUCTURED = "cutlass_sm80"
"""The order of torch's semi-structured tensors that keep values and metadata apart."""

_BYTES = ("uint8", "int8")
_ARCHITECTURES = {8: "cutlass_sm80", 9: "cutlass_sm90", 10: "cutlass_sm100"}
_LARGEST_K = 128


class _Atom(NamedTuple):
    """Return (extent, stride) of an atom's row and byte digits, outermost first."""

    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]


def make_metadata_layout(
    shape: tuple[int, ...],
    meta_dtype: DTypeLike = None,
    kind: str = NATURAL,
    dtype: DTypeLike = "float16",
    block_k: int | None = None,
) -> Layout:
    """Return where the element of metadata at ``(row, column)`` lies, as a bijection of ``shape``.

    Parameters
    ----------
    shape
        Rows, and metadata elements per row: ``(M, K // E_FACTOR_MAP[dtype][meta_dtype])``.
    meta_dtype
        Type of a metadata element; by default what ``compress`` makes for the layout.
    kind
        One of ``KINDS``.
    dtype
        Operand type.
    block_k
        K of the kernel's tile, in dense elements. ``cutlass_sm90`` depends on it; the others do not look at it.

    Raises
    ------
    UnknownMetadataLayout
        If there is no such kind.
    BadMetadataDType
        If the kind has no metadata of that type for that operand.
    BadBlockK
        If the kind depends on ``block_k``, and it is missing or none that exists.
    MetadataShapeRefused
        If the shape is not made of whole blocks of the layout.
    """
    operand, extents = operand_type(dtype), as_shape(shape)
    meta = layout_meta_type(kind, operand, meta_dtype)
    note = f"{kind} order of {meta} metadata of {operand}"
    if len(extents) != 2:
        raise MetadataShapeRefused(
            layout=kind, meta=meta, shape=extents, axis="rank", found=len(extents), multiple=2, nearest="2"
        )
    if kind == NATURAL:
        return Layout(extents, row_major(extents), note=note)
    atom = None if kind == "cutlass_sm80" else _atom(kind, operand, block_k)
    rows, columns = _block(atom, meta)
    for axis, found, multiple in (("M", extents[0], rows), ("metadata elements per row", extents[1], columns)):
        if found % multiple:
            raise MetadataShapeRefused(
                layout=kind, meta=meta, shape=extents, axis=axis, found=found, multiple=multiple,
                nearest=nearest(found, multiple),
            )  # fmt: skip
    digits = _interleaved(extents, meta) if atom is None else _repeated(extents, atom)
    return Layout(extents, DigitLayout(extents, digits), note=note)


def make_cutlass_metadata_layout(
    buffer: Any,
    mma_dtype: DTypeLike = "float16",
    arch: object = None,
    block_k: int | None = None,
    meta_dtype: DTypeLike = None,
    backend: str | None = None,
) -> Layout:
    """Return the metadata layout of CUTLASS for an architecture, as ``T.annotate_layout`` takes it.

    Parameters
    ----------
    buffer
        A buffer of metadata (anything with ``shape`` and ``dtype``), or a shape.
    mma_dtype
        Operand type.
    arch
        ``"8.0"`` … ``"8.9"``, ``"9.0"`` or ``"10.0"``.
    block_k
        See ``make_metadata_layout``.
    meta_dtype
        Type of a metadata element, if ``buffer`` is a shape.
    backend
        Accepted for compatibility; the order does not depend on it.

    Raises
    ------
    UnknownMetadataLayout
        If the architecture is missing or has no known order.
    TileError
        What ``make_metadata_layout`` raises.
    """
    meta = getattr(buffer, "dtype", None) if meta_dtype is None else meta_dtype
    return make_metadata_layout(getattr(buffer, "shape", buffer), meta, layout_of_arch(arch), mma_dtype, block_k)


def layout_of_arch(arch: object) -> str:
    """Return CUTLASS's layout of an architecture such as ``"8.0"``, ``"9.0a"`` or ``90``."""
    text = ".".join(map(str, arch)) if isinstance(arch, tuple) else str(arch)
    match = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)[af]?", text)
    kind = _ARCHITECTURES.get(int(match[1])) if match else None
    if kind is None:
        known = ", ".join(f"{major}.x" for major in _ARCHITECTURES)
        raise UnknownMetadataLayout(what="architecture", found=arch, expected=known)
    return kind


def layout_meta_type(kind: str, operand: DType, meta_dtype: DTypeLike = None) -> DType:
    """Return the metadata element type of a layout, by default that of the operand."""
    if kind not in KINDS:
        raise UnknownMetadataLayout(what="layout", found=kind, expected=", ".join(KINDS))
    allowed: tuple[str, ...] = _BYTES
    if kind == NATURAL:
        allowed = META_DTYPES
    elif kind == "cutlass_sm80":
        allowed = ("int32", "uint32") if operand.bits == 8 else ("int16", "uint16")
    return meta_type(meta_dtype, operand, allowed, kind)


def reorder(natural: Array, layout: Layout) -> Array:
    """Return the elements of a NumPy matrix in the order of ``layout``."""
    extents, order = _transposition(layout)
    return natural.reshape(extents).transpose(order).reshape(natural.shape)


def restore(ordered: Array, layout: Layout) -> Array:
    """Return the elements of a NumPy matrix in the order of ``layout`` in row-major order."""
    extents, order = _transposition(layout)
    back = sorted(range(len(order)), key=order.__getitem__)
    return ordered.reshape([extents[i] for i in order]).transpose(back).reshape(ordered.shape)


def _transposition(layout: Layout) -> tuple[list[int], list[int]]:
    """The extents of the digits, and the digits from the largest stride to the smallest.

    A bijection of digits is a mixed radix, so sorting the digits by stride sorts the places.
    """
    inner = layout.map
    assert isinstance(inner, DigitLayout)
    digits = [d for d in inner.digits if d.extent > 1] or [Digit(1, 1)]
    return [d.extent for d in digits], sorted(range(len(digits)), key=lambda i: -digits[i].stride)


def _interleaved(shape: tuple[int, ...], meta: DType) -> list[Digit]:
    """Permute a block of ``G = 8 * w`` rows, then swap two bits.

    Row ``w * (i % 8) + i % G

    The bit of the row that was swapped has stride 1, the bit of the column stride 2, and every other bit of the row
    counts pairs.
    """
    rows, columns = shape
    lowest = Digit(2, 1)
    if meta.bits == 16:
        row = [Digit(rows // 32, 64), Digit(2, 4), lowest, Digit(8, 8)]
    else:
        row = [Digit(rows // 16, 32), lowest, Digit(8, 4)]
    return [*row, Digit(columns // 2, 2 * rows), Digit(2, 2)]


def _repeated(shape: tuple[int, ...], atom: _Atom) -> list[Digit]:
    """Atoms one below the other, then side by side."""
    rows, columns = _extent(atom.rows), _extent(atom.columns)
    down, across = shape[0] // rows, shape[1] // columns
    size = rows * columns
    first = [Digit(down, size), *(Digit(*d) for d in atom.rows)]
    return [*first, Digit(across, size * down), *(Digit(*d) for d in atom.columns)]


def _atom(kind: str, operand: DType, block_k: int | None) -> _Atom:
    if kind == "cutlass_sm100":
        if operand.bits == 8:
            return _Atom(((128, 16),), ((16, 1),))
        return _Atom(((8, 256), (2, 2), (8, 16)), ((4, 4), (2, 128), (2, 1)))
    basic = 512 // operand.bits
    if not isinstance(block_k, int) or isinstance(block_k, bool) or block_k < 1 or block_k % basic:
        raise BadBlockK(layout=kind, operand=operand, multiple=basic, found=block_k)
    blocks = min(block_k, _LARGEST_K) // basic
    if operand.bits == 8:
        return _Atom(((64, 8 * blocks),), ((8 * blocks, 1),))
    return _Atom(((4, 64 * blocks), (2, 2), (8, 4 * blocks)), ((blocks, 4), (2, 32 * blocks), (2, 1)))


def _block(atom: _Atom | None, meta: DType) -> tuple[int, int]:
    if atom is not None:
        return _extent(atom.rows), _extent(atom.columns)
    return (32 if meta.bits == 16 else 16), 2


def _extent(digits: tuple[tuple[int, int], ...]) -> int:
    total = 1
    for extent, _ in digits:
        total *= extent
    return total
