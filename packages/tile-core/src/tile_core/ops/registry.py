"""The list of tile ops that the core defines."""

from __future__ import annotations

from tile_core.ops import (
    atomic,
    copy,
    copy_to_block,
    dp4a,
    fill,
    fold,
    gather,
    gemm,
    gemm_scaled,
    gemm_sp,
    im2col,
    pin_accumulator,
    reduce,
    request_registers,
    scan,
    sort,
    topk,
    transpose,
    wait_uses,
)
from tile_core.ops.base import TileOp

OPS: dict[str, TileOp] = {
    op.name: op
    for op in (
        copy.OP,
        copy_to_block.OP,
        fill.OP,
        transpose.OP,
        gemm.OP,
        gemm_sp.OP,
        gemm_scaled.OP,
        gather.GATHER,
        gather.SCATTER,
        reduce.OP,
        reduce.FINALIZE,
        scan.OP,
        fold.OP,
        fold.SCAN,
        topk.OP,
        sort.OP,
        atomic.OP,
        atomic.TILE,
        atomic.FILL,
        atomic.LOAD,
        atomic.STORE,
        im2col.OP,
        dp4a.OP,
        wait_uses.OP,
        pin_accumulator.OP,
        request_registers.OP,
    )
}
