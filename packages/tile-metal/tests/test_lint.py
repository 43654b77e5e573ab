# ruff: noqa: E501 - texts of kernels
"""Every rule on code that breaks it and on code that does not."""

from types import SimpleNamespace

import numpy as np
import pytest
from metal_lint import lint
from metal_lint.clang import clang, clcpp_findings
from typer.testing import CliRunner

import tile_emulator
from tile_core.cli.app import app
from tile_core.cli.compile import check_texts
from tile_core.errors.launch import TextRefused
from tile_core.plugins.manager import installed
from tile_metal.emit.names import RESERVED
from tile_metal.lint import words
from tile_metal.lint.findings import Finding

from .runtime.texts import scale, text

CLEAN = """\
#include <metal_stdlib>
using namespace metal;

constant constexpr int TABLE[2] = {1, 2};

struct k_args {
  int n;
};

static inline float first(device const float* from, int at) {
  return from[at];
}

static inline void put(threadgroup half* to, float value) {
  to[0] = (half)value;
}

[[kernel]] void k(
    device const float* __restrict A [[buffer(0)]],
    device float* __restrict C [[buffer(1)]],
    constant k_args& args [[buffer(2)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  const int n = args.n;
  alignas(16) threadgroup uchar smem[1024];
  threadgroup half* const A_s = (threadgroup half*)smem;
  float parts[4], most = 0.0f;
  const int t = (int)thread_position_in_threadgroup.x;
  BODY
  C[t] = max(most, first(A, t) + parts[0]) * n;
}
"""

# Rule: statements of the kernel that break it, and statements that do not.
STATEMENTS = {
    "address-space": (
        ["float* p = C;", "thread float& r = parts[0]; float& q = parts[1];", "most = *(float*)parts;", "*(uint4*)A_s = uint4(0);",
         "auto& r = parts[0];", "vec<half, 4>* p;", "device float* * p;",
         "most = *(threadgroup float*)C;", "most = *(device float*)smem;", "most = *(device float*)&parts[1];",
         "most = *reinterpret_cast<threadgroup float*>(A + 1);", "threadgroup half* p = (threadgroup half*)(C + 4);",
         "threadgroup float* p = C;", "device half* p = A_s + t;", "first(A_s, 1);", "put(C + 1, most);", "put(parts, most);",
         "thread const k_args* p = (thread const k_args*)&args;"],
        ["device float* p = C;", "thread float& r = parts[0];", "*(threadgroup uint4*)&A_s[t * 8] = *(device const uint4*)&A[t];",
         "most = (float)t * most; most = float(t) * float(n);", "threadgroup half4* p = (threadgroup half4*)(A_s + 4);", "put(A_s + 2, most);",
         "most = *reinterpret_cast<device const float*>(A + 1);", "device const float* const p = A + t; most = first(p, 1);",
         "put(&A_s[1], most);", "most = sizeof(float) * 2; int i = t & n; bool b = most && t;", "thread float* p = parts + 1; p = &most;",
         "device float* thread* pp;", "thread const vec<half, 4>* p;", "constant int* p = TABLE;"],
    ),
    "reserved": (
        ["int kernel = 1;", "float half4 = 1.0f;", "float max = 1.0f;", "int thread = 1;", "uint texture = 1;", "int a = 1, half = 2;"],
        ["int step = 1; most = step * 2;", "auto x = op.get<half, decltype(t), float>(), y = 1;", "bool b = t < n, c = t > n;",
         "float length = 1.0f;", "int kernels = 1;"],
    ),
    "double": (["double x = 1.0;", "most = (double)most;"], ["float double_most = 1.0f;"]),
    "c-library": (["most = erf(most);", "most = log1p(most);", 'printf(most);', "most = expf(most);", "most = std::max(most, 1.0f);", "memcpy(parts, parts, 4);"],
                  ["most = precise::exp(most);", "int printf_count = 1;", "most = args.erf(1);"]),
    "language": (["goto end;", "thread int* p = new int;", "throw 1;"], ["int renew = 1;"]),
    "string": (['most = "x"[0];'], ["most = 'x'; // \"comment\""]),
    "atomic": (["atomic_fetch_add_explicit((threadgroup atomic_float*)smem, 1.0f, memory_order_relaxed);",
                "atomic_fetch_max_explicit((device atomic_ulong*)C, 1ul, memory_order_relaxed);"],
               ["atomic_fetch_add_explicit((device atomic_float*)C, 1.0f, memory_order_relaxed);",
                "atomic_fetch_add_explicit((threadgroup atomic_uint*)smem, 1u, memory_order_relaxed);"]),
    "threadgroup-memory": (["threadgroup float more[8000];", "threadgroup uint4 more[2000];"], ["threadgroup float more[7936];", "threadgroup float4 more[4][496];"]),
    "metal-kernel-name": (["int grid_size = 1;", "uint threads_per_grid = 1;", "int A_shape = 1;"], ["int grid_sizes = 1;", "int smem_shape = 1;"]),
}  # fmt: skip


def rules(text):
    return {finding.rule for finding in lint(text)}


def test_a_clean_text():
    assert lint(CLEAN.replace("BODY", "")) == ()


@pytest.mark.parametrize(("rule", "code"), [(r, c) for r, (wrong, _) in STATEMENTS.items() for c in wrong])
def test_a_statement_that_is_found(rule, code):
    line = CLEAN[: CLEAN.index("BODY")].count("\n") + 1
    found = lint(CLEAN.replace("BODY", code))
    assert {(f.line, f.rule) for f in found} == {(line, rule)}, found


@pytest.mark.parametrize("code", [c for _, right in STATEMENTS.values() for c in right])
def test_a_statement_that_is_right(code):
    assert lint(CLEAN.replace("BODY", code)) == ()


# Rule: code outside of the kernel, that breaks it and that does not.
OUTSIDE = {
    "program-scope": (["int counter = 0;", "constexpr int N = 4;", "static float table[2] = {1, 2};", "constant int unset;"],
                      ["constant float other[2] = {1, 2};", "typedef float real;", "using real = float;", "int later(int x);",
                       "static_assert(sizeof(int) == 4);", "template <class T> T same(T x) { return x; }"]),
    "threadgroup-memory": (["inline float f() { threadgroup float s[4]; return s[0]; }"], ["inline float f(threadgroup float* s) { return s[0]; }"]),
    "defined-twice": (["inline float f(device float* p) { return *p; }\ninline float f(threadgroup float* q) { return *q; }",
                       "inline float f(int x) { return x; }\ninline float f(int y) { return y; }"],
                      ["inline float f(int x);\ninline float f(int x) { return x; }", "inline float f(int x) { return x; }\ninline float f(float x) { return x; }"]),
    "reserved": (["inline float exp2(float x) { return x; }", "struct vertex { int a; };", "struct s { int device; };", "inline int f(int constant) { return 1; }"],
                 ["inline float my_exp2(float x) { return x; }", "struct vertices { int length; };"]),
    "address-space": (["inline float f(float* p) { return *p; }", "struct s { int& r; };", "template <typename T> T f(T* p) { return *p; }",
                       "inline float f(const float&) { return 1; }"],
                      ["inline float f(float p) { return p; }", "struct s { device int* p; };", "template <typename T> T f(thread T* p) { return *p; }"]),
    "metal-kernel-name": (["inline int f(int grid_origin) { return grid_origin; }"], ["inline int f(int origin) { return origin; }"]),
    "double": (["struct s { double x; };"], ["struct s { float x; };"]),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "code"), [(r, c) for r, (wrong, _) in OUTSIDE.items() for c in wrong])
def test_code_outside_that_is_found(rule, code):
    text = CLEAN.replace("BODY", "").replace("struct k_args", f"{code}\n\nstruct k_args")
    found = lint(text)
    assert {f.rule for f in found} == {rule}, found
    assert all(6 <= f.line <= 7 for f in found)


@pytest.mark.parametrize("code", [c for _, right in OUTSIDE.values() for c in right])
def test_code_outside_that_is_right(code):
    assert lint(CLEAN.replace("BODY", "").replace("struct k_args", f"{code}\n\nstruct k_args")) == ()


def kernel(*parameters):
    return f"kernel void k({', '.join(parameters)}) {{}}\n"


@pytest.mark.parametrize(("text", "found"), [
    (kernel(*(f"device int* a{i} [[buffer({i})]]" for i in range(31))), set()),
    (kernel(*(f"device int* a{i} [[buffer({i})]]" for i in range(32))), {"buffers"}),
    (kernel("device int* a [[buffer(1)]]", "device int* b [[buffer(1)]]"), {"buffers"}),
    (kernel("uint3 a [[thread_position_in_grid]]", "uint3 b [[threads_per_grid]]", "uint c [[thread_index_in_threadgroup]]"), set()),
    (kernel("uint3 a [[thread_position_in_grid]]", "uint2 b [[threads_per_grid]]"), {"positions"}),
    (kernel("uint3 threads_per_grid [[threads_per_grid]]"), set()),
    (kernel("uint3 threads_per_grid [[threadgroups_per_grid]]"), {"metal-kernel-name"}),
    (kernel("float* a [[buffer(0)]]"), {"address-space"}),
])  # fmt: skip
def test_heads(text, found):
    assert rules(text) == found, lint(text)


def test_findings_are_in_order():
    found = lint(CLEAN.replace("BODY", "goto a;\n  double x;\n  float* p;"))
    assert list(found) == sorted(found)
    assert [f.rule for f in found] == ["language", "double", "address-space"]
    assert found[0] == Finding(found[0].line, "language", "MSL has no 'goto'")


needs_clang = pytest.mark.skipif(clang() is None, reason="there is no clang 15 or newer")


@needs_clang
def test_the_front_end_of_opencl_finds_nothing():
    assert clcpp_findings(CLEAN.replace("BODY", "put(A_s, simd_sum(most));")) == ()


@needs_clang
def test_the_front_end_of_opencl_takes_bfloat_as_metal_does():
    """Operands of a condition in two spaces, as in the last elements of a row."""
    code = "device const bfloat* b = (device const bfloat*)A; bfloat v[2]; threadgroup bfloat* s = (threadgroup bfloat*)smem;"
    code += (
        " v[0] = t < n ? b[t] : (bfloat)0.0f; s[t] = t < n ? b[t] : s[0]; v[1] = (bfloat)((float)v[0] + (float)s[1]);"
    )
    assert clcpp_findings(CLEAN.replace("BODY", code)) == ()
    assert clcpp_findings(CLEAN.replace("BODY", code.replace("(device const bfloat*)A", "(thread bfloat*)A"))) != ()


@needs_clang
@pytest.mark.parametrize("code", [
    "put(C, most);", "most = *(threadgroup float*)C;", "most = undeclared;", "C[0] = A;", "A[0] = 1.0f;",
])  # fmt: skip
def test_the_front_end_of_opencl_finds(code):
    line = CLEAN[: CLEAN.index("BODY")].count("\n") + 1
    found = clcpp_findings(CLEAN.replace("BODY", code))
    assert found
    assert {f.line for f in found} == {line}, found
    assert {f.rule for f in found} == {"clang"}


def test_a_text_is_ascii():
    text = "// größe\nkernel void f(device float* x [[buffer(0)]]) {\n  x[0] = 1.0f;\n}\n"
    (found,) = lint(text)
    assert (found.line, found.rule) == (1, "ascii")
    assert not lint(text.replace("größe", "size"))


def test_a_variable_of_a_macro():
    (found,) = lint("kernel void f(device float* x [[buffer(0)]]) {\n  int INT_MAX = 3;\n  x[0] = 1.0f;\n}\n")
    assert (found.line, found.rule) == (2, "reserved")
    assert "macro" in found.message


def test_types_of_variables_as_arguments():
    body = "  auto sum = product.get_destination_cooperative_tensor<TYPE, half, float>();\n  x[0] = 1.0f;\n"
    text = "kernel void f(device float* x [[buffer(0)]]) {\n" + body + "}\n"
    (found,) = lint(text.replace("TYPE", "decltype(left)"))
    assert (found.line, found.rule) == (2, "address-space")
    assert not lint(text.replace("TYPE", "remove_addrspace_t<decltype(left)>"))


class TestWhereTheRulesAreUsed:
    """The emulator and ``tile compile`` refuse what only Apple's compiler would find."""

    CAST = "  threadgroup float* p = (threadgroup float*)C;\n  p[0] = 1.0f;\n"

    @pytest.mark.sweep(1)
    def test_the_emulator(self):
        made = text("f", [("C", "float32", "write")], self.CAST, (1, 1, 1), (1, 1, 1))
        dialect = installed().emulation(installed().resolve_target("metal"))
        with pytest.raises(TextRefused, match=r"U406.*f: a rule of MSL rejected line \d+ of the text: .*device"):
            tile_emulator.run(made.text, made.facts, [np.zeros(4, np.float32)], dialect)
        clean = text("f", [("C", "float32", "write")], "  C[0] = 1.0f;\n", (1, 1, 1), (1, 1, 1))
        assert tile_emulator.run(clean.text, clean.facts, [np.zeros(4, np.float32)], dialect).ok

    def test_compile(self):
        made = text("f", [("C", "float32", "write")], self.CAST, (1, 1, 1), (1, 1, 1))
        dialect = installed().emulation(installed().resolve_target("metal"))
        with pytest.raises(TextRefused, match="U406"):
            check_texts([SimpleNamespace(lowered=made)], dialect)
        check_texts([SimpleNamespace(lowered=made)], None)
        check_texts([SimpleNamespace(lowered="a program"), SimpleNamespace(lowered=scale())], dialect)

    @pytest.mark.sweep(1)
    def test_the_command_uses_them(self, tmp_path, monkeypatch):
        file = tmp_path / "k.py"
        file.write_text(
            "import tile_core.language as T\n\n\n@T.prim_func\ndef copy(A: T.Tensor((64,), 'float32'), "
            "B: T.Tensor((64,), 'float32')):\n    with T.Kernel(1, threads=32):\n        T.copy(A, B)\n"
        )
        runner = CliRunner()
        assert runner.invoke(app, ["compile", str(file), "--target", "metal"]).exit_code == 0
        monkeypatch.setattr("tile_metal.lint.lint", lambda text: (Finding(1, "address-space", "planted"),))
        found = runner.invoke(app, ["compile", str(file), "--target", "metal"])
        assert found.exit_code != 0
        assert "planted" in str(found.exception or found.output)


def test_words_that_the_lint_finds_are_no_names_of_variables() -> None:
    """A variable of a program is renamed where its name would be taken for a word of a text."""
    sets = [x for x in vars(words).values() if isinstance(x, frozenset)]
    every = {w for of in sets for w in of if isinstance(w, str) and w.isidentifier()}
    every |= {f"{kind}{n}" for kind in ("double", "half", "float", "int", "atomic_int") for n in ("", 2, 3, 4)}
    assert len(every) > 200
    head = "#include <metal_stdlib>\nusing namespace metal;\n\nkernel void main_1(device int* A [[buffer(0)]]) {\n"
    found = {w for w in every if lint(f"{head}  int {w} = 3;\n  A[0] = {w} + 1;\n}}\n")}
    assert "double2" in found
    assert not found - RESERVED
