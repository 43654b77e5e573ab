"""Asynchronous products of pipelined loops, which complete in a later iteration.

An iteration issues its product before it waits for the product of the iteration before, so matrix units stay busy while
threads wait, copy and update counters. Until that wait, its operands must not be written and its accumulator must not
be accessed. The schedule (``plan.py``) ensures this for tiles in slots, and this module for all other tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ENDED, IN_FLIGHT, ISSUED, PENDING, SETTLED
from tile_core.ir.visit import collect
from tile_core.ops import wait_uses
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.pipelining.dependences import Analysis, top_level, uses
from tile_core.simt.pipelining.loop_note import LoopNote

#: Op that waits until at most ``PENDING`` (an attribute) products of a thread are in flight. Its operand is their
#: accumulator, which the threads may then access.
WAIT_USES = wait_uses.OP.name

_PRODUCTS = frozenset({"tile.gemm", "tile.gemm_sp", "tile.gemm_scaled"})

__all__ = [
    "ENDED",
    "IN_FLIGHT",
    "ISSUED",
    "PENDING",
    "SETTLED",
    "WAIT_USES",
    "IsAsync",
    "Product",
    "async_product",
    "products_of",
    "accumulator_of",
]

IsAsync = Callable[[OpCall], bool]


@dataclass(frozen=True)
class Product:
    """An asynchronous product.

    Attributes
    ----------
    position
        Its index among the statements of the loop's body.
    accumulator
        The tile in which it accumulates.
    """

    position: int
    accumulator: View


def async_product(
    analysis: Analysis, loop: Stmt, copied: Collection[Any], is_async: IsAsync
) -> tuple[Product | None, tuple[LoopNote, ...]]:
    """Return the asynchronous product of a loop, else notes about the obstacle.

    Parameters
    ----------
    copied
        The buffers whose copies are prefetched.
    is_async
        Whether the target has asynchronous instructions for a product. The schedule is also correct if lowering selects
        synchronous ones. With the attribute ``IN_FLIGHT``: whether they last until the next iteration, also if operands
        are fragments.
    """
    body = top_level(loop.body)
    every = products_of(loop.body)
    able = [s for s in every if is_async(OpCall.decode(s))]
    if not able:
        return None, ()
    position = next((i for i, s in enumerate(body) if is_op(s) and s.same_as(able[0])), None)
    call = OpCall.decode(able[0])
    reads_copies = is_async(replace(call, attrs={**call.attrs, IN_FLIGHT: 1}))
    reason = (
        "the loop has several products"
        if len(every) > 1
        else _obstacle(analysis, loop, call, position, copied, reads_copies)
    )
    if reason or position is None:
        text = f"its product is waited for in each iteration: {reason}"
        return None, (LoopNote(call.args[accumulator_of(call)].name, text, no_pairs=True),)
    return Product(position, call.args[accumulator_of(call)]), ()


def products_of(s: Stmt) -> list[Stmt]:
    """Return the products in a statement."""
    return [x for x in collect(s, tirx.Evaluate) if nodes.operator_name(x.value) in _PRODUCTS]


def _obstacle(
    analysis: Analysis, loop: Stmt, call: OpCall, position: int | None, copied: Collection[Any], reads_copies: bool
) -> str:
    """Return the reason why a product cannot be asynchronous; empty if it can.

    ``reads_copies``: its instructions read registers of their own, which each iteration fills from a fragment.
    """
    accumulator: View = call.args[accumulator_of(call)]
    if position is None:
        return "it is nested in a condition or an inner loop"
    if accumulator.scope not in ("local.fragment", "matrix"):
        return f"{accumulator.name} is in shared memory"
    if accumulator.buffer in analysis.viewed or accumulator.buffer in analysis.flow.roots:
        return f"{accumulator.name} has views"
    if accumulator.scope != "matrix" and not _adds(call.args[accumulator_of(call) + 1], loop):
        return f"it may clear {accumulator.name}"
    body = top_level(loop.body)
    if any(i != position and uses(s, accumulator.buffer) for i, s in enumerate(body)):
        return f"{accumulator.name} is used elsewhere in the loop"
    written = analysis.written(loop.body)
    for operand in call.args[: accumulator_of(call)]:
        if operand.scope == "local.fragment":
            if not reads_copies:
                return f"{operand.name} is in registers"
            continue
        if operand.buffer not in copied and analysis.root(operand.buffer) in written:
            return f"the loop writes {operand.name}, which is not prefetched"
    return ""


def _adds(clear: Any, loop: Any) -> bool:
    """Whether a product accumulates over iterations; the first one may clear its accumulator."""
    if not isinstance(clear, tirx.EQ) or not clear.a.same_as(loop.loop_var):
        return nodes.as_int(clear) in (0, False)
    first, start = nodes.as_int(clear.b), nodes.as_int(loop.min)
    return isinstance(first, int) and isinstance(start, int) and first == start


def accumulator_of(call: OpCall) -> int:
    """Return the position of the tile that a product adds to."""
    return {"gemm": 2, "gemm_sp": 3, "gemm_scaled": 4}[call.name]
