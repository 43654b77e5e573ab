"""Every refusal: its code, what it names, and the nearest that is legal."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tile_core import sparse
from tile_core.errors import KernelError, SetupError
from tile_core.errors import sparse as errors

HALF = sparse.randn_semi_sparse((4, 32), "float16", seed=1)
VALUES, CODES = sparse.compress(HALF)


def refusal(kind: type[Exception], text: str, help_text: str, call: Any) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    error = found.value
    assert isinstance(error, (KernelError, SetupError))
    assert str(error).startswith(f"[{error.code}]")
    assert help_text in error.help


def test_too_many_non_zeros() -> None:
    matrix = HALF.copy()
    matrix[2, 8:12] = [1, 2, 0, 4]
    text = r"K501.*A is not 2:4 sparse along K: row 2, columns 8 to 11 hold 3 non-zeros, expected at most 2"
    refusal(errors.TooManyNonZeros, text, "prune(A) keeps the 2 largest of every 4", lambda: sparse.compress(matrix))
    refusal(errors.TooManyNonZeros, text, "", lambda: sparse.validate(matrix))
    refusal(errors.TooManyNonZeros, text, "", lambda: sparse.validate(matrix.T, transposed=True))
    wide = np.zeros((2, 16), "float32")
    wide[1, 6:8] = np.nan, 1
    text = r"K501.*not 1:2 sparse.*row 1, columns 6 to 7 hold 2 non-zeros, expected at most 1"
    refusal(errors.TooManyNonZeros, text, "prune(A) keeps the 1 largest of every 2", lambda: sparse.compress(wide))


@pytest.mark.parametrize("kind", ["float64", "int32", "int16", "bool", "complex64", "int64"])
def test_bad_dtype(kind: str) -> None:
    matrix = np.zeros((4, 32), kind)
    text = r"K502.*no 2:4 form of .*expected one of: float16, bfloat16, int8"
    refusal(errors.BadSparseDType, text, "pass dtype= for codes", lambda: sparse.compress(matrix))


@pytest.mark.parametrize(
    ("held", "asked"),
    [("float16", "bfloat16"), ("uint8", "float16"), ("float32", "int8"), ("float8_e5m2", "float8_e4m3fn")],
)
def test_dtype_of_another_width_or_kind(held: str, asked: str) -> None:
    matrix = sparse.randn_semi_sparse((4, 32), held)
    text = rf"K502.*no 2:4 form of {asked} in an array of {held}"
    refusal(errors.BadSparseDType, text, "", lambda: sparse.compress(matrix, dtype=asked))


def test_packed_types() -> None:
    import ml_dtypes

    matrix = np.zeros((4, 32), ml_dtypes.float4_e2m1fn)
    refusal(errors.BadSparseDType, r"K502.*float4_e2m1fn", "", lambda: sparse.compress(matrix))
    refusal(errors.BadSparseDType, r"K502.*float64", "", lambda: sparse.randn_semi_sparse((4, 4), "float64"))


def test_bad_metadata_dtype() -> None:
    text = r"K503.*metadata of float16 in layout 'natural' cannot be float32, expected one of: int8, int16"
    refusal(errors.BadMetadataDType, text, "meta_dtype='int16'", lambda: sparse.compress(HALF, meta_dtype="float32"))
    byte = sparse.randn_semi_sparse((16, 64), "int8", seed=1)
    text = r"K503.*metadata of int8 in layout 'cutlass_sm80' cannot be uint16, expected one of: int32, uint32"
    call = lambda: sparse.compress(byte, layout="cutlass_sm80", meta_dtype="uint16")  # noqa: E731
    refusal(errors.BadMetadataDType, text, "meta_dtype='int32'", call)
    text = r"K503.*metadata of float16 in layout 'cutlass_sm90' cannot be int16, expected one of: uint8, int8"
    call = lambda: sparse.decompress(VALUES, CODES, layout="cutlass_sm90", block_k=64)  # noqa: E731
    refusal(errors.BadMetadataDType, text, "meta_dtype='int8'", call)


@pytest.mark.parametrize(("extent", "near"), [(8, "nearest: 16"), (24, "nearest: 16 or 32"), (50, "nearest: 48 or 64")])
def test_bad_extent(extent: int, near: str) -> None:
    matrix = np.zeros((2, extent), "float16")
    text = rf"K504.*K = {extent} of float16 is not a multiple of 16, the elements that one int16 of metadata describes"
    refusal(errors.BadSparseExtent, text, near, lambda: sparse.compress(matrix))
    refusal(errors.BadSparseExtent, text, near, lambda: sparse.compress(matrix.T, transposed=True))


def test_extents_of_groups_and_conversions() -> None:
    text = r"K504.*K = 6 of int8 is not a multiple of 4, the size of a group"
    for call in (sparse.validate, sparse.prune):
        refusal(errors.BadSparseExtent, text, "nearest: 4 or 8", lambda call=call: call(np.zeros((2, 6), "int8")))
    refusal(errors.BadSparseExtent, text, "4 or 8", lambda: sparse.randn_semi_sparse((2, 6), "int8"))
    text = r"K504.*K = 16 of float16 is not a multiple of 32, the elements that one int32"
    call = lambda: sparse.convert(np.zeros((2, 1), "int16"), "natural", "natural", meta_dtype="int32")  # noqa: E731
    refusal(errors.BadSparseExtent, text, "nearest: 32", call)


@pytest.mark.parametrize("layout", ["row_major", None, "", "cutlass_sm75"])
def test_unknown_layout(layout: Any) -> None:
    text = r"K505.*no metadata layout for layout .*expected one of: natural, cutlass_sm80, cutlass_sm90, cutlass_sm100"
    calls = [
        lambda: sparse.compress(HALF, layout=layout),
        lambda: sparse.decompress(VALUES, CODES, layout=layout),
        lambda: sparse.convert(CODES, "natural", layout),
        lambda: sparse.make_metadata_layout((32, 2), "int16", layout),
    ]
    for call in calls:
        refusal(errors.UnknownMetadataLayout, text, "layout='natural'", call)


@pytest.mark.parametrize(
    ("layout", "operand", "rows", "columns", "text", "near"),
    [
        ("cutlass_sm80", "float16", 48, 2, r"int16 metadata \(48, 2\): M = 48 is not a multiple of 32", "32 or 64"),
        ("cutlass_sm80", "int8", 8, 2, r"int32 metadata \(8, 2\): M = 8 is not a multiple of 16", "nearest: 16"),
        ("cutlass_sm80", "float16", 32, 3, r"metadata elements per row = 3 is not a multiple of 2", "2 or 4"),
        ("cutlass_sm90", "float16", 96, 8, r"uint8 metadata \(96, 8\): M = 96 is not a multiple of 64", "64 or 128"),
        ("cutlass_sm90", "float16", 64, 12, r"metadata elements per row = 12 is not a multiple of 8", "8 or 16"),
        ("cutlass_sm100", "float32", 64, 16, r"M = 64 is not a multiple of 128", "nearest: 128"),
    ],
)
def test_shapes_without_a_bijection(layout: str, operand: str, rows: int, columns: int, text: str, near: str) -> None:
    call = lambda: sparse.make_metadata_layout((rows, columns), None, layout, operand, 64)  # noqa: E731
    refusal(errors.MetadataShapeRefused, rf"K506.*{layout}.*{text}", near, call)
    meta = {"cutlass_sm80": "int32" if operand == "int8" else "int16"}.get(layout, "uint8")
    extent = columns * sparse.E_FACTOR_MAP[operand][meta]
    matrix = np.zeros((rows, extent), operand)
    refusal(errors.MetadataShapeRefused, text, near, lambda: sparse.compress(matrix, block_k=64, layout=layout))


def test_shapes_of_another_rank() -> None:
    call = lambda: sparse.make_metadata_layout((32, 2, 2), "int16", "cutlass_sm80")  # noqa: E731
    refusal(errors.MetadataShapeRefused, r"K506.*rank = 3", "nearest: 2", call)


@pytest.mark.parametrize(("operand", "multiple"), [("float16", 32), ("int8", 64), ("float32", 16)])
@pytest.mark.parametrize("block_k", [None, 0, -64, 40, 64.0, True])
def test_bad_block_k(operand: str, multiple: int, block_k: Any) -> None:
    matrix = np.zeros((64, 256), operand)
    text = rf"K507.*'cutlass_sm90' of {operand} needs block_k.*multiple of {multiple}; found {block_k}"
    call = lambda: sparse.compress(matrix, block_k=block_k, layout="cutlass_sm90")  # noqa: E731
    refusal(errors.BadBlockK, text, f"block_k, {multiple} to 128", call)


def test_not_a_matrix() -> None:
    text = r"K508.*A must be a matrix in host memory, found 1 dimensions \(16,\)"
    refusal(errors.NotAMatrix, text, "two-dimensional NumPy array", lambda: sparse.compress(np.zeros(16, "float16")))
    refusal(errors.NotAMatrix, r"K508.*found list \[\[1", "", lambda: sparse.compress([[1.0, 0.0, 0.0, 0.0] * 4]))
    refusal(errors.NotAMatrix, r"K508.*>f2", "", lambda: sparse.compress(HALF.astype(">f2")))
    text = r"K508.*A_sparse must be a matrix"
    refusal(errors.NotAMatrix, text, "", lambda: sparse.decompress(VALUES[None], CODES))


def test_arrays_of_a_device() -> None:
    class OnDevice:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it is elsewhere")

    refusal(errors.NotAMatrix, r"K508.*it is elsewhere", "copied to the host", lambda: sparse.compress(OnDevice()))


def test_shapes_that_do_not_fit() -> None:
    text = r"K509.*metadata int16 of shape \(3, 2\) does not fit values \(4, 16\), expected shape \(4, 2\)"
    refusal(errors.SparseShapeMismatch, text, "as compress returned it", lambda: sparse.decompress(VALUES, CODES[:3]))
    narrow = np.zeros((4, 9), "float16")
    text = r"K509.*does not fit values \(4, 9\), expected shape \(4, 18 / 16\)"
    refusal(errors.SparseShapeMismatch, text, "", lambda: sparse.decompress(narrow, CODES))


def test_illegal_metadata() -> None:
    values, codes = np.ones((2, 8), "float16"), np.full((2, 1), 0x4444, np.uint16)
    codes[1, 0] = 0x4F44
    text = r"K510.*metadata of row 1, columns 8 to 11 is 0b1111 for non-zero values, expected two different indices"
    refusal(errors.IllegalMetadata, text, "layout and block_k", lambda: sparse.decompress(values, codes))
    wide, codes = np.ones((2, 4), "float32"), np.full((2, 2), 0x44, np.uint8)
    codes[0, 1] = 0xE8
    text = r"K510.*metadata of row 0, columns 4 to 5 is 0b1000 .*expected 0b0100 or 0b1110"
    refusal(errors.IllegalMetadata, text, "", lambda: sparse.decompress(wide, codes))
    wide[0, 2] = -0.0
    assert not sparse.decompress(wide, codes)[0, 4:6].any()


def test_foreign_tensors() -> None:
    class Opaque:
        packed = np.zeros(4)
        meta = None

    text = r"K511.*a ndarray cannot be read: it is not a semi-structured tensor of torch"
    refusal(errors.ForeignSparseTensor, text, "use compress\\(A\\)".replace("\\", ""), lambda: sparse.from_torch(HALF))
    text = r"K511.*a Opaque cannot be read: it does not keep values and metadata"
    refusal(errors.ForeignSparseTensor, text, "to_dense()", lambda: sparse.from_torch(Opaque()))


@pytest.mark.parametrize("found", [np.zeros((2, 2), "float16"), np.zeros((2, 2), "int64"), [1, 2], np.int16(3)])
def test_bad_metadata(found: Any) -> None:
    text = r"K512.*metadata must be an array of 8-, 16- or 32-bit integers, found "
    refusal(errors.BadMetadataRank, text, "as compress returned it", lambda: sparse.decode_metadata(found))
    refusal(errors.BadMetadataRank, text, "", lambda: sparse.decompress(VALUES, found))


def test_torch_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    refusal(errors.TorchMissing, r"S501.*torch is not installed", "", lambda: sparse.to_torch(VALUES, CODES))


def test_base() -> None:
    assert errors.SparseError.code == "K500"
