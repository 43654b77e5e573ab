"""Asynchronous products that a program waits for itself: ``T.wgmma_gemm`` and ``T.wgmma_gemm_sp``.

A product is asynchronous if the wait that ends it stands behind it in the same list of statements. Otherwise the
compiler inserts the wait: right behind the product, as for ``T.gemm``, or where the schedule of its loop has one. A
wait that ends no product is removed. Until the wait only other asynchronous products may access the accumulator; they
add to it in order. Reads of shared memory are checked at the insertion of barriers (``ir.calls.address``, ``until``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.errors.ops import NotWaitedFor
from tile_core.ir import nodes
from tile_core.ir.attributes import ENDED, IN_FLIGHT, SETTLED, VARIANT
from tile_core.ir.visit import StmtRewriter, collect, map_statements
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.ops.effects import effects
from tile_core.simt.pipelining.async_products import PENDING, WAIT_USES, accumulator_of
from tile_core.simt.pipelining.dependences import uses
from tile_cuda.target import WGMMA
from tile_cuda.vocabulary.products import DENSE, SPARSE

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan


def begin_products(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Mark the products that last until a wait of the program.

    Raises
    ------
    NotWaitedFor
        A statement accesses the accumulator of a product before the wait that ends it.
    """
    waits = [s for s in collect(plan.body, tirx.Evaluate) if _pending(s) is not None]
    if not waits or not ctx.capabilities.fact(WGMMA):
        return plan
    body = _BeginProducts().stmt(plan.body)
    # Waits that are left end no product: single statements of a loop or branch.
    return plan.replace(body=map_statements(body, lambda s: s if _pending(s) is None else nodes.seq([])))


class _BeginProducts(StmtRewriter):
    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        body = [self.stmt(x) for x in s.seq]
        ends: dict[int, int] = {}
        for at in reversed(range(len(body))):
            end = _end(body, at) if _accumulator(body[at]) is not None else None
            if end is not None and _is_free(body, at, end, ends):
                ends[at] = end
        return nodes.seq(_marked(body, ends))


def _pending(s: Stmt) -> int | None:
    """Return how many products a wait leaves in flight; ``None`` for another statement."""
    if not is_op(s) or not nodes.is_tile_call(s.value, WAIT_USES) or len(s.value.args):
        return None
    return int(nodes.as_int(s.value.attrs[PENDING])) if IN_FLIGHT not in s.value.attrs else None


_FORCED = {"gemm": DENSE, "gemm_sp": SPARSE}


def _accumulator(s: Stmt) -> View | None:
    """Return the accumulator of a product that requests an asynchronous instruction, or ``None``."""
    name = next((n for n in _FORCED if is_op(s) and nodes.is_tile_call(s.value, n)), None)
    if name is None:
        return None
    call = OpCall.decode(s)
    if str(call.attrs.get(VARIANT)) != _FORCED[name] or IN_FLIGHT in call.attrs:
        return None
    accumulator: View = call.args[accumulator_of(call)]
    return accumulator if accumulator.scope == "local.fragment" else None


def _end(body: Sequence[Stmt], at: int) -> int | None:
    """Return the first wait that leaves no older product in flight."""
    begun = 0
    for i in range(at + 1, len(body)):
        pending = _pending(body[i])
        if pending is not None and begun >= pending:
            return i
        if _accumulator(body[i]) is not None:
            begun += 1
        elif pending is None and _has_products(body[i]):
            return None  # how many it begins, or waits for, is not known here
    return None


def _has_products(s: Stmt) -> bool:
    return any(nodes.is_tile_call(c, name) for c in collect(s, ir.Call) for name in (*_FORCED, WAIT_USES))


def _is_free(body: Sequence[Stmt], at: int, end: int, ends: Mapping[int, int]) -> bool:
    """Whether only asynchronous products access the accumulator of a product before its end."""
    accumulator = _accumulator(body[at])
    assert accumulator is not None
    for i in range(at + 1, end):
        if not uses(body[i], accumulator.buffer):
            continue
        other = _accumulator(body[i])
        if other is None or not other.buffer.same_as(accumulator.buffer) or _reads(body[i], accumulator.buffer):
            raise _touched(body[at], body[i], accumulator)
        if i not in ends:
            return False
    return True


def _reads(s: Stmt, buffer: Any) -> bool:
    """Whether a product reads a tile as an operand."""
    call = OpCall.decode(s)
    return any(isinstance(v, View) and v.buffer.same_as(buffer) for v in call.args[: accumulator_of(call)])


def _marked(body: Sequence[Stmt], ends: Mapping[int, int]) -> list[Stmt]:
    """Return statements with products that last, and waits that name what is then complete."""
    found, waits = list(body), dict[int, list[Stmt]]()
    for at, end in ends.items():
        accumulator = _accumulator(body[at])
        assert accumulator is not None
        earlier = (i for i, last in ends.items() if i < at < last)
        again = any(_same(_accumulator(body[i]), accumulator) for i in earlier)
        found[at] = with_attributes(
            body[at], {IN_FLIGHT: 1, ENDED: 1} if again else {IN_FLIGHT: 1, ENDED: 1, SETTLED: 1}
        )
        named = waits.setdefault(end, [])
        # Another product that adds to them may still be in flight behind this wait.
        adds = any(at < i < end < last and _same(_accumulator(body[i]), accumulator) for i, last in ends.items())
        if not adds and not any(_same(View.of(w.value.args[0]), accumulator) for w in named):
            region = nodes.region(accumulator.buffer, list(accumulator.mins), list(accumulator.extents))
            named.append(with_attributes(body[end], {IN_FLIGHT: 1}, [region]))
    for end, named in waits.items():
        found[end] = nodes.seq(named or [with_attributes(body[end], {IN_FLIGHT: 1})])
    return found


def _same(a: View | None, b: View) -> bool:
    return a is not None and bool(a.buffer.same_as(b.buffer))


def _touched(product: Stmt, s: Stmt, accumulator: View) -> NotWaitedFor:
    line = nodes.where_of(product)
    writes = is_op(s) and any(v.buffer.same_as(accumulator.buffer) for v in effects(s)[1])
    return NotWaitedFor(
        buffer=accumulator.name, action="written" if writes else "used", flight="product",
        line="?" if line is None else line.line, where=nodes.where_of(s),
    )  # fmt: skip
