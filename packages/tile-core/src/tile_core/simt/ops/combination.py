"""Combination of two values in reductions, and of the values of a group's threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.warp import REDUCTIONS
from tile_core.numerics.ordered import from_ordered, ordered
from tile_core.ops.reduce import combiner, neutral
from tile_core.records import dataclass


@dataclass(frozen=True)
class Lanes:
    """How the threads of a block exchange values without memory.

    Attributes
    ----------
    width
        Threads of a group that can shuffle.
    reductions
        What one instruction combines over a whole group, see ``Capabilities.group_reductions``; empty if a group of the
        block has fewer threads.
    """

    width: int
    reductions: frozenset[tuple[str, str]] = frozenset()


class Joining(Protocol):
    """Combination of states, each of one value or of several in separate register arrays."""

    def step(self, totals: Sequence[BufferVar], at: Expr, other: Sequence[Expr]) -> Stmt:
        """Return the statement that combines register ``at`` of each array with another state."""

    def start(self, totals: Sequence[BufferVar], at: Expr) -> Stmt:
        """Return the statement that makes register ``at`` of each array the neutral state."""


@dataclass(frozen=True)
class Combination:
    """The operation by which a reduction combines two values.

    Attributes
    ----------
    kind
        ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"bitand"``, ``"bitor"`` or ``"bitxor"``.
    dtype
        The type in which it accumulates.
    nan_propagate
        Whether a NaN wins.
    """

    kind: str
    dtype: str
    nan_propagate: bool = False

    def __call__(self, a: Expr, b: Expr) -> Expr:
        """Combine two values."""
        return combiner(self.kind, self.dtype, self.nan_propagate)(a, b)

    def step(self, totals: Sequence[BufferVar], at: Expr, other: Sequence[Expr]) -> Stmt:
        """Combine a register with a value, see ``Joining``."""
        return nodes.store(totals[0], self(totals[0][at], other[0]), [at])

    def start(self, totals: Sequence[BufferVar], at: Expr) -> Stmt:
        """Make a register the neutral element, see ``Joining``."""
        return nodes.store(totals[0], self.neutral, [at])

    @property
    def neutral(self) -> Expr:
        """The neutral element."""
        return neutral(self.kind, self.dtype)

    @property
    def word(self) -> str:
        """The integer type or accumulator type of a group instruction; empty without such an instruction."""
        number = DTYPES[self.dtype]
        if f"warp_reduce_{self.kind}" not in REDUCTIONS or self.dtype not in ("float32", "int32", "uint32"):
            return ""
        if not number.is_float or self.kind == "sum":
            return self.dtype
        return "" if self.nan_propagate else "int32"

    def is_native(self, lanes: Lanes) -> bool:
        """Whether one instruction combines the values of a whole group's threads."""
        return (self.kind, self.word) in lanes.reductions

    def across(self, value: Expr) -> Expr:
        """Combine the values of a whole group's threads by one instruction.

        An ordered float is not a NaN.
        """
        name = f"warp_reduce_{self.kind}"
        if self.word == self.dtype:
            return nodes.tile_call(name, [value], ret=self.dtype)
        return from_ordered(nodes.tile_call(name, [ordered(value)], ret=self.word))
