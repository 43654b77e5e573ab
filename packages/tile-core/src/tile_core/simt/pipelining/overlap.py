"""Overlap of products between iterations of loops with several products.

In attention, matrix units are idle while threads convert the result of the first product to an operand of the second.
So an iteration issues its first product next to the second product of the preceding iteration::

    begin S = Q K(n)                                    # the head of iteration n
    begin O += P V(n - 1)                               # the tail of iteration n - 1
    wait for S; work on S                               # while the tail computes
    wait for the tail; O *= c; P = S

The first iteration runs no tail, and the tail of the last one follows the loop. Each product is waited for before the
first statement that accesses its accumulator or writes its operands; none is in flight at the end of an iteration. This
module selects the products to move; ``plan.py`` assigns the slots accordingly.
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


@dataclass(frozen=True)
class Candidates:
    """The products of a loop whose iterations can overlap.

    Attributes
    ----------
    calls
        The products.
    threads
        Of the block.
    alone
        Whether ping-pong is possible: copies are transactions, and only products read their tiles.
    shared_bytes
        Of shared memory that the products read, with all slots.
    trips
        Whether products run in the next iteration; otherwise they overlap statements of their own iteration.
    """

    calls: Sequence[OpCall]
    threads: int
    alone: bool
    shared_bytes: int
    trips: bool = True


CanOverlap = Callable[[Candidates], "Accept | Reject"]


@dataclass(frozen=True)
class Item:
    """A statement of an iteration, or a wait.

    Attributes
    ----------
    stmt
        The statement, or ``None``: a wait.
    product
        The product that it issues, if any.
    tail
        Whether it belongs to the iteration before.
    pending, ended
        Of a wait: the maximum number of products in flight after it, and the products that it completes.
    begun
        Of other steps: whether the iteration has issued all overlapped products here.
    """

    stmt: Stmt | None
    product: Product | None = None
    tail: bool = False
    pending: int = 0
    ended: tuple[Product, ...] = ()
    begun: bool = False


@dataclass(frozen=True)
class OverlapPlan:
    """The overlap of a loop's iterations.

    Attributes
    ----------
    analysis
        Of the program.
    products
        The products of the loop's body by position.
    tails
        Positions of the products that run in the next iteration.
    begin
        The position after which they run there; -1 without such products.
    group_threads
        Threads per ping-pong group: one group's products run while another one works on its accumulator; 0: all threads
        of the block issue their products without ping-pong.
    """

    analysis: Analysis
    products: Mapping[int, Product]
    tails: tuple[int, ...]
    begin: int
    group_threads: int = 0

    def are_products_own(self, body: Sequence[Stmt], copied: Collection[Any]) -> bool:
        """Whether only products read the prefetched tiles, and read no other tile that changes."""
        return are_products_own(self.analysis, body, list(self.products), copied)

    def rings(self, body: Sequence[Stmt], copied: Collection[Any]) -> tuple[set[Any], set[Any]]:
        """Return the copied buffers that tails read, and those that other statements read."""
        late = {b for b in copied for i in self.tails if uses(body[i], b)}
        moved = {i for i, s in enumerate(body) if i in self.tails or _copies_to(s, copied)}
        return late, {b for b in copied for i, s in enumerate(body) if i not in moved and uses(s, b)}

    def order(self, body: Sequence[Stmt], kept: Sequence[Stmt], first: bool) -> list[Item]:
        """Return the statements of an iteration and the waits between them, in order.

        Parameters
        ----------
        body
            The statements of the loop's body.
        kept
            The statements among them that an iteration executes.
        first
            Whether it is the first iteration, which runs no tail of an earlier one.
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
        """Return the tails of the last iteration, and the wait for them."""
        return _settled(self.analysis, self.tail(body))


def are_products_own(
    analysis: Analysis, body: Sequence[Stmt], products: Collection[int], copied: Collection[Any]
) -> bool:  # fmt: skip
    """Whether only products read the prefetched tiles, and read no other tile that changes.

    Parameters
    ----------
    products
        Their positions in the body of the loop.
    """
    calls = [OpCall.decode(body[i]) for i in products]
    read = {v.buffer for call in calls for v in call.args if isinstance(v, View) and v.scope == "shared"}
    written = {b for s in body if not _copies_to(s, copied) for b in analysis.written(s)}
    if any(analysis.root(b) in written for b in read):
        return False
    moved = {i for i, s in enumerate(body) if i in products or _copies_to(s, copied)}
    return not any(uses(s, b) for i, s in enumerate(body) if i not in moved for b in copied)


def overlap_of(
    analysis: Analysis, loop: Stmt, copied: Collection[Any], is_async: IsAsync
) -> tuple[OverlapPlan | None, str]:
    """Return the overlap of a loop's iterations, or ``None`` and the reason.

    Parameters
    ----------
    copied
        The buffers whose copies are prefetched.
    is_async
        Whether the target has asynchronous instructions for a product.
    """
    body = top_level(loop.body)
    every = products_of(loop.body)
    at = {i: OpCall.decode(s) for i, s in enumerate(body) if any(s.same_as(x) for x in every)}
    if len(at) < len(every):
        return None, "a product is nested in a condition or an inner loop"
    for i, call in at.items():
        reason = (
            _unable(analysis, call)
            if is_async(call)
            else f"no asynchronous instruction for the product of line {_line(body[i])}"
        )
        if reason:
            return None, reason
    products = {i: Product(i, call.args[accumulator_of(call)]) for i, call in at.items()}
    begin = min(products)
    while begin + 1 in products:
        begin += 1
    tails: list[int] = []
    reason = "no statement between them"
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
    """Return the products that overlap other statements of their iteration, if any.

    The wait for another product, for example under a condition, follows it directly, and also completes earlier ones.
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
    """Insert a wait for each product before the first conflicting statement, or at the end."""
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
    """Return the reason why a product cannot be in flight during other statements."""
    for view in (*call.args[: accumulator_of(call)], call.args[accumulator_of(call)]):
        if view.buffer in analysis.viewed or view.buffer in analysis.flow.roots:
            return f"{view.name} has views"
    accumulator: View = call.args[accumulator_of(call)]
    return "" if accumulator.scope == "local.fragment" else f"{accumulator.name} is in shared memory"


def _late(
    analysis: Analysis, body: Sequence[Stmt], at: int, copied: Collection[Any], begin: int, tails: Sequence[int]
) -> str:
    """Return the reason why a product cannot run in the next iteration, else empty.

    It would run after ``begin``.
    """
    call = OpCall.decode(body[at])
    bound = {s.var for s in body if isinstance(s, tirx.Bind)}
    if any(v in bound for v in collect(body[at], tirx.Var)) or loads_of(body[at]):
        return "it uses values of its own iteration"
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
    """Whether a statement accesses a product's accumulator or writes its operands."""
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
