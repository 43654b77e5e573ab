"""Instructions of the asynchronous proxy: barriers with transaction bytes, and bulk copies.

PTX ISA, sections "Parallel Synchronization and Communication Instructions: mbarrier" and "Data Movement and Conversion
Instructions: cp.async.bulk".
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_cuda.ptx.instruction import TENSOR_MEMORY_ARCHS, Instruction, PtxOperand, function_name
from tile_cuda.ptx.scalar import KINDS

MOST_DIMENSIONS = 5
"""Dimensions of a tensor whose boxes are copied."""

REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
"""What a copy out of shared memory may do with the elements that are there."""

WAIT = "mbarrier_wait_parity"
"""Function that waits until the phase of a parity has ended."""

COMMIT = "cp_async_bulk_commit_group"
"""Function that ends a group of copies out of shared memory."""

ELECT = "elect_sync"
"""Function that is true for one thread of a warp, all of whose threads execute it."""

_ARCH = "sm_90"
_GATHER = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
_SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
_FOUR = tuple(PtxOperand(name, ctype="int") for name in ("column", "row0", "row1", "row2", "row3"))
_BARRIER = PtxOperand("barrier", role="shared", ctype="void")
_MAP = PtxOperand("map", "l", ctype="const CUtensorMap*")


def bulk_instructions() -> Iterator[Instruction]:
    """Yield the instructions."""
    mine, form = (
        PtxOperand("mine", role="result"),
        "{ .reg .pred p; {opcode} _|p, 0xffffffff; selp.u32 {mine}, 1, 0, p; }",
    )
    yield _made("elect.sync", (mine,), form)
    yield from _barriers()
    yield from _clusters()
    yield from _launches()
    yield from _fences()
    yield from _loads()
    yield from _stores()


def load_name(rank: int) -> str:
    """Return the function that copies a box of a ``rank``-dimensional tensor to shared memory."""
    return function_name(_load(rank))


def store_name(rank: int, reduction: str = "") -> str:
    """Return the function that copies or reduces a box from shared to global memory.

    Parameters
    ----------
    reduction
        One of ``REDUCTIONS``; empty for a copy.
    """
    return function_name(_store(rank, reduction))


def gather_name() -> str:
    """Return the function that copies four rows of a matrix to shared memory (gather)."""
    return function_name(_GATHER)


def scatter_name() -> str:
    """Return the function that copies four rows from shared memory to a matrix (scatter)."""
    return function_name(_SCATTER)


LOAD_BYTES = "cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes"
"""Function that copies bytes to shared memory."""
SEND_BYTES = "cp_async_bulk_shared_cluster_shared_cta_mbarrier_complete_tx_bytes"
"""Function that copies bytes to the same place in another block."""
SEND_EXPECT = "mbarrier_arrive_expect_tx_shared_cluster_b64"
"""Function that arrives at a barrier of another block with expected transaction bytes."""
STORE_BYTES = "cp_async_bulk_global_shared_cta_bulk_group"
"""Function that copies bytes out of shared memory."""


def wait_name(stored: bool) -> str:
    """Return the function that waits until all groups have read their sources, or are stored."""
    return f"cp_async_bulk_wait_group{'' if stored else '_read'}_0"


def multicast_name(rank: int) -> str:
    """Return the function that multicasts a box to several blocks of the cluster."""
    return function_name(_load(rank, multicast=True))


def _store(rank: int, reduction: str) -> str:
    if reduction:
        return f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduction}.tile.bulk_group"
    return f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"


def _load(rank: int, multicast: bool = False) -> str:
    to = ".multicast::cluster" if multicast else ""
    return f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{to}"


def _made(opcode: str, operands: tuple[PtxOperand, ...], form: str, arch: str = _ARCH) -> Instruction:
    return Instruction(function_name(opcode), opcode, operands, form, arch, volatile=True, memory=True)


LOADS = frozenset(
    {
        LOAD_BYTES,
        *(name(rank) for name in (load_name, multicast_name) for rank in range(1, MOST_DIMENSIONS + 1)),
        gather_name(),
    }
)
"""Functions that copy boxes, or rows, to shared memory."""


def _barriers() -> Iterator[Instruction]:
    count, size = PtxOperand("arrivals", ctype="int"), PtxOperand("bytes", ctype="int")
    parity = PtxOperand("parity", ctype="int")
    yield _made("mbarrier.init.shared::cta.b64", (_BARRIER, count), "{barrier}, {arrivals}", "sm_80")
    yield _made("mbarrier.inval.shared::cta.b64", (_BARRIER,), "{barrier}", "sm_80")
    yield _made("mbarrier.arrive.shared::cta.b64", (_BARRIER,), "_, {barrier}", "sm_80")
    yield _made("mbarrier.arrive.expect_tx.shared::cta.b64", (_BARRIER, size), "_, {barrier}, {bytes}")
    yield _made("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", (_BARRIER, size), "{barrier}, {bytes}")
    ended = PtxOperand("ended", role="result")
    form = "{ .reg .pred p; {opcode} p, {barrier}, {parity}; selp.u32 {ended}, 1, 0, p; }"
    tried = _made("mbarrier.try_wait.parity.shared::cta.b64", (ended, _BARRIER, parity), form)
    yield tried
    # A device may stop waiting before the phase has ended.
    body = (f"while (!{tried.name}(barrier, parity)) {{}}",)
    yield Instruction(WAIT, operands=(_BARRIER, parity), arch=_ARCH, body=body, needs=(tried.name,))


def _clusters() -> Iterator[Instruction]:
    """Yield arrivals in other blocks, and the barrier of all threads of a cluster.

    An arrival that also released to the cluster what a thread has written would take a microsecond on an H200.
    """
    barrier, rank = PtxOperand("barrier", role="place", ctype="void"), PtxOperand("rank", ctype="int")
    arrive = "mbarrier.arrive.shared::cluster.b64"
    form = "{ .reg .b32 there; mapa.shared::cluster.u32 there, {barrier}, {rank}; {opcode} _, [there]; }"
    yield _made(arrive, (barrier, rank), form)
    size = PtxOperand("bytes", ctype="int")
    form = "{ .reg .b32 there; mapa.shared::cluster.u32 there, {barrier}, {rank}; {opcode} _, [there], {bytes}; }"
    yield _made("mbarrier.arrive.expect_tx.shared::cluster.b64", (barrier, rank, size), form)
    yield from _to_blocks(barrier, rank, size)
    yield _made("barrier.cluster.arrive.release", (), "")
    yield _made("barrier.cluster.arrive.relaxed", (), "")
    yield _made("barrier.cluster.wait.acquire", (), "")


def _to_blocks(barrier: PtxOperand, rank: PtxOperand, size: PtxOperand) -> Iterator[Instruction]:
    """Yield a copy of bytes, and stores, to the same place in another block."""
    to, source = PtxOperand("smem", role="place", ctype="void"), PtxOperand("source", role="shared")
    form = (
        "{ .reg .b32 there, done; mapa.shared::cluster.u32 there, {smem}, {rank}; "
        "mapa.shared::cluster.u32 done, {barrier}, {rank}; {opcode} [there], {source}, {bytes}, [done]; }"
    )
    opcode = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    yield _made(opcode, (to, source, size, barrier, rank), form)
    for kind in ("u8", "b16", "b32", "b64"):
        register, ctype = KINDS[kind]
        value = PtxOperand("x", register, ctype="unsigned short" if kind == "u8" else ctype)
        form = "{ .reg .b32 there; mapa.shared::cluster.u32 there, {smem}, {rank}; {opcode} [there], {x}; }"
        yield _made(f"st.shared::cluster.{kind}", (to, rank, value), form)


def store_to_block(bits: int) -> str:
    """Return the function that stores a value of ``bits`` bits in another block."""
    return function_name(f"st.shared::cluster.{'u8' if bits == 8 else f'b{bits}'}")


def _launches() -> Iterator[Instruction]:
    """Yield the wait for the launches before, and the permission to begin the next one."""
    yield _made("griddepcontrol.wait", (), "")
    yield _made("griddepcontrol.launch_dependents", (), "")


def _fences() -> Iterator[Instruction]:
    yield _made("fence.mbarrier_init.release.cluster", (), "")
    yield _made("fence.proxy.async", (), "")
    yield _made("fence.proxy.async.shared::cta", (), "")


def _loads() -> Iterator[Instruction]:
    """Yield copies of boxes to the block's own shared memory, and multicast copies.

    An address of ``shared::cta`` is one of ``shared::cluster`` too: that of the executing block.
    """
    to = PtxOperand("smem", role="shared", ctype="void")
    for rank in range(1, MOST_DIMENSIONS + 1):
        at = tuple(PtxOperand(f"at{d}", ctype="int") for d in range(rank))
        indices = ", ".join(f"{{at{d}}}" for d in range(rank))
        form = f"{{smem}}, [{{map}}, {{{indices}}}], {{barrier}}"
        yield _made(_load(rank), (to, _MAP, *at, _BARRIER), form)
        blocks = PtxOperand("blocks", "h")
        yield _made(_load(rank, multicast=True), (to, _MAP, *at, _BARRIER, blocks), f"{form}, {{blocks}}")
    start, size = PtxOperand("start", "l", role="global"), PtxOperand("bytes", ctype="int")
    opcode = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    yield _made(opcode, (to, start, size, _BARRIER), "{smem}, {start}, {bytes}, {barrier}")
    four = "{column}, {row0}, {row1}, {row2}, {row3}"
    yield _made(_GATHER, (to, _MAP, *_FOUR, _BARRIER), f"{{smem}}, [{{map}}, {{{four}}}], {{barrier}}", "sm_100")


def _stores() -> Iterator[Instruction]:
    """Yield copies of boxes out of shared memory, with commit groups and waits."""
    source = PtxOperand("smem", role="shared", ctype="const void")
    for rank in range(1, MOST_DIMENSIONS + 1):
        at = tuple(PtxOperand(f"at{d}", ctype="int") for d in range(rank))
        indices = ", ".join(f"{{at{d}}}" for d in range(rank))
        for reduction in ("", *REDUCTIONS):
            yield _made(_store(rank, reduction), (source, _MAP, *at), f"[{{map}}, {{{indices}}}], {{smem}}")
    start, size = PtxOperand("start", "l", role="global", ctype="void"), PtxOperand("bytes", ctype="int")
    opcode = "cp.async.bulk.global.shared::cta.bulk_group"
    yield _made(opcode, (start, source, size), "{start}, {smem}, {bytes}")
    four = "{column}, {row0}, {row1}, {row2}, {row3}"
    yield _made(_SCATTER, (source, _MAP, *_FOUR), f"[{{map}}, {{{four}}}], {{smem}}", TENSOR_MEMORY_ARCHS)
    yield _made("cp.async.bulk.commit_group", (), "")
    for stored in (False, True):
        name, opcode = wait_name(stored), f"cp.async.bulk.wait_group{'' if stored else '.read'}"
        yield Instruction(name, opcode, (), "0", _ARCH, volatile=True, memory=True)
