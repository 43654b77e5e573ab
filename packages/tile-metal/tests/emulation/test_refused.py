# ruff: noqa: E501 - texts of kernels
"""Unmodelled constructs do not compile, and launches a device would reject are rejected."""

import numpy as np
import pytest

from tile_emulator.errors import LaunchRefused, NotModelled
from tile_metal.emulation import dialect
from tile_metal.target import make_target

from .launches import kinds, poison, report_text, run

pytestmark = pytest.mark.sweep(3)

# Statements of a kernel, in which t is the thread's number, x a float and out an array of floats; words of the message.
STATEMENTS = {
    "a function of C": ("x = erf(x);", "erf"),
    "a function of C for float": ("x = expf(x);", "expf"),
    "a function of memory": ("memcpy(out, &x, 4);", "memcpy"),
    "printing": ('printf("%d", t);', "printf"),
    "a double": ("double y = 1.0; x = y;", "double"),
    "an unknown function": ("x = quad_sum(x);", "quad_sum"),
    "numbers of two types": ("t = max(t, 1);", "ambiguous"),
    "exp of an integer": ("x = exp(1);", "deleted"),
    "half and bfloat": ("x = half(x) + bfloat(x);", "deleted"),
    "a bfloat without a cast": ("bfloat b = x; x = b;", ""),
    "a swizzle": ("uint4 v = uint4(t); t = v.xy.x;", "xy"),
    "a vector of too few elements": ("uint4 v = uint4(1, 2, 3); t = v.x;", "one value for each element"),
    "sizes that differ": ("x = as_type<float>(half(x));", "one size"),
    "an atomic of 64 bits": ("atomic_fetch_add_explicit((device atomic<ulong>*)out, 1ul, memory_order_relaxed);", ""),
    "an atomic by its name of 64 bits": ("atomic_fetch_max_explicit((device atomic_ulong*)out, 1ul, memory_order_relaxed);", "atomic_ulong"),
    "an atomic of another order": ("atomic_fetch_add_explicit((device atomic_uint*)out, 1u, memory_order_acq_rel);", ""),
    "a maximum of atomic floats": ("atomic_fetch_max_explicit((device atomic_float*)out, 1.0f, memory_order_relaxed);", ""),
    "an atomic float of the threadgroup": ("atomic_fetch_add_explicit((threadgroup atomic_float*)out, 1.0f, memory_order_relaxed);", "floats in threadgroup memory"),
    "a plain access to an atomic": ("*(device atomic_uint*)out = 1;", ""),
    "a sum of 64 bits": ("x = simd_sum((ulong)t);", "no model for this type"),
    "bits of a float": ("x = simd_and(x);", "no model for this type"),
    "a shuffle of 64 bits": ("x = simd_shuffle((long)t, (ushort)0);", "shuffles take"),
    "a matrix of int": ("simdgroup_matrix<int, 8, 8> m;", "half, bfloat or float"),
    "a matrix of 16 x 16": ("simdgroup_matrix<float, 16, 16> m;", "8 x 8"),
    "a product of two types": ("simdgroup_half8x8 a; simdgroup_float8x8 b, c; simdgroup_multiply(c, a, b);", "no model"),
    "a product into half": ("simdgroup_bfloat8x8 a; simdgroup_half8x8 c; simdgroup_multiply_accumulate(c, a, a, c);", "no model"),
    "a matrix of another type than the memory": ("simdgroup_half8x8 a; simdgroup_load(a, out);", ""),
    "texture memory": ("threadgroup_barrier(mem_flags::mem_texture);", "mem_texture"),
    "a barrier without flags": ("threadgroup_barrier();", ""),
    "a value of a threadgroup variable": ("threadgroup float s[2] = {0, 1}; x = s[t];", "without a value"),
    "two threadgroup variables at once": ("threadgroup float r[2], s[2]; x = s[t] + r[t];", "one by one"),
    "a write to a constant": ("n = 1;", "read-only|const"),
    "a texture": ("texture2d<float> image;", "texture2d"),
}  # fmt: skip
KERNEL = (
    "HELPERS\nkernel void refused(device float* out [[buffer(0)]], constant int& n [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {\n"
    "  float x = out[t];\n  STATEMENT\n  out[t] = x + t;\n}\n"
)
LINE = 7


def refused(text, args=None, **how):
    with pytest.raises(NotModelled) as found:
        run(text, [poison(32), 1] if args is None else args, **how)
    return str(found.value)


@pytest.mark.parametrize("name", STATEMENTS, ids=lambda name: name.replace(" ", "_"))
def test_a_statement_without_a_model(name):
    code, words = STATEMENTS[name]
    said = refused(KERNEL.replace("STATEMENT", code).replace("HELPERS", ""))
    assert f"line {LINE} " in said
    assert any(word in said for word in words.split("|")), said


HELPERS = {
    "threadgroup memory outside": ("threadgroup float s[4];", "in a kernel only"),
    "threadgroup memory in a helper": ("inline float f() { threadgroup float s[4]; return s[0]; }", "in a kernel only"),
    "a reference to an array": ("inline float f(threadgroup float (&s)[4]) { return s[0]; }", "this use of"),
    "a constant of the function": ("constant int c [[function_constant(0)]];", "function constants"),
    "a template with a space": ("template <class T> inline T f(device const T* p) { return *p; }", "a template with 'device'"),
    "a macro with a space": ("#define SHARED threadgroup float", "a macro with 'threadgroup'"),
    "an unknown header": ("#include <metal_raytracing>", "metal_raytracing"),
    "the tensor operations of Metal 4": ("#include <metal_tensor>", "metal_tensor"),
    "two functions of one form": ("inline int f(device int* p) { return *p; } inline int f(threadgroup int* p) { return *p; }", "redefinition"),
    "an instance of a template": ("template <class T> inline T f(T x) { return x; } template int f<int>(int);", "explicit instantiation"),
}  # fmt: skip


@pytest.mark.parametrize("name", HELPERS, ids=lambda name: name.replace(" ", "_"))
def test_a_helper_without_a_model(name):
    code, words = HELPERS[name]
    said = refused(KERNEL.replace("HELPERS", code).replace("STATEMENT", ""))
    assert words in said
    assert "line 4 " in said


HEADS = {
    "threadgroup memory of the launch": ("device float* out [[buffer(0)]], threadgroup float* s [[threadgroup(0)]]", "the parameter s with threadgroup"),
    "an unknown attribute": ("device float* out [[buffer(0)]], uint g [[grid_origin]]", "the parameter g with grid_origin"),
    "no attribute": ("device float* out", "no attribute"),
    "a built-in value of another type": ("device float* out [[buffer(0)]], int t [[thread_index_in_threadgroup]]", "uint or ushort"),
    "a buffer that is not given": ("device float* out [[buffer(0)]], device float* more [[texture(1)]]", "texture"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS, ids=lambda name: name.replace(" ", "_"))
def test_a_head_without_a_model(name):
    head, words = HEADS[name]
    arrays = {"out": poison(32)} if "[[buffer" in head else {}
    assert words in refused(f"kernel void refused({head}) {{\n}}\n", arrays)


@pytest.mark.parametrize(("fields", "words"), [
    ("int n; long m;", "structure of scalars"), ("char n;", "structure of scalars"),
])  # fmt: skip
def test_a_structure_of_another_size(fields, words):
    text = f"struct s {{ {fields} }};\nkernel void k(device float* out [[buffer(0)]], constant s& args [[buffer(1)]]) {{ out[0] = args.n; }}\n"
    assert words in refused(text, [poison(1), 1], scalars={"n": "int32"})


TENSORS = {
    "another shape": ("matmul2d<matmul2d_descriptor(16, 16, 16), execution_simdgroup> op;", "another shape"),
    "more simdgroups": ("matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroups<4>> op;", "execution_simdgroups"),
    "types that do not multiply": ("matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroup> op; auto a = op.get_left_input_cooperative_tensor<half, float, float>();", "no model"),
    "tensors in memory": ("tensor<device half, dextents<int, 2>, tensor_inline> a;", "dextents"),
    "loads": ("matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroup> op; auto a = op.get_left_input_cooperative_tensor<half, half, float>(); a.load(out);", "load"),
}  # fmt: skip


@pytest.mark.parametrize("name", TENSORS, ids=lambda name: name.replace(" ", "_"))
def test_a_tensor_operation_without_a_model(name):
    code, words = TENSORS[name]
    assert words in refused(KERNEL.replace("STATEMENT", code).replace("HELPERS", ""), tensor_ops=True)


def test_launches_that_a_device_refuses():
    text = "[[kernel, max_total_threads_per_threadgroup(32)]] void k(device float* out [[buffer(0)]]) {\n  alignas(16) threadgroup uchar smem[64];\n}\n"
    most = run(text, [poison(1)], block=(64, 1, 1), shared_bytes=64)
    assert kinds(most) == {"launch"}, report_text(most)
    slab = run(text, [poison(1)], shared_bytes=32)
    assert kinds(slab) == {"shared"}, report_text(slab)
    assert run(text, [poison(1)], shared_bytes=64).ok
    for how in ({"block": (1025, 1, 1)}, {"shared_bytes": 32769}):
        with pytest.raises(LaunchRefused):
            run(text, [poison(1)], **how)


def test_the_limits_are_those_of_the_target():
    plain, newest = dialect(make_target("metal3")), dialect(make_target("metal4"))
    assert (plain.name, plain.warp) == ("MSL", 32)
    assert (plain.limits.max_threads, plain.limits.max_shared_bytes) == (1024, 32768)
    assert "#error" in plain.prepare("#include <metal_tensor>\n")
    assert newest.prepare("#include <metal_tensor>\n") == "\n"


def test_a_buffer_behind_the_last():
    text = "kernel void k(device float* out [[buffer(1)]]) { out[0] = 1.0f; }\n"
    result = run(text, [np.zeros(1, "float32")])
    assert "buffer 1 does not exist" in report_text(result)
