"""Mistakes that a compiler could make, as changes of emitted texts."""

from __future__ import annotations

from zoo.mutant import Mutant

GEMM = "gemm_f16_small"
SPARSE = "sp_f16_cutlass"
TURNED, PAIRS = "sp_f16_turned", "sp_f16_pairs"
_SWIZZLE_WRITTEN = r"\(\(tid & 3\) \^ \(\(tid & 31\) >> 3\)\)"

MUTANTS: tuple[Mutant, ...] = (
    # The software pipeline
    Mutant(GEMM, "a wait for one group too few", r"cp\.async\.wait_group 1;", "cp.async.wait_group 2;"),
    Mutant(GEMM, "the first group is not ended", r"\n  cp_async_commit_group\(\);", "", 0),
    Mutant(GEMM, "groups in the loop are not ended", r"\n    cp_async_commit_group\(\);", ""),
    Mutant(GEMM, "no wait in the loop", r"\n    cp_async_wait_group_1\(\);", ""),
    Mutant(GEMM, "reads the slot after", r"slot = \(unsigned\)k % 3u", "slot = (k + 1) % 3"),
    Mutant(GEMM, "fills the slot that is read", r"slot_ahead = \(unsigned\)\(k \+ 2\) % 3u", "slot_ahead = k % 3"),
    Mutant(GEMM, "one slot too few", r"slot_ahead = \(unsigned\)\(k \+ 2\) % 3u", "slot_ahead = (k + 2) % 2"),
    Mutant(GEMM, "buffers overlap", r"smem \+ (\d+)\)", "smem + 4096)", 0),
    Mutant(GEMM, "a turn of the loop too few", r"k < 3", "k < 2"),
    # Asynchronous copies
    Mutant(GEMM, "reads beyond the last row", r"\(tid >> 2\) < 29 \? 16 : 0", "(tid >> 2) <= 29 ? 16 : 0"),
    Mutant(GEMM, "no fill with zeros", r" \? 16 : 0\)", " ? 16 : 16)"),
    Mutant(GEMM, "half of the bytes", r" \? 16 : 0\)", " ? 8 : 0)"),
    Mutant(GEMM, "the wrong stride of A", r"\* 72", "* 64"),
    Mutant(GEMM, "a misaligned copy", r"\(tid & 3\) \* 8\]", "(tid & 3) * 8 + 1]"),
    Mutant(
        GEMM,
        "copies to the row below",
        r"slot_ahead \* 2048\) \+ \(unsigned\)\(\(tid >> 2\) \* 32",
        "slot_ahead * 2048) + (unsigned)((tid >> 2) * 32 + 32",
    ),
    # Fragments
    Mutant(GEMM, "swizzled only where it is read", _SWIZZLE_WRITTEN, "(tid & 3)"),
    Mutant(GEMM, "swizzled only where it is written", r"\(\(a_k >> 3\) \^ \(\(a_line & 7\) >> 1\)\)", "(a_k >> 3)"),
    Mutant(GEMM, "ldmatrix without trans", r"x4\.trans\.shared\.b16", "x4.shared.b16"),
    Mutant(GEMM, "registers of A swapped", r'"r"\(a\[1\]\), "r"\(a\[2\]\)', '"r"(a[2]), "r"(a[1])'),
    Mutant(GEMM, "registers of B swapped", r'"r"\(b\[0\]\), "r"\(b\[1\]\)', '"r"(b[1]), "r"(b[0])'),
    Mutant(GEMM, "A and B swapped", r"&a_words\[0\], &b_words\[([^]]*)\], ", r"&b_words[\1], &a_words[0], "),
    Mutant(GEMM, "the second step of K left out", r"&a_words\[4\], (&b_words\[[^]]*\])", r"&a_words[0], \1"),
    Mutant(
        GEMM,
        "rows of a fragment swapped",
        r"\(\(lane >> 3\) & 1\) \* 8 \+ \(lane & 7\)",
        "(1 - ((lane >> 3) & 1)) * 8 + (lane & 7)",
        0,
    ),
    Mutant(GEMM, "an accumulator that is not cleared", r"\n *C_local\[[^]]*\] = 0\.0f;", ""),
    Mutant(GEMM, "an accumulator that begins at one", r"(C_local\[[^]]*\]) = 0\.0f", r"\1 = 1.0f"),
    Mutant("gemm_fp64", "A and B swapped", r"&a_words\[0\], &b_words\[0\]", "&b_words[0], &a_words[0]"),
    Mutant(
        "gemm_tf32",
        "lowest bits of tf32 kept apart",
        r"k8\.row\.col\.f32\.tf32\.tf32\.f32 \{%0, %1, %2, %3\}, \{%4, %5",
        r"k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%5, %4",
    ),
    # Results
    Mutant(GEMM, "writes beyond the last row", r"\) < 29 && bx", ") <= 29 && bx"),
    Mutant(GEMM, "writes beyond the last column", r"(\+ i1\)) < 24\)", r"\1 <= 24)"),
    Mutant(GEMM, "no guard of the tail", r"if \(by \* 32 \+ \(.*\) < 24\)", "if (true)"),
    Mutant(
        "gemm_f16_nt",
        "coordinates of blocks swapped",
        r"bx = blockIdx\.x;\n  const int by = blockIdx\.y",
        "bx = blockIdx.y;\n  const int by = blockIdx.x",
    ),
    Mutant("gemm_int8", "a misaligned vector store", r"(\*\(uint2\*\)\(?&C\[[^]]* \+ i1)\)\]", r"\1 + 1)]"),
    Mutant(
        "gemm_int8", "the wrong half of a vector", r"(C_v\[v_1\]) = (C_local\[[^]]*) \+ v_1\]", r"\1 = \2 + (1 - v_1)]"
    ),
    Mutant("gemm_int8", "signed times unsigned", r"s32\.s8\.s8\.s32", "s32.s8.u8.s32"),
    Mutant("epilogue_gelu", "the bias of the neighbour", r"&Bias\[(i0)\]", r"&Bias[max(\1 - 2, 0)]"),
    # Sparse products
    Mutant(
        SPARSE,
        "rows of metadata swapped",
        r"= (\(unsigned\)\(unsigned short\)E_shared.*?) \| \((\(unsigned\)\(unsigned short\)E_shared.*?) << 16u\);",
        r"= (\1 << 16u) | \2;",
    ),
    Mutant(SPARSE, "the wrong selector", r"(    mma_sp\w*_)0\(", r"\g<1>1("),
    Mutant(SPARSE, "metadata of the next lane", r"\(lane_t & 1\) \* 2", "((lane_t + 1) & 1) * 2"),
    Mutant(SPARSE, "metadata of the tile row above", r"metadata\[1\]\)", "metadata[0])"),
    Mutant(
        TURNED,
        "the next row of A over this one",
        r"m8n8_x4_shared_b16\(&a_words\[4\]",
        "m8n8_x4_shared_b16(&a_words[0]",
    ),
    Mutant(
        TURNED,
        "the next B in front of its instruction",
        r"(\n *mma_sp\w+\(&C_local\[column_tile_1[^\n]*)(\n[^\n]*)",
        r"\2\1",
    ),
    Mutant(TURNED, "B of the next turn too early", r"_words\[4\](, \(f16[^\n]*next_1 \* 8192\))", r"_words[8]\1"),
    Mutant(TURNED, "metadata that is not transposed", r"x2\.trans\.shared", "x2.shared"),
    Mutant(TURNED, "halves of metadata swapped", r"\(lane & 1\) \* 8\)", "(1 - (lane & 1)) * 8)"),
    Mutant(TURNED, "metadata of the next block", r"\+ \(\(lane >> 1\) & 1\);", "+ (((lane >> 1) + 1) & 1);"),
    Mutant(
        TURNED, "swizzled only where metadata is read", r"\(\(\(tid & 7\) >> 1\) \^ \(tid >> 3\)\)", "((tid & 7) >> 1)"
    ),
    Mutant(PAIRS, "even blocks for odd ones", r">> 16u\) \| \(([^)]*) & 4294901760u\)", r"& 65535u) | (\1 << 16u)"),
    Mutant(PAIRS, "neighbouring blocks of A", r"\(\(lane >> 3\) >> 1\) \* 2 \* 8", "(lane >> 4) * 8"),
    Mutant(PAIRS, "neighbouring blocks of B", r"\(\(lane >> 3\) >> 1\) \* 4\) \* 8", "(lane >> 4) * 2) * 8"),
    Mutant(PAIRS, "metadata of the row below", r"metadata_row \* 8", "(metadata_row ^ 8) * 8"),
    # Shuffles, votes and reductions
    Mutant("rms_norm", "a shuffle by the wrong distance", r"\(mine_1\), 2, 31", "(mine_1), 1, 31"),
    Mutant("rms_norm", "a shuffle of half of the lanes", r"31, 0xffffffffu", "31, 65535u", 1),
    Mutant("rms_norm", "a sum that does not begin at zero", r"total = 0\.0f", "total = 1.0f"),
    Mutant("row_max", "a wrong neutral element of a maximum", r"__int_as_float\(0xff800000\)", "0.0f"),
    Mutant("row_max", "one warp of two is reduced", r"g < 2;", "g < 1;"),
    Mutant("cumsum_columns", "a scan adds lanes twice", r"\(tid & 31\) >= 2 \?", "(tid & 31) >= 1 ?", 0),
    Mutant("cumsum_columns", "a scan by the wrong distance", r"\(mine_2\), 4, 0", "(mine_2), 3, 0"),
    Mutant("block_sum", "a lane of every second warp", r"\(tid_1 & 31\) == 0", "(tid_1 & 63) == 0"),
    Mutant("block_sum", "reads into the next row", r"< 301\)", "<= 301)"),
    Mutant("neighbours", "a part of shared memory is not written", r"\n *tile\[65\] = [^\n]*", ""),
    Mutant("neighbours", "a vote of half of the lanes", r"0xffffffffu\)", "65535u)"),
    Mutant("neighbours", "writes beyond the end", r"if \(bx \* 64 \+ tid < 131\)", "if (bx * 64 + tid <= 131)"),
    # Atomics, indirect accesses, packed numbers
    Mutant(
        "histogram", "a plain sum instead of an atomic one", r"red_global_add_s32\(&(H\[.*\]), 1\);", r"\1 = \1 + 1;"
    ),
    Mutant("histogram", "an atomic sum of two", r"(red_global_add_s32\(&H\[.*\]), 1\)", r"\1, 2)"),
    Mutant(
        "split_k",
        "a plain sum instead of an atomic one",
        r"red_global_add_f32\((&C\[.*), (C_local\[.*\])\);",
        r"*(\1) = *(\1) + \2;",
    ),
    Mutant("split_k", "all parts take the first share", r"blockIdx\.z", "0"),
    Mutant("kv_gather", "a row that is none is read", r"row >= 0LL && ", ""),
    Mutant("kv_gather", "writes beyond the last row", r"< 33\)", "<= 33)"),
    Mutant("kv_append", "all rows go to the first", r"cache\[row \* 40LL", "cache[0LL * 40LL"),
    Mutant("dequant", "the wrong nibble", r"\* 4097u", "* 4096u"),
    Mutant("dequant", "numbers without a sign", r"983055u, 1678271496u", "983055u, 1678271488u"),
    Mutant("dequant", "the scale of the next group", r"(scale_ahead[^=;]* = scale\[[^;]* \* 3 \+ )", r"\g<1>1 + "),
)
