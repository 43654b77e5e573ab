"""Test round trips, conversions, pruning and generation of random matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core import sparse
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.sparse import TooManyNonZeros
from tile_core.sparse import blocks
from tile_core.sparse.format import GROUPS, META_DTYPES, default_meta_dtype
from tile_core.sparse.layouts import layout_meta_type


def same(a: Any, b: Any) -> bool:
    bits = f"uint{8 * a.itemsize}"
    return a.shape == b.shape and a.dtype == b.dtype and bool((a.view(bits) == b.view(bits)).all())


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 20), st.integers(0, 12), st.sampled_from(list(GROUPS)), st.sampled_from(META_DTYPES),
    st.booleans(), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_round_trip(rows: int, groups: int, name: str, meta: str, transposed: bool, seed: int) -> None:
    extent = groups * sparse.E_FACTOR_MAP[name][meta]
    shape = (extent, rows) if transposed else (rows, extent)
    matrix = sparse.randn_semi_sparse(shape, name, seed=seed, transposed=transposed)
    sparse.validate(matrix, transposed)
    values, metadata = sparse.compress(matrix, transposed, meta_dtype=meta)
    assert values.shape == ((extent // 2, rows) if transposed else (rows, extent // 2))
    assert metadata.shape == (rows, groups)
    assert same(sparse.decompress(values, metadata, transposed), matrix)
    assert same(sparse.prune(matrix, transposed), matrix)
    other, codes = sparse.compress(np.ascontiguousarray(matrix.T), not transposed, meta_dtype=meta)
    assert same(np.ascontiguousarray(other.T), values)
    assert same(codes, metadata)


STRIDES = {
    "rows": lambda a: np.repeat(a, 2, 0)[::2],
    "columns": lambda a: np.repeat(a, 3, 1)[:, ::3],
    "both reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "columns first": np.asfortranarray,
    "a window": lambda a: np.pad(a.view(f"uint{8 * a.itemsize}"), 1).view(a.dtype)[1:-1, 1:-1],
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("strides", list(STRIDES))
@pytest.mark.parametrize("name", ["float16", "int8", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_any_strides(strides: str, name: str, transposed: bool) -> None:
    shape = (96, 37) if transposed else (37, 96)
    matrix = sparse.randn_semi_sparse(shape, name, seed=5, transposed=transposed)
    given_ = STRIDES[strides](matrix)
    assert same(np.ascontiguousarray(given_), matrix)
    expected = sparse.compress(matrix, transposed)
    found = sparse.compress(given_, transposed)
    assert same(found[0], expected[0])
    assert same(found[1], expected[1])
    assert found[0].flags.c_contiguous
    assert found[1].flags.c_contiguous
    values, codes = STRIDES[strides](expected[0]), STRIDES[strides](expected[1])
    assert same(sparse.decompress(values, codes, transposed), matrix)
    assert same(sparse.prune(given_, transposed), matrix)
    sparse.validate(given_, transposed)


@pytest.mark.parametrize("name", ["float16", "float8_e5m2", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_several_blocks_on_several_threads(name: str, transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_cores", lambda: 3)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(blocks, "_THREADED_BYTES", 0)
    shape = (160, 451) if transposed else (451, 160)
    matrix = sparse.randn_semi_sparse(shape, name, seed=6, transposed=transposed)
    matrix *= np.where(np.random.default_rng(6).random(shape) < 0.5, -1, 1).astype(matrix.dtype)  # some -0.0
    pair = sparse.compress(matrix, transposed)
    dense = sparse.decompress(*pair, transposed)
    assert same(dense, np.where(matrix == 0, np.zeros((), matrix.dtype), matrix))
    assert not np.signbit(dense[dense == 0].astype("float32")).any()
    row, column = 447, 5 * GROUPS[name]
    target = matrix.T if transposed else matrix
    target[row, column : column + GROUPS[name]] = 1
    with pytest.raises(TooManyNonZeros, match=rf"row {row}, columns {column} to "):
        sparse.compress(matrix, transposed)
    with pytest.raises(TooManyNonZeros, match=rf"row {row}, columns {column} to "):
        sparse.validate(matrix, transposed)


@pytest.mark.parametrize("group", [3, 4])
def test_the_first_group_is_named(group: int) -> None:
    matrix = np.zeros((7, 64), "int8")
    matrix[4, 32 : 32 + group] = 1
    matrix[4, 40:44] = matrix[6, 0:4] = 1
    with pytest.raises(TooManyNonZeros) as found:
        sparse.compress(matrix)
    assert (found.value.facts["row"], found.value.facts["column"], found.value.facts["found"]) == (4, 32, group)


LAYOUTS = [
    *((name, "cutlass_sm80", None, 64, 128) for name in ("float16", "bfloat16", "int8", "float8_e4m3fn", "float32")),
    *(("float16", "cutlass_sm90", k, 128, 384) for k in (32, 64, 96, 128)),
    *((name, "cutlass_sm90", 128, 64, 256) for name in ("int8", "uint8", "tfloat32")),
    *((name, "cutlass_sm100", None, 128, 256) for name in ("bfloat16", "float8_e5m2", "float32")),
]


@pytest.mark.parametrize(("name", "layout", "block_k", "rows", "extent"), LAYOUTS)
@pytest.mark.parametrize("transposed", [False, True])
def test_layouts(name: str, layout: str, block_k: int | None, rows: int, extent: int, transposed: bool) -> None:
    shape = (extent, rows) if transposed else (rows, extent)
    matrix = sparse.randn_semi_sparse(shape, name, seed=7, transposed=transposed)
    values, metadata = sparse.compress(matrix, transposed, block_k, layout, dtype=name)
    plain_values, natural = sparse.compress(matrix, transposed, dtype=name)
    assert same(values, plain_values)
    assert metadata.dtype == layout_meta_type(layout, to_dtype(name))
    assert same(sparse.decompress(values, metadata, transposed, block_k, layout, dtype=name), matrix)
    # Where the layout says, there is the element.
    as_there = sparse.convert(natural, "natural", "natural", dtype=name, meta_dtype=metadata.dtype)
    table = sparse.make_metadata_layout(metadata.shape, metadata.dtype, layout, name, block_k).tables()["memory"]
    assert (metadata.reshape(-1)[table] == as_there.reshape(-1)).all()
    assert same(sparse.convert(natural, "natural", layout, dtype=name, block_k=block_k), metadata)
    assert same(sparse.convert(metadata, layout, "natural", dtype=name, block_k=block_k), natural)


def test_convert_between_all_pairs() -> None:
    matrix = sparse.randn_semi_sparse((128, 256), "float16", seed=8)
    kinds = ["natural", "cutlass_sm80", "cutlass_sm90", "cutlass_sm100"]
    for a in kinds:
        start = sparse.compress(matrix, layout=a, block_k=64)[1]
        for b in kinds:
            there = sparse.convert(start, a, b, block_k=64)
            assert same(there, sparse.compress(matrix, layout=b, block_k=64)[1])
            assert same(sparse.convert(there, b, a, block_k=64), start)
    wide = sparse.convert(start, "cutlass_sm100", "cutlass_sm90", block_k=128)
    narrow = sparse.convert(wide, "cutlass_sm90", "cutlass_sm90", block_k=32, from_block_k=128)
    assert same(narrow, sparse.compress(matrix, layout="cutlass_sm90", block_k=32)[1])


@pytest.mark.parametrize("name", ["float16", "int8", "float32"])
def test_convert_between_element_types(name: str) -> None:
    matrix = sparse.randn_semi_sparse((5, 96), name, seed=9)
    for a in META_DTYPES:
        start = sparse.compress(matrix, meta_dtype=a)[1]
        for b in META_DTYPES:
            there = sparse.convert(start, "natural", "natural", dtype=name, meta_dtype=b)
            assert same(there, sparse.compress(matrix, meta_dtype=b)[1])
            assert same(sparse.convert(there, "natural", "natural", dtype=name, meta_dtype=a), start)
        usual = sparse.convert(start, "natural", "natural", dtype=name)
        assert usual.dtype == default_meta_dtype(to_dtype(name))
    usual[...] = 0
    assert start.any(), "the result is a copy"


@pytest.mark.parametrize("name", list(GROUPS))
@pytest.mark.parametrize("transposed", [False, True])
def test_prune(name: str, transposed: bool) -> None:
    """Against sorting the magnitudes of each group."""
    operand, group = to_dtype(name), GROUPS[name]
    rng = np.random.default_rng(10)
    shape = (16, 33) if transposed else (33, 16)
    if operand.is_integer:
        matrix = rng.integers(-4 if operand.kind == "int" else 0, 5, shape).astype(name)
        matrix[0, 0] = -128 if operand.kind == "int" else 255
    else:
        matrix = rng.integers(-4, 5, shape).astype(operand.numpy())
        matrix[3, 2], matrix[1, 1] = np.nan, np.inf if name == "float16" else 4
    found = sparse.prune(matrix, transposed)
    sparse.validate(found, transposed)
    dense, kept = (matrix.T, found.T) if transposed else (matrix, found)
    for row in range(dense.shape[0]):
        for start in range(0, dense.shape[1], group):
            values = [float(v) for v in dense[row, start : start + group]]
            size = [np.inf if np.isnan(v) else abs(v) for v in values]
            size = [s + (1e300 if np.isnan(v) else 0) for s, v in zip(size, values, strict=True)]
            order = sorted(range(group), key=lambda i: (-size[i], not np.isnan(values[i]), i))[: group // 2]
            expected = [v if i in order else 0.0 for i, v in enumerate(values)]
            np.testing.assert_array_equal([float(v) for v in kept[row, start : start + group]], expected)


@pytest.mark.parametrize("name", list(GROUPS))
def test_random_matrices(name: str) -> None:
    group = GROUPS[name]
    matrix = sparse.randn_semi_sparse((50, 64), name, seed=11)
    counts = (matrix != 0).reshape(50, -1, group).sum(-1)
    assert (counts == group // 2).all()
    patterns = (matrix != 0).reshape(-1, group)
    assert len(np.unique(patterns, axis=0)) == (6 if group == 4 else 2), "every choice of places occurs"
    assert same(matrix, sparse.randn_semi_sparse((50, 64), name, rng=np.random.default_rng(11)))
    assert not same(matrix, sparse.randn_semi_sparse((50, 64), name))
    if name == "tfloat32":
        assert not (matrix.view("uint32") & 0x1FFF).any()
    across = sparse.randn_semi_sparse((64, 50), name, seed=11, transposed=True)
    assert same(np.ascontiguousarray(across.T), matrix)
    assert across.flags.c_contiguous
