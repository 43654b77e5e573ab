"""Per-thread lowering of a product to matrix instructions with register operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.errors.base import InternalError
from tile_core.ir import nodes
from tile_core.ir.calls import step
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.products.operand import Lane
from tile_core.simt.ops.products.plan import PlanT
from tile_core.simt.ops.products.totals import Totals
from tile_core.simt.register_loops import unrolled
from tile_core.simt.variant import SimtCall


class RegisterProduct(ABC, Generic[PlanT]):
    """Makes the statement of a whole product.

    A backend defines its lanes and the elements of C that a lane holds per instruction, and makes the loop over K.

    Parameters
    ----------
    plan
        The plan.
    call
        The call, with all places decided.

    Attributes
    ----------
    lane_names
        Names of the lane's variables: index, row and column.
    corner_names
        Names of the variables that hold the first row and column of the warp's part of C.
    lane, rows, columns
        Those variables.
    waits
        Whether ``loop`` waits for its instructions, and orders what they take from elsewhere than registers.
    clears
        Whether the first instructions of ``loop`` start from zero themselves if the product is to.
    in_parts
        Whether ``loop`` has placed ``head`` itself: parts of the product may then move out of an enclosing loop.

    Raises
    ------
    InternalError
        The plan's instruction takes operands other than registers, or is asynchronous.
    """

    lane_names: ClassVar[tuple[str, str, str]]
    corner_names: ClassVar[tuple[str, str]] = ("warp_row", "warp_column")
    waits: ClassVar[bool] = False
    clears: ClassVar[bool] = False

    def __init__(self, plan: PlanT, call: SimtCall) -> None:
        if not self.waits and not plan.instruction.in_registers:
            detail = f"{plan}: products in registers are made of synchronous instructions on registers only"
            raise InternalError(stage="lowering", detail=detail, where=call.where)
        self.plan, self.call = plan, call
        self.lane = Lane(*map(nodes.fresh, self.lane_names))
        self.rows, self.columns = map(nodes.fresh, self.corner_names)
        self.in_parts = False

    @abstractmethod
    def lane_coordinates(self, number: Expr) -> tuple[Expr, Expr]:
        """Return a lane's row and column, given its index."""

    @abstractmethod
    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """Return the loops over a lane's elements of C of one instruction: names and extents."""

    @abstractmethod
    def element(self, i: Expr, j: Expr, *within: Expr) -> tuple[Expr, Expr, Expr]:
        """Return register, row and column of an element of C.

        Parameters
        ----------
        i, j
            The instruction's tile among those of the warp.
        within
            The variables of ``tile_loops``.
        """

    @abstractmethod
    def loop(self, guarded: bool, totals: Any, whole: bool) -> list[Stmt]:
        """Return the loop over K.

        Parameters
        ----------
        guarded
            Whether operands may extend outside their buffers.
        totals
            The accumulators.
        whole
            Whether the loop is the whole product.
        """

    def statement(self) -> Stmt:
        """Return the product for one thread.

        Operands that may extend outside their buffers are checked once: if they do, elements outside are zero.
        """
        plan, call = self.plan, self.call
        memory = [v for v in (plan.problem.a, plan.problem.b) if v.scope in ("shared", "global")]
        outside = [c for v in memory for c in contiguity.conditions(v, call.ranges)]
        body = self.body(guarded=False, whole=not outside)
        if outside:
            body = tirx.IfThenElse(tirx.all(*outside), body, self.body(guarded=True, whole=False), call.span)
        whole = body if self.in_parts else nodes.seq([*self.head(), body])
        if self.used != plan.threads:
            whole = tirx.IfThenElse(call.block.thread < self.used, whole, None, call.span)
        return step(whole, call.span)

    @property
    def used(self) -> int:
        """Threads that have work."""
        return self.plan.split.warps * self.plan.instruction.threads

    def head(self) -> list[Stmt]:
        """Bind the lane's variables and the warp's corner of C."""
        s, instruction, thread = self.plan.split, self.plan.instruction, self.call.block.thread
        width = instruction.threads
        warp = tirx.floordiv(thread, width * s.copies)
        column = 0 if s.warps_n == 1 else (warp if s.warps_m == 1 else tirx.floormod(warp, s.warps_n))
        row = 0 if s.warps_m == 1 else (warp if s.warps_n == 1 else tirx.floordiv(warp, s.warps_n))
        values = (
            tirx.floormod(thread, width), *self.lane_coordinates(self.lane.number),
            row * (s.atoms_m * instruction.m), column * (s.atoms_n * instruction.n),
        )  # fmt: skip
        every = (self.lane.number, self.lane.row, self.lane.column, self.rows, self.columns)
        return [
            tirx.Bind(v, nodes.int_const(e) if isinstance(e, int) else e) for v, e in zip(every, values, strict=True)
        ]

    def body(self, guarded: bool, whole: bool) -> Stmt:
        """Return the product without bounds checks, or guarded.

        ``whole``: this is the only version.
        """
        totals, start, end = Totals(self.plan, self.call, self.each, self.clears).statements()
        whole = whole and not start and not end and self.used == self.plan.threads
        return nodes.seq([*start, *self.loop(guarded, totals, whole), *end])

    def operand(self, role: int, guarded: bool) -> dict[str, Any]:
        """Return the fields of a `ProductOperand` for A (0) or B (1)."""
        p, s, placement, instruction = self.plan.problem, self.plan.split, self.call.placement, self.plan.instruction
        view = (p.a, p.b)[role]
        fields: dict[str, Any] = {
            "view": view, "language": p.types[role], "array": placement.arrays.get(view.buffer),
            "layout": placement.layouts.get(view.buffer), "guarded": guarded, "ranges": self.call.ranges,
        }  # fmt: skip
        if role == 0:
            most = s.warps_m * s.atoms_m * instruction.m
            return {**fields, "turned": p.turned_a, "lines": p.m, "tiles": s.atoms_m, "first": self.rows, "most": most}
        most = s.warps_n * s.atoms_n * instruction.n
        return {
            **fields, "turned": not p.turned_b, "lines": p.n, "tiles": s.atoms_n, "first": self.columns, "most": most
        }  # fmt: skip

    def each(self, body: Any) -> Stmt:
        """Return loops over the accumulators; ``body`` gets the register, row and column of C."""
        s = self.plan.split
        loops = (("row_tile", s.atoms_m), ("column_tile", s.atoms_n), *self.tile_loops())

        def nest(found: tuple[Expr, ...]) -> Stmt:
            if len(found) == len(loops):
                return body(*self.element(*found))
            name, extent = loops[len(found)]
            return unrolled(name, extent, lambda value: nest((*found, value)))

        return nest(())
