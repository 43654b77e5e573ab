"""Lowering variants of this backend, one file each, beside every op's plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.simt.ops.common import thread_variants
from tile_rocm_stub.ops.atomics import RocmAtomics
from tile_rocm_stub.ops.gemm import Mfma, Smfmac
from tile_rocm_stub.target import FP8, XF32

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    how = target.capabilities.fact(FP8), target.capabilities.fact(XF32)
    return (Mfma(*how), Smfmac(*how), *thread_variants("rocm", RocmAtomics()))
