# ruff: noqa: E501 - texts of kernels
"""A whole kernel: right in every order, and one wrong line in it is caught."""

from dataclasses import dataclass

import numpy as np
import pytest
from metal_lint import lint
from metal_lint.clang import clcpp_findings

from . import kernels
from .launches import HEAD, kinds, report_text, run

pytestmark = pytest.mark.sweep(4)


def peaks(c):
    """The largest elements of the 16 x 16 parts, by threadgroup and simdgroup."""
    m, n = c.shape
    parts = np.abs(c).reshape(m // 32, 2, 16, n // 32, 2, 16).max(axis=(2, 5))
    return parts.transpose(0, 2, 1, 3).ravel()


def is_right(result, expected):
    close = np.allclose(result.outputs["C"], expected, rtol=1e-5, atol=1e-4)
    return close and np.allclose(result.outputs["peak"], peaks(expected), rtol=1e-5)


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_is_right(order):
    args, how, expected = kernels.gemm(np.random.default_rng(11))
    result = run(kernels.GEMM, args, order=order, **how)
    assert result.ok, report_text(result)
    assert is_right(result, expected)


def test_has_no_findings():
    assert lint(HEAD + kernels.GEMM) == ()
    assert clcpp_findings(HEAD + kernels.GEMM) == ()  # where there is a clang


@dataclass(frozen=True)
class Fault:
    """A kernel with ``old`` replaced, and the kinds of reports expected.

    One of ``found`` must be reported; without any, results are wrong.
    """

    name: str
    old: str
    new: str
    found: tuple[str, ...] = ()


AFTER = "stage_b(B_s, B + at * n + column, n, t);\n    threadgroup_barrier(mem_flags::mem_threadgroup);"
STAGED = AFTER.split("\n")[0] + "\n"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
FAULTS = [
    Fault("no barrier before staging", f"    {BARRIER}\n    stage_a", "    stage_a", ("race",)),
    Fault("no barrier after staging", AFTER, STAGED, ("race", "uninitialised")),
    Fault("a barrier of simdgroups only", AFTER, STAGED + BARRIER.replace("threadgroup_b", "simdgroup_b"), ("race", "uninitialised")),
    Fault("a barrier that orders nothing", AFTER, AFTER.replace("mem_flags::mem_threadgroup", "mem_flags::mem_none"), ("race",)),
    Fault("a barrier of device memory", AFTER, AFTER.replace("mem_flags::mem_threadgroup", "mem_flags::mem_device"), ("barrier",)),
    Fault("a barrier in one branch", AFTER, f"{STAGED}if (t < 64) {BARRIER}", ("deadlock", "divergence")),
    Fault("barriers in both branches of a line", AFTER, f"{STAGED}if (t < 64) {BARRIER} else {BARRIER}", ("divergence",)),
    Fault("barriers in both branches", AFTER, f"{STAGED}if (t < 64) {BARRIER}\nelse {BARRIER}", ("divergence",)),
    Fault("half of the threads return", "  simdgroup_matrix<float, 8, 8> acc", "  if (t >= 64) return;\n  simdgroup_matrix<float, 8, 8> acc",
          ("deadlock", "uninitialised")),
    Fault("a reduction in a branch", "most = simd_max(most);", "if (lane < 16) most = simd_max(most);", ("deadlock",)),
    Fault("a product in a branch", "simdgroup_multiply_accumulate(", "if (lane > 0) simdgroup_multiply_accumulate(", ("deadlock",)),
    Fault("rows behind A", "row = t >> 2, column = (t & 3) * 4", "row = t, column = (t & 3) * 4", ("bounds",)),
    Fault("rows behind the slab", "(smem + 1536)", "(smem + 1584)", ("bounds",)),
    Fault("a part of B that is not staged", "for (int i = 0; i < 4; ++i) {\n    to", "for (int i = 0; i < 3; ++i) {\n    to", ("uninitialised",)),
    Fault("threadgroups that overlap in C", "C + (row + wm", "C + (wm", ("race",)),
    Fault("a write to an input", "  const int row = t >> 3", "  ((device uchar*)from)[0] = 0;\n  const int row = t >> 3", ("read-only",)),
    Fault("stores to addresses of 4 bytes", "&to[row * LDA + column]", "&to[row * LDA + column + 2]", ("misaligned",)),
    Fault("threads that write one peak", "* 4 + warp", "* 4", ("race",)),
    Fault("the wrong half of K", "LDA + step, LDA", "LDA + (step ^ 8), LDA"),
    Fault("a matrix that is transposed", "ulong2(0, 0), false", "ulong2(0, 0), true"),
    Fault("operands swapped", "a[i], b[j], acc[i][j]);", "b[j], a[i], acc[i][j]);"),
    Fault("another pitch", "+ step, LDA);", "+ step, TK);"),
    Fault("codes decoded with another bias", "* 256.0h", "* 128.0h"),
    Fault("the accumulation of one step only", "    for (int step = 0", "    if (at < TK) for (int step = 0"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_a_fault_is_caught(fault):
    args, how, expected = kernels.gemm(np.random.default_rng(7), n=64, k=32)
    assert fault.old in kernels.GEMM
    result = run(kernels.GEMM.replace(fault.old, fault.new), args, **how)
    if fault.found:
        assert kinds(result) & set(fault.found), report_text(result) or "nothing was reported"
    else:
        assert not result.ok or not is_right(result, expected)
