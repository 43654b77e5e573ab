"""Bulk copies of boxes: each rule on both sides, and whole programs of each rank."""

from __future__ import annotations

import re
from math import prod
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir.attributes import ASKED_LAYOUT, LAYOUT
from tile_core.layout import make_swizzled_layout
from tile_core.layout.layout import column_major, row_major
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.launch_assumptions import assume
from tile_core.simt.variant import SimtCall
from tile_core.target import Capabilities
from tile_cuda.attributes import ACROSS, READABLE_ROWS, SWIZZLE
from tile_cuda.ops.boxes import Panel
from tile_cuda.ops.copy_bulk import BulkCopy, can_copy_bulk

pytestmark = pytest.mark.sweep(3)

CTX = SimpleNamespace(capabilities=Capabilities(async_copies=frozenset({"tma"})))
TARGET, ALWAYS = "cuda:sm_90a", {"tma": "always"}
N = tirx.Var("n", "int32")


def answer(
    shape=(64, 256), tile=(16, 64), dtype="float16", *, to=None, corner=None, extents=None, strides=None, attrs=None,
    whole=None, aligned=None, target=CTX, scope="global", to_dtype="",
):  # fmt: skip
    """Request a tensor's tile, at a corner, for all or part of a buffer."""
    source = tirx.decl_buffer(list(shape), dtype, "A", strides=strides, scope=scope, layout=None)
    shared = tirx.decl_buffer(list(whole or to or tile), to_dtype or dtype, "S", scope="shared", layout=None)
    src = View(source, tuple(corner or (0,) * len(shape)), tuple(extents or tile))
    dst = View(shared, (0,) * len(shared.shape), tuple(to or tile))
    aligned = assume([source]) if aligned is None else aligned(source)
    return can_copy_bulk(SimtCall("copy", (src, dst), attrs or {}), target, aligned)


def swizzled(shape, span):
    """Return the layout of a float16 tile in swizzled panels of a width in bytes."""
    return Panel(shape, shape, 2, span).layout


def asked(layout):
    return {"attrs": {ASKED_LAYOUT: layout}}


# What is refused, why, and the nearest legal copy.
RULES = {
    "a target without": ({"target": SimpleNamespace(capabilities=Capabilities())}, "the target has no bulk copies", {}),
    "disable_tma": ({"attrs": {"hints": {"disable_tma": True}}}, "it has disable_tma",
                    {"attrs": {"hints": {"disable_tma": False}}}),
    "an operand": ({"attrs": {READABLE_ROWS: [0, 32]}, "tile": (16, 8), "extents": (16, 8)},
                   "with swizzles of 32 bytes, which the products that read the tile take",
                   {"attrs": {READABLE_ROWS: [0, 32]}, "tile": (16, 16), "extents": (16, 16)}),
    "a variant": ({"attrs": {"variant": "cuda.copy.loops"}}, "it requests cuda.copy.loops", {}),
    "a conversion": ({"to_dtype": "float32"}, "it converts float16 to float32", {}),
    "half bytes": ({"dtype": "float4_e2m1fn"}, "no tensor map has elements of float4_e2m1fn",
                   {"dtype": "float8_e4m3fn"}),
    "a part of the buffer": ({"whole": (32, 64)}, "it writes a part of S", {"whole": (16, 64)}),
    "six dimensions": ({"shape": (2, 2, 2, 2, 16, 64), "tile": (2, 2, 2, 2, 16, 64)}, "A has 6 dimensions",
                       {"shape": (2, 2, 2, 16, 64), "tile": (2, 2, 2, 16, 64)}),
    "unknown extents": ({"extents": (N, 64)}, "its extents are not known", {"extents": (16, 64)}),
    "an extent that the launch cannot compute": (
        {"shape": (tirx.Select(N > 3, N, N + 3), 64)}, "the launch cannot compute the extents of A",
        {"shape": (tirx.Max(N, 3), 64)},
    ),
    "columns": ({"extents": (16, 1), "to": (16,)}, "it takes single elements of the rows of A",
                {"extents": (1, 16), "to": (16,), "tile": (16,), "dtype": "float64"}),
    "a view": ({"aligned": lambda a: Aligned({}, {})}, "A is not a parameter", {}),
    "an unaligned address": ({"aligned": lambda a: Aligned({a: 8}, {})}, "A is not known to begin at a multiple of 16",
                             {"aligned": lambda a: Aligned({a: 16}, {})}),
    "rows that are not contiguous": ({"strides": (1, 64)}, "rows of A are not contiguous", {"strides": (64, 1)}),
    "rows apart": ({"shape": (64, 252)}, "rows of A are 504 bytes apart", {"shape": (64, 256)}),
    "symbolic rows apart": ({"shape": (64, N), "aligned": lambda a: Aligned({a: 16}, {N: 4})},
                            "rows of A are 8 bytes apart", {"shape": (64, N)}),
    "wide coordinates": ({"corner": (tirx.Var("i", "int64"), 0)}, "coordinates of boxes have 32 bits",
                         {"corner": (tirx.Var("i", "int32"), 0)}),
    "a corner inside of 16 bytes": ({"corner": (0, N * 4)}, "it begins at multiples of 8 bytes of a row of A",
                                    {"corner": (0, N * 8)}),
    "a negative corner inside of 16 bytes": ({"corner": (-3, -4)}, "it begins at multiples of 8 bytes",
                                             {"corner": (-3, -8)}),
    "a tensor too long": ({"shape": (2**32 + 1, 64)}, "A has 4294967297 elements along a dimension",
                          {"shape": (2**32, 64)}),
    "rows too far apart": ({"shape": (64, 64), "strides": (2**39, 1)}, "rows of A are 1099511627776 bytes apart",
                           {"shape": (64, 64), "strides": (2**39 - 8, 1)}),
    "narrow rows": ({"tile": (64, 4)}, "rows of a multiple of 16 bytes", {"tile": (64, 8)}),
    "too little": ({"tile": (7, 8)}, "at multiples of 128 bytes", {"tile": (8, 8)}),
    "too many boxes": ({"shape": (8, 8192), "tile": (8, 2048)}, "16 boxes", {"shape": (8, 8192), "tile": (8, 1024)}),
    "panels inside of a pattern": ({"tile": (12, 128), "attrs": {ASKED_LAYOUT: swizzled((12, 128), 64)}},
                                   "no box has the layout of S",
                                   {"tile": (16, 128), "attrs": {ASKED_LAYOUT: swizzled((16, 128), 64)}}),
    "boxes of few rows inside of a pattern": (
        {"tile": (4, 128), "attrs": {ASKED_LAYOUT: swizzled((4, 128), 128)}}, "no box has the layout of S",
        {"tile": (4, 128), "attrs": {ASKED_LAYOUT: swizzled((4, 128), 128), ACROSS: 1}},
    ),
    "fewer rows than a pattern has": (
        {"tile": (4, 64), "attrs": {ASKED_LAYOUT: swizzled((4, 64), 128), ACROSS: 1}}, "no box has the layout of S",
        {"tile": (4, 64), "attrs": {ASKED_LAYOUT: swizzled((4, 64), 64), ACROSS: 1}},
    ),
    "prime extents beyond 256": ({"shape": (257, 512), "tile": (257, 64)}, "up to 256 elements",
                                 {"shape": (256, 512), "tile": (256, 64)}),
    "columns first": (asked(column_major((16, 64))), "no box has the layout of S", asked(row_major((16, 64)))),
    "padded rows": (asked(make_swizzled_layout((16, 64), 32)), "no box has the layout of S",
                    asked(make_swizzled_layout((16, 64), 16))),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name):
    changes, reason, nearest = RULES[name]
    refused, accepted = answer(**changes), answer(**nearest)
    assert isinstance(refused, Reject)
    assert reason in refused.reason
    assert isinstance(accepted, Accept), accepted


@pytest.mark.parametrize(
    ("tile_shape", "dtype", "swizzle"),
    [
        ((16, 64), "float16", 128), ((16, 128), "float16", 128), ((16, 32), "float16", 64), ((16, 16), "float16", 32),
        ((16, 8), "float16", 0), ((16, 24), "float16", 0), ((16, 96), "float16", 64), ((16, 48), "float16", 32),
        ((2, 64), "float16", 0), ((4, 64), "float16", 0), ((8, 64), "float16", 128), ((16, 16), "float64", 128),
        ((1, 64), "float16", 0), ((4, 4, 64), "uint8", 64),
    ],
)  # fmt: skip
def test_the_widest_swizzle_that_fits_is_taken(tile_shape, dtype, swizzle):
    found = answer((9,) * (len(tile_shape) - 1) + (256,), tile_shape, dtype)
    assert isinstance(found, Accept), found
    assert found.facts[SWIZZLE] == swizzle
    offsets = found.facts[LAYOUT].tables()["memory"]
    assert sorted(offsets) == list(range(prod(tile_shape)))


def test_only_copies_of_transactions_are_taken():
    source = tirx.decl_buffer([64, 64], "float16", "A", layout=None)
    to = tirx.decl_buffer([64, 64], "float16", "S", scope="shared", layout=None)
    views = (View(source, (0, 0), (64, 64)), View(to, (0, 0), (64, 64)))
    for attrs in ({}, {"async": 1}):
        assert BulkCopy().accepts(SimtCall("copy", views, attrs), CTX) == Reject("no barrier counts its bytes")
    taken = BulkCopy().accepts(SimtCall("copy", views, {"async": "transactions", SWIZZLE: 128}), CTX)
    assert isinstance(taken, Accept)


# Whole programs. Each iteration prefetches a tile into shared memory, and copies it from there to the output.


def trips_of(shape, block):
    return max(-(-shape[0] // block[0]) + 1, 3)


def program(shape, block, dtype, at=None, stages=3):
    """Tiles along the first dimension, at a corner of the others, through shared memory."""
    rank, trips = len(shape), trips_of(shape, block)
    corner = at or (0,) * rank

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((trips, *block), dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared(block, dtype)
            for t in T.Pipelined(trips, num_stages=stages):
                # Negative constant indices are refused: these are not constants.
                rest = [c if c >= 0 else t // trips * 16 + c for c in corner[1:]]
                T.copy(A[(t * block[0] + corner[0], *rest)], S)
                T.copy(S, B[(t, *(0,) * rank)])

    return main


def boxes(array, block, at):
    """Return the expected output of the program: zeros outside of the array."""
    trips = trips_of(array.shape, block)
    found = np.zeros((trips, *block), array.dtype)
    for t in range(trips):
        low = [at[0] + t * block[0], *at[1:]]
        inside = [(max(0, -m), max(min(b, n - m), max(0, -m))) for m, b, n in zip(low, block, array.shape, strict=True)]
        from_ = tuple(slice(m + a, m + b) for m, (a, b) in zip(low, inside, strict=True))
        found[t][tuple(slice(a, b) for a, b in inside)] = array[from_]
    return found


CASES = {
    "1d": ((1000,), (64,), (0,)),
    "1d before the start": ((1000,), (64,), (-16,)),
    "1d of many boxes": ((2048,), (1024,), (0,)),
    "2d": ((37, 64), (8, 64), (0, 0)),
    "2d of two panels": ((37, 160), (8, 128), (0, 32)),
    "2d outside": ((37, 64), (16, 32), (5, 48)),
    "2d before the start": ((37, 64), (8, 32), (-3, -16)),
    "2d of many rows": ((700, 16), (512, 16), (0, 0)),
    "one row": ((7, 128), (1, 64), (0, 64)),
    "3d": ((5, 7, 32), (2, 4, 32), (0, 5, 0)),
    "4d": ((3, 4, 5, 16), (2, 2, 4, 16), (0, -1, 3, 0)),
    "5d": ((2, 3, 2, 5, 16), (1, 2, 1, 4, 16), (1, 1, 1, 2, 0)),
    "nothing": ((0, 64), (8, 64), (0, 0)),
}
TYPES = ("uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "int16", "float32", "int32", "int64",
         "float64")  # fmt: skip


def random(shape, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    data = np.random.default_rng().integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8)
    return data.view(kind)[..., 0]


def run(shape, block, at, dtype, stages=3):
    kernel = tile.compile(program(shape, block, dtype, at, stages), TARGET, runtime="emulator", options=ALWAYS)
    assert "cp_async_bulk_tensor_" in kernel.source
    array = random(shape, dtype)
    out = np.full((trips_of(shape, block), *block), 85, np.uint8).astype(array.dtype)
    kernel(array, out)
    width = f"u{array.dtype.itemsize}"
    assert np.array_equal(out.view(width), boxes(array, block, at).view(width))


@pytest.mark.sweep(12)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_tiles_arrive_with_zeros_outside(name, dtype):
    shape, block, at = CASES[name]
    size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    while size * prod(block) < 128:  # slots are multiples of 128 bytes
        shape, block, at = (*shape[:-1], shape[-1] * 2), (*block[:-1], block[-1] * 2), (*at[:-1], at[-1] * 2)
    run(shape, block, at, dtype)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("stages", [2, 4, 7])
def test_any_number_of_stages_in_flight(stages):
    run((37, 64), (8, 64), (0, 0), "float16", stages)


@pytest.mark.parametrize("columns", [72, 70])
def test_unaligned_launches_select_the_general_version(columns):
    """Select the general version for rows of 140 bytes, which have no tensor map."""
    M, K = T.dynamic("m, k")

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((M, K), "float16")):
        with T.Kernel(T.ceildiv(M, 16), threads=64) as i:
            S = T.alloc_shared((16, 32), "float16")
            for t in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[i * 16, t * 32], S)
                T.copy(S, B[i * 16, t * 32])

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    assert "cp_async_bulk_tensor_2d" in kernel.source
    array = random((37, columns), "float16")
    out = np.full_like(array, 3.0)
    kernel(array, out)
    assert np.array_equal(out.view("u2"), array.view("u2"))


def test_a_corner_from_memory_is_read_by_the_thread_that_issues():
    @T.prim_func
    def main(A: T.Tensor((40, 64), "float16"), Rows: T.Tensor((6,), "int32"), B: T.Tensor((6, 8, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(6, num_stages=2):
                T.copy(A[Rows[t], 0], S)
                T.copy(S, B[t, 0, 0])

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    assert "cp_async_bulk_tensor_2d" in kernel.source
    array, rows = random((40, 64), "float16"), np.array([3, 38, -5, 0, 39, 100], np.int32)
    out = np.full((6, 8, 64), 3, np.float16)
    kernel(array, rows, out)
    for t, row in enumerate(rows):
        want = np.zeros((8, 64), np.float16)
        for r in range(8):
            if 0 <= row + r < 40:
                want[r] = array[row + r]
        assert np.array_equal(out[t].view("u2"), want.view("u2"))


def test_explain_reports_completion_and_rejection_reasons():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), X: T.Tensor((64, 62), "float16"), B: T.Tensor((4, 16, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 64), "float16")
            R = T.alloc_shared((16, 62), "float16")
            for t in T.Pipelined(4, num_stages=2):
                T.copy(A[t * 16, 0], S)
                T.copy(X[t * 16, 0], R)
                for i, j in T.Parallel(16, 62):
                    B[t, i, j] = S[i, j] + R[i, j]

    text = str(tile.compile(main, TARGET, runtime="emulator", options=ALWAYS).explain())
    assert "bytes of a phase" in text or "transactions" in text
    assert "no bulk copy: rows of X are 124 bytes apart" in text


@pytest.mark.parametrize("value", ["sometimes", True, 1])
def test_the_option_is_checked(value):
    with pytest.raises(Exception, match="tma"):
        tile.compile(program((64, 64), (8, 64), "float16"), TARGET, runtime="emulator", options={"tma": value})


def test_targets_without_them_copy_as_before():
    kernel = tile.compile(program((64, 64), (8, 64), "float16"), "cuda:sm_80", runtime="emulator", options=ALWAYS)
    assert "cp_async_bulk" not in kernel.source
    assert "cp_async_c" in kernel.source


# Outside of pipelined loops


def compiled(program):
    kernel = tile.compile(program, TARGET, runtime="emulator", options=ALWAYS)
    return kernel, kernel.source[kernel.source.index("extern") :]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
@pytest.mark.parametrize("name", [n for n in CASES if n != "nothing"])
def test_tiles_of_plain_loops_arrive(name, dtype):
    shape, block, at = CASES[name]
    size = np.dtype(dtype).itemsize
    while size * prod(block) < 128:
        shape, block, at = (*shape[:-1], shape[-1] * 2), (*block[:-1], block[-1] * 2), (*at[:-1], at[-1] * 2)
    run(shape, block, at, dtype, stages=1)


@pytest.mark.parametrize("threads", [1, 32, 96])
def test_each_copy_has_a_barrier_and_a_phase_in_loops(threads):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), n: T.int32):
        with T.Kernel(2, threads=threads) as bx:
            S = T.alloc_shared((8, 64), "float16")
            R = T.alloc_shared((32, 64), "float16")
            T.copy(A[bx * 32, 0], R)
            for t in T.serial(n):
                if t % 3 != 1:
                    T.copy(A[bx * 32 + t * 8, 0], S)
                for i, j in T.Parallel(8, 64):
                    B[bx * 32 + t * 8 + i, j] = S[i, j] + R[t * 8 + i, j]

    kernel, text = compiled(main)
    assert len(re.findall(r"mbarrier_init_shared", text)) == len(re.findall(r"mbarrier_inval", text)) == 2
    assert "mbarrier_wait_parity(&R_arrived[0], 0);" in text
    assert "mbarrier_wait_parity(&S_arrived[0], S_phase);" in text
    array = np.random.default_rng().integers(-9, 9, (64, 64)).astype("float16")
    for trips in (0, 1, 4):
        out = np.full((64, 64), 77, "float16")
        kernel(array, out, trips)
        wanted = np.full((64, 64), 77, "float16")
        for top in (0, 32):
            for t in range(trips):
                rows = slice(top + t * 8, top + t * 8 + 8)
                held = t if t % 3 != 1 else t - 1
                wanted[rows] = array[rows] + array[top + held * 8 : top + held * 8 + 8]
        assert np.array_equal(out, wanted)


def test_threads_that_wait_for_a_phase_need_no_barrier_to_read():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(8, threads=64) as bx:
            S = T.alloc_shared((8, 64), "float16")
            T.copy(A[bx * 8, 0], S)
            for i, j in T.Parallel(8, 64):
                B[bx * 8 + i, j] = S[7 - i, 63 - j]

    kernel, text = compiled(main)
    assert text.count("__syncthreads();") == 2  # after the object's initialisation, and before its end
    array, out = random((64, 64), "float16"), random((64, 64), "float16")
    kernel(array, out)
    tiles = array.reshape(8, 8, 64)[:, ::-1, ::-1].reshape(64, 64)
    assert np.array_equal(out.view("u2"), np.ascontiguousarray(tiles).view("u2"))


def test_roles_load_for_themselves():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((32, 64), "float16")
            R = T.alloc_shared((8, 64), "float16")
            for t in T.serial(4):
                with T.ws(0):
                    for _ in T.serial(1):
                        T.copy(A[t * 8, 0], R)
                        for i, j in T.Parallel(8, 64):
                            B[t * 8 + i, j] = R[7 - i, j]
                with T.ws(1):
                    T.copy(A[32, 0], S)
                    for i, j in T.Parallel(8, 64):
                        B[32 + t * 8 + i, j] = S[t * 8 + i, j]

    kernel, text = compiled(main)
    assert text.count("  cp_async_bulk_tensor_2d") == 2
    array, out = random((64, 64), "float16"), random((64, 64), "float16")
    kernel(array, out)
    wanted = np.concatenate([array[:32].reshape(4, 8, 64)[:, ::-1].reshape(32, 64), array[32:]])
    assert np.array_equal(out.view("u2"), wanted.view("u2"))


def test_other_padding_and_thread_branches_copy_as_before():
    @T.prim_func
    def main(A: T.Tensor((60, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 64), "float16")
            T.annotate_safe_value({A: 5})
            T.copy(A[0, 0], S)
            T.copy(S, B)

    kernel, text = compiled(main)
    assert "mbarrier" not in text
    assert "reads outside of A do not give zero" in str(kernel.explain())
    array, out = random((60, 64), "float16"), random((64, 64), "float16")
    kernel(array, out)
    wanted = np.concatenate([array, np.full((4, 64), 5, "float16")])
    assert np.array_equal(out.view("u2"), wanted.view("u2"))
