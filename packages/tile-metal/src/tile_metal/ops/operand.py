"""Loads of matrix-instruction operands into registers: by blocks, elements, or fragments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute
from tile_core.layout import LayoutMap
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.memory.alignment import strides_of
from tile_core.simt.ops.products.operand import Lane, ProductOperand
from tile_core.simt.register_loops import choose, unrolled
from tile_metal.emit import matrices
from tile_metal.ops.atoms import SIMDGROUP, Unit
from tile_metal.target import SIMD


@dataclass(frozen=True, kw_only=True)
class SimdgroupOperand(ProductOperand):
    """A or B of a product, as a simdgroup reads it.

    Attributes
    ----------
    is_a
        Whether it is A: K runs along the columns of an instruction's operand, else along the rows.
    unit
        The instruction.
    metadata
        Of a sparse A (``ops/sparse.py``): which of its elements are stored.
    """

    is_a: bool
    unit: Unit
    metadata: Any = None

    @property
    def step(self) -> int:
        """Lines of an instruction."""
        return self.unit.m if self.is_a else self.unit.n

    @property
    def size(self) -> int:
        """Registers of an instruction."""
        return self.step * self.unit.k // SIMD

    @property
    def way(self) -> str:
        """How it is read: ``"fragment"``, ``"matrix"`` or ``"elements"``."""
        if self.array is not None:
            return "fragment"
        whole = self.lines % 8 == 0 and self.depth % 8 == 0 and self.metadata is None
        if self.guarded or not whole or self.unit != SIMDGROUP or DTYPES[self.language].container != self.dtype:
            return "elements"
        return "elements" if self.pitch is None else "matrix"

    @property
    def transposed(self) -> bool:
        """Whether the instruction takes the transpose, by rows as they are stored."""
        stored = self.array is None and self.metadata is None
        return self.unit != SIMDGROUP and stored and self.turned == self.is_a

    @property
    def pitch(self) -> int | None:
        """Row stride of the stored tile in elements, or ``None`` if it varies over blocks."""
        rows, columns = self.view.matrix_dims()
        if self.view.scope == "shared":
            if not all(contiguity.divides(8, self.view.mins[d], self.ranges) for d in (rows, columns)):
                return None
            shape = tuple(nodes.shape_of(self.view.buffer))
            return shape[columns] if self.layout is None else pitch_of(self.layout, rows, columns)
        strides = strides_of(self.view.buffer)
        return strides[rows] if nodes.as_int(strides[columns]) == 1 else None


class SimdgroupLoader:
    """Makes the statements that read an operand.

    The registers of a step are those of its instructions, one after the other.

    Parameters
    ----------
    operand
        What is read.
    lane
        Its variables: the row and first column of the elements that it holds of a block.
    registers
        The array that is filled; that of a fragment is read in place.
    name
        For the names of variables.

    Attributes
    ----------
    streams
        Whether the registers hold one instruction's elements at a time, see `load_tile`.
    """

    def __init__(self, operand: SimdgroupOperand, lane: Lane, registers: BufferVar, name: str) -> None:
        self.operand, self.lane, self.registers, self.name = operand, lane, registers, name
        self.streams = False
        self.way = operand.way
        #: Whether the instructions read a fragment's own registers.
        whole = operand.depth % operand.unit.k == 0  # beyond K registers hold anything
        self.direct = self.way == "fragment" and whole and DTYPES[operand.language].container == operand.dtype
        self.steps = -(-operand.depth // operand.unit.k)

    def at(self, tile: Expr, step: Expr) -> Expr:
        """Return the address of the registers of an instruction."""
        o = self.operand
        if self.direct:
            return address(o.array, [(tile * self.steps + step) * o.size])
        return address(self.registers, [self._register(tile)])

    def load(self, step: Expr) -> list[Stmt]:
        """Return the statements that read the operands of a step along K, zeros beyond K."""
        if self.direct or self.streams:
            return []
        return [unrolled(f"{self.name}_tile", self.operand.tiles, lambda tile: self._tile(tile, step))]

    def load_tile(self, tile: Expr, step: Expr) -> list[Stmt]:
        """Return the statements that load one instruction's operand, if loaded one at a time."""
        return [self._tile(tile, step)] if self.streams else []

    def _tile(self, tile: Expr, step: Expr) -> Stmt:
        return self._matrix(tile, step) if self.way == "matrix" else self._elements(tile, step)

    def _register(self, tile: Expr) -> Expr:
        """Return the first register of an instruction's operand."""
        return nodes.int_const(0) if self.streams else tile * self.operand.size

    def _matrix(self, tile: Expr, step: Expr) -> Stmt:
        o = self.operand
        at = o.at(o.clamped(o.first + tile * 8, 8), step * 8)
        space = "threadgroup" if o.view.scope == "shared" else "device"
        name = matrices.load_name(o.dtype, space, o.turned == o.is_a)
        pitch = o.pitch if not isinstance(o.pitch, int) else nodes.int_const(o.pitch)
        to = address(self.registers, [self._register(tile)], "w")
        return execute(name, [to, address(o.view.buffer, at), nodes.cast(pitch, "int32")])

    def _elements(self, tile: Expr, step: Expr) -> Stmt:
        """Return the statement that fills the registers of one instruction."""
        o, u = self.operand, self.operand.unit
        height, width = (u.m, u.k) if o.is_a else (u.k, u.n)
        if o.transposed:
            height, width = width, height

        def one(across: int, down: int, e: Expr) -> Stmt:
            """Return the store of element ``e`` of a block."""
            row, column = self.lane.row + down * 8, self.lane.column + across * u.columns + e
            register = across * (height // 8 * u.each) + down * u.each + e
            line, k = (row, column) if o.is_a != o.transposed else (column, row)
            value = self._value(o.first + tile * o.step + line, k, step, tile * o.size, register)
            return nodes.store(self.registers, value, [self._register(tile) + register])

        found = []
        for across in range(width // u.columns):
            for down in range(height // 8):
                found.append(self._neighbours(functools.partial(one, across, down)))
        return nodes.seq(found)

    def _neighbours(self, one: Callable[[Any], Any]) -> Stmt:
        """Return the loop over a lane's elements of a block, with vector access to memory."""
        e, count = nodes.fresh(f"{self.name}_e"), self.operand.unit.each
        marks = {attributes.VECTOR: nodes.int_const(count)} if self.operand.array is None else {}
        return nodes.for_loop(e, count, one(e), "unroll", annotations=marks)

    def _value(self, line: Expr, k: Expr, step: Expr, base: Expr, register: Expr) -> Expr:
        """Return one element as the instruction takes it; zero beyond K."""
        o = self.operand
        rest = o.depth - step * o.unit.k if isinstance(step, int) else o.unit.k
        limits = [k < rest] if rest < o.unit.k else []
        if o.array is not None:
            tile = tirx.floordiv(base, o.size) if not isinstance(base, int) else base // o.size
            held = nodes.load(o.array, [(tile * self.steps + step) * o.size + register])
            return choose(limits, o.taken(held))
        line = o.clamped(line)
        depth = k + step * o.unit.k
        if o.metadata is not None:
            return choose(limits, o.metadata.element(o, line, depth))
        return o.load(line, depth, limits)


@functools.cache
def pitch_of(layout: LayoutMap, rows: int, columns: int) -> int | None:
    """Return the common row stride of all 8 x 8 blocks with contiguous rows.

    Return ``None`` without one.
    """
    shape = layout.shape
    if shape[rows] % 8 or shape[columns] % 8:
        return None
    offsets = np.moveaxis(np.asarray(layout.tables()["memory"]).reshape(shape), (rows, columns), (-2, -1))
    blocks = offsets.reshape(-1, shape[rows] // 8, 8, shape[columns] // 8, 8)
    pitch = int(blocks.reshape(-1)[0:0].size or blocks[0, 0, 1, 0, 0] - blocks[0, 0, 0, 0, 0])
    even = np.arange(8)[:, None, None] * pitch + np.arange(8)
    start = blocks[:, :, :1, :, :1]
    return pitch if pitch > 0 and bool((blocks == start + even).all()) else None
