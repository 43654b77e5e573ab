"""Results that a level of numerics admits where they differ from the expected ones.

Level ``"standard"`` approximates quotients, and level ``"fast"`` also functions; it may flush subnormal numbers. So one
program has many right results. They are found by executing the program again in the reference, with every operation
changed by as much as its bound admits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np

from tile_core.errors import TileError
from tile_core.runtime.verify import RoundingSpread
from tile_core.testing.case import Param, Tolerance
from tile_core.testing.data import Array, values

__all__ = ["Admitted"]

#: Executions of a program. The first four change all results upwards or downwards, the others at random.
_EXECUTIONS = 10


class Admitted:
    """The results that a level admits for one launch.

    Parameters
    ----------
    execute
        Executes the program with a seed of changes, and returns the arguments after it.
    """

    def __init__(self, execute: Callable[[int], Mapping[str, Array]]) -> None:
        self._execute = execute

    def among(self, p: Param, found: Array, expected: Array, tolerance: Tolerance) -> Array:
        """Return which elements of an output are admitted.

        Parameters
        ----------
        p
            The output.
        found, expected
            Its values, and those without any change, which do not come from the reference. Where they are not among its
            results, the reference decides nothing.
        tolerance
            Where it is not exact, results that lie a little outside of the executions are admitted too.
        """
        if not self._executions:
            return np.zeros(np.shape(expected), np.bool_)
        results = [values(arrays[p.name], p.dtype, np.shape(expected)) for arrays in self._executions]
        spread = RoundingSpread(results[0])
        for result in results:
            spread.add(result)
        exact = not (tolerance.rtol or tolerance.atol)
        return (spread.has(found, 0.0) if exact else spread.has(found)) & spread.has(expected)

    @functools.cached_property
    def _executions(self) -> list[Mapping[str, Array]]:
        """The arguments after each execution; none of a program that the reference does not execute."""
        try:
            return [self._execute(seed) for seed in range(_EXECUTIONS)]
        except TileError:
            return []
