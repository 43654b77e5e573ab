# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""The names that ``tile_cuda`` adds to ``T``."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, overload
from tile_core.language._types import BlockIndex, Buffer, DTypeLike, Index, Scalar, Tile, Value
from tile_core.ops.gemm import GemmWarpPolicy

@overload
def ClusterKernel(
    x: Index, /, *, cluster_dims: int | Sequence[int] = 1, threads: int | Sequence[int] | None = None
) -> AbstractContextManager[BlockIndex]:
    """A launch whose blocks run together in clusters: ``with T.ClusterKernel(gx, cluster_dims=2) as bx:``.

    Parameters
    ----------
    *grid
        As for ``T.Kernel``: all blocks, along each axis a multiple of those of a cluster.
    cluster_dims
        Blocks of a cluster along the axes of the grid: Python ints with a product of at most 8. An axis that is
        left out has one.
    threads
        As for ``T.Kernel``.

    Raises
    ------
    OutsideKernel, BadLaunch, SecondLaunch
        As for ``T.Kernel``; for other clusters, and for a constant grid that is not made of whole ones.
    ClusterUnsupported, GridNotInClusters
        When it is compiled for a target with threads but without clusters; when it is launched with other blocks.
    """

@overload
def ClusterKernel(
    x: Index, y: Index, /, *, cluster_dims: int | Sequence[int] = 1, threads: int | Sequence[int] | None = None
) -> AbstractContextManager[tuple[Value, Value]]: ...
@overload
def ClusterKernel(
    x: Index,
    y: Index,
    z: Index,
    /,
    *,
    cluster_dims: int | Sequence[int] = 1,
    threads: int | Sequence[int] | None = None,
) -> AbstractContextManager[tuple[Value, Value, Value]]: ...
@overload
def ClusterKernel(
    *extents: Index | Sequence[Index], cluster_dims: int | Sequence[int] = 1, threads: int | Sequence[int] | None = None
) -> AbstractContextManager[Any]: ...
def alloc_barrier(arrive_count: int | Sequence[int]) -> Any:
    """Allocate a barrier with phases.

    Parameters
    ----------
    arrive_count
        Arrivals that end a phase, or those of each of several objects: ``T.alloc_barrier([128] * 4)``.

    Raises
    ------
    BadArgument
        For other than positive Python ints.
    BadBarrier
        Inside a loop, a branch or ``T.ws``: the whole block makes it.
    """

def alloc_cluster_barrier(arrive_count: int | Sequence[int]) -> Any:
    """Allocate a barrier in each block for arrivals of all blocks of the cluster.

    Parameters
    ----------
    arrive_count
        As for ``T.alloc_barrier``: arrivals of all blocks together that end a phase.

    Raises
    ------
    BadArgument, BadBarrier
        As for ``T.alloc_barrier``.
    """

def alloc_tmem(shape: Sequence[int], dtype: DTypeLike) -> Buffer:
    """Allocate an accumulator in tensor memory: a fragment of ``float32`` or ``int32``.

    Only products add to it there. Other statements may use it as any fragment, by ``T.copy`` or single elements: it
    moves to registers before such a statement, and back before a product. All allocations of a block share 512 columns,
    of 128 rows each.

    Parameters
    ----------
    shape
        128 rows, or a multiple of them, and a multiple of 16 columns.
    dtype
        Element type.

    Raises
    ------
    VariantRefused, VariantMissing
        When it is compiled, if the accumulator cannot stay there, or the target has no tensor memory.
    """

def async_copy(src: Tile, dst: Tile) -> None:
    """Copy a tile from global to shared memory by ``cp.async``, asynchronously.

    ``T.ptx_wait_group`` waits for it.

    Parameters
    ----------
    src, dst
        As for ``T.copy``.

    Raises
    ------
    ScopeNotAllowed
        For other scopes.
    VariantRefused, VariantMissing
        When it is compiled: the instruction does not fit, with the reason, or the target has none.
    NotWaitedFor
        When it is compiled: the tile is touched before the wait.
    """

def barrier_arrive(barrier: Any, cta_id: Scalar | None = None) -> None:
    """Arrive at a barrier, see ``mbarrier_arrive``."""

def barrier_wait(barrier: Any, parity: Scalar) -> None:
    """Wait for a phase, see ``mbarrier_wait_parity``."""

def block_rank_in_cluster() -> Value:
    """Return the rank of this block in its cluster; the first grid axis counts fastest."""

def cluster_arrive() -> None:
    """Arrive at the cluster barrier; ``T.cluster_wait`` follows, with other work between them.

    Raises
    ------
    BadCluster
        When it is compiled: arrivals and waits of all threads of all blocks do not alternate.
    """

def cluster_arrive_relaxed() -> None:
    """Arrive as by ``T.cluster_arrive``, without ordering earlier memory accesses.

    Blocks that rely on such an order are refused: a tile stored before it is not known to have arrived.

    Raises
    ------
    BadCluster
        As for ``T.cluster_arrive``.
    """

def cluster_size() -> int:
    """Return how many blocks a cluster has: 1 for ``T.Kernel``."""

def cluster_sync() -> None:
    """Wait for all threads of the cluster: ``T.cluster_arrive`` and ``T.cluster_wait``."""

def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived, see ``T.cluster_arrive``."""

def copy_cluster(
    src: Tile,
    dst: Tile,
    *,
    dst_block: Scalar | None = None,
    cluster_mask: int | None = None,
    remote_barrier: object = None,
) -> None:
    """Copy a tile in shared memory to another block of the cluster.

    Parameters
    ----------
    src, dst
        Tiles in shared memory of one element type and shape: ``src`` of this block, ``dst`` of block ``dst_block``.
    dst_block
        Rank of the block that receives it, of this one too: an integer made of constants, loop variables and
        ``T.block_rank_in_cluster()``.
    cluster_mask
        Instead of ``dst_block``: the ranks of the blocks that share a tile of global memory, see ``T.tma_copy``.
    remote_barrier
        An object of ``T.alloc_cluster_barrier``: that of the receiving block gets the bytes, which are expected there,
        and one arrival. The receiver waits for its phase, and ``src`` is read until it has ended. Without it threads
        store the elements, and the barrier of the cluster (``T.cluster_sync``) makes them visible.

    Raises
    ------
    ScopeNotAllowed, BadElementType, ShapesDiffer, BadAttribute, BadArgument, BadCluster, BadBarrier
        For other operands; for a rank that the cluster does not have.
    VariantRefused
        When it is compiled: a tile that a barrier counts is not made of runs of 16 bytes, with the rule.
    UnbalancedBarrier, BadBarrier
        When it is compiled: one block may write what another one still uses, or reads too early.
    ClusterUnsupported
        When it is compiled for a target without clusters.
    """

def fence_barrier_init() -> None:
    """Make new barriers visible to copies that arrive at them.

    The compiler places these fences; one more is harmless.
    """

def fence_proxy_async() -> None:
    """Make what threads have written visible to copies and products that access memory by themselves.

    The compiler places these fences; one more is harmless.
    """

def mbarrier_arrive(barrier: Any, cta_id: Scalar | None = None) -> None:
    """Arrive once per executing thread of the block or role.

    What a thread has read and written before is ordered before what others do after a wait for the phase.

    Parameters
    ----------
    barrier
        One object.
    cta_id
        Rank of the block of the cluster in which it arrives, at a barrier of ``T.alloc_cluster_barrier``: made of
        constants, loop variables and ``T.block_rank_in_cluster()``. By default its own block. Only what a thread has
        read before is ordered.
    """

def mbarrier_expect_tx(barrier: Any, tx: int) -> None:
    """Expect transaction bytes: the current phase ends only after they have been copied.

    One of the executing threads does so. ``T.tma_copy(..., barrier=b)`` expects its own bytes, except where a
    program expects bytes of the barrier with this.

    Parameters
    ----------
    barrier
        One object.
    tx
        Bytes, a positive Python int.
    """

def mbarrier_wait_parity(barrier: Any, parity: Scalar) -> None:
    """Wait for the end of a phase by its parity: 0 for even phases.

    Of a new barrier a wait for parity 1 passes at once. In program order every wait passes, and it is for the phase
    that has ended last.

    Parameters
    ----------
    barrier
        One object.
    parity
        0 or 1: an integer made of constants and loop variables, such as ``(k // 2) % 2``.
    """

def pdl_sync() -> None:
    """Wait for earlier launches: their writes are visible, and their operands may be overwritten.

    A launch with it may begin while the one before it in the stream still runs, up to this point: it makes barriers
    and fills tiles. Where launches do not overlap, it waits for nothing.

    Raises
    ------
    BadLaunchOrder
        When it is compiled: in a loop, a branch or ``T.ws``; where a tensor is accessed before it.
    """

def pdl_trigger() -> None:
    """Let the next launch begin once all blocks are here, if it uses ``T.pdl_sync``.

    It changes nothing that is computed: the next launch still waits for all that this one does.
    """

def ptx_commit_group() -> None:
    """Commit a group: the ``T.async_copy`` calls since the last commit or wait.

    A copy that no such call follows is a group of its own.

    Raises
    ------
    BadBarrier
        When it is compiled: in a pipelined loop, or where only the threads of a role come.
    """

def ptx_wait_group(num: int = 0) -> None:
    """Wait for copies of ``T.async_copy``.

    Parameters
    ----------
    num
        How many of the latest groups may still be in flight, from 0 to 7: groups of ``T.ptx_commit_group``, and single
        copies that belong to none.

    Raises
    ------
    BadBarrier
        When it is compiled: in a pipelined loop, or where only the threads of a role come.
    """

def set_max_nreg(num: int, inc: bool) -> None:
    """Give threads of a role more registers, or fewer: ``setmaxnreg``.

    It is the first statement of a ``with T.ws(...):`` of whole warpgroups. A block begins with the most registers for
    each thread that fit when one block runs at a time (168 of 384 threads); what some roles give back, others take. All
    roles together must not request more than that: a block would wait for ever.

    Parameters
    ----------
    num
        Registers of each thread from there on: a multiple of 8 from 24 to 256.
    inc
        Whether these are more than it had. PTX has an instruction for each case.

    Raises
    ------
    BadAttribute
        For another number.
    VariantRefused, VariantMissing
        When it is compiled: it stands elsewhere, the roles request too many, or the target has no such instruction.
    """

def tcgen05_gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
    *,
    mbar: object = None,
    cta_group: int = 1,
) -> None:
    """Multiply tiles on ``tcgen05.mma``: ``T.gemm`` with ``variant="cuda.tcgen05"``.

    Parameters
    ----------
    A, B, C, transpose_A, transpose_B, policy, clear_accum
        As for ``T.gemm``: A and B in shared memory, C of 128 rows or a multiple of them in a fragment of 128 threads.
    mbar
        A barrier with one arrival at the completion of the product, such as ``T.alloc_barrier(1)``: threads go
        on, and ``T.mbarrier_wait_parity`` waits for it. Until then A and B must not be written, and C not be touched
        but by other such products of the same shape and size of elements, dense or sparse as this one.
    cta_group
        1, or 2: two blocks, which read the same tile of B, compute the product together, with 256 rows; each loads half
        of the columns of B. What is computed is the same. It is the only product of a pipelined loop at the top of a
        kernel (``T.Kernel``) with an even number of blocks along the rows of C, of at most 256 columns.

    Raises
    ------
    BadBarrier, UnbalancedBarrier
        If ``mbar`` is not a barrier; when it is compiled, if phases do not balance, or C is touched before the wait.
    NotWaitedFor
        When it is compiled: A or B is written before the wait.
    VariantRefused, VariantMissing
        When it is compiled, if the instruction does not fit the call, or the target has none.

    Notes
    -----
    The accumulator stays in tensor memory between products unless other code needs it in registers. In a
    pipelined loop a product without ``mbar`` is in flight while the next one begins.
    """

def tcgen05_gemm_scaled(
    A: Tile,
    A_scale: Tile,
    B: Tile,
    B_scale: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
    *,
    A_format: str | None = None,
    B_format: str | None = None,
    mbar: object = None,
) -> None:
    """Multiply tiles with scales for blocks of K on ``tcgen05.mma``, see ``T.gemm_scaled`` and ``tcgen05_gemm``.

    A and B are 8-bit floats with ``float8_e8m0fnu`` for 32 elements, or ``float4_e2m1fn``, two in a byte of ``uint8``
    storage, with ``float8_e8m0fnu`` for 32 or 16 elements or ``float8_e4m3fn`` for 16. Scales move from shared memory
    to tensor memory before the product.
    """

def tcgen05_gemm_sp(
    A_sparse: Tile,
    E: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
    *,
    mbar: object = None,
) -> None:
    """Multiply a 2:4 sparse tile by a dense one on ``tcgen05.mma.sp``, see ``T.gemm_sp`` and ``tcgen05_gemm``.

    Metadata moves from shared memory to tensor memory before the product.
    """

def tma_copy(
    src: Tile, dst: Tile, *, barrier: object = None, cluster_mask: object = None, eviction_policy: str | None = None
) -> None:
    """Copy a tile between global and shared memory by TMA: ``T.copy`` without a fallback.

    The option ``tma`` makes no difference to it. Without ``barrier`` it completes as ``T.copy`` does: what
    follows sees the result, and the compiler places barriers, fences and waits.

    Parameters
    ----------
    src, dst
        As for ``T.copy``: one side in global and the other in shared memory.
    barrier
        A barrier of ``T.alloc_barrier`` that counts the bytes of a copy to shared memory: the copy expects them in the
        current phase, but for barriers whose bytes the program expects itself (``T.mbarrier_expect_tx``), and is
        complete for those who have waited for the phase. Without it the copy completes as ``T.copy`` does.
    cluster_mask
        Ranks of the blocks of a cluster (``T.ClusterKernel``), as the bits of a Python int, that take the same part of
        ``src``: the first of them copies it to all of them. The other blocks copy for themselves. All blocks of the
        cluster come to it, and wait for each other first.
    eviction_policy
        A hint, see ``T.copy``.

    Raises
    ------
    ScopeNotAllowed, BadAttribute, BadBarrier, BadCluster
        For other scopes; for a mask, or a barrier, of a copy to global memory; for a barrier that is none; for a mask
        that names no blocks of the cluster.
    VariantRefused, VariantMissing
        When it is compiled: no boxes are the tile, with the rule that it breaks, or the target has no such copies.
    """

def tma_gather4(
    src: Buffer,
    dst: Tile,
    col: Index,
    rows: Tile | Sequence[Index],
    barrier: object = None,
    *,
    eviction_policy: str | None = None,
) -> None:
    """Gather four rows by one bulk copy: ``dst[i, j] = src[rows[i], col + j]``.

    Parameters
    ----------
    src
        A matrix in global memory: a parameter of two dimensions, whose rows are contiguous, begin at multiples of 16
        bytes, and are less than 2**40 bytes apart.
    dst
        A tile of shape (4, W) in shared memory, or one of several in its buffer: ``tiles[slot, :, :]``. Rows of W
        elements have a multiple of 16 bytes. Its element type is that of ``src``; its layout, the swizzle, is chosen
        by the compiler, or annotated.
    col
        The first column, at a multiple of 16 bytes of a row.
    rows
        Four row numbers in any order, which may repeat: integers, values known when the kernel runs, or a buffer or
        slice of four. Of 32 bits at most.
    barrier
        A barrier of ``T.alloc_barrier`` that counts the bytes, as for ``T.tma_copy``. Without it, what follows sees the
        result.
    eviction_policy
        ``"evict_normal"``, ``"evict_first"`` or ``"evict_last"``: a hint.

    Raises
    ------
    NotATile, BadAttribute, ScopeNotAllowed, BadElementType, RowsOperand, BadBarrier
        If the operands do not fit together.
    VariantRefused, VariantMissing
        When it is compiled: the instruction cannot copy it, with the rule that it breaks, or the target has none.

    Notes
    -----
    A row outside ``src`` (negative ones too) reads as zero, and so do columns outside.
    """

def tma_gather4_bytes(columns: int, element: object) -> int:
    """Return the bytes that ``T.tma_gather4`` delivers, rows outside of the matrix included.

    Parameters
    ----------
    columns
        Elements of a row of the tile.
    element
        Their type, of whole bytes.

    Raises
    ------
    BadAttribute
        For other numbers or types.
    """

def tma_scatter4(
    src: Tile, dst: Buffer, col: Index, rows: Tile | Sequence[Index], *, eviction_policy: str | None = None
) -> None:
    """Scatter four rows by one bulk copy: ``dst[rows[i], col + j] = src[i, j]``.

    Parameters
    ----------
    src, dst, col, eviction_policy
        As for ``T.tma_gather4`` with both sides exchanged; rows of the matrix have a multiple of 16 bytes, and the
        column is not negative.
    rows
        Four different row numbers, as for ``T.tma_gather4``.

    Raises
    ------
    DuplicateRows
        For equal constants. Which of equal rows is stored is open where they are known only when the kernel runs.
    NotATile, BadAttribute, ScopeNotAllowed, BadElementType, RowsOperand, VariantRefused, VariantMissing
        As for ``T.tma_gather4``.

    Notes
    -----
    Rows outside ``dst``, negative ones too, are dropped. The compiler waits for the copy.
    """

def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Wait for copies to global memory; the compiler inserts required waits anyway.

    Parameters
    ----------
    count
        How many of the latest may still be in flight.
    read
        Whether it would suffice that they have read their tiles.
    """

def wait_wgmma(num: int = 0) -> None:
    """Wait for products: all but the latest ``num`` that began before it are complete.

    ``wgmma_gemm`` and ``wgmma_gemm_sp`` go on until such a wait behind them in the same list of statements that ends
    them, while threads do other things; without one they are waited for where they stand. Values are the same in any
    case.

    Parameters
    ----------
    num
        From 0 to 7.

    Raises
    ------
    BadAttribute
        For another number.
    NotWaitedFor
        When it is compiled, if something touches C, or writes A or B, before the wait that ends the product.
    """

def warpgroup_arrive() -> None:
    """Order accesses of registers before products: each product does so itself."""

def warpgroup_commit_batch() -> None:
    """End a group of products: each product is one."""

def warpgroup_fence_operand(*tiles: Tile) -> None:
    """Keep the compiler from moving accesses of registers of products: it never does.

    Raises
    ------
    ScopeNotAllowed
        For a tile that is not in registers.
    """

def warpgroup_wait(num_mma: int = 0) -> None:
    """Wait for products: see ``T.wait_wgmma``, which counts products as this does."""

def wgmma_gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: bool = False,
) -> None:
    """Multiply tiles on ``wgmma``: ``T.gemm`` with ``variant="cuda.wgmma"``.

    Parameters
    ----------
    A, B, C, transpose_A, transpose_B, policy, clear_accum
        As for ``T.gemm``.

    Raises
    ------
    VariantRefused, VariantMissing
        When it is compiled, if the instruction does not fit the call, or the target has none.
    """

def wgmma_gemm_sp(
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
    """Multiply a 2:4 sparse tile by a dense one on ``wgmma.sp``, see ``T.gemm_sp`` and ``wgmma_gemm``."""
