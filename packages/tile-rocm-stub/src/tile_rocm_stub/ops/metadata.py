"""Index operand of sparse matrix instructions (SMFMAC): positions of A's stored values.

A lane has a nibble for each group of 4 elements along K that it holds: 8 bits for 16-bit elements, 16 bits for 8-bit
ones. With CBSZ = 0, ABID names the part of the 32-bit register that an instruction looks at (CDNA3 ISA, "Sparse Matrix
Instructions"). The indices of a nibble must increase.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ops.gemm import matrix
from tile_core.ops.gemm_sp import increasing, nibble
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.operand import Lane
from tile_core.simt.register_loops import choose, unrolled
from tile_core.simt.variant import SimtCall

#: Elements of K that a nibble describes, and nibbles of a word.
_GROUP, _NIBBLES = 4, 8
#: A nibble that keeps elements 0 and 1, for groups beyond K.
_BEYOND = 4


class Metadata:
    """Reads metadata of the rows of a wavefront, a word for each of its tiles.

    Parameters
    ----------
    call, problem
        The product.
    each
        Elements of K that a lane holds for one instruction.
    tiles, first, most
        Tiles of the wavefront along the rows, its first row, and all rows, padding included.
    lane
        Its variables.
    """

    def __init__(
        self, call: SimtCall, problem: Problem, each: int, tiles: int, first: Any, most: int, lane: Lane
    ) -> None:
        self.view, self.turned = call.args[1], bool(call.attrs[attributes.TRANSPOSE_E])
        self.ranges, self.problem, self.each, self.tiles = call.ranges, problem, each, tiles
        self.first, self.most, self.lane = first, most, lane
        self.registers, new = nodes.alloc([tiles], "uint32", "index", "local")
        self.new = [new]

    def word(self, tile: Any) -> Expr:
        """Return the register for a tile."""
        return nodes.cast(nodes.load(self.registers, [tile]), "int32")

    def load(self, first: Any) -> list[Any]:
        """Return whole-word reads for interleaved steps, from element ``first`` of K on."""
        bits = DTYPES[self.view.dtype].bits
        per = bits // 4

        def one(tile: Any) -> Stmt:
            row = self._row(tile)
            group = self.lane.row * _NIBBLES + _groups(first)
            parts = [self._element(row, tirx.floordiv(group, per) + n, n * bits) for n in range(_NIBBLES // per)]
            return self._store(tile, parts)

        return [unrolled("row_tile", self.tiles, one)]

    def load_step(self, first: int) -> list[Any]:
        """Return the reads for one instruction, in the lowest bits; legal beyond K, too."""
        count, last = self.each // _GROUP, self.problem.k // _GROUP

        def one(tile: Any) -> Stmt:
            row = self._row(tile)
            parts = []
            for n in range(count):
                group = self.lane.row * count + (first // _GROUP + n)
                limits = [group < last] if first + _GROUP * count * 4 > self.problem.k else []
                at = matrix(self.view, self.turned, row, tirx.floordiv(group, DTYPES[self.view.dtype].bits // 4))
                limits += contiguity.inside(self.view, at, self.ranges)
                code = choose(limits, nibble(self.view, self.turned, row, group), nodes.int_const(_BEYOND))
                parts.append(_shifted(nodes.cast(code, "uint32"), 4 * n))
            return self._store(tile, parts)

        return [unrolled("row_tile", self.tiles, one)]

    def _element(self, row: Any, column: Any, shift: int) -> Any:
        """Return an element of metadata at its place in a word."""
        bits = DTYPES[self.view.dtype].bits
        at = matrix(self.view, self.turned, row, column)
        value = nodes.cast(nodes.cast(nodes.load(self.view.buffer, at), f"uint{bits}"), "uint32")
        beyond = nodes.const(0x44444444 & ((1 << bits) - 1), "uint32")
        value = choose(contiguity.inside(self.view, at, self.ranges), value, beyond)
        return _shifted(value, shift)

    def _store(self, tile: Any, parts: list[Any]) -> Stmt:
        word = parts[0]
        for part in parts[1:]:
            word = tirx.bitwise_or(word, part)
        legal = increasing(nodes.load(self.registers, [tile]))
        return nodes.seq([nodes.store(self.registers, x, [tile]) for x in (word, legal)])

    def _row(self, tile: Any) -> Any:
        """Return a lane's row, clamped for padding rows, whose metadata is unused."""
        row = self.first + tile * 16 + self.lane.column
        return row if self.most <= self.problem.m else tirx.min(row, nodes.int_const(self.problem.m - 1))


def _shifted(value: Any, bits: int) -> Any:
    return tirx.shift_left(value, nodes.const(bits, "uint32")) if bits else value


def _groups(first: Any) -> Any:
    return first // _GROUP if isinstance(first, int) else tirx.floordiv(first, _GROUP)
