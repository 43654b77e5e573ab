"""Gathers in pipelined loops: prefetched by cp.async, zeros for rows and columns that do not exist."""

from __future__ import annotations

import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies.gathered_loops import gathered_loops

HEIGHT = 45


def program(
    m: int, k: int, depth: int, dtype: str, index: str, where: str, corner: int = 0, stages: int = 3, planes: int = 0
) -> Any:
    """Return the sum of all gathered tiles of a loop."""
    trips = -(-depth // k)
    shape = (HEIGHT, planes, depth) if planes else (HEIGHT, depth)

    @T.prim_func
    def main(X: T.Tensor(shape, dtype), R: T.Tensor((trips + 1, m), index), C: T.Tensor((m, k), "float32")):
        with T.Kernel(1, threads=96) as _:
            s = T.alloc_shared((m, planes, k) if planes else (m, k), dtype)
            r = T.alloc_fragment((m,), index) if where == "registers" else T.alloc_shared((m,), index)
            c = T.alloc_fragment((m, k), "float32")
            T.copy(R[0, 0:m], r)
            T.clear(c)
            for o in T.Pipelined(trips, num_stages=stages):
                if where == "iteration":
                    T.copy(R[o, 0:m], r)
                T.gather(X[corner, 0, o * k] if planes else X[corner, o * k], R[0, 0:m] if where == "tensor" else r, s)
                for i, j in T.Parallel(m, k):
                    for p in T.unroll(max(planes, 1)):
                        c[i, j] += T.cast(s[i, p, j] if planes else s[i, j], "float32")
            T.copy(c, C)

    return main


def expected(x: Any, rows: Any, k: int, corner: int, where: str) -> Any:
    trips = len(rows) - 1
    wide = np.zeros((*x.shape[:-1], trips * k), "float64")
    wide[..., : x.shape[-1]] = x
    total = np.zeros((rows.shape[1], k))
    for o in range(trips):
        for i, row in enumerate(rows[o if where == "iteration" else 0]):
            if 0 <= row < HEIGHT - corner:
                part = wide[corner + row, ..., o * k : (o + 1) * k]
                total[i] += part if part.ndim == 1 else part.sum(axis=0)
    return total


CASES = {
    "whole chunks": (64, 64, 256, "float16", "int32", "shared"),
    "64-bit numbers": (16, 32, 96, "float32", "int64", "shared"),
    "narrow numbers": (17, 16, 48, "float16", "int16", "shared"),
    "numbers of the tensor": (31, 32, 64, "float16", "int32", "tensor"),
    "a tail of columns": (16, 16, 60, "float32", "int32", "shared"),
    "a tail inside of a chunk": (16, 16, 58, "float16", "int32", "shared"),
    "chunks of 4 bytes": (16, 10, 50, "float16", "int32", "shared"),
    "a corner": (16, 16, 64, "float16", "int32", "shared", 7),
    "one row": (1, 64, 192, "float16", "int32", "shared"),
    "planes": (8, 16, 48, "float16", "int32", "shared", 0, 3, 3),
    "two stages": (16, 32, 128, "int8", "int32", "shared", 0, 2),
}


@T.prim_func
def few_numbers(X: T.Tensor((HEIGHT, 64), "float16"), R: T.Tensor((21,), "int32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(2, threads=64) as b:
        s = T.alloc_shared((16, 32), "float16")
        c = T.alloc_fragment((16, 32), "float32")
        T.clear(c)
        for o in T.Pipelined(2, num_stages=2):
            T.gather(X[0, o * 32], R[b * 16 : b * 16 + 16], s)
            for i, j in T.Parallel(16, 32):
                c[i, j] += s[i, j]
        T.copy(c, C[b * 16, 0])


def test_numbers_beyond_their_tensor_are_zero() -> None:
    rng = np.random.default_rng(5)
    x, rows = rng.integers(-3, 4, (HEIGHT, 64)).astype("float16"), rng.integers(1, HEIGHT, 21).astype("int32")
    kernel, c = tile.compile(few_numbers, target="cuda:sm_90a", runtime="emulator"), np.empty((32, 32), "float32")
    kernel(x, rows, c)
    every = np.concatenate([rows, np.zeros(11, "int32")])
    np.testing.assert_array_equal(c, x[every, :32].astype("float32") + x[every, 32:])
    assert "cp_async" in kernel.source


def test_numbers_with_a_safe_value_are_read_where_the_call_stands() -> None:
    @T.prim_func
    def main(X: T.Tensor((HEIGHT, 64), "float16"), R: T.Tensor((21,), "int32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(2, threads=64) as b:
            T.annotate_safe_value({R: -1})
            s = T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((16, 32), "float32")
            T.clear(c)
            for o in T.Pipelined(2, num_stages=2):
                T.gather(X[0, o * 32], R[b * 16 : b * 16 + 16], s)
                for i, j in T.Parallel(16, 32):
                    c[i, j] += s[i, j]
            T.copy(c, C[b * 16, 0])

    rng = np.random.default_rng(6)
    x, rows = rng.integers(-3, 4, (HEIGHT, 64)).astype("float16"), rng.integers(0, HEIGHT, 21).astype("int32")
    kernel, c = tile.compile(main, target="cuda:sm_90a", runtime="emulator"), np.empty((32, 32), "float32")
    kernel(x, rows, c)
    np.testing.assert_array_equal(c[:21], x[rows, :32].astype("float32") + x[rows, 32:])
    np.testing.assert_array_equal(c[21:], 0)
    assert "cp_async" not in kernel.source


IN_PLACE = {
    "columns of 2 bytes": ((16, 3, 9, "float16", "int32", "shared"), "aligned"),
    "numbers in registers": ((16, 32, 64, "float16", "int32", "registers"), "in registers"),
    "numbers of an iteration": ((16, 32, 96, "float16", "int32", "iteration"), "the loop writes its row numbers"),
}


def check(case: tuple[Any, ...], target: str) -> str:
    m, k, depth, dtype, index, where, *more = case
    rng = np.random.default_rng(m * k)
    planes = more[2] if len(more) > 2 else 0
    x = rng.integers(-4, 5, (HEIGHT, planes, depth) if planes else (HEIGHT, depth)).astype(dtype)
    rows = rng.integers(-3, HEIGHT + 3, (-(-depth // k) + 1, m)).astype(index)
    kernel = tile.compile(program(*case), target=target, runtime="emulator")
    c = np.full((m, k), np.nan, "float32")
    kernel(x, rows, c)
    np.testing.assert_array_equal(c, expected(x, rows, k, more[0] if more else 0, where))
    return str(kernel.source)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_prefetched(name: str, target: str) -> None:
    text = check(CASES[name], target)
    assert re.search(r"cp_async_c[ag]_shared_global_(16|8|4)_zfill\(", text)
    assert "cp_async_wait_group" in text


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", IN_PLACE)
def test_other_rows_are_gathered_where_the_call_stands(name: str) -> None:
    case, reason = IN_PLACE[name]
    check(case, "cuda:sm_80")
    made = program(*case)
    assert re.search(
        rf"its rows are\s+gathered where the call stands.*{reason}", tile.explain(made, "cuda:sm_80"), re.S
    )


@T.prim_func
def rows_of_another_role(
    X: T.Tensor((64, 128), "float16"), R: T.Tensor((4, 16), "int32"), C: T.Tensor((16, 32), "float32")
):
    with T.Kernel(1, threads=256) as _:
        s = T.alloc_shared((16, 32), "float16")
        r = T.alloc_shared((16,), "int32")
        full, free = T.alloc_barrier(128), T.alloc_barrier(128)
        with T.ws(0):
            for o in T.serial(4):
                T.barrier_wait(free, (o + 1) % 2)
                T.copy(R[o, 0], r)
                T.barrier_arrive(full)
        with T.ws(1):
            c = T.alloc_fragment((16, 32), "float32")
            T.clear(c)
            for o in T.Pipelined(4, num_stages=2):
                T.barrier_wait(full, o % 2)
                T.gather(X[0, o * 32], r, s)
                for i, j in T.Parallel(16, 32):
                    c[i, j] += s[i, j]
                T.barrier_arrive(free)
            T.copy(c, C)


def test_numbers_that_another_role_writes_are_read_where_the_call_stands() -> None:
    rng = np.random.default_rng(3)
    x, rows = rng.integers(-3, 4, (64, 128)).astype("float16"), rng.integers(-2, 66, (4, 16)).astype("int32")
    kernel, c = (
        tile.compile(rows_of_another_role, target="cuda:sm_90a", runtime="emulator"),
        np.empty((16, 32), "float32"),
    )
    kernel(x, rows, c)
    wanted = np.zeros((16, 32))
    for o, i in np.ndindex(4, 16):
        if 0 <= rows[o, i] < 64:
            wanted[i] += x[rows[o, i], o * 32 : o * 32 + 32]
    np.testing.assert_array_equal(c, wanted)
    assert "cp_async" not in kernel.source


def test_a_product_reads_gathered_rows_while_the_next_ones_arrive() -> None:
    @T.prim_func
    def main(
        X: T.Tensor((64, 256), "bfloat16"),
        W: T.Tensor((128, 256), "bfloat16"),
        R: T.Tensor((128,), "int32"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((128, 64), "bfloat16")
            w = T.alloc_shared((128, 64), "bfloat16")
            r = T.alloc_shared((128,), "int32")
            c = T.alloc_fragment((128, 128), "float32")
            T.copy(R, r)
            T.clear(c)
            for o in T.Pipelined(4, num_stages=3):
                T.gather(X[0, o * 64], r, s)
                T.copy(W[0, o * 64], w)
                T.gemm(s, w, c, transpose_B=True)
            T.copy(c, C)

    text = str(tile.compile(main, target="cuda:sm_90a").source)
    loop = text[text.index("for (int o = 0") :]
    assert loop.index("wgmma_wait_group_sync_aligned_1") < loop.index("cp_async_cg_shared_global_16_zfill")


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_them() -> None:
    found = {"cp_async_cg_shared_global_16_zfill": 0, "cp_async_ca_shared_global_4_zfill": 0, "wgmma": 0}

    @hypothesis.seed(1)
    @settings(
        max_examples=150, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(gathered_loops())
    def collect(unit: Any) -> None:
        try:
            text = str(lowered(load(unit.text()), make_context("cuda:sm_90a", {"wgmma": "always"})).text)
        except TileError:
            return
        text = text[text.index('extern "C"') :]
        for name in found:
            found[name] += name in text and "_zfill" in text

    collect()
    assert min(found.values()) >= 1, found
