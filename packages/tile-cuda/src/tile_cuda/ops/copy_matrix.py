"""``cuda.copy.stmatrix``: accumulators to 16-bit elements in shared memory, four matrices at a time.

A lane holds two neighbours of a row of each matrix, 4 bytes that threads would store one by one. By ``stmatrix`` the
warp stores rows of 16 bytes: lane ``8 m + i`` has the address of row ``i`` of matrix ``m``. In tiles with chunks of 16
bytes are swizzled, the eight rows of a matrix lie in different banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.layout import LayoutMap, make_swizzled_layout
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.register_loops import loop_role
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import MATRICES
from tile_cuda.ops.boxes import row_lengths
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.context import Context

_SIDE, _PAIR = 8, 2
"""Rows and columns of a matrix, and the columns of it that a lane has."""


class MatrixCopy(SimtVariant):
    """A copy of a fragment to a 16-bit tile with rows of 16-byte chunks."""

    name = "cuda.copy.stmatrix"
    op = "copy"
    option = "stmatrix"
    priority = 96

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what `tile_cuda.epilogue.matrix_stores` has marked, of two dimensions."""
        if MATRICES not in call.attrs:
            return Reject("not a copy from accumulators to 16-bit elements")
        src, dst = call.args[:2]
        if (src.scope, dst.scope) != ("local.fragment", "shared"):
            return Reject("its operands are not in registers and in shared memory")
        if len(src.extents) != 2 or tuple(dst.extents) != tuple(src.extents) or call.attrs.get(attributes.ROUND):
            return Reject("its operands are not matrices of one shape, or the call has a rounding mode")
        if tuple(src.extents) != tuple(nodes.shape_of(src.buffer)) or any(nodes.as_int(m) != 0 for m in src.mins):
            return Reject(f"it takes a part of {src.name}")
        if call.block.count % WARP or call.divergent:
            return Reject("not all lanes of each warp execute it")
        return Accept("each warp stores four matrices of 8 x 8 at a time")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Request rows with chunks in different banks, where the tile has no layout yet."""
        tile: View = call.args[1]
        shape = tuple(nodes.shape_of(tile.buffer))
        if tile.buffer in call.placement.layouts or not all(isinstance(n, int) for n in shape):
            return {}
        made = swizzled_rows(shape, DTYPES[tile.dtype].bits, row_lengths(call, tile))
        return {} if made is None else {1: made}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return loops over the matrices of a thread, by fours, twos and ones."""
        src, dst = call.args[:2]
        layout = call.placement.fragments.get(src.buffer)
        found = None if layout is None else Matrices.of(layout)
        if found is None or layout is None:
            raise Withdrawn("the accumulator does not have the layout of the matrix units")
        if not contiguity.has_runs(
            call.placement.layouts.get(dst.buffer), dst, dst.matrix_dims()[1], _SIDE, call.ranges
        ):
            raise Withdrawn(f"rows of {dst.name} have no chunks of 16 bytes")
        if contiguity.conditions(dst, call.ranges):
            raise Withdrawn(f"{dst.name} may lie outside of its buffer in part")
        body = _Stores(call, found).statement()
        threads = layout.sizes["thread"]
        if threads < call.block.count:
            body = tirx.IfThenElse(call.block.thread < threads, body, None, call.span)
        return calls.step(body, call.span)


@dataclass(frozen=True)
class Matrices:
    """The matrices of 8 x 8 in a fragment: what their number is made of.

    Attributes
    ----------
    threads, registers
        The digits of a matrix's position for the warp and the register that hold it: dimension, weight, digit.
    inner
        The digit of registers for matrices of one store, last of ``registers``.
    """

    threads: Sequence[tuple[int, int, Digit]]
    registers: Sequence[tuple[int, int, Digit]]

    @classmethod
    def of(cls, layout: FragmentLayout) -> Matrices | None:
        """Return the matrices of an accumulator layout, or ``None`` for another layout."""
        if len(layout.dims) != 2 or layout.padded != layout.shape or layout.replica:
            return None
        rows, columns = (tuple(d for d in digits if d.extent > 1) for digits in layout.dims)
        ends = [(d.extent, d.stride, d.axis) for d in (*rows[-1:], *columns[-2:])]
        if ends != [(_SIDE, 4, "thread"), (4, 1, "thread"), (_PAIR, 1, "register")]:
            return None
        weighed = [*_weighed(0, rows[:-1], _SIDE), *_weighed(1, columns[:-2], _SIDE)]
        warps = [x for x in weighed if x[2].axis == "thread"]
        held = [x for x in weighed if x[2].axis == "register"]
        if any(d.stride % WARP for _, _, d in warps):
            return None
        held.sort(key=lambda x: (x[0] == 1, -x[1]))  # neighbours of a row last
        return cls(warps, held)


class _Stores:
    """Makes the statements of a copy."""

    def __init__(self, call: SimtCall, matrices: Matrices) -> None:
        self.call, self.matrices = call, matrices
        self.source = call.placement.arrays[call.args[0].buffer]
        self.halves, self.new = nodes.alloc([4 * _PAIR], call.args[1].dtype, "matrix_halves", "local")
        self.words, self.also = nodes.alloc([4], "uint32", "matrix_words", "local")
        self.thread = nodes.int_const(0) + call.block.thread

    def statement(self) -> Stmt:
        """Return the allocations and the loops."""
        lane = tirx.floormod(self.thread, WARP)
        position: list[Expr] = [tirx.floormod(lane, _SIDE), nodes.int_const(0)]
        for dim, weight, d in self.matrices.threads:
            position[dim] = position[dim] + tirx.floormod(tirx.floordiv(self.thread, d.stride), d.extent) * weight
        *outer, inner = self.matrices.registers or [(1, 0, Digit(1, 0, "register"))]
        found, at = [self.new, self.also], 0
        for per in (4, 2, 1):
            count = (inner[2].extent - at) // per
            if count:
                found.append(self.several(outer, inner, position, (at, per, count)))
                at += count * per
        return nodes.seq(found)

    def several(
        self, outer: Sequence[tuple[int, int, Digit]], inner: tuple[int, int, Digit], position: Sequence[Expr],
        part: tuple[int, int, int],
    ) -> Stmt:  # fmt: skip
        """Return the loops that store ``per`` matrices at a time, from number ``at`` on."""
        at, per, count = part
        loops: list[tuple[Var, int]] = []
        there, register = list(position), nodes.int_const(0)
        for dim, weight, d in outer:
            var = nodes.fresh("r")
            loops.append((var, d.extent))
            there[dim], register = there[dim] + var * weight, register + var * d.stride
        group = nodes.fresh("group")
        loops.append((group, count))
        dim, weight, d = inner
        first = group * per + at
        mine = tirx.floormod(tirx.floordiv(self.thread, _SIDE), per)
        there[dim] = there[dim] + (first + mine) * weight
        body = nodes.seq([*self.packed(register + first * d.stride, d.stride, per), self.stored(there, per)])
        for var, extent in reversed(loops):
            body = nodes.for_loop(var, extent, body, loop_role(extent))
        return body

    def packed(self, first: Expr, stride: int, per: int) -> Iterator[Stmt]:
        """Yield the statements that make a word of each matrix, from a register on."""
        kind = self.call.args[1].dtype
        for m in range(per):
            for pair in range(_PAIR):
                value = convert(nodes.load(self.source, [first + (m * stride + pair)]), kind)
                yield nodes.store(self.halves, value, [nodes.int_const(m * _PAIR + pair)])
            yield calls.move(self.words, [m], self.halves, [m * _PAIR], 4)

    def stored(self, position: Sequence[Expr], per: int) -> Stmt:
        """Return the instruction."""
        tile: View = self.call.args[1]
        to = calls.address(tile.buffer, tile.at(list(position)), "w")
        name = f"stmatrix_sync_aligned_m8n8_x{per}_shared_b16"
        return calls.execute(name, [to, calls.address(self.words, [0])], self.call.span)


def _weighed(dim: int, digits: Sequence[Digit], least: int) -> Iterator[tuple[int, int, Digit]]:
    """Yield the digits of a dimension, each with what a step of it is worth."""
    for i, d in enumerate(digits):
        yield dim, least * prod(x.extent for x in digits[i + 1 :]), d


def swizzled_rows(shape: tuple[int, ...], bits: int, lengths: Sequence[int]) -> LayoutMap | None:
    """Return a swizzled layout without bank conflicts along chunk columns and rows, or ``None``.

    Chunks are permuted over one of the given lengths of rows, see ``boxes.row_lengths``.
    """
    row = shape[-1] * bits // 8
    span = next((n for n in lengths if n and row % n == 0), 0)
    if len(shape) != 2 or not span or shape[0] % 8:
        return None
    return make_swizzled_layout(shape, bits, span)
