"""Prefetches in the loops of a block: lines of the tensors, and of the tiles that are accessed next."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.cpu import pipeline
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role, substitute


def normalized(count: int, size: int, dtype: str = "float32"):
    """Return a program of three loops for each row."""

    @T.prim_func
    def main(X: T.Tensor((count, size), dtype), Y: T.Tensor((count, size), dtype)):
        with T.Kernel(count, threads=64) as r:
            x = T.alloc_fragment((size,), "float32")
            top = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[r, :], x)
            T.reduce_max(x, top, dim=0)
            x[...] = T.exp(x - top[0])
            T.reduce_sum(x, total, dim=0)
            x[...] = x / total[0]
            T.copy(x, Y[r, :])

    return main


def prefetched(monkeypatch, program):
    """Return the prefetches of each block: the tensor, whether it is written, and the indices."""
    seen = []

    def kept(body, bits):
        seen.append(original(body, bits))
        return seen[-1]

    original = pipeline.prefetch_tiles
    monkeypatch.setattr(pipeline, "prefetch_tiles", kept)
    with tile.disable_cache():
        tile.compile(program, "cpu")
    grid = next(s for s in collect(seen[0], tirx.For) if role(s) == "grid")
    return {
        block: list(_executed(grid.body, {grid.loop_var: nodes.int_const(block)})) for block in range(int(grid.extent))
    }


def _executed(s, values):
    """Yield the prefetches of a statement in order."""
    if isinstance(s, tirx.SeqStmt):
        for part in s.seq:
            if isinstance(part, tirx.Bind):
                values = {**values, part.var: substitute(part.value, values)}
            yield from _executed(part, values)
    elif isinstance(s, tirx.For) and collect(s, tirx.Evaluate):
        for i in range(int(s.extent)):
            yield from _executed(s.body, {**values, s.loop_var: nodes.int_const(i, nodes.dtype_of(s.loop_var))})
    elif isinstance(s, tirx.Evaluate):
        address, writes, *_ = s.value.args
        load = address.args[0]
        indices = [int(Analyzer().simplify(substitute(i, values))) for i in load.indices]
        yield str(load.source.name), bool(int(writes)), tuple(indices)


@pytest.mark.parametrize(
    ("size", "dtype"), [(1024, "float32"), (1000, "float32"), (1031, "bfloat16"), (4096, "float16")]
)
def test_each_line_of_the_next_tiles_is_fetched(monkeypatch, size, dtype):
    blocks, line = 3, 64 // np.dtype(T.dtype(dtype).numpy()).itemsize
    found = prefetched(monkeypatch, normalized(blocks, size, dtype))
    for block, fetches in found.items():
        following = min(block + 1, blocks - 1)
        columns = set(range(0, size // 64 * 64, line))  # the rest is a loop of its own
        assert all(0 <= row < blocks and 0 <= column < size for _, _, (row, column) in fetches)
        assert {at for name, writes, at in fetches if not writes} >= {(following, c) for c in columns}
        assert {at for name, writes, at in fetches if writes} >= {(block, c) for c in columns}
        assert {name for name, writes, _ in fetches} == {"X", "Y"}
        assert len(fetches) <= 3 * 2 * (len(columns) + 1)


def test_rows_of_a_tile_are_fetched(monkeypatch):
    @T.prim_func
    def main(X: T.Tensor((16, 1024), "float32"), Y: T.Tensor((16, 1024), "float32"), Z: T.Tensor((16,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            x = T.alloc_fragment((4, 1024), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            for i in T.serial(256):
                for j in T.Parallel(4):
                    x[j, i] = x[j, i + 256]
            T.copy(x, Y[bx * 4, 0])
            T.reduce_sum(x, total, dim=1)
            T.copy(total, Z[bx * 4])

    found = prefetched(monkeypatch, main)
    for block, fetches in found.items():
        assert {row for _, writes, (row, _) in fetches if writes} <= set(range(4 * block, 4 * block + 4))
        assert all(0 <= row < 16 and 0 <= column < 1024 for _, _, (row, column) in fetches)


def test_the_next_row_of_a_block_is_fetched(monkeypatch):
    @T.prim_func
    def main(X: T.Tensor((8, 1024), "float32"), Y: T.Tensor((8, 1024), "float32")):
        with T.Kernel(2, threads=64) as bx:
            x = T.alloc_fragment((4, 1024), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_sum(x, total, dim=1)
            x[...] = x / total[:, None]
            T.copy(x, Y[bx * 4, 0])

    for block, fetches in prefetched(monkeypatch, main).items():
        rows = range(4 * block, 4 * block + 4)
        assert {at for _, writes, at in fetches if writes} >= {(r, c) for r in rows for c in range(0, 1024, 16)}
        assert {at for _, writes, at in fetches if not writes} >= {(r, c) for r in rows[1:] for c in range(0, 1024, 16)}
        assert all(0 <= row < 8 and 0 <= column < 1024 for _, _, (row, column) in fetches)


@pytest.mark.parametrize("form", ["page", "guard", "little", "one loop"])
def test_tiles_that_are_not_known_stay(monkeypatch, form):
    @T.prim_func
    def main(X: T.Tensor((8, 1024), "float32"), P: T.Tensor((8,), "int32"), Y: T.Tensor((8, 1024), "float32")):
        with T.Kernel(8, threads=64) as r:
            x = T.alloc_fragment((1024,), "float32")
            total = T.alloc_fragment((1,), "float32")
            if form == "one loop":
                for j in T.Parallel(1024):
                    Y[r, j] = X[r, j] + 1
            elif form == "page":
                page = P[r]
                T.copy(X[page, :], x)
                T.reduce_sum(x, total, dim=0)
                Y[page, 0] = total[0]
            elif form == "guard":
                for j in T.Parallel(1024):
                    x[j] = T.if_then_else(j < P[0], X[r, j], 0.0)
                T.reduce_sum(x, total, dim=0)
                Y[r, 0] = total[0]
            else:
                T.copy(X[r, 0:16], x[0:16])
                T.reduce_sum(x[0:16], total, dim=0)
                Y[r, 0] = total[0]

    assert not list(itertools.chain(*prefetched(monkeypatch, main).values()))
