"""Occupancy: how many blocks fit on a multiprocessor, and the limiting resource."""

from __future__ import annotations

from tile_cuda.options import MOST_REGISTERS
from tile_cuda.target import REGISTERS, WARP
from tile_cuda_runtime.architectures import Architecture

_UNIT = 256  # registers that a warp gets at a time
_PARTS = 4  # of a multiprocessor, each with its share of the registers
_RESERVED = 1024  # bytes of shared memory that the system takes of each block, and that no block can have
_GRANULE = 128  # bytes of shared memory that a block gets at a time
_BLOCKS = 32  # of a multiprocessor at a time


def most_registers(threads: int) -> int:
    """Return the most registers of each thread of a block, by the multiprocessor's partitions.

    Parameters
    ----------
    threads
        Of a block.
    """
    of_part = -(-threads // (WARP * _PARTS))
    return min(MOST_REGISTERS, REGISTERS // _PARTS // of_part // _UNIT * (_UNIT // WARP))


def blocks_that_fit(record: Architecture, threads: int, registers: int, shared_bytes: int) -> dict[str, int]:
    """Return how many blocks fit, by registers and by shared memory.

    Parameters
    ----------
    record
        The architecture.
    threads
        Of a block.
    registers
        Of a thread.
    shared_bytes
        Of a block.
    """
    warps = -(-threads // 32)
    of_warp = -(-max(registers, 1) * 32 // _UNIT) * _UNIT
    most_warps = REGISTERS // _PARTS // of_warp * _PARTS
    of_block = -(-shared_bytes // _GRANULE) * _GRANULE + _RESERVED
    whole = record.shared_bytes + _RESERVED
    return {"blocks_by_registers": most_warps // warps, "blocks_by_shared_memory": whole // of_block}


def blocks_at_a_time(threads: int, registers: int, shared_bytes: int, limit: int, resident: int) -> int:
    """Return how many blocks a multiprocessor runs at a time, at least one.

    Parameters
    ----------
    threads
        Of a block.
    registers
        Of a thread.
    shared_bytes, limit
        Of a block, and the most that a block can have.
    resident
        Threads that a multiprocessor runs at a time.
    """
    by_registers = REGISTERS // (-(-registers // 8) * 8 * threads)
    by_shared_memory = (limit + _RESERVED) // (shared_bytes + _RESERVED)
    return max(1, min(by_registers, by_shared_memory, resident // threads, _BLOCKS))


def bytes_of_share(record: Architecture, blocks: int) -> int:
    """Return the most shared memory of a block with which ``blocks`` blocks fit.

    Parameters
    ----------
    record
        The architecture.
    blocks
        How many fit, and no more.
    """
    whole = record.shared_bytes + _RESERVED
    return whole // blocks // _GRANULE * _GRANULE - _RESERVED
