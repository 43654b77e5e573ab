"""Loops with several products, whose trips overlap: the last products of a trip run beside the first one of the next.

In a trip of attention the units that compute have nothing to do while threads turn the result of the first product
into an operand of the second. So a trip begins its first product together with the second one of the trip before::

    begin S = Q K(n)                                    # the head of trip n
    begin O += P V(n - 1)                               # the tail of trip n - 1
    wait for S; work on S                               # while the tail computes
    wait for the tail; O *= c; P = S

The first trip has no tail before it, and behind the loop stands the tail of the last one. Each product is waited for
before the first statement that touches its sums or writes what it reads; none is in flight at the end of a trip. What
is moved past what is decided here, what that means for slots in ``plan.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import IsAsync, Product, accumulator_of, products_of
from tile_core.simt.pipelining.dependences import Analysis, top_level, uses

#: Fact of an accepted overlap: threads of each group that takes turns, see `OverlapPlan`.
PING_PONG = "turn"


@dataclass(frozen=True)
class Candidates:
    """The products of a loop whose trips can overlap; a target says whether they should.

    Attributes
    ----------
    calls
        The products.
    threads
        Of the block.
    alone
        Whether groups of threads can take turns: copies are transactions, and products alone read what they bring.
    shared_bytes
        Of shared memory that the products read, with all slots.
    trips
        Whether products run in the next trip; otherwise beside other statements of their own.
    """

    calls: Sequence[OpCall]
    threads: int
    alone: bool
    shared_bytes: int
    trips: bool = True


CanOverlap = Callable[[Candidates], "Accept | Reject"]


@dataclass(frozen=True)
class Item:
    """A statement of a trip, or a wait.

    Attributes
    ----------
    stmt
        The statement, or ``None``: a wait.
    product
        What it begins, if it is a product.
    tail
        Whether it belongs to the trip before.
    pending, ended
        Of a wait: how many products it leaves in flight, and those that it ends.
    begun
        Of neither: here the trip has begun the products that overlap.
    """

    stmt: Stmt | None
    product: Product | None = None
    tail: bool = False
    pending: int = 0
    ended: tuple[Product, ...] = ()
    begun: bool = False


@dataclass(frozen=True)
class OverlapPlan:
    """How the trips of a loop overlap.

    Attributes
    ----------
    analysis
        Of the program.
    products
        The products of the loop's body by position.
    tails
        Positions of those that run in the next trip.
    begin
        The position behind which they run there; -1 if there are none.
    group_threads
        Threads that begin their products together, and after those before them, so that one group's products run while
        another one works on sums; 0: all of the block begin when they get there.
    """

    analysis: Analysis
    products: Mapping[int, Product]
    tails: tuple[int, ...]
    begin: int
    group_threads: int = 0

    def are_products_own(self, body: Sequence[Stmt], copied: Collection[Any]) -> bool:
        """Whether nothing but products reads what is copied ahead, and they read nothing else that a trip shares."""
        calls = [OpCall.decode(body[i]) for i in self.products]
        read = {v.buffer for call in calls for v in call.args if isinstance(v, View) and v.scope == "shared"}
        written = {b for s in body if not _copies_to(s, copied) for b in self.analysis.written(s)}
        if any(self.analysis.root(b) in written for b in read):
            return False
        moved = {i for i, s in enumerate(body) if i in self.products or _copies_to(s, copied)}
        return not any(uses(s, b) for i, s in enumerate(body) if i not in moved for b in copied)

    def rings(self, body: Sequence[Stmt], copied: Collection[Any]) -> tuple[set[Any], set[Any]]:
        """Return the copied buffers that tails read, and those that other statements read."""
        late = {b for b in copied for i in self.tails if uses(body[i], b)}
        moved = {i for i, s in enumerate(body) if i in self.tails or _copies_to(s, copied)}
        return late, {b for b in copied for i, s in enumerate(body) if i not in moved and uses(s, b)}

    def order(self, body: Sequence[Stmt], kept: Sequence[Stmt], first: bool) -> list[Item]:
        """Return the statements of a trip and the waits between them, in order.

        Parameters
        ----------
        body
            The statements of the loop's body.
        kept
            Those of them that a trip executes.
        first
            Whether no trip is before it, whose tails would run in this one.
        """
        found = []
        for s in kept:
            at = next(i for i, x in enumerate(body) if x.same_as(s))
            if at not in self.tails:
                found.append(Item(s, self.products.get(at)))
            if at == self.begin:
                found += [*([] if first else self.tail(body)), Item(None, begun=True)]
        return _settled(self.analysis, found)

    def tail(self, body: Sequence[Stmt]) -> list[Item]:
        """Return the tails, without waits."""
        return [Item(body[i], self.products[i], tail=True) for i in self.tails]

    def last(self, body: Sequence[Stmt]) -> list[Item]:
        """Return the tails of the last trip, and the wait for them."""
        return _settled(self.analysis, self.tail(body))


def overlap_of(
    analysis: Analysis, loop: Stmt, copied: Collection[Any], is_async: IsAsync
) -> tuple[OverlapPlan | None, str]:
    """Return how the trips of a loop of several products can overlap; else ``None``, and why not.

    Parameters
    ----------
    copied
        The buffers that are copied ahead.
    is_async
        Whether the target has instructions for a product that last.
    """
    body = top_level(loop.body)
    every = products_of(loop.body)
    at = {i: OpCall.decode(s) for i, s in enumerate(body) if any(s.same_as(x) for x in every)}
    if len(at) < len(every):
        return None, "one stands under a condition or in an inner loop"
    for i, call in at.items():
        reason = (
            _unable(analysis, call)
            if is_async(call)
            else f"that of line {_line(body[i])} has no instructions that last"
        )
        if reason:
            return None, reason
    products = {i: Product(i, call.args[accumulator_of(call)]) for i, call in at.items()}
    begin = min(products)
    while begin + 1 in products:
        begin += 1
    tails: list[int] = []
    reason = "nothing stands between them"
    for i in sorted(products, reverse=True):
        if i <= begin:
            break
        found = _late(analysis, body, i, copied, begin, tails)
        if not found:
            tails.append(i)
        reason = found or reason
    if not tails:
        return None, reason
    return OverlapPlan(analysis, products, tuple(sorted(tails)), begin), ""


def within_iterations(
    analysis: Analysis, loop: Stmt, copied: Collection[Any], is_async: IsAsync
) -> OverlapPlan | None:  # fmt: skip
    """Return the products of a loop that run beside other statements of their own trip; ``None`` if none does.

    Others, under conditions for example, are waited for where they stand, and so are those before them.
    """
    body = top_level(loop.body)
    products = {}
    for i, s in enumerate(body):
        call = OpCall.decode(s) if products_of(s) and is_op(s) else None
        if call is not None and is_async(call) and not _unable(analysis, call):
            products[i] = Product(i, call.args[accumulator_of(call)])
    if len(products) < 2:
        return None
    found = OverlapPlan(analysis, products, (), -1)
    kept = [s for s in body if not _copies_to(s, copied)]
    order = found.order(body, kept, True)
    beside = any(item.product is not None and after.stmt is not None for item, after in itertools.pairwise(order))
    return found if beside else None


def _settled(analysis: Analysis, items: Sequence[Item]) -> list[Item]:
    """Return the same with a wait for each product, before the first statement that conflicts with it or at the end."""
    found: list[Item] = []
    flying: list[Product] = []
    calls: list[OpCall] = []

    def wait(ended: int) -> None:
        if ended:
            found.append(Item(None, pending=len(flying) - ended, ended=tuple(flying[:ended])))
            del flying[:ended], calls[:ended]

    for item in items:
        if item.stmt is None:
            found.append(item)
            continue
        wait(max((i + 1 for i, call in enumerate(calls) if _conflict(analysis, call, item.stmt)), default=0))
        found.append(item)
        if item.product is not None:
            flying.append(item.product)
            calls.append(OpCall.decode(item.stmt))
    wait(len(flying))
    return found


def _unable(analysis: Analysis, call: OpCall) -> str:
    """Return why a product cannot last for a part of a trip."""
    for view in (*call.args[: accumulator_of(call)], call.args[accumulator_of(call)]):
        if view.buffer in analysis.viewed or view.buffer in analysis.flow.roots:
            return f"{view.name} has views"
    accumulator: View = call.args[accumulator_of(call)]
    return "" if accumulator.scope == "local.fragment" else f"{accumulator.name} is in shared memory"


def _late(
    analysis: Analysis, body: Sequence[Stmt], at: int, copied: Collection[Any], begin: int, tails: Sequence[int]
) -> str:
    """Return why a product cannot run in the next trip, behind the statement ``begin``; empty if it can."""
    call = OpCall.decode(body[at])
    bound = {s.var for s in body if isinstance(s, tirx.Bind)}
    if any(v in bound for v in collect(body[at], tirx.Var)) or loads_of(body[at]):
        return "it names what its trip computes"
    local = {a.buffer for s in body for a in collect(s, tirx.AllocBuffer)}
    for view in call.args[: accumulator_of(call) + 1]:
        if view.buffer in local:
            return f"{view.name} is allocated in the loop"
    passed = [i for i in (*range(at + 1, len(body)), *range(begin + 1)) if i not in tails and i != at]
    for i in passed:
        if not _copies_to(body[i], copied) and _conflict(analysis, call, body[i]):
            return f"line {_line(body[i])} uses what it computes or writes what it reads"
    return ""


def _conflict(analysis: Analysis, call: OpCall, s: Stmt) -> bool:
    """Whether a statement touches the sums of a product or writes what it reads."""
    written = analysis.written(s)
    if any(analysis.root(v.buffer) in written for v in call.args[: accumulator_of(call)]):
        return True
    return uses(s, call.args[accumulator_of(call)].buffer)


def _copies_to(s: Stmt, copied: Collection[Any]) -> bool:
    """Whether a statement is a copy to one of the buffers that have slots."""
    if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
        return False
    to = OpCall.decode(s).args[1]
    return any(to.buffer.same_as(b) for b in copied)


def _line(s: Stmt) -> object:
    where = nodes.where_of(s)
    return "?" if where is None else where.line
