"""Add the accumulators of a cluster's blocks through shared memory of the first one.

Threads of the same number hold the same elements in all blocks, so each stores its registers to where that thread of
the block of rank 0 reads them, and neighbouring threads access neighbouring words. Before, the blocks meet: all of them
have started then, and none reads the slots of its loop any more, whose memory accumulators may take. PTX ISA, "mapa",
"st" and "barrier.cluster"; CUDA C++ Programming Guide, "Distributed Shared Memory".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops import add_blocks
from tile_core.simt.ops.atomics import bits
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.copy_async import dealt
from tile_cuda.ptx.bulk import store_to_block

if TYPE_CHECKING:
    from tile_core.context import Context


class AddBlocks(SimtVariant):
    """Stores to the block of rank 0, which adds them."""

    name = "cuda.add_blocks"
    op = add_blocks.NAME
    priority = 10

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take accumulators of 32 bits."""
        view = call.args[0]
        return Accept() if DTYPES[view.dtype].bits == 32 else Reject(f"elements of {view.dtype} have no 32 bits")

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the stores and the additions, each behind a barrier of the cluster."""
        rank, blocks = call.args[add_blocks.RANK], int(nodes.as_int(call.args[add_blocks.BLOCKS]))
        elements = _HeldElements(call)
        parts, allocate = nodes.alloc([(blocks - 1) * elements.count], call.args[0].dtype, "parts", "shared")

        def send(n: Expr, registers: Sequence[Sequence[Expr]]) -> Stmt:
            low, *high = [bits(nodes.load(elements.buffer, at), "uint32") for at in registers]
            value = tirx.bitwise_or(_wide(low), _wide(high[0]) << nodes.int_const(32, "uint64")) if high else low
            address = calls.address(parts, [(rank - nodes.int_const(1)) * nodes.int_const(elements.count) + n], "w")
            return calls.execute(store_to_block(32 * len(registers)), [address, nodes.int_const(0), value], call.span)

        def add(n: Expr, registers: Sequence[Sequence[Expr]]) -> Stmt:
            stores = []
            for e, at in enumerate(registers):
                value = nodes.load(elements.buffer, at)
                for other in range(blocks - 1):
                    value = value + parts[n + nodes.int_const(other * elements.count + e)]
                stores.append(nodes.store(elements.buffer, value, at))
            return nodes.seq(stores)

        first = tirx.EQ(rank, nodes.int_const(0))
        return nodes.seq([
            allocate, _meet(call),
            calls.step(tirx.IfThenElse(tirx.Not(first), elements.each(send), None, call.span), call.span),
            _meet(call),
            calls.step(tirx.IfThenElse(first, elements.each(add), None, call.span), call.span),
        ])  # fmt: skip


def _meet(call: SimtCall) -> Stmt:
    return nodes.seq([calls.cluster_arrive(call.span, meets=True), calls.cluster_wait(call.span)])


class _HeldElements:
    """Elements of an accumulator, in registers or in shared memory.

    Attributes
    ----------
    buffer
        The registers or the tile.
    count
        Elements of a block.
    """

    def __init__(self, call: SimtCall) -> None:
        self.call, self.view = call, call.args[0]
        array = call.placement.arrays.get(self.view.buffer)
        self.registers = 0 if array is None else int(nodes.as_int(nodes.shape_of(array)[0]))
        self.buffer = self.view.buffer if array is None else array
        self.count = self.registers * call.block.count if self.registers else prod(self.view.shape)

    def each(self, use: Callable[[Expr, Sequence[Sequence[Expr]]], Stmt]) -> Stmt:
        """Return a statement for the elements of each thread.

        Its arguments are a number among the elements of the block, and registers of neighbouring ones: two, which one
        access moves, if their number is even.
        """
        call = self.call
        if not self.registers:

            def one(at: Sequence[Expr]) -> Stmt:
                number: Expr = nodes.int_const(0)
                for i, n in zip(at, self.view.shape, strict=True):
                    number = number * nodes.int_const(n) + i
                return use(number, [self.view.spread(list(at))])

            return dealt(call, self.view.shape, one)
        width = 1 + (self.registers % 2 == 0)
        thread = call.block.number if call.block.count > 1 else nodes.int_const(0)
        r = nodes.fresh("r")
        number = (r * nodes.int_const(call.block.count) + thread) * nodes.int_const(width)
        body = use(number, [[r * nodes.int_const(width) + nodes.int_const(e)] for e in range(width)])
        return nodes.for_loop(r, self.registers // width, body, "unroll", span=call.span)


def _wide(value: Expr) -> Expr:
    return nodes.cast(value, "uint64")
