"""Operands of products filled or emptied by other ops: instructions read the layout's rows.

Two products cannot read rows of 128 bytes: the product of two warpgroups that divide 192 columns, where the second
half begins at byte 192, and the product of 320 columns in tensor memory, by two instructions of 160 columns.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantRefused
from tile_core.layout import make_swizzled_layout
from tile_cuda.ops.boxes import panels

ALWAYS = {"wgmma": "always", "tcgen05": "always", "tma": "always"}
#: M, N, k, threads, and the instruction, by target.
PRODUCTS = {
    "cuda:sm_90a": (64, 192, 32, 256, "wgmma_m64n96k16_f32_f16_f16_ss_tb"),
    "cuda:sm_100a": (128, 320, 16, 128, "tcgen05_mma_cta_group_1_kind_f16"),
}
#: What moves the operand, and the words of its instruction.
WAYS = {
    "copy": "cp_async_bulk_tensor_2d_shared_cluster",
    "tma_copy": "cp_async_bulk_tensor_2d_shared_cluster",
    "slots": "cp_async_bulk_tensor_2d_shared_cluster",
    "loop": "cp_async_bulk_tensor_2d_shared_cluster",
    "gather": "gather4",
    "store": "cp_async_bulk_tensor_2d_global",
    "update": "cp_reduce_async_bulk_tensor_2d_global",
    "scatter": "scatter4",
}
OF_ROWS = ("gather", "scatter")


def program(way: str, m: int, n: int, k: int, threads: int, layout=None):
    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), R: T.Tensor((k,), "int32"),
             Out: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):  # fmt: skip
        with T.Kernel(1, threads=threads):
            A_s = T.alloc_shared((m, k), "float16")
            slots = T.alloc_shared((2, k, n) if way == "slots" else (k, n), "float16")
            if layout is not None:
                T.annotate_layout({slots: layout})
            B_s = slots[1, :, :] if way == "slots" else slots
            C_l = T.alloc_fragment((m, n), "float32")
            T.clear(C_l)
            T.copy(A, A_s)
            if way == "loop":
                for _ in T.Pipelined(2, num_stages=2):
                    T.copy(B, B_s)
                    T.gemm(A_s, B_s, C_l, policy=T.GemmWarpPolicy.FullCol)
            else:
                if way in ("copy", "slots"):
                    T.copy(B, B_s)
                elif way == "tma_copy":
                    T.tma_copy(B, B_s)
                elif way == "gather":
                    T.gather(B, R, B_s)
                else:
                    for i, j in T.Parallel(k, n):
                        B_s[i, j] = B[i, j]
                if way == "store":
                    T.copy(B_s, Out)
                elif way == "update":
                    T.atomic_add(Out, B_s)
                elif way == "scatter":
                    T.scatter(B_s, Out, list(range(k)))
                T.gemm(A_s, B_s, C_l, policy=T.GemmWarpPolicy.FullCol)
            T.copy(C_l, C)

    return main


def called(kernel) -> list[str]:
    text = kernel.source
    return re.findall(r"  (\w+)\(", text[text.index('extern "C"') :])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", PRODUCTS)
def test_producers_of_an_operand_use_the_rows_of_its_product(target, way):
    m, n, k, threads, expected = PRODUCTS[target]
    kernel = tile.compile(program(way, m, n, k, threads), target, runtime="emulator", options=ALWAYS)
    names = called(kernel)
    assert expected in {name.removesuffix("_new") for name in names}, kernel.explain()
    assert not any(name.startswith("mma_sync") for name in names)
    if target != "cuda:sm_90a" or way not in OF_ROWS:
        assert any(WAYS[way] in name for name in names), kernel.explain()
    rng = np.random.default_rng()
    a, b = rng.integers(-3, 4, (m, k)).astype("float16"), rng.integers(-3, 4, (k, n)).astype("float16")
    r, o, c = rng.integers(0, k, k).astype("int32"), np.ones((k, n), "float16"), np.full((m, n), np.nan, "float32")
    kernel(a, b, r, o, c)
    given = b[r] if way == "gather" else b
    assert np.array_equal(c, a.astype("float32") @ given.astype("float32") * (2 if way == "loop" else 1))
    assert np.array_equal(o, {"store": b, "scatter": b, "update": b + 1}.get(way, np.ones_like(o)))


def test_operands_copied_between_blocks_have_equal_layouts():
    """Read this block's box copies in the other block's product."""
    m, n, k, threads, expected = PRODUCTS["cuda:sm_90a"]

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((2, k, n), "float16"), C: T.Tensor((2, m, n), "float32")):
        with T.ClusterKernel(2, cluster_dims=2, threads=threads) as bx:
            A_s, S, B_s = (T.alloc_shared(s, "float16") for s in ((m, k), (k, n), (k, n)))
            C_l = T.alloc_fragment((m, n), "float32")
            got = T.alloc_cluster_barrier(1)
            T.clear(C_l)
            T.copy(A, A_s)
            T.copy(B[bx, :, :], S)
            T.copy_cluster(S, B_s, dst_block=1 - T.block_rank_in_cluster(), remote_barrier=got)
            T.mbarrier_wait_parity(got, 0)
            T.gemm(A_s, B_s, C_l, policy=T.GemmWarpPolicy.FullCol)
            T.copy(C_l, C[bx, :, :])

    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options=ALWAYS)
    assert expected in {name.removesuffix("_new") for name in called(kernel)}, kernel.explain()
    rng = np.random.default_rng()
    a, b = rng.integers(-3, 4, (m, k)).astype("float16"), rng.integers(-3, 4, (2, k, n)).astype("float16")
    c = np.full((2, m, n), np.nan, "float32")
    kernel(a, b, c)
    assert np.array_equal(c, a.astype("float32") @ b[::-1].astype("float32"))


@pytest.mark.parametrize("policies", [(1, 2), (2, 1)])
def test_products_of_one_tile_agree_on_its_rows(policies):
    """Choose rows that both products can read: one alone could read 128 bytes."""
    _, n, k, threads, _ = PRODUCTS["cuda:sm_90a"]

    @T.prim_func
    def main(A: T.Tensor((128, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((2, 128, n), "float32")):
        with T.Kernel(1, threads=threads):
            A_s, B_s = T.alloc_shared((128, k), "float16"), T.alloc_shared((k, n), "float16")
            T.copy(A, A_s)
            T.copy(B, B_s)
            for i, policy in enumerate(policies):
                C_l = T.alloc_fragment((128, n), "float32")
                T.gemm(A_s, B_s, C_l, policy=T.GemmWarpPolicy(policy), clear_accum=True)
                T.copy(C_l, C[i, :, :])

    kernel = tile.compile(main, "cuda:sm_90a", options={"wgmma": "always"})
    names = {name.removesuffix("_new") for name in called(kernel)}
    assert {"wgmma_m64n96k16_f32_f16_f16_ss_tb", "wgmma_m64n192k16_f32_f16_f16_ss_tb"} <= names, kernel.explain()


def test_a_layout_of_the_users_is_obeyed():
    m, n, k, threads, expected = PRODUCTS["cuda:sm_90a"]
    made = program("copy", m, n, k, threads, make_swizzled_layout((k, n), 16, 128))
    kernel = tile.compile(made, "cuda:sm_90a", options=ALWAYS)
    assert any(WAYS["copy"] in name for name in called(kernel))
    assert expected not in kernel.source
    assert "which an instruction's columns from 96 on would cross" in " ".join(kernel.explain().split())


def test_a_copy_without_such_rows_needs_a_request_for_boxes():
    """Refuse 18 boxes: instructions of 144 of 288 columns read rows of 32 bytes."""
    how = {"m": 128, "n": 288, "k": 16, "threads": 128}
    kernel = tile.compile(program("copy", **how), "cuda:sm_100a", options=ALWAYS)
    assert PRODUCTS["cuda:sm_100a"][-1] in called(kernel)
    report = " ".join(re.sub(r"[│|]", " ", kernel.explain()).split())
    assert "with swizzles of 32 bytes, which the products that read the tile take" in report, report
    with pytest.raises(VariantRefused, match="rows of 64 bytes, which an instruction's columns from 144 on would"):
        tile.compile(program("tma_copy", **how), "cuda:sm_100a", options=ALWAYS)


def test_rows_are_chosen_only_from_candidates():
    asked = [panel.swizzle for panel in panels((64, 64), (64, 64), "float16", None, (64, 32, 0))]
    assert asked == [64, 32, 0]


def test_stores_of_matrices_make_an_operand():
    """Store float16 accumulators by matrices as an operand of another product."""
    _, n, _, threads, expected = PRODUCTS["cuda:sm_90a"]

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, n), "float16"), C: T.Tensor((64, n), "float32")):
        with T.Kernel(1, threads=threads):
            A_s, B_s, P_s = (T.alloc_shared(s, "float16") for s in ((64, 64), (64, n), (64, n)))
            C_l, D_l = (T.alloc_fragment((64, n), "float32") for _ in range(2))
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.gemm(A_s, B_s, C_l, clear_accum=True)
            T.copy(C_l, P_s)
            T.gemm(A_s, P_s, D_l, policy=T.GemmWarpPolicy.FullCol, clear_accum=True)
            T.copy(D_l, C)

    kernel = tile.compile(main, "cuda:sm_90a", options={**ALWAYS, "stmatrix": "always"})
    names = [name.removesuffix("_new") for name in called(kernel)]
    assert names.count(expected) == 2 * 64 // 16, kernel.explain()
    assert any(name.startswith("stmatrix") for name in names)
