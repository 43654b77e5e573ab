"""Test metadata layouts against torch and their definitions, and as bijections."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

from tile_core import sparse
from tile_core.errors.sparse import BadBlockK, BadMetadataDType, MetadataShapeRefused, UnknownMetadataLayout
from tile_core.layout import CallableLayout, Layout, prove, row_major
from tile_core.sparse.layouts import KINDS, layout_of_arch, reorder, restore

RECORDED = json.loads(Path(__file__).with_name("semi_structured_offsets.json").read_text(encoding="utf-8"))["offsets"]


def test_sm80_is_what_torch_scatters() -> None:
    for key, offsets in RECORDED.items():
        meta, rows, columns = key.split()
        operand = "float16" if meta == "int16" else "int8"
        layout = sparse.make_metadata_layout((int(rows), int(columns)), meta, "cutlass_sm80", operand)
        assert layout.tables()["memory"] == offsets, key


def test_sm80_is_what_the_installed_torch_scatters() -> None:
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("torch.sparse._semi_structured_conversions")
    for meta, operand, step in (("int16", "bfloat16", 32), ("int32", "uint8", 16)):
        for rows, columns in ((step, 2), (3 * step, 4), (5 * step, 10), (16 * step, 64)):
            expected = module._calculate_meta_reordering_scatter_offsets(rows, columns, getattr(torch, meta), "cpu")
            layout = sparse.make_metadata_layout((rows, columns), meta, "cutlass_sm80", operand)
            assert layout.tables()["memory"] == expected.tolist()


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("operand", "element"), [("float16", 8), ("float32", 4), ("int8", 8)])
@pytest.mark.parametrize("block_k", [16, 32, 64, 96, 128, 256])
def test_sm90_is_the_ordered_layout_of_its_definition(oracles: Any, operand: str, element: int, block_k: int) -> None:
    """``TensorEAtom`` of sm90_sparse_config.inl in dense elements, of which a byte describes ``element``."""
    bits = {"float16": 16, "float32": 32, "int8": 8}[operand]
    tile = min(block_k, 128)
    if block_k % (512 // bits):
        with pytest.raises(BadBlockK):
            sparse.make_metadata_layout((64, 16), None, "cutlass_sm90", operand, block_k)
        return
    number = tile * bits // 512
    if bits == 8:
        atom = oracles.ordered_layout([[64], [tile]], [[1], [0]])
    else:
        atom = oracles.ordered_layout([[8, 2, 4], [256 // bits, 2, number]], [[3, 1, 5], [0, 4, 2]])
    rows, columns = 192, 3 * tile // element
    layout = sparse.make_metadata_layout((rows, columns), "uint8", "cutlass_sm90", operand, block_k)
    for row in range(rows):
        for column in range(columns):
            across, inside = divmod(column * element, tile)
            expected = oracles.layout_index(atom, row % 64, inside) + 64 * tile * (row // 64 + rows // 64 * across)
            assert layout(row, column) * element == expected


@pytest.mark.parametrize(("operand", "element", "scale"), [("bfloat16", 8, 16), ("float32", 4, 8), ("uint8", 8, 0)])
def test_sm100_is_the_layout_of_its_definition(oracles: Any, operand: str, element: int, scale: int) -> None:
    """``TensorEAtom`` of sm1xx_sparse_config.inl in dense elements."""
    tile = 16 * element
    if scale:
        shape = [[8, 2, 8], [scale, 2, 4]]
        strides = [[8 * scale, scale, 128 * scale], [1, 64 * scale, 2 * scale]]
        atom = (shape, strides)
    else:
        atom = ([[128], [tile]], [[tile], [1]])
    rows, columns = 256, 48
    layout = sparse.make_metadata_layout((rows, columns), "int8", "cutlass_sm100", operand)
    for row in range(rows):
        for column in range(columns):
            across, inside = divmod(column * element, tile)
            expected = oracles.layout_index(atom, row % 128, inside) + 128 * tile * (row // 128 + rows // 128 * across)
            assert layout(row, column) * element == expected


CASES = [
    *(("cutlass_sm80", "float16", "int16", None), ("cutlass_sm80", "int8", "uint32", None)),
    *(("cutlass_sm90", "float16", "uint8", k) for k in (32, 64, 96, 128, 512)),
    *(("cutlass_sm90", "float32", "int8", k) for k in (16, 48, 80, 128)),
    *(("cutlass_sm90", "float8_e4m3fn", "uint8", k) for k in (64, 128)),
    *(("cutlass_sm100", name, "uint8", None) for name in ("float16", "float32", "int8")),
]


def test_500_shapes_are_bijections_and_all_others_are_refused() -> None:
    rng = np.random.default_rng(seed := int(np.random.SeedSequence().entropy % 10**6))
    print("seed", seed)
    proved = refused = 0
    while proved < 500:
        kind, operand, meta, block_k = CASES[rng.integers(len(CASES))]
        rows, columns = int(rng.integers(1, 40)) * int(rng.choice([1, 8, 16, 32, 64])), int(rng.integers(1, 65))
        try:
            layout = sparse.make_metadata_layout((rows, columns), meta, kind, operand, block_k)
        except MetadataShapeRefused:
            refused += 1
            continue
        proof = prove(layout)
        assert proof.bijective
        assert proof.method == "digits"
        assert layout.span == rows * columns
        proved += 1
    assert refused > 100


@pytest.mark.parametrize(("meta", "group", "weave"), [("int16", 32, 4), ("int32", 16, 2)])
def test_sm80_exists_exactly_where_its_formula_is_a_bijection(meta: str, group: int, weave: int) -> None:
    """Rows that do not fill the interleaved block share places or leave the matrix; the formula is torch's."""

    def formula(i: int, j: int) -> int:
        row = i // group * group + i % 8 * weave + i % group // 8
        swap = (row % 2 == 0 and j % 2 == 1) - (row % 2 == 1 and j % 2 == 0)
        row, column = row + swap, j - swap
        return column // 2 * 2 * rows + 2 * row + column % 2

    operand = "float16" if meta == "int16" else "int8"
    for rows in (*range(2, 49), 64, 80):
        for columns in (1, 2, 3, 4, 6):
            indices = sorted(formula(i, j) for i in range(rows) for j in range(columns))
            if indices == list(range(rows * columns)):
                layout = sparse.make_metadata_layout((rows, columns), meta, "cutlass_sm80", operand)
                assert layout == CallableLayout((rows, columns), formula) or layout.tables()["memory"] == [
                    formula(i, j) for i in range(rows) for j in range(columns)
                ]
            else:
                with pytest.raises(MetadataShapeRefused):
                    sparse.make_metadata_layout((rows, columns), meta, "cutlass_sm80", operand)


def test_large_layouts_need_no_table() -> None:
    layout = sparse.make_metadata_layout((1 << 14, 1 << 11), "int16", "cutlass_sm80")
    assert prove(layout).bijective
    assert layout(0, 1) == 2
    assert layout(8, 0) == 1


def test_natural() -> None:
    layout = sparse.make_metadata_layout((3, 5), "int32", "natural", "int8")
    assert isinstance(layout, Layout)
    assert layout == row_major((3, 5))
    assert "natural" in layout.note


@pytest.mark.parametrize("case", CASES)
def test_reorder_puts_elements_where_the_layout_says(case: tuple[str, str, str, int | None]) -> None:
    kind, operand, meta, block_k = case
    rows, columns = 256, 480
    layout = sparse.make_metadata_layout((rows, columns), meta, kind, operand, block_k)
    natural = np.random.default_rng(4).integers(0, 255, (rows, columns)).astype(meta)
    expected = np.full(rows * columns, 99, meta)
    expected[layout.tables()["memory"]] = natural.reshape(-1)
    assert (reorder(natural, layout).reshape(-1) == expected).all()
    assert (restore(reorder(natural, layout), layout) == natural).all()


@pytest.mark.parametrize(
    ("arch", "kind"),
    [("8.0", 1), ("8.6", 1), ("8.9", 1), ("9.0", 2), ("9.0a", 2), ("sm_90a", 2), (90, 2), ((8, 0), 1), ("10.0", 3)],
)
def test_architectures(arch: Any, kind: int) -> None:
    assert layout_of_arch(arch) == KINDS[kind]


@pytest.mark.parametrize("arch", [None, "7.5", "12.0", "sm_120", "gpu", "", 8])
def test_unknown_architectures(arch: Any) -> None:
    with raises_error(UnknownMetadataLayout, what="architecture"):
        sparse.make_cutlass_metadata_layout((64, 8), "float16", arch, block_k=64)


def test_make_cutlass_metadata_layout_of_buffers_and_shapes() -> None:
    buffer = SimpleNamespace(shape=(64, 8), dtype="int16")
    layout = sparse.make_cutlass_metadata_layout(buffer, mma_dtype="float16", arch="8.0", block_k=64, backend="any")
    assert layout == sparse.make_metadata_layout((64, 8), "int16", "cutlass_sm80")
    assert layout == sparse.make_cutlass_metadata_layout((64, 8), "float16", "8.0")
    wide = sparse.make_cutlass_metadata_layout((64, 8), "float16", "9.0", block_k=64)
    assert wide == sparse.make_metadata_layout((64, 8), "uint8", "cutlass_sm90", "float16", 64)
    with pytest.raises(BadMetadataDType):
        sparse.make_cutlass_metadata_layout(buffer, mma_dtype="float16", arch="9.0", block_k=64)


def test_atoms_depend_on_block_k() -> None:
    layouts = [sparse.make_metadata_layout((64, 16), None, "cutlass_sm90", "float16", k) for k in (32, 64, 128)]
    assert len({tuple(x.tables()["memory"]) for x in layouts}) == 3
    assert layouts[2] == sparse.make_metadata_layout((64, 16), None, "cutlass_sm90", "float16", 256)
