"""Test T.copy: element types, scopes, awkward tiles, regions, corners and bounds."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)

SCOPES = ("shared", "fragment", "local")


def convert(source, targets, shape):
    """Four copies of one tile, each with its conversion."""

    @T.prim_func
    def main(
        A: T.Tensor(shape, source),
        B0: T.Tensor(shape, targets[0]),
        B1: T.Tensor(shape, targets[1]),
        B2: T.Tensor(shape, targets[2]),
        B3: T.Tensor(shape, targets[3]),
    ):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared(shape, source)
            T.copy(A, A_s)
            for B, dtype in ((B0, targets[0]), (B1, targets[1]), (B2, targets[2]), (B3, targets[3])):
                f = T.alloc_fragment(shape, dtype)
                T.copy(A_s, f)
                T.copy(f, B)

    return main


CONVERSIONS = [(source, part) for source in kit.ALL_TYPES for part in range(6)]


@pytest.mark.sweep(12)
@pytest.mark.parametrize(("source", "part"), CONVERSIONS)
def test_conversions(source, part):
    targets = (*kit.ALL_TYPES[4 * part : 4 * part + 4], *kit.ALL_TYPES[:3])[:4]
    shape = (5, 26)
    rng = np.random.default_rng(kit.seed(source, part))
    groups = [[t for t in targets if DTYPES[t].kind == k] for k in ("int", "uint")]
    groups.append([t for t in targets if not DTYPES[t].is_integer])
    kernel = tile.compile(convert(source, targets, shape), target="cpu")
    for group in groups:
        if not group:
            continue
        data = kit.anything(rng, shape, source)
        outs = [kit.guarded(shape, t) for t in targets]
        kit.launch(kernel, [data], outs)
        for target, out in zip(targets, outs, strict=True):
            if target in group:
                check_cast(kit.values(data, source, shape), kit.values(out, target, shape), source, target)


def check_cast(data, found, source, target):
    expected = oracles.cast(data, target) if source != target else data
    if target == "tfloat32" and source != "tfloat32":
        expected = oracles.cast(data, "tfloat32")
    if target == "float4_e2m1fn":
        known = ~np.isnan(np.asarray(data, np.float64))
        found, expected = np.where(known, found, 0), np.where(known, expected, 0)
    kit.same(found, np.asarray(expected).astype(np.float64) if DTYPES[target].is_float else expected)


def through(dtype, shape, first, second):
    """Global, one scratch buffer, another one, global."""
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=96):
            x = alloc[first](shape, dtype)
            y = alloc[second](shape, dtype)
            T.copy(A, x)
            T.copy(x, y)
            T.copy(y, B)
            T.copy(A, C)

    return main


@pytest.mark.parametrize("first", SCOPES)
@pytest.mark.parametrize("second", SCOPES)
def test_scopes(first, second):
    rng = np.random.default_rng(3)
    for dtype in ("float32", "bool", "int4", "bfloat16"):
        data = kit.anything(rng, (7, 18), dtype)
        b, c = kit.launch(through(dtype, (7, 18), first, second), [data], [kit.guarded((7, 18), dtype) for _ in "bc"])
        for out in (b, c):
            kit.same(kit.values(out, dtype), kit.values(data, dtype))


def tiled(dtype, rows, cols, threads, scope):
    """A grid of tiles over a matrix of any size; the last tile comes back as a whole and shows its padding."""
    m, n = T.dynamic("m, n")
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}[scope]

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype), P: T.Tensor((rows, cols), dtype)):
        with T.Kernel(T.ceildiv(n, cols), T.ceildiv(m, rows), threads=threads) as (bx, by):
            tile_ = alloc((rows, cols), dtype)
            T.fill(tile_, 3)
            T.copy(A[by * rows, bx * cols], tile_)
            T.copy(tile_, B[by * rows, bx * cols])
            if T.all_of(bx == T.ceildiv(n, cols) - 1, by == T.ceildiv(m, rows) - 1):
                T.copy(tile_, P)

    return main


def check_tiled(case):
    rows, cols, dtype = case["rows"], case["cols"], case["dtype"]
    rng = np.random.default_rng(rows * 1000 + cols)
    kernel = tile.compile(tiled(dtype, rows, cols, case["threads"], case["scope"]), target="cpu")
    for m, n in zip(kit.SIZES, rng.permutation(kit.SIZES), strict=True):
        data = kit.anything(rng, (m, int(n)), dtype)
        out, last = kit.launch(kernel, [data], [kit.guarded(data.shape, dtype), kit.guarded((rows, cols), dtype)])
        kit.same(kit.values(out, dtype), kit.values(data, dtype))
        corner = ((m - 1) // rows * rows, (int(n) - 1) // cols * cols)
        kit.same(last, oracles.copy_region(data, corner, (rows, cols)))


TILES = {
    "rows": kit.SIZES, "cols": kit.SIZES, "threads": kit.THREADS, "scope": SCOPES,
    "dtype": ("float32", "float16", "int8", "bfloat16", "int64", "float8_e4m3fn", "uint16", "float64"),
}  # fmt: skip


@pytest.mark.sweep(16)
@pytest.mark.parametrize("case", kit.covering(2, **TILES), ids=kit.label)
def test_awkward_tiles(case):
    check_tiled(case)


def windows(rows, cols, dtype):
    """A window of a matrix at any corner, read and written; both may lie partly or wholly outside."""
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype), i: T.int32, j: T.int32, R: T.Tensor((rows, cols), dtype), W: T.Tensor((m, n), dtype)
    ):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((rows, cols), dtype)
            T.copy(A[i, j], s)
            T.copy(s, R)
            T.copy(A[i : i + rows, j : j + cols], s)
            T.copy(s, W[i : i + rows, j : j + cols])

    return main


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "bool"])
def test_windows_reach_outside(dtype):
    rows, cols = 5, 18
    kernel = tile.compile(windows(rows, cols, dtype), target="cpu")
    rng = np.random.default_rng(5)
    for m, n in ((1, 1), (5, 18), (4, 17), (12, 40), (6, 19)):
        data = kit.anything(rng, (m, n), dtype)
        for i in (-6, -5, -1, 0, 1, m - 5, m - 1, m, m + 100, 2**31 - 20, -(2**31)):
            j = int(rng.choice([-19, -18, -17, -1, 0, 1, n - 18, n - 1, n, 2**31 - 40]))
            window, target = kit.launch(
                kernel, [data, i, j], [kit.guarded((rows, cols), dtype), kit.guarded((m, n), dtype)]
            )
            expected = oracles.copy_region(data, (i, j), (rows, cols))
            kit.same(window, expected)
            poison = kit.guarded((m, n), dtype)
            kit.same(target.view(np.uint8), oracles.write_region(poison, (i, j), expected).view(np.uint8))


def test_odd_packed_windows():
    """4-bit elements share bytes: a window that starts in the middle of one changes no neighbour."""

    @T.prim_func
    def main(A: T.Tensor((4, 16), "int4"), B: T.Tensor((4, 16), "int4"), j: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 6), "int4")
            T.copy(A[0, 3], s)
            T.copy(s, B[0, j])

    kernel = tile.compile(main, target="cpu")
    rng = np.random.default_rng(6)
    data = kit.anything(rng, (4, 16), "int4")
    for j in range(-2, 16):
        out = kit.guarded((4, 16), "int4")
        kernel(data, out, j)
        assert kit.unharmed(out)
        expected = np.full((4, 16), -1)
        kit.same(
            kit.values(out, "int4"),
            oracles.write_region(expected, (0, j), kit.values(data, "int4")[:, 3:9].astype(np.int64)),
        )


def test_ranks_extents_of_one_and_slices():
    """A 2-D tile of a 4-D tensor, rows and columns, a scalar element."""

    @T.prim_func
    def main(
        A: T.Tensor((2, 3, 9, 20), "float32"), B: T.Tensor((9, 20), "float32"), C: T.Tensor((20,), "float32"),
        D: T.Tensor((9,), "float32"), E: T.Tensor((1,), "float32"), F: T.Tensor((3, 20), "float32"), z: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((9, 20), "float32")
            row = T.alloc_shared((1, 20), "float32")
            column = T.alloc_fragment((9, 1), "float32")
            T.copy(A[1, z, 0:9, 0:20], s)
            T.copy(s, B)
            T.copy(s[4, :], row)
            T.copy(row, C)
            T.copy(s[:, 7], column)
            T.copy(column[:, 0], D)
            T.copy(s[3, 5], E)
            T.copy(A[0, 0:3, 8, :], F)

    rng = np.random.default_rng(8)
    a = kit.anything(rng, (2, 3, 9, 20), "float32")
    kernel = tile.compile(main, target="cpu")
    outs = [kit.guarded(s, "float32") for s in ((9, 20), (20,), (9,), (1,), (3, 20))]
    kernel(a, *outs, 2)
    expected = (a[1, 2], a[1, 2, 4], a[1, 2, :, 7], a[1, 2, 3, 5:6], a[0, :, 8])
    for found, want in zip(outs, expected, strict=True):
        assert kit.unharmed(found)
        kit.same(found, want)


def test_padded_pitch_and_part_of_a_tile():
    """#2581: a shared tile that is wider than the copy."""

    @T.prim_func
    def main(A: T.Tensor((17, 33), "float32"), B: T.Tensor((17, 33), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((17, 40), "float32")
            T.fill(s, -1.0)
            T.copy(A, s[:, 0:33])
            T.copy(s[:, 1:33], B[:, 0:32])
            T.copy(s[0:17, 39], B[:, 32])

    a = kit.anything(np.random.default_rng(9), (17, 33), "float32")
    b = kit.launch(main, [a], [kit.guarded((17, 33), "float32")])
    kit.same(b, np.concatenate([a[:, 1:], np.full((17, 1), -1, np.float32)], 1))


def test_strided_tensors():
    @T.prim_func
    def main(A: T.StridedTensor((6, 9), (1, 7), "float32"), B: T.StridedTensor((6, 9), (20, 2), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8, 16), "float32")
            T.copy(A[0, 0], s)
            T.copy(s, B[0, 0])

    data = np.random.default_rng(1).random((9, 7), dtype=np.float32)
    a = data.T[:6]
    target = np.full((6, 20), np.nan, np.float32)
    tile.compile(main, target="cpu")(a, target[:, :18:2])
    kit.same(target[:, :18:2], np.ascontiguousarray(a))
    assert np.isnan(target[:, 1::2]).all()
    assert np.isnan(target[:, 18:]).all()


def test_safe_value():
    @T.prim_func
    def main(A: T.Tensor((5,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: -7.0})
            s = T.alloc_shared((8,), "float32")
            T.copy(A[0], s)
            T.copy(s, B)

    a = np.arange(5, dtype=np.float32)
    kit.same(kit.launch(main, [a], [kit.guarded((8,), "float32")]), np.array([0, 1, 2, 3, 4, -7, -7, -7], np.float32))


@pytest.mark.parametrize("shift", [-3, -1, 1, 2, 16])
def test_overlapping_copy_within_a_buffer(shift):
    """The right side is read before the left side is written, as in NumPy."""
    n = 40

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32"), at: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((n,), "float32")
            T.copy(A, s)
            T.copy(s[16:36], s[16 + shift : 36 + shift] if shift < 5 else s[0:20])
            T.copy(s, B)
            T.copy(A, s)
            T.copy(s[16], s[at : at + 20])
            T.copy(s, C)

    a = np.arange(n, dtype=np.float32)
    b, c = kit.guarded((n,), "float32"), kit.guarded((n,), "float32")
    kernel = tile.compile(main, target="cpu")
    low = 16 + shift if shift < 5 else 0
    kernel(a, b, c, low)
    expected = a.copy()
    expected[low : low + 20] = a[16:36]
    kit.same(b, expected)
    kit.same(c, expected)


@pytest.mark.parametrize("width", [1, 2, 3, 64])
def test_coalesced_width_is_a_hint(width):
    """#3007: never an error."""

    @T.prim_func
    def main(A: T.Tensor((17,), "float64"), B: T.Tensor((17,), "float64")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((17,), "float64")
            T.copy(A, s, coalesced_width=width)
            T.copy(s, B, coalesced_width=width, disable_tma=True, eviction_policy="evict_first")

    a = kit.anything(np.random.default_rng(1), (17,), "float64")
    kit.same(kit.launch(main, [a], [kit.guarded((17,), "float64")]), a)


@pytest.mark.parametrize(("variant", "code"), [(3, "K212"), ("nowhere.copy.fast", "U")])
def test_a_variant_is_a_name_that_the_target_has(variant, code):
    def compiled():
        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(A, B, variant=variant)

        return tile.compile(main, "cpu")

    with pytest.raises(TileError) as caught:
        compiled()
    assert caught.value.code.startswith(code)
    assert "T.copy(A, B, variant=variant)" in str(caught.value)
