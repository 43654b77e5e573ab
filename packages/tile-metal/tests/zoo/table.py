"""The zoo: kernels of every kind that people write, small, with sizes that leave tails."""

from __future__ import annotations

import functools

from zoo import programs
from zoo.case import from_example
from zoo.codes import FORMATS, decode_case, encode_case
from zoo.table import F16, FP32, KERNELS, PRODUCTS, Entry, gemm

ZOO: tuple[Entry, ...] = (
    *PRODUCTS,
    gemm("f16", 64, 64, 96, F16, block=(64, 64, 32), stages=2),
    gemm("f16_256_threads", 64, 128, 64, F16, block=(64, 128, 32), threads=256, stages=4),
    gemm("fp32_even", 32, 64, 32, FP32, stages=2),
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
