"""``compress`` and ``decompress``: a matrix, and its kept values with metadata."""

from __future__ import annotations

import numpy as np

from tile_core.abi.signature import Param
from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.errors.sparse import IllegalMetadata, TooManyNonZeros
from tile_core.runtime.verify import host_copy
from tile_core.sparse import kernels
from tile_core.sparse.blocks import (
    EQUAL_CODES,
    BlockCompressor,
    Work,
    compress_lanes,
    decompress_block,
    group_counts,
    nibbles,
    over_blocks,
    row_blocks,
)
from tile_core.sparse.device import compress_there, device_facts
from tile_core.sparse.format import E_FACTOR_MAP, GROUPS, NATURAL, check_extent, check_pair, zero_mask
from tile_core.sparse.host import operand_of, read_matrix, read_metadata
from tile_core.sparse.layouts import layout_meta_type, make_metadata_layout, reorder, restore
from tile_runtime.calls.arrays import ArrayFacts


def compress(
    A: Array,
    transposed: bool = False,
    block_k: int | None = None,
    layout: str = NATURAL,
    meta_dtype: DTypeLike = None,
    *,
    dtype: DTypeLike = None,
    check: bool = True,
) -> tuple[Array, Array]:
    """Return the kept values and metadata of a 2:4 sparse matrix (1:2 for 32-bit types).

    Which value goes where is written down in ``tile_core.sparse.format``. Both results are new, contiguous arrays of
    the library of ``A``, and hold bit by bit what ``A`` held, except that a zero is always +0.0.

    Parameters
    ----------
    A
        Matrix ``(M, K)`` in host memory, of any library and with any strides; or a contiguous one in the memory of a
        device, which compresses it there: not transposed, and with metadata in natural order.
    transposed
        ``A`` is ``(K, M)``; its sparsity is along the first axis.
    block_k
        K of the kernel's tile; only for layouts that depend on it.
    layout
        Order of the metadata, one of ``layouts.KINDS``.
    meta_dtype
        Type of a metadata element; by default int32 for 8-bit operands and int16 for others in the natural order, and
        the only width that the other layouts have.
    dtype
        Operand type, if ``A`` holds codes of it as integers (``"float8_e4m3fn"`` in uint8), or ``"tfloat32"``.
    check
        For a matrix on a device: whether to wait until it is compressed and refuse groups with too many non-zeros.
        Without it nothing waits, and what such groups become means nothing.

    Returns
    -------
    tuple
        The values, ``(M, K // 2)`` or ``(K // 2, M)`` if transposed, and the metadata, always
        ``(M, K // E_FACTOR_MAP[dtype][meta_dtype])``.

    Raises
    ------
    TooManyNonZeros
        At the first group with more non-zeros than slots.
    BadSparseExtent
        If K does not fill whole metadata elements.
    TileError
        For arguments that are not a matrix, not of an operand type, or do not fit the layout.
    """
    there = None if transposed or layout != NATURAL else device_facts(A)
    if there is not None:
        return _there(A, there, meta_dtype, dtype, bool(check))
    return _here(A, bool(transposed), block_k, layout, meta_dtype, dtype)


def decompress(
    A_sparse: Array,
    E: Array,
    transposed: bool = False,
    block_k: int | None = None,
    layout: str = NATURAL,
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Return the matrix that ``compress`` was given, with +0.0 for every zero.

    Metadata of other producers is accepted: indices in any order, and equal indices where at least one of the two
    values is zero, as some producers write for a group of zeros.

    Parameters
    ----------
    A_sparse
        Values, ``(M, K // 2)``, or ``(K // 2, M)`` if transposed.
    E
        Metadata in the order of ``layout``.
    transposed, block_k, layout, dtype
        As for ``compress``.

    Raises
    ------
    SparseShapeMismatch
        If the shapes of values and metadata do not fit.
    IllegalMetadata
        If two values of a group claim one place.
    """
    bits, operand, source = read_matrix(A_sparse, dtype, "A_sparse")
    stream, held = read_metadata(E)
    values = bits.T if transposed else bits
    count, extent = values.shape[0], 2 * values.shape[1]
    meta = layout_meta_type(layout, operand, held.element)
    check_pair(values.shape, stream.shape, operand, meta)
    stream = np.ascontiguousarray(stream)
    if layout != NATURAL and stream.size:
        stream = restore(stream, make_metadata_layout(stream.shape, meta, layout, operand, block_k))
    dense = np.empty((extent, count) if transposed else (count, extent), bits.dtype)
    decompress_rows(values, stream, operand, dense.T if transposed else dense)
    return source.give(dense)


def _there(A: Array, facts: ArrayFacts, meta_dtype: DTypeLike, dtype: DTypeLike, check: bool) -> tuple[Array, Array]:
    values, codes, refused = compress_there(A, facts, meta_dtype, dtype, check)
    if refused:
        bits = host_copy(A, Param("A", "tensor", facts.dtype, facts.shape))
        refuse_first(bits.view(f"uint{8 * bits.itemsize}"), operand_of(facts, dtype))
    return values, codes


def _here(
    A: Array, transposed: bool, block_k: int | None, layout: str, meta_dtype: DTypeLike, dtype: DTypeLike
) -> tuple[Array, Array]:
    bits, operand, source = read_matrix(A, dtype)
    rows = bits.T if transposed else bits
    count, extent = rows.shape
    meta = layout_meta_type(layout, operand, meta_dtype)
    check_extent(extent, operand, meta)
    shape = (count, extent // E_FACTOR_MAP[operand][meta])
    order = None
    if layout != NATURAL and count and extent:
        order = make_metadata_layout(shape, meta, layout, operand, block_k)
    values = np.empty((extent // 2, count) if transposed else (count, extent // 2), bits.dtype)
    stream = compress_rows(rows, operand, values.T if transposed else values)
    codes = stream.view(f"uint{meta.bits}").reshape(shape)
    if order is not None:
        codes = reorder(codes, order)
    return source.give(values), source.give(codes, str(meta))


def compress_rows(rows: Array, operand: DType, values: Array) -> Array:
    """Write the kept values of a strided matrix; return its metadata as bytes.

    Parameters
    ----------
    rows
        Unsigned bits ``(M, K)``; K fills whole bytes of metadata.
    operand
        Type of the elements.
    values
        ``(M, K // 2)`` with any strides.

    Raises
    ------
    TooManyNonZeros
        At the first group that has too many.
    """
    count, extent = rows.shape
    per_byte = E_FACTOR_MAP[operand]["int8"]
    stream = np.empty((count, extent // per_byte), np.uint8)

    def prepare(most: int) -> Work:
        block = BlockCompressor(operand, most * extent)

        def work(start: int, stop: int) -> None:
            dense = np.ascontiguousarray(rows[start:stop]).reshape(-1)
            direct = values[start:stop]
            kept = direct if direct.flags.c_contiguous else np.empty(direct.shape, direct.dtype)
            block(dense, kept.reshape(-1), stream[start:stop].reshape(-1))
            if kept is not direct:
                direct[...] = kept

        return work

    def by_columns(start: int, stop: int) -> None:
        group = GROUPS[operand]
        lanes = [rows.T[start + lane : stop : group] for lane in range(group)]
        slots = [values.T[start // 2 + slot : stop // 2 : group // 2] for slot in range(group // 2)]
        stream[:, start // per_byte : stop // per_byte] = compress_lanes(lanes, operand, slots).T

    if rows.size:
        whole = rows.flags.c_contiguous and values.flags.c_contiguous and extent % (2 * GROUPS[operand]) == 0
        if whole and kernels.worth_it(rows.size):
            kernels.compress_flat(rows.reshape(-1), operand, values.reshape(-1), stream.reshape(-1))
        elif abs(rows.strides[0]) < abs(rows.strides[1]):
            over_blocks(lambda most: by_columns, extent, count * rows.itemsize, 2 * GROUPS[operand])
        else:
            over_blocks(prepare, count, extent * rows.itemsize)
        if not stream.all():
            refuse_first(rows, operand)
    return stream


def decompress_rows(values: Array, stream: Array, operand: DType, dense: Array) -> None:
    """Write the dense strided matrix of kept values and contiguous metadata."""
    count, extent = dense.shape
    codes_of_row = stream.reshape(-1).view(np.uint8)
    per_byte = E_FACTOR_MAP[operand]["int8"]

    def work(start: int, stop: int) -> None:
        kept = np.ascontiguousarray(values[start:stop]).reshape(-1)
        codes = nibbles(codes_of_row[start * extent // per_byte : stop * extent // per_byte])
        _check_codes(kept, codes, operand, start, extent)
        direct = dense[start:stop]
        out = direct if direct.flags.c_contiguous else np.empty(direct.shape, direct.dtype)
        decompress_block(kept, codes, operand, out.reshape(-1))
        if out is not direct:
            direct[...] = out

    if dense.size:
        over_blocks(lambda most: work, count, extent * dense.itemsize)


def refuse_first(rows: Array, operand: DType) -> None:
    """Raise ``TooManyNonZeros`` at the first group of a matrix with too many."""
    group = GROUPS[operand]
    mask = rows.dtype.type(zero_mask(operand))
    for start, stop in row_blocks(rows.shape[0], rows.shape[1] * rows.itemsize):
        counts = group_counts(np.ascontiguousarray((rows[start:stop] & mask) != 0), group)
        over = np.argwhere(counts > group // 2)
        if over.size:
            row, position = map(int, over[0])
            raise TooManyNonZeros(
                kept=group // 2, group=group, row=start + row, column=position * group,
                last=position * group + group - 1, found=int(counts[row, position]),
            )  # fmt: skip


def _check_codes(kept: Array, codes: Array, operand: DType, start: int, extent: int) -> None:
    nonzero = kept & kept.dtype.type(zero_mask(operand)) != 0
    if GROUPS[operand] == 2:
        bad = (codes != 0b0100) & (codes != 0b1110) & nonzero
        expected = "0b0100 or 0b1110"
    else:
        bad = EQUAL_CODES[codes] & nonzero[0::2] & nonzero[1::2]
        expected = "two different indices"
    if bad.any():
        position, group = int(np.argmax(bad)), GROUPS[operand]
        row, column = divmod(position * group, extent)
        raise IllegalMetadata(
            row=start + row, column=column, last=column + group - 1, found=int(codes[position]), expected=expected
        )
