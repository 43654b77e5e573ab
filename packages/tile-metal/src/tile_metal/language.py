"""Names that this package adds to ``T``: instruction-level GEMMs and simdgroup matrix tiles.

They are the language's own ops with a forced variant: if the instruction does not fit, that is a compile error, never
a fallback. They compute the same as ``T.gemm``, ``T.gemm_sp``, ``T.copy``, ``T.transpose`` and ``T.fill``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.ops import ScopeNotAllowed
from tile_core.ops import operands
from tile_core.ops.copy import copy
from tile_core.ops.fill import fill
from tile_core.ops.gemm import GemmWarpPolicy, gemm
from tile_core.ops.gemm_sp import gemm_sp
from tile_core.ops.transpose import transpose as transposed

if TYPE_CHECKING:
    from tile_core.values.value import Buffer, Region, Tile


SIMDGROUP, TENSOR = "metal.simdgroup", "metal.tensor_ops"


def simdgroup_gemm(
    A: Buffer | Region, B: Buffer | Region, C: Buffer, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply tiles on ``simdgroup_matrix``: ``T.gemm`` with ``variant="metal.simdgroup"``.

    Parameters
    ----------
    A, B, C, transpose_A, transpose_B, policy, clear_accum
        As for ``T.gemm``. A and B may be in any scope, also in device memory: they are not staged then.

    Raises
    ------
    VariantRefused, VariantMissing
        When it is compiled, if the instruction does not fit the call or the target has none.
    """
    with operands.called("T.simdgroup_gemm", "write T.gemm"):
        gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=SIMDGROUP)


def simdgroup_gemm_sp(
    A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply a 2:4 sparse tile by a dense one on ``simdgroup_matrix``, see ``T.gemm_sp`` and ``simdgroup_gemm``."""
    turned = (transpose_A, transpose_E, transpose_B)
    with operands.called("T.simdgroup_gemm_sp", "write T.gemm_sp"):
        gemm_sp(A_sparse, E, B, C, *turned, policy, clear_accum, variant=f"{SIMDGROUP}.sp")


def cooperative_tensor_gemm(
    A: Buffer, B: Buffer, C: Buffer, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply tiles by tensor operations of Metal 4: ``T.gemm`` with ``variant="metal.tensor_ops"``."""
    with operands.called("T.cooperative_tensor_gemm", "write T.gemm"):
        gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=TENSOR)


def cooperative_tensor_gemm_sp(
    A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply a 2:4 sparse tile by a dense one with Metal 4 tensor operations.

    See ``T.gemm_sp``.
    """
    turned = (transpose_A, transpose_E, transpose_B)
    with operands.called("T.cooperative_tensor_gemm_sp", "write T.gemm_sp"):
        gemm_sp(A_sparse, E, B, C, *turned, policy, clear_accum, variant=f"{TENSOR}.sp")


def simdgroup_fill(tile: Buffer, value: float) -> None:
    """Set every element of a fragment (all of its 8 x 8 matrices, not diagonals).

    Raises
    ------
    ScopeNotAllowed
        If the tile is not a fragment.
    """
    _fragment("simdgroup_fill", "tile", tile)
    with operands.requires(SIMDGROUP), operands.called("T.simdgroup_fill", "write T.fill"):
        fill(tile, value)


def simdgroup_load(tile: Buffer, source: Buffer, transpose: bool = False) -> None:
    """Load all matrices of a fragment from a tile, converted to its element type.

    Parameters
    ----------
    tile
        Fragment of any number of 8 x 8 matrices, also partial ones.
    source
        Tile of its shape, or with ``transpose`` of the transposed shape.

    Raises
    ------
    ScopeNotAllowed
        If ``tile`` is not a fragment.
    """
    _fragment("simdgroup_load", "tile", tile)
    with operands.requires(SIMDGROUP), operands.called("T.simdgroup_load", _plain(transpose)):
        (transposed if transpose else copy)(source, tile)


def simdgroup_store(tile: Buffer, destination: Buffer, transpose: bool = False) -> None:
    """Store all matrices of a fragment to a tile in any memory; see ``simdgroup_load``."""
    _fragment("simdgroup_store", "tile", tile)
    with operands.requires(SIMDGROUP), operands.called("T.simdgroup_store", _plain(transpose)):
        (transposed if transpose else copy)(tile, destination)


def simdgroup_multiply_accumulate(C: Buffer, A: Buffer, B: Buffer) -> None:
    """Multiply fragments: ``C += A @ B`` over all of their matrices, along K too.

    Raises
    ------
    ScopeNotAllowed
        If one of them is not a fragment.
    """
    for role, tile in (("C", C), ("A", A), ("B", B)):
        _fragment("simdgroup_multiply_accumulate", role, tile)
    with operands.called("T.simdgroup_multiply_accumulate", "write T.gemm"):
        gemm(A, B, C, variant=SIMDGROUP)


def _plain(transpose: bool) -> str:
    return "write T.transpose" if transpose else "write T.copy"


def _fragment(op: str, role: str, tile: Buffer) -> None:
    region = operands.as_region(op, role, tile)
    if region.scope != "local.fragment":
        raise ScopeNotAllowed(op=op, role=role, found=region.scope, legal="a fragment (T.alloc_fragment)")
