"""The variants of products with accumulators in tensor memory."""

from __future__ import annotations

from tile_core.ops.base import OpCall
from tile_cuda.ops.gemm_scaled_tensor import TensorGemmScaled
from tile_cuda.ops.gemm_sp_tensor import TensorGemmSp
from tile_cuda.ops.gemm_tensor import TensorGemm, TensorVariant

TENSOR_PRODUCTS: tuple[TensorVariant, ...] = (TensorGemm(), TensorGemmSp(), TensorGemmScaled())
"""One for each op."""


def variant_of(call: OpCall) -> TensorVariant:
    """Return the variant of a product."""
    return next(v for v in TENSOR_PRODUCTS if v.op == call.name)
