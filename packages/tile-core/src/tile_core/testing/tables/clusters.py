"""Launches in clusters: ranks, results, and rejection of barriers that not all blocks reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import Data, Unit, one, output, refused, tensor
from tile_core.testing.data import Array
from tile_core.testing.source import lines

#: Names that a package besides the core adds to ``T``.
NAMES = frozenset({"name:ClusterKernel"})
_OPTIONAL = "clusters of blocks"
#: Grids, blocks of a cluster along their axes, and the panel of an order of blocks, if any.
_LAUNCHES = (
    ((6,), (2,), 0), ((8,), (8,), 0), ((5, 4), (1, 2), 0), ((4, 6), (2, 3), 0), ((2, 4, 6), (2, 2, 2), 0),
    ((6, 10), (2, 1), 3), ((6, 10), (1, 2), 4), ((4, 4), (2, 2), 1),
)  # fmt: skip


_EXCHANGE = frozenset({"name:copy_cluster", "clusters"})
#: Blocks of a cluster, rows and columns of a tile, its type, and whether a barrier counts it.
_EXCHANGES = (
    (2, 4, 32, "float32", True), (4, 3, 8, "float16", True), (8, 1, 16, "uint8", True), (3, 2, 2, "int64", True),
    (2, 7, 13, "float32", False), (4, 1, 1, "float16", False), (3, 5, 3, "uint8", False), (8, 2, 3, "float64", False),
    (1, 4, 16, "float32", True), (1, 3, 5, "int8", False),
)  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    exchanges = [_exchanged(*given) for given in _EXCHANGES]
    return [*(_ranked(*launch) for launch in _LAUNCHES), _met(), *exchanges, _gathered(), *_refusals()]


def _ranked(grid: tuple[int, ...], dims: tuple[int, ...], panel: int) -> Unit:
    """Each block writes its numbers, its rank, and the size of its cluster."""
    axes = ("bx", "by", "bz")[: len(grid)]
    shape = (*grid, 1, 1)[:3]
    at = ", ".join((*axes, "0", "0")[:3])
    body = f"T.use_swizzle({panel})\n" if panel else ""
    body += f"B[{at}, 0] = T.block_rank_in_cluster()\nB[{at}, 1] = T.cluster_size() * 100 + {' + '.join(axes)}"

    def want(d: Data) -> Array:
        block = np.indices(shape)
        sizes = (*dims, 1, 1)[:3]
        rank = block[0] % sizes[0] + sizes[0] * (block[1] % sizes[1]) + sizes[0] * sizes[1] * (block[2] % sizes[2])
        return np.stack([rank, np.prod(dims) * 100 + block.sum(0)], -1).astype("int32")

    name = f"ranks-{'x'.join(map(str, grid))}-{'x'.join(map(str, dims))}{f'-panel-{panel}' if panel else ''}"
    return one(
        "launches", name, [output("B", "int32", *shape, 2)], body, want, {"": lambda rng: {}}, grid=_text(grid),
        axes=f"({', '.join(axes)})" if len(axes) > 1 else "bx", threads=32, needs=NAMES, optional=_OPTIONAL,
        cluster=str(dims),
    )  # fmt: skip


def _met() -> Unit:
    """Blocks that meet in a loop, with work between arrival and wait."""
    body = lines("""
        s = T.alloc_shared((64,), "float32")
        T.copy(A[bx * 64 : bx * 64 + 64], s)
        for k in range(3):
            T.cluster_arrive()
            for i in T.Parallel(64):
                s[i] = s[i] + k
            T.cluster_wait()
        if bx // 2 == 1:
            T.cluster_sync()
        T.copy(s, B[bx * 64 : bx * 64 + 64])
    """)
    params = [tensor("A", "float32", 256), output("B", "float32", 256)]
    data = {"": lambda rng: {"A": rng.integers(-9, 10, 256).astype("float32")}}
    return one(
        "launches", "clusters-meet", params, body, lambda d: d["A"] + 3, data, grid="4", threads=64, needs=NAMES,
        optional=_OPTIONAL, cluster="2",
    )  # fmt: skip


def _exchanged(blocks: int, rows: int, cols: int, dtype: str, counted: bool) -> Unit:
    """Blocks that hand their tiles on, around the cluster, and add what they get."""
    barrier = ", remote_barrier=got" if counted else ""
    body = lines(f"""
        s = T.alloc_shared(({rows}, {cols}), "{dtype}")
        r = T.alloc_shared(({rows}, {cols}), "{dtype}")
        got = T.alloc_cluster_barrier(1)
        T.copy(A[bx * {rows}, 0], s)
        for k in range(3):
            T.copy_cluster(s, r, dst_block=(T.block_rank_in_cluster() + 1) % {blocks}{barrier})
            {"T.barrier_wait(got, k % 2)" if counted else "pass"}
            T.cluster_sync()
            for i, j in T.Parallel({rows}, {cols}):
                s[i, j] = s[i, j] + r[i, j]
            T.cluster_sync()
        T.copy(s, B[bx * {rows}, 0])
    """)
    shape = (2 * blocks * rows, cols)

    def want(d: Data) -> Array:
        found = np.asarray(d["A"]).reshape(2, blocks, rows, cols)
        for _ in range(3):
            found = found + np.roll(found, 1, axis=1)
        return found.reshape(shape)

    name = f"exchange-{blocks}-{rows}x{cols}-{dtype}{'' if counted else '-stores'}"
    return one(
        "launches", name, [tensor("A", dtype, *shape), output("B", dtype, *shape)], body, want,
        {"": lambda rng: {"A": rng.integers(0, 9, shape).astype(dtype)}}, grid=str(2 * blocks), threads=64,
        needs=_EXCHANGE, optional=_OPTIONAL, cluster=str(blocks),
    )  # fmt: skip


def _gathered() -> Unit:
    """The first block of each cluster gets a part from every block, at one barrier."""
    body = lines("""
        s = T.alloc_shared((2, 8), "float32")
        r = T.alloc_shared((8, 8), "float32")
        got = T.alloc_cluster_barrier(4)
        rank = T.block_rank_in_cluster()
        T.copy(A[bx * 2, 0], s)
        T.copy_cluster(s, r[rank * 2 : rank * 2 + 2, :], dst_block=0, remote_barrier=got)
        if rank == 0:
            T.barrier_wait(got, 0)
            T.copy(r, B[bx * 2, 0])
    """)
    params = [tensor("A", "float32", 16, 8), output("B", "float32", 16, 8)]
    data = {"": lambda rng: {"A": rng.integers(-9, 10, (16, 8)).astype("float32")}}
    return one(
        "launches", "clusters-gather", params, body, lambda d: d["A"], data, grid="8", threads=32, needs=_EXCHANGE,
        optional=_OPTIONAL, cluster="4",
    )  # fmt: skip


def _refusals() -> list[Unit]:
    bodies = {
        "one-block": "if bx % 2 == 0:\n    T.cluster_sync()",
        "trips": "for k in range(bx):\n    T.cluster_sync()",
        "role": "with T.ws(0, size=32):\n    T.cluster_sync()",
        "parallel": "for i in T.Parallel(64):\n    T.cluster_sync()",
        "no-wait": "T.cluster_arrive()",
        "no-arrival": "T.cluster_wait()",
        "twice": "T.cluster_arrive()\nT.cluster_sync()",
    }
    how: dict[str, Any] = {"grid": "4", "threads": 64, "needs": NAMES}
    found = [
        refused("launches", f"illegal-cluster-{k}", body, "K234", **how, cluster="2") for k, body in bodies.items()
    ]
    sends = {
        "unwaited": "T.copy_cluster(s, r, dst_block=1, remote_barrier=got)\nT.copy(r, s)",
        "early": "T.clear(r)\nT.copy_cluster(s, r, dst_block=1)\nT.cluster_sync()",
        "relaxed": "T.copy_cluster(s, r, dst_block=1)\nT.cluster_arrive_relaxed()\nT.cluster_wait()\nT.copy(r, s)",
    }
    head = 's = T.alloc_shared((4, 8), "float32")\nr = T.alloc_shared((4, 8), "float32")\nT.clear(s)\n'
    head += "got = T.alloc_cluster_barrier(2)\n"
    for name, body in sends.items():
        asks: dict[str, Any] = {**how, "needs": _EXCHANGE}
        found.append(refused("launches", f"illegal-exchange-{name}", head + body, "K233", **asks, cluster="2"))
    for name, grid, dims in (("part", "5", "2"), ("axis", "4", "(2, 2)"), ("many", "16", "16"), ("none", "4", "0")):
        made = refused("launches", f"illegal-cluster-{name}", "pass", "K120", **{**how, "grid": grid}, cluster=dims)
        found.append(made)
    return found


def _text(grid: tuple[int, ...]) -> str:
    return ", ".join(map(str, grid))
