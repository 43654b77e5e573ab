"""``T.alloc_tmem``, and products that arrive at a barrier of the program."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.lowering import VariantMissing, VariantRefused

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"


def program(kind="tcgen05", arrivals=1, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((128, 64), dtype)):
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 64), "float16")
            acc, F = T.alloc_tmem((128, 64), dtype), T.alloc_fragment((128, 64), dtype)
            done = T.alloc_barrier(arrivals)
            if kind == "none":
                T.clear(acc)
            for k in range(4):
                T.copy(A[0, k * 64], S)
                T.copy(B[k * 64, 0], R)
                if kind == "tcgen05":
                    T.tcgen05_gemm(S, R, acc, clear_accum=k == 0, mbar=done)
                    T.mbarrier_wait_parity(done, k % 2)
                elif kind == "option":
                    T.gemm(S, R, acc, clear_accum=k == 0)
            T.copy(acc, F)
            T.copy(F, C)

    return main


def run(made, options=None):
    kernel = tile.compile(made, TARGET, runtime="emulator", options=options)
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((128, 256), (256, 64)))
    c = np.full((128, 64), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))
    return kernel


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("kind", "options"), [("tcgen05", None), ("option", {"tcgen05": "always"})])
def test_accumulators_are_resident(kind, options):
    kernel = run(program(kind), options)
    inside = kernel.source.split("for (int k = ")[1].split("\n  }\n")[0]
    assert "tcgen05_mma" in inside
    assert "tcgen05_ld_sync" not in inside
    assert "tcgen05_st_sync" not in inside
    assert "mbarrier_arrive_shared_cta_b64" not in inside
    assert ("arrive_one_shared_cluster_b64(&done[0])" in inside) == (kind == "tcgen05")
    assert "columns 0 to 63 of tensor memory" in " ".join(kernel.explain().split())
    assert assemble(kernel.source, "sm_100a") == ""


def test_it_means_a_fragment():
    kernel = run(program())
    a, b = np.ones((128, 256), "float16"), np.ones((256, 64), "float16")
    kernel.verify(a, b, np.zeros((128, 64), "float32"))


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_120a", "cpu"])
def test_other_targets_have_none(target):
    with pytest.raises(VariantMissing, match=r"cuda\.tcgen05"):
        tile.compile(program(), target)


@pytest.mark.parametrize(
    ("kind", "options", "dtype", "reason"),
    [
        ("none", None, "float32", "no tcgen05 product accumulates into acc"),
        ("option", {"tcgen05": "never"}, "float32", "no tcgen05 product accumulates into acc"),
        ("option", {"tcgen05": "always"}, "float16", "acc has float16 elements, the accumulator has float32"),
    ],
)
def test_nonresident_accumulators_are_refused(kind, options, dtype, reason):
    with pytest.raises(VariantRefused, match=reason):
        tile.compile(program(kind, dtype=dtype), TARGET, runtime="emulator", options=options)


def alone(m=128, n=64, k=64, threads=128, kind="forced", held=False):
    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32"), x: T.int32
    ):
        with T.Kernel(1, threads=threads):
            S, R = T.alloc_shared((m, k), "float16"), T.alloc_shared((n, k), "float16")
            P, acc = T.alloc_fragment((m, k), "float16"), T.alloc_tmem((m, n), "float32")
            T.copy(A, S)
            T.copy(A, P)
            T.copy(B, R)
            T.clear(acc)
            if kind == "branch":
                if T.get_thread_binding(0) < x:
                    T.tcgen05_gemm(S, R, acc, transpose_B=True)
            elif kind == "plain":
                T.gemm(S, R, acc, transpose_B=True)
            else:
                T.tcgen05_gemm(P if held else S, R, acc, transpose_B=True)
            T.copy(acc, C)

    return main


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"threads": 256}, "256 threads execute it; blocks of 128 move accumulators"),
        ({"m": 64}, "M=64 is not a multiple of the atom 128; nearest legal: 128"),
        ({"k": 24}, "K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"),
        ({"n": 272, "k": 16}, "272 columns are not a multiple of 32, as more than 256 have to be: 256 and 288 are"),
        ({"n": 208, "k": 320, "held": True},
         "it needs 208 accumulator columns and two sets of 160 of A; tensor memory has 512"),
        ({"kind": "plain"}, 'T.tcgen05_gemm and its siblings do, and others with the option tcgen05="always"'),
    ],
)  # fmt: skip
def test_the_demand_reports_the_rejection_reason(how, reason):
    with pytest.raises(VariantRefused) as caught:
        tile.compile(alone(**how), TARGET, runtime="emulator")
    said = str(caught.value)
    assert "no tcgen05 product accumulates into acc: " in said
    assert reason in said
    assert ("in line " in said) == (how != {"kind": "plain"})


def many(columns):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((len(columns), 128, 208), "float32")):
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((208, 64), "float16")
            acc = [T.alloc_tmem((128, n), "float32") for n in columns]
            T.copy(A, S)
            T.clear(R)
            for n, one in zip(columns, acc, strict=True):
                T.tcgen05_gemm(S, R[0:n, :], one, transpose_B=True, clear_accum=True)
            for i, (n, one) in enumerate(zip(columns, acc, strict=True)):
                T.copy(one, C[i, 0:128, 0:n])

    return main


def test_the_columns_of_a_block_are_counted():
    kernel = tile.compile(many((208, 208, 96)), TARGET, runtime="emulator")
    assert "shared_cta_b32(&tensor_columns[0], 512)" in kernel.source
    with pytest.raises(VariantRefused, match="the block needs 528 accumulator columns; tensor memory has 512"):
        tile.compile(many((208, 208, 112)), TARGET, runtime="emulator")


def test_a_fallback_of_the_product_misses_the_demand():
    """Find B's inexpressible descriptor offset in lowering only."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((72, 64), "float16"), C: T.Tensor((128, 64), "float32"),
             n: T.int32):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((72, 64), "float16")
            acc = T.alloc_tmem((128, 64), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.gemm(S, R[n : n + 64, :], acc, transpose_B=True, clear_accum=True)
            T.copy(acc, C)

    with pytest.raises(VariantRefused, match="the last product that adds to acc has no accumulator in tensor memory"):
        tile.compile(main, TARGET, runtime="emulator", options={"tcgen05": "always"})


def test_arrivals_at_a_barrier_balance():
    with pytest.raises(TileError) as caught:
        tile.compile(program(arrivals=128), TARGET, runtime="emulator")
    assert caught.value.code == "K233"
