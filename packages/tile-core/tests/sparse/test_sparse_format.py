"""Test all masks of a group in every type against the tutorial's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core import sparse
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.sparse import BadSparseExtent, TooManyNonZeros
from tile_core.sparse.format import GROUPS, META_DTYPES, default_meta_dtype, group_code

ROW = [0, 7, 0, 3, 1, 5, 0, 0, 0, 0, 2, 4, 9, 0, 9, 0]
LEGAL = {0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110}


def test_worked_example() -> None:
    values, metadata = sparse.compress(np.array([ROW], "float16"))
    assert values.tolist() == [[7, 3, 1, 5, 2, 4, 9, 9]]
    assert values.dtype == np.float16
    assert metadata.tolist() == [[-29107]]
    assert metadata.dtype == np.int16
    assert sparse.decode_metadata(metadata).tolist() == [[1, 3, 0, 1, 2, 3, 0, 2]]
    assert sparse.decompress(values, metadata).tolist() == [ROW]


@pytest.mark.parametrize("meta", META_DTYPES)
def test_decode_metadata(meta: str) -> None:
    stream = np.array([0x4D, 0x8E] * 8, np.uint8)
    found = sparse.decode_metadata(stream.view(meta).reshape(2, -1))
    assert found.dtype == meta
    assert found.tolist() == [[1, 3, 0, 1, 2, 3, 0, 2] * 4] * 2
    assert sparse.decode_metadata(stream.view(meta)).tolist() == [1, 3, 0, 1, 2, 3, 0, 2] * 8


def test_codes_of_all_masks(oracles: Any) -> None:
    """The kernel of the tutorial chooses the indices, but for a group without non-zeros, where it writes (0, 0)."""
    for mask in range(16):
        row = [float(mask >> i & 1) * (i + 1) for i in range(4)]
        if bin(mask).count("1") > 2:
            assert group_code(mask, 4) == 0
            with pytest.raises(TooManyNonZeros):
                sparse.compress(np.array([row * 2], "float16"), meta_dtype="int8")
            continue
        values, (code,) = oracles.tutorial_compressor(row)
        assert group_code(mask, 4) == (code if mask else 0b0100)
        assert group_code(mask, 4) in LEGAL
        found, metadata = sparse.compress(np.array([row * 2], "float16"), meta_dtype="int8")
        assert found.tolist() == [values * 2]
        assert metadata.view(np.uint8).tolist() == [[group_code(mask, 4) * 0x11]]
    assert [group_code(mask, 2) for mask in range(4)] == [0b0100, 0b0100, 0b1110, 0]


@pytest.mark.parametrize("meta", META_DTYPES)
@pytest.mark.parametrize("name", list(GROUPS))
def test_every_pair_of_masks(oracles: Any, name: str, meta: str) -> None:
    """Every pair of legal masks in neighbouring groups, in bytes of metadata and across them."""
    operand, group = to_dtype(name), GROUPS[name]
    rng = np.random.default_rng(list(GROUPS).index(name))
    bits = oracles.mask_matrix(operand, group, rng)
    factor = sparse.E_FACTOR_MAP[name][meta]
    columns = -(-bits.size // factor) * factor
    full = np.zeros((3, columns), bits.dtype)
    for row in range(3):
        full[row, : bits.size] = np.roll(bits, row * group)
    values, metadata = sparse.compress(full, dtype=name, meta_dtype=meta)
    assert values.shape == (3, columns // 2)
    assert values.dtype == full.dtype
    assert metadata.shape == (3, columns // factor)
    assert metadata.dtype == meta
    assert (sparse.decompress(values, metadata, dtype=name) == full).all()
    indices = sparse.decode_metadata(metadata).reshape(3, -1, 2).astype(int)
    assert (indices[..., 0] < indices[..., 1]).all()
    if group == 4:
        expected, codes = oracles.tutorial_compressor(full[1].tolist())
        assert values[1].tolist() == expected
        legal = [code or 0b0100 for code in codes]
        assert (oracles.pack(legal, meta) == metadata[1]).all()


@pytest.mark.parametrize("name", list(GROUPS))
def test_extents(name: str) -> None:
    """K = 16 … 127 * E_factor is right, and what lies between is refused."""
    factor = sparse.E_FACTOR_MAP[name][default_meta_dtype(to_dtype(name))]
    for extent in (16, 32, 48, 80, 96, 127 * factor):
        for rows in (1, 3):
            matrix = sparse.randn_semi_sparse((rows, extent), name, seed=extent)
            if extent % factor:
                with pytest.raises(BadSparseExtent):
                    sparse.compress(matrix)
                continue
            pair = sparse.compress(matrix)
            assert pair[1].shape == (rows, extent // factor)
            assert (sparse.decompress(*pair) == matrix).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("extent", [4, 12, 20, 36])
def test_32_bit_rows_that_end_inside_a_byte_of_flags(rows: int, extent: int) -> None:
    matrix = sparse.randn_semi_sparse((rows, extent), "float32", seed=rows * extent)
    for array, transposed in (
        (matrix, False),
        (np.ascontiguousarray(matrix.T), True),
        (np.asfortranarray(matrix), False),
    ):
        values, metadata = sparse.compress(array, transposed, meta_dtype="uint8")
        assert metadata.shape == (rows, extent // 4)
        assert (sparse.decompress(values, metadata, transposed) == array).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_special_values(name: str, transposed: bool) -> None:
    """-0.0 is a zero and its sign is lost; NaN, infinities and subnormal numbers are kept bit by bit."""
    operand = to_dtype(name)
    sign, group = 1 << operand.bits - 1, GROUPS[name]
    top = sign - 1
    specials = [top, 1, sign | 1, sign | top] if group == 4 else [top, sign | 1]
    rows = []
    for special in specials:
        for position in range(group):
            row = [sign] * group
            row[position] = special
            rows.append(row * (64 // group))
    bits = np.array(rows, f"uint{operand.bits}")
    given = np.ascontiguousarray(bits.T) if transposed else bits
    pair = sparse.compress(given, transposed, dtype=name)
    dense = sparse.decompress(*pair, transposed, dtype=name)
    assert ((dense.T if transposed else dense) == np.where(bits == sign, 0, bits)).all()
    assert (pair[0] != sign).all()
    sparse.validate(given, transposed, dtype=name)


def test_nan_of_formats_without_negative_zero() -> None:
    """0x80 is the NaN of the fnuz types, not a zero."""
    codes = np.array([[0x80, 0, 0x80, 0, 0, 0, 0, 0x80] * 4], np.uint8)
    values, metadata = sparse.compress(codes, dtype="float8_e4m3fnuz")
    assert values.tolist() == [[0x80, 0x80, 0, 0x80] * 4]
    assert (sparse.decompress(values, metadata, dtype="float8_e4m3fnuz") == codes).all()


@pytest.mark.parametrize("code", [0b0000, 0b0101, 0b1010, 0b1111])
def test_equal_indices_of_other_producers(code: int) -> None:
    """Equal indices are read as the sum of both values, so that one of them has to be zero; -0.0 is one."""
    metadata = np.full((1, 1), code * 0x11, np.uint8)
    for first, second in ((0.0, 0.0), (5.0, -0.0), (-0.0, 6.0)):
        dense = sparse.decompress(np.array([[first, second] * 2], "float16"), metadata)
        row = [0.0] * 4
        row[code & 3] = first + second
        assert dense.tolist() == [row * 2]


def test_descending_indices_of_other_producers() -> None:
    metadata = np.array([[0b0110_0001]], np.uint8)  # (1, 0), then (2, 1)
    dense = sparse.decompress(np.array([[3, 4, 5, 6]], "int8"), metadata)
    assert dense.tolist() == [[4, 3, 0, 0, 0, 6, 5, 0]]


def test_e_factors() -> None:
    assert dict(sparse.E_FACTOR_MAP["float16"]) == {
        "int8": 8, "int16": 16, "int32": 32, "uint8": 8, "uint16": 16, "uint32": 32,
    }  # fmt: skip
    assert sparse.E_FACTOR_MAP["float32"]["int16"] == 8
    assert sparse.E_FACTOR_MAP["int8"]["int32"] == 32
    assert sparse.E_FACTOR_MAP["float8_e4m3"]["int32"] == sparse.E_FACTOR_MAP["e4m3"]["int32"] == 32
    assert len(sparse.E_FACTOR_MAP) == len(list(sparse.E_FACTOR_MAP)) == 10
    assert "float64" not in sparse.E_FACTOR_MAP
    assert "no type" not in sparse.E_FACTOR_MAP
    assert "float16" in repr(sparse.E_FACTOR_MAP)
    with pytest.raises(KeyError):
        sparse.E_FACTOR_MAP["int32"]
