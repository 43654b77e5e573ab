"""The 2:4 format: groups along K, their metadata bits, and metadata elements.

A group of four consecutive K elements keeps two values, and four bits ``index0 | index1 << 2`` give their indices.
32-bit types keep one of two elements; their bits select 16-bit halves of the pair, so element 0 is ``0b0100`` and
element 1 is ``0b1110``. The bits of the groups of a row follow each other from the least significant end, so that
int8, int16 and int32 metadata of a row are the same bytes.

===========================  ==========================  ======================================
non-zeros of a group         stored values               bits (index0, index1)
===========================  ==========================  ======================================
two, at i < j                value i, value j            (i, j)
one, at 0, 1 or 2            value i, 0                  (i, 3)
one, at 3                    0, value 3                  (0, 3)
none                         0, 0                        (0, 1)
three or four                refused                     refused
===========================  ==========================  ======================================

The choices for one non-zero are those of the compressor kernel in TileLang's tutorial on sparse matrix products. For
none that kernel writes (0, 0), which no matrix unit defines; (0, 1) stands for the same values. Numbers are zeros where
they compare equal to zero: the sign of -0.0 is lost, NaN and subnormal numbers are kept bit by bit.

Other producers choose other indices for fewer than two non-zeros, so compare decompressed matrices, not metadata. A
stored zero is still multiplied: an infinity or a NaN in the row of B that its index names makes the product a NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import UnknownDType
from tile_core.errors.sparse import BadMetadataDType, BadSparseDType, BadSparseExtent, SparseShapeMismatch

GROUPS: dict[str, int] = {
    **dict.fromkeys(("float16", "bfloat16", "int8", "uint8"), 4),
    **{name: 4 for name, d in DTYPES.items() if d.is_fp8},
    **dict.fromkeys(("float32", "tfloat32"), 2),
}
"""Dense K elements per group, by operand type; half of them are kept."""

META_DTYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
"""The types that metadata elements can have."""

NATURAL = "natural"
"""The row-major order of metadata elements."""


class EFactorMap(Mapping[str, Mapping[str, int]]):
    """Dense K elements that one metadata element describes: ``E_FACTOR_MAP[operand][meta_dtype]``.

    Operands are looked up as ``dtype`` reads them, so aliases and dtype objects of other libraries are found as well.
    """

    def __init__(self) -> None:
        self._rows = {a: {e: to_dtype(e).bits // 4 * n for e in META_DTYPES} for a, n in GROUPS.items()}

    def __getitem__(self, operand: DTypeLike) -> Mapping[str, int]:
        try:
            return self._rows[str(to_dtype(operand))]
        except UnknownDType:
            raise KeyError(operand) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(self._rows)


E_FACTOR_MAP = EFactorMap()


def operand_type(spec: DTypeLike) -> DType:
    """Return the operand type that ``spec`` names.

    Raises
    ------
    BadSparseDType
        If it has no 2:4 form.
    """
    found = to_dtype(spec)
    if found not in GROUPS:
        raise BadSparseDType(found=found, expected=", ".join(GROUPS))
    return found


def default_meta_dtype(operand: DType) -> str:
    """Return the default metadata type: int32 for 8-bit operands, else int16."""
    return "int32" if operand.bits == 8 else "int16"


def meta_type(spec: DTypeLike, operand: DType, allowed: tuple[str, ...] = META_DTYPES, layout: str = NATURAL) -> DType:
    """Return the metadata type that ``spec`` names, or the default for ``None``.

    The default is that of the natural order where ``allowed`` has it, else the first of ``allowed``.

    Raises
    ------
    BadMetadataDType
        If ``allowed`` has it not.
    """
    usual = default_meta_dtype(operand)
    if spec is None:
        return to_dtype(usual if usual in allowed else allowed[0])
    found = to_dtype(spec)
    if found not in allowed:
        near = [a for a in allowed if to_dtype(a).kind == found.kind]
        raise BadMetadataDType(
            operand=operand, layout=layout, found=found, expected=", ".join(allowed),
            nearest=usual if usual in allowed else (near or allowed)[0],
        )  # fmt: skip
    return found


def check_extent(extent: int, operand: DType, meta: DType) -> None:
    """Raise ``BadSparseExtent`` unless K fills whole metadata elements."""
    factor = E_FACTOR_MAP[operand][meta]
    if extent % factor:
        why = f"the elements that one {meta} of metadata describes"
        raise BadSparseExtent(
            found=extent, operand=operand, multiple=factor, why=why, nearest=nearest(extent, factor)
        )  # fmt: skip


def check_pair(values: tuple[int, ...], metadata: tuple[int, ...], operand: DType, meta: DType) -> None:
    """Raise ``SparseShapeMismatch`` unless metadata of this shape goes with values ``(M, K // 2)``."""
    factor, extent = E_FACTOR_MAP[operand][meta], 2 * values[1]
    if extent % factor or metadata != (values[0], extent // factor):
        columns = f"{extent} / {factor}" if extent % factor else extent // factor
        raise SparseShapeMismatch(
            meta=meta, found=metadata, values=values, expected=f"({values[0]}, {columns})"
        )  # fmt: skip


def check_groups(extent: int, operand: DType) -> None:
    """Raise ``BadSparseExtent`` unless K is made of whole groups."""
    group = GROUPS[operand]
    if extent % group:
        near = nearest(extent, group)
        raise BadSparseExtent(found=extent, operand=operand, multiple=group, why="the size of a group", nearest=near)


def nearest(found: int, multiple: int) -> str:
    """The legal extents around one that is not, for messages."""
    below = found // multiple * multiple
    return f"{below} or {below + multiple}" if below else f"{multiple}"


def zero_mask(operand: DType) -> int:
    """The bits of an element that are all clear exactly if it equals zero."""
    signed_zero = operand.form is not None and not operand.form.unsigned_zero
    return (1 << (operand.bits - signed_zero)) - 1


def group_code(mask: int, group: int) -> int:
    """Return a group's metadata for non-zeros ``mask``; 0 if there are too many."""
    chosen = [i for i in range(group) if mask >> i & 1]
    if len(chosen) > group // 2:
        return 0
    if group == 2:
        return 0b1110 if chosen == [1] else 0b0100
    if not chosen:
        return 0b0100
    if len(chosen) == 1:
        chosen = [0, 3] if chosen == [3] else [chosen[0], 3]
    return chosen[0] | chosen[1] << 2
