"""Exchanges of results between lanes of a row: layouts, functions, and arrays in registers."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import launch

from tile_core.dtypes import DTYPES
from tile_core.layout import Digit, FragmentLayout
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_cuda.build import build
from tile_cuda.ops.copy_lanes import EXCHANGES, exchanged
from tile_cuda.ptx.table import TABLE

from .test_staged_epilogue import EXCHANGE_CALLS, LANES, TARGET, gemm

TILE = Digit(4, 1, "thread"), Digit(2, 1, "register")
ROWS = Digit(2, 2, "register"), Digit(8, 4, "thread")
WARPS = Digit(4, 32, "thread")

#: Accumulators of matrix units: 16 rows and 8 columns per tile and warp.
ACCUMULATORS = {
    "a warpgroup": FragmentLayout((64, 128), ((WARPS, *ROWS), (Digit(16, 4, "register"), *TILE)), 128),
    "two beside each other": FragmentLayout(
        (64, 256), ((WARPS, *ROWS), (Digit(2, 128, "thread"), Digit(16, 4, "register"), *TILE)), 256
    ),
    "two instructions below each other": FragmentLayout(
        (128, 64), ((Digit(2, 32, "register"), WARPS, *ROWS), (Digit(8, 4, "register"), *TILE)), 128
    ),
    "warps": FragmentLayout(
        (32, 128), ((Digit(2, 32, "thread"), *ROWS), (Digit(2, 64, "thread"), Digit(8, 4, "register"), *TILE)), 128
    ),
}


@pytest.mark.parametrize("bits", EXCHANGES)
@pytest.mark.parametrize("name", ACCUMULATORS)
def test_a_quad_has_64_bytes_of_a_row_and_each_lane_16_of_them(name, bits):
    original, how = ACCUMULATORS[name], EXCHANGES[bits]
    made = exchanged(original, how)
    assert how.elements * bits == 128
    assert how.columns * bits == 4 * 128
    before, threads = (layout.thread_table[:, 0].reshape(original.shape) for layout in (original, made))
    registers = made.register_table.reshape(original.shape)
    # Words move within a quad only.
    np.testing.assert_array_equal(threads // 4, before // 4)
    quads = threads.reshape(original.shape[0], -1, 4, how.elements)
    assert (quads == quads[..., :1]).all()
    assert (np.sort(quads[..., 0] % 4, -1) == np.arange(4)).all()
    parts = registers.reshape(quads.shape)
    assert (parts[..., 0] % how.elements == 0).all()
    assert (parts == parts[..., :1] + np.arange(how.elements)).all()


@pytest.mark.parametrize("bits", EXCHANGES)
def test_no_layout_for_accumulators_in_other_storage(bits):
    how = EXCHANGES[bits]

    def accumulator(tiles, lanes=TILE[0], columns=0):
        dims = (WARPS, *ROWS), (Digit(tiles, 4, "register"), lanes, TILE[1])
        return FragmentLayout((64, columns or 8 * tiles), dims, 128)

    assert exchanged(accumulator(2 * how.tiles), how) is not None
    assert exchanged(accumulator(2 * how.tiles - 1), how) is None
    assert exchanged(accumulator(2 * how.tiles, columns=16 * how.tiles - 1), how) is None
    turned = (WARPS, ROWS[0], Digit(8, 1, "thread")), (Digit(how.tiles, 4, "register"), Digit(4, 8, "thread"), TILE[1])
    assert exchanged(FragmentLayout((64, 8 * how.tiles), turned, 128), how) is None
    assert exchanged(FragmentLayout((64, 8), ((WARPS, *ROWS), TILE), 128), how) is None


@pytest.mark.parametrize("bits", EXCHANGES)
def test_a_function_shuffles_as_often_as_estimated(bits):
    for name in EXCHANGES[bits].instructions:
        text = "\n".join(TABLE[name].lines())
        assert text.count("= shfl_sync_bfly_b32(") == text.count(" ? ") == EXCHANGES[bits].shuffles


@pytest.mark.sweep(1)
@pytest.mark.parametrize("wgmma", ["always", "never"])
@pytest.mark.parametrize("out", ["float32", "int32", "uint32", "float16", "int8", "bool", "float8_e4m3fn"])
def test_results_are_kept_in_registers(out, wgmma):
    pytest.importorskip("cuda.bindings.nvrtc")
    program = gemm((128, 128, 64), (128, 128, 32), out, threads=256)
    text = launch.lowered(program, make_context(TARGET, {**LANES, "wgmma": wgmma}))
    assert EXCHANGE_CALLS.search(text.text)
    cubin = build(text, "sm_90a")
    assert cubin.stack_bytes == cubin.spill_bytes == 0, cubin


@pytest.mark.parametrize("out", ["float32", "float16", "int8"])
def test_explain_reports_the_cost(out):
    report = report_json(gemm(out=out, block=(64, 64, 32)), TARGET, options=LANES)
    (note,) = (op["note"] for op in report["ops"] if op["variant"] == "cuda.copy.lanes")
    cycles = round(64 * 64 * DTYPES[out].bits / 8 / 512 * (16.5 + EXCHANGES[DTYPES[out].bits].shuffles))
    assert note == f"four lanes of a row exchange words, estimated {cycles:,} cycles, 1,056 without"
