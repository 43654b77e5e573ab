"""Rows of a zoo: small kernels of every kind, with sizes that leave tails."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import programs
from .case import Case, from_example

F16 = ("float16", "float16", "float32")
BF16 = ("bfloat16", "bfloat16", "float32")
TF32 = ("tfloat32", "tfloat32", "float32")
INT8 = ("int8", "int8", "int32")
FP8 = ("float8_e4m3fn", "float8_e5m2", "float32")
FP64 = ("float64", "float64", "float64")
FP32 = ("float32", "float32", "float32")
NT, TN, TT = (False, True), (True, False), (True, True)


@dataclass(frozen=True)
class Entry:
    """A kernel of the zoo.

    Attributes
    ----------
    name
        Stable; its golden text is kept under it.
    make
        Makes the program, arguments and what is expected.
    """

    name: str
    make: Callable[[], Case]


def gemm(name: str, M: int, N: int, K: int, types: programs.Types, **how: Any) -> Entry:
    """Return a product; ``how`` is what ``programs.gemm_case`` takes."""
    return Entry(f"gemm_{name}", functools.partial(programs.gemm_case, M, N, K, types, **how))


#: Products of the usual types, with tails, all orientations, and one to four stages.
PRODUCTS: tuple[Entry, ...] = (
    gemm("f16_small", 29, 24, 72, F16, stages=3),
    gemm("f16_tails", 65, 39, 71, F16),
    gemm("f16_nt", 40, 72, 80, F16, trans=NT),
    gemm("f16_tn", 40, 72, 80, F16, trans=TN, stages=1),
    gemm("f16_tt", 33, 31, 17, F16, trans=TT, stages=4),
    gemm("f16_one", 1, 1, 1, F16),
    gemm("bf16", 48, 56, 64, BF16, trans=NT, stages=2),
    gemm("int8", 48, 40, 96, INT8, trans=NT),
    gemm("fp8", 40, 24, 64, FP8, trans=NT),
    gemm("fp32", 33, 35, 29, FP32),
    gemm("dynamic", 37, 40, 56, F16, dynamic=True),
)

#: Backend-independent kernels; a backend adds products with its own instructions.
KERNELS: tuple[Entry, ...] = (
    Entry("attention", from_example("flash_attention", 1, 1, 64, 96, 32, True)),
    Entry("attention_tails", from_example("flash_attention", 1, 2, 67, 75, 24, False)),
    Entry("sparse_attention", from_example("sparse_attention", 7, 50, 40, 33)),
    Entry("epilogue_gelu", from_example("fused_epilogue", 65, 40, 36, "gelu")),
    Entry("epilogue_relu", from_example("fused_epilogue", 64, 64, 64, "relu")),
    Entry("softmax", from_example("softmax", "@softmax", 5, 129, "float32", 1e-6)),
    Entry("online_softmax", from_example("softmax", "@online_softmax", 6, 300, "float32", 1e-6)),
    Entry("rms_norm", from_example("rms_norm", 9, 128, "float16", 1e-3)),
    Entry("rms_norm_tails", from_example("rms_norm", 5, 77, "float32", 1e-6)),
    Entry("dequant", from_example("dequant_gemm", 33, 50, 96)),
    Entry("moe", from_example("moe", 37, 3, 40, 68)),
    Entry("kv_gather", from_example("kv_cache", 61, 40, 33, at=0)),
    Entry("kv_append", from_example("kv_cache", 61, 40, 33, at=1)),
    Entry("cumsum", from_example("cumsum", function="main", at=2)),
    Entry("cumsum_columns", from_example("cumsum", function="main", at=3)),
    Entry("fp8_rows", from_example("fp8_gemm", 33, 40, 96, "float8_e5m2", "row")),
    Entry("fp8_blocks", from_example("fp8_gemm", 40, 48, 64, "float8_e4m3fn", "block")),
    Entry("scaled_add", from_example("elementwise", function="main", at=1)),
    Entry("swish", from_example("elementwise", function="main", at=5)),
    Entry("histogram", lambda: programs.histogram_case(301, 37)),
    Entry("split_k", lambda: programs.split_k_case(33, 40, 96, 3)),
    Entry("grouped", lambda: programs.grouped_case((5, 5, 41), 40, 72, (32, 32, 16), 2)),
    Entry("block_sum", lambda: programs.block_sum_case(3, 301)),
    Entry("row_max", lambda: programs.row_max_case(6, 77)),
    Entry("neighbours", lambda: programs.neighbours_case(131)),
)  # fmt: skip
