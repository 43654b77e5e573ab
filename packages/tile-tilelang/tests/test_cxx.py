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


#: A function ``f(T *a, U *b, n)`` with texts in front of it -> the expected first two elements of ``b``.
EXECUTED = {
    "plain call": ("__device__ void g(uint *b) { b[0] = 1; }", "int n", "g(b); b[1] = n;", (1, 7)),
    "deduced call": ("template <typename V> __device__ void g(V *b) { b[0] = 1; }", "int n", "g(b + 1);", (0, 1)),
    "integer": ("template <int N, typename V> __device__ void g(V *b) { b[0] = N; }", "int n", "g<4>(b);", (4, 0)),
    "by value": ("__device__ void g(uint x) { x = 5; }", "int n", "uint x = 1; g(x); b[0] = x;", (1, 0)),
    "parts": ("", "int n", "b[0] = ((unsigned char *)a)[1]; b[1] = ((unsigned short *)a)[1];", (0x92, 0x0403)),
    "parts of an address": ("", "int n", "b[0] = reinterpret_cast<const unsigned char *>(a)[3];", (4, 0)),
    "short parameter": ("", "unsigned char n = 300", "b[0] = n + 300;", (344, 0)),
    "blocks": ("", "int n", "{ int m = 3; b[0] = m; } { uint m = 4; b[1] = m; }", (3, 4)),
    "changed bound": ("", "int n", "for (int i = 0; i < n; ++i) { n = 2; b[i] = 9; }", (9, 9)),
    "changed counter": ("", "int n", "for (int i = 0; i < 2; ++i) { b[i] = 9; i = i + 1; }", (9, 0)),
    "nested loops": ("", "int n", "for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) b[i] = i + j;", (1, 2)),
    "swap": (
        "", "int n",
        'uint x = a[0]; uint y = n; asm("mov.b32 %0, %3; mov.b32 %1, %2;" : "=&r"(x), "=&r"(y) : "r"(x), "r"(y));'
        "b[0] = x; b[1] = y;", (7, 0x04039281),
    ),
    "clobber": ("", "int n", 'uint x; asm volatile("mov.b32 %0, 1;" : "=r"(x) :: "memory"); b[0] = x;', (1, 0)),
    "common type": ("", "int n", "uint y = 0; int x = 0 - 1; b[0] = (n ? x : y) >> 31; b[1] = 1u << 31;", (1, 1 << 31)),
    "qualifiers": ("#include <a.h>\n// (", "const int n", "unsigned int const x = 5; b[0] = x << 1 | x;", (15, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(EXECUTED))
def test_constructs_have_their_meaning_in_cxx(name: str) -> None:
    front, parameter, body, expected = EXECUTED[name]
    text = f"{front}\ntemplate <typename T, typename U> __device__ void f(T *a, U *b, {parameter}) {{ {body} }}"
    given = () if "=" in parameter else (7,)

    @T.prim_func
    def kernel(A: T.Tensor((2,), "uint32"), B: T.Tensor((2,), "uint32")):
        with T.Kernel(1, threads=1):
            T.import_source(text)
            a, b = T.alloc_local((2,), "uint32"), T.alloc_local((2,), "uint32")
            for k in T.serial(2):
                a[k] = A[k]
                b[k] = B[k]
            T.call_extern("handle", "f", T.access_ptr(a, "r"), T.access_ptr(b, "rw"), *given)
            for k in T.serial(2):
                B[k] = b[k]

    found = np.zeros(2, "uint32")
    tile.compile(kernel, "cpu")(np.array([0x04039281, 5], "uint32"), found)
    assert tuple(int(x) for x in found) == expected


REFUSED = {
    "arithmetic of float16": ("b[0] = a[0] + a[0] * 2;", "arithmetic of floats"),
    "no argument": ("b[0] = a[0];", "the argument n of refused, which is missing", "T *a, T *b, int n"),
    "computed bound": ("for (int i = 0; i < ((uint *)a)[0]; ++i) b[0] = a[0];", "computed"),
    "bound of float16": ("for (int i = 0; i < a[0]; ++i) b[0] = a[0];", "floats"),
    "loop down": ("for (int i = n; i > 0; --i) b[0] = a[0];", "the loop"),
    "loop without an end": ("for (int i = 0; i < 2; ++i) i = 0;", "a loop of more than"),
    "if": ("if (n) b[0] = a[0];", "the statement if"),
    "if with a block": ("if (n) { b[0] = a[0]; }", "the statement if"),
    "return": ("return;", "the statement return"),
    "no value": ("uint x; b[0] = x;", "before it is written"),
    "outside": ("uint x[2]; x[n] = 1;", "outside of an array"),
    "second variable": ("uint x = 1; for (int i = 0; i < n; ++i) { uint x = 2; } b[0] = x;", "second variable x"),
    "second counter": ("uint i = 7; for (int i = 0; i < 2; ++i) b[0] = 1;", "second variable i"),
    "parameter": ("{ int n = 3; }", "second variable n"),
    "variable of a block": ("{ uint z = 5; } b[0] = z;", "the name z"),
    "counter behind its loop": ("for (int i = 0; i < 3; ++i) b[0] = i; b[1] = i;", "the name i"),
    "comparison": ("b[0] = a[0] == n;", "the sign =="),
    "less": ("b[0] = a[0] < a[1];", "the sign <"),
    "unknown function": ("b[0] = other(n);", "the function other in an expression"),
    "unknown call": ("other(n);", "the function other"),
    "recursion": ("refused(a, b);", "the function refused"),
    "sizeof": ("b[0] = sizeof(T);", "the function sizeof"),
    "instruction": ('asm("vote.b32 %0, %1;" : "=r"(n) : "r"(n));', "the instruction vote"),
    "written input": ('asm("mov.b32 %0, 1;" : : "r"(n));', "the instruction mov"),
    "constraint": ('asm("mov.b32 %0, 1;" : "=h"(n));', "the operand \"=h\""),
    "signs": ('uint x; asm("prmt.b32 %0, %1, 0, 0x8000;" : "=r"(x) : "r"(n));', "repeats their signs"),
    "shift": ("uint x = 1 << 32;", "a shift"),
    "part": ("((uint8_t *)b)[0] = 1;", "a part of an element"),
    "two assignments": ("uint x, y; x = y = 3; b[0] = x;", "inside of another one"),
    "bool": ("bool x = n; b[0] = x;", "the type bool"),
    "long long": ("b[0] = (unsigned long long)n;", "the type unsigned long long"),
    "minus": ("n = -n; b[0] = n;", "the sign - in front"),
    "in place": ("n += 1; b[0] = n;", r"the sign \+="),
    "no effect": ("n;", "has no effect"),
    "static": ("static int x = 0;", "a static variable"),
    "number": ("b[0] = 0x100000000 >> 4;", "the literal 0x100000000"),
    "decimal number": ("uint x = (2147483648 + 2147483648) >> 1;", "the literal 2147483648"),
    "octal number": ("b[0] = 010;", "the literal 010"),
    "other type": ("b[0] = 1;", "is of type float16", "T *a, uint *b"),
    "unknown type": ("b[0] = 1;", r"the type double", "double *a, T *b"),
    "reference": ("n = 1;", "the parameter int & n", "T *a, T *b, int &n"),
    "array": ("b[0] = a[0];", r"the parameter T b \[ 4", "T *a, T b[4]"),
    "wide parameter": ("b[0] = n;", "the type unsigned long long", "T *a, T *b, unsigned long long n = 1"),
    "two dimensions": ("uint x[2][2];", r"the declaration uint x \[ 2"),
    "computed division": ("uint x = ((uint *)a)[0] / 2;", "a division of integers that the kernel computes"),
    "division by zero": ("uint x = n / 0;", "a division by zero"),
    "second function": ("} __device__ void refused(uint *b) { b[0] = 1;", "a second function refused"),
    "typedef": ("} typedef unsigned char uint; __device__ void g() {", "typedef .* does not begin a function"),
    "macro": ("}\n#define N 4\n__device__ void g() {", "the line #define N 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_other_texts_are_refused(name: str) -> None:
    body, reason, parameters = (*REFUSED[name], "T *a, T *b, int n = 2")[:3]
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


def test_functions_belong_to_their_program() -> None:
    def kernel_of(*texts: str) -> None:
        @T.prim_func
        def kernel(A: T.Tensor((4,), "uint32")):
            with T.Kernel(1, threads=1):
                for text in texts:
                    T.import_source(text)
                T.call_extern("handle", "one", T.access_ptr(A, "rw"))

    first, second = (f"__device__ void one(uint *a) {{ a[0] = {n}; }}" for n in (1, 2))
    kernel_of(first)
    kernel_of(second, second)
    with pytest.raises(NotInLanguage, match="call_extern"):
        kernel_of()
    with pytest.raises(NotInLanguage, match="another text of the program has a function one"):
        kernel_of(first, second)
