"""The block product of narrow floats with scales for blocks of K.

The kernels of ``T.gemm`` multiply elements as bfloat16, by dot products, or as float32. Both types hold the elements
and their products with a scale of ``float8_e4m3fn`` exactly: one product multiplies all of K. Scales that are powers of
two may leave the range of both types. With these each block of K is a product, whose results are scaled while they are
added to C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Expr, Stmt
from tile_core.cpu.isa import Isa
from tile_core.cpu.packing import bfloat16_code, converted, fill, new_panel, transposed
from tile_core.cpu.tile2d import Tile2D, cast, loop, ramp, sequence, splat, times
from tile_core.cpu.tile_panels import parts_of
from tile_core.numerics.build import bind, bits_of, constants, equal, float_of, magnitude, select
from tile_core.records import dataclass

__all__ = ["ScaledOperand", "ScaledProduct"]

#: Biases of the halves of exponents, for A and B. No product of a half of A's with one of B's leaves float32.
_BIASES = ((63, 64), (64, 63))


@dataclass(frozen=True)
class ScaledOperand:
    """Rows of A, or columns of B, with their scales.

    Attributes
    ----------
    tile
        The rows or columns by K; ``load`` returns an element as float32.
    scales
        The same by blocks of K; ``load`` returns a scale as float32.
    """

    tile: Tile2D
    scales: Tile2D


@dataclass(frozen=True)
class ScaledProduct:
    """The product of two scaled operands.

    Attributes
    ----------
    a, b
        The operands.
    c
        C's matrix of ``m`` x ``n`` elements.
    m, n, k, block
        Sizes, and the elements of K for each scale.
    isa
        The processor.
    kernel, dots
        The kernel of a product, and whether it multiplies bfloat16; float32 otherwise.
    """

    a: ScaledOperand
    b: ScaledOperand
    c: Tile2D
    m: int
    n: int
    k: int
    block: int
    isa: Isa
    kernel: Callable[..., Stmt]
    dots: bool

    def whole(self, clear: Expr) -> Stmt:
        """Return the product for scales of ``float8_e4m3fn``: it is added to C, or to zero."""
        (first, left), (second, right) = (self.scaled(x, lines) for x, lines in ((self.a, self.m), (self.b, self.n)))
        product = self.kernel(left, right.flipped(), self.c, self.m, self.n, self.k, isa=self.isa, clear=clear)
        return sequence(*first, *second, product)

    def scaled(self, operand: ScaledOperand, lines: int) -> tuple[list[Stmt], Tile2D]:
        """Copy elements times the magnitudes of their scales into a panel."""
        dtype = "uint16" if self.dots else "float32"
        allocation, panel = new_panel(operand.tile, lines, self.k, dtype, "elements")

        def part(at: Expr) -> Stmt:
            start = times(at, self.block)
            tile, scales = operand.tile.window(0, start), operand.scales.window(0, at)
            product = replace(tile, load=lambda i, j: tile.read(i, j) * magnitude(scales.read(i, 0)))
            product = bfloat16_code(product) if self.dots else product
            return fill(panel.window(0, start), product, lines, self.block, dtype, self.isa)

        made = [allocation, loop("block", self.k // self.block, part)]
        return made, replace(panel, dtype="bfloat16") if self.dots else panel

    def by_blocks(self, clear: Expr) -> Stmt:
        """Return the same for scales that are powers of two."""
        steps, factors = self.factors()
        allocation, part = new_panel(self.c, self.m, self.n, "float32", "part")
        steps.append(allocation)
        c = total = self.c
        if c.dtype != "float32":
            allocation, total = new_panel(c, self.m, self.n, "float32", "total")
            steps += [allocation, self.each(total, lambda i, j, n: cast(_vector(c, i, j, n), c.dtype, "float32", n))]
        if clear is not False:
            zeros = self.each(total, lambda i, j, n: splat(tirx.FloatImm("float32", 0.0), n))
            steps.append(zeros if clear is True else tirx.IfThenElse(clear, zeros, None))

        def block(at: Expr) -> Stmt:
            start = times(at, self.block)
            left, right = (x.tile.window(0, start) for x in (self.a, self.b))

            def added(i: Expr, j: Expr, n: int) -> Expr:
                value = _vector(part, i, j, n)
                for x, y in factors:
                    value = value * (splat(_vector(x, i, at, 1), n) * _vector(y, at, j, n))
                return _vector(total, i, j, n) + value

            sizes = self.m, self.n, self.block
            product = self.kernel(left, right.flipped(), part, *sizes, isa=self.isa, clear=True)
            return sequence(product, self.each(total, added))

        steps.append(loop("block", self.k // self.block, block))
        if total is not c:
            steps.append(self.each(c, lambda i, j, n: cast(_vector(total, i, j, n), "float32", c.dtype, n)))
        return sequence(*steps)

    def factors(self) -> tuple[list[Stmt], list[tuple[Tile2D, Tile2D]]]:
        """Copy the factors of scales into panels for A and B.

        Each scale has two, both about its root. A number times the products of both pairs of factors leaves float32
        only where the result does.
        """
        steps: list[Stmt] = []
        found, blocks = [], self.k // self.block
        for half in (0, 1):
            left, right = (
                replace(x.scales, load=_half(x.scales, half, biases[half]))
                for x, biases in zip((self.a, self.b), _BIASES, strict=True)
            )
            rows, x = converted(left, self.m, blocks, "float32", self.isa, "a_scales")
            copy = converted if right.transposed else transposed
            columns, y = copy(right.flipped(), blocks, self.n, "float32", self.isa, "b_scales")
            steps += [*rows, *columns]
            found.append((x, y))
        return steps, found

    def each(self, out: Tile2D, value: Callable[[Expr, Expr, int], Expr]) -> Stmt:
        """Return the statement that stores a value for each element of a matrix."""
        lanes = self.isa.lanes(32)
        whole = self.n // lanes

        def vector(i: Expr, j: Expr, n: int) -> Stmt:
            return tirx.BufferStore(out.buffer, value(i, j, n), _positions(out, i, j, n))

        def row(i: Expr) -> Stmt:
            made = [loop("v", whole, lambda v: vector(i, times(v, lanes), lanes))] if whole else []
            return sequence(*made, *(vector(i, at, n) for at, n in parts_of(self.n, lanes)[whole:]))

        return loop("i", self.m, row)


def _positions(tile: Tile2D, i: Expr, j: Expr, lanes: int) -> list[Expr]:
    where = tile.at(i, j)
    return [*where[:-1], ramp(where[-1], lanes)]


def _vector(tile: Tile2D, i: Expr, j: Expr, lanes: int) -> Expr:
    """Return adjacent elements of a row."""
    return tirx.BufferLoad(tile.buffer, _positions(tile, i, j, lanes))


def _half(scales: Tile2D, half: int, bias: int) -> BinaryNode:
    """Return a function to a power of two with half of a scale's exponent."""

    def power(exponent: Expr) -> Expr:
        k = constants("uint32", exponent)
        less = exponent >> k(1)
        bits = ((exponent - less if half else less) + k(127 - bias)) << k(23)
        return float_of(select(equal(exponent, k(255)), k(0x7FC00000), bits))

    return lambda i, j: bind(bits_of(scales.read(i, j)) >> tirx.IntImm("uint32", 23), power, "exponent")
