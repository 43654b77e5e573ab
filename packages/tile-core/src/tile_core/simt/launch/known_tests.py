"""Drop tests that the ranges of their operands decide, and code that never runs.

A tile's tail is tested where it may have one. Which loops have none is often known only at the end: when the grid and
the loops of each thread are known, so that the interval of an index proves more than proofs about whole tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tile_core.analysis.ranges import Interval, RangedRewriter
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect

#: From the ranges of both sides, whether a comparison holds, or ``None`` where that is open.
_OUTCOMES: dict[type, Callable[[Interval, Interval], bool | None]] = {
    tirx.LT: lambda a, b: _below(a, b),
    tirx.GT: lambda a, b: _below(b, a),
    tirx.LE: lambda a, b: _opposite(_below(b, a)),
    tirx.GE: lambda a, b: _opposite(_below(a, b)),
    tirx.EQ: lambda a, b: _equal(a, b),
    tirx.NE: lambda a, b: _opposite(_equal(a, b)),
}
_COMPARISONS = tuple(_OUTCOMES)


def drop_known_tests(body: Stmt, threads: Sequence[int], blocks: Sequence[object], sizes: Iterable[Var] = ()) -> Stmt:
    """Return the program of one thread without tests that always have the same outcome.

    Parameters
    ----------
    body
        The program, whose coordinates are calls.
    threads, blocks
        Threads of a block and blocks of the grid along x, y and z; of blocks one that is no ``int`` may be any number.
    sizes
        Variables that are not negative: those of symbolic extents.
    """
    most = {"thread_index": list(threads), "block_index": [n if isinstance(n, int) else 2**31 for n in blocks]}
    return _KnownTests(most, sizes).stmt(body)


class _KnownTests(RangedRewriter):
    def __init__(self, extents: dict[str, list[int]], sizes: Iterable[Var]) -> None:
        super().__init__(sizes)
        self.extents = extents

    def visit_Bind(self, s: Stmt) -> Stmt:
        for call in collect(s.value, ir.Call):
            for kind, extents in self.extents.items():
                if nodes.is_tile_call(call, kind):
                    extent = extents[int(nodes.as_int(call.args[0]))]
                    self.ranges.set(call, (0, max(extent, 1) - 1))
        return super().visit_Bind(s)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        new = super().visit_IfThenElse(s)
        outcome = nodes.as_int(new.condition) if isinstance(new, tirx.IfThenElse) else None
        if not isinstance(outcome, int):
            return new
        taken = new.then_case if outcome else new.else_case
        return nodes.seq([]) if taken is None else taken

    def expr(self, e: Expr) -> Expr:
        if type(e) in structural.ATOMS or not collect(e, _COMPARISONS):
            return e
        handlers = [
            (tirx.Let, self.let), (_COMPARISONS, self.comparison), ((tirx.And, tirx.Or), self.join),
            (tirx.Not, self.negation), (tirx.Select, self.select), (ir.Call, self.call),
        ]  # fmt: skip
        return structural.mutated(e, handlers)

    def let(self, e: Expr, mutator: Mutator) -> Expr:
        """Register the range of a bound variable."""
        self.ranges.of(e)
        return mutator.default_mutate(e)

    def comparison(self, e: Expr, mutator: Mutator) -> Expr:
        if not nodes.dtype_of(e.a).startswith(("int", "uint")):
            return mutator.default_mutate(e)
        outcome = _OUTCOMES[type(e)](self.ranges.of(e.a), self.ranges.of(e.b))
        return mutator.default_mutate(e) if outcome is None else nodes.const(outcome, "bool")

    def join(self, e: Expr, mutator: Mutator) -> Expr:
        """A conjunction, or a disjunction."""
        new = mutator.default_mutate(e)
        neutral = isinstance(e, tirx.And)
        for side, other in ((new.a, new.b), (new.b, new.a)):
            known = nodes.as_int(side)
            if isinstance(known, int):
                return other if bool(known) == neutral else side
        return new

    def negation(self, e: Expr, mutator: Mutator) -> Expr:
        new = mutator.default_mutate(e)
        known = nodes.as_int(new.a)
        return nodes.const(not known, "bool") if isinstance(known, int) else new

    def select(self, e: Expr, mutator: Mutator) -> Expr:
        new = mutator.default_mutate(e)
        known = nodes.as_int(new.condition)
        return new if not isinstance(known, int) else new.true_value if known else new.false_value

    def call(self, e: Call, mutator: Mutator) -> Expr:
        """Evaluate only the taken side of a conditional."""
        new = mutator.default_mutate(e)
        if nodes.operator_name(new) != "if_then_else":
            return new
        known = nodes.as_int(new.args[0])
        return new if not isinstance(known, int) else new.args[1] if known else new.args[2]


def _below(a: Interval, b: Interval) -> bool | None:
    if a[1] < b[0]:
        return True
    return False if a[0] >= b[1] else None


def _equal(a: Interval, b: Interval) -> bool | None:
    if a[0] == a[1] == b[0] == b[1]:
        return True
    return False if a[1] < b[0] or b[1] < a[0] else None


def _opposite(outcome: bool | None) -> bool | None:
    return None if outcome is None else not outcome
