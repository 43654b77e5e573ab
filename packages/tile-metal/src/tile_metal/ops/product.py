"""GEMMs on matrix instructions: the elements of a lane, and the loop over K."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.register_loops import unrolled, when
from tile_core.simt.variant import SimtCall
from tile_metal.ops.operand import SimdgroupLoader, SimdgroupOperand
from tile_metal.ops.plan import SimdgroupPlan
from tile_metal.ops.sparse import SparseMetadata, contribution, finite

#: Number of steps beyond which the loop over K is not unrolled.
_MOST_STEPS = 16


def metadata_of(call: SimtCall) -> SparseMetadata | None:
    """Return the metadata of a sparse product's A."""
    if call.name != "gemm_sp":
        return None
    return SparseMetadata(call.args[1], bool(call.attrs[attributes.TRANSPOSE_E]), int(call.attrs[attributes.GROUP]))


class SimdgroupProduct(RegisterProduct[SimdgroupPlan]):
    """Makes the statement of a product, see `RegisterProduct`."""

    lane_names = ("lane", "lane_row", "lane_column")
    corner_names = ("simd_row", "simd_column")

    def lane_coordinates(self, number: Var) -> tuple[Expr, Expr]:
        """Return the row and first column of a lane's elements of a block."""
        each = self.plan.unit.each
        row = tirx.floordiv(number, 16) * 4 + tirx.floordiv(tirx.floormod(number, 8), 2)
        column = tirx.floormod(tirx.floordiv(number, 8), 2) * (2 * each) + tirx.floormod(number, 2) * each
        return row, column

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """Blocks of 8 rows, along the columns first, and neighbours in a row."""
        u = self.plan.unit
        return ("across", u.n // u.columns), ("down", u.m // 8), ("e", u.each)

    def element(self, i: Expr, j: Expr, *within: Expr) -> tuple[Expr, ...]:
        """See `RegisterProduct.element`."""
        s, u, (across, down, e) = self.plan.split, self.plan.unit, within
        high, wide = u.m // 8, u.n // u.columns
        register = ((i * s.atoms_n + j) * wide + across) * (high * u.each) + down * u.each + e
        row = self.rows + i * u.m + down * 8 + self.lane.row
        return register, row, self.columns + j * u.n + across * u.columns + self.lane.column + e

    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the steps along K: a loop over whole ones, then the rest."""
        p, u = self.plan.problem, self.plan.unit
        fields: dict[str, Any] = {"dtype": self.plan.operand, "depth": p.k, "unit": u}
        a = SimdgroupOperand(**self.operand(0, guarded), **fields, is_a=True, metadata=metadata_of(self.call))
        b = SimdgroupOperand(**self.operand(1, guarded), **fields, is_a=False)
        out: list[Stmt] = []
        loaders = []
        sparse = a.metadata is not None
        for operand, name in ((a, "a"), (b, "b")):
            # Of the operand with more tiles one is held at a time.
            streams = not sparse and (operand is b if b.tiles >= a.tiles else operand is a)
            held = 1 if streams else operand.tiles
            registers, new = nodes.alloc([held * operand.size], operand.dtype, f"{name}_values", "local")
            loader = SimdgroupLoader(operand, self.lane, registers, name)
            loader.streams = streams and not loader.direct
            loaders.append(loader)
            out += [] if loader.direct else [new]
        steps, full = -(-a.depth // self.plan.unit.k), a.depth // self.plan.unit.k

        def one(at: Expr) -> list[Stmt]:
            loads, product = [*loaders[0].load(at), *loaders[1].load(at)], self.multiplied(loaders, totals, at)
            if not sparse:
                return [*loads, product]
            odd, new_odd = nodes.alloc([1], "int32", "odd", "local")
            registers, count = loaders[1].registers, b.tiles * b.size
            clean = [new_odd, nodes.store(odd, nodes.int_const(0), [0]), finite(registers, count, b.dtype, odd)]
            return [*loads, *clean, product, self._rest(a, b, totals, at, odd)]

        # Registers are not indexed by variables: with a fragment among the operands the loop is unrolled.
        short = full <= _MOST_STEPS or any(o.way == "fragment" for o in (a, b))
        if full == 1:
            out += one(0)
        elif full:
            var = nodes.fresh("k_step")
            out.append(nodes.for_loop(var, full, nodes.seq(one(var)), "unroll" if short else "serial"))
        return out + [x for at in range(full, steps) for x in one(at)]

    def _rest(self, a: SimdgroupOperand, b: SimdgroupOperand, totals: BufferVar, at: Var, odd: BufferVar) -> Stmt:
        """Return the statement that adds the infinities and NaN of B.

        The instructions took them as zero.
        """
        unit, k = self.plan.unit.k, nodes.fresh("k_odd")
        found = nodes.tile_call("any_sync", [tirx.NE(odd[0], nodes.int_const(0))], ret="bool")
        limits = [at * unit + k < a.depth] if a.depth % unit else []

        def one(r: Expr, i: Expr, j: Expr) -> Stmt:
            row, column = (tirx.min(x, nodes.int_const(n - 1)) for x, n in ((i, a.lines), (j, b.lines)))
            return contribution(a.metadata, a, b, (row, column, at * unit + k), totals, r)

        return tirx.IfThenElse(found, nodes.for_loop(k, unit, when(limits, self.each(one))), None)

    def multiplied(self, loaders: list[SimdgroupLoader], totals: BufferVar, at: Expr) -> Stmt:
        """Return the instructions of one step for all of the simdgroup's part of C."""
        s, u = self.plan.split, self.plan.unit
        turned = loaders[0].operand.transposed, loaders[1].operand.transposed
        name, size = u.function(self.plan.total, self.plan.operand, turned), u.instruction.accumulators

        def tile(i: Expr, j: Expr) -> Stmt:
            to = address(totals, [(i * s.atoms_n + j) * size], "rw")
            return execute(name, [to, loaders[0].at(i, at), loaders[1].at(j, at)], self.call.span)

        left, right = loaders
        if right.streams:

            def column(j: Expr) -> Stmt:
                return nodes.seq([*right.load_tile(j, at), unrolled("row_tile", s.atoms_m, lambda i: tile(i, j))])

            return unrolled("column_tile", s.atoms_n, column)

        def row(i: Expr) -> Stmt:
            return nodes.seq([*left.load_tile(i, at), unrolled("column_tile", s.atoms_n, lambda j: tile(i, j))])

        return unrolled("row_tile", s.atoms_m, row)
