"""Kernels whose copies are bulk copies of boxes, and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, INT8, KERNELS, NT, TF32, TN, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from . import stores

GEMM = "gemm_f16_five_trips"
_EXPECT = r"(\w+_expect_tx_\w+\(&k_arrived\[)slot_ahead_1\], 4096\);"
_WAIT = r"\n    mbarrier_wait_parity\(&k_arrived\[slot_next_1\], [^;]*;"
_INIT = r"(mbarrier_init_\w+\(&k_arrived\[2\]), 1\)"
_LEADER = r"if \(tid == 0\) (\{\n *mbarrier_%s)"
_ISSUER = r"if \((?:warp == 0 && )?elect_sync\(\) != 0u\) (\{\n *mbarrier_arrive)"
_SLOT_A = r"(&A_shared_stages\[slot)_ahead_1 \* 1024\]"
_BOX_A = r"&A_descriptor, \(k \+ 1\) \* 32 \+ 64, 0, "

MUTANTS: tuple[Mutant, ...] = (
    # Objects
    Mutant(GEMM, "an object that is not initialised", r"\n    mbarrier_init_\w+\(&k_arrived\[1\], 1\);", ""),
    Mutant(GEMM, "two arrivals a phase", _INIT, r"\1, 2)"),
    Mutant(GEMM, "no arrivals a phase", _INIT, r"\1, 0)"),
    Mutant(GEMM, "every thread initialises", _LEADER % "init", r"\1"),
    Mutant(GEMM, "no fence after the initialisation", r"\n  fence_mbarrier_init_\w+\(\);", ""),
    Mutant(GEMM, "no barrier after the initialisation", r"(fence_mbarrier_\w+\(\);)\n  __syncthreads\(\);", r"\1"),
    Mutant(GEMM, "an object at an odd address", r"(long\*\)\(smem \+) 12288\)", r"\1 12292)"),
    Mutant(GEMM, "objects inside of a tile", r"smem \+ 12288", "smem + 6144"),
    # Bytes and phases
    Mutant(GEMM, "too few bytes announced", _EXPECT, r"\1slot_ahead_1], 2048);"),
    Mutant(GEMM, "too many bytes announced", _EXPECT, r"\1slot_ahead_1], 8192);"),
    Mutant(GEMM, "only bytes inside of the tensor announced", r"&k_arrived\[0\], 4096", "&k_arrived[0], 3488"),
    Mutant(GEMM, "bytes are not announced", _EXPECT, ""),
    Mutant(GEMM, "bytes announced of another slot", _EXPECT, r"\1slot_next_1], 4096);"),
    Mutant(GEMM, "every thread issues", _ISSUER, r"\1", -1),
    Mutant(
        GEMM, "elected among a half of a warp", r"elect_sync\(\) != 0u\)", "(tid & 31) < 16 && elect_sync() != 0u)", -1
    ),
    Mutant(GEMM, "the first trip is not issued", _ISSUER, r"if (tid < 0) \1", 0),
    Mutant(GEMM, "no wait in the loop", _WAIT, ""),
    Mutant(GEMM, "no wait before the loop", r"\n  mbarrier_wait_parity\(&k_arrived\[slot_next\], [^;]*;", ""),
    Mutant(GEMM, "the other parity", r"(k \+ 1 : k\) / 3u)\) & 1", r"\1 + 1u) & 1"),
    Mutant(GEMM, "waits for the slot before", r"(wait_parity\(&k_arrived\[slot)_next_1\]", r"\1]"),
    Mutant(GEMM, "asks once whether a phase has ended", r"while \(!(\w+try_wait\w+\(barrier, parity\))\) \{\}", r"\1;"),
    Mutant(GEMM, "slots are free too early", rf"({_WAIT})\n    __syncthreads\(\);", r"\1"),
    # Boxes
    Mutant(GEMM, "a box of the trip before", _BOX_A, "&A_descriptor, k * 32 + 64, 0, "),
    Mutant(GEMM, "coordinates exchanged", _BOX_A, "&A_descriptor, 0, k * 32 + 96, "),
    Mutant(GEMM, "the map of the other tensor", r"(stages\[slot_ahead_1 \* 1024\]), &B_desc", r"\1, &A_desc"),
    Mutant(GEMM, "a box to the slot that is read", _SLOT_A, r"\1_next_1 * 1024]"),
    Mutant(GEMM, "a box to a half of a slot", _SLOT_A, r"\1_ahead_1 * 512]"),
    Mutant(GEMM, "a box at no multiple of 128 bytes", _SLOT_A, r"\1_ahead_1 * 1024 + 8]"),
    Mutant(GEMM, "a box that begins inside of 16 bytes", _BOX_A, "&A_descriptor, k * 32 + 92, 0, "),
    Mutant(GEMM, "a box of one dimension", r"2d(\.[^\[]* \[%0\], \[%1, \{%2), %3\}\]", r"1d\1}]"),
    Mutant(
        GEMM, "a box that completes on another object", rf"({_BOX_A}&k_arrived)\[slot_ahead_1\]", r"\1[slot_next_1]"
    ),
    Mutant(GEMM, "a box that is not issued", rf"\w+\(&A_shared_stages\[slot_ahead_1[^;]*{_BOX_A}[^;]*;", ""),
    Mutant(GEMM, "read without the swizzle", r"\(\(a_k >> 3\) \^ \(\(a_line & 7\) >> 1\)\)", "(a_k >> 3)"),
    Mutant(GEMM, "slots off the pattern of the swizzle", r"\(f16\*\)smem;", "(f16*)(smem + 128);"),
)

BULK = Zoo(
    entries=(
        gemm("f16_five_trips", 29, 24, 136, F16, stages=3),
        gemm("f16_nt", 40, 72, 80, F16, trans=NT),
        gemm("f16_tn", 40, 72, 80, F16, trans=TN, stages=2),
        gemm("f16", 64, 136, 96, F16, block=(64, 128, 64), stages=3),
        gemm("bf16", 48, 56, 64, BF16, trans=NT, stages=2),
        gemm("int8", 48, 48, 96, INT8, trans=NT),
        gemm("fp8", 40, 32, 64, FP8, trans=NT),
        gemm("tf32", 33, 40, 36, TF32, trans=NT),
        gemm("dynamic", 37, 40, 56, F16, dynamic=True),
        *(e for e in KERNELS if e.name in ("attention", "attention_tails", "epilogue_relu", "dequant", "split_k")),
        *stores.ENTRIES,
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=(*MUTANTS, *stores.MUTANTS),
    barrier=r"\n *__syncthreads\(\);",
    # The barrier before the first iteration: its slot has no readers yet. The one after the loop: all
    # threads have met behind their last wait, where the last operands are read.
    needless={GEMM: (-3, -1)},
    golden=Path(__file__).parent / "golden_bulk",
    suffix=".cu",
    kept=("gemm_f16_nt", "attention", stores.IN, stores.NAME),
    options={"tma": "always", "wgmma": "never"},
)
