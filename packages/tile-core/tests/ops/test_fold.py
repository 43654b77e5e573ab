"""T.argmax, T.argmin, T.reduce_with, T.scan_with: several types, captured values, in place, the lanes variant."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from . import kit


def places(kind, dtype, shape, generic):
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((shape[0],), "int32")):
        with T.Kernel(1, threads=32):
            getattr(T, kind)(A, B, dim=1)

    return tile.compile(main, "cpu", options={"generic": True} if generic else None)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "float8_e4m3fn"])
@pytest.mark.parametrize("width", [8, 16, 31, 32, 64, 65, 128, 257])
def test_places_by_lanes_and_by_loops(width, dtype, generic):
    """The lowest index wins across lanes, chains and the rest; NaN is put at random places of some rows."""
    rng = np.random.default_rng()
    for kind in ("argmax", "argmin"):
        values = rng.integers(0, 3, (9, width)).astype(np.float64)
        if "float" in dtype:
            for row in range(4):
                values[row, rng.integers(0, width, row)] = np.nan
        a = kit.stored(values, dtype)
        (out,) = [kit.guarded((9,), "int32")]
        kit.launch(places(kind, dtype, (9, width), generic), [a], [out])
        np.testing.assert_array_equal(out, getattr(np, kind)(kit.values(a, dtype), axis=1))


def test_the_lanes_variant_is_chosen_for_rows_and_says_so():
    report = str(places("argmax", "float32", (4, 256), False).explain())
    assert "cpu.fold.lanes" in report
    assert "cpu.fold.lanes" not in str(places("argmax", "float32", (4, 256), True).explain()).split("refused")[0]


def test_a_function_uses_values_of_the_kernel_as_they_are_there():
    """A scalar parameter, a variable, an element: also if it is changed afterwards."""

    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), C: T.Tensor((4,), "int32"), n: T.int32, B: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=32):
            v = T.alloc_var("int32", 2)
            T.reduce_with(lambda a, b: T.max(a, b * n), A, B[0:1], identity=-(10**6))
            for k in T.serial(3):
                v += k
            T.reduce_with(lambda a, b: T.max(a, b + v + C[1] - v - C[1]), A, B[1:2], identity=-(10**6))
            c = C[2]
            T.fill(C, 0)
            T.reduce_with(lambda a, b: T.min(a, b - c + c), A, B[2:3], identity=10**6)

    a = np.random.default_rng().integers(-99, 99, 40).astype(np.int32)
    a[a < 0] *= -1
    out = kit.guarded((3,), "int32")
    tile.compile(main, "cpu")(a, np.array([5, 6, 7, 8], np.int32), 1, out)
    np.testing.assert_array_equal(out, [a.max(), a.max(), a.min()])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_in_place_and_into_their_source(dim, reverse):
    """Strings of bits, joined: a monoid in which every exchange shows."""

    @T.prim_func
    def main(A: T.Tensor((6, 13), "uint64"), N: T.Tensor((6, 13), "int32"), B: T.Tensor((6, 13), "uint64")):
        with T.Kernel(1, threads=48):
            a, n = T.alloc_shared((6, 13), "uint64"), T.alloc_fragment((6, 13), "int32")
            T.copy(A, a)
            T.copy(N, n)
            T.scan_with(
                lambda x, y: ((x[0] << T.cast(y[1], "uint64")) | y[0], x[1] + y[1]), (a, n), dim=dim, reverse=reverse,
                identity=(0, 0),
            )  # fmt: skip
            T.copy(a, B)

    rng = np.random.default_rng()
    bits = rng.integers(1, 5, (6, 13))
    a = rng.integers(0, 2**bits).astype(np.uint64)
    out = kit.guarded((6, 13), "uint64")
    tile.compile(main, "cpu")(a, bits.astype(np.int32), out)
    turn = (lambda x: np.flip(x, dim)) if reverse else (lambda x: x)
    lines, lengths = (np.moveaxis(turn(x), dim, 1) for x in (a, bits))
    want = np.zeros(lines.shape, np.uint64)
    for i in range(len(lines)):
        text = ""
        for k in range(lines.shape[1]):
            text += format(int(lines[i, k]), f"0{lengths[i, k]}b")
            want[i, k] = int(text, 2) % 2**64
    np.testing.assert_array_equal(out, turn(np.moveaxis(want, 1, dim)))
