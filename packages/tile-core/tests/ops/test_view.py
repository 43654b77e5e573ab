"""T.reshape and T.view: shapes, element types, storage shared both ways, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import NotATile, ViewOfPart, ViewSize

from . import kit

pytestmark = pytest.mark.sweep(5)

ALLOC = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}


@pytest.mark.parametrize("scope", ALLOC)
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("float32", "int32"),
        ("bfloat16", "float32"),
        ("float32", "float16"),
        ("int8", "float64"),
        ("float64", "uint8"),
        ("float8_e4m3fn", "uint8"),
        ("uint16", "bfloat16"),
        ("int64", "int32"),
        ("uint8", "float8_e5m2"),
        ("float32", "float32"),
    ],
)
def test_bytes_keep_their_values(scope, dtype, other):
    """#2609: written through one name, read through the other, large and small buffers."""
    size, width = kit.DTYPES[dtype].bits // 8, kit.DTYPES[other].bits // 8
    rows = 96 if scope == "shared" else 4  # in the workspace, or on the stack
    shape = (rows, 24)
    seen = (rows * 24 * size // width,)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(seen, other), C: T.Tensor(shape, dtype)):
        with T.Kernel(2, threads=128) as b:
            s = ALLOC[scope](shape, dtype)
            v = T.view(s, seen, other)
            T.copy(A, s)
            if b == 0:
                T.copy(v, B)
            else:
                T.clear(v)
                T.copy(T.view(v, shape, dtype), C)

    a = kit.anything(np.random.default_rng(1), shape, dtype)
    b, c = kit.launch(main, [a], [kit.guarded(seen, other), kit.guarded(shape, dtype)])
    assert b.tobytes() == a.tobytes()
    assert c.tobytes() == bytes(len(c.tobytes()))


def test_write_then_read_in_one_loop():
    """A store through one name and a load through the other in the same iteration are not exchanged."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            v = T.view(s, dtype="int32")
            for i in T.Parallel(64):
                s[i] = A[i] * 2.0
                v[i] = v[i] + 1
                B[i] = T.reinterpret("int32", s[i])

    a = np.random.default_rng(2).random(64, np.float32)
    out = kit.launch(main, [a], [kit.guarded((64,), "int32")])
    kit.same(out, (a * np.float32(2)).view(np.int32) + 1)


def test_reshape_parameters_and_feed_a_product():
    """#3012: a flat shared buffer as a matrix operand; a symbolic extent in a view of a parameter."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 24), "float32"), B: T.Tensor((24 * 9,), "float32"), C: T.Tensor((m * 9,), "float32")):
        with T.Kernel(T.ceildiv(m, 16), threads=128) as b:
            flat = T.alloc_shared((16 * 24,), "float32")
            w = T.alloc_shared((24 * 9,), "float32")
            acc = T.alloc_fragment((16, 9), "float32")
            T.copy(A[b * 16, 0], T.reshape(flat, (16, 24)))
            T.copy(B, w)
            T.clear(acc)
            T.gemm(T.reshape(flat, (16, 24)), T.view(w, (24, 9)), acc)
            T.copy(acc, T.reshape(C, (m, 9))[b * 16, 0])

    rng = np.random.default_rng(3)
    kernel = tile.compile(main, target="cpu")
    for size in (1, 16, 37):
        a, b = kit.numbers(rng, (size, 24), "float32"), kit.numbers(rng, (216,), "float32")
        out = kit.launch(kernel, [a, b], [kit.guarded((size * 9,), "float32")])
        kit.same(out, (a @ b.reshape(24, 9)).reshape(-1))


def test_four_bit_views_of_bytes():
    """Two 4-bit elements per byte, low nibble first, as views of shared bytes say too, or a refusal."""
    with pytest.raises(ViewOfPart):

        @T.prim_func
        def main(A: T.Tensor((8,), "uint8"), B: T.Tensor((16,), "int4")):
            with T.Kernel(1):
                s = T.alloc_shared((8,), "uint8")
                T.copy(A, s)
                T.copy(T.view(s, dtype="int4"), B)


def test_reshape_of_four_bit_and_bool():
    @T.prim_func
    def main(
        A: T.Tensor((4, 6), "int4"), B: T.Tensor((24,), "int4"), C: T.Tensor((6, 4), "bool"), D: T.Tensor((24,), "bool")
    ):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 6), "int4")
            q = T.alloc_shared((6, 4), "bool")
            T.copy(A, s)
            T.copy(T.reshape(s, (24,)), B)
            T.copy(C, q)
            T.copy(T.reshape(q, 24), D)

    rng = np.random.default_rng(4)
    a, c = kit.anything(rng, (4, 6), "int4"), kit.anything(rng, (6, 4), "bool")
    b, d = kit.guarded((24,), "int4"), kit.guarded((24,), "bool")
    tile.compile(main, target="cpu")(a, b, c, d)
    assert b.tobytes() == a.tobytes()
    assert d.tobytes() == c.tobytes()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda s, v: T.view(s, (5, 5)), ViewSize, "has 1024 bits"),
        (lambda s, v: T.view(s, (4, 8), "float64"), ViewSize, "2048 bits"),
        (lambda s, v: T.reshape(s[0:2, :], (16,)), ViewOfPart, "the slice"),
        (lambda s, v: T.view(v, dtype="int32"), ViewOfPart, "the variable"),
        (lambda s, v: T.reshape(s[0, 0] + 1.0, (1,)), NotATile, "not a buffer"),
        (lambda s, v: T.view(s, dtype="bool"), ViewOfPart, "as bool"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error) as caught:

        @T.prim_func
        def main():
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((4, 8), "float32")
                v = T.alloc_var("float32")
                make(s, v)

    assert text in str(caught.value)
