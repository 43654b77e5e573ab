"""Making matrices 2:4 sparse, and checking that they are."""

from __future__ import annotations

import numpy as np

from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.sparse.blocks import over_blocks
from tile_core.sparse.compress import refuse_first
from tile_core.sparse.format import GROUPS, check_groups, operand_type, zero_mask
from tile_core.sparse.host import Source, read_matrix


def validate(A: Array, transposed: bool = False, *, dtype: DTypeLike = None) -> None:
    """Check that a matrix is 2:4 sparse along K (1:2 for 32-bit types).

    Parameters
    ----------
    A, transposed, dtype
        As for ``compress``.

    Raises
    ------
    TooManyNonZeros
        With the row, the columns and the number of non-zeros of the first group that has too many.
    BadSparseExtent
        If K is not made of whole groups.
    """
    bits, operand, _ = read_matrix(A, dtype)
    rows = bits.T if transposed else bits
    check_groups(rows.shape[1], operand)
    if rows.size:
        refuse_first(rows, operand)


def prune(A: Array, transposed: bool = False, *, dtype: DTypeLike = None) -> Array:
    """Return a copy that keeps the two largest magnitudes of every four along K.

    Of 32-bit types it keeps one of two. The first of equals is kept. A NaN counts as larger than everything, so that it
    is not dropped silently.

    Parameters
    ----------
    A, transposed, dtype
        As for ``compress``.

    Raises
    ------
    BadSparseExtent
        If K is not made of whole groups.
    """
    bits, operand, source = read_matrix(A, dtype)
    check_groups(bits.shape[0 if transposed else 1], operand)
    out = np.empty(bits.shape, bits.dtype)
    _prune_rows(bits.T if transposed else bits, operand, out.T if transposed else out)
    return source.give(out)


def randn_semi_sparse(
    shape: tuple[int, int],
    dtype: DTypeLike = "float16",
    *,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    transposed: bool = False,
) -> Array:
    """Return a random NumPy matrix with the maximum of non-zeros in every group.

    Floats are standard normal, rounded to ``dtype``; integers are uniform over all values but 0.

    Parameters
    ----------
    shape
        ``(M, K)``, or ``(K, M)`` if transposed.
    dtype
        Operand type.
    seed
        Seed of the generator; ``None`` takes a fresh one.
    rng
        A NumPy generator to use instead.
    transposed
        The sparsity is along the first axis.
    """
    operand = operand_type(dtype)
    count, extent = (shape[1], shape[0]) if transposed else shape
    check_groups(extent, operand)
    generator = np.random.default_rng(seed) if rng is None else rng
    kind = operand.numpy()
    if operand.is_integer:
        limits = np.iinfo(kind)
        values = generator.integers(limits.min, limits.max, (count, extent), dtype=kind, endpoint=True)
    else:
        values = generator.standard_normal((count, extent), dtype=np.float32).astype(kind)
    values = np.where(values == 0, np.ones((), kind), values)
    bits = values.view(f"uint{operand.bits}")
    if operand.is_reduced:
        bits &= np.uint32(0xFFFFE000)  # ten bits of mantissa
    group = GROUPS[operand]
    draw = generator.random((count, extent // group, group), dtype=np.float32)
    chosen = np.argsort(np.argsort(draw, axis=-1), axis=-1) < group // 2
    bits *= chosen.reshape(count, extent)
    return Source("numpy", operand.numpy().name).give(np.ascontiguousarray(bits.T) if transposed else bits)


def _prune_rows(rows: Array, operand: DType, out: Array) -> None:
    group = GROUPS[operand]

    def work(start: int, stop: int) -> None:
        lanes = np.ascontiguousarray(rows[start:stop]).reshape(-1, group)
        key = _magnitude(lanes, operand)
        beaten = np.zeros(lanes.shape, np.uint8)
        for i in range(group):
            for j in range(i + 1, group):
                larger = key[:, j] > key[:, i]
                beaten[:, i] += larger
                beaten[:, j] += ~larger
        kept = np.where(beaten < group // 2, lanes, lanes.dtype.type(0))
        out[start:stop] = kept.reshape(stop - start, -1)

    if rows.size:
        over_blocks(lambda most: work, rows.shape[0], rows.shape[1] * rows.itemsize)


def _magnitude(bits: Array, operand: DType) -> Array:
    """Return integers in the order of the magnitudes: a float's bits without sign."""
    if operand.kind == "int":
        return np.abs(bits.view(np.int8).astype(np.int16))
    if operand.form is not None and operand.form.unsigned_zero:
        return np.where(bits == 0x80, bits.dtype.type(0xFF), bits & bits.dtype.type(0x7F))
    return bits & bits.dtype.type(zero_mask(operand))
