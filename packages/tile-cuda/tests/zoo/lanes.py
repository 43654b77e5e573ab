"""Products with epilogues exchanged between lanes, and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import F16, FP8, INT8, NT, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

GEMM, KEPT, WORDS, BYTES = "gemm_halves_of_floats", "gemm_halves", "gemm_words", "gemm_bytes"
_STORE = r"(\*\(uint4\*\)\(?&C\[[^;]*)"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(GEMM, "lanes of another number", r"tid & 3\);", "(tid + 1) & 3);"),
    Mutant(GEMM, "lanes of pairs", r"tid & 3\);", "tid & 1);"),
    Mutant(GEMM, "no exchange", r"\n *turn_quad_b32\([^;]*;", ""),
    Mutant(GEMM, "one round of two", r"\n *const unsigned y20 = (?s:.*?)(?=\n *for \(int i)", ""),
    Mutant(GEMM, "rounds of one distance", r", 2, 31, ", ", 1, 31, "),
    Mutant(GEMM, "what is sent is kept", r"odd1 \? x\[0\] : x\[1\]", "odd1 ? x[1] : x[0]"),
    Mutant(GEMM, "words in another order", r"&w\[2 \* i\] = x\[i\]", "&w[6 - 2 * i] = x[i]"),
    Mutant(KEPT, "no exchange", r"\n *turn_kept_quad_b32\([^;]*;", ""),
    Mutant(KEPT, "words in another order", r"&kept\[i \* apart\]", "&kept[(3 - i) * apart]"),
    Mutant(KEPT, "words of the other row", r"(C_local\[group \* 16 \+) r \* 2", r"\1 (1 - r) * 2"),
    Mutant(KEPT, "words that lie together", r", 4, (tid & 3\);)", r", 2, \1"),
    Mutant(GEMM, "another group of tiles", r"group \* 16( \+ tile)", r"(1 - group) * 16\1"),
    Mutant(GEMM, "half of the lanes do not take part", r"(turn_quad_b32\(\(unsigned)", r"if (tid & 1) \1"),
    Mutant(GEMM, "stored by the columns of the accumulator", r"(const int i1_?\d* = \(tid & 3\) \*) 8", r"\1 2"),
    Mutant(WORDS, "lanes of another number", r"tid & 3\);", "(tid + 1) & 3);"),
    Mutant(WORDS, "no exchange", r"\n *turn_pairs_b32\([^;]*;", ""),
    Mutant(WORDS, "lanes two apart", r"(w\[3\]), 1, 31, ", r"\1, 2, 31, "),
    Mutant(WORDS, "what is sent is kept", r"odd1 \? w\[0\] : w\[2\]", "odd1 ? w[2] : w[0]"),
    Mutant(WORDS, "what is got lies in the other place", r"\) w\[1\] = y11; else w\[3\]", ") w[3] = y11; else w[1]"),
    Mutant(WORDS, "half of the lanes do not take part", r"(turn_pairs_b32\(\(unsigned)", r"if (tid & 1) \1"),
    Mutant(WORDS, "stored in the order of lanes", r"\(tid & 1\) \* 8 \+ \(\(?tid & 3\)? >> 1\) \* 4", "(tid & 3) * 4"),
    Mutant(BYTES, "no exchange", r"\n *turn_quad_bytes_b32\([^;]*;", ""),
    Mutant(
        BYTES,
        "tiles of a pair exchanged",
        r"x\[2 \* i\] & 0xffffu\) \| x\[2 \* i \+ 1\]",
        "x[2 * i + 1] & 0xffffu) | x[2 * i]",
    ),
    Mutant(BYTES, "words stay where they came", r"&w\[4 \* i \+ 8\]", "&w[12 - 4 * i]"),
    Mutant(BYTES, "another group of tiles", r"group \* 32( \+ tile)", r"(1 - group) * 32\1"),
)

LANES = Zoo(
    entries=(
        gemm("halves_of_floats", 70, 136, 72, F16, block=(64, 64, 32), stages=2, out="float16"),
        gemm("halves", 70, 136, 72, ("float16",) * 3, block=(64, 64, 32), stages=2),
        gemm("halves_of_two_groups", 130, 136, 72, ("bfloat16",) * 3, block=(128, 64, 32), threads=256, trans=NT),
        gemm("words", 70, 132, 96, INT8, block=(64, 64, 32), trans=NT, stages=2),
        gemm("floats_of_two_groups", 130, 100, 64, FP8, block=(128, 48, 32), threads=256, trans=NT, kept=13),
        gemm("bytes", 70, 144, 72, F16, block=(64, 128, 32), stages=2, out="float8_e4m3fn"),
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    needless={},
    golden=Path(__file__).parent / "golden_lanes",
    suffix=".cu",
    kept=(),
    options={"wgmma": "always", "epilogue": "lanes", "tma": "never"},
)
