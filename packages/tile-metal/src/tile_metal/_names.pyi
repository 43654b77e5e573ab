# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""The names that ``tile_metal`` adds to ``T``."""

from tile_core.language._types import Buffer, Region, Tile
from tile_core.ops.gemm import GemmWarpPolicy

def cooperative_tensor_gemm(
    A: Buffer,
    B: Buffer,
    C: Buffer,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
) -> None:
    """Multiply tiles by tensor operations of Metal 4: ``T.gemm`` with ``variant="metal.tensor_ops"``."""

def cooperative_tensor_gemm_sp(
    A_sparse: Tile,
    E: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
) -> None:
    """Multiply a 2:4 sparse tile by a dense one with Metal 4 tensor operations.

    See ``T.gemm_sp``.
    """

def simdgroup_fill(tile: Buffer, value: float) -> None:
    """Set every element of a fragment (all of its 8 x 8 matrices, not diagonals).

    Raises
    ------
    ScopeNotAllowed
        If the tile is not a fragment.
    """

def simdgroup_gemm(
    A: Buffer | Region,
    B: Buffer | Region,
    C: Buffer,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
) -> None:
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

def simdgroup_gemm_sp(
    A_sparse: Tile,
    E: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
) -> None:
    """Multiply a 2:4 sparse tile by a dense one on ``simdgroup_matrix``, see ``T.gemm_sp`` and ``simdgroup_gemm``."""

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

def simdgroup_multiply_accumulate(C: Buffer, A: Buffer, B: Buffer) -> None:
    """Multiply fragments: ``C += A @ B`` over all of their matrices, along K too.

    Raises
    ------
    ScopeNotAllowed
        If one of them is not a fragment.
    """

def simdgroup_store(tile: Buffer, destination: Buffer, transpose: bool = False) -> None:
    """Store all matrices of a fragment to a tile in any memory; see ``simdgroup_load``."""
