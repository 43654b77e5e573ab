"""T.gemm beyond testing/tables/products.py: legal types, parts of buffers, wrapping, aliases, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import KernelError
from tile_core.errors.ops import GemmShape, GemmTypes
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)


ACCUMULATORS = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64", "int8", "int16")
OPERANDS = tuple(d for d in kit.ALL_TYPES)


def one(a, b, c, m=7, n=9, k=10, clear=False):
    """One product of whole tiles."""

    @T.prim_func
    def main(A: T.Tensor((m, k), a), B: T.Tensor((k, n), b), C: T.Tensor((m, n), c), D: T.Tensor((m, n), c)):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((m, k), a)
            B_s = T.alloc_shared((k, n), b)
            C_f = T.alloc_fragment((m, n), c)
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.copy(C, C_f)
            T.gemm(A_s, B_s, C_f, clear_accum=clear)
            T.copy(C_f, D)

    return main


def legal(a, b, c):
    """Whether the documented rule of T.gemm takes the types."""
    floats = [kit.DTYPES[d].is_float for d in (a, b, c)]
    integers = [kit.DTYPES[d].is_integer for d in (a, b, c)]
    if "float8_e8m0fnu" in (a, b):
        return False
    if all(floats):
        return c == "float64" or ("float64" not in (a, b) and c in ("float16", "bfloat16", "float32"))
    if all(integers):
        bits = max(kit.DTYPES[a].bits, kit.DTYPES[b].bits)
        return c in ("int32", "int64", "uint32", "uint64") and kit.DTYPES[c].bits >= bits
    return False


@pytest.mark.parametrize("a", OPERANDS)
def test_types_are_legal_or_refused(a):
    """Every triple: tracing takes exactly the documented ones."""
    for b in OPERANDS:
        for c in ACCUMULATORS:
            if legal(a, b, c):
                one(a, b, c, n=10)
            else:
                with pytest.raises(GemmTypes) as caught:
                    one(a, b, c, n=10)
                assert caught.value.code == "K208"
                assert "T.gemm(" in caught.value.where.source


def test_parts_of_buffers_batches_and_corners():
    """Operands at an offset, with leading batch dimensions, and reaching past their buffer."""

    @T.prim_func
    def main(
        A: T.Tensor((2, 20, 30), "float32"),
        B: T.Tensor((40, 24), "float32"),
        C: T.Tensor((3, 9, 11), "float32"),
        z: T.int32,
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((2, 20, 30), "float32")
            B_s = T.alloc_shared((40, 24), "float32")
            C_s = T.alloc_shared((3, 9, 11), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.clear(C_s)
            T.gemm(A_s[z, 3:12, 5:22], B_s[2:19, 4:15], C_s[0, :, :])
            T.gemm(A_s[1, 0:9, 0:13], B_s[z * 30 : z * 30 + 13, 0:11], C_s[1, :, :])
            T.gemm(A[1, 0:9, z : z + 13], B[0:13, z + 12 : z + 23], C_s[2, :, :])
            T.copy(C_s, C)

    rng = np.random.default_rng(2)
    a, b = kit.numbers(rng, (2, 20, 30), "float32"), kit.numbers(rng, (40, 24), "float32")
    kernel = tile.compile(main, target="cpu")
    for z in (0, 1):
        out = kit.guarded((3, 9, 11), "float32")
        kernel(a, b, out, z)
        assert kit.unharmed(out)
        wide = oracles.copy_region(b, (z * 30, 0), (13, 11))
        expected = [
            a[z, 3:12, 5:22] @ b[2:19, 4:15],
            a[1, :9, :13] @ wide,
            a[1, :9, z : z + 13] @ b[:13, z + 12 : z + 23],
        ]
        kit.same(out, np.stack(expected) + np.float32(0))


def test_integers_wrap():
    a = kit.stored(np.full((7, 12), -128), "int8")
    b = kit.stored(np.full((12, 10), 2**31 - 1), "int32")
    c = kit.stored(np.full((7, 10), 2**31 - 1), "int32")
    out = kit.launch(one("int8", "int32", "int32", 7, 10, 12), [a, b, c], [kit.guarded((7, 10), "int32")])
    kit.same(out, np.full((7, 10), 12 * -128 * (2**31 - 1) + 2**31 - 1).astype(np.int32))


def test_operand_that_is_also_the_accumulator():
    @T.prim_func
    def main(A: T.Tensor((9, 9), "float32"), C: T.Tensor((9, 9), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((9, 9), "float32")
            T.copy(A, s)
            T.gemm(s, s, s)
            T.copy(s, C)

    a = kit.numbers(np.random.default_rng(4), (9, 9), "float32")
    kit.same(kit.launch(main, [a], [kit.guarded((9, 9), "float32")]), a + a @ a)


@pytest.mark.parametrize(
    ("shapes", "flags", "what"),
    [
        (((8, 16), (8, 16), (8, 16)), {}, "K of B against K of A"),
        (((8, 16), (16, 24), (7, 24)), {}, "M of C against M of A"),
        (((8, 16), (16, 24), (8, 23)), {}, "N of C against N of B"),
        (((8, 16), (16, 24), (8, 24)), {"transpose_A": True}, "K of B against K of A"),
        (((8, 16), (16, 24), (8, 24)), {"transpose_B": True}, "K of B against K of A"),
    ],
)
def test_shapes_that_do_not_fit(shapes, flags, what):
    with pytest.raises(GemmShape) as caught:

        @T.prim_func
        def main():
            with T.Kernel(1):
                a = T.alloc_shared(shapes[0], "float32")
                b = T.alloc_shared(shapes[1], "float32")
                c = T.alloc_fragment(shapes[2], "float32")
                T.gemm(a, b, c, **flags)

    assert what in str(caught.value)
    assert caught.value.where.source == "T.gemm(a, b, c, **flags)"


@pytest.mark.parametrize("shape", [(16,), (2, 16, 16)])
def test_operands_that_are_no_matrix(shape):
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def main():
            with T.Kernel(1):
                a = T.alloc_shared(shape, "float32")
                c = T.alloc_fragment((16, 16), "float32")
                T.gemm(a, a, c)

    assert caught.value.code == "K212"
