"""Products of block pairs (``cta_group::2``), and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, INT8, NT, TF32, TT, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

GEMM = "gemm_f16_pair"
_MEETING = r"\n *barrier_cluster_arrive_release\(\);\n *barrier_cluster_wait_acquire\(\);"
_READY = r"\n *mbarrier_wait_parity_of_cluster\(&operands_ready\[[^;]*;"
_ARRIVAL = r"\n *mbarrier_arrive_release_cluster\w+\(&operands_ready\[[^;]*;"
_COMMIT = r"\n *tcgen05_commit_cta_group_2\w+\([^;]*;"
_DONE = r"\n *mbarrier_wait_parity\(&product_done[^;]*;"
_PARITY = r"(operands_ready\[products & 1\], )products >> 1"
_EARLY = rf"(\n *__syncthreads\(\);\n *if \(tid == 0\) \{{)({_ARRIVAL})"
_FIRST = r"if \(\(by & 1\) == 0\)"


def _of_one(name: str) -> tuple[str, str]:
    return rf"tcgen05\.{name}\.cta_group::2", f"tcgen05.{name}.cta_group::1"


MUTANTS: tuple[Mutant, ...] = (
    # Tensor memory
    Mutant(GEMM, "it is allocated before the blocks meet", _MEETING, "", 0),
    Mutant(GEMM, "it is freed before the blocks meet", _MEETING, "", 1),
    Mutant(GEMM, "it is not freed", r"\n *tcgen05_dealloc_cta_group_2\w+\([^;]*;", ""),
    Mutant(GEMM, "fewer columns are freed", r"(tcgen05_dealloc_cta_group_2\w+\([^;]*), 32\)", r"\1, 64)"),
    Mutant(GEMM, "it is allocated for a block of its own", *_of_one("alloc")),
    Mutant(GEMM, "it is freed for a block of its own", *_of_one("dealloc")),
    Mutant(GEMM, "products of a block of its own", *_of_one("mma")),
    # Who issues
    Mutant(GEMM, "the second block issues", _FIRST, "if ((by & 1) == 1)", -1),
    Mutant(GEMM, "both blocks issue", _FIRST, "if (true)", -1),
    Mutant(GEMM, "no thread issues", _FIRST, "if (false)", -1),
    Mutant(GEMM, "no wait for the operands of the other block", _READY, ""),
    Mutant(GEMM, "the other parity of operands", _PARITY, r"\1products >> 1 ^ 1"),
    Mutant(GEMM, "no arrival for operands", _ARRIVAL, ""),
    Mutant(GEMM, "each block says it to itself", r"(&operands_ready\[products & 1\]), 0\)", r"\1, by & 1)"),
    Mutant(GEMM, "one arrival is enough", r"(mbarrier_init\w+\(&operands_ready\[\d\], )2", r"\g<1>1"),
    Mutant(GEMM, "it is said before the operands are there", _EARLY, r"\2\1"),
    # Recipients of the commit
    Mutant(GEMM, "no commit", _COMMIT, ""),
    Mutant(GEMM, "only the first block is signaled", r"(commit_cta_group_2\w+\([^;]*), 3\)", r"\1, 1)"),
    Mutant(GEMM, "only the second block is signaled", r"(commit_cta_group_2\w+\([^;]*), 3\)", r"\1, 2)"),
    Mutant(GEMM, "a missing block is signaled", r"(commit_cta_group_2\w+\([^;]*), 3\)", r"\1, 7)"),
    Mutant(GEMM, "no wait for products in the loop", _DONE, "", 1),
    Mutant(GEMM, "no wait for products behind the loop", _DONE, "", 2),
    # Operands
    Mutant(GEMM, "both have the first half of B", r"\(by & 1\) \* \d+", "0"),
    Mutant(GEMM, "halves of B are exchanged", r"\(by & 1\) \* (\d+)", r"(by + 1 & 1) * \1"),
    Mutant(GEMM, "the bytes of all of B", r"(expect_tx_\w+\(&k_arrived\[slot_ahead\], )\d+", r"\g<1>12288"),
    Mutant(GEMM, "128 rows", r"(tcgen05_mma_cta_group_2\w+\([^;]*, )(\d+)u, ", r"\1(\2u - 0x8000000u), "),
    Mutant(GEMM, "half of the columns", r"(tcgen05_mma_cta_group_2\w+\([^;]*, )(\d+)u, ", r"\1(\2u - 0x80000u), "),
)  # fmt: skip

PAIRS = Zoo(
    entries=(
        gemm("f16_pair", 256, 64, 160, F16, block=(128, 32, 32), stages=3, trans=NT, threads=128),
        gemm("f16_rows_of_n", 250, 120, 96, F16, block=(128, 64, 32), stages=2, threads=128),
        gemm("f16_both_turned", 250, 200, 64, F16, block=(128, 128, 32), stages=2, trans=TT, threads=128),
        gemm("bf16_two_tiles", 512, 192, 96, BF16, block=(256, 96, 32), stages=4, trans=NT, threads=128),
        gemm("tf32", 256, 100, 64, TF32, block=(128, 64, 32), stages=2, trans=NT, threads=128),
        gemm("fp8", 250, 128, 192, FP8, block=(128, 64, 64), stages=2, trans=NT, threads=128),
        gemm("int8", 250, 96, 192, INT8, block=(128, 64, 64), stages=2, trans=NT, threads=128),
    ),
    targets=("cuda:sm_100a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=_MEETING,
    needless={GEMM: ()},
    golden=Path(__file__).parent / "golden_pairs",
    suffix=".cu",
    kept=(GEMM,),
    options={"tcgen05": "always", "tma": "always", "clusters": "pairs"},
)
