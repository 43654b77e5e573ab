"""Functions in CUDA's C++ that are executed while tracing."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_tilelang.language as T
from tile_tilelang.errors import NotInLanguage

TARGETS = ["cpu", "cuda:sm_90a", "metal"]

NIBBLES = """
// the nibbles of words, less a number; both bits of the table's constants are computed
template <typename In, typename Out, bool signed_ = false>
__device__ void nibbles_of(In *packed, Out *found, const int N = 8)
{
    uint *words = reinterpret_cast<uint *>(found);
    uint const word = *reinterpret_cast<uint *>(packed);
    static constexpr uint TABLE = (0xf0 & 0xcc) | 0xaa, LESS = signed_ ? 0x05050505 : 0;
#pragma unroll
    for (int i = 0; i < (N / 4); i++) {
        asm volatile("lop3.b32 %0, %1, %2, %3, %4;\\n" : "=r"(words[i])
            : "r"(word >> (4 * i)), "n"(0x0f0f0f0f), "n"(0), "n"(TABLE));
        words[i] = __vsub4(words[i], LESS);
    }
}
template <typename In, typename Out>
__device__ void nibbles(In *packed, Out *found, const int N = 8) { nibbles_of<In, Out, true>(packed, found, N); }
"""
HALVES = """
template <typename In, typename Out> __device__ void halves(In *bytes, Out *found) {
    for (int i = 0; i < 4; ++i) {
        uint both = (uint32_t)bytes[2 * i] | (uint32_t)*(bytes + 2 * i + 1) << 16u | 0x64006400;
        uint32_t *to = (uint32_t *)&found[i << 1];
        asm("mov.b32 %0, %1; sub.f16x2 %0, %0, 0x64006400;" : "=r"(to[0]) : "r"(both));
    }
}
"""
SCALED = """
template <typename In, typename Out> __device__ void scaled(In *words, Out *found, const int N) {
    uint parts[2];
    uint swapped;
    asm volatile(
        "prmt.b32 %2, %3, 0, 0x0123;"  "mul.bf16x2 %0, %2, %4;"  "shl.b32 %1, %2, 3;"
        "and.b32 %1, %1, 0b10000001110000001000000111000000;"  "mul.bf16x2 %1, %1, %4;"
        : "=r"(parts[0]), "=r"(parts[1]) : "r"(swapped), "r"(*(uint *)words), "n"(0x7e807e80));
    for (int j = 0; j < 2; ++j) {
        found[j] = reinterpret_cast<Out *>(&parts[j])[1];
        found[j + 2] = reinterpret_cast<Out *>(&parts[j])[0];
    }
}
"""


def nibbles(data: np.ndarray) -> np.ndarray:
    found = np.stack([data & 15, data >> 4]).astype("int8") - np.int8(5)
    return found.reshape(8)


def halves(data: np.ndarray) -> np.ndarray:
    return data.astype("float16")


def scaled(data: np.ndarray) -> np.ndarray:
    word = int.from_bytes(data.tobytes(), "big")
    words = [word, (word << 3) & 0x81C081C0]
    bits = np.array([[w >> 16, w & 0xFFFF] for w in words], "uint16")
    with np.errstate(all="ignore"):
        return (bits.view(ml_dtypes.bfloat16).astype("float32") * np.float32(2.0**126)).T.reshape(4)


MEANINGS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], str, int, tuple[int, ...]]] = {
    "nibbles": (NIBBLES, nibbles, "int8", 4, ()),
    "halves": (HALVES, halves, "float16", 8, ()),
    "scaled": (SCALED, scaled, "bfloat16", 4, (1,)),
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_functions_are_executed(name: str, target: str) -> None:
    text, meaning, dtype, packed, size = MEANINGS[name]
    count = 4 if name == "scaled" else 8
    if target != "cpu":
        pytest.importorskip("tile_emulator")

    @T.prim_func
    def kernel(A: T.Tensor((64, packed), "uint8"), B: T.Tensor((64, count), dtype)):
        with T.Kernel(1, threads=64):
            i = T.get_thread_binding(0)
            T.import_source(text)
            a, b = T.alloc_local((packed,), "uint8"), T.alloc_local((count,), dtype)
            for k in T.serial(packed):
                a[k] = A[i, k]
            T.call_extern("handle", name, T.access_ptr(a, "r"), T.access_ptr(b, "w"), *size)
            for k in T.serial(count):
                B[i, k] = b[k]

    data = np.random.default_rng().integers(0, 256, (64, packed)).astype("uint8")
    b = np.full((64, count), 99).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    tile.compile(kernel, target, runtime=None if target == "cpu" else "emulator")(data, b)
    expected = np.stack([meaning(row) for row in data]).astype(b.dtype)
    np.testing.assert_array_equal(b.astype("float32"), expected.astype("float32"))


REFUSED = {
    "T *a, T *b": ("b[0] = a[0] + a[0] * 2;", "arithmetic of floats"),
    "T *a, T *b, int n": ("for (int i = 0; i < a[0]; ++i) b[0] = a[0];", "missing"),
    "T *a, T *b, int n = 1 ": ("for (int i = 0; i < a[0]; ++i) b[0] = a[0];", "computed"),
    "T *a, T *b, int n = 2": ("for (int i = n; i > 0; --i) b[0] = a[0];", "the loop"),
    "T *a, T *b, int n = 3": ("if (n) b[0] = a[0];", "not understood"),
    "T *a, T *b, int n = 4": ("uint x; b[0] = x;", "before it is written"),
    "T *a, T *b, int n = 5": ("uint x[2]; x[n] = 1;", "outside of an array"),
    "T *a, T *b, int n = 6": ("uint x = 1; for (int i = 0; i < n; ++i) { uint x = 2; } b[0] = x;", "second variable x"),
    "T *a, T *b, int n = 7": ("b[0] = a[0] == n;", "the sign =="),
    "T *a, T *b, int n = 8": ("b[0] = other(n);", "not understood"),
    "T *a, T *b, int n = 9": ('asm("vote.b32 %0, %1;" : "=r"(n) : "r"(n));', "the instruction vote"),
    "T *a, T *b, int n = 10": ('uint x; asm("prmt.b32 %0, %1, 0, 0x8000;" : "=r"(x) : "r"(n));', "repeats their signs"),
    "T *a, T *b, int n = 11": ("uint x = 1 << 32;", "a shift"),
    "T *a, T *b, int n = 12": ("((uint8_t *)b)[0] = 1;", "a part of an element"),
    "T *a, T *b, int n = 14": ("uint x, y; x = y = 3; b[0] = x;", "inside of another one"),
    "T *a, T *b, int n = 15": ("bool x = n; b[0] = x;", "not understood"),
    "T *a, T *b, int n = 16": ("b[0] = 1 + (n ? 2 : 3);", "not understood"),
    "T *a, T *b, int n = 17": ("n = -n; b[0] = n;", "not understood"),
    "T *a, T *b, int n = 18": ("n += 1; b[0] = n;", r"the sign \+="),
    "T *a, uint *b": ("b[0] = 1;", "is of type float16"),
    "T *a, T *b, int n = 13": ("uint x = n / 0;", "a division"),
}


@pytest.mark.parametrize("parameters", sorted(REFUSED))
def test_other_texts_are_refused(parameters: str) -> None:
    body, reason = REFUSED[parameters]
    with pytest.raises(NotInLanguage, match=reason) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float16"), B: T.Tensor((4,), "float16")):
            with T.Kernel(1, threads=32):
                T.import_source(f"template <typename T> __device__ void refused({parameters}) {{ {body} }}")
                T.call_extern("refused", T.access_ptr(A, "r"), T.access_ptr(B, "w"), dtype="float16")

    assert "write what it computes in the language" in caught.value.help


def test_functions_that_were_not_imported_are_refused() -> None:
    with pytest.raises(NotInLanguage, match="no_such_function"):

        @T.prim_func
        def kernel(A: T.Tensor((4,), "int8")):
            with T.Kernel(1, threads=32):
                T.call_extern("int32", "no_such_function", A)

    with pytest.raises(NotInLanguage, match="async_scope"):
        T.attr("default", "async_scope", 1)
