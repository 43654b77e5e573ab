"""Operand prefetch: read the next iteration's operands before an iteration's last step.

An iteration of such a loop begins with a wait and a barrier, and the first instructions of the op at its end need
operands that are read after them: the units stall. An op that marks its parts (``calls.part``) is rotated::

    setup
    wait; sync_threads; first(0)
    for k:
        copies of a later iteration; commit
        middle(k)
        wait; sync_threads; first(k + 1), or first(k) again in the last iteration, unused
        last(k)

A wait for the phase of a slot is that of the same iteration, which in the last one has ended before. Where all waits
are of this kind, one thread issues the copies, and they follow the reads that a barrier precedes: they go to the slot
whose last reads precede that barrier too, so they are in flight an iteration longer, and no branch keeps the first
instructions of an iteration waiting::

    setup
    wait; sync_threads; first(0); copies of iteration stages - 1
    for k:
        middle(k)
        wait; sync_threads; first(k + 1); copies of iteration k + stages, issued by iteration k + 1
        last(k)

Both the reads (``first``) and the instructions (``last``) may have several parts. Then the first part of ``last`` goes
before the wait, and the others alternate with the parts of ``first``, so that registers are free when they are loaded.
If ``middle`` has several parts, one copy goes before each: otherwise operand reads would wait behind all copies in
their common queue.

The copies may overwrite the slot of iteration k - 1 as before: its last reads precede the barrier of iteration
k - 1. The number of groups between each wait and the group that it waits for does not change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Node, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, loads_of, renamed, replace_for, statements, substitute
from tile_core.records import dataclass


def prefetch_operands(body: Stmt) -> Stmt:
    """Return the body with each pipelined loop rotated if its op allows it."""
    return _PrefetchOperands().stmt(body)


@dataclass(frozen=True)
class _PipelinedIteration:
    """The statements of one iteration of a pipelined loop."""

    waits: list[Any]
    sync: Any
    binds: list[Any]
    issue: list[Any]
    op: Any

    @property
    def phased(self) -> bool:
        """Whether its waits name the iteration: the slot and phase of a barrier."""
        return any(_calls(s, "barrier_wait") for s in self.waits)


class _PrefetchOperands(StmtRewriter):
    def __init__(self) -> None:
        self.managed = False

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer, self.managed = self.managed, self.managed or s.attr_key == attributes.MANAGED
        new = super().visit_AttrStmt(s)
        self.managed = outer
        return new

    def visit_For(self, s: Stmt) -> Stmt:
        iteration = _iteration_of(s) if self.managed else None
        parts = None if iteration is None else _parts(iteration.op)
        if (
            iteration is None
            or parts is None
            or any(v in _defined(iteration, s) for v in collect(nodes.seq(parts["setup"]), tirx.Var))
        ):
            return super().visit_For(s)
        return _rotated(s, iteration, parts)


def _iteration_of(loop: Stmt) -> _PipelinedIteration | None:
    """Return an iteration's statements of the form: wait, barrier, bindings, copies, commit, op."""
    *rest, op = statements(loop.body)
    at = next((i for i, x in enumerate(rest) if _calls(x, "sync_threads")), 0)
    waits = [x for x in rest[:at] if not isinstance(x, tirx.Bind)]
    if not waits or not _is_lowered(op) or not all(map(_waits, waits)):
        return None
    issue = [x for x in rest[at + 1 :] if not isinstance(x, tirx.Bind)]
    ends = [_calls(x, "async_commit") for x in issue]
    # Copies are the statements up to the commit of their group; copies of transactions are one statement.
    alone = len(issue) == 1 and all(_calls(x, "barrier_wait") for x in waits)
    if ends != [False] * (len(ends) - 1) + [True] and not alone:
        return None
    return _PipelinedIteration(waits, rest[at], [x for x in rest if isinstance(x, tirx.Bind)], issue, op)


def _parts(op: Stmt) -> dict[str, list[Stmt]] | None:
    """Return the marked parts of an op and the statements between them."""
    inner = op.body
    if not isinstance(inner, tirx.AttrStmt) or inner.attr_key != attributes.STEP:
        return None
    found: dict[str, list[Stmt]] = {"setup": [], "ring": [], "first": [], "last": [], "middle": []}
    for s in statements(inner.body):
        if isinstance(s, tirx.AttrStmt) and s.attr_key == attributes.PART:
            found[str(s.node.value)].append(s.body)
        else:
            found["middle"].append(s)
    return found if found["setup"] and found["first"] and found["last"] else None


def _rotated(loop: Stmt, iteration: _PipelinedIteration, parts: Mapping[str, list[Stmt]]) -> Stmt:
    def around(*body: Stmt) -> Stmt:
        whole = calls.step(nodes.seq(list(body)), iteration.op.span)
        return tirx.AttrStmt(iteration.op.node, attributes.LOWERED, iteration.op.value, whole, iteration.op.span)

    start, extent, var = loop.min, loop.extent, loop.loop_var
    kind = nodes.dtype_of(var)
    zero, following = nodes.int_const(0, kind) + start, var + nodes.int_const(1, kind)
    more = following < start + extent

    def reads(then: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
        """Return the renamed waits, bindings and reads for another iteration."""
        names: dict[Any, Any] = {}
        own = []
        for bind in iteration.binds:
            name = nodes.fresh(f"{bind.var.name}_next", nodes.dtype_of(bind.var))
            own.append(tirx.Bind(name, substitute(then(bind.value), names), bind.span))
            names[bind.var] = name
        phased = iteration.waits if iteration.phased else []
        used = {v for part in (*parts["first"], *phased) for v in collect(part, tirx.Var)}
        needed = [b for b, o in zip(own, iteration.binds, strict=True) if o.var in used]
        waits = [*needed, *(substitute(then(w), names) for w in iteration.waits), iteration.sync]
        before = waits if iteration.phased else [*iteration.waits, iteration.sync, *needed]
        return before, [around(renamed(substitute(then(part), names))) for part in parts["first"]]

    def at_first(node: Node) -> Node:
        return substitute(node, {var: zero})

    def at_next(node: Node) -> Node:
        """Return a node for the next iteration, or for the last one again."""
        if isinstance(node, tirx.Stmt) or loads_of(node):
            return substitute(node, {var: tirx.Select(more, following, var)})
        return tirx.Select(more, substitute(node, {var: following}), node) if var in collect(node, tirx.Var) else node

    late = all(_calls(s, "barrier_wait") for s in iteration.waits)
    waits, loads = reads(at_first)
    begin = nodes.seq([*waits, *loads, *(_copies(iteration, at_first) if late else [])])
    if not (isinstance(nodes.as_int(extent), int) and nodes.as_int(extent) > 0):
        begin = tirx.IfThenElse(extent > 0, begin, None, loop.span)
    # These reads are unconditional: instructions are not scheduled across a branch.
    waits, loads = reads(at_next)
    last = [around(part) for part in parts["last"]]
    early = last[:1] if len(last) > 1 else []
    mixed = [x for pair in itertools.zip_longest(loads, last[len(early) :]) for x in pair if x is not None]
    middle = [around(part) for part in parts["middle"]]
    if late:
        at = max((i for i, x in enumerate(mixed) if any(x is load for load in loads)), default=-1) + 1
        # The copies' own condition excludes iterations after the last one.
        mixed[at:at] = _copies(iteration, lambda node: substitute(node, {var: following}))
    else:
        middle = _spread(iteration.issue, middle)
    body = [*iteration.binds, *middle, *early, *waits, *mixed]
    notes = {**(dict(loop.annotations) if loop.annotations else {}), **({attributes.RING: 1} if parts["ring"] else {})}
    return nodes.seq([*parts["setup"], begin, replace_for(loop, nodes.seq(body), annotations=notes)])


def _copies(iteration: _PipelinedIteration, then: Callable[[Any], Any]) -> list[Any]:
    """Return the copies that another iteration issues, with renamed bindings that they use."""
    names: dict[Any, Any] = {}
    own: list[Any] = []
    used = {v for s in iteration.issue for v in collect(s, tirx.Var)}
    for bind in reversed(iteration.binds):
        used |= set(collect(bind.value, tirx.Var)) if bind.var in used else set()
    for bind in (b for b in iteration.binds if b.var in used):
        name = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
        own.append(tirx.Bind(name, substitute(then(bind.value), names), bind.span))
        names[bind.var] = name
    return [*own, *(substitute(then(renamed(s)), names) for s in iteration.issue)]


def _spread(issue: list[Stmt], middle: list[Stmt]) -> list[Stmt]:
    """Interleave copies with the first parts of the middle, and commit their group."""
    if len(middle) < 2 or not _calls(issue[-1], "async_commit"):
        return [*issue, *middle]
    begin = list(itertools.chain.from_iterable(_apart(s) for s in issue[:-1]))
    if len(begin) > len(middle):
        rest = max(len(middle) - 1, 0)
        begin = [*begin[:rest], nodes.seq(begin[rest:])]
    count = len(begin)
    mixed = [x for pair in itertools.zip_longest(begin, middle[: count - 1]) for x in pair if x is not None]
    return [*mixed, issue[-1], *middle[max(count - 1, 0) :]]


def _apart(s: Stmt) -> list[Stmt]:
    """Split the copies of an iteration, each guarded by the iteration's existence."""
    if not isinstance(s, tirx.IfThenElse) or s.else_case is not None:
        return [s]
    inner = list(statements(s.then_case))
    if any(isinstance(x, tirx.Bind) for x in inner):  # later copies use its name
        return [s]
    return [tirx.IfThenElse(s.condition, x, None, s.span) for x in inner]


def _defined(iteration: _PipelinedIteration, loop: Stmt) -> set[Var]:
    return {loop.loop_var, *(b.var for b in iteration.binds)}


def _calls(s: Stmt, name: str) -> bool:
    return isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value, name)


def _waits(s: Stmt) -> bool:
    return _calls(s, "async_wait") or _calls(s, "barrier_wait")


def _is_lowered(s: Stmt) -> bool:
    return isinstance(s, tirx.AttrStmt) and bool(s.attr_key == attributes.LOWERED)
