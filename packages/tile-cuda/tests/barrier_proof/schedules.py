"""Kernels of schedules that no zoo has: overlapped products, roles in clusters, run-time trip counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from zoo.case import Case, Wanted
from zoo.suite import Zoo
from zoo.table import F16, NT, Entry, gemm

import tile_core.language as T

from ..ops.test_loops_in_conditions import grouped
from ..ops.test_overlap import attention
from ..zoo.launch import CUDA
from ..zoo.persistent import PERSISTENT

HOPPER, BLACKWELL = "cuda:sm_90a", "cuda:sm_100a"
WGMMA: dict[str, object] = {"wgmma": "always", "numerics": "fast"}
OVERLAP: dict[str, object] = {**WGMMA, "overlap": "always", "tma": "always", "persistent": "never"}
#: Without a staged epilogue: the proof does not follow elements of buffers that are not slots of a loop.
GROUPS: dict[str, object] = {"tma": "never", "epilogue": "never"}
CLUSTER: dict[str, object] = {**WGMMA, "persistent": 4, "clusters": 2}


def kernel_of(entry: Entry, options: dict[str, object], target: str = HOPPER) -> tuple[Zoo, str, str]:
    """Return a zoo of one kernel, with name and target."""
    facts: dict[str, Any] = {"barrier": "", "needless": {}, "golden": CUDA.golden, "suffix": "", "kept": ()}
    of = PERSISTENT
    return Zoo((entry,), (target,), of.dialect, of.orders, (), options=options, **facts), entry.name, target


def attention_case(keys: int, **how: Any) -> Case:
    """Return attention over a number of keys that the program does not know."""
    rows = how["threads"] // 2
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((n, 64)).astype("float16") for n in (rows, keys, keys))
    q /= np.float16(8)
    scores = q.astype("float64") @ k.astype("float64").T
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    bound = weights @ np.abs(v.astype("float64")) + 1e-3
    r, total = np.zeros((rows, 64), "float32"), np.zeros(rows, "float32")
    wanted = Wanted(3, weights @ v.astype("float64"), 2.0**-9, bound), Wanted(4, weights.sum(1), 1e-3)
    return Case(attention(T.dynamic("keys"), **how), (q, k, v, r, total), wanted)


def grouped_case(ends: tuple[int, ...], steps: tuple[int, ...]) -> Case:
    """Return grouped products, whose trip counts are data."""
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-3, 4, shape).astype("float16") for shape in ((300, 128), (4, 136, 128)))
    y = np.zeros((300, 136), "float32")
    wanted, begin = np.zeros_like(y), 0
    for g, end in enumerate(ends):
        to = max(0, min(128, steps[g] * 32))
        wanted[begin:end] = x[begin:end, :to].astype("float32") @ w[g].astype("float32").T[:to]
        begin = end
    args = x, w, np.array(ends, "int32"), np.array(steps, "int32"), y
    return Case(grouped(k=128, bound=True), args, (Wanted(4, wanted, 1e-6),))


def two_loops_case(m: int, n: int, k: int, more: int) -> Case:
    """Return the sum of two products, each with a loop of its own; the second trip count is a parameter."""
    block = 64, 64, 32

    @T.prim_func
    def two_loops(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), D: T.Tensor((m, T.dynamic("more")), "float16"),
        E: T.Tensor((n, T.dynamic("more")), "float16"), C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, block[1]), T.ceildiv(m, block[0]), threads=128) as (bx, by):
            a, b = (T.alloc_shared((64, block[2]), "float16") for _ in range(2))
            d, e = (T.alloc_shared((64, block[2]), "float16") for _ in range(2))
            c = T.alloc_fragment((block[0], block[1]), "float32")
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, block[2]), num_stages=3):
                T.copy(A[by * block[0], i * block[2]], a)
                T.copy(B[bx * block[1], i * block[2]], b)
                T.gemm(a, b, c, transpose_B=True)
            for i in T.Pipelined(T.ceildiv(T.dynamic("more"), block[2]), num_stages=2):
                T.copy(D[by * block[0], i * block[2]], d)
                T.copy(E[bx * block[1], i * block[2]], e)
                T.gemm(d, e, c, transpose_B=True)
            T.copy(c, C[by * block[0], bx * block[1]])

    rng = np.random.default_rng(3)
    a, b, d, e = (rng.integers(-3, 4, s).astype("float16") for s in ((m, k), (n, k), (m, more), (n, more)))
    wanted = a.astype("float32") @ b.astype("float32").T + d.astype("float32") @ e.astype("float32").T
    return Case(two_loops, (a, b, d, e, np.zeros((m, n), "float32")), (Wanted(4, wanted, 1e-6),))


_TWO = Entry("two_loops", lambda: two_loops_case(72, 64, 160, 96))
_TILES = gemm("f16_tiles", 200, 128, 160, F16, block=(64, 64, 32), stages=3, trans=NT)

#: By schedule.
SCHEDULES: dict[str, tuple[Zoo, str, str]] = {
    "overlap, run-time trips": kernel_of(
        Entry("attention", lambda: attention_case(77, threads=128, stages=3)), OVERLAP
    ),
    "overlap, cp.async": kernel_of(
        Entry("attention", lambda: attention_case(77, threads=256)), {**OVERLAP, **GROUPS}
    ),
    "ping-pong": kernel_of(Entry("attention", lambda: attention_case(77, threads=256)), OVERLAP),
    "ping-pong, producer warp": kernel_of(
        Entry("attention", lambda: attention_case(77, threads=256)), {**OVERLAP, "persistent": "always"}
    ),
    "trip counts that are data": kernel_of(
        Entry("grouped", lambda: grouped_case((97, 97, 130, 300), (3, 0, 1, 2))), {**WGMMA, "persistent": 3}
    ),
    "two loops": kernel_of(_TWO, {**WGMMA, "tma": "always", "persistent": "never"}),
    "two loops, cp.async": kernel_of(_TWO, {**WGMMA, **GROUPS}),
    "two loops, mma.sync": kernel_of(_TWO, {}, "cuda:sm_80"),
    "multicast, producer warp": kernel_of(_TILES, CLUSTER),
    "multicast, MMA warp": kernel_of(
        gemm("f16_tiles", 768, 128, 160, F16, block=(128, 64, 32), stages=3, trans=NT),
        {"tcgen05": "always", "persistent": 4, "clusters": 2},
        BLACKWELL,
    ),
}  # fmt: skip
