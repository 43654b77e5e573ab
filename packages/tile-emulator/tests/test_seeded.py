"""One wrong line in a correct kernel: every such fault is caught and located."""

from dataclasses import dataclass

import numpy as np
import pytest

from . import kernels
from .dialects.mini import kinds, run

pytestmark = pytest.mark.sweep(2)


@dataclass(frozen=True)
class Bug:
    """A kernel with ``old`` replaced by ``new``.

    One of the kinds of reports in ``found`` must occur; without any, results must be wrong. ``line`` is part of the
    line that a report must be about.
    """

    name: str
    make: object
    old: str
    new: str
    found: tuple[str, ...]
    line: str = ""
    completion: str = "early"
    every: bool = True  # whatever the completion


T, G, P, R = kernels.transpose, kernels.gemm, kernels.pipeline, kernels.reduce

BUGS = [
    Bug("no barrier after staging", T, "  __syncthreads();\n", "\n", ("race",), "s["),
    Bug("a barrier for half of the block", T, "__syncthreads();", "if (threadIdx.x < 32) __syncthreads();",
        ("deadlock",)),
    Bug("barriers in two branches", T, "  __syncthreads();",
        "  if (threadIdx.x < 32) {__syncthreads();}\nelse {__syncthreads();}", ("divergence",)),
    Bug("barriers in two branches of a line", T, "  __syncthreads();",
        "  if (threadIdx.x < 32) {__syncthreads();} else {__syncthreads();}", ("divergence",)),
    Bug("return before the barrier", T, "  __syncthreads();", "  if (threadIdx.x > 60) return; __syncthreads();",
        ("deadlock",)),
    Bug("a warp's barrier instead of the block's", T, "__syncthreads();", "__syncwarp();", ("race",), "s["),
    Bug("no guard of rows at the load", T, "? a[row * n", "|| true ? a[row * n", ("bounds",), "a[row * n"),
    Bug("off by one at the load", T, "row < n && column < n ?", "row <= n && column < n ?", ("bounds",), "a[row * n"),
    Bug("off by one at the store", T, "if (row < n && column", "if (row <= n && column", ("bounds",), "out[row"),
    Bug("no guard of columns at the store", T, "if (row < n && column < n)", "if (row < n)", ("race", "bounds"),
        "out[row"),
    Bug("beyond the shared memory", T, "s[r * 17", "s[(r + 1) * 17", ("bounds", "uninitialised"), "s["),
    Bug("rows that are not staged", T, "r < 16; r += 4) {\n    int row = tile_row",
        "r < 12; r += 4) {\n    int row = tile_row",
        ("uninitialised",), "s["),
    Bug("blocks write the same tile", T, "column = tile_row + threadIdx.x % 16;\n    if",
        "column = threadIdx.x % 16;\n    if", ("race",), "out[row"),
    Bug("a write to an input", T, "s[threadIdx.x % 16 * 17 + r];", "((float*)a)[0] = 1;", ("read-only",),
        "((float*)a)"),
    Bug("an output that is read", T, "if (row < n && column < n) out[row * n + column] = ",
        "if (row < n && column < n) out[row * n + column] += ", ("uninitialised",), "out[row"),
    Bug("a wrong offset", T, "s[threadIdx.x % 16 * 17 + r]", "s[threadIdx.x % 16 * 17 + (r ^ 1)]", ()),
    Bug("one wait too few", G, "cp_async_wait(1)", "cp_async_wait(2)", ("race", "uninitialised"), "mma", "late"),
    Bug("no wait", G, "cp_async_wait(1);", "", ("race",), "mma"),
    Bug("an accumulator that is not set", G, "float c[4] = {0, 0, 0, 0};", "float c[4];",
        ("uninitialised",), "(float2*)to"),
    Bug("no barrier in the loop", G, "    __syncthreads();\n", "", ("race",)),
    Bug("refill of the stage in use", G, "int next = t + 2, slot = next % 3", "int next = t + 2, slot = t % 3",
        ("race",),
        "cp_async16"),
    Bug("two stages for three", G, "slot = next % 3", "slot = next % 2", ("race",)),
    Bug("a misaligned copy", G, "cp_async16(as + t * 128 + lane * 4", "cp_async16(as + 1 + t * 128 + lane * 4",
        ("misaligned",), "cp_async16(as + 1"),
    Bug("a misaligned vector store", G, "float* to = out +", "float* to = out + 1 +", ("misaligned",), "float2"),
    Bug("a matrix instruction in a branch", G, "    mma16n8k8", "    if (lane != 5) mma16n8k8", ("deadlock",)),
    Bug("operands in the wrong order", G, "ta[(row + 8) * 8 + column], ta[row * 8 + column + 4]",
        "ta[row * 8 + column + 4], ta[(row + 8) * 8 + column]", ()),
    Bug("copies that are never waited for", G, "  float* to = out", "  cp_async16(s, from); float* to = out",
        ("async",), "cp_async16(s,"),
    Bug("a step beyond K", G, "if (next < steps)", "if (next <= steps)", ("bounds",), "cp_async16"),
    Bug("too few bytes expected", P, "mbar_expect(full + t % 2 * 8, 384)", "mbar_expect(full + t % 2 * 8, 380)",
        ("deadlock",)),
    Bug("too many bytes expected", P, "mbar_expect(full + t % 2 * 8, 384)", "mbar_expect(full + t % 2 * 8, 388)",
        ("deadlock",)),
    Bug("stages are never freed", P, "      mbar_arrive(empty + t % 2 * 8);\n", "", ("deadlock",)),
    Bug("no wait for a free stage", P, "if (t >= 2) mbar_wait(empty + t % 2 * 8, t / 2 + 1);", "",
        ("race", "deadlock", "phase")),
    Bug("the wrong parity", P, "mbar_test(full + t % 2 * 8, t / 2)", "mbar_test(full + t % 2 * 8, t / 2 + 1)",
        ("race", "uninitialised"), "stage[", "late"),
    Bug("freed before it is read", P,
        "sum += stage[t % 2 * 96 + 95 - threadIdx.x];\n      mbar_arrive(empty + t % 2 * 8);",
        "mbar_arrive(empty + t % 2 * 8);\n      sum += stage[t % 2 * 96 + 95 - threadIdx.x];", ("race",)),
    Bug("freed twice", P, "mbar_arrive(empty + t % 2 * 8);",
        "mbar_arrive(empty + t % 2 * 8); mbar_arrive(empty + t % 2 * 8);",
        ("race", "phase", "deadlock")),
    Bug("no barrier after the initialisation", P, "  __syncthreads();\n", "\n", ("race", "phase")),
    Bug("a tile too many", P, "t < tiles; t++) {\n        if", "t < tiles + 1; t++) {\n        if", ("bounds",)),
    Bug("a sum without its barrier", R, "  __syncthreads();\n", "\n", ("race",), "part["),
    Bug("a shuffle that half of the warp runs", R, "v += __shfl", "if (threadIdx.x % 32 < 16) v += __shfl",
        ("deadlock",)),
    Bug("a shuffle of a lane outside of its mask", R, "0xffffffffu, v", "0xfffffffeu, v", ("collective",), "shfl"),
    Bug("beyond the array of parts", R, "part[threadIdx.x / 32] = v", "part[threadIdx.x / 32 + 1] = v",
        ("bounds", "uninitialised"), "part["),
    Bug("a sum without atomics", R, "atomicAdd(count, 1)", "*count += 1", ("race",), "*count"),
    Bug("all threads write one element", R, "if (threadIdx.x == 0) {\n    out", "{\n    out", ("race",),
        "out[blockIdx.x]"),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "_"))
def test_is_caught(bug):
    text, args, how, expected = bug.make(np.random.default_rng(7))
    assert bug.old in text
    text = text.replace(bug.old, bug.new)
    completions = ("early", "late") if bug.every and bug.completion == "early" else (bug.completion,)
    for completion in completions:
        result = run(text, args, completion=completion, **how)
        if not bug.found:
            assert result.ok
            assert any(not np.allclose(result.outputs[name], value, rtol=1e-4) for name, value in expected.items())
            continue
        assert set(kinds(result)) & set(bug.found), (completion, [str(r) for r in result.reports])
        if bug.line:
            locations = [r.location.text for r in result.reports] + [
                r.other.location.text for r in result.reports if r.other
            ]
            assert any(bug.line in location for location in locations), locations
