"""Tiles keep the rows that reach a result, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu.trim_tiles import trim_tiles
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role

pytestmark = pytest.mark.sweep(0.125)


def shapes(program: Any, layouts: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """Return the shapes of a program's tiles after the pass."""
    body = trim_tiles(tile.compile(program, target="cpu").program.func.body, layouts)
    return {str(s.buffer.name): nodes.shape_of(s.buffer) for s in collect(body, tirx.AllocBuffer)}


def steps_of_decoding(live: int, rows: int, keys: int, dim: int, dtype: str = "float32") -> Any:
    """Return attention of a few queries, padded to more rows, with online softmax."""

    @T.prim_func
    def main(
        Q: T.Tensor((live, dim), dtype), K: T.Tensor((keys, dim), dtype), V: T.Tensor((keys, dim), dtype),
        O: T.Tensor((live, dim), "float32"),  # noqa: E741
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            q, k, v = (T.alloc_shared(s, dtype) for s in ((rows, dim), (32, dim), (32, dim)))
            s, p = T.alloc_fragment((rows, 32), "float32"), T.alloc_fragment((rows, 32), dtype)
            o = T.alloc_fragment((rows, dim), "float32")
            top, before, part, total = (T.alloc_fragment((rows,), "float32") for _ in range(4))
            for r, c in T.Parallel(rows, dim):
                q[r, c] = T.if_then_else(r < live, Q[r, c], 0)
            T.clear(o)
            T.clear(total)
            T.fill(top, -1e30)
            for i in T.Pipelined(T.ceildiv(keys, 32), num_stages=2):
                T.copy(K[i * 32, 0], k)
                T.copy(V[i * 32, 0], v)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                for r, c in T.Parallel(rows, 32):
                    s[r, c] = T.if_then_else(i * 32 + c < keys, s[r, c], -1e30)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                s[...] = T.exp(s - top[:, None])
                T.reduce_sum(s, part, dim=1)
                total[...] = total * T.exp(before - top) + part
                T.copy(s, p)
                o *= T.exp(before - top)[:, None]
                T.gemm(p, v, o)
            for r, c in T.Parallel(rows, dim):
                if r < live:
                    O[r, c] = o[r, c] / total[r]

    return main


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("live", "rows"), [(1, 16), (3, 16), (5, 8), (16, 16)])
def test_padded_queries_are_not_computed(live: int, rows: int, dtype: str) -> None:
    rng = np.random.default_rng(live)
    program = steps_of_decoding(live, rows, 77, 24, dtype)
    q, k, v = (rng.standard_normal((n, 24)).astype(T.dtype(dtype).numpy()) for n in (live, 77, 77))
    out = np.full((live, 24), np.nan, "float32")
    tile.compile(program, target="cpu")(q, k, v, out)
    q, k, v = (x.astype("float64") for x in (q, k, v))
    weights = np.exp(q @ k.T - (q @ k.T).max(1, keepdims=True))
    tolerance = 1e-5 if dtype == "float32" else 0.02
    np.testing.assert_allclose(out, weights @ v / weights.sum(1, keepdims=True), rtol=tolerance, atol=tolerance)
    found = shapes(program)
    assert {name: found[name][0] for name in ("q", "s", "p", "o", "top", "total")} == dict.fromkeys(
        ("q", "s", "p", "o", "top", "total"), live
    )
    assert found["k"] == [32, 24]


def test_the_end_of_a_tensor_limits_rows() -> None:
    @T.prim_func
    def main(A: T.Tensor((40, 8), "float32"), B: T.Tensor((5, 8), "float32")):
        with T.Kernel(1, threads=32) as bx:
            a, b = T.alloc_shared((16, 8), "float32"), T.alloc_fragment((16, 8), "float32")
            T.copy(A[bx * 16, 0], a)
            for i, j in T.Parallel(16, 8):
                b[i, j] = a[i, j] + 1
            T.copy(b, B[bx * 16, 0])

    assert shapes(main) == {"a": [5, 8], "b": [5, 8]}
    assert shapes(main, ("a",)) == {"a": [16, 8], "b": [5, 8]}
    data, out = np.random.default_rng(0).standard_normal((40, 8)).astype("float32"), np.zeros((5, 8), "float32")
    tile.compile(main, target="cpu")(data, out)
    np.testing.assert_array_equal(out, data[:5] + 1)


def _used(form: str) -> Any:
    """Return a program whose result has two rows, with a use of a tile of eight."""

    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((2, 8), "float32")):
        with T.Kernel(1, threads=32) as _:
            a, b = T.alloc_shared((8, 8), "float32"), T.alloc_fragment((8, 8), "float32")
            T.copy(A, a)
            ones = T.alloc_shared((8, 8), "float32")
            T.clear(b)
            T.fill(ones, 1)
            if form == "product":
                T.gemm(ones, a, b)
            elif form == "columns":
                T.gemm(ones, a, b, transpose_B=True)
            elif form == "shift":
                for i, j in T.Parallel(8, 8):
                    b[i, j] = a[7 - i, j]
            elif form == "scan":
                T.cumsum(a, dim=0, reverse=True)
                T.copy(a, b)
            elif form == "serial":
                for i in T.serial(8):
                    for j in T.Parallel(8):
                        b[0, j] = b[0, j] + a[i, j]
            elif form == "part":
                T.copy(a[6:8, :], b[0:2, :])
            T.copy(b[0:2, :], B)

    return main


@pytest.mark.parametrize("form", ["product", "columns", "shift", "scan", "serial", "part"])
def test_rows_that_other_rows_use_stay(form: str) -> None:
    data, out = np.random.default_rng(1).standard_normal((8, 8)).astype("float32"), np.zeros((2, 8), "float32")
    tile.compile(_used(form), target="cpu")(data, out)
    total = np.stack([data.astype("float64").sum(0), np.zeros(8)])
    scanned = data.astype("float64")[::-1].cumsum(0)[::-1][:2]
    products = {"product": np.stack([total[0]] * 2), "columns": np.stack([data.astype("float64").sum(1)] * 2)}
    wanted = {**products, "shift": data[:-3:-1], "scan": scanned, "serial": total, "part": data[6:8]}[form]
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
    assert shapes(_used(form))["a"] == [8, 8]


def test_conditions_that_are_not_bounds_trim_nothing() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 4), "float32"), B: T.Tensor((8, 4), "float32"), n: T.int32):
        with T.Kernel(1, threads=32) as _:
            a = T.alloc_shared((8, 4), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(8, 4):
                if i < n or i != 2:
                    B[i, j] = a[i, j]
            for i, j in T.Parallel(8, 4):
                if i < n:
                    B[i, j] = a[i, j] * 2

    body = tile.compile(main, target="cpu").program.func.body
    assert trim_tiles(body).same_as(body)
    assert all(nodes.as_int(x.extent) in (8, 4, 1) for x in collect(body, tirx.For) if role(x) == "parallel")
