"""The instructions that the proof of barriers follows (``tile_core.simt.barrier_proof``), as data."""

from __future__ import annotations

import json
from functools import lru_cache
from math import prod

from tile_core.compat.types import Call
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import UNTIL_READ
from tile_core.simt.barrier_proof.instructions import AsyncInstructions
from tile_cuda.copies.elected import SHUFFLE
from tile_cuda.ops.gemm_wgmma import PRODUCTS
from tile_cuda.ptx import bulk, wgmma
from tile_cuda.ptx.memory import memory_instructions

_ROWS = 4


def copied_bytes(call: Call) -> int:
    """Return the bytes of a bulk copy; 0 for another instruction."""
    name = str(call.attrs["name"])
    if name in (bulk.LOAD_BYTES, bulk.STORE_BYTES):
        return int(nodes.as_int(call.args[2]))
    boxes = [x for x in call.args if nodes.is_tile_call(x, "descriptor")]
    return _bytes_of(str(boxes[0].attrs["descriptor"])) * (_ROWS if name == bulk.gather_name() else 1) if boxes else 0


@lru_cache(maxsize=256)
def _bytes_of(text: str) -> int:
    data = json.loads(text)
    return int(prod(data["box"])) * DTYPES[data["dtype"]].bits // 8


_COMMIT = "tcgen05_commit_cta_group_{}_mbarrier_arrive_one_shared_cluster_{}b64"

INSTRUCTIONS = AsyncInstructions(
    elects=frozenset({bulk.ELECT}),
    uniform=frozenset({SHUFFLE, wgmma.UNIFORM}),
    fills=frozenset(i.name for i in memory_instructions() if i.opcode.startswith(("cp.async.ca", "cp.async.cg"))),
    commits={wgmma.COMMIT: PRODUCTS, bulk.COMMIT: UNTIL_READ},
    waits={wgmma.wait_name(n): (PRODUCTS, n) for n in range(wgmma.MOST_PENDING + 1)}
    | {bulk.wait_name(stored): (UNTIL_READ, 0) for stored in (False, True)},
    register_fences=frozenset({wgmma.FENCE}),
    completes=frozenset(_COMMIT.format(n, to) for n in (1, 2) for to in ("", "multicast_cluster_")),
    arrives=frozenset({"mbarrier_arrive_release_cluster_shared_cluster_b64"}),
    phase_waits=frozenset({"mbarrier_wait_parity_of_cluster"}),
    multicasts=frozenset(bulk.multicast_name(rank) for rank in range(1, bulk.MOST_DIMENSIONS + 1)),
    tensor_accesses=("tcgen05_ld", "tcgen05_st", "tcgen05_mma", "tcgen05_cp"),
    tensor_frees={f"tcgen05_dealloc_cta_group_{n}_sync_aligned_b32": n == 2 for n in (1, 2)},
    size=copied_bytes,
)
