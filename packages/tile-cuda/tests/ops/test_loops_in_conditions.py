"""Pipelined loops inside of conditions and loops, with bounds that are data: roles, rejection reasons, results."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered as lowered_unit

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.lowering import UnprovenBarriers
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.simt.pipelining.iteration_counts import KeptCount
from tile_core.simt.pipelining.persistent_loop import PersistentLoop
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES

pytestmark = pytest.mark.sweep(6)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "numerics": "fast"}
PERSISTENT, BESIDE = {**ALWAYS, "persistent": 3}, {**ALWAYS, "persistent": "always"}
NUMPY = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}


def roles(source: str) -> str:
    """Return who copies: persistent blocks, a producer warp of each block, or all threads."""
    if "for (int turn = 0;" in source:
        return "persistent"
    return "producer" if "_free" in source else ""


def grouped(
    experts=4, n=136, k=96, rows=300, block=(64, 64, 32), *, stages=3, threads=128, dtype="float16", turned=True,
    bound=False, out="float32",
) -> Any:  # fmt: skip
    """Rows sorted by expert; the ends of the experts are data, and with ``bound`` the trip counts, too."""
    bm, bn, bk = block

    @T.prim_func
    def main(
        X: T.Tensor((rows, k), dtype),
        W: T.Tensor((experts, n, k) if turned else (experts, k, n), dtype),
        ends: T.Tensor((experts,), "int32"),
        steps: T.Tensor((experts,), "int32"),
        Y: T.Tensor((rows, n), out),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(rows, bm) + experts, threads=threads) as (bx, by):
            x = T.alloc_shared((bm, bk), dtype)
            w = T.alloc_shared((bn, bk) if turned else (bk, bn), dtype)
            y = T.alloc_fragment((bm, bn), "float32")
            left = T.alloc_var("int32", by)
            group = T.alloc_var("int32", 0)
            first = T.alloc_var("int32", 0)
            end = T.alloc_var("int32", 0)
            begin = T.alloc_var("int32", 0)
            for g in T.serial(experts):
                tiles = T.ceildiv(ends[g] - begin, bm)
                if left >= 0 and left < tiles:
                    group = g
                    first = begin + left * bm
                    end = ends[g]
                left -= tiles
                begin = ends[g]
            if first < end:
                T.clear(y)
                for t in T.Pipelined(steps[group] if bound else T.ceildiv(k, bk), num_stages=stages):
                    T.copy(X[first, t * bk], x)
                    if turned:
                        T.copy(W[group, bx * bn, t * bk], w)
                    else:
                        T.copy(W[group, t * bk, bx * bn], w)
                    T.gemm(x, w, y, transpose_B=turned)
                for i, j in T.Parallel(bm, bn):
                    if first + i < end:
                        Y[first + i, bx * bn + j] = y[i, j]

    return main


def check_grouped(program: Any, ends: Any, steps: Any, options: dict[str, Any], role: str, **how: Any) -> None:
    """Execute grouped products in the emulator on fresh data, and compare."""
    kernel = tile.compile(program, TARGET, runtime="emulator", options=options)
    assert roles(kernel.source) == role
    (rows, k), (experts, *sides) = kernel.signature.params[0].shape, kernel.signature.params[1].shape
    turned, block, dtype = how.get("turned", True), how.get("block", (64, 64, 32)), how.get("dtype", "float16")
    rng = np.random.default_rng()
    x = rng.integers(-3, 4, (rows, k)).astype(NUMPY[dtype])
    w = rng.integers(-3, 4, (experts, *sides)).astype(NUMPY[dtype])
    n = sides[0] if turned else sides[1]
    y = np.full((rows, n), 7, NUMPY[how.get("out", "float32")])
    kernel(x, w, np.array(ends, np.int32), np.array(steps, np.int32), y)
    wanted, begin = np.full_like(y, 7), 0
    for g, end in enumerate(ends):
        if end > begin:
            to = k if not how.get("bound") else max(0, min(k, steps[g] * block[2]))
            a, b = x[begin:end, :to].astype(np.float32), w[g].astype(np.float32)
            wanted[begin:end] = a @ (b.T if turned else b)[:to]
            begin = end
    assert np.array_equal(y.astype(np.float32), wanted.astype(np.float32))


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "two groups": {"block": (128, 64, 32), "threads": 256, "stages": 2},
    "four stages": {"stages": 4, "k": 224},
    "not transposed": {"turned": False, "dtype": "bfloat16"},
    "16-bit results": {"block": (128, 64, 32), "threads": 256, "dtype": "bfloat16", "out": "bfloat16", "n": 192},
    "16-bit results, a tail of columns": {"out": "float16", "n": 72},
    "results of odd rows": {"out": "float16", "n": 67, "k": 96},
    "fp8": {"dtype": "float8_e4m3fn", "block": (64, 64, 64), "k": 192, "stages": 2},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [PERSISTENT, BESIDE], ids=["persistent", "always"])
def test_grouped_products(way: str, options: dict[str, Any]) -> None:
    how = WAYS[way]
    check_grouped(grouped(**how), [97, 97, 130, 300], [0] * 4, options, "persistent", **how)
    check_grouped(grouped(**how), [0, 0, 13, 14], [0] * 4, options, "persistent", **how)


@pytest.mark.sweep(1)
def test_trip_counts_that_are_data_are_not_persistent_by_default() -> None:
    program = grouped(n=4096, rows=4096, k=256, block=(128, 256, 64), threads=256, stages=4, bound=True)
    assert roles(tile.compile(program, TARGET).source) == ""
    assert "the trip count is unknown at compile time" in str(report_json(program, TARGET)["block"]["loops"])
    program = grouped(n=4096, rows=4096, k=256, block=(128, 256, 64), threads=256, stages=4)
    assert roles(tile.compile(program, TARGET).source) == "persistent"


@pytest.mark.parametrize("steps", [(3, 0, 1, 2), (-2, 1, 0, 3), (7, 2, 4, 1)])
def test_trip_counts_that_are_data(steps: tuple[int, ...]) -> None:
    how: dict[str, Any] = {"bound": True, "k": 224, "stages": 3}
    check_grouped(grouped(**how), [31, 160, 165, 300], steps, PERSISTENT, "persistent", **how)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", ["copied", "computed"])
def test_a_count_that_is_not_kept_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = PersistentLoop.counts

    def counts(self: PersistentLoop, role: str, tile_iteration: Any, kept: Any) -> Any:
        count = old(self, role, tile_iteration, kept)
        return replace(count, advanced=()) if role == name else count

    monkeypatch.setattr(PersistentLoop, "counts", counts)
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    with pytest.raises(UnprovenBarriers):
        tile.compile(grouped(k=128), TARGET, options=PERSISTENT)


@pytest.mark.sweep(0.25)
def test_counts_that_all_roles_reset_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    old = KeptCount.of
    monkeypatch.setattr(KeptCount, "of", lambda self, trips: replace(old(self, trips), advanced=()))
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    with pytest.raises(UnprovenBarriers):
        tile.compile(grouped(k=128), TARGET, options=PERSISTENT)


def computed_in(what: str) -> Any:
    """A product whose loop depends on a value that only the block's own threads have."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 96), "float16"), B: T.Tensor((96, 64), "float16"), n: T.Tensor((4,), "int32"),
        C: T.Tensor((128, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 2, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((4,), "int32")
            most = T.alloc_var("int32", 3)
            T.copy(n, s)
            if what == "shared":
                most = s[by]
            if what == "written":
                most = n[by]
            T.clear(c)
            for t in T.Pipelined(most, num_stages=2):
                T.copy(A[by * 64, t * 32], a)
                T.copy(B[t * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])
            if what == "written":
                for i in T.Parallel(4):
                    if by == 5:
                        n[i] = 0

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize("what", ["shared", "written"])
def test_values_of_other_threads_are_not_repeated(what: str) -> None:
    found = str(report_json(computed_in(what), TARGET, options=PERSISTENT)["block"]["loops"])
    assert "its copies depend on values computed in the block" in found
    assert roles(tile.compile(computed_in(what), TARGET, options=PERSISTENT).source) == ""


def listed(experts=3, n=72, k=96, tiles=5, block=(64, 64, 32), dtype="float16") -> Any:
    """Products whose tiles name their expert, with a negative one for tiles without work."""
    bm, bn, bk = block

    @T.prim_func
    def main(
        X: T.Tensor((tiles * bm, k), dtype), W: T.Tensor((experts, n, k), dtype), of: T.Tensor((tiles,), "int32"),
        Y: T.Tensor((tiles * bm, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), tiles, threads=128) as (bx, by):
            x, w = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bn, bk), dtype)
            y = T.alloc_fragment((bm, bn), "float32")
            e = of[by]
            if e >= 0:
                T.clear(y)
                for t in T.Pipelined(T.ceildiv(k, bk), num_stages=3):
                    T.copy(X[by * bm, t * bk], x)
                    T.copy(W[e, bx * bn, t * bk], w)
                    T.gemm(x, w, y, transpose_B=True)
                T.copy(y, Y[by * bm, bx * bn])

    return main


@pytest.mark.parametrize("options", [PERSISTENT, BESIDE], ids=["persistent", "always"])
def test_lists_of_tiles(options: dict[str, Any]) -> None:
    kernel = tile.compile(listed(), TARGET, runtime="emulator", options=options)
    assert roles(kernel.source) == "persistent"
    rng = np.random.default_rng()
    x, w = rng.integers(-3, 4, (320, 96)).astype(np.float16), rng.integers(-3, 4, (3, 72, 96)).astype(np.float16)
    of, y = rng.integers(-1, 3, 5).astype(np.int32), np.full((320, 72), 7, np.float32)
    kernel(x, w, of, y)
    wanted = np.full_like(y, 7)
    for i, e in enumerate(of):
        if e >= 0:
            rows = slice(i * 64, i * 64 + 64)
            wanted[rows] = x[rows].astype(np.float32) @ w[e].astype(np.float32).T
    assert np.array_equal(y, wanted)


def repeated(form: str, m=130, n=72, k=96, stages=2) -> Any:
    """Several pipelined loops: one in a loop over experts, or two with the same or other tiles."""

    @T.prim_func
    def main(
        X: T.Tensor((m, k), "float16"), W: T.Tensor((3, n, k), "float16"), used: T.Tensor((3,), "int32"),
        Y: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            x, w = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 32), "float16")
            v, z = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 32), "float16")
            y = T.alloc_fragment((64, 64), "float32")
            T.clear(y)
            if form == "experts":
                for e in T.serial(3):
                    if used[e] > by:
                        for t in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                            T.copy(X[by * 64, t * 32], x)
                            T.copy(W[e, bx * 64, t * 32], w)
                            T.gemm(x, w, y, transpose_B=True)
            else:
                for t in T.Pipelined(T.min(used[0], 3), num_stages=stages):
                    T.copy(X[by * 64, t * 32], x)
                    T.copy(W[0, bx * 64, t * 32], w)
                    T.gemm(x, w, y, transpose_B=True)
                if form == "same tiles":
                    for t in T.Pipelined(T.min(used[1], 3), num_stages=stages):
                        T.copy(X[by * 64, t * 32], x)
                        T.copy(W[1, bx * 64, t * 32], w)
                        T.gemm(x, w, y, transpose_B=True)
                else:
                    for t in T.Pipelined(T.min(used[1], 3), num_stages=stages + 1):
                        T.copy(X[by * 64, t * 32], v)
                        T.copy(W[1, bx * 64, t * 32], z)
                        T.gemm(v, z, y, transpose_B=True)
            T.copy(y, Y[by * 64, bx * 64])

    return main


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("form", ["experts", "same tiles", "other tiles"])
def test_loops_that_are_repeated(form: str, stages: int) -> None:
    kernel = tile.compile(repeated(form, stages=stages), TARGET, runtime="emulator", options=PERSISTENT)
    assert roles(kernel.source) == "persistent"
    assert kernel.source.count("_free = ") == (2 if form == "other tiles" else 1)
    rng = np.random.default_rng()
    for used in ([1, 2, 3], [0, 0, 0], [3, 1, 0], [2, 0, 9]):
        x, w = rng.integers(-3, 4, (130, 96)).astype(np.float16), rng.integers(-3, 4, (3, 72, 96)).astype(np.float16)
        y, wanted = np.zeros((130, 72), np.float32), np.zeros((130, 72), np.float32)
        kernel(x, w, np.array(used, np.int32), y)
        if form == "experts":
            for e, count in enumerate(used):
                to = slice(0, min(130, max(0, count) * 64))
                wanted[to] += x[to].astype(np.float32) @ w[e].astype(np.float32).T
        else:
            for e in (0, 1):
                to = 32 * min(used[e], 3)
                wanted += x[:, :to].astype(np.float32) @ w[e][:, :to].astype(np.float32).T
        assert np.array_equal(y, wanted)


def test_a_producer_warp_of_a_repeated_loop() -> None:
    """Grids of symbolic size are not persistent: each block has a producer warp, which counts over experts."""
    m = T.dynamic("m")
    program = repeated("experts", m=m)
    kernel = tile.compile(program, TARGET, runtime="emulator", options=BESIDE)
    assert roles(kernel.source) == "producer"
    rng = np.random.default_rng()
    x, w = rng.integers(-3, 4, (67, 96)).astype(np.float16), rng.integers(-3, 4, (3, 72, 96)).astype(np.float16)
    y, used = np.zeros((67, 72), np.float32), np.array([1, 0, 2], np.int32)
    kernel(x, w, used, y)
    wanted = np.zeros_like(y)
    for e, count in enumerate(used):
        wanted[: count * 64] += x[: count * 64].astype(np.float32) @ w[e].astype(np.float32).T
    assert np.array_equal(y, wanted)


@pytest.mark.sweep(1)
def test_the_fuzzer_reaches_them() -> None:
    """Persistent kernels with kept counts, of several loops, and of a loop that another one repeats."""
    found: list[tuple[str, str]] = []

    @hypothesis.seed(3)
    @settings(max_examples=16, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["nested-loops"][0])
    def draw(unit: Any) -> None:
        with contextlib.suppress(TileError):
            made = lowered_unit(load(unit.text()), make_context(TARGET, PERSISTENT))
            found.append((roles(made.text), unit.text()))

    draw()
    persistent = [text for role, text in found if role == "persistent"]
    assert len(persistent) >= 6
    assert any(text.count("T.Pipelined") > 1 for text in persistent)
    assert any("for e2 in" in text for text in persistent)
    assert any("T.Pipelined(N[e]" in text for text in persistent)


def paged(form: str, pages=9, page=16, depth=64) -> Any:
    """Products with pages that a table names, by a variable of each iteration."""

    @T.prim_func
    def main(
        Q: T.Tensor((64, depth), "float16"), K: T.Tensor((pages, page, depth), "float16"),
        table: T.Tensor((2, pages), "int32"), lens: T.Tensor((2,), "int32"), Y: T.Tensor((2, 64, page), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as b:
            q, k = T.alloc_shared((64, depth), "float16"), T.alloc_shared((page, depth), "float16")
            o = T.alloc_fragment((64, page), "float32")
            T.copy(Q, q)
            T.clear(o)
            last = T.alloc_var("int32", init=0)
            for i in T.Pipelined(T.ceildiv(lens[b], page), num_stages=3):
                p = table[b, i]
                if form == "carried":
                    p = last
                    last = table[b, i]
                T.copy(K[p, :, :], k)
                T.gemm(q, k, o, transpose_B=True)
            T.copy(o, Y[b, :, :])

    return main


@pytest.mark.parametrize("target", ["cuda:sm_80", TARGET])
@pytest.mark.parametrize("form", ["table", "carried"])
def test_pages_of_a_table(form: str, target: str) -> None:
    program = paged(form)
    options = {"numerics": "fast"}
    kernel = tile.compile(program, target, runtime="emulator", options=options)
    loops = report_json(program, target, options=options)["block"]["loops"]
    assert ("k" in loops[0]["buffers"]) == (form == "table")
    rng = np.random.default_rng()
    q, k = rng.integers(-2, 3, (64, 64)).astype(np.float16), rng.integers(-2, 3, (9, 16, 64)).astype(np.float16)
    table = np.stack([rng.permutation(9) for _ in range(2)]).astype(np.int32)
    lens, o = np.array([rng.integers(0, 5), 130], np.int32), np.zeros((2, 64, 16), np.float32)
    kernel(q, k, table, lens, o)
    for b in range(2):
        named = list(table[b][: -(-lens[b] // 16)])
        named = [0, *named[:-1]] if form == "carried" and named else named
        wanted = sum((q.astype(np.float32) @ k[p].astype(np.float32).T for p in named), np.zeros((64, 16)))
        assert np.array_equal(o[b], wanted)
