"""Facts about the statements of a vector loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Key, Stmt
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr


def reads_only(e: Expr, written: set[BufferVar], root: Callable[[BufferVar], BufferVar]) -> bool:
    """Whether an expression reads none of some buffers, and calls nothing of a target."""
    if any(nodes.is_tile_call(c) for c in collect(e, ir.Call)):
        return False
    return not any(root(x.source) in written for x in collect(e, ir.TensorLoad))


def is_plain(s: Stmt) -> bool:
    """Whether a statement copies one element without a conversion."""
    return isinstance(s, tirx.BufferStore) and isinstance(s.value, ir.TensorLoad)


def passing(body: Stmt) -> set[BufferVar]:
    """Return register arrays that only pass elements on, in loops without other work.

    Instructions may access them besides, as words: elements are then moved as words, too.
    """
    plain: Counter[BufferVar] = Counter()
    for loop in collect(body, tirx.For):
        if annotation(loop, attributes.VECTOR) and is_plain(loop.body):
            store, load = loop.body, loop.body.value
            if (nodes.scope_of(store.buffer) == "local") != (nodes.scope_of(load.source) == "local"):
                plain.update((store.buffer, load.source))
    as_words = calls.accessed_as_words(body)
    every = Counter(
        [structural.identity(x.buffer) for x in collect(body, tirx.BufferStore) if x.buffer not in as_words]
    )
    every.update([structural.identity(x.source) for x in collect(body, ir.TensorLoad)])
    every.subtract(map(structural.identity, as_words))
    return {b for b, count in plain.items() if nodes.scope_of(b) == "local" and every[structural.identity(b)] == count}


def evaluated(s: Stmt) -> list[Expr]:
    """Return the loads and choices that every execution of a store or a binding evaluates."""
    found: list[Expr] = []
    for e in (s.value, *(s.indices if isinstance(s, tirx.BufferStore) else ())):
        found += evaluated_in(e)
    return found


def evaluated_in(root: Expr) -> list[Expr]:
    """Return the loads and choices that every evaluation of an expression evaluates."""
    found: list[Expr] = []
    if not collect(root, (ir.TensorLoad, ir.Call, tirx.Select)):
        return found
    _evaluate(root, found)
    return found


def _evaluate(e: Expr, found: list[Expr]) -> None:
    """Add the loads and choices of an expression to a list."""
    kind = type(e)
    if kind is tirx.Var or kind is tirx.IntImm:
        return
    if kind is tirx.And or kind is tirx.Or:
        _evaluate(e.a, found)
    elif kind is ir.TensorLoad:
        found.append(e)
        for i in structural.items(e.indices):
            _evaluate(i, found)
    elif kind is ir.Call and nodes.operator_name(e) == "if_then_else":
        found.append(e)
        _evaluate(e.args[0], found)
    elif kind is ir.Call:
        for a in structural.items(e.args):
            _evaluate(a, found)
    elif kind is tirx.Select:
        # Both values of a select are computed, but the program may rely on one of them being skipped.
        found.append(e)
        _evaluate(e.condition, found)
    else:
        for name in ("a", "b", "value") if kind is not tirx.FloatImm else ():
            if hasattr(e, name):
                _evaluate(getattr(e, name), found)


def leading_conditions(body: Stmt) -> list[Expr]:
    """Return different conditions that every iteration evaluates, each before its own first sides."""
    found: list[Expr] = []
    for x in parts_of(body):
        expressions: list[Expr] = []
        if isinstance(x, tirx.IfThenElse):
            found += _beginnings(x.condition)
            expressions = evaluated_in(x.condition)
        elif isinstance(x, (tirx.BufferStore, tirx.Bind)):
            expressions = evaluated(x)
        for e in expressions:
            if not isinstance(e, ir.TensorLoad):
                found += _beginnings(e.condition if isinstance(e, tirx.Select) else e.args[0])
    return list({tvm_ffi.StructuralKey(c): c for c in found}.values())


def _beginnings(condition: Expr) -> list[Expr]:
    """Return a condition, its first side, and so on."""
    joined = isinstance(condition, (tirx.And, tirx.Or))
    return [condition, *(_beginnings(condition.a) if joined else [])]


def with_outcome(s: Stmt, condition: Expr, outcome: bool) -> Stmt:
    """Return a statement for one outcome of a condition."""
    return _Outcome(condition, outcome).stmt(s)


class _Outcome(StmtRewriter):
    def __init__(self, condition: Expr, outcome: bool) -> None:
        self.condition, self.outcome = condition, nodes.const(outcome, "bool")

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = self.expr(s.condition)
        known = nodes.as_int(condition)
        if isinstance(known, int):
            taken = s.then_case if known else s.else_case
            return nodes.seq([]) if taken is None else self.stmt(taken)
        other = None if s.else_case is None else self.stmt(s.else_case)
        return tirx.IfThenElse(condition, self.stmt(s.then_case), other, s.span)

    def expr(self, e: Expr) -> Expr:
        kinds = (tirx.And, tirx.Or, tirx.Not, tirx.Select, ir.Call, type(self.condition))
        return map_expr(e, self.known, kinds)

    def known(self, e: Expr) -> Expr:
        if type(e) is type(self.condition) and tvm_ffi.structural_equal(e, self.condition, map_free_vars=False):
            return self.outcome
        if isinstance(e, (tirx.And, tirx.Or)):
            return _joined(e)
        if isinstance(e, tirx.Not):
            value = nodes.as_int(e.a)
            return nodes.const(not value, "bool") if isinstance(value, int) else e
        if isinstance(e, tirx.Select):
            chosen = e.condition, e.true_value, e.false_value
        elif nodes.operator_name(e) == "if_then_else":
            chosen = tuple(e.args)
        else:
            return e
        value = nodes.as_int(chosen[0])
        return (chosen[1] if value else chosen[2]) if isinstance(value, int) else e


def _joined(e: Expr) -> Expr:
    """Return a conjunction or disjunction without a known side."""
    neutral = isinstance(e, tirx.And)
    for side, other in ((e.a, e.b), (e.b, e.a)):
        value = nodes.as_int(side)
        if isinstance(value, int):
            return other if bool(value) == neutral else side
    return e


def parts_of(s: Stmt) -> list[Stmt]:
    """Return the statements of a body."""
    return list(s.seq) if isinstance(s, tirx.SeqStmt) else [s]


def key(buffer: BufferVar, indices: Sequence[Expr]) -> Key:
    """Return the key of an element."""
    return tvm_ffi.StructuralKey((buffer, *indices))
