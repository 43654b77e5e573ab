"""Version of a kernel for arrays of symbolic shape that need 64-bit offsets.

It is compiled at the first call with such arrays. All other calls use the version with 32-bit offsets.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from tile_runtime.abi.signature import SYMBOL_HEADROOM, Param, Signature
from tile_runtime.calls import checks
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.records import dataclass

__all__ = ["LIMIT", "WideVersion", "has_many_elements"]

LIMIT = (1 << 31) - 1 - SYMBOL_HEADROOM
"""The largest number of elements that the version with 32-bit offsets serves, and the largest symbolic extent."""


@dataclass(frozen=True)
class WideVersion:
    """The version with 64-bit offsets.

    Attributes
    ----------
    check
        Refuses the values of symbols with which 32-bit arithmetic of the program overflows.
    load
        Returns the launch by a runtime of a name; ``None`` stands for the kernel's own.
    """

    check: Callable[[Mapping[str, int]], None]
    load: Callable[[str | None], Callable[..., object]]

    def by(self, runtime: str | None) -> WideVersion:
        """Return the version for a runtime, which is loaded once."""
        load = functools.cache(functools.partial(self.load, runtime))
        return WideVersion(self.check, lambda _: load())


def has_many_elements(signature: Signature, arrays: Mapping[int, ArrayFacts], values: Mapping[str, int]) -> bool:
    """Whether a call has an array of symbolic shape that 32-bit offsets do not reach.

    Parameters
    ----------
    signature
        The kernel's signature.
    arrays
        Facts of the arrays of the call, by parameter; outputs are not among them.
    values
        The values of all symbols.
    """
    if signature.symbolic_bits <= signature.index_bits:
        return False

    def elements(position: int, param: Param) -> int:
        facts: Any = arrays.get(position)
        if facts is None:
            return math.prod(checks.output_shape(signature, param, values))
        return int(facts.span * (2 if param.packed else 1))

    symbolic = [(i, p) for i, p in enumerate(signature.params) if p.kind == "tensor" and not p.is_constant]
    return any(elements(i, p) > LIMIT for i, p in symbolic)
