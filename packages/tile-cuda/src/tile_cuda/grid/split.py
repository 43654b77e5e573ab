"""Split-K in a cluster: how many blocks share the iterations of a product's loop.

On an H200 bfloat16 products of 16 to 128 rows with 1,024 columns and K = 8,192 took 20 us with one block for each of
16 to 32 tiles, and 9 to 11 us with clusters of 4 or 8. Blocks that fill the device gain nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.lowering.variant import Reject
from tile_core.tiling.workload import workload_of
from tile_cuda.cost.tilings import kernel_of
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program


def choose_split(program: Program, trips: int | None, size: int, ctx: Context) -> int | Reject:
    """Return the blocks of a cluster that share a loop, or a reason for one.

    Parameters
    ----------
    program
        A launch.
    trips
        The trip count of its loop; ``None`` if that is not a constant.
    size
        Bytes of its accumulators.
    """
    option = ctx.options.split_k
    if option == "never":
        return Reject('the option split_k is "never"')
    if ctx.options.tcgen05 == "always":
        return Reject("tensor memory holds the accumulator")
    if isinstance(option, int):
        if trips is not None and trips < option:
            return Reject(f"its loop has {trips} iterations")
        fits = (option - 1) * size <= ctx.capabilities.shared_bytes
        return option if fits else Reject(f"shared memory does not hold the accumulators of {option - 1} blocks")
    if ctx.options.clusters != "auto" or ctx.options.persistent not in ("auto", "never"):
        return Reject("an option requests multicast or persistent blocks")
    workload = None if program.symbols else workload_of(program, {})
    kernel = None if workload is None else kernel_of(workload, ctx)
    if kernel is None or not ctx.capabilities.fact(WGMMA):
        return Reject("its dimensions are not constants" if program.symbols else "it is not estimated")
    if isinstance(kernel, Reject):
        return kernel
    return kernel.split if kernel.split > 1 else Reject("it is estimated to be slower, or its blocks fill the device")
