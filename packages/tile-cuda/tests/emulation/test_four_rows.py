"""Copies of four rows of a matrix: results, byte order, and detected mistakes."""

import numpy as np
import pytest

from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble
from ..vectors.copies import random_array
from ..vectors.four_rows import gather_of, scatter_of
from .launches import kinds, report_text, run_copy

pytestmark = pytest.mark.sweep(8)

SM100 = Arch(100, "a")
ROWS = [36, 0, 5, 5, 17, 3, 36, 1]
OUTSIDE = [36, 37, -1, 0, 2**31 - 1, -(2**31), 4, 1000]
ONCE = [36, 0, 5, 7, 17, 3, 30, 1]


def run_gather(*args, **how):
    copy, expected = gather_of(*args, **how)
    return run_copy(copy, SM100), expected


def run_scatter(*args, **how):
    copy, expected = scatter_of(*args, **how)
    return run_copy(copy, SM100), expected


@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
@pytest.mark.parametrize("rows", [ROWS, OUTSIDE], ids=["inside", "outside"])
@pytest.mark.parametrize(("dtype", "column"), [("uint8", 16), ("uint16", 56), ("float32", -4), ("float64", 62)])
def test_rows_arrive_in_the_order_in_which_they_are_named(dtype, column, rows, space):
    width = 128 // np.dtype(dtype).itemsize
    result, expected = run_gather(random_array((37, 64), dtype), rows, column, width, space=space)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_a_swizzle_exchanges_chunks_of_four_rows_by_their_address(swizzle):
    # Groups of four rows of 128 bytes are halves of the 1024 bytes after which the order repeats.
    array, width = random_array((37, 256), "uint8"), swizzle or 64
    result, expected = run_gather(array, ROWS, 16, width, swizzle=swizzle)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)
    result, expected = run_scatter((37, 256), "uint8", ONCE, 16, width, swizzle=swizzle)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


def spelled(suffix, last, *given):
    """Changes of the statement that gathers: a longer opcode, with more operands."""
    more = "".join(f", %{8 + i}" for i in range(len(given)))
    operands = "".join(f", {operand}" for operand in given)
    return {
        "::bytes [%0]": f"::bytes{suffix} [%0]",
        last: f"{last}{more}",
        '"r"(at(full)) :': f'"r"(at(full)){operands} :',
    }


BLOCKS, POLICY = '"h"((unsigned short)1)', '"l"(0x12F0000000000000ull)'


@pytest.mark.parametrize(
    ("suffix", "operands"),
    [
        (".L2::cache_hint", [POLICY]),
        (".multicast::cluster", [BLOCKS]),
        (".multicast::cluster.L2::cache_hint", [BLOCKS, POLICY]),
    ],
)
def test_rows_arrive_in_several_blocks_and_with_a_hint(suffix, operands):
    parts = spelled(suffix, "[%7]", *operands)
    copy, expected = gather_of(random_array((37, 64), "uint16"), ROWS, 8, 32, space="shared::cluster", parts=parts)
    assert suffix in copy.text
    assert assemble(copy.kernel().text, "sm_100a") == ""
    result = run_copy(copy, SM100)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


def test_rows_are_stored_with_a_hint():
    parts = {"bulk_group [": "bulk_group.L2::cache_hint [", "[%6]": "[%6], %7", "GROUP)) :": f"GROUP)), {POLICY} :"}
    copy, expected = scatter_of((37, 64), "uint16", ONCE, 8, 32, parts=parts)
    assert "scatter4.bulk_group.L2::cache_hint" in copy.text
    assert assemble(copy.kernel().text, "sm_100a") == ""
    result = run_copy(copy, SM100)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize("rows", [ONCE, [36, 37, 5, 2**31 - 1, 17, 3, 30, 1000]], ids=["inside", "beyond"])
@pytest.mark.parametrize(("dtype", "column"), [("uint8", 16), ("uint16", 16), ("int32", 48), ("float64", 56)])
def test_rows_are_stored_inside_the_matrix_only(dtype, column, rows):
    width = 128 // np.dtype(dtype).itemsize
    result, expected = run_scatter((37, 64), dtype, rows, column, width)
    assert result.ok, report_text(result)
    assert np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(("rows", "column"), [([3, -1, 4, 5], 0), ([3, 1, 4, 5], -16)])
def test_nothing_is_stored_at_negative_rows_or_columns(rows, column):
    result, _ = run_scatter((37, 64), "uint8", rows, column, 32)
    assert kinds(result) == {"async"}, report_text(result)


@pytest.mark.parametrize("run", [run_gather, run_scatter])
@pytest.mark.parametrize("rows_of_the_box", [2, 4])
def test_a_map_of_other_boxes_is_found(run, rows_of_the_box):
    first = [random_array((37, 64), "uint8")] if run is run_gather else [(37, 64), "uint8"]
    result, _ = run(*first, ONCE, 16, 32, box=rows_of_the_box)
    assert kinds(result) == {"async"}, report_text(result)


def test_a_column_between_chunks_of_16_bytes_is_found():
    result, _ = run_gather(random_array((37, 64), "uint8"), ROWS, 8, 32)
    assert kinds(result) == {"async"}, report_text(result)


@pytest.mark.parametrize(
    "parts",
    [
        {"EXPECT": "expect(full, BYTES / 4);"},
        {"EXPECT": "expect(full, BYTES + 16);"},
        {"EXPECT": ""},
        {"WAIT": ""},
        {"WAIT": "wait(full, 1);"},
        {"INIT": "init(full, 2); fence_init();"},
        {"AFTER": "to[0] = 1;"},
        {"at(to + g * GROUP)": "at(to + g * GROUP + 64)"},
        {"rows[g * 4 + 1]": "rows[g * 4 + 2]"},
        {'"r"(COLUMN), "r"(rows[g * 4])': '"r"(rows[g * 4]), "r"(COLUMN)'},
    ],
)
def test_mistakes_around_a_gather_are_found(parts):
    result, expected = run_gather(random_array((37, 64), "uint8"), ROWS, 16, 32, parts=parts)
    assert not result.ok or not np.array_equal(result.outputs["out"], expected)


@pytest.mark.parametrize(
    "parts",
    [
        {"PROXY": ""},
        {"COMMIT": ""},
        {"WAIT": ""},
        {"AFTER": "from[threadIdx.x] = 1;"},
        {"at(from + g * GROUP)": "at(from)"},
        {"rows[g * 4 + 3]": "rows[g * 4 + 2] + 1"},
    ],
)
def test_mistakes_around_a_scatter_are_found(parts):
    result, expected = run_scatter((37, 64), "uint8", ONCE, 16, 32, parts=parts)
    assert not result.ok or not np.array_equal(result.outputs["out"], expected)


GATHER, CLUSTER, SCATTER = {}, {"space": "shared::cluster"}, None


@pytest.mark.parametrize(
    ("arch", "how", "has"),
    [
        ("sm_90a", GATHER, False), ("sm_100", GATHER, True), ("sm_120a", GATHER, True), ("sm_103a", GATHER, True),
        ("sm_100", CLUSTER, False), ("sm_100a", CLUSTER, True), ("sm_110a", CLUSTER, True), ("sm_120a", CLUSTER, False),
        ("sm_100", SCATTER, False), ("sm_100f", SCATTER, True), ("sm_103a", SCATTER, True), ("sm_120a", SCATTER, False),
    ],
)  # fmt: skip
def test_the_models_and_the_assembler_agree_on_architectures(arch, how, has):
    array = random_array((37, 64), "uint8")
    copy, expected = (
        scatter_of((37, 64), "uint8", ONCE, 16, 32) if how is SCATTER else gather_of(array, ROWS, 16, 32, **how)
    )
    assert (assemble(copy.kernel().text, arch) == "") is has
    if has:
        result = run_copy(copy, Arch.of(arch))
        assert result.ok, report_text(result)
        assert np.array_equal(result.outputs["out"], expected)
    else:
        with pytest.raises(Exception, match="does not have the PTX instruction"):
            run_copy(copy, Arch.of(arch))
