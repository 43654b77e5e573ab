"""Opcodes of tensor memory, and of the products whose sums are there, with the functions that model them.

PTX ISA, "TensorCore 5th Generation Instructions". Forms without a row have no model, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

A = TypeVar("A")
#: Columns that a thread reads or writes at once.
COUNTS = (16, 32)
_KINDS = {"f16": "KIND_F16", "tf32": "KIND_TF32", "f8f6f4": "KIND_F8", "i8": "KIND_I8"}
#: Architectures with products of integers, by their place among those with tensor memory: sm_100a and sm_110a.
_INTEGERS = (0, 3)


def rows(archs: Sequence[A]) -> Iterator[tuple[str, str, Sequence[A]]]:
    """Yield opcode, function, and the architectures that have it.

    Parameters
    ----------
    archs
        Those with tensor memory: sm_100a, sm_100f, sm_103a, sm_110a.
    """
    group = "cta_group::1"
    yield f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32", "tcgen05_alloc", archs
    yield f"tcgen05.dealloc.{group}.sync.aligned.b32", "tcgen05_dealloc", archs
    yield f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned", "tcgen05_relinquish", archs
    for count in COUNTS:
        yield f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32", "tcgen05_ld", archs
        yield f"tcgen05.st.sync.aligned.32x32b.x{count}.b32", "tcgen05_st", archs
    yield "tcgen05.wait::ld.sync.aligned", "tcgen05_wait_ld", archs
    yield "tcgen05.wait::st.sync.aligned", "tcgen05_wait_st", archs
    yield "tcgen05.fence::before_thread_sync", "tcgen05_fence_before", archs
    yield "tcgen05.fence::after_thread_sync", "tcgen05_fence_after", archs
    yield f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.b64", "tcgen05_commit", archs
    for kind, model in _KINDS.items():
        own = [archs[i] for i in _INTEGERS] if kind == "i8" else archs
        yield f"tcgen05.mma.{group}.kind::{kind}", f"tcgen05_mma<ptx::{model}>", own
