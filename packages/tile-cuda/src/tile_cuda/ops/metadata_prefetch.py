"""Metadata prefetch by threads from global memory: natural order, 512 elements of K.

Rows of a tile of metadata are short: 64 elements of K have 8 bytes, fewer than a bulk copy moves, and copies of each
thread need barriers of the block. So the four lanes of a row load 64 bytes of it at a time, 16 bytes each of one or two
rows, and exchange words until each has those that it gives to instructions. A load reads 8 lines of 128 bytes, as one
of 8 bytes would: that is what the first cache counts, and shared memory, which bounds sparse products, is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute, move
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Reject
from tile_core.ops.gemm import matrix
from tile_core.ops.gemm_sp import increasing
from tile_core.simt.memory import contiguity
from tile_core.simt.memory.alignment import Aligned, factor, strides_of
from tile_core.simt.pipelining.operands import Operand
from tile_core.simt.variant import RegisterPrefetch, SimtCall
from tile_cuda.ops.warpgroup_plan import ROWS, WARPGROUP, WarpgroupPlan
from tile_cuda.ptx.metadata import TRANSPOSE_METADATA

if TYPE_CHECKING:
    from tile_core.ops.base import View

ALONG = 512
"""Elements of K that one load is for."""
_EACH = 64
"""Elements of K that a register is for."""
WORDS = ALONG // _EACH
"""Registers of a thread that a load fills for each 64 rows."""
_CHUNK = 16
"""Bytes of a lane's load."""
_MOST_REGISTERS = 232
"""Registers of a thread: the limit of two warpgroups beside a producer warp."""
_OTHERS = 48


def prefetches_metadata(call: SimtCall, operand: Operand, aligned: Aligned) -> bool:
    """Whether threads load the metadata of a product of warpgroups themselves.

    Parameters
    ----------
    call
        The product, which can run on instructions of warpgroups.
    operand
        Its metadata.
    aligned
        Guarantees of the launch about addresses and symbols.
    """
    plan = WarpgroupPlan.for_call(call)
    if isinstance(plan, Reject) or plan.family.bits not in (8, 16) or bool(call.attrs[attributes.TRANSPOSE_E]):
        return False
    split, along = plan.split, plan.problem.k
    held = 4 * split.atoms_m * split.atoms_n + 2 * WORDS * split.atoms_m + _OTHERS
    if (
        along % _EACH
        or ALONG % along
        or along == ALONG
        or split.warps * WARPGROUP != plan.threads
        or held > _MOST_REGISTERS
    ):
        return False
    return _in_chunks(operand.source, operand.loop, aligned)


def _in_chunks(source: View, loop: Stmt, aligned: Aligned) -> bool:
    """Whether a loop reads consecutive parts of rows with aligned chunks of 16 bytes."""
    size = DTYPES[source.dtype].bits // 8
    *steps, last = strides_of(source.buffer)
    if aligned.addresses.get(source.buffer, 1) % _CHUNK or nodes.as_int(last) != 1:
        return False
    multiples = [*steps, nodes.shape_of(source.buffer)[-1]]
    if any(factor(nodes.int_const(0) + x, aligned.divisors) * size % _CHUNK for x in multiples):
        return False
    *outer, column = (nodes.int_const(0) + m for m in source.mins)
    inside = {s.var for s in collect(loop.body, tirx.Bind)}
    used = [set(collect(e, tirx.Var)) for e in (*outer, column)]
    if inside & set().union(*used) or any(loop.loop_var in u for u in used[:-1]):
        return False
    ranges, first = Analyzer(), nodes.as_int(loop.min)
    ranges.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))
    form = linear_form(ranges.simplify(column), [loop.loop_var])
    if form is None or form.steps != (source.extents[-1],) or not isinstance(first, int):
        return False
    begins = first * int(source.extents[-1]) * size
    return factor(form.rest, aligned.divisors) * size % _CHUNK == 0 and begins % _CHUNK == 0


class MetadataPrefetch:
    """Loads metadata and converts it to registers.

    Parameters
    ----------
    plan
        The product.
    call
        Its call, whose metadata is a part of a tensor.
    """

    def __init__(self, plan: WarpgroupPlan, call: SimtCall) -> None:
        self.plan, self.call, self.view = plan, call, call.args[1]
        self.size = DTYPES[self.view.dtype].bits // 8
        self.rows = plan.split.atoms_m
        self.iteration = nodes.fresh("turn")
        #: Words of an iteration for 64 rows, and iterations that a load is for.
        self.each = plan.problem.k // _EACH
        self.iterations = WORDS // self.each
        count = WORDS * self.rows
        self.held, _ = nodes.alloc([count], "uint32", "metadata", "local")
        self.loaded, _ = nodes.alloc([count], "uint32", "metadata_loaded", "local")
        self.turned, _ = nodes.alloc([count], "uint32", "metadata_turned", "local")
        number = call.block.number
        self.group, self.lane = tirx.floordiv(number, WARPGROUP), tirx.floormod(number, 32)
        self.warp = tirx.floordiv(tirx.floormod(number, WARPGROUP), 32)

    def register_index(self, group: int, i: int, iteration: Expr) -> Expr:
        """Return the register of a word: by iteration, 64 of its K, and row tile."""
        return iteration * nodes.int_const(self.each * self.rows) + nodes.int_const(group * self.rows + i)

    def registers(self, alone: Stmt, free: bool) -> RegisterPrefetch:
        """Return the prefetch that fills the registers.

        Parameters
        ----------
        alone
            Fills the registers of the first iteration only.
        free
            Whether no product of another iteration may still read them when those of this one are filled.
        """
        last = range((self.iterations - 1) * self.each, WORDS)
        early = range(WORDS if free else last.start)
        fill = nodes.seq([*self._turned(), *(s for word in early for s in self._filled(word))])
        late = nodes.seq([] if free else [s for word in last for s in self._filled(word)])
        arrays = (self.loaded, self.turned)
        return RegisterPrefetch(self.iterations, self.iteration, self._load(), fill, late, alone, arrays)

    def _load(self) -> Stmt:
        """Return the loads of a thread for all row tiles, zero outside the tensor."""
        found: list[Stmt] = []
        wide = self.plan.family.bits == 8
        quad, row = nodes.fresh("quad"), nodes.fresh("metadata_row")
        column, t = nodes.fresh("metadata_column"), tirx.floormod(self.lane, 4)
        first = self.group if self.plan.split.warps_n == 1 else tirx.floordiv(self.group, self.plan.split.warps_n)
        begin = first * (self.rows * ROWS) + self.warp * 16 + tirx.floordiv(self.lane, 4)
        begin = begin + tirx.floormod(quad, 2) * 8 if wide else begin
        bytes_ = tirx.floordiv(quad, 2) * (2 * _CHUNK) if wide else quad * _CHUNK
        found += [tirx.Bind(quad, t), tirx.Bind(row, begin), tirx.Bind(column, tirx.floordiv(bytes_, self.size))]
        for i in range(self.rows):
            for half in range(2):
                down, right = (0, half * _CHUNK // self.size) if wide else (half * 8, 0)
                at = matrix(self.view, False, row + (i * ROWS + down), column + right)
                found.append(self._chunk(at, WORDS * i + 4 * half))
        return nodes.seq(found)

    def _chunk(self, at: list[Expr], to: int) -> Stmt:
        """Return the load of 16 bytes of a row; zero outside the tensor."""
        loaded = move(self.loaded, [nodes.int_const(to)], self.view.buffer, at, _CHUNK, self.call.span)
        kind, end = nodes.dtype_of(at[-1]), nodes.shape_of(self.view.buffer)[-1]
        end = nodes.int_const(end, kind) if isinstance(end, int) else nodes.cast(end, kind)
        conditions = [*contiguity.inside(self.view, at, self.call.ranges), at[-1] < end]
        zero = nodes.seq([nodes.store(self.loaded, nodes.const(0, "uint32"), [to + n]) for n in range(4)])
        return tirx.IfThenElse(tirx.all(*conditions), loaded, zero, self.call.span)

    def _turned(self) -> list[Stmt]:
        """Return the statements by which the lanes of a quad exchange what they have loaded."""
        found: list[Stmt] = []
        name = TRANSPOSE_METADATA[self.plan.family.bits]
        for i in range(self.rows):
            registers = range(WORDS * i, WORDS * (i + 1))
            found += [nodes.store(self.turned, nodes.load(self.loaded, [p]), [p]) for p in registers]
            words = address(self.turned, [nodes.int_const(WORDS * i)], "rw")
            found.append(execute(name, [words, self.lane], self.call.span))
        return found

    def _filled(self, word: int) -> list[Stmt]:
        """Return the statements that fill the registers for 64 of the 512 elements of K."""
        iteration, group = divmod(word, self.each)
        found: list[Stmt] = []
        for i in range(self.rows):
            value = increasing(nodes.load(self.turned, [WORDS * i + word]))
            found.append(nodes.store(self.held, value, [self.register_index(group, i, nodes.int_const(iteration))]))
        return found
