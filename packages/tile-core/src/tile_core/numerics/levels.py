"""Levels of numerics: the results that a compiled kernel may have, equal on every target."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tile_core.records import dataclass
from tile_core.renamed_options import Merged

__all__ = [
    "FAST", "LEVELS", "PARTIAL_SUM", "STANDARD", "STRICT", "NumericsOptions", "level_of", "merged_levels",
]  # fmt: skip

STRICT, STANDARD, FAST = "strict", "standard", "fast"

PARTIAL_SUM = 128
"""Elements of K that level ``"standard"`` may accumulate with fewer bits than float32, in products of 8-bit floats."""

LEVELS: Mapping[str, str] = {
    STRICT: "each float operation is rounded once, as written; products, reductions and scans add in ascending order",
    STANDARD: "a multiplication and an addition may be fused; products and reductions add in any order",
    FAST: "approximate functions; subnormal numbers may be flushed to zero; products and reductions add in any order",
}
"""Promise of each level, from the least freedom to the most."""


@dataclass(frozen=True)
class NumericsOptions:
    """The option ``numerics``; the options type of a backend derives from this class.

    Parameters
    ----------
    numerics
        Level of numerics. ``"standard"``: each operation and function of floats is within the table of bounds
        (``tile_core.numerics.bounds``), a multiplication and an addition may be fused, products and reductions add in
        any order, and products of 8-bit floats accumulate at most 128 of K with fewer bits than float32. ``"strict"``:
        no fusing, and products, reductions and scans of floats add in ascending order, one by one (atomics and the
        parts of ``T.alloc_reducer``, which belong to threads, have no order). ``"fast"``: functions may be approximate,
        subnormal numbers may be flushed to zero, and tensor cores accumulate all of K as they do.
    """

    numerics: str = STANDARD

    def __post_init__(self) -> None:
        if not isinstance(self.numerics, str) or self.numerics not in LEVELS:
            raise ValueError(f"numerics is {', '.join(map(repr, LEVELS))}")

    @property
    def is_strict(self) -> bool:
        """Whether every float operation is rounded as written."""
        return self.numerics == STRICT

    @property
    def is_fast(self) -> bool:
        """Whether functions may be approximate."""
        return self.numerics == FAST


def level_of(options: object) -> str:
    """Return the level of a backend's options; ``"standard"`` for a backend without levels."""
    return str(getattr(options, "numerics", STANDARD))


#: Of several old options: fast functions include fusing, and promotion takes precedence over fast accumulation.
_PRECEDENCE = (STRICT, FAST, STANDARD)


def merged_levels(*names: str) -> dict[str, Merged]:
    """Return the replacements of a backend's old options by ``numerics``, by old name.

    Parameters
    ----------
    names
        Of ``fast_math``, ``fast_accum``, ``fmad`` and ``promote``.
    """
    return {name: Merged("numerics", functools.partial(_level_of_old, name), _PRECEDENCE) for name in names}


def _level_of_old(name: str, value: Any) -> str | None:
    if name == "promote":
        if not isinstance(value, int) or isinstance(value, bool) or value < 0 or value % 64:
            raise ValueError("promote is 0 or a multiple of 64")
        return None if value == 0 else STANDARD if value <= PARTIAL_SUM else FAST
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False")
    if name == "fmad":
        return None if value else STRICT
    return FAST if value else None
