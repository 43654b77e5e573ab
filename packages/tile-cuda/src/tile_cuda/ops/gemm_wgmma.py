"""``cuda.wgmma``: dense products on the matrix instructions of a warpgroup, which read shared memory themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute, instruction
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_core.simt.variant import InFlight, SimtCall
from tile_cuda.ops.gemm_mma import HELD
from tile_cuda.ops.operand import MmaLoader, MmaOperand
from tile_cuda.ops.product_cost import estimate
from tile_cuda.ops.shared_matrix import SharedMatrix, layout_of
from tile_cuda.ops.warpgroup_plan import COLUMNS, ROWS, WARPGROUP, WarpgroupPlan, table
from tile_cuda.ptx.wgmma import COMMIT, FENCE, MOST_KEPT, MOST_READ, UNIFORM, held_name, read_name, wait_name

if TYPE_CHECKING:
    from tile_core.context import Context


PRODUCTS = "products"
"""What the reads of a product that is not waited for last until: the wait for all products of a thread."""


class WarpgroupVariant(MatrixVariant):
    """Common parts of the dense and the sparse variant."""

    group = WARPGROUP
    group_name = "warpgroup"
    option = "wgmma"
    sparse = False

    def __init__(self) -> None:
        scopes = {"A": HELD, "B": ("shared",), "C": HELD}
        legality = matrix_legality(table(self.sparse), scopes | ({"E": ("shared", "global")} if self.sparse else {}))
        self.legality = type(legality)(legality.operands, legality.dtypes, legality.atoms, scopes=legality.scopes)

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept whole tiles of operands that descriptors support, if requested or enabled."""
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject) or call.attrs.get(attributes.VARIANT) == self.name:
            return answer
        if ctx.options.wgmma == "never":
            return Reject('the option wgmma is "never"')
        plan = self.plan(call)
        if ctx.options.wgmma == "always" or isinstance(plan, Reject):
            return answer
        found = estimate(plan)
        return Accept(note=f"{answer.note}; {found}") if found.is_worth_it else Reject(f"it is not faster: {found}")

    def refuses(self, call: SimtCall) -> str:
        """Reject operands that no descriptor describes, and blocks whose warpgroups are not the hardware's."""
        problem = Problem.of(call)
        begins = call.block.begins + call.block.first
        if begins % WARPGROUP:
            return f"its threads begin at {begins}; warpgroups begin at multiples of {WARPGROUP}"
        for view, turned, fit in ((problem.a, problem.turned_a, "(M, K)"), (problem.b, not problem.turned_b, "(N, K)")):
            bits = DTYPES[view.dtype].bits
            if view.scope == "shared" and turned and bits != 16 and self.multiplies(problem.types):
                return f"elements of {bits} bits are adjacent along K only: {view.name} would have to be {fit}"
        return ""

    def plan(self, call: SimtCall) -> WarpgroupPlan | Reject:
        """See `ProductPlan.for_call`."""
        return WarpgroupPlan.for_call(call)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return an empty mapping: ``layouts`` depends on the operand."""
        return None

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the fragments of the instruction, and the layouts of its descriptors."""
        found, plan = dict(super().layouts(call, ctx)), self.plan(call)
        if isinstance(plan, Reject):
            return found
        for role in (0, 1):
            view = plan.view(role)
            layout = layout_of(view, plan.swizzle(role)) if view.scope == "shared" else None
            if layout is not None and view.buffer not in call.placement.layouts:
                found[plan.problem.positions[role]] = layout
        return found


class WarpgroupGemm(WarpgroupVariant):
    """Tiles of whole instructions; A in shared memory or a fragment, B in shared memory."""

    name = "cuda.wgmma"
    op = "gemm"
    priority = 20

    def statement(self, plan: WarpgroupPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return WarpgroupProduct(plan, call).statement()


class WarpgroupProduct(RegisterProduct[WarpgroupPlan]):
    """Writes a product: the instructions of all of K, and the wait for them."""

    lane_names = ("lane", "lane_g", "lane_t")
    corner_names = ("group_row", "group_column")
    waits = True
    clears = True

    def __init__(self, plan: WarpgroupPlan, call: SimtCall) -> None:
        super().__init__(plan, call)
        s, layouts = plan.split, call.placement.layouts
        self.matrices = [
            SharedMatrix.of(plan, role, layouts.get(plan.view(role).buffer), call.ranges) if plan.shared(role) else None
            for role in (0, 1)
        ]
        # Lines of a warpgroup as multiples of its number, so that the rows of a swizzle are known to be whole.
        self.group = nodes.fresh("warpgroup")
        row, column = _coordinates(self.group, s.warps_m, s.warps_n)
        self.first_rows = nodes.fresh("warpgroup_m"), row, s.atoms_m * ROWS
        self.first_columns = nodes.fresh("warpgroup_n"), column, s.atoms_n * COLUMNS
        self.until = ""

    def lane_coordinates(self, number: Var) -> tuple[Expr, Expr]:
        """Return the row of 64, and which of four groups of adjacent elements."""
        warp, lane = tirx.floordiv(number, 32), tirx.floormod(number, 32)
        return warp * 16 + tirx.floordiv(lane, 4), tirx.floormod(lane, 4)

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """Groups of 8 rows, and the two columns that a lane holds of each."""
        return ("half", 2), ("pair", 2)

    def element(self, i: Expr, j: Expr, *within: Var) -> tuple[Expr, ...]:
        """See `RegisterProduct.element`."""
        half, pair = within
        register = ((i * self.plan.split.atoms_n + j) * 2 + half) * 2 + pair
        row = self.rows + i * ROWS + half * 8 + self.lane.row
        return register, row, self.columns + j * COLUMNS + self.lane.column * 2 + pair

    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the instructions between a fence of registers and the wait for them."""
        # Descriptors are warp-uniform: in uniform registers if the compiler can see it.
        number = tirx.floordiv(self.call.block.number, WARPGROUP)
        found = [tirx.Bind(self.group, instruction(UNIFORM, [number], "int32"))] if self.plan.split.warps > 1 else []
        found += [tirx.Bind(v, nodes.int_const(e) if isinstance(e, int) else e) for v, e, _ in self._bound()]
        words, reads = self._fragments()
        accumulators = (totals, 4 * self.plan.split.atoms_m * self.plan.split.atoms_n)
        found += self.before()
        own = [] if words is None else [(words, nodes.shape_of(words)[0])]
        if self.plan.promote:
            kept = own + self.kept()
            found += [*reads, *(s for buffer, count in kept for s in keep(buffer, count))]
            return [*found, *self._promoted(totals, words), *self.after()]
        if self.lasts(totals):
            self.until = PRODUCTS
            settled = attributes.SETTLED in self.call.attrs and not self.is_new(0)
            self.outlast()
            if words is not None:
                uses = tuple(read(*own[0], held_name))
                beyond = attributes.ENDED not in self.call.attrs
                self.call.placement.in_flight[words] = InFlight(uses, nodes.const(0, "uint32"), beyond)
            kept = [*([accumulators] if settled else []), *own]
            return [*found, *reads, *(s for b, count in kept for s in keep(b, count)), *self._issued(totals, words)]
        kept = [] if self.is_new(0) else [accumulators]
        kept += own + self.kept()
        found += [*reads, *(s for buffer, count in kept for s in keep(buffer, count))]
        issued = self._issued(totals, words)
        return [*found, *issued, execute(wait_name(0), []), *keep(*accumulators), *self.after()]

    def _issued(self, totals: BufferVar, words: BufferVar | None) -> list[Stmt]:
        """Return all instructions, as one group."""
        steps = range(self.plan.problem.k // self.plan.step)
        every = [s for step in steps for s in self._step(step, totals, words)]
        return [execute(FENCE, []), *every, execute(COMMIT, [])]

    def lasts(self, totals: BufferVar) -> bool:
        """Whether the product is asynchronous: its accumulator is C itself."""
        p = self.plan.problem
        own = self.call.placement.arrays.get(p.c.buffer)
        if attributes.IN_FLIGHT not in self.call.attrs or own is None or not own.same_as(totals) or self.plan.promote:
            return False
        # Registers of a fragment are allocated where all threads come by, as the wait that reads them does.
        return self.plan.shared(0) or self.used == self.plan.threads

    def before(self) -> list[Stmt]:
        """Return the statements that read other operands to registers."""
        return []

    def after(self) -> list[Stmt]:
        """Return the statements after the wait."""
        return []

    def outlast(self) -> None:
        """Record the registers that instructions read until the wait."""

    def kept(self) -> list[tuple[BufferVar, int]]:
        """Return the registers of other operands, and how many there are."""
        return []

    def _bound(self) -> list[tuple[Var, Expr, int]]:
        return [self.first_rows, self.first_columns]

    def _promoted(self, totals: BufferVar, words: BufferVar | None) -> list[Stmt]:
        """Return the instructions by subtile, each with a promotion of its partial accumulators."""
        s, steps = self.plan.split, self.plan.problem.k // self.plan.step
        subtiles = [(i, at, count) for i in range(s.atoms_m) for at, count in self.plan.column_runs()]
        held = max(count for _, _, count in subtiles) // 2
        parts, new = nodes.alloc([held], self.plan.total, "partial", "local")
        found = [new]
        for first in range(0, steps, self.plan.every):
            for i, at, count in subtiles:
                group = range(first, min(steps, first + self.plan.every))
                made = [self._instruction(step, i, at, count, address(parts, [0], "rw"), words) for step in group]
                found += [execute(FENCE, []), *made, execute(COMMIT, []), execute(wait_name(0), [])]
                found += [*keep(parts, count // 2), self._added(totals, parts, (i, at, count), first == 0)]
        return found

    def _added(self, totals: BufferVar, parts: BufferVar, piece: tuple[int, int, int], first: bool) -> Stmt:
        """Return the float32 addition of partial accumulators, or the move of the first ones."""
        i, at, count = piece
        clear, r = self.plan.problem.clear, nodes.fresh("r")
        to, value = r + (i * self.plan.split.atoms_n + at // COLUMNS) * 4, nodes.load(parts, [r])
        before = nodes.load(totals, [to])
        if first and clear is not True and clear is not False:
            before = tirx.if_then_else(clear, nodes.zero(self.plan.total), before)
        total = value if first and clear is True else before + value
        return nodes.for_loop(r, count // 2, nodes.store(totals, total, [to]), "unroll")

    def _step(self, step: int, totals: BufferVar, words: BufferVar | None) -> list[Stmt]:
        """Return the instructions of one step along K."""
        s = self.plan.split
        found = []
        for i in range(s.atoms_m):
            for at, count in self.plan.column_runs():
                to = address(totals, [(i * s.atoms_n + at // COLUMNS) * 4], "rw")
                found.append(self._instruction(step, i, at, count, to, words))
        return found

    def _instruction(self, step: int, i: int, at: int, count: int, to: Expr, words: BufferVar | None) -> Stmt:
        """Return the instruction for a row of tiles and ``count`` columns."""
        a, b = self.operand_a(step, i, words), self.operand_b(step, at)
        operands = [to, *a, *b, *self.metadata(step, i), *self.adds(step)]
        return execute(self.function(count, step), operands, self.call.span)

    def adds(self, step: int) -> list[Expr]:
        """Return the accumulate flag of the instructions, if they take one."""
        clear = self.plan.problem.clear
        if self.is_new(step):
            return []
        if step or clear is False:
            return [nodes.int_const(1)]
        return [tirx.if_then_else(clear, nodes.int_const(0), nodes.int_const(1))]

    def function(self, columns: int, step: int) -> str:
        """Return the function of an instruction."""
        return self.plan.name(columns, new=self.is_new(step))

    def is_new(self, step: int) -> bool:
        """Whether the instructions of a step start from zero."""
        if self.plan.every:
            return step % self.plan.every == 0
        return step == 0 and self.plan.problem.clear is True

    def metadata(self, step: int, i: int) -> list[Expr]:
        """Return the metadata of an instruction for a row of tiles."""
        return []

    def operand_a(self, step: int, i: int, words: BufferVar | None) -> list[Expr]:
        """Return the operands that locate A."""
        matrix = self.matrices[0]
        if matrix is None:
            return [address(words, [(step * self.plan.split.atoms_m + i) * 4])]
        var, _, each = self.first_rows
        k = step * (self.plan.step // 2 if self.plan.family.sparse else self.plan.step)
        return matrix.arguments(var * each + i * ROWS, nodes.int_const(k), self.until)

    def operand_b(self, step: int, at: int) -> list[Expr]:
        """Return the operands that locate B."""
        matrix = self.matrices[1]
        assert matrix is not None
        var, _, each = self.first_columns
        return matrix.arguments(var * each + at, nodes.int_const(step * self.plan.step), self.until)

    def _fragments(self) -> tuple[BufferVar | None, list[Stmt]]:
        """Return the words of a fragment A and their loads: step, tile, block, half."""
        if self.plan.shared(0):
            return None, []
        p, f, s = self.plan.problem, self.plan.family, self.plan.split
        a = MmaOperand(**self.operand(0, False), dtype=f.a, family=f, depth=self.plan.depth, halves=2)
        loader = MmaLoader(a, self.lane, "a")
        steps = p.k // self.plan.step
        new = loader.alloc(steps * s.atoms_m * 4)
        reads = [x for n in range(steps) for x in loader.load(2 * n, (0, 1), n * s.atoms_m * 4)]
        return loader.registers, [new, *loader.prepared(), *reads]


def keep(buffer: BufferVar, count: int) -> list[Stmt]:
    """Return statements across which the compiler moves no registers, despite asynchronous instructions."""
    kind = {"float32": "f32", "int32": "s32"}.get(nodes.element_type(buffer), "u32")
    return [
        execute(f"keep_{kind}_{min(MOST_KEPT, count - at)}", [address(buffer, [at], "rw")])
        for at in range(0, count, MOST_KEPT)
    ]


def read(
    buffer: BufferVar, count: int, name: Callable[[int], str] = read_name, first: Expr | None = None
) -> list[Stmt]:
    """Return statements that read registers: until there the compiler keeps what instructions in flight read."""
    starts = range(0, count, MOST_READ)
    begin = nodes.int_const(0) if first is None else first
    return [execute(name(min(MOST_READ, count - at)), [address(buffer, [begin + at])]) for at in starts]


def _coordinates(group: Any, rows: int, columns: int) -> tuple[Expr, Expr]:
    """Return the row and column of a warpgroup in a grid."""
    row = 0 if rows == 1 else group if columns == 1 else tirx.floordiv(group, columns)
    column = 0 if columns == 1 else group if rows == 1 else tirx.floormod(group, columns)
    return row, column
