"""``cuda.tcgen05``: dense products with operands in shared memory and accumulators in tensor memory.

C is a fragment in the program: it moves to tensor memory before a product that adds to it, and back
behind it, unless it can stay (`tile_cuda.accumulators.resident`). `tile_cuda.accumulators.tensor_memory` allocates
the columns and the barrier that products arrive at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.calls import address, execute, move
from tile_core.layout import LayoutMap
from tile_core.lowering.dispatch import OUT_OF_ORDER
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, completion
from tile_core.passes.lower_ops import requires_order
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import APART, CTA_GROUP, WHOLE
from tile_cuda.ops.accumulator_marks import MATRIX, enters, holds, leaves
from tile_cuda.ops.gemm_mma import HELD
from tile_cuda.ops.gemm_wgmma import PRODUCTS, keep
from tile_cuda.ops.shared_matrix import SharedMatrix, layout_of
from tile_cuda.ops.tensor_plan import GRAIN, LANES, TensorPlan, tensor_table
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.ptx.table import TABLE, has
from tile_cuda.ptx.tensor import (
    AFTER,
    ARRIVE,
    BEFORE,
    COMMIT,
    COUNTS,
    LOADED,
    STORED,
    WAIT,
    WORD_COUNTS,
    load_name,
    product_name,
    words_name,
    write_name,
)

if TYPE_CHECKING:
    from tile_core.context import Context

TENSOR, TENSOR_SP, TENSOR_SCALED = "cuda.tcgen05", "cuda.tcgen05.sp", "cuda.tcgen05.block_scale"
_PAIRED = (
    "it has to be the only product of a pipelined loop at the top of a T.Kernel, of bulk copies, with an even number "
    "of blocks that read the same tile of B, and of a multiple of 32 columns, at most 256"
)
FORCED = {"gemm": TENSOR, "gemm_sp": TENSOR_SP, "gemm_scaled": TENSOR_SCALED}
"""Variants by op."""
_SWIZZLES = {128: 2, 64: 4, 32: 6}
"""Codes of swizzles in descriptors: Table 40 of the PTX ISA, not those of warpgroups."""


class TensorVariant(MatrixVariant):
    """Common parts of dense and sparse variants: tiles of 128 rows, 128 threads."""

    priority = 20
    option = "tcgen05"
    group, group_name = WARPGROUP, "warpgroup"
    sparse = False

    def __init__(self) -> None:
        scopes = {"A": ("shared",) if self.sparse else HELD, "B": ("shared",), "C": (*HELD, MATRIX)} | (
            {"E": ("shared",)} if self.sparse else {}
        )
        legality = matrix_legality(tensor_table(self.sparse), scopes)
        self.legality = type(legality)(legality.operands, legality.dtypes, legality.atoms, scopes=legality.scopes)

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept a product if requested or enabled, and if it has columns of tensor memory."""
        answer = self.fits(call, ctx)
        if isinstance(answer, Accept) and CTA_GROUP in call.attrs and attributes.HALVES not in call.attrs:
            return Reject(f"no pair of blocks computes it: {call.attrs.get(APART, _PAIRED)}")
        if isinstance(answer, Accept) and added(call) is None:
            because = f": {call.attrs[WHOLE]}" if WHOLE in call.attrs else ""
            where = "a branch of some threads, or in a role that is not one warpgroup with divided accumulators"
            return Reject(f"it stands in {where}{because}")
        return answer

    def fits(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept a product if requested or enabled, before columns are assigned."""
        if not requests_tensor_memory(call, ctx):
            return Reject(OUT_OF_ORDER if requires_order(call, ctx) else 'the option tcgen05 is "never"')
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        plan = self.plan(call)
        if not isinstance(plan, Reject) and not has(TABLE[product_name(plan.kind, self.sparse)], ctx.target.arch):
            return Reject(f"the target has no products of {plan.problem.types[0]} in tensor memory")
        return answer

    def refuses(self, call: SimtCall) -> str:
        """Reject operands without a descriptor, and fragments of A that tensor memory does not take."""
        problem = Problem.of(call)
        a = problem.a
        kept = a.dtype == DTYPES[problem.types[0]].container
        if a.scope == "local.fragment" and (problem.turned_a or not kept):
            how = "its rows are along K" if problem.turned_a else f"its elements are {a.dtype}"
            return f"{a.name} is in registers, and {how}: tensor memory takes rows of {problem.types[0]}"
        if a.scope == "local.fragment" and tuple(a.extents) != tuple(nodes.shape_of(a.buffer)):
            return f"{a.name} is in registers, and the product takes a part of it"
        for view, turned, fit in ((problem.a, problem.turned_a, "(M, K)"), (problem.b, not problem.turned_b, "(N, K)")):
            if turned and view.dtype not in ("float16", "bfloat16") and self.multiplies(problem.types):
                return f"elements of {view.dtype} are adjacent along K only: {view.name} would have to be {fit}"
        return ""

    def plan(self, call: SimtCall) -> TensorPlan | Reject:
        """See `ProductPlan.for_call`."""
        return TensorPlan.for_call(call)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return an empty mapping: ``layouts`` depends on the operand."""
        return None

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the fragment of C, and the layouts of its descriptors."""
        found, plan = dict(super().layouts(call, ctx)), self.plan(call)
        if isinstance(plan, Reject):
            return found
        for role in plan.described:
            view = plan.view(role)
            layout = layout_of(view, plan.swizzle(role))
            if layout is not None and view.buffer not in call.placement.layouts:
                found[plan.problem.positions[role]] = layout
        return found


class TensorGemm(TensorVariant):
    """Dense products."""

    name = TENSOR
    op = "gemm"
    of_pairs = True

    def statement(self, plan: TensorPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return (HeldTensorProduct if plan.holds_a else TensorProduct)(plan, call).statement()


def requests_tensor_memory(call: OpCall, ctx: Context) -> bool:
    """Whether a product requests its accumulator in tensor memory, if that is legal."""
    forced = call.attrs.get(attributes.VARIANT)
    if requires_order(call, ctx):
        return False
    return str(forced) == FORCED.get(call.name) or (forced is None and bool(ctx.options.tcgen05 == "always"))


class Added(NamedTuple):
    """Operands of a product that `tile_cuda.accumulators.tensor_memory` adds.

    Attributes
    ----------
    columns
        Where the address of the block's columns is.
    done
        Two barriers, at which products arrive alternately.
    ready
        With pairs of blocks, two barriers of the first block, at which both signal alternately that
        their operands have arrived; otherwise those of ``done``.
    issued
        How many products have been issued, modulo 4.
    accumulator, metadata
        First columns of each.
    stays
        Whether nothing else uses the columns of its accumulator (`tile_cuda.accumulators.resident`).
    """

    columns: View
    done: View
    ready: View
    issued: View
    accumulator: Expr
    metadata: Expr
    stays: Expr

    def wait(self, behind: int) -> Stmt:
        """Return the wait for the product issued ``behind`` before the next, if any."""
        number, two = (
            nodes.load(self.issued.buffer, list(self.issued.mins)) - nodes.int_const(behind),
            nodes.int_const(2),
        )
        parity = tirx.floormod(tirx.floordiv(number, two), two)
        return calls.barrier_wait(self.done.buffer, tirx.floormod(number, two), parity)

    def moves(
        self,
        name: Callable[[int, bool], str],
        registers: BufferVar,
        thread: Expr,
        access: str,
        first: Expr | None = None,
    ) -> list[Stmt]:
        """Return the moves of a thread's accumulators in all registers, from a column on."""
        found, at, total = list[Stmt](), 0, int(nodes.shape_of(registers)[0])
        lanes = tirx.floormod(tirx.floordiv(thread, 32), 4)
        lane_base = nodes.load(self.columns.buffer, list(self.columns.mins))
        lane_base = lane_base + nodes.cast(lanes, "uint32") * nodes.int_const(32 << 16, "uint32")
        lane_base = lane_base if first is None else lane_base + nodes.cast(first, "uint32")
        while at < total:
            count = next(n for n in COUNTS if n <= total - at)
            column = nodes.int_const(nodes.as_int(self.accumulator) + at, "uint32")
            function = name(count, nodes.element_type(registers) == "int32")
            found.append(execute(function, [address(registers, [nodes.int_const(at)], access), lane_base + column]))
            at += count
        return found

    def entered(self, registers: BufferVar, thread: Expr, first: Expr | None = None) -> list[Stmt]:
        """Return the moves to tensor memory, and the wait for them."""
        return [*self.moves(write_name, registers, thread, "r", first), execute(STORED, [])]

    def left(self, registers: BufferVar, thread: Expr, first: Expr | None = None) -> list[Stmt]:
        """Return the moves from tensor memory, and the wait for them."""
        kept = keep(registers, int(nodes.shape_of(registers)[0]))
        return [*self.moves(load_name, registers, thread, "w", first), execute(LOADED, []), *kept]


def added(call: OpCall) -> Added | None:
    """Return the added operands of a product or a wait; ``None`` if it has none."""
    count = len(Added._fields)
    found = [v for v in call.args if isinstance(v, View) and v.scope == "local.var"]
    return Added(*call.args[-count:]) if found else None


class TensorProduct(RegisterProduct[TensorPlan]):
    """Writes a product: moves to tensor memory, instructions of one thread, moves back."""

    lane_names = ("lane", "lane_row", "lane_column")
    corner_names = ("tile_row", "tile_column")
    waits = True
    clears = True

    def __init__(self, plan: TensorPlan, call: SimtCall) -> None:
        super().__init__(plan, call)
        layouts = call.placement.layouts
        self.matrices = {
            r: SharedMatrix.of(plan, r, layouts.get(plan.view(r).buffer), call.ranges) for r in plan.described
        }
        self.base = nodes.fresh("columns", "uint32")
        given = added(call)
        assert given is not None
        self.given = given

    def statement(self) -> Stmt:
        """Return the product of one thread, with barriers among the threads of its role."""
        return super().statement().body

    def lane_coordinates(self, number: Var) -> tuple[Expr, Expr]:
        """Return the row of 128, and column 0."""
        return number, nodes.int_const(0)

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """All columns of a tile."""
        return (("column", GRAIN),)

    def element(self, i: Expr, j: Expr, *within: Var) -> tuple[Expr, ...]:
        """See `RegisterProduct.element`."""
        register = (i * self.plan.split.atoms_n + j) * GRAIN + within[0]
        return register, self.rows + i * LANES + self.lane.row, self.columns + j * GRAIN + within[0]

    def body(self, guarded: bool, whole: bool) -> Stmt:
        """Return the product; accumulators without registers need no moves."""
        if self.plan.problem.c.scope == MATRIX:
            return nodes.seq(self.loop(guarded, None, whole))
        return super().body(guarded, whole)

    def loop(self, guarded: bool, totals: BufferVar | None, whole: bool) -> list[Stmt]:
        """Return the product between the two moves of its accumulator, if needed."""
        call, given, thread = self.call, self.given, self.call.block.thread
        own = call.placement.arrays.get(self.plan.problem.c.buffer)
        stays = bool(nodes.as_int(given.stays)) and own is not None and totals is not None and own.same_as(totals)
        arrives = completion(call)
        lasts = (stays or totals is None) and (attributes.IN_FLIGHT in call.attrs or arrives is not None)
        # A barrier of the program signals completion; no other wait needs the count.
        counts = arrives is None or not lasts or bool(self.plan.metadata)
        base = nodes.load(given.columns.buffer, list(given.columns.mins))
        c = self.plan.problem.c
        if len(c.mins) > 2:
            base = base + nodes.cast(nodes.int_const(0) + c.mins[0], "uint32") * nodes.int_const(
                self.plan.columns, "uint32"
            )
        parts: list[Stmt] = [tirx.Bind(self.base, base, call.span)]
        if attributes.ISSUED in call.attrs:
            return [*parts, execute(AFTER, []), *self.issued()]
        if self.plan.problem.clear is not True and totals is not None:
            parts += [enters(totals, given.entered(totals, thread))] if stays else given.entered(totals, thread)
        lanes = nodes.cast(tirx.floormod(tirx.floordiv(thread, 32), 4), "uint32")
        other = self.before(self.base + lanes * nodes.int_const(32 << 16, "uint32"))
        parts += [*other, execute(STORED, [])] if other else []
        parts += [execute(BEFORE, []), calls.sync_threads()]
        count = nodes.load(given.issued.buffer, list(given.issued.mins))
        slot = tirx.floormod(count, nodes.int_const(2))
        done = address(given.done.buffer, [slot], "a", calls.ASYNC_PROXY)
        until = PRODUCTS if lasts and arrives is None else ""
        issued = [execute(AFTER, []), *self.issued(until), *(self.committed(done) if counts else [])]
        issued += [] if arrives is None else self.arrived(arrives, lasts)
        issued = self.of_pair(issued) if self.plan.cluster else issued
        parts.append(tirx.IfThenElse(tirx.EQ(thread, nodes.int_const(0)), nodes.seq(issued), None, call.span))
        following = tirx.floormod(count + nodes.int_const(1), nodes.int_const(4))
        parts += [nodes.store(given.issued.buffer, following, list(given.issued.mins))] if counts else []
        if lasts:
            return [*parts, *([] if totals is None else [holds(totals, given.left(totals, thread))])]
        parts += [given.wait(1), execute(AFTER, [])]
        if totals is None:
            return parts
        return [*parts, *([leaves(totals, given.left(totals, thread))] if stays else given.left(totals, thread))]

    def committed(self, barrier: Expr) -> list[Stmt]:
        """Return the commit of issued products to a barrier, of a pair in both blocks."""
        blocks = [nodes.int_const(0b11)] if self.plan.cluster else []
        return [execute(COMMIT[self.plan.blocks], [barrier, *blocks], self.call.span)]

    def of_pair(self, issued: Sequence[Stmt]) -> list[Stmt]:
        """Return the code of a pair: both blocks signal their operands, the first one issues."""
        count = nodes.load(self.given.issued.buffer, list(self.given.issued.mins))
        slot = tirx.floormod(count, nodes.int_const(2))
        parity = tirx.floordiv(count, nodes.int_const(2))
        ready = address(self.given.ready.buffer, [slot], "a")
        rank = calls.rank_in_cluster([calls.block_index(axis) for axis in range(3)], self.plan.cluster)
        first = nodes.seq([execute(WAIT, [ready, parity], self.call.span), *issued])
        return [
            execute(ARRIVE, [ready, nodes.int_const(0)], self.call.span),
            tirx.IfThenElse(tirx.EQ(rank, nodes.int_const(0)), first, None, self.call.span),
        ]

    def arrived(self, barrier: View, lasts: bool) -> list[Stmt]:
        """Return the arrival at a barrier of the program, with what is read until then."""
        object_ = address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        reads = [(v.buffer, v.mins) for v in (self.plan.problem.a, self.plan.problem.b) if v.scope == "shared"]
        note = [calls.in_flight(barrier.buffer, barrier.mins[0], reads, self.call.span)] if lasts else []
        return [*self.committed(object_), *note]

    def column(self, at: int) -> Expr:
        """Return the column of an accumulator column among those of the block."""
        return nodes.int_const(nodes.as_int(self.given.accumulator) + at, "uint32")

    def issued(self, until: str = "") -> list[Stmt]:
        """Return the instructions of all of K; their reads last ``until`` a wait."""
        p, found = self.plan, []
        for step in range(p.problem.k // p.step):
            for i in range(p.split.atoms_m):
                for at, count in p.column_runs():
                    to = self.base + self.column(i * p.problem.n + at)
                    a = self.described(0, i * LANES, step, until)
                    b = self.described(1, at, step, until)
                    more, bits = self.extra(i, at, count, step)
                    kind = nodes.int_const(bits, "uint32")
                    name = product_name(p.kind, p.family.sparse, p.holds_a, p.blocks)
                    found.append(execute(name, [to, *a, *b, *more, kind, self.adds(step)], self.call.span))
        return found

    def before(self, mine: Expr) -> list[Stmt]:
        """Return the statements that write other operands to a thread's lane of tensor memory."""
        return []

    def extra(self, i: int, at: int, count: int, step: int) -> tuple[list[Expr], int]:
        """Return the further operands of a step's instruction, and its descriptor.

        It is for a row of tiles and ``count`` columns from ``at`` on.
        """
        return [], self.plan.descriptor(count)

    def described(self, role: int, line: int, step: int, until: str) -> list[Expr]:
        """Return the operands of an instruction for A (0) or B (1)."""
        stored = self.plan.step // 2 if role == 0 and self.plan.family.sparse else self.plan.step
        return self.described_at(role, line, step * stored, until)

    def described_at(self, role: int, line: int, along: int, until: str) -> list[Expr]:
        """Return an instruction's operands for A or B from element ``along`` of K on."""
        k, matrix = nodes.int_const(along), self.matrices[role]
        *described, _, chunks = matrix.arguments(nodes.int_const(line), k, until)
        return [*described, nodes.int_const(_SWIZZLES[matrix.swizzle]), chunks]

    def adds(self, step: int) -> Expr:
        """Return the accumulate flag of an instruction."""
        clear = self.plan.problem.clear
        if step or clear is False:
            return nodes.int_const(1)
        return nodes.int_const(0) if clear is True else tirx.if_then_else(clear, nodes.int_const(0), nodes.int_const(1))

    def waited(self) -> list[Stmt]:
        """Return the wait until an earlier product no longer reads its second set of columns.

        It is the product before the last one. Code that waits for products otherwise has waited for that one.
        """
        return [] if completion(self.call) is None else [self.given.wait(2)]

    def beside(self, at: int) -> Expr:
        """Return a column of the current one of two alternating sets beside the accumulator."""
        slot = tirx.floormod(nodes.load(self.given.issued.buffer, list(self.given.issued.mins)), nodes.int_const(2))
        set_of = nodes.cast(slot, "uint32") * nodes.int_const(self.plan.metadata, "uint32")
        return set_of + nodes.int_const(nodes.as_int(self.given.metadata) + at, "uint32")

    def written(self, words: BufferVar, count: int, to: Callable[[int], Expr]) -> list[Stmt]:
        """Return the stores of a thread's words to columns of its lane."""
        found, at = list[Stmt](), 0
        while at < count:
            some = next(n for n in WORD_COUNTS if n <= count - at)
            source = address(words, [nodes.int_const(at)])
            found.append(execute(words_name(some), [source, to(at)], self.call.span))
            at += some
        return found


class HeldTensorProduct(TensorProduct):
    """A product whose A is a fragment: each thread moves its rows to tensor memory.

    Elements of a row lie along the columns of its lane, packed in 32 bits.
    """

    def before(self, mine: Expr) -> list[Stmt]:
        """Return the moves of a thread's rows of A."""
        p = self.plan
        array, each, per = self.call.placement.arrays[p.problem.a.buffer], p.row_metadata, 32 // p.family.bits
        found = self.waited()
        for i in range(p.split.atoms_m):
            words, new = nodes.alloc([each], "uint32", "rows", "local")
            found.append(new)
            for c in range(each):
                at = nodes.int_const(i * p.problem.k + c * per)
                value = tirx.reinterpret("uint32", nodes.load(array, [at])) if per == 1 else None
                moved = move(words, [nodes.int_const(c)], array, [at], 4)
                found.append(moved if value is None else nodes.store(words, value, [c]))
            found += self.written(words, each, lambda at, i=i: mine + self.beside(i * each + at))  # type: ignore[misc]
        return found

    def described(self, role: int, line: int, step: int, until: str) -> list[Expr]:
        """Return the address of A, or what describes B."""
        if role:
            return super().described(role, line, step, until)
        p = self.plan
        return [self.base + self.beside(line // LANES * p.row_metadata + step * p.step * p.family.bits // 32)]
