"""The zoo: kernels of every kind that people write, small, with sizes that leave tails."""

from __future__ import annotations

import functools

from zoo import programs
from zoo.case import from_example
from zoo.table import BF16, F16, FP8, FP32, INT8, KERNELS, NT, TN, TT, Entry, gemm

from .codes import FORMATS, decode_case, encode_case

ZOO: tuple[Entry, ...] = (
    gemm("f16", 64, 64, 96, F16, block=(64, 64, 32), stages=2),
    gemm("f16_small", 29, 24, 72, F16, stages=3),
    gemm("f16_tails", 65, 39, 71, F16),
    gemm("f16_nt", 40, 72, 80, F16, trans=NT),
    gemm("f16_tn", 40, 72, 80, F16, trans=TN, stages=1),
    gemm("f16_tt", 33, 31, 17, F16, trans=TT, stages=4),
    gemm("f16_256_threads", 64, 128, 64, F16, block=(64, 128, 32), threads=256, stages=4),
    gemm("f16_one", 1, 1, 1, F16),
    gemm("bf16", 48, 56, 64, BF16, trans=NT, stages=2),
    gemm("fp32", 33, 35, 29, FP32),
    gemm("fp32_even", 32, 64, 32, FP32, stages=2),
    gemm("int8", 48, 40, 96, INT8, trans=NT),
    gemm("fp8", 40, 24, 64, FP8, trans=NT),
    gemm("dynamic", 37, 40, 56, F16, dynamic=True),
    Entry("sp_f16", lambda: programs.gemm_sp_case(33, 40, 128, "float16", False, (32, 32, 64))),
    Entry("sp_f16_cutlass", lambda: programs.gemm_sp_case(64, 64, 128, "float16", True)),
    Entry("sp_int8", lambda: programs.gemm_sp_case(40, 33, 128, "int8", False, (32, 32, 64))),
    Entry("fp8_tensor", from_example("fp8_gemm", 64, 64, 64, "float8_e4m3fn", "tensor")),
    Entry("fp8_one_row", from_example("fp8_gemm", 1, 65, 256, "float8_e4m3fn", "row")),
    *(Entry(f"decode_{fmt[7:]}", functools.partial(decode_case, fmt)) for fmt in FORMATS),
    *(Entry(f"encode_{fmt[7:]}", functools.partial(encode_case, fmt)) for fmt in FORMATS),
    *KERNELS,
)  # fmt: skip

assert len({entry.name for entry in ZOO}) == len(ZOO)

#: Kernels whose texts are kept.
KEPT = (
    "gemm_f16", "gemm_bf16", "gemm_fp32_even", "fp8_tensor", "fp8_rows", "attention", "sp_f16", "rms_norm", "dequant",
    "kv_gather",
)  # fmt: skip
