# ruff: noqa: E501 - texts of kernels
"""Whole kernels: right in every order, and one wrong line in them is caught."""

from dataclasses import dataclass

import numpy as np
import pytest

from . import kernels
from .launches import kinds, report_text, run

pytestmark = pytest.mark.sweep(4)

ORDERS = [("early", "forward"), ("late", "forward"), ("late", "random"), ("early", "reverse")]


@pytest.mark.parametrize("make", [kernels.gemm, kernels.sparse])
@pytest.mark.parametrize(("completion", "order"), ORDERS)
def test_is_right(make, completion, order):
    text, args, how, expected = make(np.random.default_rng(11))
    result = run(text, args, completion=completion, order=order, **how)
    assert result.ok, report_text(result)
    np.testing.assert_allclose(result.outputs["out"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [16, 32, 48, 160])
def test_pipelines_of_few_steps(k):
    text, args, how, expected = kernels.gemm(np.random.default_rng(k), m=1 if k == 16 else 31, k=k)
    result = run(text, args, completion="late", order="random", **how)
    assert result.ok, report_text(result)
    np.testing.assert_allclose(result.outputs["out"], expected, rtol=1e-4, atol=1e-4)


@dataclass(frozen=True)
class Fault:
    """A kernel with ``old`` replaced; one of ``found`` is reported, none: wrong results."""

    name: str
    make: object
    old: str
    new: str
    found: tuple[str, ...] = ()
    completion: str = "late"
    words: str = ""


G, S = kernels.gemm, kernels.sparse
FAULTS = [
    Fault("one group too many stays pending", G, "wait_group 1;", "wait_group 2;", ("race", "uninitialised")),
    Fault("refill of the stage in use", G, "stage = next % 3", "stage = s % 3", ("race",), "early"),
    Fault("two stages for three", G, "stage = next % 3", "stage = next % 2", ("race",), "early"),
    Fault("no barrier in the loop", G, "    __syncthreads();\n", "", ("race",), "early"),
    Fault("no commit in the loop", G, "    cp_async_commit();\n    unsigned", "    unsigned", ("race", "uninitialised")),
    Fault("copies to addresses of 8 bytes", G, "A_s + s * 768 + t / 2 * 24", "A_s + s * 768 + 4 + t / 2 * 24", ("misaligned",)),
    Fault("more bytes than the copy has", G, "row + t / 2 < m ? 16 : 0);\n      if (t < 32) cp_async_16(B_s + s",
          "row + t / 2 < m ? 24 : 0);\n      if (t < 32) cp_async_16(B_s + s", ("async",), words="takes 24"),
    Fault("rows behind the last one", G, "min(row + t / 2, m - 1) * k + next * 16 + t % 2 * 8, row + t / 2 < m ? 16 : 0)",
          "(row + t / 2) * k + next * 16 + t % 2 * 8, 16)", ("bounds",)),
    Fault("rows of a matrix at odd addresses", G, "(warp * 16 + lane % 16) * 24", "(warp * 16 + lane % 16) * 24 + 4",
          ("misaligned",)),
    Fault("operands of the product swapped", G, '"r"(a[0]), "r"(a[1])', '"r"(a[1]), "r"(a[0])'),
    Fault("a matrix that is not transposed", G, "m8n8.x2.trans", "m8n8.x2"),
    Fault("a product in a branch", G, "mma(c[j], a, b, c[j]);", "if (lane < 31) mma(c[j], a, b, c[j]);", ("deadlock",)),
    Fault("no guard of the last rows", G, "if (r < m) *(float2*)", "*(float2*)", ("bounds",)),
    Fault("metadata of the rows swapped", S, "e[0] | (unsigned)e[8 * (k / 16)] << 16", "e[8 * (k / 16)] | (unsigned)e[0] << 16"),
    Fault("metadata of the other half of K", S, "s / 16 + q", "s / 16 + 1 - q"),
    Fault("metadata that is no metadata", S, "mma_sp(c[j], a, b, c[j], meta)", "mma_sp(c[j], a, b, c[j], meta & 0xfffffff0u)",
          ("metadata",), words="must increase"),
    Fault("a selector that does not exist", S, "%16, 0x0;", "%16, 0x2;", ("selector",)),
    Fault("a selector of lanes with the same metadata's other half", S, "q = lane % 2", "q = lane / 2 % 2"),
    Fault("no barrier before staging", S, "s += 32) {\n    __syncthreads();", "s += 32) {", ("race",), "early"),
    Fault("no barrier after staging", S, "    __syncthreads();\n    unsigned", "    unsigned", ("race",), "early"),
    Fault("halves of B swapped", S, "ldmatrix_x2_trans(b + 2, B_s + (16 + lane % 16)", "ldmatrix_x2_trans(b + 2, B_s + (lane % 16)"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_a_fault_is_caught(fault):
    text, args, how, expected = fault.make(np.random.default_rng(7))
    assert fault.old in text
    result = run(text.replace(fault.old, fault.new), args, completion=fault.completion, **how)
    if fault.found:
        assert kinds(result) & set(fault.found), report_text(result) or "nothing was reported"
        assert fault.words in report_text(result)
    else:
        assert not result.ok or not np.allclose(result.outputs["out"], expected, rtol=1e-3, atol=1e-3)
