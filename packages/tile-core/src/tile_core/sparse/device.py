"""``compress`` for matrices in device memory, by a tile kernel without copies."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.errors.sparse import NotAMatrix
from tile_core.runtime.verify import host_copy
from tile_core.sparse.format import GROUPS, NATURAL, check_extent, zero_mask
from tile_core.sparse.host import operand_of
from tile_core.sparse.kernels import device_program
from tile_core.sparse.layouts import layout_meta_type
from tile_runtime.calls.arrays import ArrayFacts, Unreadable, device_text, facts_of

if TYPE_CHECKING:
    from tile_core.runtime.kernel import Kernel


def device_facts(A: Array) -> ArrayFacts | None:
    """Return the facts of an array in device memory; ``None`` for everything else."""
    try:
        facts = facts_of(A)
    except Unreadable:
        return None
    return None if facts.device[0] == HOST_DEVICE else facts


def compress_there(
    A: Array,
    facts: ArrayFacts,
    meta_dtype: DTypeLike,
    dtype: DTypeLike,
    checked: bool,
    target: str = "auto",
    runtime: str | None = None,
) -> tuple[Array, Array, bool]:
    """Return kept values, natural-order metadata, and whether a group has too many non-zeros.

    Parameters
    ----------
    A
        A contiguous matrix ``(M, K)``.
    facts
        What is known of it.
    meta_dtype, dtype
        As for ``compress``.
    checked
        Whether to wait for the kernel, and read whether some group has too many.
    target, runtime
        What compiles and runs the kernel.

    Raises
    ------
    NotAMatrix, BadSparseDType, BadSparseExtent
        As for ``compress``.
    """
    if len(facts.shape) != 2:
        raise NotAMatrix(name="A", found=f"{len(facts.shape)} dimensions {facts.shape}")
    operand = operand_of(facts, dtype)
    meta = layout_meta_type(NATURAL, operand, meta_dtype)
    check_extent(facts.shape[1], operand, meta)
    if not facts.size:
        raise NotAMatrix(name="A", found=f"an empty array on {device_text(facts.device)}")
    kernel = _compiled((facts.shape[0], facts.shape[1]), facts.dtype, operand, str(meta), checked, target, runtime)
    made = kernel(A)
    if not checked:
        return made[0], made[1], False
    return made[0], made[1], bool(host_copy(made[2], kernel.signature.params[-1])[0])


@functools.cache
def _compiled(
    shape: tuple[int, int], element: str, operand: DType, meta: str, checked: bool, target: str, runtime: str | None
) -> Kernel:
    import tile_core as tile

    program = device_program(shape, element, meta, GROUPS[operand], int(zero_mask(operand)), checked)
    return tile.compile(program, target=target, out_idx=[1, 2, 3] if checked else [1, 2], runtime=runtime)
