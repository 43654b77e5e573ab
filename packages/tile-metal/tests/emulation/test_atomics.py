# ruff: noqa: E501 - texts of kernels
"""Atomic functions, and what orders memory besides."""

import numpy as np
import pytest

from .launches import kinds, poison, report_text, right, run

ATOMICS = """
kernel void atomics(device int* i [[buffer(0)]], device uint* u [[buffer(1)]], device float* f [[buffer(2)]], device uint* out [[buffer(3)]],
                    uint t [[thread_index_in_threadgroup]], uint g [[thread_position_in_grid]]) {
  alignas(16) threadgroup uchar smem[64];
  threadgroup uint* const s = (threadgroup uint*)smem;
  if (t < 16) atomic_store_explicit((threadgroup atomic_uint*)&s[t], 7u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit((device atomic_int*)&i[0], (int)g - 40, memory_order_relaxed);
  atomic_fetch_sub_explicit((device atomic_int*)&i[1], (int)g, memory_order_relaxed);
  atomic_fetch_min_explicit((device atomic_int*)&i[2], -(int)g, memory_order_relaxed);
  atomic_fetch_max_explicit((device atomic_int*)&i[3], (int)g, memory_order_relaxed);
  atomic_fetch_and_explicit((device atomic_uint*)&u[0], ~(1u << (g & 31)), memory_order_relaxed);
  atomic_fetch_or_explicit((device atomic_uint*)&u[1], 1u << (g & 15), memory_order_relaxed);
  atomic_fetch_xor_explicit((device atomic_uint*)&u[2], g, memory_order_relaxed);
  atomic_fetch_add_explicit((device atomic_float*)&f[0], 0.5f, memory_order_relaxed);
  atomic_fetch_sub_explicit((device atomic<float>*)&f[1], 0.25f, memory_order_relaxed);
  atomic_fetch_add_explicit((threadgroup atomic_uint*)&s[0], 1u, memory_order_relaxed);
  uint old = atomic_load_explicit((device atomic_uint*)&u[3], memory_order_relaxed), fresh;
  do {
    fresh = old * 3 + 1;
  } while (!atomic_compare_exchange_weak_explicit((device atomic_uint*)&u[3], &old, fresh, memory_order_relaxed, memory_order_relaxed));
  out[g] = atomic_exchange_explicit((device atomic_uint*)&u[4], g + 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) atomic_fetch_add_explicit((device atomic_uint*)&u[5], s[0] * s[1], memory_order_relaxed);
}
"""


@pytest.mark.parametrize("order", ["forward", "random"])
def test_atomics(order):
    i, u = np.array([0, 0, 5, -5], "int32"), np.array([2**32 - 1, 0, 0, 1, 0, 0], "uint32")
    args = [i, u, np.zeros(2, "float32"), poison(96, dtype="uint32")]
    found = right(ATOMICS, args, grid=(2, 1, 1), block=(48, 1, 1), shared_bytes=64, order=order)
    g = np.arange(96)
    power = 1
    for _ in g:
        power = (power * 3 + 1) & 0xFFFFFFFF
    assert found["i"].tolist() == [int((g - 40).sum()), -int(g.sum()), -95, 95]
    assert found["u"][:4].tolist() == [0, 0xFFFF, np.bitwise_xor.reduce(g), power]
    assert found["u"][5] == 2 * 55 * 7
    assert found["f"].tolist() == [48, -24]
    assert sorted([*found["out"].tolist(), int(found["u"][4])]) == [0, *range(1, 97)]


LOST = """
kernel void lost(device uint* u [[buffer(0)]], uint g [[thread_position_in_grid]]) {
  uint old = atomic_load_explicit((device atomic_uint*)u, memory_order_relaxed);
  WHAT
}
"""


def test_a_comparison_that_fails_without_reason_is_met():
    code = "(device atomic_uint*)u, &old, old + 1, memory_order_relaxed, memory_order_relaxed"
    once = (
        f"if (!atomic_compare_exchange_weak_explicit({code})) if (!atomic_compare_exchange_weak_explicit({code})) {{}}"
    )
    again = f"while (!atomic_compare_exchange_weak_explicit({code})) {{}}"
    assert right(LOST.replace("WHAT", again), [np.zeros(1, "uint32")], block=(64, 1, 1))["u"][0] == 64
    assert right(LOST.replace("WHAT", once), [np.zeros(1, "uint32")], block=(64, 1, 1))["u"][0] < 64


# Every threadgroup leaves a part; the last one to come adds them up.
LAST = """
kernel void last(device float* parts [[buffer(0)]], device uint* count [[buffer(1)]], device float* out [[buffer(2)]],
                 uint g [[threadgroup_position_in_grid]], uint n [[threadgroups_per_grid]], uint t [[thread_index_in_threadgroup]]) {
  alignas(16) threadgroup uchar smem[16];
  threadgroup uint* const seen = (threadgroup uint*)smem;
  parts[g * 32 + t] = g + t;
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (t == 0) {
    BEFORE
    *seen = atomic_fetch_add_explicit((device atomic_uint*)count, 1u, memory_order_relaxed);
    AFTER
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (*seen == n - 1) {
    float sum = 0;
    for (uint b = 0; b < n; b++) sum += parts[b * 32 + t];
    out[t] = sum;
  }
}
"""
FENCE = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);"


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("before", "after", "found"), [
    (FENCE, FENCE, set()), (FENCE, "", {"race"}), ("", FENCE, {"race"}), ("", "", {"race"}),
    (FENCE.replace("scope_device", "scope_threadgroup"), FENCE, {"race"}),
    (FENCE.replace("mem_device", "mem_threadgroup"), FENCE, {"race"}),
    (FENCE.replace("seq_cst", "relaxed"), FENCE, {"race"}), (FENCE.replace("seq_cst", "release"), FENCE, {"fence"}),
])  # fmt: skip
def test_the_last_threadgroup_needs_fences(before, after, found):
    args = [poison(5 * 32), np.zeros(1, "uint32"), np.zeros(32, "float32")]
    result = run(LAST.replace("BEFORE", before).replace("AFTER", after), args, (5, 1, 1), shared_bytes=16)
    assert kinds(result) == found, report_text(result)
    if not found:
        assert np.array_equal(result.outputs["out"], 10 + 5 * np.arange(32))


def test_floats_in_threadgroup_memory():
    text = """
    static inline void add(threadgroup float* s) { atomic_fetch_add_explicit((HIDDEN*)s, 1.0f, memory_order_relaxed); }
    kernel void k(device float* out [[buffer(0)]]) {
      alignas(16) threadgroup uchar smem[16];
      add((threadgroup float*)smem);
    }
    """.replace("HIDDEN", "volatile threadgroup metal::atomic_float")
    result = run(text, [poison(1)], shared_bytes=16)
    assert kinds(result) == {"atomic"}, report_text(result)
