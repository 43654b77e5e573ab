"""Costs of kernels, beside hand-written ones (``tools/metal_counts/reference/*.metal``).

``benchmarks/metal_counts.py`` writes the counts of all of them as a page.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from metal_counts.counts import Counts, counts_of
from metal_counts.programs import fp8_vector_case
from metal_counts.registers import NoEstimate, arithmetic, assembly, estimate
from metal_counts.rows import MOST, ROWS
from metal_lint import lint
from metal_lint.clang import clang
from zoo.launch import text_for

import tile_emulator
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.plugins.contexts import make_context
from tile_metal.emit.helpers import NARROW, helper
from tile_metal.emulation import dialect_of

BY_NAME = {row.name: row for row in ROWS}

#: 2 threadgroups of 2 simdgroups, in which everything that is counted occurs a number of times of its own.
EVERYTHING = """\
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

[[kernel, max_total_threads_per_threadgroup(64)]] void everything(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {
  alignas(16) threadgroup uchar smem[1024];
  threadgroup float* const tile = (threadgroup float*)smem;
  const uint tid = thread_position_in_threadgroup.x;
  *(threadgroup float4*)&tile[tid * 4] = *(device const float4*)&x[tid * 4];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<float, 8, 8> a, b, c;
  simdgroup_load(a, tile, 8);
  simdgroup_load(b, tile + 64, 8);
  c.thread_elements()[0] = 0.0f;
  c.thread_elements()[1] = 0.0f;
  for (int i = 0; i < 5; ++i) {
    simdgroup_multiply_accumulate(c, a, b, c);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_store(c, tile + tid / 32 * 64, 8);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = simd_sum(tile[tid]);
  for (int i = 0; i < 2; ++i) {
    sum += simd_shuffle_xor(sum, (ushort)1);
  }
  y[threadgroup_position_in_grid.x * 64 + tid] = sum;
}
"""


def counted(text: str) -> Counts:
    params = tuple(
        ParamFact(name, "pointer", "float32", use, align=16) for name, use in (("x", "read"), ("y", "write"))
    )
    facts = LaunchFacts(entry="everything", params=params, grid=(2, 1, 1), block=(64, 1, 1), shared_bytes=1024)
    x = np.random.default_rng().standard_normal(256).astype("float32")
    result = tile_emulator.run(text, facts, {"x": x, "y": np.full(128, np.nan, "float32")}, dialect_of())
    assert result.ok, result.reports
    kernel = KernelText(text, facts)
    return counts_of(kernel, result)


def test_what_is_counted():
    """All of it is known beforehand: 4 simdgroups, 128 threads."""
    counts = counted(EVERYTHING)
    assert dataclasses.replace(counts, registers=None, arithmetic=None) == Counts(
        products=4 * 5, fragment_loads=4 * 2, fragment_stores=4, exchanges=4 * 3,
        device_read=128 * 16, device_written=128 * 4, threadgroup_bytes=1024,
        threadgroup_read=4 * 2 * 256 + 128 * 4, threadgroup_written=128 * 16 + 4 * 256,
        barriers=2 * 3, registers=None, arithmetic=None,
    )  # fmt: skip


def test_what_is_beyond():
    few, many = (Counts(*[n] * len(dataclasses.fields(Counts))) for n in (100, 106))
    assert few.beyond(many, 1.05) == {} == few.beyond(few, 1.05)
    assert many.beyond(few, 1.05) == {field.name: (106, 100) for field in dataclasses.fields(Counts)}
    unknown = dataclasses.replace(many, registers=None)
    assert "registers" not in unknown.beyond(few, 1.05)


def needs(live: int) -> str:
    """Return a text with the given number of values alive at once."""
    return f"""\
#include <metal_stdlib>
using namespace metal;
[[kernel]] void hold(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]]
) {{
  float held[{live}];
#pragma clang loop unroll(full)
  for (int i = 0; i < {live}; ++i) {{
    held[i] = x[thread_position_in_threadgroup.x * 512 + i];
  }}
  threadgroup_barrier(mem_flags::mem_device);
#pragma clang loop unroll(full)
  for (int i = 0; i < {live}; ++i) {{
    y[thread_position_in_threadgroup.x * 512 + i] = held[i];
  }}
}}
"""


@pytest.mark.sweep(2)
@pytest.mark.skipif(clang() is None, reason="registers are estimated by clang")
def test_registers_are_those_that_are_alive():
    for live in (4, 50, 120):
        assert live <= estimate(needs(live)) <= live + 24
    assert estimate(needs(400)) >= 400


@pytest.mark.skipif(clang() is None, reason="registers are estimated by clang")
def test_loads_that_could_be_prefetched_take_no_registers():
    """Registers hold 4 accumulators, 16 values and codes of a row.

    The scheduler of the GPU that is modelled takes 197.
    """
    text = text_for(fp8_vector_case(block_K=512), make_context("metal:metal3"))
    assert 4 + 16 + 4 <= estimate(text.text) <= 48


@pytest.mark.sweep(3)
@pytest.mark.skipif(clang() is None, reason="clang compiles the texts")
@pytest.mark.parametrize("name", [f"{way}_{n}" for n in NARROW for way in ("decode", "encode")])
def test_conversions_of_small_floats_do_not_branch(name):
    """Of each of many numbers that a thread converts, in an unrolled loop."""
    source, result = ("uchar", "float") if name.startswith("decode") else ("float", "uchar")
    text = needs(32).replace("float held", f"{result} held").replace("const float* x", f"const {source}* x")
    text = text.replace("float* y", f"{result}* y").replace("= x[", f"= {name}(x[").replace("+ i];", "+ i]);", 1)
    head, kernel = text.split("[[kernel]]")
    assert "cbranch" not in assembly(f"{head}{helper(name).text}\n[[kernel]]{kernel}")


@pytest.mark.skipif(clang() is None, reason="registers are estimated by clang")
def test_registers_of_a_text_with_unknown_parts_are_not_estimated():
    with pytest.raises(NoEstimate, match=r"nextafter2|undeclared"):
        estimate(needs(4).replace("= held[i]", "= nextafter2(held[i])"))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", BY_NAME)
def test_references_are_known_good(name):
    """Reference texts follow Apple's compiler rules, and their registers can be estimated."""
    reference = BY_NAME[name].reference.text
    assert lint(reference) == ()
    if clang() is not None:
        assert estimate(reference) <= 128


_CHECKED = {"exchanges": (16, 0)}
#: Each simdgroup checks once whether all of its lanes hold the assumed elements; a hand-written text does not. One
#: query: the program finds all scores, then their maximum, then the result on matrices, of whose 8 rows one is used.
ASKED = {
    "gemm float16, metal4": _CHECKED, "gemm float16, B as (N, K), metal4": _CHECKED,
    "attention, one query, 64 deep": {"products": (512, 0), "threadgroup_read": (163840, 16384), "barriers": (8, 2)},
}  # fmt: skip

#: Estimates beyond those by hand, for the reasons that the page of counts states.
MORE = {
    "arithmetic": {
        "gemm float16": 1.15, "gemm float16, 3 stages": 1.15, "gemm bfloat16": 1.2, "gemm float32": 1.55,
        "gemm float16, B as (N, K)": 1.15, "gemm bfloat16, B as (N, K)": 1.2,
        "vector x int4": 1.1, "vector x uint4": 1.25, "vector x int8": 1.2, "vector x float8_e4m3fn": 1.15,
        "attention, 64 deep": 1.4, "attention, 128 deep": 1.35, "sum of rows": 1.4, "softmax of rows": 2.3,
        "gemm float16, metal4": 3.0, "gemm float16, B as (N, K), metal4": 3.0, "gemm float8_e4m3fn": 1.1,
    },
    "registers": {
        "gemm float8_e4m3fn": 1.15, "gemm float16 x int4": 1.45,
        "attention, one query, 64 deep": 1.7,
    },
}  # fmt: skip


@pytest.mark.sweep(10)
@pytest.mark.parametrize("name", BY_NAME)
def test_no_more_than_by_hand(name):
    own, reference = BY_NAME[name].measured()
    for estimated, most in MORE.items():
        counted, by_hand = (getattr(counts, estimated) for counts in (own, reference))
        assert counted is None or by_hand is None or counted <= most.get(name, MOST) * by_hand
    unknown = dict.fromkeys(MORE)
    own, reference = (dataclasses.replace(counts, **unknown) for counts in (own, reference))
    assert own.beyond(reference, MOST) == ASKED.get(name, {})


@pytest.mark.skipif(clang() is None, reason="clang compiles the texts")
def test_arithmetic_is_counted_for_all_iterations():
    """A product and an addition for each value that is held, and none for what is only moved."""
    few, many = (arithmetic(needs(n).replace("= held[i];", "= held[i] * held[i] + 3.0f;")) for n in (4, 54))
    assert 100 <= many - few <= 110
