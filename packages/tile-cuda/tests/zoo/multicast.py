"""Multicast products in clusters, and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo import programs
from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, NT, Entry, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

GEMM = "gemm_f16_pairs"
_FREE = r"(mbarrier_wait_parity\(&k_free\[slot_ahead\], )([^;]*)\);"
_FULL = r"(mbarrier_wait_parity\(&k_arrived\[slot\], )([^;]*)\);"
_ARRIVE = r"\n *if \(\(tid & 31\) < 2\) \{\n *mbarrier_arrive_shared_cluster_b64[^;]*;\n *\}"
_FREED = rf"\n *if \(k - 1 >= 0\) \{{{_ARRIVE}\n *\}}"
_WAITED = r"wgmma_wait_group_sync_aligned_1\(\);"
_RANK = r"(b64\(&k_free\[[^;]*), \(bx & 1\) \^ \(tid & 31\)"
_ROW = r"(multicast_cluster\(&A_shared_stages\[slot_ahead[^;]*by \* 64)"
_MEETING = r"\n *barrier_cluster_arrive_release\(\);\n *barrier_cluster_wait_acquire\(\);"
_CAST = r"(multicast_cluster\(&A_shared_stages\[slot_ahead[^;]*), 3\)"

MUTANTS: tuple[Mutant, ...] = (
    # Slots are free
    Mutant(GEMM, "no wait for a free slot", r"\n *mbarrier_wait_parity\(&k_free\[slot_ahead\][^;]*;", ""),
    Mutant(GEMM, "the other parity of free slots", _FREE, r"\1(\2) ^ 1);"),
    Mutant(GEMM, "another slot is waited for", r"(parity\(&k_free\[)slot_ahead", r"\1slot"),
    Mutant(GEMM, "no arrival in other blocks", r"(\(tid & 31\)) < 2", r"\1 < 1"),
    Mutant(GEMM, "both arrivals in its own block", _RANK, r"\1, bx & 1"),
    Mutant(GEMM, "both arrivals in the other block", _RANK, r"\1, ~bx & 1"),
    Mutant(GEMM, "an arrival for this trip", r"(arrive_shared_cluster_b64\(&k_free\[)[^;]*?\]", r"\1slot]"),
    Mutant(GEMM, "a slot is free before its product has ended", rf"({_WAITED})({_FREED})", r"\2\1"),
    Mutant(GEMM, "two products in flight", r"(wgmma\.wait_group\.sync\.aligned) 1", r"\1 2"),
    Mutant(GEMM, "more arrivals expected", r"(mbarrier_init_\w+\(&k_free\[0\], )8", r"\g<1>9"),
    Mutant(GEMM, "fewer arrivals expected", r"(mbarrier_init_\w+\(&k_free\[0\], )8", r"\g<1>4"),
    Mutant(GEMM, "an object is not made", r"\n *mbarrier_init_\w+\(&k_free\[1\], 8\);", ""),
    # Tiles arrive
    Mutant(GEMM, "no wait for a full slot", r"\n *mbarrier_wait_parity\(&k_arrived\[slot\][^;]*;", ""),
    Mutant(GEMM, "the other parity of full slots", _FULL, r"\1(\2) ^ 1);"),
    Mutant(GEMM, "the bytes of its own share", r"(expect_tx_\w+\(&k_arrived\[slot_ahead\], )8192", r"\g<1>6144"),
    Mutant(GEMM, "more bytes than come", r"(expect_tx_\w+\(&k_arrived\[slot_ahead\], )8192", r"\g<1>8208"),
    Mutant(GEMM, "only to itself", _CAST, r"\1, 1 << (bx & 1))"),
    Mutant(GEMM, "only to the other block", _CAST, r"\1, 2 >> (bx & 1))"),
    Mutant(GEMM, "to a block that is none", _CAST, r"\1, 5)"),
    Mutant(GEMM, "both blocks copy a share", r"if \(\(bx & 1\) == 0\)", "if (true)", -1),
    Mutant(GEMM, "no block copies a share", r"if \(\(bx & 1\) == 1\)", "if ((bx & 1) == 2)", -1),
    Mutant(GEMM, "a share of another tile", _ROW, r"\1 + (bx & 1) * 64"),
    # Objects and blocks that begin and end
    Mutant(GEMM, "objects are not visible to other blocks", r"\n *fence_mbarrier_init_release_cluster\(\);", ""),
)  # fmt: skip

CLUSTERS = Zoo(
    entries=(
        gemm("f16_pairs", 200, 250, 160, F16, block=(64, 64, 32), stages=3, trans=NT),
        gemm("f16_columns", 200, 136, 96, F16, block=(64, 64, 32), stages=2),
        gemm("f16_two_groups", 250, 250, 96, F16, block=(128, 128, 32), threads=256, stages=2),
        gemm("bf16_four_stages", 130, 256, 224, BF16, block=(64, 64, 32), stages=4, trans=NT),
        gemm("fp8", 128, 256, 192, FP8, block=(64, 64, 64), trans=NT, stages=2, kept=13),
        gemm("one_trip_more_than_slots", 128, 128, 128, F16, block=(64, 64, 32), trans=NT, stages=3),
        Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(136, 256, 320, (64, 64, 64))),
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=_MEETING,
    needless={GEMM: ()},
    golden=Path(__file__).parent / "golden_multicast",
    suffix=".cu",
    kept=(GEMM,),
    options={"wgmma": "always", "numerics": "fast", "clusters": "always", "persistent": "never"},
)
