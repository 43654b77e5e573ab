"""The zoo: kernels of every kind that people write, small, with sizes that leave tails."""

from __future__ import annotations

import functools

from zoo import programs
from zoo.case import from_example
from zoo.codes import FORMATS, decode_case, encode_case
from zoo.table import BF16, F16, FP64, INT8, KERNELS, NT, PRODUCTS, TF32, Entry, gemm

#: The 8-bit floats of gfx942.
FNUZ = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float32")

OWN: tuple[Entry, ...] = (
    gemm("f16", 64, 64, 96, F16, block=(64, 64, 32), stages=2),
    gemm("f16_256_threads", 64, 128, 64, F16, block=(64, 128, 32), threads=256, stages=2),
    gemm("bf16_large", 64, 64, 64, BF16, block=(64, 64, 32)),
    gemm("tf32", 33, 40, 36, TF32, trans=NT),
    gemm("int8_large", 64, 64, 64, INT8, block=(64, 64, 32)),
    gemm("int8_nn", 33, 47, 65, INT8),
    gemm("fp8_fnuz", 40, 24, 64, FNUZ, trans=NT),
    gemm("fp8_fnuz_large", 64, 64, 96, FNUZ, block=(64, 64, 32)),
    gemm("fp64", 17, 24, 20, FP64, block=(16, 16, 16)),
    Entry("sp_f16", lambda: programs.gemm_sp_case(33, 40, 128, "float16", False, (32, 32, 64))),
    Entry("sp_f16_words", lambda: programs.gemm_sp_case(40, 33, 384, "float16", False, (32, 32, 192))),
    Entry("sp_f16_turned", lambda: programs.gemm_sp_turned_case(72, 64, 320, (64, 64, 64))),
    Entry("sp_f16_cutlass", lambda: programs.gemm_sp_case(64, 64, 128, "float16", True)),
    Entry("sp_bf16", lambda: programs.gemm_sp_case(33, 40, 256, "bfloat16", False, (32, 32, 128))),
    Entry("sp_int8", lambda: programs.gemm_sp_case(40, 33, 128, "int8", False, (32, 32, 64))),
    Entry("sp_int8_words", lambda: programs.gemm_sp_case(40, 33, 256, "int8", False, (32, 32, 128))),
    Entry("sp_fp8_fnuz", lambda: programs.gemm_sp_case(33, 40, 128, "float8_e4m3fnuz", False, (32, 32, 64))),
    Entry("sp_bf8_fnuz_words", lambda: programs.gemm_sp_case(40, 33, 256, "float8_e5m2fnuz", False, (32, 32, 128))),
    Entry("fp8_fnuz_tensor", from_example("fp8_gemm", 64, 64, 64, "float8_e4m3fnuz", "tensor")),
)  # fmt: skip

ZOO: tuple[Entry, ...] = (
    *PRODUCTS,
    *OWN,
    *(Entry(f"decode_{fmt[7:]}", functools.partial(decode_case, fmt)) for fmt in FORMATS),
    *(Entry(f"encode_{fmt[7:]}", functools.partial(encode_case, fmt)) for fmt in FORMATS),
    *(e for e in KERNELS if e.name != "neighbours"),
    Entry("neighbours", lambda: programs.neighbours_case(131, 64)),
)

assert len({entry.name for entry in ZOO}) == len(ZOO)

#: Kernels whose texts are kept.
KEPT = ("scaled_add", "gemm_f16", "gemm_fp8_fnuz", "sp_f16_words", "fp8_rows", "block_sum", "histogram", "kv_gather")
