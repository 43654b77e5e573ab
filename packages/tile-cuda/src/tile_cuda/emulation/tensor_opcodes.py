"""Opcodes of tensor memory and its products, with the functions that model them.

PTX ISA, "TensorCore 5th Generation Instructions". Forms without a row have no model, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

A = TypeVar("A")
#: Columns that a thread reads, and those that it writes, at once.
READ, WRITTEN = (16, 32), (2, 4, 8, 16, 32)
_KINDS = {"f16": "KIND_F16", "tf32": "KIND_TF32", "f8f6f4": "KIND_F8", "i8": "KIND_I8"}
#: Kinds with scales: their model, and how many scales of a row an instruction takes.
_SCALED = {
    "mxf8f6f4.block_scale.scale_vec::1X": ("KIND_MXF8", 1), "mxf4.block_scale.scale_vec::2X": ("KIND_MXF4", 2),
    "mxf4nvf4.block_scale.scale_vec::4X": ("KIND_NVF4", 4),
}  # fmt: skip
#: Architectures that have the spelling ``.scale_vec``, by their place: all but sm_100f.
_VECTORS = (0, 2, 3)
#: Architectures with products of integers, by their place among those with tensor memory: sm_100a and sm_110a.
_INTEGERS = (0, 3)


def rows(archs: Sequence[A]) -> Iterator[tuple[str, str, Sequence[A]]]:
    """Yield opcode, function, and the architectures that have it.

    Parameters
    ----------
    archs
        Those with tensor memory: sm_100a, sm_100f, sm_103a, sm_110a.
    """
    for blocks in (1, 2):
        group = f"cta_group::{blocks}"
        yield f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32", f"tcgen05_alloc<{blocks}>", archs
        yield f"tcgen05.dealloc.{group}.sync.aligned.b32", f"tcgen05_dealloc<{blocks}>", archs
        yield f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned", f"tcgen05_relinquish<{blocks}>", archs
    committed = "mbarrier::arrive::one.shared::cluster"
    yield f"tcgen05.commit.cta_group::1.{committed}.b64", "tcgen05_commit", archs
    for blocks in (1, 2):
        model = f"tcgen05_commit_multicast<{blocks}>"
        yield f"tcgen05.commit.cta_group::{blocks}.{committed}.multicast::cluster.b64", model, archs
    for count in READ:
        yield f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32", "tcgen05_ld", archs
    for count in WRITTEN:
        yield f"tcgen05.st.sync.aligned.32x32b.x{count}.b32", "tcgen05_st", archs
    yield "tcgen05.wait::ld.sync.aligned", "tcgen05_wait_ld", archs
    yield "tcgen05.wait::st.sync.aligned", "tcgen05_wait_st", archs
    yield "tcgen05.fence::before_thread_sync", "tcgen05_fence_before", archs
    yield "tcgen05.fence::after_thread_sync", "tcgen05_fence_after", archs
    yield "tcgen05.cp.cta_group::1.32x128b.warpx4", "tcgen05_cp_warpx4", archs
    for kind, (model, count) in _SCALED.items():
        call = f"tcgen05_mma_scaled<ptx::{model}, {count}>"
        yield f"tcgen05.mma.cta_group::1.kind::{kind}", call, [archs[i] for i in _VECTORS]
    for kind, model in _KINDS.items():
        own = [archs[i] for i in _INTEGERS] if kind == "i8" else archs
        yield f"tcgen05.mma.cta_group::1.kind::{kind}", f"tcgen05_mma<ptx::{model}>", own
        yield f"tcgen05.mma.cta_group::2.kind::{kind}", f"tcgen05_mma<ptx::{model}, 2>", own
        yield f"tcgen05.mma.sp.cta_group::1.kind::{kind}", f"tcgen05_mma_sp<ptx::{model}>", own
