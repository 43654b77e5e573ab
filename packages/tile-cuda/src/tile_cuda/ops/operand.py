"""Loads of a matrix instruction's operand to registers: ``ldmatrix``, elements, or a fragment."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import address, execute, move
from tile_core.ops.copy import convert
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.products.operand import Lane, ProductOperand
from tile_core.simt.register_loops import choose, unrolled
from tile_cuda.ops.atoms import INPUTS, Family


@dataclass(frozen=True, kw_only=True)
class MmaOperand(ProductOperand):
    """A or B of a product, as a warp reads it.

    K of a sparse A counts stored elements.

    Attributes
    ----------
    family
        The instruction.
    halves
        Groups of 8 lines of an instruction's tile.
    """

    family: Family
    halves: int

    def taken(self, value: Expr) -> Expr:
        """Return an element as bits of a word, see `as_bits`."""
        return as_bits(value, self.dtype)

    @property
    def blocks(self) -> int:
        """Blocks along K, the last one possibly not full."""
        return -(-self.depth // self.family.block)

    @property
    def k_major(self) -> bool:
        """Whether elements adjacent along K are adjacent in the tile's last dimension."""
        return not self.turned

    @property
    def way(self) -> str:
        """How it is read: ``"fragment"``, ``"ldmatrix"``, ``"ldmatrix.trans"`` or ``"elements"``."""
        if self.array is not None:
            return "fragment"
        if self.guarded or self.language != self.dtype or self.family.bits == 64:
            return "elements"
        last = self.view.matrix_dims()[1]
        if self.k_major:
            return (
                "ldmatrix"
                if contiguity.has_runs(self.layout, self.view, last, self.family.block, self.ranges)
                else "elements"
            )
        whole = self.family.bits == 16 and contiguity.has_runs(self.layout, self.view, last, 8, self.ranges)
        return "ldmatrix.trans" if whole else "elements"


#: Blocks along K that an instruction takes, counted from the first one: 0, and others in increasing order.
Blocks = tuple[int, ...]


def words(blocks: int, operand: MmaOperand) -> int:
    """Return the registers of one instruction's tile."""
    return blocks * operand.halves


class MmaLoader:
    """Makes the statements that read an operand.

    The registers of a step are ordered by tile, block, half, so that the operands of an instruction are adjacent.

    Parameters
    ----------
    operand
        What is read.
    lane
        The lane: of the 8 rows of a block it has row ``number / 4``, and of the four words there word ``number % 4``.
    name
        For the names of variables.
    """

    def __init__(self, operand: MmaOperand, lane: Lane, name: str) -> None:
        self.operand, self.lane, self.name = operand, lane, name
        self.way = operand.way
        self.registers: Any = None
        self.bound: dict[tuple[tuple[int, ...], int], tuple[Var, Var]] = {}
        self.binds: list[Stmt] = []

    def alloc(self, count: int) -> Stmt:
        """Return the allocation of the array (of ``family.word``) that is filled."""
        self.registers, new = nodes.alloc([count], self.operand.family.word, f"{self.name}_words", "local")
        return new

    def prepared(self) -> list[Stmt]:
        """Return the step-invariant bindings of all reads: the first addresses of matrices."""
        return self.binds

    def load(self, start: int, blocks: Blocks, slot: Expr, first: Expr = 0, tiles: int | None = None) -> list[Stmt]:
        """Return the reads of blocks along K, from block ``start``, to registers from ``slot``.

        Blocks beyond K are zero, and so are the elements beyond K of the last block. Where ``start`` is an expression
        all blocks must be whole. ``tiles`` instruction tiles from the ``first`` on are read, all by default.
        """
        o = self.operand
        tiles = o.tiles if tiles is None else tiles
        whole = not isinstance(start, int) or start + blocks[-1] < o.depth // o.family.block
        if self.way.startswith("ldmatrix") and whole:
            return self._matrices(start, blocks, slot, first, tiles)

        def unit(u: Var) -> Stmt:
            to = u * words(len(blocks), o) + slot
            each = [(b, half) for b in blocks for half in range(o.halves)]
            return nodes.seq([self._word(u + first, start + b, half, to + n) for n, (b, half) in enumerate(each)])

        return [unrolled(f"{self.name}_tile", tiles, unit)]

    # By ldmatrix

    def _groups(self, blocks: int, tiles: int) -> list[tuple[int, int, int]]:
        """Return (first tile, tiles, tiles per instruction): up to four matrices at a time."""
        each = words(blocks, self.operand)
        per = max(1, 4 // each)
        found, start = [], 0
        while per:
            count = (tiles - start) // per
            if count:
                found.append((start, count, per))
                start += count * per
            per //= 2
        return found

    def _corner(self, blocks: Blocks, per: int) -> tuple[Var, Var]:
        """Return line and K of a lane's matrix address, for a group's first tile."""
        if (blocks, per) in self.bound:
            return self.bound[blocks, per]
        o, lane = self.operand, self.lane.number
        count = per * words(len(blocks), o)
        row = tirx.floormod(lane, 8)
        q: Expr = {4: tirx.floordiv(lane, 8), 2: tirx.floormod(tirx.floordiv(lane, 8), 2), 1: 0}[count]
        each = words(len(blocks), o)
        within, tile = (q, 0) if per == 1 else ((0, q) if each == 1 else (_mod2(q), _half(q)))
        if o.halves == 1:
            half, block = 0, within
        elif len(blocks) == 1:
            half, block = within, 0
        else:
            half, block = _mod2(within), _half(within)
        block = _chosen(blocks, block)
        line = o.first + (tile * o.halves + half) * 8
        if o.k_major:
            line, depth = line + row, block * o.family.block
        else:
            depth = block * 8 + row
        names = [nodes.fresh(f"{self.name}_line"), nodes.fresh(f"{self.name}_k")]
        self.bound[blocks, per] = (names[0], names[1])
        self.binds += [tirx.Bind(v, _expr(e)) for v, e in zip(names, (line, depth), strict=True)]
        return self.bound[blocks, per]

    def _matrices(self, start: int, blocks: Blocks, slot: Expr, begin: Expr, tiles: int) -> list[Stmt]:
        o = self.operand
        each = words(len(blocks), o)
        trans = "" if o.k_major else "_trans"
        found = []
        for first, count, per in self._groups(len(blocks), tiles):
            line0, k0 = self._corner(blocks, per)

            def load(u: Var, first: int = first, per: int = per, line0: Var = line0, k0: Var = k0) -> Expr:
                tile = first + u * per
                line = o.clamped(line0 + (tile + begin) * (8 * o.halves), 1 if o.k_major else 8)
                at = o.at(line, k0 + start * o.family.block)
                name = f"ldmatrix_sync_aligned_m8n8_x{each * per}{trans}_shared_b16"
                to = address(self.registers, [slot + tile * each], "w")
                return execute(name, [to, address(o.view.buffer, at)])

            found.append(unrolled(f"{self.name}_tile", count, load))
        return found

    # Element by element

    def _word(self, u: Var, number: int, half: int, to: Expr) -> Stmt:
        """Return the statement that fills the lane's word of one block."""
        o = self.operand
        rest = o.family.block
        if isinstance(number, int):
            rest = o.depth - number * o.family.block
        if rest <= 0:
            return nodes.store(self.registers, nodes.zero(o.family.word), [to])
        native = o.language == o.dtype
        if o.array is not None and native and rest >= o.family.block:
            index = [((u * o.blocks + number) * o.halves + half) * o.family.per_word]
            if o.family.bits == 64:
                return nodes.store(self.registers, nodes.load(o.array, index), [to])
            if o.family.bits < 32:
                return move(self.registers, [to], o.array, index, 4)
        value: Expr = None
        for e in range(o.family.per_word):
            bits = self._bits(u, number, half, e, rest)
            if value is None:
                value = bits
            else:
                value = tirx.bitwise_or(value, tirx.shift_left(bits, nodes.const(e * o.family.bits, "uint32")))
        return nodes.store(self.registers, value, [to])

    def _bits(self, u: Var, number: int, half: int, e: int, rest: int) -> Expr:
        """Return one element as the bits of a word, zero beyond K."""
        o = self.operand
        within = self.lane.column * o.family.per_word + e if o.family.per_word > 1 else self.lane.column
        limits = [within < rest] if rest < o.family.block else []
        if o.array is not None:
            index = ((u * o.blocks + number) * o.halves + half) * o.family.per_word + e
            return choose(limits, o.taken(nodes.load(o.array, [index])))
        line = o.clamped(o.first + (u * o.halves + half) * 8 + self.lane.row)
        return o.load(line, within + number * o.family.block, limits)


def as_bits(value: Expr, dtype: str) -> Expr:
    """Return an element, converted to what an instruction takes, as ``uint32`` bits (``float64`` stays itself)."""
    value = convert(value, DTYPES[dtype].container)
    if dtype == "float64":
        return value
    bits = INPUTS[dtype][1]
    unsigned = f"uint{bits}"
    code = tirx.reinterpret(unsigned, value) if DTYPES[dtype].is_float else nodes.cast(value, unsigned)
    return nodes.cast(code, "uint32")


def _chosen(blocks: Blocks, number: Expr) -> Expr:
    """Return one of up to four equidistant blocks by its number."""
    if isinstance(number, int) or blocks == tuple(range(len(blocks))):
        return blocks[number] if isinstance(number, int) else number
    return number * blocks[1] if len(blocks) == 2 else _mod2(number) * blocks[1] + _half(number) * blocks[2]


def _mod2(q: Expr) -> Expr:
    return q % 2 if isinstance(q, int) else tirx.floormod(q, 2)


def _half(q: Expr) -> Expr:
    return q // 2 if isinstance(q, int) else tirx.floordiv(q, 2)


def _expr(value: Expr) -> Expr:
    return nodes.int_const(value) if isinstance(value, int) else value
