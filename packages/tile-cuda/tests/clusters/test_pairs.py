"""Products of block pairs: explicit, by option, refused, and right."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantRefused
from tile_core.errors.ops import BadAttribute
from tile_core.reports import report_json

from .test_multicast_loops import gemm

TARGET = "cuda:sm_100a"
PAIRS = {"tcgen05": "always", "tma": "always", "clusters": "pairs"}
BULK = {"tma": "always"}


def said(program, options=PAIRS, target=TARGET):
    (loop,) = report_json(program, target, options=options)["block"]["loops"]
    return " ".join(str(loop["notes"]).split())


def asked(m, n, k, *, block=(128, 64, 64), group=2, twice=False, where="loop", cluster=None):
    bm, bn, bk = block

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32")):
        grid = T.ceildiv(n, bn), T.ceildiv(m, bm)
        launch = (
            T.Kernel(*grid, threads=128)
            if cluster is None
            else T.ClusterKernel(*grid, cluster_dims=cluster, threads=128)
        )
        with launch as (bx, by):
            A_s, B_s = T.alloc_shared((bm, bk), "float16"), T.alloc_shared((bn, bk), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_l)
            if where == "loop":
                for t in T.Pipelined(T.ceildiv(k, bk), num_stages=3):
                    T.copy(A[by * bm, t * bk], A_s)
                    T.copy(B[bx * bn, t * bk], B_s)
                    T.tcgen05_gemm(A_s, B_s, C_l, transpose_B=True, cta_group=group)
                    if twice:
                        T.tcgen05_gemm(A_s, B_s, C_l, transpose_B=True)
            else:
                T.copy(A[by * bm, 0], A_s)
                T.copy(B[bx * bn, 0], B_s)
                T.tcgen05_gemm(A_s, B_s, C_l, transpose_B=True, cta_group=group)
            T.copy(C_l, C[by * bm, bx * bn])

    return main


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("sizes", "block"),
    [((256, 128, 256), (128, 64, 64)), ((250, 60, 200), (128, 64, 64)), ((512, 64, 64), (128, 32, 32)),
     ((500, 96, 96), (256, 96, 32)), ((130, 256, 64), (128, 256, 32))],
)  # fmt: skip
def test_explicit_pairs_are_right(sizes, block):
    (m, n, k), rng = sizes, np.random.default_rng()
    kernel = tile.compile(asked(m, n, k, block=block), TARGET, runtime="emulator", options=BULK)
    assert "tcgen05_mma_cta_group_2_kind_f16(" in kernel.source
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((m, k), (n, k)))
    c = np.full((m, n), 85, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.T.astype("float32"))


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ({"m": 384}, "3 blocks along an axis of the grid are not a multiple of 2"),
        ({"m": 128}, "no neighboring blocks provably copy the same part of B"),
        ({"block": (128, 48, 64)}, "pairs of blocks have no 128 x 48 accumulator: rows are a multiple of 128"),
        ({"twice": True}, "its block has other products"),
        ({"where": "alone"}, "it is not in a pipelined loop"),
        ({"cluster": (1, 2)}, "the program sets the clusters itself; launch them with T.Kernel"),
        ({"k": 64}, "its loop is not pipelined: it has 1 iterations; it needs two stages and two iterations at least"),
    ],
)
def test_rejection_reasons_of_pairs(how, rule):
    sizes = {"m": 256, "n": 96, "k": 256, **how}
    with pytest.raises(VariantRefused, match="no pair of blocks computes it") as caught:
        tile.compile(asked(**sizes), TARGET, runtime="emulator", options=BULK)
    assert rule in str(caught.value)
    assert "it has to be the only product" not in str(caught.value)


def test_groups_are_one_or_two():
    with pytest.raises(BadAttribute, match="cta_group"):
        asked(256, 64, 64, group=3)
    kernel = tile.compile(
        asked(256, 64, 256, group=1), TARGET, runtime="emulator", options={**BULK, "clusters": "never"}
    )
    assert "cta_group_2" not in kernel.source


def test_the_report_names_the_operand_of_pairs():
    """Report the operand shared by pairs: only B has to be the same."""
    said_of = said(diagonal())
    assert "provably copy the same part of B" in said_of
    assert "the same part of A" not in said_of
    both = said(diagonal(), {**PAIRS, "clusters": "always", "persistent": "never"})
    assert "the same part of A" in both


def diagonal():
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float16"), B: T.Tensor((128, 256), "float16"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            A_s, B_s = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((128, 64), "float32")
            T.clear(C_l)
            for t in T.Pipelined(4, num_stages=3):
                T.copy(A[bx * 128, t * 64], A_s)
                T.copy(B[bx * 64, t * 64], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.copy(C_l, C[bx * 128, 0])

    return main


@pytest.mark.sweep(1)
def test_the_report_names_the_rule():
    assert "pairs of blocks compute a product together; each loads half of the columns of B_s" in said(
        gemm((256, 256, 256), (128, 128, 64))
    )
    for block, sizes, rule in (
        (
            (128, 208, 64),
            (256, 416, 256),
            "no 128 x 208 accumulator: rows are a multiple of 128, columns of 32",
        ),
        ((128, 128, 64), (128, 256, 256), "no two adjacent blocks copy the same part of B_s"),
        ((128, 128, 64), (384, 384, 256), "3 blocks along an axis of the grid are not a multiple of 2"),
    ):
        assert rule in said(gemm(sizes, block))
    hopper = said(gemm((256, 256, 256), (128, 128, 64)), {"wgmma": "always", "clusters": "pairs"}, "cuda:sm_90a")
    assert "pairs of blocks compute products on tcgen05 only" in hopper


def test_the_variant_reports_missing_device_recordings():
    ops = report_json(gemm((256, 256, 256), (128, 128, 64)), TARGET, options=PAIRS)["ops"]
    (found,) = [op for op in ops if op["op"] == "gemm"]
    assert "256 rows: half of these and half of the columns of B in each of two blocks" in found["note"]
    assert "uncalibrated" in found["note"]


@pytest.mark.parametrize("group", [1, 2])
def test_products_of_64_rows_are_refused_by_name(group):
    with pytest.raises(VariantRefused, match=r"(?s)cuda\.tcgen05.*128"):
        tile.compile(asked(128, 64, 256, block=(64, 64, 64), group=group), TARGET, runtime="emulator", options=BULK)
