"""The instructions that the proof of barriers follows (``tile_core.simt.barrier_proof``), as data."""

from __future__ import annotations

import json
from functools import lru_cache
from math import prod

from tile_core.compat.structural import items
from tile_core.compat.types import Call
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import DESCRIPTOR, NAME
from tile_core.ir.calls import UNTIL_READ
from tile_core.simt.barrier_proof.instructions import AsyncInstructions, TensorAccess
from tile_cuda.ops.gemm_wgmma import PRODUCTS
from tile_cuda.ptx import bulk, tensor, wgmma
from tile_cuda.ptx.memory import memory_instructions
from tile_cuda.uniform import SHUFFLE

_ROWS = 4
#: Columns of tensor memory that a copy writes, that a product reads of an operand there, and the most that it writes.
_COPIED, _HELD, _MOST = 4, 8, 256


def copied_bytes(call: Call) -> int:
    """Return the bytes of a bulk copy; 0 for another instruction."""
    name = str(call.attrs[NAME])
    if name in (bulk.LOAD_BYTES, bulk.STORE_BYTES):
        return int(nodes.as_int(call.args[2]))
    boxes = [x for x in items(call.args) if nodes.is_tile_call(x, "descriptor")]
    return _bytes_of(str(boxes[0].attrs[DESCRIPTOR])) * (_ROWS if name == bulk.gather_name() else 1) if boxes else 0


@lru_cache(maxsize=256)
def _bytes_of(text: str) -> int:
    data = json.loads(text)
    return int(prod(data["box"])) * DTYPES[data["dtype"]].bits // 8


def tensor_accesses(call: Call) -> list[TensorAccess]:
    """Return the accesses of an instruction to tensor memory."""
    name, args = str(call.attrs[NAME]), call.args
    if name.startswith(("tcgen05_ld", "tcgen05_st")):
        count = int(name.partition("32x32b_x")[2].partition("_")[0])
        return [TensorAccess(args[1], count, name.startswith("tcgen05_st"))]
    if name == tensor.COPY:
        return [TensorAccess(args[0], _COPIED, True, is_async=True)]
    if not name.startswith("tcgen05_mma"):
        return []
    # Bits 17 to 22 of the instruction descriptor: a multiple of 8 columns (PTX ISA, "Instruction descriptor").
    kind = nodes.as_int(args[-2])
    count = (kind >> 17 & 0x3F) * 8 if isinstance(kind, int) else _MOST
    read = []
    if name.endswith("_of_held"):
        read = [(args[1], _HELD)]
    elif "_mma_sp_" in name:
        read = [(args[-3], 1)]
    elif "block_scale" in name:
        read = [(args[-4], 1), (args[-3], 1)]
    written = TensorAccess(args[0], count, True, True, "cta_group_2" in name)
    return [*(TensorAccess(at, n, False, is_async=True) for at, n in read), written]


INSTRUCTIONS = AsyncInstructions(
    elects=frozenset({bulk.ELECT}),
    uniform=frozenset({SHUFFLE, wgmma.UNIFORM}),
    fills=frozenset(i.name for i in memory_instructions() if i.opcode.startswith(("cp.async.ca", "cp.async.cg"))),
    commits={wgmma.COMMIT: PRODUCTS, bulk.COMMIT: UNTIL_READ},
    waits={wgmma.wait_name(n): (PRODUCTS, n) for n in range(wgmma.MOST_PENDING + 1)}
    | {bulk.wait_name(stored): (UNTIL_READ, 0) for stored in (False, True)},
    register_fences=frozenset({wgmma.FENCE}),
    completes=frozenset({*tensor.COMMIT.values(), tensor.COMMIT_TO}),
    arrives=frozenset({tensor.ARRIVE}),
    phase_waits=frozenset({tensor.WAIT}),
    multicasts=frozenset(bulk.multicast_name(rank) for rank in range(1, bulk.MOST_DIMENSIONS + 1)),
    tensor=tensor_accesses,
    tensor_allocates={name: blocks == 2 for blocks, name in tensor.ALLOCATE.items()},
    tensor_frees={name: blocks == 2 for blocks, name in tensor.FREE.items()},
    size=copied_bytes,
)
