"""Names that this package adds to ``T``: products and copies that guarantee an instruction.

They are the language's own ops with a forced variant: if the instruction does not fit, or the target has none, that is
a compile error, never a fallback, whatever the options ``wgmma`` and ``bulk_copies`` say. They compute the same as
``T.gemm``, ``T.gemm_sp`` and ``T.copy``. A copy waits for its instructions, and so does a product unless the program
says where it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.ops import BadAttribute, ScopeNotAllowed
from tile_core.ops import operands
from tile_core.ops.copy import copy
from tile_core.ops.gemm import GemmWarpPolicy, gemm
from tile_core.ops.gemm_sp import gemm_sp
from tile_core.ops.request_registers import COUNT, MORE
from tile_core.ops.wait_uses import PENDING
from tile_cuda.barriers import as_barrier, count_bytes

if TYPE_CHECKING:
    from tile_core.values.value import Tile

WAIT_USES = "wait_uses"
MOST_PENDING = 7
"""Products that a wait may leave in flight: PTX ISA, "wgmma.wait_group"."""
REQUEST_REGISTERS = "request_registers"
FEWEST_REGISTERS, MOST_REGISTERS, UNIT_OF_REGISTERS = 24, 256, 8
"""Registers that a thread may ask for: PTX ISA, "setmaxnreg"."""
REGISTERS = "cuda.setmaxnreg"
DENSE, SPARSE, TENSOR = "cuda.wgmma", "cuda.wgmma.sp", "cuda.tcgen05"
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
    gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=DENSE)


def tcgen05_gemm(
    A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply tiles on ``tcgen05.mma``: ``T.gemm`` with ``variant="cuda.tcgen05"``.

    Parameters
    ----------
    A, B, C, transpose_A, transpose_B, policy, clear_accum
        As for ``T.gemm``: A and B in shared memory, C of 128 rows or a multiple of them in a fragment of 128 threads.

    Raises
    ------
    VariantRefused, VariantMissing
        When it is compiled, if the instruction does not fit the call, or the target has none.

    Notes
    -----
    It waits for the product. The sums move to tensor memory before it, unless it starts from zero, and back behind it.
    """
    gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, variant=TENSOR)


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

    It is the first statement of a ``with T.ws(...):`` of whole warpgroups. A block begins with as many registers for
    each thread as fit when one block runs at a time (168 of 384 threads); what some roles give back, others take. The
    roles together never ask for more than that: a block would wait for ever.

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
        When it is compiled: it stands elsewhere, the roles ask for too many, or the target has no such instruction.
    """
    count = operands.integer("set_max_nreg", "num", num, FEWEST_REGISTERS, MOST_REGISTERS)
    if count % UNIT_OF_REGISTERS:
        near = count // UNIT_OF_REGISTERS * UNIT_OF_REGISTERS
        legal = f"a multiple of {UNIT_OF_REGISTERS}, such as {near}"
        raise BadAttribute(op="set_max_nreg", name="num", found=str(count), legal=legal)
    more = operands.flag("set_max_nreg", "inc", inc)
    operands.emit(REQUEST_REGISTERS, [], [], {COUNT: count, MORE: int(more), "variant": REGISTERS})


def wgmma_gemm_sp(
    A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, policy: GemmWarpPolicy = GemmWarpPolicy.Square, clear_accum: bool = False,
) -> None:  # fmt: skip
    """Multiply a 2:4 sparse tile by a dense one on ``wgmma.sp``, see ``T.gemm_sp`` and ``wgmma_gemm``."""
    gemm_sp(A_sparse, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum, variant=SPARSE)


def tma_copy(
    src: Tile, dst: Tile, *, barrier: object = None, cluster_mask: object = None, eviction_policy: str | None = None
) -> None:
    """Copy a tile between global and shared memory by bulk copies of boxes (TMA): ``T.copy`` that is never another one.

    The option ``bulk_copies`` makes no difference to it. Without ``barrier`` it completes as ``T.copy`` does: what
    follows sees the result, and the compiler places barriers, fences and waits.

    Parameters
    ----------
    src, dst
        As for ``T.copy``: one side in global and the other in shared memory.
    barrier
        A barrier of ``T.alloc_barrier`` that counts the bytes of a copy to shared memory: it announces them for the
        current phase, but for barriers whose bytes the program announces itself (``T.mbarrier_expect_tx``), and is
        complete for those who have waited for the phase. Without it the copy completes as ``T.copy`` does.
    cluster_mask
        Left out: copies to several blocks are refused.
    eviction_policy
        A hint, see ``T.copy``.

    Raises
    ------
    ScopeNotAllowed, BadAttribute, BadBarrier
        For other scopes; for a mask, or a barrier of a copy to global memory; for a barrier that is none.
    VariantRefused, VariantMissing
        When it is compiled: no boxes are the tile, with the rule that it breaks, or the target has no such copies.
    """
    if cluster_mask is not None:
        legal = "None: a block copies for itself"
        raise BadAttribute(op="tma_copy", name="cluster_mask", found=operands.named(cluster_mask), legal=legal)
    place = None if barrier is None else as_barrier("tma_copy", barrier).place("tma_copy")
    scopes = operands.as_region("tma_copy", "src", src).scope, operands.as_region("tma_copy", "dst", dst).scope
    variant = {("global", "shared"): LOAD, ("shared", "global"): STORE}.get(scopes)
    if variant is None:
        at = 0 if scopes[0] not in ("global", "shared") else 1
        legal = ("global or shared memory", "shared memory" if scopes[0] == "global" else "global memory")[at]
        raise ScopeNotAllowed(op="tma_copy", role=("src", "dst")[at], found=scopes[at], legal=legal)
    if place is not None and variant != LOAD:
        legal = "None: the compiler waits for copies to global memory"
        raise BadAttribute(op="tma_copy", name="barrier", found=operands.named(barrier), legal=legal)
    if eviction_policy is None:
        copy(src, dst, variant=variant)
    else:
        copy(src, dst, variant=variant, eviction_policy=eviction_policy)
    if place is not None:
        count_bytes(*place)
