"""Persistent products with a producer warp, and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo import programs
from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, NT, Entry, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

GEMM, GROUPED = "gemm_f16_tiles", "grouped"
_FREE = r"(mbarrier_wait_parity\(&k_free\[slot\], )([^;]*)\);"
_FULL = r"(mbarrier_wait_parity\(&k_arrived\[slot_1\], )([^;]*)\);"
_LATE = r"\n *if \(k > 0\) \{\n *if \(\(number & 31\) == 0\) \{\n *mbarrier_arrive_shared_cta_b64[^;]*;\n *\}\n *\}"
_LAST = r"\n *if \(\(number & 31\) == 0\) \{\n *mbarrier_arrive_shared_cta_b64[^;]*;\n *\}"
_PRODUCT = r"wgmma_wait_group_sync_aligned_1\(\);"

MUTANTS: tuple[Mutant, ...] = (
    # The thread that copies
    Mutant(GEMM, "no wait for a free slot", r"\n *mbarrier_wait_parity\(&k_free\[slot\][^;]*;", ""),
    Mutant(GEMM, "the other parity of free slots", _FREE, r"\1(\2) ^ 1);"),
    Mutant(GEMM, "parities of free slots begin anew", r"(&k_free\[slot\], \([^;]*?)turn \* \d+ \+ ", r"\1"),
    Mutant(GEMM, "the slot of another trip", r"(const int slot = [^;]*?\+ k_ahead)", r"\1 + 1"),
    Mutant(GEMM, "the copies of the tile before", r"(const int tile = worker \+) turn", r"\1 max(turn - 1, 0)"),
    Mutant(GEMM, "a tile that another block has", r"(const int tile_1 =) worker", r"\1 (worker + 1) % 3"),
    Mutant(GEMM, "a tile is left out", r"turn_1 = 0; turn_1 <", "turn_1 = 0; turn_1 + 1 <"),
    Mutant(GEMM, "a tile is not copied", r"turn = 0; turn <", "turn = 0; turn + 1 <"),
    Mutant(GEMM, "every thread of the warp copies", r"if \((tid ==|warp == 4 &&) [^\n]*", "if (tid >= 128) {", 1),
    Mutant(GEMM, "too few bytes announced", r"(expect_tx_\w+\(&k_arrived\[slot\], )\d+", r"\g<1>2048"),
    # The others
    Mutant(GEMM, "no wait for a full slot", r"\n *mbarrier_wait_parity\(&k_arrived\[slot_1\][^;]*;", ""),
    Mutant(GEMM, "the other parity of full slots", _FULL, r"\1(\2) ^ 1);"),
    Mutant(GEMM, "parities of full slots begin anew", r"(&k_arrived\[slot_1\], [^;]*?)turn_1 \* \d+ \+ ", r"\1"),
    Mutant(GEMM, "slots begin anew", r"(const int slot_1 = \(?[^;]*?)turn_1 \* \d+ \+ ", r"\1"),
    Mutant(GEMM, "slots are never free", _LATE, "", 0),
    Mutant(GEMM, "the last slot is never free", _LAST, "", -1),
    Mutant(GEMM, "a slot is free before its product has ended", rf"({_PRODUCT})({_LATE})", r"\2\1"),
    Mutant(GEMM, "two products in flight", r"(wgmma\.wait_group\.sync\.aligned) 1", r"\1 2"),
    Mutant(GEMM, "another slot is free", r"(\(k > 0\) \{\n[^\n]*\n *mbarrier_arrive\w+\(&k_free\[)", r"\1 1 +"),
    Mutant(GEMM, "every lane says so", r"if \(\(number & 31\) == 0\)", "if (true)"),
    Mutant(GEMM, "fewer say so", r"(mbarrier_init_\w+\(&k_free\[0\], )4", r"\g<1>3"),
    Mutant(GEMM, "accumulator of the tile before", r", k == 0 \? 0 : 1\);", ", 1);"),
    Mutant(GEMM, "accumulator read before the last wait", r"\n *wgmma_wait_group_sync_aligned_0\(\);", "", -1),
    # Loops that some tiles do not execute
    Mutant(GROUPED, "the producer counts anew", r"\n *t_copied = [^0][^;]*;", ""),
    Mutant(GROUPED, "the others count anew", r"\n *t_computed = [^0][^;]*;", ""),
    Mutant(GROUPED, "each tile of the producer counts anew", r"(t_copied_first =) [^;]*;", r"\1 0;"),
    Mutant(GROUPED, "tiles without rows are copied", r"if \(first_1 < end_1\)", "if (true)"),
    Mutant(GROUPED, "rows of another group", r"if \(\(int\)\(\(unsigned\)first [^{]*?< end\)", "if (true)"),
    Mutant(GROUPED, "the last slot is never free", _LAST, "", -1),
    # Objects
    Mutant(GEMM, "no barrier behind the initialisation", r"(fence_mbarrier_init\w+\(\);)\n *__syncthreads\(\);", r"\1"),
    Mutant(GEMM, "a slot without its object", r"\n *mbarrier_init_\w+\(&k_free\[1\], 4\);", ""),
)  # fmt: skip

PERSISTENT = Zoo(
    entries=(
        gemm("f16_tiles", 200, 136, 160, F16, block=(64, 64, 32), stages=3, trans=NT),
        gemm("f16_two_groups", 260, 136, 96, F16, block=(128, 64, 32), threads=256, stages=2),
        gemm("bf16_four_stages", 130, 264, 224, BF16, block=(64, 64, 32), stages=4, trans=NT),
        gemm("fp8", 136, 136, 192, FP8, block=(64, 64, 64), trans=NT, stages=2, kept=13),
        gemm("halves", 200, 136, 128, ("float16",) * 3, block=(64, 64, 32), stages=2),
        Entry(GROUPED, lambda: programs.grouped_case((70, 70, 75, 190), 136, 160, (64, 64, 32), 3)),
        Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(136, 136, 320, (64, 64, 64))),
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    needless={GEMM: (), GROUPED: ()},
    golden=Path(__file__).parent / "golden_persistent",
    suffix=".cu",
    kept=(GEMM, GROUPED),
    options={"wgmma": "always", "numerics": "fast", "persistent": 3, "clusters": "never"},
)
