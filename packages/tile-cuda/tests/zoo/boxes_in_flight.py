"""Asynchronous warpgroup products of box copies across iterations, with bulk epilogue stores.

And mistakes in their texts.
"""

from __future__ import annotations

from pathlib import Path

from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, INT8, NT, TF32, TN, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .warpgroups import in_flight

GEMM = "gemm_f16_boxes"
STAGED = "gemm_bf16_staged"
_STORE = r"cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group"
_BARRIER = r"\n *__syncthreads\(\);"
_FENCED = r"\n *fence_proxy_async_shared_cta\(\);"

MUTANTS: tuple[Mutant, ...] = (
    *in_flight(GEMM, r"\n    \}", "C_local"),
    Mutant(GEMM, "no wait for the phase", r"\n +mbarrier_wait_parity\([^;]*;", ""),
    Mutant(GEMM, "the phase before", r"(mbarrier_wait_parity\([^;]*), ([^,;]*)\);", r"\1, 1 - (\2));"),
    Mutant(GEMM, "the slot of the trip itself is filled", r"(slot_ahead = \(unsigned\)\(k \+) 2", r"\1 3"),
    # Results by way of shared memory
    Mutant(STAGED, "results without a fence of proxies", _FENCED, "", -1),
    Mutant(STAGED, "results without a barrier", rf"({_FENCED})\n *__syncthreads\(\);", r"\1", -1),
    Mutant(
        STAGED,
        "results over operands",
        rf"{_BARRIER}(\n *if \(tid == 0\) \{{\n *mbarrier_inval(?s:.*?)){_BARRIER}",
        r"\1",
    ),
    Mutant(
        STAGED,
        "results are not waited for",
        r"\n *if \(tid == 0\) \{\n *cp_async_bulk_wait_group_read_0\(\);\n *\}",
        "",
    ),
    Mutant(STAGED, "results without the swizzle", r"\^ \(i0\w* & 7\)", "^ 0"),
    Mutant(STAGED, "every thread stores", rf"if \(tid == 0\) (\{{\n *{_STORE})", r"\1"),
    Mutant(STAGED, "results of other rows", rf"({_STORE}[^;]*, [^,;]*)\);", r"\1 + 8);"),
    Mutant(STAGED, "a half of the results", rf"({_STORE}\(&C_\w+\[)0\]", r"\g<1>512]"),
)

BOXES_IN_FLIGHT = Zoo(
    entries=(
        gemm("f16_boxes", 130, 136, 200, F16, block=(128, 128, 32), threads=256, stages=3),
        gemm("f16_four_groups", 128, 256, 320, F16, block=(128, 256, 64), threads=512, stages=2),
        gemm("bf16_staged", 70, 72, 104, BF16, block=(64, 64, 32), threads=128, stages=2),
        gemm("bf16_two_stages", 64, 56, 168, BF16, block=(64, 64, 32), trans=TN, stages=2),
        gemm("int8_four_stages", 64, 48, 352, INT8, block=(64, 48, 64), trans=NT, stages=4),
        gemm("fp8_one_trip", 64, 32, 64, FP8, block=(64, 32, 64), trans=NT, kept=13),
        gemm("tf32_trips", 65, 40, 164, TF32, block=(64, 32, 32), trans=NT, stages=3),
        gemm("dynamic_trips", 67, 72, 216, F16, block=(64, 64, 32), dynamic=True, stages=3),
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    # The two behind the loop; one suffices: behind the last wait, and before results lie over operands.
    needless={GEMM: (-2, -3)},
    golden=Path(__file__).parent / "golden_boxes_in_flight",
    suffix=".cu",
    kept=(GEMM,),
    options={"wgmma": "always", "tma": "always", "numerics": "fast"},
)
