"""``cuda.tcgen05``: dense products whose operands are in shared memory and whose sums are in tensor memory.

The sums of C are a fragment in the program: they move to tensor memory before a product that adds to them, and back
behind it. `tile_cuda.tensor_memory` allocates the columns and the barrier that products arrive at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.calls import address, execute
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.gemm_mma import HELD
from tile_cuda.ops.gemm_wgmma import keep
from tile_cuda.ops.shared_matrix import SharedMatrix, layout_of
from tile_cuda.ops.tensor_plan import GRAIN, LANES, TensorPlan, tensor_table
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.ptx.table import TABLE, has
from tile_cuda.ptx.tensor import AFTER, BEFORE, COMMIT, COUNTS, LOADED, STORED, load_name, product_name, write_name

if TYPE_CHECKING:
    from tile_core.context import Context

TENSOR = "cuda.tcgen05"
#: Operands of a product that `tile_cuda.tensor_memory` adds: the address of the columns, the barrier, and its parity.
COLUMNS, BARRIER, PARITY = 4, 5, 6
_SWIZZLES = {128: 2, 64: 4, 32: 6}
"""Codes of swizzles in descriptors: Table 40 of the PTX ISA, not those of warpgroups."""


class TensorGemm(MatrixVariant):
    """Tiles of 128 rows and a multiple of 16 columns, for blocks of 128 threads."""

    name = TENSOR
    op = "gemm"
    priority = 20
    option = "tcgen05"
    group, group_name = WARPGROUP, "warpgroup"

    def __init__(self) -> None:
        legality = matrix_legality(tensor_table(), {"A": ("shared",), "B": ("shared",), "C": HELD})
        self.legality = type(legality)(legality.operands, legality.dtypes, legality.atoms, scopes=legality.scopes)

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept what asks for it, or what the options say, if it has been given columns of tensor memory."""
        if not asks(call, ctx):
            return Reject('the option tcgen05 is "never"')
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        plan = self.plan(call)
        if plan is not None and not has(TABLE[product_name(plan.kind)], ctx.target.arch):
            return Reject(f"the target has no products of {plan.problem.types[0]} in tensor memory")
        if len(call.args) <= PARITY:
            return Reject(
                "it stands in a role or in a branch that not all threads take; all of a block allocate together"
            )
        return answer

    def refuses(self, call: SimtCall) -> str:
        """Reject blocks of other sizes, and operands that no descriptor describes."""
        if call.block.count != WARPGROUP or call.block.begins or call.block.first:
            return f"{call.block.count} threads execute it; blocks of {WARPGROUP} move sums"
        problem = Problem.of(call)
        if problem.m // LANES * problem.n > 208:
            return f"{problem.m} x {problem.n} sums take more than 208 registers of each thread"
        for view, turned, fit in ((problem.a, problem.turned_a, "(M, K)"), (problem.b, not problem.turned_b, "(N, K)")):
            if turned and view.dtype not in ("float16", "bfloat16"):
                return f"elements of {view.dtype} are adjacent along K only: {view.name} would have to be {fit}"
        return ""

    def plan(self, call: SimtCall) -> TensorPlan | None:
        """See `TensorPlan.of`."""
        found = TensorPlan.of(call)
        return None if found is None or not all(found.swizzle(r) for r in (0, 1)) else found

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return none: ``layouts`` knows which operand it is for."""
        return None

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the fragment of C, and the layouts of its descriptors."""
        found, plan = dict(super().layouts(call, ctx)), self.plan(call)
        for role in (0, 1) if plan is not None else ():
            assert plan is not None
            view = plan.view(role)
            layout = layout_of(view, plan.swizzle(role))
            if layout is not None and view.buffer not in call.places.layouts:
                found[plan.problem.positions[role]] = layout
        return found

    def statement(self, plan: TensorPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return TensorProduct(plan, call).statement()


def asks(call: OpCall, ctx: Context) -> bool:
    """Whether a product is to have its sums in tensor memory, if that is legal."""
    forced = call.attrs.get("variant")
    return str(forced) == TENSOR or (forced is None and bool(ctx.options.tcgen05 == "always"))


class TensorProduct(RegisterProduct[TensorPlan]):
    """Makes the statement of a product: sums to tensor memory, all instructions by one thread, and sums back."""

    lane_names = ("lane", "lane_row", "lane_column")
    corner_names = ("tile_row", "tile_column")
    waits = True
    clears = True

    def __init__(self, plan: TensorPlan, call: SimtCall) -> None:
        super().__init__(plan, call)
        layouts = call.places.layouts
        self.matrices = [SharedMatrix.of(plan, r, layouts.get(plan.view(r).buffer), call.ranges) for r in (0, 1)]
        self.integers = plan.total == "int32"
        self.base = nodes.fresh("columns", "uint32")

    def lane_place(self, number: Var) -> tuple[Expr, Expr]:
        """Return the row of 128, and column 0."""
        return number, nodes.int_const(0)

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """All columns of a tile."""
        return (("column", GRAIN),)

    def element(self, i: Expr, j: Expr, *within: Var) -> tuple[Expr, ...]:
        """See `RegisterProduct.element`."""
        register = (i * self.plan.split.atoms_n + j) * GRAIN + within[0]
        return register, self.rows + i * LANES + self.lane.row, self.columns + j * GRAIN + within[0]

    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the product between the sums' two ways."""
        call, clear = self.call, self.plan.problem.clear
        held, barrier = call.args[COLUMNS], call.args[BARRIER]
        parts: list[Stmt] = [tirx.Bind(self.base, nodes.load(held.buffer, list(held.mins)), call.span)]
        warp = tirx.floormod(tirx.floordiv(call.block.thread, 32), 4)
        mine = self.base + nodes.cast(warp, "uint32") * nodes.int_const(32 << 16, "uint32")
        if clear is not True:
            parts += [*self.moved(write_name, totals, mine, "r"), execute(STORED, [])]
        parts += [execute(BEFORE, []), calls.sync_threads()]
        done = address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        issued = nodes.seq([execute(AFTER, []), *self.issued(), execute(COMMIT, [done], call.span)])
        parts.append(tirx.IfThenElse(tirx.EQ(call.block.thread, nodes.int_const(0)), issued, None, call.span))
        parts += [calls.barrier_wait(barrier.buffer, barrier.mins[0], call.args[PARITY]), execute(AFTER, [])]
        parts += [*self.moved(load_name, totals, mine, "w"), execute(LOADED, [])]
        return [*parts, *keep(totals, self.plan.columns)]

    def moved(self, name: object, totals: BufferVar, base: Expr, access: str) -> list[Stmt]:
        """Return the instructions that move all sums of a thread."""
        found, at = [], 0
        while at < self.plan.columns:
            count = next(n for n in COUNTS if n <= self.plan.columns - at)
            registers = address(totals, [nodes.int_const(at)], access)
            function = name(count, self.integers)  # type: ignore[operator]
            found.append(execute(function, [registers, base + nodes.int_const(at, "uint32")], self.call.span))
            at += count
        return found

    def issued(self) -> list[Stmt]:
        """Return the instructions of all of K."""
        p, found = self.plan, []
        for step in range(p.problem.k // p.step):
            for i in range(p.split.atoms_m):
                for at, count in p.pieces():
                    to = self.base + nodes.int_const(i * p.problem.n + at, "uint32")
                    a = self.described(0, i * LANES, step)
                    b = self.described(1, at, step)
                    kind = nodes.int_const(p.descriptor(count), "uint32")
                    name = product_name(p.kind)
                    found.append(execute(name, [to, *a, *b, kind, self.adds(step)], self.call.span))
        return found

    def described(self, role: int, line: int, step: int) -> list[Expr]:
        """Return what the function of an instruction takes of A (0) or B (1)."""
        k, matrix = nodes.int_const(step * self.plan.step), self.matrices[role]
        *place, _ = matrix.arguments(nodes.int_const(line), k)
        return [*place, nodes.int_const(_SWIZZLES[matrix.swizzle])]

    def adds(self, step: int) -> Expr:
        """Return the operand that says whether an instruction adds to what is there."""
        clear = self.plan.problem.clear
        if step or clear is False:
            return nodes.int_const(1)
        return nodes.int_const(0) if clear is True else tirx.if_then_else(clear, nodes.int_const(0), nodes.int_const(1))
