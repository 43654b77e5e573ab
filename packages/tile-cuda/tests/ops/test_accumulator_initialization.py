"""Accumulator initialization folding: the first mma of a loop starts the accumulators where legal."""

from __future__ import annotations

import re

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.strategies.tall_products import dense_products
from tile_cuda.accumulators import initialization
from tile_emulator.errors import FaultFound

TARGET = "cuda:sm_90a"
ROWS, COLUMNS, STEP = 64, 64, 32
#: What a program does to its accumulators, and whether initialization folds into their first product.
FORMS = {
    "zeros": True, "cleared by the first product": True, "filled with -0": False, "filled with ones": False,
    "a part is filled": False, "read before": False, "scaled first": False, "under a condition": False,
    "a loop behind": True, "a loop around": False,
}  # fmt: skip


def product(form="zeros", sizes=(100, 90, 80), *, dynamic=False, stages=2):
    m, n, k = sizes
    depth = T.dynamic("k") if dynamic else k

    @T.prim_func
    def main(
        A: T.Tensor((m, depth), "float16"), B: T.Tensor((n, depth), "float16"), C: T.Tensor((m, n), "float32")
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, COLUMNS), T.ceildiv(m, ROWS), threads=128) as (bx, by):
            A_s = T.alloc_shared((ROWS, STEP), "float16")
            B_s = T.alloc_shared((COLUMNS, STEP), "float16")
            C_f = T.alloc_fragment((ROWS, COLUMNS), "float32")
            before = T.alloc_fragment((ROWS, COLUMNS), "float32")
            if form == "filled with -0":
                T.fill(C_f, -0.0)
            elif form == "filled with ones":
                T.fill(C_f, 1.0)
            elif form == "a part is filled":
                T.fill(C_f, 1.0)
                T.clear(C_f[0:32, 0:COLUMNS])
            elif form != "cleared by the first product":
                T.clear(C_f)
            if form == "read before":
                T.copy(C_f, before)
            for t in T.Pipelined(T.ceildiv(depth, STEP), num_stages=stages):
                T.copy(A[by * ROWS, t * STEP], A_s)
                T.copy(B[bx * COLUMNS, t * STEP], B_s)
                if form == "scaled first":
                    for i, j in T.Parallel(ROWS, COLUMNS):
                        C_f[i, j] = C_f[i, j] * 2.0
                if form == "under a condition":
                    if t != 1:
                        T.gemm(A_s, B_s, C_f, transpose_B=True)
                elif form == "cleared by the first product":
                    T.gemm(A_s, B_s, C_f, transpose_B=True, clear_accum=t == 0)
                else:
                    T.gemm(A_s, B_s, C_f, transpose_B=True)
            if form == "a loop behind":
                for t in T.Pipelined(2, num_stages=stages):
                    T.copy(A[by * ROWS, t * STEP], A_s)
                    T.copy(B[bx * COLUMNS, t * STEP], B_s)
                    T.gemm(A_s, B_s, C_f, transpose_B=True)
            if form == "read before":
                for i, j in T.Parallel(ROWS, COLUMNS):
                    C_f[i, j] = C_f[i, j] + before[i, j]
            T.copy(C_f, C[by * ROWS, bx * COLUMNS])

    return main


def around(sizes=(100, 90, 80)):
    m, n, k = sizes

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, COLUMNS), T.ceildiv(m, ROWS), threads=128) as (bx, by):
            A_s = T.alloc_shared((ROWS, STEP), "float16")
            B_s = T.alloc_shared((COLUMNS, STEP), "float16")
            C_f = T.alloc_fragment((ROWS, COLUMNS), "float32")
            T.clear(C_f)
            for _ in T.serial(2):
                for t in T.Pipelined(T.ceildiv(k, STEP), num_stages=2):
                    T.copy(A[by * ROWS, t * STEP], A_s)
                    T.copy(B[bx * COLUMNS, t * STEP], B_s)
                    T.gemm(A_s, B_s, C_f, transpose_B=True)
            T.copy(C_f, C[by * ROWS, bx * COLUMNS])

    return main


def starts(kernel):
    """Whether the first product of an iteration has a predicate for accumulation."""
    calls = [x for x in kernel.source.splitlines() if re.match(r"\s+wgmma_m\w+\(", x)]
    assert calls
    return bool(re.search(r" == 0 \? 0 : 1\);$", calls[0]))


def fills(kernel):
    return bool(re.search(r"C_f\[.*\] = 0\.0f;", kernel.source))


def values(program, options, sizes, runtime="emulator", target=TARGET):
    (m, n, k), rng = sizes, np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, "float32")
    more = {"options": options, "runtime": runtime} if target != "cpu" else {}
    kernel = tile.compile(program, target, **more)
    kernel(a, b, c)
    return kernel, a, b, c


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("persistent", ["never", 3])
def test_forms(form, persistent):
    options, sizes = {"wgmma": "always", "persistent": persistent}, (100, 90, 80)
    program = around(sizes) if form == "a loop around" else product(form, sizes)
    kernel, *_, found = values(program, options, sizes)
    assert starts(kernel) == FORMS[form]
    assert fills(kernel) == (form not in ("filled with -0", "filled with ones") and not FORMS[form])
    np.testing.assert_array_equal(found, values(program, {}, sizes, target="cpu")[-1])


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("depth", [0, 1, 31, 32, 33, 160])
@pytest.mark.parametrize("options", [{}, {"tma": "never"}, {"persistent": "always"}], ids=str)
def test_loops_without_iterations_give_zeros(depth, options):
    sizes = (70, 66, depth)
    kernel, a, b, found = values(product(sizes=sizes, dynamic=True), {"wgmma": "always", **options}, sizes)
    assert starts(kernel)
    assert fills(kernel)
    np.testing.assert_array_equal(found, a.astype("float64") @ b.astype("float64").T)


def counted(sizes):
    """Read the trip count of each row of blocks from a tensor."""
    m, n, k = sizes

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), L: T.Tensor((m // ROWS,), "int32"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, COLUMNS), m // ROWS, threads=128) as (bx, by):
            A_s = T.alloc_shared((ROWS, STEP), "float16")
            B_s = T.alloc_shared((COLUMNS, STEP), "float16")
            C_f = T.alloc_fragment((ROWS, COLUMNS), "float32")
            T.clear(C_f)
            for t in T.Pipelined(L[by], num_stages=3):
                T.copy(A[by * ROWS, t * STEP], A_s)
                T.copy(B[bx * COLUMNS, t * STEP], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            T.copy(C_f, C[by * ROWS, bx * COLUMNS])

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("options", [{}, {"tma": "never"}, {"persistent": "always"}], ids=str)
def test_trip_counts_from_a_tensor(options):
    """Initialize accumulators where a trip count that is read behind the fill is known."""
    sizes, rng = (256, 66, 96), np.random.default_rng(8)
    m, n, k = sizes
    counts = np.array([3, 0, 1, 2], "int32")
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((m, k), (n, k)))
    found = np.full((m, n), np.nan, "float32")
    kernel = tile.compile(counted(sizes), TARGET, options={"wgmma": "always", **options}, runtime="emulator")
    kernel(a, b, counts, found)
    assert starts(kernel)
    assert fills(kernel)
    used = np.arange(k) < STEP * np.repeat(counts, ROWS)[:, None]
    np.testing.assert_array_equal(found, (a * used).astype("float64") @ b.astype("float64").T)


def drawn(strategy, examples):
    found = []

    @hypothesis.seed(3)
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategy)
    def draw(unit):
        found.append(unit.text())

    draw()
    return [text for text in found if "L[by]" in text and "T.clear(c)" in text]


@pytest.mark.sweep(2)
def test_the_fuzzer_draws_them():
    assert drawn(STRATEGIES["tall-products"][0], 200)
    texts = drawn(dense_products(counted=True), 60)
    made = [lowered(load(text), make_context(TARGET, {"wgmma": "always"})).text for text in texts]
    assert any(" ? 0 : 1);" in text for text in made)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 32, 97])
def test_registers_hold_nothing_before(stages, depth):
    sizes = (64, 130, depth)
    program = product(sizes=sizes, stages=stages)
    kernel, a, b, found = values(program, {"wgmma": "always", "persistent": "never"}, sizes)
    assert not fills(kernel) or not starts(kernel)
    np.testing.assert_array_equal(found, a.astype("float64") @ b.astype("float64").T)


@pytest.mark.sweep(0.25)
def test_a_product_that_adds_to_nothing_is_found(monkeypatch):
    """Report a product that accumulates on uninitialized registers."""
    monkeypatch.setattr(initialization, "with_start", lambda s, when: s)
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    sizes = (64, 64, 96)
    with pytest.raises(FaultFound, match="unwritten"):
        values(product(sizes=sizes), {"wgmma": "always", "persistent": "never"}, sizes)


def test_a_product_that_clears_first_is_asynchronous():
    kernel = tile.compile(product("cleared by the first product"), TARGET, options={"wgmma": "always"})
    assert "wgmma_wait_group_sync_aligned_1" in kernel.source
