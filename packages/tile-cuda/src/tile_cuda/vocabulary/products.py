"""Names that this package adds to ``T``: products and copies that guarantee an instruction.

They are the language's own ops with a forced variant: if the instruction does not fit, or the target has none, that is
a compile error, never a fallback, whatever the options ``wgmma`` and ``tma`` are. They compute the same as
``T.gemm``, ``T.gemm_sp`` and ``T.copy``. A copy waits for its instructions, and so does a product unless the program
contains its wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.ops import BadAttribute, ScopeNotAllowed
from tile_core.ir import nodes
from tile_core.ir.attributes import COMPLETES, COUNT, MORE, PENDING, RANKS, VARIANT
from tile_core.ops import operands
from tile_core.ops.copy import copy
from tile_core.ops.gemm import GemmWarpPolicy, gemm
from tile_core.ops.gemm_scaled import gemm_scaled
from tile_core.ops.gemm_sp import gemm_sp
from tile_core.values.allocation import allocate
from tile_core.values.builder import current
from tile_cuda.attributes import CTA_GROUP
from tile_cuda.vocabulary.barriers import as_barrier, count_bytes, mark_last
from tile_cuda.vocabulary.clusters import mask_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tile_core.compat.types import BufferVar, DTypeLike, Expr
    from tile_core.values.value import Buffer, Tile

WAIT_USES = "wait_uses"
MOST_PENDING = 7
"""Products that a wait may leave in flight: PTX ISA, "wgmma.wait_group"."""
REQUEST_REGISTERS = "request_registers"
FEWEST_REGISTERS, MOST_REGISTERS, UNIT_OF_REGISTERS = 24, 256, 8
"""Registers that a thread may request: PTX ISA, "setmaxnreg"."""
REGISTERS = "cuda.setmaxnreg"
DENSE, SPARSE = "cuda.wgmma", "cuda.wgmma.sp"
TENSOR, TENSOR_SP, TENSOR_ACCUMULATOR = "cuda.tcgen05", "cuda.tcgen05.sp", "cuda.tcgen05.accumulator"
TENSOR_SCALED = "cuda.tcgen05.block_scale"
PIN_ACCUMULATOR = "pin_accumulator"
DEMANDED = ("T.alloc_tmem", "write T.alloc_fragment")
"""The call that demands tensor memory, and what else one may write."""
#: Names of the variants that ``tma_copy`` forces (``tile_cuda.ops``).
LOAD, STORE = "cuda.copy.bulk", "cuda.copy.bulk_store"


def wgmma_gemm(
    A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
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
    with operands.called("T.wgmma_gemm", "write T.gemm"):
        gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=DENSE)


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
    made = allocate("alloc_tmem", shape, dtype, "local.fragment", "tensor memory")
    whole = operands.as_region(PIN_ACCUMULATOR, "accumulator", made)
    with operands.called(*DEMANDED):
        operands.emit(PIN_ACCUMULATOR, [whole], [], {VARIANT: TENSOR_ACCUMULATOR})
    return made


def tcgen05_gemm(
    A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False, *, mbar: object = None,
    cta_group: int = 1,
) -> None:  # fmt: skip
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
    located = _completion("tcgen05_gemm", mbar)
    group = operands.integer("tcgen05_gemm", "cta_group", cta_group, 1, 2)
    with operands.called("T.tcgen05_gemm", "write T.gemm"):
        gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=TENSOR)
    if group > 1:
        mark_last({CTA_GROUP: group})
    _arrives(located)


def tcgen05_gemm_sp(
    A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False, *,
    mbar: object = None,
) -> None:  # fmt: skip
    """Multiply a 2:4 sparse tile by a dense one on ``tcgen05.mma.sp``, see ``T.gemm_sp`` and ``tcgen05_gemm``.

    Metadata moves from shared memory to tensor memory before the product.
    """
    located = _completion("tcgen05_gemm_sp", mbar)
    with operands.called("T.tcgen05_gemm_sp", "write T.gemm_sp"):
        gemm_sp(A_sparse, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum, variant=TENSOR_SP)
    _arrives(located)


def tcgen05_gemm_scaled(
    A: Tile, A_scale: Tile, B: Tile, B_scale: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False, *, A_format: str | None = None,
    B_format: str | None = None, mbar: object = None,
) -> None:  # fmt: skip
    """Multiply tiles with scales for blocks of K on ``tcgen05.mma``, see ``T.gemm_scaled`` and ``tcgen05_gemm``.

    A and B are 8-bit floats with ``float8_e8m0fnu`` for 32 elements, or ``float4_e2m1fn``, two in a byte of ``uint8``
    storage, with ``float8_e8m0fnu`` for 32 or 16 elements or ``float8_e4m3fn`` for 16. Scales move from shared memory
    to tensor memory before the product.
    """
    located = _completion("tcgen05_gemm_scaled", mbar)
    with operands.called("T.tcgen05_gemm_scaled", "write T.gemm_scaled"):
        gemm_scaled(
            A, A_scale, B, B_scale, C, transpose_A, transpose_B, policy, clear_accum, A_format=A_format,
            B_format=B_format, variant=TENSOR_SCALED,
        )  # fmt: skip
    _arrives(located)


def _completion(op: str, mbar: object) -> tuple[BufferVar, Expr] | None:
    return None if mbar is None else as_barrier(op, mbar).located(op)


def _arrives(located: tuple[BufferVar, Expr] | None) -> None:
    """Attach a barrier to the last product, which arrives there when it is complete."""
    if located is not None:
        mark_last({COMPLETES: 1}, [nodes.region(located[0], [located[1]], [1])])


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
    operands.emit(WAIT_USES, [], [], {PENDING: operands.integer("wait_wgmma", "num", num, 0, MOST_PENDING)})


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
    count = operands.integer("set_max_nreg", "num", num, FEWEST_REGISTERS, MOST_REGISTERS)
    if count % UNIT_OF_REGISTERS:
        near = count // UNIT_OF_REGISTERS * UNIT_OF_REGISTERS
        legal = f"a multiple of {UNIT_OF_REGISTERS}, such as {near}"
        raise BadAttribute(op="set_max_nreg", name="num", found=str(count), legal=legal)
    more = operands.flag("set_max_nreg", "inc", inc)
    with operands.called("T.set_max_nreg", ""):
        operands.emit(REQUEST_REGISTERS, [], [], {COUNT: count, MORE: int(more), VARIANT: REGISTERS})


def wgmma_gemm_sp(
    A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply a 2:4 sparse tile by a dense one on ``wgmma.sp``, see ``T.gemm_sp`` and ``wgmma_gemm``."""
    with operands.called("T.wgmma_gemm_sp", "write T.gemm_sp"):
        gemm_sp(A_sparse, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum, variant=SPARSE)


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
    blocks = None if cluster_mask is None else mask_of("tma_copy", cluster_mask)
    located = None if barrier is None else as_barrier("tma_copy", barrier).located("tma_copy")
    scopes = operands.as_region("tma_copy", "src", src).scope, operands.as_region("tma_copy", "dst", dst).scope
    variant = {("global", "shared"): LOAD, ("shared", "global"): STORE}.get(scopes)
    if variant is None:
        at = 0 if scopes[0] not in ("global", "shared") else 1
        legal = ("global or shared memory", "shared memory" if scopes[0] == "global" else "global memory")[at]
        raise ScopeNotAllowed(op="tma_copy", role=("src", "dst")[at], found=scopes[at], legal=legal)
    if located is not None and variant != LOAD:
        legal = "None: the compiler waits for copies to global memory"
        raise BadAttribute(op="tma_copy", name="barrier", found=operands.named(barrier), legal=legal)
    if blocks is not None and variant != LOAD:
        legal = "None: a block stores for itself"
        raise BadAttribute(op="tma_copy", name="cluster_mask", found=operands.named(cluster_mask), legal=legal)
    with operands.called("T.tma_copy", "write T.copy"):
        if eviction_policy is None:
            copy(src, dst, variant=variant)
        else:
            copy(src, dst, variant=variant, eviction_policy=eviction_policy)
    if blocks is not None:
        mask, cluster = blocks
        mark_last({RANKS: [mask, 1, *cluster]})
    if located is not None:
        count_bytes(*located)


def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Wait for copies to global memory; the compiler inserts required waits anyway.

    Parameters
    ----------
    count
        How many of the latest may still be in flight.
    read
        Whether it would suffice that they have read their tiles.
    """
    operands.integer("tma_store_wait", "count", count, 0)
    operands.flag("tma_store_wait", "read", read)
    current("T.tma_store_wait")
