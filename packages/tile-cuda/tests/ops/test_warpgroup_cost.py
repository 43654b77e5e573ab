"""The estimate of products: measured cycles, and choices of ``wgmma="auto"``."""

from __future__ import annotations

from typing import cast

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_cuda.ops.atoms import Family
from tile_cuda.ops.product_cost import WAIT, estimate
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

from .test_gemm_wgmma import check, compiled, issued

F16, E4M3, SPARSE = (
    Family("float16", "float16", "float32", False),
    Family("float8_e4m3fn", "float8_e4m3fn", "float32", False),
    Family("float16", "float16", "float32", True),
)


class OneInstruction(WarpgroupPlan):
    """A plan of one instruction."""

    def __init__(self, family, columns, held):
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "held_a", held)
        object.__setattr__(self, "split", WarpPartition(1, 1, 1, columns // 8))
        object.__setattr__(self, "threads", 128)
        sizes = type("Sizes", (), {"m": 64, "n": columns, "k": self.step})
        object.__setattr__(self, "problem", cast(Problem, sizes))

    def shared(self, role):
        return not (role == 0 and self.held_a)


@pytest.mark.parametrize(
    ("family", "columns", "held", "cycles"),
    [
        (F16, 256, False, 128), (F16, 192, False, 96), (F16, 128, False, 64), (E4M3, 256, False, 128),
        (E4M3, 128, False, 64), (SPARSE, 256, False, 144), (SPARSE, 192, False, 112), (SPARSE, 128, False, 80),
        (SPARSE, 256, True, 128),
    ],
)  # fmt: skip
def test_cycles_of_an_instruction_match_measurements(family, columns, held, cycles):
    assert estimate(OneInstruction(family, columns, held)).warpgroups - WAIT == cycles


def test_large_products_are_chosen_and_explain_reports_reasons():
    kernel = compiled((128, 256, 64), (128, 256, 64), threads=256, stages=1, options={"wgmma": "auto"})
    assert issued(kernel) == ["wgmma_m64n256k16_f32_f16_f16_ss_tb"]
    assert "estimated 1056 cycles, on mma.sync 1707" in " ".join(kernel.explain().split())


@pytest.mark.sweep(0.25)
def test_narrow_products_are_not():
    kernel = check((64, 8, 64), (64, 8, 64), turned=(False, True), stages=1, options={"wgmma": "auto"})
    assert not issued(kernel)
    assert "mma_sync" in kernel.source
    assert "it is not faster: estimated" in " ".join(kernel.explain().split())
    forced = check((64, 8, 64), (64, 8, 64), turned=(False, True), stages=1, options={"wgmma": "always"})
    assert issued(forced) == ["wgmma_m64n8k16_f32_f16_f16_ss"]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("sizes", "threads", "warpgroups"),
    [
        ((64, 32, 64), 128, True),  # 0.2415 ms of an attention with such scores, 0.2945 on warps
        ((64, 32, 128), 128, True),  # 0.5876, 0.7700
        ((128, 32, 64), 128, True),  # 0.2547, 0.7110; of a product alone 0.57, 0.53
        ((64, 64, 64), 256, True),  # 0.4560, 0.6572
        ((64, 64, 128), 256, True),  # 0.4482, 0.6257
        ((128, 32, 32), 128, False),  # 0.8079, 0.6706
    ],
)
def test_small_products_run_where_they_were_faster(sizes, threads, warpgroups):
    kernel = compiled(sizes, sizes, threads=threads, stages=1, options={"wgmma": "auto"})
    assert bool(issued(kernel)) == warpgroups


def test_an_explicit_call_is_not_estimated():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((16, 64), "float16"), C: T.Tensor((64, 16), "float32")):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 64), "float16"), T.alloc_shared((16, 64), "float16")
            C_l = T.alloc_fragment((64, 16), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.wgmma_gemm(A_s, B_s, C_l, transpose_B=True, policy=GemmWarpPolicy.FullRow, clear_accum=True)
            T.copy(C_l, C)

    source = tile.compile(main, "cuda:sm_90a", options={"wgmma": "auto"}, runtime="emulator").source
    assert "wgmma_m64n16k16" in source
