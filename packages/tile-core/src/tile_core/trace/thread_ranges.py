"""Branches by thread index around work of several threads: roles, as of ``T.ws``.

``if tx < 32:`` around copies, products, data-parallel loops or barriers selects the threads of that work: threads 0 to
31 are its role, and the others that of its ``else``. This holds in blocks of one dimension, in kernels whose threads
are named by such conditions only, and for work without atomics and prints; in all others each thread executes
statements by itself, and branches stay branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import reduce
from math import prod

import numpy as np

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.structural import items
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, role, substitute, variables
from tile_core.ops.effects import PER_THREAD_OPS

Range = tuple[int, int]


def with_roles(body: Stmt) -> Stmt:
    """Return a program whose branches by thread index are roles.

    It is the same one if its threads have other uses.
    """
    if not any(map(_is_thread, collect(body, ir.Call))):
        return body
    grids = [s for s in collect(body, tirx.For) if role(s) == "grid" and annotation(s, attributes.THREADS) is not None]
    shapes = {tuple(int(nodes.as_int(n)) for n in annotation(s, attributes.THREADS)) for s in grids}
    # Of blocks of several dimensions one index names threads that are not consecutive.
    counts = {shape[0] for shape in shapes if prod(shape) == shape[0]}
    if len(shapes) != 1 or not counts or any(s.attr_key == attributes.ONLY for s in collect(body, tirx.AttrStmt)):
        return body
    names = {s.var: s.value for s in collect(body, tirx.Bind)}
    new = _Roles(counts.pop(), names).stmt(body)
    if new.same_as(body):
        return body
    # A name is read where it stands; its definition has it, too.
    read = Counter(collect(new, tirx.Var))
    new = _WithoutNames({v for v, count in read.items() if count > 1}).stmt(new)
    return body if uses_threads(new) else new


class _WithoutNames(StmtRewriter):
    """Drops names of thread indices that nothing reads."""

    def __init__(self, used: set[Var]) -> None:
        self.used = used

    def visit_Bind(self, s: Stmt) -> Stmt:
        dead = s.var not in self.used and any(map(_is_thread, collect(s.value, ir.Call)))
        return nodes.seq([]) if dead else s


class _Roles(StmtRewriter):
    def __init__(self, threads: int, names: Mapping[Var, Expr]) -> None:
        self.threads = threads
        self.names = names

    def visit_For(self, s: Stmt) -> Stmt:
        return s if role(s) == "parallel" else super().visit_For(s)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        new = super().visit_IfThenElse(s)
        if not _cooperates(new) or _repeats(new):
            return new
        chosen, rest = self.split(new.condition)
        return new if chosen is None else self.roles(new, chosen, rest) or new

    def roles(self, s: Stmt, chosen: Range, rest: Expr | None) -> Stmt | None:
        """Return the roles of a branch and of its ``else``."""
        first, last = chosen
        then = s.then_case if rest is None else tirx.IfThenElse(rest, s.then_case, None, s.span)
        found = [_only(first, last, then)]
        if s.else_case is not None:
            left = [r for r in ((0, first), (last, self.threads)) if r[0] < r[1]]
            if rest is not None or len(left) != 1:
                # The others are roles of their own, of other threads than the chosen ones.
                ranges = [_range(part) for part in _parts(s.else_case)]
                if any(r is None or (r[0] < last and first < r[1]) for r in ranges):
                    return None
                left = [(0, self.threads)]
            found.append(_only(*left[0], s.else_case))
        return None if any(part is None for part in found) else nodes.seq(found)

    def split(self, condition: Expr) -> tuple[Range | None, Expr | None]:
        """Return the threads for which a condition holds, and its other conditions."""
        parts = [(p, self.by_thread(p)) for p in _conjuncts(condition)]
        of_threads = [known for _, known in parts if _THREAD in variables(known)]
        rest = [p for p, known in parts if _THREAD not in variables(known)]
        if not of_threads:
            return None, None
        try:
            holds = [evaluate(p, {_THREAD: np.arange(self.threads)}) for p in of_threads]
        except Unknown:
            return None, None
        at = np.flatnonzero(np.broadcast_to(reduce(np.logical_and, holds), (self.threads,)))
        if not len(at) or at[-1] - at[0] + 1 != len(at):
            return None, None
        return (int(at[0]), int(at[-1]) + 1), reduce(tirx.And, rest) if rest else None

    def by_thread(self, e: Expr) -> Expr:
        """Return an expression of `_THREAD`, without names of indices."""
        named = {v: self.by_thread(self.names[v]) for v in variables(e) if v in self.names}
        return map_expr(substitute(e, named), lambda c: _THREAD if _is_thread(c) else c, ir.Call)


_THREAD = nodes.fresh("thread", "int32")


def _is_thread(call: Expr) -> bool:
    return bool(nodes.is_tile_call(call, "thread_index")) and nodes.as_int(call.args[0]) == 0


def _cooperates(s: Stmt) -> bool:
    """Return whether a statement has loops over elements, operations on tiles, or barriers."""
    if any(role(loop) == "parallel" for loop in collect(s, tirx.For)):
        return True
    found = [c for c in collect(s, ir.Call) if nodes.is_tile_call(c)]
    barriers = any(nodes.operator_name(c).removeprefix("tile.") in calls.BARRIER_CALLS for c in found)
    return barriers or any(type(a) is ir.TensorRegion for c in found for a in c.args)


def _repeats(s: Stmt) -> bool:
    """Return whether an effect of a statement counts once for each thread that executes it."""
    if any(m.attr_key == attributes.OP_MARK and str(m.node.value) in PER_THREAD_OPS for m in collect(s, tirx.AttrStmt)):
        return True
    found = {str(c.op.name)[5:] for c in collect(s, ir.Call) if nodes.is_tile_call(c)}
    return not found.isdisjoint({*PER_THREAD_OPS, "instruction"})


def _conjuncts(e: Expr) -> Iterator[Expr]:
    if type(e) is tirx.And:
        yield from _conjuncts(e.a)
        yield from _conjuncts(e.b)
    else:
        yield e


def _parts(s: Stmt) -> list[Stmt]:
    return list(items(s.seq)) if type(s) is tirx.SeqStmt else [s]


def _range(s: Stmt) -> Range | None:
    """Return the threads of a role; ``None`` of another statement."""
    if type(s) is not tirx.AttrStmt or s.attr_key != attributes.ONLY:
        return None
    first, count = (int(nodes.as_int(n)) for n in list(s.node)[1:3])
    return first, first + count


def _only(first: int, last: int, body: Stmt) -> Stmt | None:
    """Return a role, or the roles inside of it with their common threads.

    ``None`` for roles beside other statements.
    """
    inner = [(part, _range(part)) for part in _parts(body)]
    if all(r is not None for _, r in inner):
        common = [(p.body, max(first, r[0]), min(last, r[1]), p.span) for p, r in inner if r is not None]
        return nodes.seq([calls.only(_named(a, b), p, span) for p, a, b, span in common if a < b])
    if any(s.attr_key == attributes.ONLY for s in collect(body, tirx.AttrStmt)):
        return None
    return calls.only(_named(first, last), body, body.span)


def _named(first: int, last: int) -> tuple[str, int, int]:
    return f"threads {first}-{last - 1}", first, last - first
