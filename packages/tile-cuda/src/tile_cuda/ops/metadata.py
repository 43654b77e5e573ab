"""The metadata operand of sparse matrix instructions: rows and parts of K of each lane.

For elements of 16 and 32 bits, a block of A (16 bytes of kept values) has 16 bits of metadata. Lane ``4 g + t`` holds
those of rows ``g`` (low half) and ``g + 8`` (high half) for block ``t`` of four, so one register serves all
instructions over four blocks: their selectors name the lanes. For elements of 8 bits a block has 32 bits, and lane
``4 g + t`` holds row ``g + 8 (t % 2)`` of block ``t / 2`` of two.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import address, execute, move
from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, row_major
from tile_core.ops.base import View
from tile_core.ops.gemm import matrix
from tile_core.ops.gemm_sp import EMPTY, increasing
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.products.operand import Lane
from tile_core.simt.register_loops import choose, unrolled
from tile_cuda.ops.plan import KStep, MmaPlan
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.analysis.analyzer import Analyzer


class MmaMetadata:
    """Reads metadata to registers, ahead of the steps that need it.

    Prefetched words are stored as they are, and converted just before the first instructions that use them: a warp
    issues in order, so arithmetic on a word that has not arrived yet would stall the instructions behind it.

    Rows along K are read by transposing ``ldmatrix``: a row of a matrix is 8 rows of A beside one element, and lane
    ``4 g + t`` gets element ``g`` of the matrix rows ``2 t`` and ``2 t + 1``, the halves of its register.

    Rows along A are read by plain ``ldmatrix``, where two groups of blocks (16 bytes) lie together: lane ``4 g + t``
    gets the elements ``2 t`` and ``2 t + 1`` of row ``g``. So the groups are not of neighbouring blocks of K, but of
    the even ones and the odd ones, and the steps use the same blocks of A and B.

    Parameters
    ----------
    plan
        The product.
    view
        The tile of metadata, row-major elements of 8, 16 or 32 bits at the places that its buffer's layout gives.
    turned
        Whether its rows are along K.
    lane
        Its variables: ``g`` is the row, ``t`` the column.
    first
        The warp's first row.
    ranges
        An analyzer with the bounds of the variables of the tile's corner.
    layout
        Of the buffer; row-major if there is none.
    """

    def __init__(
        self,
        plan: MmaPlan | WarpgroupPlan,
        view: View,
        turned: bool,
        lane: Lane,
        first: Var,
        ranges: Analyzer,
        layout: LayoutMap | None,
    ) -> None:
        self.ranges, self.layout = ranges, layout
        self.plan, self.view, self.turned, self.lane, self.first = plan, view, turned, lane, first
        rows, columns = view.matrix_dims()
        self.columns = view.extents[rows if turned else columns]
        self.rows = plan.split.atoms_m
        self.wide = plan.family.bits == 8
        #: Blocks that one register describes, and their bits.
        self.group, self.bits = (2, 32) if self.wide else (4, 16)
        self.width = DTYPES[view.dtype].bits
        #: Elements of metadata of a group, in a row.
        self.elements = self.group * self.bits // self.width
        self.prefetched: Any = None
        self.registers: Any = None
        self.loaded = -1
        self.new: list[Stmt] = []
        self.binds: list[Stmt] = []
        #: Row and column of the row of a matrix whose address the lane gives, by matrices at a time.
        self.starts: dict[int, tuple[Any, Any]] = {}

    def begin(self) -> None:
        """Start a product, with nothing read yet."""
        self.loaded, self.starts, self.binds = -1, {}, []
        self.prefetched, new = nodes.alloc([self.rows * (2 if self._pairs else 1)], "uint32", "metadata_ahead", "local")
        self.registers, also = nodes.alloc([self.rows], "uint32", "metadata", "local")
        self.new = [new, also]

    def prepared(self) -> list[Stmt]:
        """Return the allocations of prefetched and converted words, and the matrices' first addresses."""
        return [*self.new, *self.binds]

    def steps(self, at: int, blocks: int) -> list[KStep]:
        """Return the steps from block ``at`` on over even and odd blocks, or none."""
        if not self._pairs or at + 2 * self.group > blocks:
            return []
        return [KStep(at + odd + 4 * half, 2, 2) for odd in (0, 1) for half in (0, 1)]

    def load(self, step: KStep) -> list[Stmt]:
        """Return the prefetch of a step's metadata, unless registers have it already."""
        here = step.first // (self.group * step.apart)
        if here == self.loaded:
            return []
        self.loaded = here
        if step.apart == 2:
            return self._matrices(here * 2 * self.elements, False)
        if self._in_matrices(True) and (here + 1) * self.elements <= self.columns:
            return self._matrices(here * self.elements, True)

        def one(i: Expr) -> Stmt:
            whole = self._whole_register(i, here)
            return nodes.store(self.prefetched, self.register(i, here), [i]) if whole is None else whole

        return [unrolled("row_tile", self.rows, one)]

    def ready(self, step: KStep) -> list[Stmt]:
        """Return the statements that stand between the reads for a step and later reads."""
        if self._selector(step):
            return []

        def one(i: Expr) -> Stmt:
            if step.apart == 1:
                return nodes.store(self.registers, increasing(nodes.load(self.prefetched, [i])), [i])
            low, high = (nodes.load(self.prefetched, [i * 2 + half]) for half in (0, 1))
            halves = nodes.store(self.registers, _halves(low, high, step.first % 2), [i])
            return nodes.seq([halves, nodes.store(self.registers, increasing(nodes.load(self.registers, [i])), [i])])

        return [unrolled("row_tile", self.rows, one)]

    def word(self, i: Expr, step: KStep) -> tuple[Expr, int]:
        """Return the register for tile row ``i`` of a step, and the selector."""
        return nodes.load(self.registers, [i]), 0 if self.wide else self._selector(step)

    def _selector(self, step: KStep) -> int:
        """Return which of the instructions that share registers a step is."""
        return int(step.first % (self.group * step.apart) // (step.blocks * step.apart))

    def _clamped(self, row: Var, run: int = 1) -> Expr:
        """Clamp padding rows to the tile: their metadata is not used."""
        s, m = self.plan.split, self.plan.problem.m
        return tirx.min(row, nodes.int_const(m - run)) if s.warps_m * s.atoms_m * 16 > m else row

    # By ldmatrix

    @property
    def _pairs(self) -> bool:
        """Whether two groups of blocks are read together, for the even and the odd blocks."""
        return not self.wide and self._in_matrices(False)

    def _in_matrices(self, turned: bool) -> bool:
        """Whether ``ldmatrix`` can read the tile: plain order, and inside of its buffer."""
        view = self.view
        if view.scope != "shared" or self.turned != turned or self.width != 16:
            return False
        if self.plan.problem.m % (8 if turned else 1):
            return False
        runs_of_8 = contiguity.has_runs(self.layout, view, view.matrix_dims()[1], 8, self.ranges)
        return runs_of_8 and not contiguity.conditions(view, self.ranges)

    def _matrices(self, column: int, turned: bool) -> list[Stmt]:
        """Return the reads from a metadata column on, up to four matrices at a time."""
        found, at = [], 0
        words = self.rows * (1 if turned else 2)
        for per in (4, 2, 1):
            count = (words - at) // per
            if not count:
                continue
            row0, column0 = self._matrix_start(per, turned)

            def load(u: Var, at: int = at, per: int = per, row0: Var = row0, column0: Expr = column0) -> Expr:
                word = at + u * per
                row = self._clamped(row0 + word * (16 if turned else 8), 8 if turned else 1)
                source = address(self.view.buffer, matrix(self.view, turned, row, column0 + column))
                name = f"ldmatrix_sync_aligned_m8n8_x{per}{'_trans' if turned else ''}_shared_b16"
                return execute(name, [address(self.prefetched, [word], "w"), source])

            found.append(unrolled("row_tile", count, load))
            at += count * per
        return found

    def _matrix_start(self, per: int, turned: bool) -> tuple[Var, Expr]:
        """Bind row and column of a lane's matrix address, for the first matrices."""
        if per in self.starts:
            return self.starts[per]
        lane, column = self.lane.number, nodes.int_const(0)
        low, middle, high = (tirx.floormod(tirx.floordiv(lane, 1 << bit), 2) for bit in range(3))
        number = {4: tirx.floordiv(lane, 8), 2: tirx.floormod(tirx.floordiv(lane, 8), 2), 1: nodes.int_const(0)}[per]
        row = nodes.fresh("metadata_row")
        if turned:
            half, k = (middle, high * 2 + low) if self.wide else (low, high * 2 + middle)
            column = nodes.fresh("metadata_k")
            self.binds += [tirx.Bind(row, self.first + (number * 16 + half * 8)), tirx.Bind(column, k)]
        else:
            self.binds.append(tirx.Bind(row, self.first + (number * 8 + tirx.floormod(lane, 8))))
        self.starts[per] = row, column
        return self.starts[per]

    # Element by element

    def _whole_register(self, i: Expr, group: int) -> Stmt | None:
        """Return the read of a register in one access; ``None`` unless it is contiguous."""
        view, count = self.view, 32 // self.width
        if view.scope != "shared" or not self.wide or self.turned or (group + 1) * self.elements > self.columns:
            return None
        if not contiguity.has_runs(self.layout, view, view.matrix_dims()[1], count, self.ranges):
            return None
        if contiguity.conditions(view, self.ranges):
            return None
        row = self._clamped(self.first + i * 16 + self.lane.row + tirx.floormod(self.lane.column, 2) * 8)
        column = tirx.floordiv(self.lane.column, 2) * count + group * self.elements
        return move(self.prefetched, [i], view.buffer, matrix(view, False, row, column), 4)

    def register(self, i: Expr, group: int) -> Expr:
        """Return a lane's register for 16 rows and a group of blocks, as ``uint32``."""
        g, t = self.lane.row, self.lane.column
        row = self.first + i * 16 + g
        if self.wide:
            row = row + tirx.floormod(t, 2) * 8
            return self._piece(row, group * 2, tirx.floordiv(t, 2))
        low = self._piece(row, group * 4, t)
        high = self._piece(row + 8, group * 4, t)
        return tirx.bitwise_or(low, tirx.shift_left(high, nodes.const(16, "uint32")))

    def _piece(self, row: Var, first: int, offset: Expr) -> Expr:
        """Return the metadata of a row and block ``first + offset`` as ``uint32``."""
        last = first + self.group - 1
        if self.width > self.bits:  # two blocks share an element
            word = self._element(row, tirx.floordiv(offset, 2) + first // 2, last // 2)
            half = tirx.shift_right(word, nodes.cast(tirx.floormod(offset, 2) * 16, "uint32"))
            return tirx.bitwise_and(half, nodes.const(0xFFFF, "uint32"))
        count = self.bits // self.width
        value: Expr = None
        for i in range(count):
            part = self._element(row, (offset + first) * count + i, last * count + i)
            if value is None:
                value = part
            else:
                value = tirx.bitwise_or(value, tirx.shift_left(part, nodes.const(i * self.width, "uint32")))
        return value

    def _element(self, row: Var, column: Expr, last: int) -> Expr:
        """Return an element of metadata as ``uint32``, with columns clamped to ``last``."""
        row = self._clamped(row)
        at = matrix(self.view, self.turned, row, column)
        limits = [column < self.columns] if last >= self.columns else []
        value = nodes.cast(nodes.cast(nodes.load(self.view.buffer, at), f"uint{self.width}"), "uint32")
        beyond = nodes.const(EMPTY & ((1 << self.width) - 1), "uint32")
        return choose([*limits, *contiguity.inside(self.view, at, self.ranges)], value, beyond)


@cache
def swizzled(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a conflict-free layout of metadata with rows along K, or ``None``.

    A matrix of metadata has two vectors of 16 bytes of four rows, without a common bank. ``None`` if rows are too short
    or their length is not a power of two.
    """
    vector, row = 128 // bits, shape[-1]
    chunks = row // vector
    if row & (row - 1) or chunks < 4:
        return None
    base = vector.bit_length()  # the second bit of a vector's number
    digits, low = (2, 0) if chunks >= 8 else (1, 1)  # of the row's number, from bit ``low`` on
    swizzle = Swizzle(digits, base, row.bit_length() - 1 + low - base)
    return Layout(shape, DigitLayout(shape, row_major(shape).digits, swizzles=(swizzle,)), note="swizzled rows")


def _halves(low: Expr, high: Expr, which: int) -> Expr:
    """Return the lower (0) or upper (1) halves of two words as one."""
    if which:
        return tirx.bitwise_or(
            tirx.shift_right(low, nodes.const(16, "uint32")),
            tirx.bitwise_and(high, nodes.const(0xFFFF0000, "uint32")),
        )
    return tirx.bitwise_or(
        tirx.bitwise_and(low, nodes.const(0xFFFF, "uint32")),
        tirx.shift_left(high, nodes.const(16, "uint32")),
    )
