"""Bulk copies out of shared memory: both sides of each rule, waits, whole programs."""

from __future__ import annotations

import re
from math import prod
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.ir.attributes import ASKED_LAYOUT
from tile_core.layout import make_swizzled_layout
from tile_core.layout.layout import column_major, row_major
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.launch_assumptions import assume
from tile_core.simt.variant import SimtCall
from tile_core.target import Capabilities
from tile_cuda.attributes import READABLE_ROWS
from tile_cuda.ops.store_bulk import REDUCTIONS, can_store_bulk

pytestmark = pytest.mark.sweep(3)

CTX = SimpleNamespace(capabilities=Capabilities(async_copies=frozenset({"tma"})))
TARGET, ALWAYS = "cuda:sm_90a", {"tma": "always"}
ROW, WIDE = tirx.Var("i", "int32"), tirx.Var("j", "int64")
STORES = re.compile(r"  cp_async_bulk_tensor_\dd_global_shared")
WAITS = re.compile(r"  cp_async_bulk_wait_group_(read_)?0\(\)")


def answer(
    shape=(64, 256), tile=(16, 64), dtype="float16", *, corner=None, extents=None, strides=None, attrs=None,
    part=None, aligned=None, target=CTX, from_dtype="", kind="",
):  # fmt: skip
    """Request a copy of all or part of a shared tile to a tensor's corner."""
    tensor = tirx.decl_buffer(list(shape), dtype, "B", strides=strides, layout=None)
    shared = tirx.decl_buffer(list(tile), from_dtype or dtype, "S", scope="shared", layout=None)
    dst = View(tensor, tuple(corner or (0,) * len(shape)), tuple(extents or tile))
    src = View(shared, (0,) * len(tile), tuple(part or tile))
    aligned = assume([tensor]) if aligned is None else aligned(tensor)
    ranges = Analyzer()
    ranges.bind(ROW, ir.Range.from_min_extent(0, 7))
    if kind:
        call = SimtCall("atomic_tile", (dst, src), {"kind": kind, "order": "relaxed", **(attrs or {})})
    else:
        call = SimtCall("copy", (src, dst), attrs or {})
    return can_store_bulk(call, target, aligned, ranges)


def asked(layout):
    return {"attrs": {ASKED_LAYOUT: layout}}


# What is refused, why, and the nearest legal one.
RULES = {
    "a target without": ({"target": SimpleNamespace(capabilities=Capabilities())}, "the target has no bulk copies", {}),
    "disable_tma": ({"attrs": {"hints": {"disable_tma": True}}}, "it has disable_tma",
                    {"attrs": {"hints": {"disable_tma": False}}}),
    "an operand": ({"attrs": {READABLE_ROWS: [32, 0]}, "tile": (16, 8), "extents": (16, 8)},
                   "with swizzles of 32 bytes, which the products that read the tile take",
                   {"attrs": {READABLE_ROWS: [32, 0]}, "tile": (16, 16), "extents": (16, 16)}),
    "a variant": ({"attrs": {"variant": "cuda.copy.loops"}}, "it requests cuda.copy.loops", {}),
    "a conversion": ({"from_dtype": "float32"}, "it converts float16 and float32", {}),
    "a rounding": ({"attrs": {"round": "tfloat32"}}, "it converts float16", {}),
    "half bytes": ({"dtype": "float4_e2m1fn"}, "no tensor map has elements of float4_e2m1fn",
                   {"dtype": "float8_e4m3fn"}),
    "a part of the buffer": ({"part": (8, 64), "extents": (8, 64)}, "it reads a part of S", {}),
    "six dimensions": ({"shape": (2, 2, 2, 2, 16, 64), "tile": (2, 2, 2, 2, 16, 64)}, "B has 6 dimensions",
                       {"shape": (2, 2, 2, 16, 64), "tile": (2, 2, 2, 16, 64)}),
    "columns": ({"extents": (16, 1), "tile": (16,)}, "it takes single elements of the rows of B",
                {"extents": (1, 16), "tile": (16,), "dtype": "float64"}),
    "a view": ({"aligned": lambda b: Aligned({}, {})}, "B is not a parameter", {}),
    "an unaligned address": ({"aligned": lambda b: Aligned({b: 8}, {})}, "B is not known to begin at a multiple of 16",
                             {"aligned": lambda b: Aligned({b: 16}, {})}),
    "rows that are not contiguous": ({"strides": (1, 64)}, "rows of B are not contiguous", {"strides": (64, 1)}),
    "the end of a row inside of 16 bytes": ({"shape": (64, 252), "strides": (256, 1)}, "rows of B have 504 bytes",
                                           {"shape": (64, 248), "strides": (256, 1)}),
    "the end of the tensor inside of 16 bytes": ({"shape": (1001,), "tile": (64,)}, "rows of B have 2002 bytes",
                                                {"shape": (1000,), "tile": (64,)}),
    "rows apart": ({"shape": (64, 252)}, "rows of B are 504 bytes apart", {"shape": (64, 256)}),
    "wide coordinates": ({"corner": (WIDE, 0)}, "coordinates of boxes have 32 bits", {"corner": (ROW, 0)}),
    "before the start": ({"corner": (ROW - 1, 0)}, "it may begin before the first element of B", {"corner": (ROW, 0)}),
    "before the first column": ({"corner": (0, ROW * 8 - 8)}, "it may begin before the first element",
                                {"corner": (0, ROW * 8)}),
    "a corner inside of 16 bytes": ({"corner": (0, ROW * 4)}, "it begins at multiples of 8 bytes of a row of B",
                                    {"corner": (0, ROW * 8)}),
    "narrow rows": ({"tile": (64, 4)}, "rows of a multiple of 16 bytes", {"tile": (64, 8)}),
    "too little": ({"tile": (7, 8)}, "at multiples of 128 bytes", {"tile": (8, 8)}),
    "too many boxes": ({"shape": (8, 8192), "tile": (8, 2048)}, "16 boxes", {"shape": (8, 8192), "tile": (8, 1024)}),
    "columns first": (asked(column_major((16, 64))), "no box has the layout of S", asked(row_major((16, 64)))),
    "padded rows": (asked(make_swizzled_layout((16, 64), 32)), "no box has the layout of S",
                    asked(make_swizzled_layout((16, 64), 16))),
    "a maximum of floats": ({"kind": "max"}, "bulk copies have no max of float16", {"kind": "max", "dtype": "int32"}),
    "a sum of bytes": ({"kind": "add", "dtype": "uint8"}, "bulk copies have no add of uint8",
                       {"kind": "add", "dtype": "float16"}),
    "an order": ({"kind": "add", "attrs": {"order": "release"}}, "its elements are updated one by one",
                 {"kind": "add"}),
    "some elements": ({"kind": "add", "attrs": {"vector": 2}}, "its elements are updated one by one", {"kind": "add"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name):
    changes, reason, nearest = RULES[name]
    refused, accepted = answer(**changes), answer(**nearest)
    assert isinstance(refused, Reject)
    assert reason in refused.reason
    assert isinstance(accepted, Accept), accepted


# Whole programs


def kind_of(dtype):
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def random(shape, dtype):
    kind = kind_of(dtype)
    return np.random.default_rng().integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind)[..., 0]


def compiled(program):
    return tile.compile(program, TARGET, runtime="emulator", options=ALWAYS)


def same(found, wanted):
    width = f"u{found.dtype.itemsize}"
    return np.array_equal(found.view(width), np.ascontiguousarray(wanted).view(width))


CASES = {
    "1d": ((1008,), (64,)),
    "1d of many boxes": ((1504,), (1024,)),
    "2d": ((37, 64), (8, 64)),
    "2d of two panels": ((37, 192), (8, 128)),
    "2d of many rows": ((700, 32), (512, 32)),
    "one row": ((7, 128), (1, 64)),
    "3d": ((5, 7, 32), (2, 4, 32)),
    "4d": ((3, 4, 5, 16), (2, 2, 4, 16)),
    "5d": ((2, 3, 2, 5, 16), (1, 2, 1, 4, 16)),
}
TYPES = ("uint8", "float8_e5m2", "float16", "bfloat16", "float32", "int32", "int64", "float64")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_tiles_are_stored_and_parts_outside_are_dropped(name, dtype):
    shape, block = CASES[name]
    while kind_of(dtype).itemsize * prod(block) < 128:
        shape, block = (*shape[:-1], shape[-1] * 2), (*block[:-1], block[-1] * 2)
    counts = [-(-n // b) for n, b in zip(shape, block, strict=True)]
    rank, trips = len(shape), prod(counts)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared(block, dtype)
            for t in T.serial(trips):
                at = []
                left = t
                for d in reversed(range(rank)):
                    at.insert(0, left % counts[d] * block[d])
                    left = left // counts[d]
                T.copy(A[tuple(at)], S)
                T.copy(S, B[tuple(at)])

    kernel = compiled(main)
    assert len(STORES.findall(kernel.source)) >= 1
    array = random(shape, dtype)
    out = random(shape, dtype)
    kernel(array, out)
    assert same(out, array)


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_updates(kind, dtype):
    @T.prim_func
    def main(A: T.Tensor((19, 64), dtype), B: T.Tensor((8, 64), dtype)):
        with T.Kernel(3, threads=64) as bx:
            S = T.alloc_shared((8, 64), dtype)
            for i, j in T.Parallel(8, 64):
                S[i, j] = T.if_then_else(bx * 8 + i < 19, A[bx * 8 + i, j], A[i, j])
            getattr(T, f"atomic_{kind}")(B[0, 0], S)

    kernel = compiled(main)
    assert f"  cp_reduce_async_bulk_tensor_2d_global_shared_cta_{kind}_tile" in kernel.source
    rng = np.random.default_rng()
    low = 0 if dtype.startswith("u") else -9
    array, out = (rng.integers(low, 10, (n, 64)).astype(kind_of(dtype)) for n in (19, 8))
    wanted = out.copy()
    combine = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(kind) or getattr(np, f"bitwise_{kind}")
    for part in (array[:8], array[8:16], np.concatenate([array[16:], array[3:8]])):
        wanted = combine(wanted, part)
    kernel(array, out)
    assert same(out, wanted)


@pytest.mark.parametrize("stages", [2, 3])
def test_slots_of_pipelined_loops_are_read_before_they_are_filled_again(stages):
    @T.prim_func
    def main(A: T.Tensor((61, 64), "float16"), B: T.Tensor((61, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(8, num_stages=stages):
                T.copy(A[t * 8, 0], S)
                T.copy(S, B[t * 8, 0])

    kernel = compiled(main)
    assert len(STORES.findall(kernel.source)) == len(WAITS.findall(kernel.source)) == 1
    array, out = random((61, 64), "float16"), random((61, 64), "float16")
    kernel(array, out)
    assert same(out, array)


@pytest.mark.parametrize(("step", "reads"), [(8, 2), (4, 1)])
def test_boxes_that_share_no_element_are_not_waited_for(step, reads):
    """Wait only for the reads of a loop's stores unless they overlap."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "int32"), B: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "int32")
            for t in T.serial(5):
                for i, j in T.Parallel(8, 64):
                    S[i, j] = A[t * 8 + i, j]
                T.copy(S, B[t * step, 0])

    kernel = compiled(main)
    assert [bool(x) for x in WAITS.findall(kernel.source)].count(True) == 2
    assert len(WAITS.findall(kernel.source)) == 2 + (reads == 1)
    array, out = random((64, 64), "int32"), random((64, 64), "int32")
    wanted = out.copy()
    for t in range(5):
        wanted[t * step : t * step + 8] = array[t * 8 : t * 8 + 8]
    kernel(array, out)
    assert same(out, wanted)


def test_roles_store_their_own_rows_without_waiting_for_each_other():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((8, 64), "float16")
            R = T.alloc_shared((8, 64), "float16")
            for t in T.serial(4):
                with T.ws(0):
                    T.copy(A[t * 16, 0], S)
                    T.copy(S, B[t * 16, 0])
                with T.ws(1):
                    T.copy(A[t * 16 + 8, 0], R)
                    T.copy(R, B[t * 16 + 8, 0])

    kernel = compiled(main)
    assert "wait_group_0();\n" not in kernel.source[kernel.source.index("extern") :]
    assert "if (tid == 128) {\n      cp_async_bulk_wait_group_read_0();" in kernel.source
    array, out = random((64, 64), "float16"), random((64, 64), "float16")
    kernel(array, out)
    assert same(out, array)


def test_stores_are_visible_to_all_reading_threads():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 64), "float16")
            T.copy(A, S)
            T.copy(S, B)
            for i, j in T.Parallel(64, 64):
                C[i, j] = B[63 - i, 63 - j]

    kernel = compiled(main)
    assert [bool(x) for x in WAITS.findall(kernel.source)] == [False]
    array, out = random((64, 64), "float16"), random((64, 64), "float16")
    kernel(array, random((64, 64), "float16"), out)
    assert same(out, array[::-1, ::-1])


def test_buffers_that_share_bytes_wait_for_each_other():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 64), "float16")
            T.copy(A, S)
            T.copy(S, B)
            R = T.alloc_shared((64, 64), "float16")
            for i, j in T.Parallel(64, 64):
                R[i, j] = A[j, i]
            T.copy(R, C)

    kernel = compiled(main)
    assert len(STORES.findall(kernel.source)) == 2
    assert len(WAITS.findall(kernel.source)) == 2
    array, b, c = (random((64, 64), "float16") for _ in range(3))
    kernel(array, b, c)
    assert same(b, array)
    assert same(c, array.T)


def test_annotated_views_tensors_and_tiles_keep_their_layouts():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((4096,), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 64), "float16")
            flat = T.view(S, (4096,))
            R = T.alloc_shared((64, 64), "float16")
            T.annotate_layout({R: column_major((64, 64))})
            T.copy(A, S)
            T.copy(A, R)
            T.copy(R, B)
            T.copy(flat, C)

    kernel = compiled(main)
    assert not STORES.findall(kernel.source)
    text = str(kernel.explain())
    assert "no box has the layout of R" in text
    assert "another view shares the storage of S_view" in text
    array, b, c = random((64, 64), "float16"), random((64, 64), "float16"), random((4096,), "float16")
    kernel(array, b, c)
    assert same(b, array)
    assert same(c, array.reshape(-1))


@pytest.mark.parametrize("columns", [72, 70])
def test_unaligned_launches_select_the_general_version(columns):
    M, N = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 16), threads=64) as (bx, by):
            S = T.alloc_shared((16, 32), "float16")
            T.copy(A[by * 16, bx * 32], S)
            T.copy(S, B[by * 16, bx * 32])

    kernel = compiled(main)
    assert STORES.findall(kernel.source)
    array, out = random((37, columns), "float16"), random((37, columns), "float16")
    kernel(array, out)
    assert same(out, array)
