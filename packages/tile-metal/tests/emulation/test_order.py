# ruff: noqa: E501 - texts of kernels
"""Operations that order memory or do not, and illegal accesses."""

import numpy as np
import pytest

from .launches import poison, report_text, run

# Each case: code between a write of s[t] and a read of another thread's, and kinds that are found. One simdgroup meets
# in the cases of `ONE`, two in the others.
EXCHANGE = {
    "a barrier": ("threadgroup_barrier(mem_flags::mem_threadgroup);", set()),
    "a barrier of both memories": ("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);", set()),
    "no barrier": ("", {"race"}),
    "a barrier of no memory": ("threadgroup_barrier(mem_flags::mem_none);", {"race"}),
    "a barrier of device memory": ("threadgroup_barrier(mem_flags::mem_device);", {"barrier"}),
    "a barrier of simdgroups": ("simdgroup_barrier(mem_flags::mem_threadgroup);", {"race"}),
    "a fence": ("atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);", {"race"}),
    "a barrier in a branch": ("if (t != 5) threadgroup_barrier(mem_flags::mem_threadgroup);", {"deadlock"}),
    "a barrier that threads leave out": ("if (t == 5) return;\nthreadgroup_barrier(mem_flags::mem_threadgroup);", {"deadlock"}),
    "barriers in a loop of different length": ("for (uint i = 0; i <= t % 2; ++i) threadgroup_barrier(mem_flags::mem_threadgroup);", {"deadlock"}),
    "one: a barrier of simdgroups": ("simdgroup_barrier(mem_flags::mem_threadgroup);", set()),
    "one: a barrier of simdgroups and no memory": ("simdgroup_barrier(mem_flags::mem_none);", {"race"}),
    "one: a sum": ("x += simd_sum(x);", {"race"}),
    "one: a matrix": ("simdgroup_float8x8 m(x); simdgroup_multiply(m, m, m);", {"race"}),
    "one: a barrier of simdgroups in a branch": ("if (t < 8) simdgroup_barrier(mem_flags::mem_threadgroup);", {"deadlock"}),
}  # fmt: skip
# Code, kind. `s` is threadgroup memory of 256 bytes, A an input and C an output of 64 floats.
ACCESSES = {
    "a half at an odd address": ("x = float(*(threadgroup half*)(smem + t * 2 + 1));", "misaligned"),
    "a store of a half at an odd address": ("*(threadgroup half*)(smem + 1) = half(x);", "misaligned"),
    "a bfloat at an odd address": ("x = float(*(device const bfloat*)((device const uchar*)A + 1));", "misaligned"),
    "a float at an even address": ("x = *(threadgroup float*)(smem + t * 4 + 2);", "misaligned"),
    "a vector at 8 bytes": ("uint4 v = *(threadgroup uint4*)(smem + 8); x = v.y;", "misaligned"),
    "a vector of two at 4 bytes": ("*(threadgroup uint2*)(smem + t * 8 + 4) = uint2(1);", "misaligned"),
    "behind the threadgroup's memory": ("x = s[64 + t];", "bounds"),
    "before an array": ("x = A[(int)t - 1];", "bounds"),
    "half of a vector behind an array": ("float2 v = *(device const float2*)&A[t * 2 + 2]; x = v.x;", "bounds"),
    "behind an array of the thread": ("float own[4] = {1, 2, 3, 4}; x = own[t % 5];", "bounds"),
    "unwritten memory of a tensor": ("x = C[t];", "uninitialised"),
    "unwritten shared memory": ("x = s[t];", "uninitialised"),
    "one element for all": ("C[0] = x;", "race"),
    "a plain access besides atomic ones": ("if (t) atomic_fetch_add_explicit((device atomic_uint*)N, 1u, memory_order_relaxed);\nelse N[0] = 1;", "race"),
    "a misaligned atomic": ("atomic_fetch_add_explicit((device atomic_uint*)((device uchar*)N + 2), 1u, memory_order_relaxed);", "misaligned"),
}  # fmt: skip
HEAD = (
    "kernel void NAME(constant int& which [[buffer(0)]], device const float* A [[buffer(1)]], device float* outC [[buffer(2)]],\n"
    "                 device uint* N [[buffer(3)]], uint t [[thread_index_in_threadgroup]]) {\n"
    "  alignas(16) threadgroup uchar smem[256];\n  threadgroup float* const s = (threadgroup float*)smem;\n  float x = A[t];\n  switch (which) {\n"
)
TAIL = "  }\n  if (x > 1e30f) outC[t] = x;\n}\n"


def text_of(cases):
    return HEAD + "".join(f"    case {i}: {{\n{code}\n      break;\n    }}\n" for i, code in enumerate(cases)) + TAIL


TEXTS = {
    "exchange": text_of(f"s[t] = x; {code} x = s[t ^ 31];" if name.startswith("one") else f"s[t] = x; {code} x = s[63 - t];"
                        for name, (code, _) in EXCHANGE.items()),
    "accesses": text_of(code.replace("C[", "outC[") for code, _ in ACCESSES.values()),
}  # fmt: skip


def found_in(which, number, threads=64):
    text = TEXTS[which].replace("NAME", which)
    args = [number, np.arange(64, dtype="float32"), poison(64), np.zeros(64, "uint32")]
    result = run(text, args, block=(threads, 1, 1), shared_bytes=256)
    return {report.kind for report in result.reports}, report_text(result)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", EXCHANGE, ids=lambda name: name.replace(" ", "_"))
def test_what_orders_memory(name):
    found, said = found_in("exchange", list(EXCHANGE).index(name), 32 if name.startswith("one") else 64)
    expected = EXCHANGE[name][1]
    assert expected <= found if expected else not found, said


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ACCESSES, ids=lambda name: name.replace(" ", "_"))
def test_accesses_that_are_reported(name):
    found, said = found_in("accesses", list(ACCESSES).index(name))
    assert ACCESSES[name][1] in found, said


def test_the_cases_alone_are_at_fault():
    for which in TEXTS:
        found, said = found_in(which, -1)
        assert not found, said
