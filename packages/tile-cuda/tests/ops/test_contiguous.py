"""Bulk copies of contiguous bytes: tiles without boxes, on both sides of each rule."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.errors.lowering import VariantRefused
from tile_core.ir.attributes import ASKED_LAYOUT
from tile_core.layout.layout import column_major, row_major
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.launch_assumptions import assume
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import READABLE_ROWS
from tile_cuda.ops.contiguous import can_copy_bytes

TARGET = "cuda:sm_90a"
LOAD, STORE = "  cp_async_bulk_shared_cluster_global_mb", "  cp_async_bulk_global_shared_cta_bulk_group(&"


def moved(shape, tile_shape, dtype="float16", times=4, load=True, store=True, begin=0, step=None):
    """Parts of a tensor through shared memory, cut along its first dimension."""
    step = tile_shape[0] if step is None else step
    rest = [slice(0, n) for n in tile_shape[1:]]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((max(shape[0], times * tile_shape[0]), *shape[1:]), dtype)):
        with T.Kernel(times, threads=64) as bx:
            S = T.alloc_shared(tile_shape, dtype)
            part = (slice(begin + bx * step, begin + bx * step + tile_shape[0]), *rest)
            # Blocks that read overlapping parts write parts of their own.
            own = part if step == tile_shape[0] else (slice(bx * tile_shape[0], (bx + 1) * tile_shape[0]), *rest)
            if load:
                T.tma_copy(A[part], S)
            else:
                T.copy(A[part], S)
            if store:
                T.tma_copy(S, B[own])
            else:
                T.copy(S, B[own])

    return main


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("shape", "part", "dtype"),
    [
        ((32, 65), (8, 65), "float16"),  # rows of 130 bytes
        ((32, 13), (8, 13), "float32"),
        ((64, 7), (16, 7), "uint8"),
        ((32, 3), (8, 3), "float64"),
        ((4, 2, 1, 3, 2, 8), (1, 2, 1, 3, 2, 8), "float32"),  # six dimensions
        ((20480,), (5120,), "float32"),  # more than 16 boxes of 256 elements
        ((32, 65), (8, 65), "bfloat16"),
        ((64, 5), (16, 5), "float8_e4m3fn"),
    ],
)
@pytest.mark.parametrize("sides", ["both", "load", "store"])
def test_they_are_right(shape, part, dtype, sides):
    kernel = tile.compile(
        moved(shape, part, dtype, load=sides != "store", store=sides != "load"), TARGET, runtime="emulator"
    )
    assert (LOAD in kernel.source) == (sides != "store")
    assert (STORE in kernel.source) == (sides != "load")
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    a = np.random.default_rng().integers(0, 100, shape).astype(kind)
    b = np.zeros(shape, kind)
    kernel(a, b)
    assert (a == b).all()


def test_the_option_takes_them_too():
    @T.prim_func
    def main(A: T.Tensor((32, 65), "float16"), B: T.Tensor((32, 65), "float16")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((8, 65), "float16")
            T.copy(A[bx * 8 : bx * 8 + 8, :], S)
            T.copy(S, B[bx * 8 : bx * 8 + 8, :])

    text = tile.compile(main, TARGET, runtime="emulator", options={"tma": "always"}).source
    assert LOAD in text
    assert STORE in text
    assert "cp_async_bulk" not in tile.compile(main, TARGET, runtime="emulator").source


def test_boxes_come_first():
    text = tile.compile(moved((32, 64), (8, 64)), TARGET, runtime="emulator").source
    assert LOAD not in text
    assert "cp_async_bulk_tensor_2d" in text


ROW, N = tirx.Var("i", "int32"), tirx.Var("n", "int32")


def answer(
    shape=(64, 65), tile=(8, 65), dtype="float16", *, corner=None, extents=None, strides=None, attrs=None, whole=None,
    low=0, aligned=None, to_dtype="", name="copy",
):  # fmt: skip
    """Request part of a tensor, at a corner, for all or part of a tile."""
    tensor = tirx.decl_buffer(list(shape), dtype, "A", strides=strides, layout=None)
    shared = tirx.decl_buffer(list(whole or tile), to_dtype or dtype, "S", scope="shared", layout=None)
    src = View(tensor, tuple(corner or (0,) * len(shape)), tuple(extents or tile))
    dst = View(shared, (low,) + (0,) * (len(tile) - 1), tuple(tile))
    ranges = Analyzer()
    ranges.bind(ROW, ir.Range.from_min_extent(0, 8))
    aligned = assume([tensor]) if aligned is None else aligned(tensor)
    return can_copy_bytes(SimtCall(name, (src, dst), attrs or {}), dst, src, aligned, ranges)


# What is refused, why, and the nearest legal copy.
RULES = {
    "an update": ({"name": "atomic_tile"}, "it is not a copy", {}),
    "a conversion": ({"to_dtype": "float32"}, "it converts", {}),
    "a rounding": ({"attrs": {"round": "tfloat32"}}, "it converts", {}),
    "parts of bytes": ({"dtype": "float4_e2m1fn", "tile": (8, 64), "shape": (64, 64)}, "its elements are parts of byte",
                       {"dtype": "uint8", "tile": (8, 64), "shape": (64, 64)}),
    "unknown extents": ({"extents": (N, 65)}, "its extents are not known", {"extents": (8, 65)}),
    "a part of the tile": ({"whole": (16, 65)}, "it takes a part of S", {"whole": (8, 65)}),
    "the end of the tile": ({"low": 8, "whole": (16, 65)}, "it takes a part of S", {}),
    "another shape": ({"tile": (65, 8), "extents": (8, 65)}, "its sides differ in shape",
                      {"tile": (1, 8, 65), "extents": (8, 65), "whole": (1, 8, 65)}),
    "columns first": ({"attrs": {ASKED_LAYOUT: column_major((8, 65))}}, "S is not in plain order",
                      {"attrs": {ASKED_LAYOUT: row_major((8, 65))}}),
    "an operand": ({"attrs": {READABLE_ROWS: [0, 32]}}, "products read S, which no descriptor describes in plain order",
                   {"attrs": {READABLE_ROWS: [0, 32], "variant": "cuda.copy.bulk"}}),
    "a part of 16 bytes": ({"tile": (7, 65)}, "910 bytes are not a multiple of 16", {"tile": (16, 65)}),
    "more than a phase": ({"tile": (8192, 65), "shape": (8192, 65)}, "1064960 bytes are not a multiple of 16 up to",
                          {"tile": (8064, 65), "shape": (8192, 65)}),
    "an unaligned address": ({"aligned": lambda a: Aligned({a: 8}, {})}, "A is not known to begin at a multiple of 16",
                             {"aligned": lambda a: Aligned({a: 16}, {})}),
    "a view": ({"aligned": lambda a: Aligned({}, {})}, "A is not known to begin at a multiple of 16", {}),
    "rows apart": ({"tile": (8, 64)}, "the tile's rows do not lie one after another in A",
                   {"tile": (1, 64), "extents": (1, 64)}),
    "padded rows": ({"strides": (72, 1)}, "the tile's rows do not lie one after another in A", {"strides": (65, 1)}),
    "a corner inside of 16 bytes": ({"corner": (ROW * 4, 0)}, "it is not known to begin at a multiple of 16 bytes of A",
                                    {"corner": (ROW * 8, 0)}),
    "beyond the end": ({"corner": (ROW * 8 + 8, 0)}, "it is not known to be inside of A", {"corner": (ROW * 8, 0)}),
    "before the start": ({"corner": (ROW * 8 - 8, 0)}, "it is not known to be inside of A", {"corner": (ROW * 8, 0)}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name):
    changes, reason, nearest = RULES[name]
    refused, accepted = answer(**changes), answer(**nearest)
    assert isinstance(refused, Reject)
    assert reason in refused.reason
    assert isinstance(accepted, Accept), accepted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shape": (32, 65), "tile_shape": (8, 64)}, "rows do not lie one after another in A"),
        ({"shape": (28, 65), "tile_shape": (7, 65)}, "910 bytes are not a multiple of 16"),
        ({"shape": (33, 65), "tile_shape": (8, 65), "begin": 1}, "it is not known to begin at a multiple of 16 bytes"),
        ({"shape": (32, 65), "tile_shape": (8, 65), "step": 4, "times": 7}, "begin at a multiple of 16 bytes of A"),
        ({"shape": (32, 65), "tile_shape": (8, 65), "times": 5}, "it is not known to be inside of A"),
        ({"shape": (600000, 5), "tile_shape": (150000, 5)}, "not a multiple of 16 up to|shared memory"),
    ],
)
def test_a_copy_that_demands_one_names_the_rule(given, says):
    with pytest.raises(VariantRefused, match=says):
        tile.compile(moved(**given), TARGET, runtime="emulator")


def test_dynamic_sizes_are_not_provably_inside():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("m"), 65), "float16"), B: T.Tensor((32, 65), "float16")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((8, 65), "float16")
            T.tma_copy(A[bx * 8 : bx * 8 + 8, :], S)
            T.copy(S, B[bx * 8 : bx * 8 + 8, :])

    with pytest.raises(VariantRefused, match="not known to be inside of A"):
        tile.compile(main, TARGET, runtime="emulator")


@pytest.mark.parametrize("completion", ["early", "late"])
def test_a_barrier_of_the_program_counts_them(completion):
    @T.prim_func
    def main(A: T.Tensor((32, 65), "float16"), B: T.Tensor((32, 65), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((2, 8, 65), "float16")
            full = T.alloc_barrier([64] * 2)
            for k in range(4):
                T.tma_copy(A[k * 8 : k * 8 + 8, :], S[k % 2, :, :], barrier=full[k % 2])
                T.barrier_arrive(full[k % 2])
                T.barrier_wait(full[k % 2], k // 2 % 2)
                T.copy(S[k % 2, :, :], B[k * 8 : k * 8 + 8, :])

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert LOAD in kernel.source
    a, b = np.random.default_rng().standard_normal((32, 65)).astype("float16"), np.zeros((32, 65), "float16")
    kernel(a, b)
    assert (a == b).all()


def pipelined(rows, stages, trips=5, dtype="float16", explicit=True, width=65):
    """Prefetch whole rows of any length in a loop."""

    @T.prim_func
    def main(A: T.Tensor((2 * trips * rows, width), dtype), B: T.Tensor((2 * trips * rows, width), dtype)):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((rows, width), dtype)
            for k in T.Pipelined(trips, num_stages=stages):
                at = (bx * trips + k) * rows
                if explicit:
                    T.tma_copy(A[at : at + rows, :], S)
                else:
                    T.copy(A[at : at + rows, :], S)
                for i, j in T.Parallel(rows, width):
                    B[at + i, j] = S[i, j] + S[i, j]

    return main


@pytest.mark.sweep(4)
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("trips", [0, 1, 2, 7])
@pytest.mark.parametrize(
    ("rows", "width", "dtype"), [(8, 65, "float16"), (16, 7, "uint8"), (4, 13, "float32"), (2, 3, "float64")]
)
@pytest.mark.parametrize("explicit", [True, False])
def test_loops_prefetch_them(stages, trips, rows, width, dtype, explicit):
    if width * rows * np.dtype(dtype).itemsize % 16:
        rows *= 4
    program = pipelined(rows, stages, trips, dtype, explicit, width)
    kernel = tile.compile(program, TARGET, runtime="emulator", options={} if explicit else {"tma": "always"})
    if trips and (explicit or np.dtype(dtype).itemsize < 4):
        assert LOAD in kernel.source
    a = np.random.default_rng().integers(0, 100, (2 * trips * rows, width)).astype(dtype)
    b = np.zeros_like(a)
    kernel(a, b)
    assert (b == a + a).all()


def test_prefetches_in_a_loop():
    kernel = tile.compile(pipelined(8, 3), TARGET, runtime="emulator")
    assert "S is not prefetched" not in str(kernel.explain())
    # The first two iterations are issued before the loop, and the barrier has an object for each slot.
    assert kernel.source.count(LOAD) == 3
    assert "mbarrier_init_shared_cta_b64(&k_arrived[2], 1)" in kernel.source
