"""Accumulator subtiling in tensor memory: the epilogue reads and writes some columns at a time.

A fragment of 128 x 256 accumulators would take 256 registers of each thread. Where all statements that use such a
fragment can be divided, it becomes a buffer of scope ``matrix``, which products add to. Each other statement becomes a
loop over subtiles of its columns: a subtile is a fragment, loaded before the statement and stored behind it
(`tile_cuda.ops.move_accumulators`). Consecutive statements that pass fragments on, such as a conversion and a copy, are
divided as one. Zeros before a loop of products become an attribute of its first product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.analysis.flow import Flow, names_of
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import bodies_of, loads_of, map_statements, role, with_bodies
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_core.simt.pipelining.dependences import uses
from tile_core.simt.role_threads import block_in
from tile_core.simt.variant import SimtCall
from tile_core.simt.whole_tiles import filled_with_zeros
from tile_cuda.accumulators.initialization import FOLDED, First, first_product, with_start
from tile_cuda.attributes import WHOLE
from tile_cuda.epilogue.subtiles import NotDivisible, divided, fragments_of, may_move, reads_of, writes_of
from tile_cuda.grid.persistent import may_persist
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.gemm_tensor import FORCED, requests_tensor_memory
from tile_cuda.ops.move_accumulators import READ, WRITE
from tile_cuda.ops.tensor_plan import ALL_COLUMNS, LANES, MOST_REGISTERS, TensorPlan
from tile_cuda.ops.tensor_products import variant_of
from tile_cuda.target import TCGEN05
from tile_cuda.teams import TeamRewriter
from tile_cuda.vocabulary.products import PIN_ACCUMULATOR

if TYPE_CHECKING:
    from tile_core.context import Context

PIECE = 64
"""Columns of a subtile."""


def subtile_accumulators(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Subtile the accumulators in tensor memory whose uses can be divided.

    Accumulators that fit in registers stay fragments, unless ``subtiling`` is ``"always"``. Products whose
    accumulators cannot be divided get the reason as an attribute.
    """
    option = ctx.options.subtiling
    if not ctx.capabilities.fact(TCGEN05) or option == "never":
        return plan
    found = _Products(plan, ctx)
    found.stmt(plan.body)
    # An MMA warp can issue products whose accumulators are never in registers as a whole.
    plans = found.chosen(option == "always" or (len(found.plans) == 1 and may_persist(plan, ctx)))
    body, reasons, divide = plan.body, dict[BufferVar, str](), _Divide(plan.body, {})
    while plans:
        try:
            divide = _Divide(plan.body, plans)
            body = divide.stmt(plan.body)
            break
        except NotDivisible as why:
            reasons[why.buffer] = why.reason
            plans.pop(why.buffer)
    reasons |= {b: r for b, r in found.reasons.items() if b not in plans}
    if divide.gone:
        body = map_statements(body, lambda s: nodes.seq([]) if s.buffer in divide.gone else s, tirx.AllocBuffer)
    body = map_statements(body, lambda s: _explained(s, reasons)) if reasons else body
    if body is plan.body:
        return plan
    lives = {x.name: x for x in plan.accumulators}
    for b, reason in reasons.items():
        lives[b.name] = replace(lives[b.name], storage=f"registers, since it is not subtiled: {reason}")
    for b, one in plans.items():
        start = FOLDED if b in divide.folded else lives[b.name].initialization
        storage = f"{one.columns} columns of tensor memory, read in subtiles of {PIECE}"
        lives[b.name] = replace(lives[b.name], storage=storage, initialization=start)
    return plan.replace(body=body, accumulators=tuple(lives.values()))


class _Products(TeamRewriter):
    """Finds the fragments that products on ``tcgen05`` add to, and the plans of these."""

    def __init__(self, plan: KernelPlan, ctx: Context) -> None:
        super().__init__(plan.body)
        self.block, self.ctx = plan.block, ctx
        self.plans: dict[BufferVar, TensorPlan] = {}
        #: Accumulators of products in roles: always divided, since moves of whole fragments may have to leave the role.
        self.in_roles: set[BufferVar] = set()
        #: Columns for metadata, and the most that accumulators of other products need.
        self.metadata = self.others = 0
        self.reasons: dict[BufferVar, str] = {}

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not any(nodes.is_tile_call(s.value, n) for n in FORCED):
            return s
        call = OpCall.decode(s)
        accumulator: View = call.args[accumulator_of(call)]
        if self.apart or not requests_tensor_memory(call, self.ctx):
            return s
        shape = tuple(map(int, nodes.shape_of(accumulator.buffer)))
        whole = accumulator.scope == "local.fragment" and tuple(accumulator.extents) == shape and len(shape) == 2
        if whole:
            buffer, _ = nodes.alloc(shape, accumulator.dtype, accumulator.name, MATRIX)
            call = _with_accumulator(call, View(buffer, accumulator.mins, accumulator.extents))
        block = block_in(self.role, self.block)
        asked = SimtCall(call.name, call.args, call.attrs, call.where, call.span, block=block)
        variant = variant_of(call)
        found = variant.plan(asked)
        if isinstance(found, Reject) or isinstance(variant.fits(asked, self.ctx), Reject):
            return s
        self.metadata = max(self.metadata, 2 * found.metadata)
        if whole and accumulator.dtype == found.total:
            self.plans[accumulator.buffer] = found
            self.in_roles |= set() if self.role is None else {accumulator.buffer}
        else:
            self.others = max(self.others, found.columns)
        return s

    def chosen(self, every: bool) -> dict[BufferVar, TensorPlan]:
        """Return the fragments to divide, the widest first, as long as there are columns."""
        wanted = {b: p for b, p in self.plans.items() if every or p.columns > MOST_REGISTERS or b in self.in_roles}
        others = max([self.others, *(p.columns for b, p in self.plans.items() if b not in wanted)])
        free, found = ALL_COLUMNS - self.metadata - others, dict[BufferVar, TensorPlan]()
        for buffer, one in sorted(wanted.items(), key=lambda item: -item[1].columns):
            if one.columns <= free:
                found[buffer] = one
                free -= one.columns
            else:
                self.reasons[buffer] = f"{one.columns} more columns of tensor memory are not left of {ALL_COLUMNS}"
        return found


class _Divide(TeamRewriter):
    """Rewrites a program with subtiled accumulators.

    Raises
    ------
    NotDivisible
        A statement needs a whole accumulator at once.
    """

    def __init__(self, body: Stmt, plans: dict[BufferVar, TensorPlan]) -> None:
        super().__init__(body)
        self.plans, self.whole = plans, body
        self.accumulators = {b: nodes.alloc(nodes.shape_of(b), p.total, b.name, MATRIX) for b, p in plans.items()}
        #: Products that begin with zeros, and when.
        self.begins: list[First] = []
        #: Users of accumulators: the block, or a role.
        self.teams: dict[BufferVar, tuple[int, int] | None] = {}
        #: Whether statements stand in a loop; those behind them, in the lists around theirs.
        self.looped, self.behind = False, list[Sequence[Stmt]]()
        #: Accumulators that these begin.
        self.folded: set[BufferVar] = set()
        #: Fragments that only subtiles are left of.
        self.gone: set[BufferVar] = set()

    def stmt(self, s: Stmt) -> Stmt:
        if not any(uses(s, b) for b in self.accumulators) and not isinstance(s, (tirx.SeqStmt, tirx.AllocBuffer)):
            return s
        if isinstance(s, tirx.SeqStmt):
            return nodes.seq(self.listed(list(s.seq)))
        return nodes.seq(self.listed([s]))

    def listed(self, parts: Sequence[Stmt]) -> list[Stmt]:
        """Return a list of statements that is divided."""
        found, at = list[Stmt](), 0
        while at < len(parts):
            s = parts[at]
            used = [b for b in self.accumulators if uses(s, b)]
            end = at + 1
            if isinstance(s, tirx.AllocBuffer) and s.buffer in self.accumulators:
                found.append(self.accumulators[s.buffer][1])
            elif not used:
                found.append(s)
            elif is_op(s) and any(nodes.is_tile_call(s.value, n) for n in FORCED):
                found.append(self.product(s, used))
            elif is_op(s) and nodes.is_tile_call(s.value, PIN_ACCUMULATOR):
                found.append(_replaced(s, 0, self.accumulators[used[0]][0]))
            elif filled_with_zeros(s) is not None or (is_op(s) and nodes.is_tile_call(s.value, "fill")):
                found += self.filled(parts, at, used[0])
            elif bodies_of(s) and not (isinstance(s, tirx.For) and role(s) in ("parallel", "vectorized")):
                self.behind.append(parts[at + 1 :])
                found.append(self.compound(s, used))
                self.behind.pop()
            else:
                new, end = self.joined(parts, at)
                found += new
            at = end
        return found

    def compound(self, s: Stmt, used: Sequence[BufferVar]) -> Stmt:
        """Return a loop or a branch with divided statements."""
        heads = [getattr(s, n) for n in ("min", "extent", "condition") if hasattr(s, n)]
        for b in used:
            if any(x.source.same_as(b) for h in heads for x in loads_of(h)):
                raise NotDivisible(b, "a condition depends on its elements")
        outer, self.looped = self.looped, self.looped or _is_loop(s)
        new = self.inside(s, lambda x: with_bodies(x, [self.stmt(y) for y in bodies_of(x)]))
        self.looped = outer
        return new

    def product(self, s: Stmt, used: Sequence[BufferVar]) -> Stmt:
        """Return a product that adds to a buffer of tensor memory."""
        call = OpCall.decode(s)
        at = accumulator_of(call)
        buffer = call.args[at].buffer
        self.joint(s, used)
        if any(isinstance(v, View) and v.buffer in self.accumulators for v in call.args[:at]):
            raise NotDivisible(used[0], "it is an operand of a product")
        # No other instruction adds to tensor memory.
        new = with_attributes(_replaced(s, at, self.accumulators[buffer][0]), {attributes.VARIANT: FORCED[call.name]})
        when = next((f.when for f in self.begins if f.stmt.same_as(s)), None)
        if when is None:
            return new
        return with_start(new, when)

    def joint(self, s: Stmt, used: Sequence[BufferVar]) -> None:
        """Require that all threads of the block come to a statement."""
        if self.apart:
            raise NotDivisible(used[0], "not all threads execute a statement that uses it")
        for b in used:
            if self.teams.setdefault(b, self.team) != self.team:
                raise NotDivisible(b, "threads of several roles use it")

    def filled(self, parts: Sequence[Stmt], at: int, buffer: BufferVar) -> list[Stmt]:
        """Replace a fill of an accumulator; empty if a product that starts from zero follows."""
        s = parts[at]
        self.joint(s, [buffer])
        if is_op(s) and tuple(OpCall.decode(s).args[0].extents) != tuple(nodes.shape_of(buffer)):
            raise NotDivisible(buffer, "only a part of it is filled")
        begin = None if filled_with_zeros(s) is None else first_product(parts[at + 1 :], buffer)
        if begin is not None and begin.loop is None:
            self.begins.append(begin)
            self.folded.add(buffer)
            return []
        return self.subtiles([s], {buffer}, set())

    # Statements that use elements

    def joined(self, parts: Sequence[Stmt], at: int) -> tuple[list[Stmt], int]:
        """Return statements from a place on that are divided together, and the place behind them."""
        used = {b for b in self.accumulators if uses(parts[at], b)}
        self.joint(parts[at], list(used))
        end, shared, tried = at + 1, set[BufferVar](), set[BufferVar]()
        shape = tuple(nodes.shape_of(next(iter(used))))
        while True:
            more = [b for s in parts[at:end] for b in fragments_of(s) if b not in tried and b not in self.accumulators]
            reach, sharing = end + 1, shared
            if more:
                tried.add(more[0])
                reach, sharing = self.reach(parts, at, end, more[0], shape), {*shared, more[0]}
            elif end == len(parts) or not any(uses(parts[end], b) for b in used):
                break
            if self.fits(parts[at:reach], used, sharing):
                end, shared = reach, sharing
                used |= {b for s in parts[at:end] for b in self.accumulators if uses(s, b)}
            elif not more:
                break
        self.gone |= shared
        behind = [*parts[end:], *(s for rest in self.behind for s in rest)]
        last = {b for b in used if not self.looped and not any(uses(s, b) for s in behind)}
        return self.subtiles(parts[at:end], used, shared, last), end

    def reach(self, parts: Sequence[Stmt], at: int, end: int, buffer: BufferVar, shape: tuple[int, ...]) -> int:
        """Return the end of the statements that use a fragment, or ``at``."""
        if tuple(nodes.shape_of(buffer)) != shape:
            return at
        positions = [i for i, s in enumerate(parts) if not isinstance(s, tirx.AllocBuffer) and uses(s, buffer)]
        everywhere = sum(_uses(parts[i], buffer) for i in positions) == _uses(self.whole, buffer)
        return max(end, positions[-1] + 1) if everywhere and positions[0] >= at else at

    def fits(self, parts: Sequence[Stmt], used: set[BufferVar], shared: set[BufferVar]) -> bool:
        """Whether some statements can be divided together, sharing fragments."""
        if not parts:
            return False
        used = used | {b for s in parts for b in self.accumulators if uses(s, b)}
        if len({tuple(nodes.shape_of(b)) for b in used}) > 1 or not may_move(parts, used | shared):
            return False
        try:
            self.subtiles(parts, used, shared)
        except NotDivisible:
            return False
        return True

    def subtiles(
        self, parts: Sequence[Stmt], used: Collection[BufferVar], shared: Collection[BufferVar],
        last: Collection[BufferVar] = (),
    ) -> list[Stmt]:  # fmt: skip
        """Return loops over subtiles of accumulators, and of fragments that only these statements use.

        Parameters
        ----------
        last
            Accumulators without a later use.
        """
        (shape,) = {tuple(map(int, nodes.shape_of(b))) for b in used}
        found: list[Stmt] = [s for s in parts if isinstance(s, (tirx.AllocBuffer, tirx.Bind))]
        moving = [s for s in parts if not isinstance(s, (tirx.AllocBuffer, tirx.Bind))]
        for first, width, count in _widths(shape[1]):
            own = {}
            for b in (*used, *shared):
                own[b], made = nodes.alloc([LANES, width], nodes.element_type(b), f"{b.name}_piece", "local.fragment")
                found.append(made)
            row, piece = nodes.fresh("rows"), nodes.fresh("piece")
            at = _scaled(row, LANES, shape[0] // LANES, 0), _scaled(piece, width, count, first)
            inside = [self.moved(READ, b, own[b], at) for b in used if reads_of(moving, b)]
            inside += [divided(s, shape, own, at, (LANES, width), next(iter(used))) for s in moving]
            inside += [self.moved(WRITE, b, own[b], at) for b in used if b not in last and writes_of(moving, b)]
            body = nodes.seq(inside)
            body = nodes.for_loop(piece, count, body, "serial") if count > 1 else body
            found.append(nodes.for_loop(row, shape[0] // LANES, body, "serial") if shape[0] > LANES else body)
        return found

    def moved(self, name: str, buffer: BufferVar, piece: BufferVar, at: Sequence[Any]) -> Stmt:
        """Return the move of a subtile between tensor memory and registers."""
        extents = list(nodes.shape_of(piece))
        there = nodes.region(self.accumulators[buffer][0], list(at), extents)
        here = nodes.region(piece, [nodes.int_const(0)] * 2, extents)
        return tirx.Evaluate(nodes.tile_call(name, [there, here]))


def _widths(columns: int) -> list[tuple[int, int, int]]:
    """Yield the subtiles of ``columns`` columns: first column, width, and number of subtiles."""
    whole, rest = divmod(columns, PIECE)
    return [*([(0, PIECE, whole)] if whole else []), *([(whole * PIECE, rest, 1)] if rest else [])]


def _scaled(var: Any, size: int, count: int, first: int) -> Any:
    """Return the first row or column of a subtile."""
    if count == 1:
        return nodes.int_const(first)
    return var * nodes.int_const(size) + nodes.int_const(first) if first else var * nodes.int_const(size)


def _is_loop(s: Stmt) -> bool:
    return isinstance(s, tirx.While) or (isinstance(s, tirx.For) and role(s) != "grid")


def _uses(s: Stmt, buffer: BufferVar) -> int:
    """Return how many statements in one use a buffer other than to allocate it."""
    return sum(any(buffer in names_of(part) for part in p.own) for p in Flow(s).points)


def _with_accumulator(call: OpCall, view: View) -> OpCall:
    """Return a product that adds to another tile."""
    args = list(call.args)
    args[accumulator_of(call)] = view
    return OpCall(call.name, tuple(args), call.attrs, call.where, call.span)


def _replaced(s: Stmt, at: int, buffer: BufferVar) -> Stmt:
    """Return an op with a whole buffer in another's place."""
    args, shape = list(s.value.args), list(nodes.shape_of(buffer))
    args[at] = nodes.region(buffer, [nodes.int_const(0)] * len(shape), shape)
    return with_attributes(s, {}, args)


def _explained(s: Stmt, reasons: dict[BufferVar, str]) -> Stmt:
    """Return a product with the reason why its accumulator is not divided."""
    call = OpCall.decode(s) if is_op(s) else None
    reason = reasons.get(call.args[accumulator_of(call)].buffer) if call is not None and call.name in FORCED else None
    return s if reason is None else with_attributes(s, {WHOLE: reason})
