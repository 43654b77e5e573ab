"""Accumulator initialization folding: the first mma starts from zero, and no register is filled.

After ``T.clear(C)``, the first product of a loop need not add in the first iteration. Asynchronous instructions take
that as an operand (PTX ISA, "wgmma.mma_async", ``scale-d``). So threads store no zeros between the epilogue of one tile
and the products of the next, and need no wait before the loop: 0.4 percent of a float16 product on an H100. Sparse
products keep their zeros: without them, float16 ran at 0.96 to 1.00 times the speed, 8 bits at 0.995 and 1.003 times.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.analysis.flow import Flow
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import role
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import WAIT_USES, accumulator_of
from tile_core.simt.pipelining.dependences import uses
from tile_core.simt.role_threads import is_shared
from tile_core.simt.whole_tiles import filled_with_zeros
from tile_cuda.attributes import PROMOTE
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.analysis.point import Point
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan

FOLDED = "folded into the first product, which starts from zero"
_PRODUCTS = ("gemm", "gemm_sp", "gemm_scaled")
_STARTED = "gemm"
_LOOPS = ("serial", "pipelined", "unroll")


@dataclass(frozen=True)
class First:
    """The first product that adds to an accumulator.

    Attributes
    ----------
    stmt
        The product.
    when
        The condition under which it is the first one, evaluated at the product.
    loop
        The loop that it stands in, if that may have no iterations; ``None`` if it is executed.
    waits
        Waits before it that let threads access the accumulator.
    """

    stmt: Stmt
    when: Any
    loop: Stmt | None = None
    waits: tuple[Stmt, ...] = ()


def fold_initialization(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Fold zeros that a program stores into the first asynchronous product.

    If a loop has no iterations, the zeros are stored right before it, where the trip count is known.
    """
    if not ctx.capabilities.fact(WGMMA):
        return plan
    flow = Flow(plan.body)
    new: dict[Point, Stmt | None] = {}
    zeros: dict[Point, list[Stmt]] = {}
    names = set[str]()
    for p in flow.points:
        accumulator = filled_with_zeros(p.stmt)
        if accumulator is None:
            continue
        behind = flow.top if p.around is None else p.around.parts[p.side]
        first = first_product([q.stmt for q in behind if q.order > p.order], accumulator)
        if first is None or not _starts(first.stmt, accumulator):
            continue
        # Waits for registers that are still empty go with the zeros.
        gone = [p.stmt, *(first.waits if first.loop is None else ())]
        new |= {q: None for q in flow.points if any(q.stmt.same_as(s) for s in gone)}
        new |= {q: with_start(q.stmt, first.when) for q in flow.points if q.stmt.same_as(first.stmt)}
        names.add(str(accumulator.name))
        if first.loop is not None:
            loop = next(q for q in flow.points if q.stmt.same_as(first.loop))
            none = first.loop.extent <= nodes.int_const(0, nodes.dtype_of(first.loop.extent))
            zeros.setdefault(loop, []).append(tirx.IfThenElse(none, p.stmt, None))
    for loop, filled in sorted(zeros.items(), key=lambda x: -x[0].order):  # inner loops first
        new[loop] = nodes.seq([*filled, flow.rebuilt(loop, new)])
    lives = [replace(x, initialization=FOLDED) if x.name in names else x for x in plan.accumulators]
    return plan.replace(body=flow.replaced(new), accumulators=tuple(lives)) if new else plan


def first_product(parts: Sequence[Stmt], buffer: BufferVar) -> First | None:
    """Return the first product that adds to an accumulator, if nothing uses the accumulator before."""
    waits: list[Stmt] = []
    loop: Any = None
    while True:
        using = [s for s in parts if uses(s, buffer)]
        waits += itertools.takewhile(_is_wait, using) if loop is None else ()
        s = next((x for x in using if not _is_wait(x)), None)
        if isinstance(s, tirx.SeqStmt):
            parts = list(s.seq)
        elif isinstance(s, tirx.AttrStmt) and not is_shared(s):
            parts = [s.body]
        elif isinstance(s, tirx.For) and role(s) in _LOOPS and loop is None:
            loop, parts = s, [s.body]
        else:
            break
    call = OpCall.decode(s) if s is not None and is_op(s) else None
    if s is None or call is None or call.name not in _PRODUCTS:
        return None
    at = accumulator_of(call)
    own = isinstance(call.args[at], View) and call.args[at].buffer.same_as(buffer)
    reads = any(isinstance(v, View) and v.buffer.same_as(buffer) for v in call.args[:at])
    if not own or reads or nodes.as_int(call.args[at + 1]) not in (0, False):
        return None
    if loop is None:
        return First(s, nodes.int_const(1, "bool"), None, tuple(waits))
    known = nodes.as_int(loop.extent)
    some = isinstance(known, int) and known > 0
    return First(s, tirx.EQ(loop.loop_var, loop.min), None if some else loop, tuple(waits))


def with_start(s: Stmt, when: Any) -> Stmt:
    """Return a product that begins with zeros on a condition."""
    args = list(s.value.args)
    args[accumulator_of(OpCall.decode(s)) + 1] = when
    return tirx.Evaluate(type(s.value)(s.value.op, args, attrs=s.value.attrs, ret_ty=s.value.ty), s.span)


def _starts(s: Stmt, buffer: BufferVar) -> bool:
    """Whether a product adds to a whole fragment in registers, without promotion."""
    call = OpCall.decode(s)
    lasts = call.name == _STARTED and attributes.IN_FLIGHT in call.attrs and PROMOTE not in call.attrs
    return lasts and tuple(call.args[accumulator_of(call)].extents) == tuple(nodes.shape_of(buffer))


def _is_wait(s: Stmt) -> bool:
    return bool(is_op(s) and nodes.is_tile_call(s.value, WAIT_USES) and attributes.IN_FLIGHT in s.value.attrs)
