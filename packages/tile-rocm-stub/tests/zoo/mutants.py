"""Mistakes that a compiler could make, as changes of emitted texts."""

from __future__ import annotations

from zoo.mutant import Mutant

GEMM, LARGE = "gemm_f16_small", "gemm_f16"
SPARSE = "sp_f16_words"

MUTANTS: tuple[Mutant, ...] = (
    # The software pipeline
    Mutant(LARGE, "reads the slot after", r"slot = k & 1", "slot = (k + 1) % 2"),
    Mutant(GEMM, "fills the slot that is read", r"slot_ahead = \(unsigned int\)\(k \+ 2\) % 3u", "slot_ahead = k % 3"),
    Mutant(GEMM, "buffers overlap", r"smem \+ (\d+)\)", "smem + 4096)"),
    Mutant(GEMM, "one iteration too few", r"k < 3", "k < 2"),
    Mutant(GEMM, "a barrier of a wavefront", r"s_barrier\(\)", "wave_barrier()"),
    Mutant(GEMM, "a barrier of half of the threads", r"(\n *)(block_barrier\(\);)", r"\1if (tid < 64) \2"),
    # Copies
    Mutant(GEMM, "reads beyond the last row", r"i0_4 < 29", "i0_4 <= 29"),
    Mutant(GEMM, "no guard along K", r" && k \* 32 \+ 64 \+ i1_4 < 72", ""),
    Mutant(GEMM, "no zeros behind the end", r"(_shared_stages_v_\d+\[r_\d+\]) = 0;", r"\1 = 0x3c00;"),
    Mutant(GEMM, "swizzled only where it is written", r"\(\(\(wave_row \+ lane_line\) & 7\) >> 1\)", "0"),
    Mutant(LARGE, "a misaligned vector", r"&A\[i0 \* 96 \+ i1 \+ r_2", "&A[i0 * 96 + i1 + 1 + r_2"),
    # Operands of matrix instructions
    Mutant(GEMM, "A and B swapped", r"&a_values\[0\], (.*?)&b_values\[([^]]*)\],", r"&b_values[\2], \1&a_values[0],"),
    Mutant(GEMM, "lanes in groups of 8", r"lane >> 4", "lane >> 3"),
    Mutant(GEMM, "groups and lines exchanged", r"lane >> 4;(\n.*)lane & 15;", r"lane & 3;\1lane >> 2;"),
    Mutant(GEMM, "a lane's neighbours along K apart", r"\(lane_group & 1\) \* 4\]", "(lane_group & 1) * 2]"),
    Mutant(GEMM, "elements of a lane swapped", r"a_values\[a_e\] = ", "a_values[a_e ^ 1] = "),
    Mutant(
        GEMM,
        "the second step of K left out",
        r"_v_4\[0\] = (.*)lane_group >> 1\) \+ 2",
        r"_v_4[0] = \1lane_group >> 1) + 0",
    ),
    Mutant(GEMM, "the accumulator of the neighbour", r"&C_local\[column_tile \* 4\], 0", "&C_local[0], 0"),
    Mutant(GEMM, "an accumulator that is not cleared", r"\n *C_local\[[^]]*\] = 0\.0f;", ""),
    Mutant("gemm_bf16", "bfloat16 as float16", "16x16x16bf16_1k", "16x16x16f16"),
    Mutant("gemm_fp8_fnuz", "fp8 for bf8", r"fp8_bf8\(", "fp8_fp8("),
    Mutant("gemm_int8", "half of the operand twice", r"\(lane_group & 1\) \* 8", "0"),
    # Results
    Mutant(LARGE, "rows of C in order", r"\(\(tid & 63\) >> 5\) \* 4;", "((tid & 63) >> 5) * 16;"),
    Mutant(LARGE, "the next group of rows", r"r_7 \* 8 \+", "r_7 * 4 +"),
    Mutant(
        "gemm_fp64",
        "rows of a float64 product as of float32",
        r"\+ (i0_\d)\) \* 24 (.*) \+ r_(\d) \* 96",
        r"+ \1 * 4) * 24 \2 + r_\3 * 24",
    ),
    Mutant(GEMM, "writes beyond the last row", r"< 29 && bx \* 32 \+ \(r_7", "<= 29 && bx * 32 + (r_7"),
    Mutant(GEMM, "writes beyond the last column", r"i1_6\) < 24\)", "i1_6) <= 24)"),
    # Sparse products
    Mutant(SPARSE, "the wrong part of the index", r"index, 0, 1\)", "index, 0, 2)"),
    Mutant(SPARSE, "all steps take the first part", r"index, 0, [123]\)", "index, 0, 0)"),
    Mutant(SPARSE, "CBSZ that hides ABID", r"index, 0, 1\)", "index, 1, 1)"),
    Mutant(SPARSE, "halves of the index swapped", r"<< 16u", "<< 0u", 0),
    Mutant(SPARSE, "metadata of the next group of lanes", r"lane_group \* 2( \+ 1)?\]", r"(lane_group ^ 1) * 2\1]"),
    Mutant(SPARSE, "metadata of the row below", r"lane_line \* 12", "(lane_line ^ 1) * 12"),
    # Shuffles, votes and reductions
    Mutant("row_max", "a shuffle by the wrong distance", r"lane_bfly\(2, 64\)", "lane_bfly(1, 64)"),
    Mutant("rms_norm", "an address without the size of a word", r": lane\) \* 4;", ": lane);"),
    Mutant("cumsum_columns", "a scan by the wrong distance", r"lane_up\(4,", "lane_up(3,"),
    Mutant("block_sum", "lanes that do not exist", r"\(tid & 63\) \^ \(int\)\(1u", "((tid & 63) + 32) ^ (int)(1u"),
    Mutant("block_sum", "reads into the next row", r"< 301\)", "<= 301)"),
    Mutant("neighbours", "a vote of the others", r"ballot_w64\(", "ballot_w64(!"),
    Mutant("neighbours", "a part of shared memory is not written", r"\n *tile\[65\] = [^\n]*", ""),
    # Atomics, indirect accesses, narrow floats
    Mutant("histogram", "a plain sum", r"atomic_add_int32_relaxed\(&(H\[.*\]), 1\);", r"\1 = \1 + 1;"),
    Mutant("histogram", "a maximum without its loop", r"while \(!(__hip_atomic_compare.*)\);", r"while (\1 && false);"),
    Mutant("kv_gather", "a row that is none is read", r"row >= 0LL && ", ""),
    Mutant("decode_e4m3fnuz", "the other 8-bit float", r"cvt_f32_fp8", "cvt_f32_bf8"),
    Mutant("dequant", "the wrong nibble", r"\* 4097u", "* 4096u"),
)
