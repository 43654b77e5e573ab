"""Mistakes that a compiler could make, as changes of emitted texts."""

from __future__ import annotations

from zoo.mutant import Mutant

GEMM = "gemm_f16_small"
WHOLE = "gemm_f16"
TURNED = "gemm_f16_nt"
FP8 = "fp8_rows"
BARRIER = r"threadgroup_barrier\(mem_flags::mem_threadgroup\);"

MUTANTS: tuple[Mutant, ...] = (
    # Barriers
    Mutant(GEMM, "a barrier that orders nothing", BARRIER, "threadgroup_barrier(mem_flags::mem_none);"),
    Mutant(GEMM, "a barrier of device memory", BARRIER, "threadgroup_barrier(mem_flags::mem_device);"),
    Mutant(GEMM, "a barrier of a simdgroup", BARRIER, "simdgroup_barrier(mem_flags::mem_threadgroup);"),
    Mutant(
        GEMM,
        "a barrier of half of the threads",
        BARRIER,
        "if (tid < 64) threadgroup_barrier(mem_flags::mem_threadgroup);",
    ),
    Mutant(
        "block_sum",
        "a barrier that orders nothing",
        r"mem_flags::mem_device \| mem_flags::mem_threadgroup",
        "mem_flags::mem_none",
    ),
    # Tiles through registers
    Mutant(WHOLE, "stores the tile of the iteration before", r"(\+ i1_4 \+ k \* 32 [^\]]*) \+ 32\]", r"\1]"),
    Mutant(WHOLE, "stores a part of the tile twice", r"&A_shared_ahead\[r_4 \* 8\]", "&A_shared_ahead[0]"),
    Mutant(GEMM, "the first tile is the second", r"A\[i0 \* 72 \+ i1 \+", "A[i0 * 72 + i1 + 32 +"),
    Mutant(GEMM, "the last tile is not loaded", r"k \+ 1 < 3", "k + 1 < 2"),
    Mutant(GEMM, "B from the registers of A", r"= B_shared_ahead\[(r_\d+)\]", r"= A_shared_ahead[\1]"),
    Mutant(GEMM, "buffers overlap", r"smem \+ (\d+)\)", "smem + 4096)", 0),
    Mutant(GEMM, "one iteration too few", r"k < 3", "k < 2"),
    Mutant(GEMM, "a step of K too few", r"k_step < 4", "k_step < 3"),
    # Copies
    Mutant(GEMM, "reads beyond the last row", r"i0_4 < 29", "i0_4 <= 29"),
    Mutant(GEMM, "no guard along K", r" && k \* 32 \+ 32 \+ i1_4 < 72", ""),
    Mutant(GEMM, "no zeros behind the end", r"(_shared_ahead\[r_\d+\]) = \(half\)0\.0f;", r"\1 = (half)1.0f;"),
    Mutant(GEMM, "the wrong pitch of an array", r"i0_4 \* 72", "i0_4 * 64"),
    Mutant(GEMM, "the wrong pitch where it is stored", r"i0_2 \* 40", "i0_2 * 32"),
    Mutant(GEMM, "a misaligned vector", r"&A_shared\[i0_2 \* 40 \+ i1_2\]", "&A_shared[i0_2 * 40 + i1_2 + 1]"),
    Mutant(
        WHOLE,
        "half of a vector",
        r"\*\(threadgroup uint4\*\)(&A_\S+?\[[^]]*\]) = \*\(thread const uint4\*\)",
        r"*(threadgroup uint2*)\1 = *(thread const uint2*)",
    ),
    Mutant(WHOLE, "one half of the rows twice", r" \+ r_6 \* 3072", ""),
    # Fragments
    Mutant(GEMM, "the wrong pitch where it is loaded", r"k_step \* 8\], 40\)", "k_step * 8], 32)"),
    Mutant(GEMM, "A and B swapped", r"&a_values\[(.*?)\], &b_values\[(.*?)\]\);", r"&b_values[\2], &a_values[\1]);"),
    Mutant(
        GEMM,
        "elements of a fragment swapped",
        r"left\.thread_elements\(\)\[0\] = a\[0\]",
        "left.thread_elements()[0] = a[1]",
    ),
    Mutant(
        GEMM,
        "the sum of another block",
        r"&C_local\[row_tile \* 4 \+ column_tile \* 2\]",
        "&C_local[column_tile * 4 + row_tile * 2]",
    ),
    Mutant(GEMM, "the block of another row", r"&a_values\[row_tile \* 2\]", "&a_values[(1 - row_tile) * 2]"),
    Mutant(GEMM, "the block of the row above", r"a_tile \* 320", "a_tile * 280"),
    Mutant(GEMM, "the first step of K each time", r"&B_shared\[k_step \* 320 \+", "&B_shared["),
    Mutant(GEMM, "all simdgroups take the first columns", r"\+ simd_column\]", "]"),
    Mutant(
        GEMM,
        "rows and columns of simdgroups swapped",
        r"simd_row = \(\(tid >> 5\) >> 1\)",
        "simd_row = ((tid >> 5) & 1)",
    ),
    Mutant(
        GEMM, "rows of a simdgroup of 16 lanes", r"simd_row = \(\(tid >> 5\) >> 1\)", "simd_row = ((tid >> 4) >> 1)"
    ),
    Mutant(
        GEMM, "one lane is left out", r"(        simdgroup_multiply_accumulate_f32_f16)", r"        if (tid != 5) \1"
    ),
    Mutant(TURNED, "a load that is not transposed", r", ulong2\(0, 0\), true\)", ")"),
    Mutant(TURNED, "a transposed load of A", r"load_f16_threadgroup\(&a", "load_f16_threadgroup_transposed(&a"),
    Mutant(TURNED, "the wrong pitch of a transposed load", r"(_transposed\(&b.*), 40\)", r"\1, 32)"),
    Mutant(GEMM, "an accumulator that is not cleared", r"\n *C_local\[[^]]*\] = 0\.0f;", ""),
    Mutant(GEMM, "an accumulator that begins at one", r"(C_local\[[^]]*\]) = 0\.0f", r"\1 = 1.0f"),
    Mutant("attention", "scores of the last iteration remain", r"\n *scores\[[^]]*\] = 0\.0f;", ""),
    Mutant(
        "attention", "a fragment as if it were of another step", r"&weights\[(.*) \+ k_step_1 \* 2\]", r"&weights[\1]"
    ),
    # Results
    Mutant(GEMM, "the lane map of another type", r"\+ \(\(tid & 7\) >> 1\);", "+ (tid % 4);", -1),
    Mutant(GEMM, "writes beyond the last row", r"i0_6\) < 29", "i0_6) <= 29"),
    Mutant(GEMM, "writes beyond the last column", r"(\+ i1_6\)) < 24", r"\1 <= 24"),
    Mutant(GEMM, "no guard of the tail", r"if \(by \* 32 \+ .* < 24\)", "if (true)"),
    Mutant(
        TURNED,
        "coordinates of threadgroups swapped",
        r"bx = (.*)\.x;\n  const int by = .*\.y",
        r"bx = \1.y;\n  const int by = \1.x",
    ),
    Mutant(TURNED, "a misaligned vector store", r"&C\[(.*) \+ i1_10 \+", r"&C[\1 + i1_10 + 1 +"),
    Mutant("epilogue_gelu", "the bias of the neighbour", r"Bias\[([^]]*)\]", r"Bias[max(\1 - 1, 0)]"),
    # 8-bit floats
    Mutant("decode_e5m2", "subnormal codes twice as large", r"1\.5258789e-05f", "3.0517578e-05f"),
    Mutant("decode_e5m2", "no subnormal codes", r"size < 4u \?", "size < 0u ?"),
    Mutant("decode_e5m2", "the last subnormal code left out", r"size < 4u \?", "size < 3u ?"),
    Mutant("decode_e5m2", "infinity as a number", r"size > 123u", "size > 124u"),
    Mutant("decode_e4m3fn", "not a number as a number", r"size > 126u \? \w+ : ", ""),
    Mutant("decode_e4m3fn", "subnormal codes as normal ones", r"fmin\(wide, fma\(.*?\)\)", "wide"),
    Mutant("decode_e4m3fnuz", "the only NaN as zero", r"== 128u", "== 256u"),
    Mutant("encode_e4m3fn", "halves away from zero", r"\(\(size >> 20u\) & 1u\)", "1u"),
    Mutant("encode_e4m3fn", "numbers cut off", r" \+ \(\(size >> 20u\) & 1u\) \+ 524287u", ""),
    Mutant(FP8, "an exponent off by one", r"= \(size << 21u\) \+ 939524096u;", "= (size << 21u) + 947912704u;"),
    Mutant(FP8, "no sign", r" \| \(\(code & 128u\) << 24u\)", ""),
    Mutant(FP8, "the format with a longer mantissa", r"size << 21u", "size << 20u"),
    Mutant(FP8, "the scale of the neighbour", r"(&B_s\[r_13 \* 8 \+ i1_8)\]", r"\1 ^ 2]"),
    Mutant(FP8, "the scale of another row", r"A_s\[r_12 \* 8 \+ i0_12\]", "A_s[i0_12]"),
    Mutant(FP8, "the scale of A twice", r"B_s_v\[v\]", "A_s[r_12 * 8 + i0_12]"),
    Mutant(FP8, "neighbours swapped", r"A_view_v\[r\]", "A_view_v[r ^ 1]"),
    Mutant(FP8, "a block that is not transposed", r"_threadgroup_transposed\(&b", "_threadgroup(&b"),
    Mutant("fp8_tensor", "a pair swapped", r"half2\(low, high\)", "half2(high, low)"),
    Mutant("fp8_tensor", "a pair with an exponent off by one", r"0x20002000u", "0x24002400u"),
    Mutant("fp8_tensor", "a pair without signs", r" \| \(codes & 0x80008000u\)", ""),
    Mutant("fp8_tensor", "one code of a pair twice", r"fmin\(wide\.y, fma\(wide\.y", "fmin(wide.x, fma(wide.x"),
    # Shuffles, votes and reductions
    Mutant("attention", "a shuffle by the wrong distance", r"\(ushort\)8\)", "(ushort)4)"),
    Mutant("attention", "a shuffle too few", r"acc_1\[(\w+)\] \+ other_3", r"acc_1[\1]"),
    Mutant("rms_norm", "a simdgroup whose lanes are not added up", r"simd_sum\((\w+)\)", r"\1"),
    Mutant("rms_norm", "a sum that does not begin at zero", r"total = 0\.0f", "total = 1.0f"),
    Mutant("row_max", "a wrong neutral element of a maximum", r"as_type<float>\(0xff800000u\)", "0.0f"),
    Mutant("row_max", "a simdgroup of half of the lanes", r"simd_max\((\w+)\)", r"(tid % 32 < 16 ? simd_max(\1) : \1)"),
    Mutant("row_max", "negative numbers in the order of their bits", r"\(bits >> 31\) & 2147483647", "0"),
    Mutant("row_max", "one simdgroup of two is reduced", r"g < 2;", "g < 1;"),
    Mutant("cumsum_columns", "a scan adds lanes twice", r"\(tid & 31\) >= 2 \?", "(tid & 31) >= 1 ?"),
    Mutant(
        "cumsum_columns",
        "a scan by the wrong distance",
        r"thread_index_in_simdgroup, 4, 32",
        "thread_index_in_simdgroup, 3, 32",
    ),
    Mutant("block_sum", "a lane of every second simdgroup", r"\(tid_1 & 31\) == 0", "(tid_1 & 63) == 0"),
    Mutant("neighbours", "a part of threadgroup memory is not written", r"\n *tile\[65\] = [^\n]*", ""),
    Mutant("neighbours", "the votes of half of the lanes", r"= ballot;", "= ballot & 65535u;"),
    Mutant("neighbours", "writes beyond the end", r"if \(bx \* 64 \+ tid < 131\)", "if (bx * 64 + tid <= 131)"),
    # Atomics, indirect accesses, packed numbers
    Mutant(
        "histogram",
        "a plain sum instead of an atomic one",
        r"return atomic_fetch_add_explicit\(\(device atomic_int\*\)x, by, memory_order_relaxed\)",
        "return *x += by",
    ),
    Mutant("histogram", "a comparison that is not tried again", r"\} while \(!(.*)\);", r"} while (!\1 && false);"),
    Mutant("histogram", "bins beyond the last", r" < 37\)", " < 36)"),
    Mutant(
        "split_k",
        "a plain sum instead of an atomic one",
        r"return atomic_fetch_add_explicit\(\(device atomic_float\*\)x, by, memory_order_relaxed\)",
        "return *x += by",
    ),
    Mutant(
        "split_k",
        "all parts take the first share",
        r"threadgroup_position_in_grid\.z",
        "threadgroup_position_in_grid.x",
    ),
    Mutant("kv_gather", "a row that is none is read", r"row >= 0L && ", ""),
    Mutant("kv_gather", "writes beyond the last row", r"< 33\)", "<= 33)"),
    Mutant("kv_append", "all rows go to the first", r"cache\[row \* 40L", "cache[0L * 40L"),
    Mutant("dequant", "the wrong nibble", r"\* 4097u", "* 65537u"),
    Mutant("dequant", "numbers without a sign", r"\^ 1678271496u, 1678271496u", "^ 1677747200u, 1677747200u"),
    Mutant("dequant", "the scale of the next group", r"(scale_ahead = scale\[[^;]* \* 3 \+ )", r"\g<1>1 + "),
    # Sparse products
    Mutant("sp_f16", "the second of four", r"\(half\)0\.0f;", "(half)1.0f;"),
    Mutant("sp_f16", "metadata of the next group", r">> \(\(\(\(lane_column", ">> ((((4 + lane_column"),
    Mutant("sp_f16", "selectors of one bit", r"& 15 & 3\) ==", "& 15 & 1) =="),
)
