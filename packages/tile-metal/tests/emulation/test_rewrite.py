"""The rewriting of texts, without a compiler: lines stay, and what is refused is named."""

import pytest

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_metal.emulation import call
from tile_metal.emulation.rewrite import prepare_with
from tile_metal.emulation.tokens import matching_angle, outline, tokenize

from . import kernels
from .launches import HEAD


def prepare(text, tensor_ops=False):
    prepared = prepare_with(text, tensor_ops)
    assert prepared.count("\n") == text.count("\n")
    return prepared


def test_lines_stay():
    prepared = prepare(HEAD + kernels.GEMM).split("\n")
    for before, after in zip((HEAD + kernels.GEMM).split("\n"), prepared, strict=True):
        if not any(word in before for word in ("#include", "#pragma METAL", "smem[", "256.0h")) and before != "}":
            assert before == after
    assert any(
        "simt_sources_gemm[] = {0, 1, 2, 3, 4, metal_model::threadgroup_position_in_grid" in line for line in prepared
    )
    assert any("simt_threads_gemm = 128" in line for line in prepared)


@pytest.mark.parametrize(("text", "expected"), [
    ("alignas(16) threadgroup uchar smem[64];", "uchar* const smem = metal_model::slab<64>();"),
    ("alignas(16)\nthreadgroup uchar\nsmem[64];", "uchar* const smem = metal_model::slab<64>();\n\n"),
    ("threadgroup float s[4][8];", "SIMT_SHARED float s[4][8];"),
    ("threadgroup vec<float, 4> s[4];", "SIMT_SHARED vec<float, 4> s[4];"),
    ("threadgroup uint count;", "SIMT_SHARED uint count;"),
    ("threadgroup half* const p = (threadgroup half*)smem;", "threadgroup half* const p = (threadgroup half*)smem;"),
    ("x = *reinterpret_cast<const threadgroup half4*>(p);", "x = *reinterpret_cast<const threadgroup half4*>(p);"),
    ("// threadgroup float s[4];", "// threadgroup float s[4];"),
    ("x = 1.0 + .5 + 1e3 + 2.0f + 0x1e5 + 7 + 1.h;", "x = 1.0f + .5f + 1e3f + 2.0f + 0x1e5 + 7 + half(1.);"),
    ("x = 0.5H * 2.0bf;", "x = half(0.5) * bfloat(2.0);"),
    ("const constant int* p; constant const int* q; constant int const* r; constant int* s;",
     "const  int* p;  const int* q;  int const* r; constant int* s;"),
])  # fmt: skip
def test_statements(text, expected):
    head, tail = "kernel void k(device int* a [[buffer(0)]]) {\n", "\n}\n"
    assert prepare(head + text + tail)[len(head) :].split(tail[:2])[0] == expected


def test_literals_of_macros():
    text = "#define TINY 1e-6 /* 1.0 */\n#define ONE \\\n  1.0h + 2.f\n#define NONE\n"
    assert prepare(text) == "#define TINY 1e-6f /* 1.0 */\n#define ONE \\\n  half(1.0) + 2.f\n#define NONE\n"


def test_only_the_first_slab_is_the_launch_s():
    text = "kernel void k() { alignas(16) threadgroup uchar a[8]; alignas(16) threadgroup uchar b[8]; }"
    prepared = prepare(text)
    assert prepared.count("metal_model::slab") == 1
    assert "alignas(16) SIMT_SHARED uchar b[8];" in prepared


def test_functions_are_found():
    text = """
    #define ONE 1
    using namespace metal;
    constant float table[2] = {1, 2};
    struct s { int a; int b[2]; };
    namespace inner { static inline int f(thread const int* p, int n = 3) { return p[n]; } }
    template <typename T> T g(T x) { if (x > 0) { return x; } return T(vec<T, 2>(x).x); }
    [[kernel]] void k(device const float* a [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) { for (;;) {} }
    kernel void later(constant s& args [[buffer(1)]]);
    """
    found = outline([t for t in tokenize(text) if t.kind != "directive"])
    assert [f.name.text for f in found.functions] == ["f", "g", "k", "later"]
    assert [f.is_kernel for f in found.functions] == [False, False, True, True]
    assert [f.is_template for f in found.functions] == [False, True, False, False]
    assert [[p.name for p in f.parameters] for f in found.functions] == [["p", "n"], ["x"], ["a", "t"], ["args"]]
    assert found.functions[2].parameters[0].attributes == (("buffer", "0"),)
    assert [s[0].text for s in found.outside] == ["using", "constant"]
    assert [s[1].text for s in found.members] == ["a", "b"]


def test_tokens():
    tokens = tokenize('a /* b */ += 1.5e-3f; // c\n#define X \\\n 1\n"d\\"" >> x')
    assert [t.text for t in tokens] == ["a", "+=", "1.5e-3f", ";", "#define X \\\n 1", '"d\\""', ">", ">", "x"]
    assert [t.line for t in tokens] == [1, 1, 1, 1, 2, 4, 4, 4, 4]
    assert matching_angle(tokenize("<a, vec<b, 2>> c"), 0) == 9
    assert matching_angle(tokenize("< a; b > c"), 0) == -1


def test_the_call():
    params = (
        ParamFact("A", "pointer", "float16"), ParamFact("flag", "scalar", "uint8"), ParamFact("n", "scalar", "int64"),
        ParamFact("C", "pointer", "float32"), ParamFact("h", "scalar", "bfloat16"),
    )  # fmt: skip
    text = call(LaunchFacts("k", params, (1, 1, 1), (32, 1, 1)))
    assert "{{false, 0, 0}, {true, 1, 0}, {true, 8, 8}, {false, 0, 0}, {true, 2, 16}, {false, 0, 0}}" in text
    assert "launch<5, 3, 24>(&k, simt_sources_k, simt_threads_k" in text
    opaque = LaunchFacts("k", (ParamFact("map", "opaque", bytes=128),), (1, 1, 1), (32, 1, 1))
    assert "GCC error" in call(opaque)
