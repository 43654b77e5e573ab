"""Warpgroup products, and mistakes in their texts."""

from __future__ import annotations

from pathlib import Path

from zoo import programs
from zoo.case import from_example
from zoo.mutant import Mutant
from zoo.suite import Zoo
from zoo.table import BF16, F16, FP8, INT8, KERNELS, NT, TF32, TN, TT, Entry, gemm

from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

GEMM, TURNED, HELD, SPARSE = "gemm_f16_two_groups", "gemm_f16_turned", "attention", "sp_f16"
_CALL = r"(\n +wgmma_m64n\d+k16_f32_f16_f16_ss\w*\()"
_FENCE = r"\n +wgmma_fence_sync_aligned\(\);"
_WAIT = r"\n +wgmma_wait_group_sync_aligned_0\(\);"
_ONE_LEFT = r"\n +wgmma_wait_group_sync_aligned_1\(\);"
_PROXY = r"\n +fence_proxy_async_shared_cta\(\);"


def in_flight(kernel: str, end: str, accumulators: str) -> tuple[Mutant, ...]:
    """Return mistakes about products in flight: ``end`` ends an iteration's copies, ``accumulators`` is their array."""
    wait = r"\n +wgmma_wait_group_sync_aligned_1\(\);"
    return (
        Mutant(kernel, "two products in flight", r"(wgmma\.wait_group\.sync\.aligned) 1", r"\1 2"),
        Mutant(kernel, "no wait for products in the loop", wait, ""),
        Mutant(kernel, "no wait for products behind the loop", _WAIT, "", -1),
        Mutant(kernel, "one product left behind the loop", _WAIT, "\n  wgmma_wait_group_sync_aligned_1();", -1),
        Mutant(kernel, "slots filled before the wait", rf"({wait})(\n +__syncthreads\(\);)((?s:.*?){end})", r"\3\1\2"),
        Mutant(kernel, "slots filled before the product", rf"(\n +wgmma_fence(?s:.*?){wait})((?s:.*?){end})", r"\2\1"),
        Mutant(kernel, "accumulators touched in flight", rf"({wait})", rf"\1 {accumulators}[7] += 0.0f;"),
        Mutant(
            kernel,
            "accumulators read before the wait behind the loop",
            rf"({_WAIT})",
            rf"\n  {accumulators}[9] += 0.0f;\1",
            -1,
        ),
    )


MUTANTS: tuple[Mutant, ...] = (
    # What orders registers, groups and proxies
    Mutant(GEMM, "no fence of registers", _FENCE, ""),
    Mutant(GEMM, "no commit", r"\n +wgmma_commit_group_sync_aligned\(\);", ""),
    Mutant(GEMM, "no wait", _WAIT, ""),
    Mutant(GEMM, "the wait leaves a group in flight", r"(wait_group\.sync\.aligned) 0", r"\1 1"),
    Mutant(GEMM, "a wait before the commit", r"(\n +wgmma_commit\w+\(\);)(\n +wgmma_wait\w+\(\);)", r"\2\1"),
    Mutant(GEMM, "no fence of proxies", _PROXY, ""),
    Mutant(GEMM, "no barrier before the operands are read", r"(fence_proxy\w+\(\);)\n +__syncthreads\(\);", r"\1"),
    Mutant(GEMM, "copies not waited for", r"(cp\.async\.wait_group) 1", r"\1 2"),
    Mutant(GEMM, "accumulators cleared between fence and product", rf"({_FENCE})", r"\1 C_local[5] = 0.0f;"),
    Mutant(GEMM, "accumulators read before the wait", rf"({_WAIT})", r"\n    C_local[3] = C_local[2] + 0.0f;\1"),
    Mutant(GEMM, "one warp does not take part", _CALL, r"\n    if (tid >= 32)\1", 0),
    Mutant(GEMM, "half of a warp does not wait", _WAIT, "\n    if (tid % 32 < 16) wgmma_wait_group_sync_aligned_0();"),
    *in_flight(GEMM, r"cp_async_commit_group\(\);", "C_local"),
    Mutant(GEMM, "the slot of the trip itself is filled", r"(slot_ahead = \(unsigned\)\(k \+) 2", r"\1 3"),
    # Descriptors
    Mutant(GEMM, "stride of A", r"(warpgroup_m \* 2048[^,]*, 16), 512, 2", r"\1, 1024, 2"),
    Mutant(GEMM, "swizzle of A", r"(warpgroup_m \* 2048[^,]*, 16), 512, 2", r"\1, 512, 1"),
    Mutant(GEMM, "no swizzle of A", r"(warpgroup_m \* 2048[^,]*, 16), 512, 2", r"\1, 512, 0"),
    Mutant(GEMM, "leading offset of B", r", 4096, 1024, 1, 128, 1\)", ", 2048, 1024, 1, 128, 1)"),
    Mutant(GEMM, "stride of B", r", 4096, 1024, 1, 128, 1\)", ", 4096, 512, 1, 128, 1)"),
    Mutant(GEMM, "swizzle of B", r", 4096, 1024, 1, 128, 1\)", ", 4096, 1024, 2, 128, 1)"),
    Mutant(GEMM, "leading and stride exchanged", r", 4096, 1024, 1, 128, 1\)", ", 1024, 4096, 1, 128, 1)"),
    Mutant(GEMM, "A does not advance along K", r"(warpgroup_m \* 2048\], 16, 512, 2,) 2,", r"\1 0,"),
    Mutant(GEMM, "A advances by half", r"(warpgroup_m \* 2048\], 16, 512, 2,) 2,", r"\1 1,"),
    Mutant(GEMM, "B advances like A", r"(, 4096, 1024, 1,) 128,", r"\1 2,"),
    Mutant(GEMM, "rows of the other warpgroup", r"(const int warpgroup_m =) warpgroup;", r"\1 1 - group;"),
    Mutant(GEMM, "rows of no warpgroup", r"(const int warpgroup_m =) warpgroup;", r"\1 0;"),
    Mutant(GEMM, "rows by warp", r"(warpgroup = warp) >> 2", r"\1 >> 1"),
    Mutant(GEMM, "the slot of another trip", r"(&A_shared_stages\[)slot( \* 4096 \+ war)", r"\1(slot + 1) % 3\2"),
    Mutant(GEMM, "tiles off the pattern of the swizzle", r"\(f16\*\)smem;", "(f16*)(smem + 128);"),
    Mutant(GEMM, "address without its upper bits", r"& 0x3ffff\)", "& 0x3fff)"),
    Mutant(GEMM, "the stride in the place of the leading offset", r"(\(unsigned\)stride >> 4) \|", r"\1 << 4 |"),
    # Instructions
    Mutant(GEMM, "B along K", r"p, 1, 1, 0, 1; \}", "p, 1, 1, 0, 0; }"),
    Mutant(GEMM, "A across", r"p, 1, 1, 0, 1; \}", "p, 1, 1, 1, 1; }"),
    Mutant(GEMM, "A negated", r"p, 1, 1, 0, 1; \}", "p, -1, 1, 0, 1; }"),
    Mutant(GEMM, "the second one does not add", r"(, 4096, 1024, 1, 128), 1\)", r"\1, 0)"),
    Mutant(GEMM, "A and B exchanged in the instruction", r"\}, %(\d+), %(\d+), p", r"}, %\2, %\1, p"),
    Mutant(GEMM, "two registers exchanged in the instruction", r"\{%0, %1, ", "{%1, %0, "),
    Mutant(GEMM, "another type", r"(k16\.f32)\.f16\.f16", r"\1.bf16.bf16"),
    Mutant(TURNED, "A along K", r"p, 1, 1, 1, 0; \}", "p, 1, 1, 0, 0; }"),
    Mutant(TURNED, "B across", r"p, 1, 1, 1, 0; \}", "p, 1, 1, 1, 1; }"),
    Mutant(HELD, "fragments rewritten before the wait", rf"(f16_rs_tb\([^;]*;)(\n[^}}]*?{_WAIT})",
           r"\1 a_words[0] = 1;\2"),
    # Metadata
    Mutant(SPARSE, "the other selector", r"(%\d+), 1, (p, 1, 1, 0, 1; \})", r"\1, 0, \2"),
    Mutant(SPARSE, "metadata rewritten before the wait", rf"({_WAIT})", r"\n    metadata = 0x44444444u;\1", 1),
    Mutant(SPARSE, "metadata in flight rewritten", rf"({_ONE_LEFT}\n +read_metadata_1\(&metadata_odd\);)",
           r"\1 metadata = 0x44444444u;"),
    Mutant(SPARSE, "metadata of the trip before rewritten", rf"({_ONE_LEFT}\n +read_metadata_1\(&metadata_odd\);)",
           r"\n    metadata_odd = 0x44444444u;\1"),
    Mutant(SPARSE, "one set of metadata for all trips", r"(?<!unsigned )metadata_odd", "metadata"),
    Mutant(SPARSE, "no wait for products in the loop", _ONE_LEFT, ""),
    Mutant(SPARSE, "one product left behind the loop", _WAIT, "\n  wgmma_wait_group_sync_aligned_1();", 1),
    Mutant(SPARSE, "metadata rewritten between two", r"(\n +wgmma_sp1)", r"\n    metadata = metadata * 3u;\1"),
    Mutant(SPARSE, "metadata of another lane", r"(const int lane_t =) lane & 31 & 3;", r"\1 (lane + 1) & 3;"),
    Mutant(SPARSE, "metadata of 8 rows", r"lane_t \+ 32\] << 16u", "lane_t] << 16u"),
    Mutant(SPARSE, "empty nibbles", r"\^ 1145324612u", "^ 0u"),
    Mutant(SPARSE, "B advances like A", r"(, 8192, 1024, 1,) 256,", r"\1 128,"),
    Mutant(SPARSE, "no fence of registers", _FENCE, ""),
    Mutant(SPARSE, "no fence of proxies", _PROXY, ""),
    Mutant(SPARSE, "no wait", _WAIT, ""),
    Mutant(HELD, "fragments of the step before", r"(f16_rs_tb\([^,]*, &a_words)\[4\]", r"\1[0]"),
)  # fmt: skip

WARPGROUPS = Zoo(
    entries=(
        gemm("f16_two_groups", 130, 136, 200, F16, block=(128, 128, 32), threads=256, stages=3),
        gemm("f16_turned", 70, 100, 72, F16, block=(64, 64, 32), trans=TT, stages=4),
        gemm("f16_nt", 65, 72, 80, F16, block=(64, 40, 32), trans=NT),
        gemm("bf16", 64, 56, 64, BF16, block=(64, 32, 32), trans=TN, stages=1),
        gemm("int8", 64, 48, 96, INT8, block=(64, 40, 64), trans=NT),
        gemm("fp8", 64, 32, 64, FP8, block=(64, 32, 64), trans=NT, kept=13),
        gemm("tf32", 65, 40, 36, TF32, block=(64, 32, 32), trans=NT),
        gemm("dynamic", 67, 70, 56, F16, block=(64, 64, 32), dynamic=True),
        Entry("attention_d64", from_example("flash_attention", 1, 1, 64, 80, 64, False)),
        Entry("sp_f16", lambda: programs.gemm_sp_case(65, 72, 192, "float16", False)),
        Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(72, 64, 192, (64, 64, 64))),
        Entry("sp_f16_cutlass", lambda: programs.gemm_sp_case(64, 64, 128, "float16", True)),
        *(e for e in KERNELS if e.name in ("attention", "epilogue_gelu", "epilogue_relu")),
    ),
    targets=("cuda:sm_90a",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    needless={GEMM: ()},
    golden=Path(__file__).parent / "golden_warpgroups",
    suffix=".cu",
    kept=("gemm_f16_two_groups", "attention", "sp_f16"),
    options={"wgmma": "always", "numerics": "fast", "tma": "never", "epilogue": "never"},
)
