"""T.argmax, T.argmin, T.reduce_with, T.scan_with: several types, captured values, in place, the lanes variant."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from . import kit


def arg_kernel(kind, dtype, shape, generic):
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((shape[0],), "int32")):
        with T.Kernel(1, threads=32):
            getattr(T, kind)(A, B, dim=1)

    return tile.compile(main, "cpu", options={"generic": True} if generic else None)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "float8_e4m3fn"])
@pytest.mark.parametrize("width", [8, 16, 31, 32, 64, 65, 128, 257])
def test_indices_by_lanes_and_by_loops(width, dtype, generic):
    """The lowest index wins across lanes, chains and the rest; NaN is put at random places of some rows."""
    rng = np.random.default_rng()
    for kind in ("argmax", "argmin"):
        values = rng.integers(0, 3, (9, width)).astype(np.float64)
        if "float" in dtype:
            for row in range(4):
                values[row, rng.integers(0, width, row)] = np.nan
        a = kit.stored(values, dtype)
        (out,) = [kit.guarded((9,), "int32")]
        kit.launch(arg_kernel(kind, dtype, (9, width), generic), [a], [out])
        np.testing.assert_array_equal(out, getattr(np, kind)(kit.values(a, dtype), axis=1))


def test_the_lanes_variant_is_chosen_for_rows_and_says_so():
    report = str(arg_kernel("argmax", "float32", (4, 256), False).explain())
    assert "cpu.fold.lanes" in report
    assert "cpu.fold.lanes" not in str(arg_kernel("argmax", "float32", (4, 256), True).explain()).split("rejected")[0]


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


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_into_their_source(dim, reverse):
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
    flip = (lambda x: np.flip(x, dim)) if reverse else (lambda x: x)
    lines, lengths = (np.moveaxis(flip(x), dim, 1) for x in (a, bits))
    want = np.zeros(lines.shape, np.uint64)
    for i in range(len(lines)):
        text = ""
        for k in range(lines.shape[1]):
            text += format(int(lines[i, k]), f"0{lengths[i, k]}b")
            want[i, k] = int(text, 2) % 2**64
    np.testing.assert_array_equal(out, flip(np.moveaxis(want, 1, dim)))


@T.macro
def weighted(p, q):
    total = T.alloc_var("float32", p[1])
    total += q[1]
    scale = q[0] * T.cast(total - p[1] != q[1], "float32")
    return p[0] + q[0] + scale, total


def forms(op):
    """Return a kernel that folds with functions that name values: nested, with a scalar variable, in a macro."""

    @T.prim_func
    def main(
        A: T.Tensor((7, 5), "float32"), B: T.Tensor((4, 7, 5), "float32"), N: T.Tensor((7, 5), "int32"), v: T.int32
    ):
        with T.Kernel(1, threads=32):
            a, b, n = (
                T.alloc_shared((7, 5), "float32"),
                T.alloc_fragment((7, 5), "float32"),
                T.alloc_fragment((7, 5), "int32"),
            )
            T.copy(A, a)
            T.fill(b, 1)
            T.copy(A, n)

            def heavy(x, y):
                s = x + y
                for _ in T.static_range(6):
                    s = (s + v) + s - (s + v)
                n = s * 1
                return n

            def late(x, y):
                s = T.alloc_var("float32", 0)
                s = x
                t = s
                s = y
                return s + t

            if op == "scan_with":
                T.scan_with(weighted, (a, b), dim=0, identity=(0, 0))
                T.copy(a, B[0, :, :])
                T.copy(b, B[1, :, :])
                T.scan_with(late, a, dim=1, identity=0)
                T.copy(a, B[2, :, :])
                T.scan_with(heavy, n, dim=1, identity=0)
                T.copy(n, N)
            else:
                r, q, m = (
                    T.alloc_fragment((5,), "float32"),
                    T.alloc_fragment((5,), "float32"),
                    T.alloc_fragment((5,), "int32"),
                )
                T.reduce_with(weighted, (a, b), (r, q), dim=0, identity=(0, 0))
                T.copy(r, B[0, 0, :])
                T.copy(q, B[1, 0, :])
                T.reduce_with(late, a, r, dim=0, identity=0)
                T.copy(r, B[2, 0, :])
                T.reduce_with(heavy, n, m, dim=0, identity=0)
                T.copy(m, N[0, :])

    return main


@pytest.mark.parametrize("op", ["reduce_with", "scan_with"])
def test_functions_name_their_values(op):
    a = np.random.default_rng().integers(-9, 9, (7, 5)).astype("float32")
    b, n = np.full((4, 7, 5), np.nan, "float32"), np.full((7, 5), -1, "int32")
    tile.compile(forms(op), "cpu")(a, b, n, 3)
    prefix = np.cumsum(a, 0)
    if op == "scan_with":
        np.testing.assert_array_equal(b[0], prefix)
        np.testing.assert_array_equal(b[1], np.arange(1, 8)[:, None] * np.ones((7, 5)))
        np.testing.assert_array_equal(b[2], np.cumsum(prefix, 1))
        np.testing.assert_array_equal(n, np.cumsum(a, 1))
    else:
        np.testing.assert_array_equal(b[:3, 0], [prefix[-1], np.full(5, 7), prefix[-1]])
        np.testing.assert_array_equal(n[0], prefix[-1])


@pytest.mark.parametrize("n", range(3))
def test_functions_that_do_more_are_refused(n):
    def build():
        @T.prim_func
        def main(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8,), "float32")

                def stores(x, y):
                    s[0] = x
                    return y

                def loops(x, y):
                    t = T.alloc_var("float32", 0)
                    for _ in T.serial(4):
                        t += x
                    return t + y

                def computes_an_index(x, y):
                    i = T.cast(x, "int32")
                    return s[i] + y

                T.copy(A, s)
                T.reduce_with((stores, loops, computes_an_index)[n], s, B, dim=0, identity=0)

    with pytest.raises(tile.TileError) as caught:
        build()
    assert caught.value.code == "K231"
