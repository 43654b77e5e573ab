"""The zoo: small kernels of every common kind, with sizes that leave tails."""

from __future__ import annotations

from zoo import programs
from zoo.table import F16, FP64, INT8, KERNELS, NT, PRODUCTS, TF32, Entry, gemm

ZOO: tuple[Entry, ...] = (
    *PRODUCTS,
    gemm("f16", 64, 64, 96, F16, block=(64, 64, 32), stages=3),
    gemm("f16_256_threads", 64, 128, 64, F16, block=(64, 128, 32), threads=256, stages=4),
    gemm("tf32", 33, 40, 36, TF32, trans=NT),
    gemm("int8_nn", 33, 47, 65, INT8),
    gemm("fp64", 17, 24, 20, FP64, block=(16, 16, 16)),
    Entry("sp_f16", lambda: programs.gemm_sp_case(33, 40, 128, "float16", False, (32, 32, 64))),
    Entry("sp_int8", lambda: programs.gemm_sp_case(40, 33, 128, "int8", False, (32, 32, 64))),
    Entry("sp_f16_pairs", lambda: programs.gemm_sp_case(72, 64, 384, "float16", False, (64, 64, 128))),
    Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(72, 64, 320, (64, 64, 64))),
    Entry("sp_f16_cutlass", lambda: programs.gemm_sp_case(64, 64, 128, "float16", True)),
    Entry("sp_int8_cutlass", lambda: programs.gemm_sp_case(64, 64, 256, "int8", True, (64, 64, 128))),
    *KERNELS,
)  # fmt: skip

assert len({entry.name for entry in ZOO}) == len(ZOO)

#: Kernels whose texts are kept.
KEPT = (
    "gemm_f16",
    "gemm_int8",
    "gemm_dynamic",
    "sp_f16_turned",
    "sp_f16_cutlass",
    "attention",
    "rms_norm",
    "block_sum",
    "grouped",
)
