"""Launches in clusters: blocks use ranks and cluster barriers beside work of their own."""

from __future__ import annotations

import functools
from math import prod

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import EXACT, Data, Launch, Part, Unit, output, tensor
from tile_core.testing.data import Array
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_TYPES = ("int32", "float32", "float16", "int64")


@st.composite
def clusters(draw: Draw) -> Unit:
    """Draw a launch: its grid, clusters, rasterization and cluster barriers."""
    dims = draw(st.sampled_from(((1,), (2,), (4,), (8,), (3,), (2, 2), (1, 2), (2, 1), (3, 2), (1, 4), (2, 2, 2))))
    grid = tuple(n * draw(st.integers(1, 3)) for n in dims)
    axes = ("bx", "by", "bz")[: len(grid)]
    rows, cols = draw(st.sampled_from((1, 3, 8))), draw(st.sampled_from((5, 16, 33)))
    dtype, iterations = draw(st.sampled_from(_TYPES)), draw(st.integers(0, 3))
    number = axes[0]
    for axis, extent in zip(axes[1:], grid[1:], strict=True):
        number = f"({number}) * {extent} + {axis}"
    meets = draw(st.sampled_from(("T.cluster_sync()", "T.cluster_arrive()", "T.cluster_arrive_relaxed()", "pass")))
    ends = "T.cluster_wait()" if "arrive" in meets else "pass"
    value = draw(st.sampled_from(("T.block_rank_in_cluster()", "k", "T.cluster_size() - 1", "1")))
    work = f"for i, j in T.Parallel({rows}, {cols}):\n        s[i, j] = s[i, j] + {value}"
    swizzle = f"T.use_swizzle({draw(st.integers(1, 4))})\n" if len(grid) > 1 and draw(st.booleans()) else ""
    whole = draw(st.booleans())
    condition = f"{axes[0]} // {dims[0]} == 0"
    last = f"if {condition}:\n    T.cluster_sync()\n" if whole else ""
    body = f"""\
{swizzle}number = {number}
s = T.alloc_shared(({rows}, {cols}), "{dtype}")
T.copy(A[number * {rows}, 0], s)
for k in range({iterations}):
    {meets}
    {work}
    {ends}
{last}T.copy(s, B[number * {rows}, 0])"""
    shape = (prod(grid) * rows, cols)
    params = [tensor("A", dtype, *shape), output("B", dtype, *shape)]
    data = {"A": randoms(draw, shape, dtype), "B": randoms(draw, shape, dtype)}
    return themed(
        "clusters", draw, params, body, {"": data}, grid=", ".join(map(str, grid)),
        axes=f"({', '.join(axes)})" if len(axes) > 1 else "bx",
        threads=draw(st.sampled_from((1, 32, 96))), needs=frozenset({"name:ClusterKernel"}),
        optional="clusters of blocks", cluster=str(dims),
    )  # fmt: skip


#: To which block each one hands its tile, as text and as a function of its rank and the blocks of a cluster.
_WAYS = {
    "(rank + 1) % {n}": lambda r, n: (r + 1) % n,
    "(rank + {n} - 1) % {n}": lambda r, n: (r + n - 1) % n,
    "{n} - 1 - rank": lambda r, n: n - 1 - r,
    "(rank + k) % {n}": None,  # another block in each iteration
}


@st.composite
def exchanges(draw: Draw) -> Unit:
    """Draw clusters whose blocks exchange tiles or parts, and accumulate the received ones."""
    blocks = draw(st.sampled_from((1, 2, 2, 3, 4, 8)))
    clusters, iterations = draw(st.integers(1, 2)), draw(st.integers(0, 3))
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "int64")))
    counted = draw(st.booleans())
    width = 16 // np.dtype(dtype).itemsize
    rows = draw(st.sampled_from((1, 3, 4)))
    cols = width * draw(st.integers(2, 5)) if counted else draw(st.sampled_from((5, 8, 13)))
    step = width if counted else 1
    low, high = draw(st.integers(0, rows - 1)), rows
    first = step * draw(st.integers(0, cols // step - 1))
    way = draw(st.sampled_from(tuple(_WAYS)))
    part = f"[{low}:{high}, {first}:{cols}]"
    waits = "T.barrier_wait(got, k % 2)\n    T.cluster_sync()" if counted else "T.cluster_sync()"
    body = f"""\
rank = T.block_rank_in_cluster()
s = T.alloc_shared(({rows}, {cols}), "{dtype}")
r = T.alloc_shared(({rows}, {cols}), "{dtype}")
{"got = T.alloc_cluster_barrier(1)" if counted else "pass"}
T.copy(A[bx * {rows}, 0], s)
T.clear(r)
T.cluster_sync()
for k in range({iterations}):
    T.copy_cluster(s{part}, r{part}, dst_block={way.format(n=blocks)}{", remote_barrier=got" if counted else ""})
    {waits}
    for i, j in T.Parallel({rows}, {cols}):
        s[i, j] = s[i, j] + r[i, j]
    T.cluster_sync()
T.copy(s, B[bx * {rows}, 0])"""

    def want(d: Data) -> Array:
        s = np.asarray(d["A"]).reshape(-1, rows, cols).astype("float64")
        r = np.zeros_like(s)
        for k in range(iterations):
            for b in range(len(s)):
                at, chosen = b % blocks, _WAYS[way]
                to = (at + k) % blocks if chosen is None else chosen(at, blocks)
                r[b - at + to, low:high, first:] = s[b, low:high, first:]
            s = s + r
        return s.reshape(-1, cols)

    shape = (clusters * blocks * rows, cols)
    made = randoms(draw, shape, dtype)
    name = f"exchanges-{draw(st.integers(0, 10**6))}"
    params = (tensor("A", dtype, *shape), output("B", dtype, *shape))
    return Unit(
        "fuzz", name, params, "", {"": Part((), body, want, EXACT)},
        {"": Launch(functools.partial(_given, made))}, grid=str(clusters * blocks), axes="bx",
        threads=draw(st.sampled_from((1, 32, 96))), needs=frozenset({"name:copy_cluster", "clusters"}),
        optional="clusters of blocks", cluster=str(blocks),
    )  # fmt: skip


def _given(a: Array, rng: np.random.Generator) -> Data:
    return {"A": a.copy()}
