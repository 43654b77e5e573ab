"""Tables of functions of 4-bit integers: the same elements as without, in every group, tail and guard."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx, tvm
from tile_core.compiler import lower
from tile_core.cpu.build import build
from tile_core.cpu.isa import detect, without
from tile_core.ir.visit import collect
from tile_core.numerics import codecs
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

HAS_TABLES = detect().name == "avx512"
DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype("float16")}


def scales(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Any bits: subnormal numbers, infinities, NaN and both zeros among them."""
    return rng.integers(0, 2**16, shape, "uint16").view(DTYPES[dtype])


def weights(n: int, k: int, group: int, source: str, dtype: str, block: tuple[int, int], *, staged: bool) -> Any:
    """Scale 4-bit weights by groups, from a tile or from the tensor itself, whose edge is guarded."""
    rows, columns = block

    @T.prim_func
    def main(W: T.Tensor((n, k), source), S: T.Tensor((n, -(-k // group)), dtype), C: T.Tensor((n, k), dtype)):
        with T.Kernel(T.ceildiv(k, columns), T.ceildiv(n, rows), threads=128) as (bx, by):
            w, q = T.alloc_shared((rows, columns), dtype), T.alloc_shared((rows, columns), source)
            if staged:
                T.copy(W[by * rows, bx * columns], q)
                for i, j in T.Parallel(rows, columns):
                    w[i, j] = T.cast(q[i, j], dtype) * S[by * rows + i, (bx * columns + j) // group]
            else:
                for i, j in T.Parallel(rows, columns):
                    r, c = by * rows + i, bx * columns + j
                    w[i, j] = (T.cast(W[r, c], dtype) - 3) * S[r, c // group]
            T.copy(w, C[by * rows, bx * columns])

    return main


def tables(program: Any, target: str = "cpu") -> int:
    """Return how many tables a program has."""
    plugins = installed()
    plan = lower(program, make_context(target, plugins=plugins), plugins)
    return sum(str(s.buffer.name) == "table" for s in collect(plan.lowered.body, tirx.AllocBuffer))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("source", ["int4", "uint4"])
@pytest.mark.parametrize("dtype", [*DTYPES])
def test_elements_are_those_without_tables(dtype: str, source: str, staged: bool) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    n, k = choose.choice([1, 3, 8, 13]), choose.choice([2, 66, 128, 130, 202, 384, 1026])
    group = choose.choice([16, 32, 50, 64, 100, 128, 256])
    block = choose.choice([1, 4, 8]), choose.choice([32, 64, 96, 100, 128, 256, 512])
    program = weights(n, k, group, source, dtype, block, staged=staged)
    codes, s = rng.integers(0, 16, (n, k), "uint8"), scales((n, -(-k // group)), dtype, rng)
    packed, found = codecs.pack4(codes), {}
    for target in ("cpu", "cpu:x86-64-v3"):
        found[target] = np.full((n, k), 7, DTYPES[dtype])
        tile.compile(program, target=target, options={"poison": True})(packed, s, found[target])
    ours, want = (found[t].view("uint16") for t in ("cpu", "cpu:x86-64-v3"))
    same = (ours == want) | (np.isnan(found["cpu"]) & np.isnan(found["cpu:x86-64-v3"]))
    assert same.all(), (n, k, group, block, np.argwhere(~same)[:5])
    value = ((codes ^ 8).astype("int8") - 8 if source == "int4" else codes).astype("float64") - (0 if staged else 3)
    with np.errstate(all="ignore"):
        exact = (value * np.repeat(s.astype("float64"), group, axis=1)[:, :k]).astype(DTYPES[dtype])
    assert ((found["cpu"] == exact) | (np.isnan(found["cpu"]) & np.isnan(exact))).all(), (n, k, group, block)


@pytest.mark.skipif(not HAS_TABLES, reason="no permutation of this width here")
@pytest.mark.parametrize(
    ("group", "columns", "count"),
    [(128, 256, 1), (64, 128, 1), (256, 128, 1), (32, 128, 0), (100, 128, 0), (128, 96, 0)],
)
def test_runs_of_a_group_have_a_table(group: int, columns: int, count: int) -> None:
    program = weights(8, 768, group, "int4", "bfloat16", (8, columns), staged=True)
    assert tables(program) == count
    assert tables(program, "cpu:x86-64-v3") == 0


@pytest.mark.skipif(not HAS_TABLES, reason="no permutation of this width here")
def test_a_module_without_the_permutation_computes_the_same() -> None:
    """``build`` disables byte masks for some forms, and the permutation with them."""
    rng, plugins = np.random.default_rng(), installed()
    program = weights(8, 256, 128, "int4", "bfloat16", (8, 256), staged=True)
    plan = lower(program, make_context("cpu", plugins=plugins), plugins)
    codes, s = rng.integers(0, 16, (8, 256), "uint8"), rng.integers(-3, 4, (8, 2)).astype(ml_dtypes.bfloat16)
    want = ((codes ^ 8).astype("int8") - 8) * np.repeat(s.astype("float32"), 128, axis=1)
    for one, has in ((detect(), True), (without(detect(), ["-avx512bw"]), False)):
        module = build(plan.lowered, one)
        assert ("vpermw" in module.inspect_source("asm")) == has
        arrays = [tvm.runtime.tensor(x) for x in (codecs.pack4(codes), s.view("uint16"), np.zeros((8, 256), "uint16"))]
        module["main"](*arrays)
        np.testing.assert_array_equal(arrays[2].numpy().view(ml_dtypes.bfloat16).astype("float32"), want)


@pytest.mark.skipif(not HAS_TABLES, reason="no permutation of this width here")
@pytest.mark.parametrize(
    ("n", "k", "copies"), [(8, 768, 0), (7, 768, 1), (8, 700, 1)], ids=["inside", "rows beyond", "columns beyond"]
)
def test_codes_are_read_in_place(n: int, k: int, copies: int) -> None:
    """A tile of codes, which one loop reads, is not stored, unless its edge must be guarded."""
    plugins = installed()
    plan = lower(
        weights(n, k, 128, "int4", "bfloat16", (4, 256), staged=True), make_context("cpu", plugins=plugins), plugins
    )
    assert sum(str(s.buffer.name) == "q" for s in collect(plan.lowered.body, tirx.AllocBuffer)) == copies
    text = build(plan.lowered, detect()).inspect_source("asm")
    # A word with both codes of a byte in its halves: no nibble is shifted or masked by itself.
    assert copies or ("vpermw" in text and "vpunpck" not in text and "vgf2p8" not in text)


@pytest.mark.skipif(not HAS_TABLES, reason="no permutation of this width here")
@pytest.mark.parametrize("form", ["two readers", "other tensors", "written tensor", "turned"])
def test_other_tiles_of_codes_have_the_elements_of_the_copy(form: str) -> None:
    n, k, rng = 16, 256, np.random.default_rng()

    @T.prim_func
    def main(W: T.Tensor((2, n, k), "int4"), S: T.Tensor((n, 2), "bfloat16"), C: T.Tensor((2, n, k), "bfloat16")):
        with T.Kernel(1, threads=64):
            q, w = T.alloc_shared((n, k), "int4"), T.alloc_shared((n, k), "bfloat16")
            T.copy(W[0, 0, 0], q)
            if form == "written tensor":
                for i, j in T.Parallel(n, k):
                    W[0, i, j] = W[1, i, j]
            for i, j in T.Parallel(n, k):
                w[i, j] = T.cast(q[n - 1 - i if form == "turned" else i, j], "bfloat16") * S[i, j // 128]
            T.copy(w, C[0, 0, 0])
            if form == "other tensors":
                T.copy(W[1, 0, 0], q)
            for i, j in T.Parallel(n, k):
                w[i, j] = T.cast(q[i, j] if form != "turned" else W[1, i, j], "bfloat16") * S[i, j // 128]
            T.copy(w, C[1, 0, 0])

    codes, s = rng.integers(0, 16, (2, n, k), "uint8"), rng.integers(-3, 4, (n, 2)).astype(ml_dtypes.bfloat16)
    values = (codes ^ 8).astype("int8") - 8
    c = np.full((2, n, k), 7, ml_dtypes.bfloat16)
    tile.compile(main, "cpu")(codecs.pack4(codes), s, c)
    first = values[0, ::-1] if form == "turned" else values[0]
    second = values[1 if form in ("other tensors", "turned") else 0]
    want = np.stack((first, second)) * np.repeat(s.astype("float32"), 128, axis=1)
    np.testing.assert_array_equal(c.astype("float32"), want)
