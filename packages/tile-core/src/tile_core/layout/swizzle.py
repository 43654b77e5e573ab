"""XOR swizzles of a linear index."""

from __future__ import annotations

from tile_core.compat.types import Coordinate
from tile_core.errors.layout import BadSwizzle
from tile_core.records import dataclass


class Ops:
    """Arithmetic on indices by the operators of the operands themselves.

    A subclass overrides operators that do not fit an operand type. Every index is non-negative and every
    divisor is positive.
    """

    def add(self, a: Coordinate, b: Coordinate) -> Coordinate:
        """``a + b``."""
        return a + b

    def mul(self, a: Coordinate, b: int) -> Coordinate:
        """``a * b``."""
        return a * b

    def floordiv(self, a: Coordinate, b: int) -> Coordinate:
        """``a // b``."""
        return a // b

    def mod(self, a: Coordinate, b: int) -> Coordinate:
        """``a % b``."""
        return a % b

    def equal(self, a: Coordinate, b: int) -> Coordinate:
        """``a == b``."""
        return a == b

    def xor(self, a: Coordinate, b: Coordinate) -> Coordinate:
        """``a ^ b``."""
        return a ^ b

    def bitand(self, a: Coordinate, b: int) -> Coordinate:
        """``a & b``."""
        return a & b

    def shift_left(self, a: Coordinate, b: int) -> Coordinate:
        """``a << b``."""
        return a << b

    def shift_right(self, a: Coordinate, b: int) -> Coordinate:
        """``a >> b``."""
        return a >> b


PYTHON_OPS = Ops()


@dataclass(frozen=True)
class Swizzle:
    """XOR ``bits`` bits of an index, ``shift`` above bit ``base``, into bits from ``base``.

    ``index ^ ((index >> shift) & ((2**bits - 1) << base))`` for ``shift > 0``; a negative shift moves bits up. As
    ``|shift| >= bits``, the source bits stay, so a swizzle is its own inverse on the non-negative integers.

    Parameters
    ----------
    bits
        Number of bits that change; 0 is the identity.
    base
        Position of the lowest bit that takes part; ``2**base`` neighbours stay contiguous.
    shift
        Distance from the changed bits to the bits that are mixed in.

    Raises
    ------
    BadSwizzle
        If the parameters do not describe a bijection.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        reason = ""
        if self.bits < 0 or self.base < 0:
            reason = "bits and base must not be negative"
        elif abs(self.shift) < self.bits:
            reason = "the changed bits overlap the bits that are mixed in"
        if reason:
            bits = max(self.bits, 0)
            shift = self.shift if abs(self.shift) >= bits else (bits if self.shift >= 0 else -bits)
            raise BadSwizzle(
                bits=self.bits, base=self.base, shift=self.shift, reason=reason,
                near_bits=bits, near_base=max(self.base, 0), near_shift=shift,
            )  # fmt: skip

    def apply(self, index: Coordinate, ops: Ops = PYTHON_OPS) -> Coordinate:
        """Return the swizzled ``index``, a non-negative integer or an expression of one."""
        if not self.bits:
            return index
        source = ops.bitand(index, self.source_mask)
        if self.shift > 0:
            return ops.xor(index, ops.shift_right(source, self.shift))
        return ops.xor(index, ops.shift_left(source, -self.shift))

    @property
    def source_mask(self) -> int:
        """The bits that are mixed in."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def block(self) -> int:
        """Indices stay inside aligned blocks of this many."""
        return 1 << (self.base + self.bits + max(-self.shift, 0)) if self.bits else 1

    @property
    def period(self) -> int:
        """The pattern repeats after this many indices; storage must start at a multiple of it."""
        return 1 << (self.base + self.bits + abs(self.shift)) if self.bits else 1

    def recast(self, old_bits: int, new_bits: int) -> Swizzle | None:
        """The same swizzle of bytes, for indices that count elements of ``new_bits`` instead of ``old_bits``.

        Returns ``None`` if there is none: a ratio that is not a power of two, or elements wider than the unit that the
        swizzle keeps contiguous.
        """
        move = log2_ratio(old_bits, new_bits)
        if move is None or self.base + move < 0:
            return None if self.bits else self
        return Swizzle(self.bits, self.base + move, self.shift)

    def keeps_window(self, size: int) -> bool:
        """Whether the indices 0 … ``size`` - 1 are permuted, exactly and without enumeration."""
        rest = size % self.block
        if not self.bits or not rest:
            return True
        if self.shift > 0:
            mask = ((size - rest) & self.source_mask) >> self.shift
            return rest % (1 << mask.bit_length()) == 0
        # The changed bits are the high ones: for a fixed low part, the high parts 0 … count - 1 are XORed with the
        # source bits of the low part, and there are two counts: of low parts below and from ``rest % high`` on.
        high = 1 << (self.base - self.shift)
        count, edge = divmod(rest, high)
        for source in range(1, 1 << self.bits):
            group = 1 << source.bit_length()
            smallest = source << self.base
            largest = high - (1 << (self.base + self.bits)) + smallest + (1 << self.base) - 1
            if (smallest < edge and (count + 1) % group) or (largest >= edge and count % group):
                return False
        return True

    def __str__(self) -> str:
        return f"Swizzle({self.bits},{self.base},{self.shift})"


def log2_ratio(numerator: int, denominator: int) -> int | None:
    """The exponent e with ``numerator / denominator == 2**e``, or ``None``."""
    large, small = max(numerator, denominator), min(numerator, denominator)
    if small <= 0 or large % small or (large // small) & (large // small - 1):
        return None
    exponent = (large // small).bit_length() - 1
    return exponent if numerator >= denominator else -exponent
