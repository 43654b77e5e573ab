"""Instructions of a target for two 16-bit floats in a word (see ``pack_floats``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tile_core.compat.types import Expr, UnaryNode
from tile_core.records import dataclass

__all__ = ["PackedFloats"]


@dataclass(frozen=True)
class PackedFloats:
    """Instructions of a target for two elements in a word.

    The first element is the low half.

    Attributes
    ----------
    join
        By 16-bit type: a function from two float32, the low one first, to the word of both, each rounded once.
    operations
        By type and name: a function from words to a word. ``add``, ``sub``, ``mul`` and ``fma`` round each element
        once and keep subnormal numbers; ``max``, ``min``, ``max_nan`` and ``min_nan`` follow ``numerics/rules.py``;
        ``lt``, ``le``, ``gt``, ``ge`` and ``eq`` return words whose halves are all ones where the comparison holds.
        ``sub_whole`` suffices to convert integers, where ``sub`` would flush subnormal numbers.
    decode
        By 8-bit type: a function from two codes in a ``uint16`` to a word of ``float16``.
    encode
        By 8-bit type: a function from two float32, the low one first, to codes that follow ``numerics/rules.py``.
    masked
        A function from a word, a mask and bits to ``(word & mask) ^ bits``, if that is one instruction.
    """

    join: Mapping[str, Callable[[Expr, Expr], Expr]]
    operations: Mapping[tuple[str, str], Callable[..., Expr]]
    decode: Mapping[str, UnaryNode] = field(default_factory=dict)
    encode: Mapping[str, Callable[[Expr, Expr], Expr]] = field(default_factory=dict)
    masked: Callable[[Expr, Expr, Expr], Expr] | None = None

    def subtraction(self, dtype: str) -> Callable[..., Expr] | None:
        """Return the instruction that subtracts two whole numbers, if there is one."""
        return self.operations.get((dtype, "sub"), self.operations.get((dtype, "sub_whole")))
