"""Sparse products in flight across iterations: double-buffered metadata registers for every trip count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.compiler import lower
from tile_core.errors.ops import NotWaitedFor
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports.slow import notes_of_build
from tile_cuda.build import build

from ..emit.nvrtc import assemble
from .test_gemm_wgmma import ALWAYS, TARGET

pytestmark = pytest.mark.sweep(2)

BK = 64


def product(m, n, k, threads=128, stages=3, boxes=(64, 64), twice=False):
    """A product with any trip count and copied metadata; ``k`` may be symbolic."""
    bm, bn = boxes

    @T.prim_func
    def main(A: T.Tensor((m, k // 2), "float16"), E: T.Tensor((k // 16, m), "int16"), B: T.Tensor((k, n), "float16"),
             C: T.Tensor((m, n), "float32")):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s, E_s = T.alloc_shared((bm, BK // 2), "float16"), T.alloc_shared((BK // 16, bm), "int16")
            B_s = T.alloc_shared((BK, bn), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_l)
            for _ in T.serial(2 if twice else 1):
                for t in T.Pipelined(T.ceildiv(k, BK), num_stages=stages):
                    T.copy(A[by * bm, t * BK // 2], A_s)
                    T.copy(E[t * BK // 16, by * bm], E_s)
                    T.copy(B[t * BK, bx * bn], B_s)
                    T.gemm_sp(A_s, E_s, B_s, C_l, transpose_E=True)
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def check(kernel, m, n, k, times=1):
    rng = np.random.default_rng()
    dense = sparse.prune(rng.integers(-4, 5, (m, k)).astype("float16")) if k else np.zeros((m, 0), "float16")
    values, metadata = sparse.compress(dense) if k else (dense, np.zeros((m, 0), "int16"))
    b = rng.integers(-4, 5, (k, n)).astype("float16")
    c = np.full((m, n), np.nan, "float32")
    kernel(values, np.ascontiguousarray(metadata.T), b, c)
    assert np.array_equal(c, times * (dense.astype("float64") @ b.astype("float64")))


@pytest.mark.parametrize("bulk", ["never", "always"])
@pytest.mark.parametrize("trips", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_known_trip_counts(trips, stages, bulk):
    k = trips * BK
    kernel = tile.compile(
        product(100, 72, k, stages=stages), TARGET, runtime="emulator", options={**ALWAYS, "tma": bulk}
    )
    assert ("metadata_odd" in kernel.source) == (trips > 1)
    check(kernel, 100, 72, k)


@pytest.mark.parametrize("bulk", ["never", "always"])
def test_any_trip_count(bulk):
    options = {**ALWAYS, "tma": bulk}
    kernel = tile.compile(
        product(64, 64, T.dynamic("trips") * BK, stages=3), TARGET, runtime="emulator", options=options
    )
    assert "metadata_odd" in kernel.source
    for trips in (0, 1, 2, 3, 4, 7):
        check(kernel, 64, 64, trips * BK)


def test_a_loop_that_is_entered_again():
    kernel = tile.compile(product(64, 64, 3 * BK, twice=True), TARGET, runtime="emulator", options=ALWAYS)
    assert "metadata_odd" in kernel.source
    check(kernel, 64, 64, 3 * BK, times=2)


@pytest.mark.parametrize(("m", "n", "threads"), [(128, 256, 256), (256, 192, 256), (64, 24, 128), (192, 64, 384)])
def test_tiles(m, n, threads):
    kernel = tile.compile(product(m, n, 3 * BK, threads, 2, (m, n)), TARGET, runtime="emulator", options=ALWAYS)
    check(kernel, m, n, 3 * BK)


def waited(waits=(1, 0), between=False, looped=True, same=False):
    """Two products that the program waits for itself."""

    @T.prim_func
    def main(A: T.Tensor((64, 96), "float16"), E: T.Tensor((64, 12), "int16"), B: T.Tensor((192, 64), "float16"),
             C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, E_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 4), "int16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l, D_l = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.clear(D_l)
            for t in T.serial(3) if looped else (0, 1, 2):
                T.copy(A[0, t * 32], A_s)
                T.copy(E[0, t * 4], E_s)
                T.copy(B[t * 64, 0], B_s)
                T.wgmma_gemm_sp(A_s, E_s, B_s, C_l)
                T.wgmma_gemm_sp(A_s, E_s, B_s, C_l if same else D_l)
                if between:
                    for i, j in T.Parallel(64, 64):
                        C_l[i, j] = C_l[i, j] + 1
                for n in waits:
                    T.wait_wgmma(n)
            T.copy(C_l, C)
            T.copy(D_l, D)

    return main


@pytest.mark.parametrize("looped", [False, True], ids=["straight", "loop"])
@pytest.mark.parametrize("same", [False, True], ids=["two", "same"])
@pytest.mark.parametrize("waits", [(0,), (1, 0)])
def test_a_product_goes_on_until_the_wait_of_the_program(waits, same, looped):
    kernel = tile.compile(waited(waits, looped=looped, same=same), TARGET, runtime="emulator")
    rng = np.random.default_rng()
    dense = sparse.prune(rng.integers(-4, 5, (64, 192)).astype("float16"))
    b = rng.integers(-4, 5, (192, 64)).astype("float16")
    c, d = np.full((2, 64, 64), np.nan, "float32")
    kernel(*sparse.compress(dense), b, c, d)
    expected = dense.astype("float64") @ b.astype("float64")
    assert np.array_equal(c, expected * (2 if same else 1))
    assert np.array_equal(d, expected * (0 if same else 1))
    assert "metadata_odd" not in kernel.source
    # Both registers have a reader behind each wait of the iteration.
    trip = kernel.source.split("wgmma_commit_group_sync_aligned();")[2]
    for name in ("metadata", "metadata_1"):
        assert trip.count(f"read_metadata_1(&{name});") == len(waits)


def test_accumulators_are_not_touched_before():
    with pytest.raises(NotWaitedFor) as refused:
        tile.compile(waited(between=True), TARGET, runtime="emulator")
    assert refused.value.code == "K229"
    assert "C_l is used" in str(refused.value) or "C_l is written" in str(refused.value)


@pytest.mark.parametrize("k", [4 * BK, 5 * BK, "any"])
@pytest.mark.parametrize("bulk", ["never", "always"])
def test_the_assembler_lets_products_overlap(k, bulk):
    """Emit no branch between products in flight, which makes the assembler serialize them."""
    program = product(512, 384, T.dynamic("trips") * BK if k == "any" else k, 256, 4, (256, 192))
    kernel = tile.compile(program, TARGET, options={**ALWAYS, "tma": bulk})
    assert assemble(kernel.source, "sm_90a") == ""


@pytest.mark.sweep(0.25)
def test_serialized_products_are_reported():
    pytest.importorskip("cuda.bindings.nvrtc")
    text = lower(product(512, 512, 8 * BK, 128, 4, (128, 128)), make_context(TARGET, ALWAYS), installed()).lowered
    branches = dataclasses.replace(text, text=text.text.replace("@p pmevent 1;", "@p trap;"))
    assert branches != text
    assert build(text, "sm_90a").serialized_products == 0
    facts = build(branches, "sm_90a").facts()
    assert facts["serialized_products"] > 0
    assert [note.kind for note in notes_of_build(facts)] == ["serialized"]
