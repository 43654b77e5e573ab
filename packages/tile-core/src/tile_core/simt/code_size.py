"""The code-size budget: operations after unrolling, counted before source is generated.

The compilers of the source unroll loops over registers, tiles of instructions and ``T.unroll``. For large tiles on few
threads this takes minutes or does not terminate. ``bounded`` counts the operations first. A loop that would exceed the
target's budget is not unrolled, and neither is one over an array larger than a thread's registers: such an array is in
the thread's local memory, where indices need not be constant. Loops inside such a loop are still unrolled.
"""

from __future__ import annotations

from dataclasses import field

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Node, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.lowering import TooMuchCode, UnrolledTooFar
from tile_core.ir import nodes
from tile_core.ir.attributes import ROLE, UNROLL_FACTOR
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, bodies_of, collect, replace_for, role, uses_var, with_bodies
from tile_core.records import dataclass
from tile_core.simt.memory.register_pressure import registers_of
from tile_core.simt.register_loops import LONGEST_VECTOR, MOST_REGISTERS

#: Cost of a function or a conversion from a narrow type, of one to it, and of an access of shared or global memory.
FUNCTION, CODEC, MEMORY = 10, 50, 6
#: TVM operators that are calls in form only.
_SIMPLE = frozenset(
    "bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right if_then_else reinterpret likely".split()
)


#: The share of the budget that one unrolled loop nest may use; shares shrink until all nests fit, except for loops of
#: so few operations.
_SHARE, _LEAST = 2, 64
#: Straight-line code may be this many times the budget.
_STRAIGHT = 2
#: The trip count up to which compilers may unroll a loop without a request.
_SHORT = 64


@dataclass
class Written:
    """The code size of a program, for ``explain``.

    Attributes
    ----------
    operations
        Operations of one thread's code after unrolling.
    kept
        Why a loop is not unrolled, by location in the program.
    """

    operations: int = 0
    kept: dict[str, str] = field(default_factory=dict)


def bounded(body: Stmt, most: int) -> tuple[Stmt, Written]:
    """Return the body with loops kept rolled where unrolling would exceed the budget.

    Parameters
    ----------
    body
        The per-thread program.
    most
        Operations that the target's compilers handle in reasonable time (``Capabilities.code_operations``).

    Raises
    ------
    UnrolledTooFar
        If the program names a factor (``T.unroll(n, unroll_factor=...)``) that is over the budget.
    TooMuchCode
        If the code is more than twice the budget with no loop unrolled.
    """
    share = most // _SHARE
    while True:
        made = _Bound(body, share)
        new, made.report.operations = made.bound(body)
        if made.report.operations > _STRAIGHT * most and share <= _LEAST:
            raise TooMuchCode(found=made.report.operations, most=_STRAIGHT * most)
        if made.report.operations <= most or share <= _LEAST:
            return new, made.report
        share = max(_LEAST, share // 2)


def operations(node: Node, memory: int = MEMORY) -> int:
    """Return the estimated instructions of a loop-free statement or expression."""
    total = 0
    for x in collect(node, (ir.TensorLoad, tirx.BufferStore, ir.Call, tirx.Cast)):
        kind = type(x)
        if kind is ir.Call:
            total += 1 if nodes.is_tile_call(x) or nodes.operator_name(x) in _SIMPLE else FUNCTION
        elif kind is tirx.Cast:
            costs = ((nodes.dtype_of(x), CODEC), (nodes.dtype_of(x.value), FUNCTION))
            constant = isinstance(x.value, (tirx.FloatImm, tirx.IntImm))  # its code is one, too
            total += 1 if constant else next((cost for kind, cost in costs if _is_code(kind)), 1)
        else:
            buffer = x.buffer if kind is tirx.BufferStore else x.source
            total += 1 if nodes.scope_of(buffer) in PRIVATE else memory
    return total


def _is_code(dtype: str) -> bool:
    d = DTYPES.get(dtype)
    return d is not None and (d.is_narrow or d.bits < 8)


def likely_operations(s: Stmt) -> int:
    """Return the number of operations of a statement after unrolling of short loops."""
    if type(s) is tirx.SeqStmt:
        return sum(map(likely_operations, s.seq))
    if type(s) is tirx.For:
        extent = nodes.as_int(s.extent)
        short = isinstance(extent, int) and annotation(s, UNROLL_FACTOR) is None
        repeated = short and (s.kind != tirx.ForKind.SERIAL or extent <= _SHORT)
        return (extent if repeated else 1) * likely_operations(s.body)
    inside = sum(map(likely_operations, bodies_of(s)))
    return inside + (type(s) is tirx.IfThenElse) if bodies_of(s) else operations(s)


class _Bound:
    """Decides loop by loop, innermost first."""

    def __init__(self, body: Stmt, share: int) -> None:
        self.share = share
        self.report = Written()
        private = [a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) in PRIVATE]
        self.large = {b: n for b in private if (n := registers_of(b)) > MOST_REGISTERS}

    def bound(self, s: Stmt) -> tuple[Stmt, int]:
        """Return a statement and its operations."""
        if type(s) is tirx.SeqStmt:
            old = structural.items(s.seq)
            parts = [self.bound(x) for x in old]
            same = all(a.same_as(b) for (a, _), b in zip(parts, old, strict=True))
            return s if same else nodes.seq([a for a, _ in parts]), sum(n for _, n in parts)
        if type(s) is tirx.For:
            return self.loop(s)
        if not (bodies := bodies_of(s)):
            return s, operations(s)
        parts = [self.bound(x) for x in bodies]
        own = 0 if type(s) is tirx.AttrStmt else 1 + operations(s.condition)
        return with_bodies(s, [new for new, _ in parts]), own + sum(n for _, n in parts)

    def loop(self, s: Stmt) -> tuple[Stmt, int]:
        """Return a loop and its operations; one marked for unrolling may be kept rolled."""
        body, each = self.bound(s.body)
        new = s if body.same_as(s.body) else replace_for(s, body)
        extent, factor = nodes.as_int(s.extent), annotation(s, UNROLL_FACTOR)
        if isinstance(factor, int):
            iterations = min(factor, extent) if isinstance(extent, int) else factor
            if iterations > 1 and iterations * each > self.share and role(s) == "serial":
                # The compiler's own factor, see ``simt/memory/rematerialization.py``.
                notes = {**dict(s.annotations or {}), UNROLL_FACTOR: nodes.int_const(1)}
                return replace_for(new, body, annotations=notes), each + 1
            if iterations > 1 and iterations * each > self.share:
                facts = {"factor": factor, "each": each, "total": iterations * each, "most": self.share}
                raise UnrolledTooFar(**facts, where=nodes.where_of(s))
            return new, max(iterations, 1) * each + 1
        written_out = s.kind in (tirx.ForKind.UNROLLED, tirx.ForKind.VECTORIZED)
        if not written_out or not isinstance(extent, int):
            return new, each + 1
        why = self.reason(s, extent, each)
        if not why:
            # Compilers unroll short loops unasked, in each iteration of this one.
            if extent * likely_operations(body) > self.share:
                new = replace_for(new, _Fixed().stmt(body))
            return new, extent * each
        where = nodes.where_of(s)
        self.report.kept.setdefault("" if where is None else f"{where.file}:{where.line}", why)
        notes = {**dict(s.annotations or {}), ROLE: "serial", UNROLL_FACTOR: nodes.int_const(1)}
        return replace_for(new, body, kind=tirx.ForKind.SERIAL, annotations=notes), each + 1

    def reason(self, s: Stmt, extent: int, each: int) -> str:
        """Return the reason why a loop must not be unrolled; empty if it may be."""
        if extent * each > self.share:
            return f"{extent:,} iterations of {each:,} operations are more than {self.share:,}"
        if self.large and (extent > LONGEST_VECTOR or collect(s.body, tirx.For)):
            for access in collect(s.body, (ir.TensorLoad, tirx.BufferStore)):
                buffer = access.buffer if type(access) is tirx.BufferStore else access.source
                if buffer in self.large and any(uses_var(i, s.loop_var) for i in access.indices):
                    held = f"{buffer.name} is {self.large[buffer]:,} registers a thread"
                    return f"{held}, of at most {MOST_REGISTERS}: it lies in memory"
        return ""


class _Fixed(StmtRewriter):
    """Marks loops that compilers must not unroll."""

    def visit_For(self, s: Stmt) -> Stmt:
        new = super().visit_For(s)
        if s.kind != tirx.ForKind.SERIAL or annotation(s, UNROLL_FACTOR) is not None:
            return new
        return replace_for(new, new.body, annotations={**dict(s.annotations or {}), UNROLL_FACTOR: nodes.int_const(1)})
