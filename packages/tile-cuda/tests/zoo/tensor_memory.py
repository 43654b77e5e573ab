"""Kernels for Blackwell: tensor-memory accumulators, rows by number, and instructions of sm_120."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from zoo import programs
from zoo.case import Case, Wanted, example, from_example, poisoned
from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, INT8, NT, TF32, TT, Entry, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

#: Rows of a tile of tokens: those of an instruction.
ROWS = 128
GEMM, MOE, SPARSE, MXFP8, NVFP4 = "gemm_f16", "moe", "sp_f16", "mxfp8", "nvfp4"
TALL = (128, 64, 128)
_WAIT = r"\n +mbarrier_wait_parity\(&product_done[^;]*;"
_LOADS = r"(?:\n +tcgen05_ld_sync[^;]*;)+\n +tcgen05_wait_ld[^;]*;"
_ISSUE = r"\n +tcgen05_mma_cta_group_1_kind_f16\([^;]*;"


def moe_case(tokens: int, experts: int, K: int, N: int) -> Case:
    """Return the product of tokens gathered by expert, with row copies by TMA if possible."""
    moe, rng = example("moe"), np.random.default_rng(tokens)
    x, w = (rng.integers(-3, 4, s).astype("float16") for s in ((tokens, K), (experts, K, N)))
    choice = rng.integers(0, experts, tokens)
    rows, owner = moe.assign(choice, experts, ROWS)
    made = moe.grouped_matmul(tokens, experts, K, N, len(rows), "float16", ROWS, 32, 64)
    exact = np.einsum("tk,tkn->tn", x.astype("float64"), w[choice].astype("float64"))
    return Case(made, (x, w, rows, owner, poisoned((tokens, N), "float32")), (Wanted(4, exact, 0.0),))


MUTANTS: tuple[Mutant, ...] = (
    Mutant(GEMM, "no commit", r"\n +tcgen05_commit\w+\([^;]*;", ""),
    Mutant(GEMM, "no waits for products", _WAIT, ""),
    Mutant(GEMM, "no wait for products in the loop", _WAIT, "", 1),
    Mutant(GEMM, "no wait for products behind the loop", _WAIT, "", 2),
    Mutant(GEMM, "the wait behind the loop leaves one in flight", r"\(products \+ 1\) & 1\], \(\(products - 1",
           "products & 1], ((products - 2", 1),
    Mutant(GEMM, "always the first phase", r"(&product_done\[[^]]*\], )\(\(products[^;]*;", r"\g<1>0);"),
    Mutant(GEMM, "one barrier for all products", r"product_done\[[^]]*products[^]]*\]", "product_done[0]"),
    Mutant(GEMM, "products not counted", r"(products = \(int\)\(\(unsigned\)products \+) 1u", r"\1 0u"),
    Mutant(GEMM, "slots filled before the wait",
           r"(\n +mbarrier_wait_parity[^;]*products - 2[^;]*;)((?s:.*?)\n    }\n)", r"\2\1"),
    Mutant(GEMM, "accumulator leaves before the wait",
           rf"({_WAIT})((?:(?!mbarrier_wait_parity)(?s:.))*?)({_LOADS})", r"\3\1\2"),
    Mutant(SPARSE, "one set of metadata", r"\(unsigned\)\(products & 1\)", "0u"),
    Mutant(GEMM, "accumulator not cleared", r"\n +tcgen05_st_sync\w+\([^;]*;", "", 0),
    Mutant(GEMM, "one product less", _ISSUE, "", 1),
    Mutant(GEMM, "bytes of another box are announced", r"(arrive_expect_tx\w+\([^,]*, )(\d+)\)", r"\g<1>64)", 0),
    Mutant(GEMM, "the slot of another trip", r"(&A_shared_stages\[)slot( \* \d+\])", r"\1(slot + 1) % 3\2", 0),
    Mutant(MOE, "rows in another order", r"k \* 64, row, row_1, row_2,", "k * 64, row, row_2, row_1,"),
    Mutant(MOE, "no commit", r"\n +tcgen05_commit\w+\([^;]*;", ""),
    Mutant(MXFP8, "one set of scales", r"\(unsigned\)\(products & 1\)", "0u"),
    Mutant(MXFP8, "scales not copied", r"\n +tcgen05_cp_cta\w+\([^;]*;", ""),
    Mutant(MXFP8, "no scales", r"\n +tcgen05_st_sync\w+_u32\([^;]*;", ""),
    Mutant(NVFP4, "scales of another step", r"(tcgen05_mma_\w+4X\([^;]*\+ )68u", r"\g<1>64u", 0),
    Mutant(SPARSE, "no metadata", r"\n +tcgen05_st_sync\w+_u32\([^;]*;", ""),
    Mutant(SPARSE, "metadata of another step", r"(tcgen05_mma_sp\w+\([^;]*2u \+ )64u", r"\g<1>66u", 0),
)  # fmt: skip

TENSOR = Zoo(
    entries=(
        gemm("f16", 131, 72, 200, F16, block=(128, 64, 64), stages=3),
        gemm("f16_turned", 128, 64, 136, F16, block=(128, 64, 32), trans=TT, stages=2),
        gemm("bf16", 128, 40, 64, BF16, block=(128, 48, 64), trans=NT, stages=1),
        gemm("int8", 140, 48, 128, INT8, block=(128, 48, 64), trans=NT),
        gemm("fp8", 128, 32, 192, FP8, block=(128, 32, 128), trans=NT),
        gemm("tf32", 128, 36, 100, TF32, block=(128, 32, 32), trans=NT),
        gemm("two_tiles", 256, 64, 128, F16, block=(256, 64, 64)),
        gemm("wide", 131, 250, 72, F16, block=(128, 240, 32), trans=NT, stages=2),
        Entry(MOE, lambda: moe_case(150, 3, 128, 48)),
        Entry(SPARSE, lambda: programs.gemm_sp_case(130, 72, 192, "float16", False, (128, 64, 64))),
        Entry(MXFP8, lambda: programs.scaled_case(130, 72, 384, ("float8_e4m3fn", "float8_e8m0fnu"), 32, TALL)),
        Entry(NVFP4, lambda: programs.scaled_case(128, 64, 384, ("float4_e2m1fn", "float8_e4m3fn"), 16, TALL)),
        Entry(
            "mxfp4", lambda: programs.scaled_case(256, 32, 512, ("float4_e2m1fn", "float8_e8m0fnu"), 32, (256, 32, 256))
        ),
        Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(128, 64, 192, (128, 64, 64))),
        Entry("sp_f16_two_tiles", lambda: programs.gemm_sp_case(256, 64, 192, "float16", False, (256, 64, 64))),
    ),
    targets=("cuda:sm_100a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    needless={},
    golden=Path(__file__).parent / "golden_tensor_memory",
    suffix=".cu",
    kept=(GEMM, MOE, SPARSE, "gemm_fp8", "gemm_wide", MXFP8, NVFP4),
    options={"tcgen05": "always", "tma": "always", "persistent": "never"},
)

_ROLES = "gemm_f16"
#: Products that one thread issues, beside one that copies and those that write results.
ISSUED = Zoo(
    entries=(
        gemm("f16", 260, 136, 200, F16, block=(128, 64, 64), stages=3, trans=NT),
        gemm("f16_as_it_is", 131, 72, 136, F16, block=(128, 64, 32), stages=2),
        gemm("fp8", 128, 160, 256, FP8, block=(128, 32, 64), trans=NT, stages=4),
        gemm("wide", 256, 264, 72, F16, block=(128, 240, 32), trans=NT, stages=2),
    ),
    targets=("cuda:sm_100a",),
    dialect=TENSOR.dialect,
    orders=TENSOR.orders,
    mutants=(
        Mutant(_ROLES, "slots are never free", r"\n +tcgen05_commit\w+\(&k_free[^;]*;", ""),
        Mutant(_ROLES, "accumulator is never ready", r"\n +tcgen05_commit\w+\(&sums_ready[^;]*;", ""),
        Mutant(_ROLES, "accumulator is overwritten early", r"\n +mbarrier_wait_parity\(&sums_free[^;]*;", ""),
        Mutant(_ROLES, "slots are filled early", r"\n +mbarrier_wait_parity\(&k_free[^;]*;", ""),
    ),
    barrier=TENSOR.barrier,
    needless={},
    golden=Path(__file__).parent / "golden_mma_warp",
    suffix=".cu",
    kept=(_ROLES, "gemm_wide"),
    options={"tcgen05": "always", "persistent": 2},
)

#: Consumer cards have neither tensor memory nor warpgroups, and instructions for 8-bit floats.
SM_120 = Zoo(
    entries=(
        gemm("f16", 131, 72, 200, F16, block=(64, 64, 32), stages=3),
        gemm("fp8", 64, 32, 128, FP8, block=(64, 32, 64), trans=NT),
        Entry("attention", from_example("flash_attention", 1, 1, 64, 96, 32, True)),
        Entry("sp_f16", lambda: programs.gemm_sp_case(65, 72, 192, "float16", False)),
        Entry(MXFP8, lambda: programs.scaled_case(65, 40, 320, ("float8_e4m3fn", "float8_e8m0fnu"), 32, (64, 32, 128))),
        Entry(NVFP4, lambda: programs.scaled_case(64, 40, 384, ("float4_e2m1fn", "float8_e4m3fn"), 16, (64, 32, 128))),
    ),
    targets=("cuda:sm_120a",),
    dialect=TENSOR.dialect,
    orders=TENSOR.orders,
    mutants=(),
    barrier=TENSOR.barrier,
    needless={},
    golden=Path(__file__).parent / "golden_sm_120a",
    suffix=".cu",
    kept=("gemm_f16", "gemm_fp8", "attention", "sp_f16", MXFP8, NVFP4),
)
