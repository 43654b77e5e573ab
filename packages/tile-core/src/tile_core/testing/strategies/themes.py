"""Common parts of the strategies, whose oracle executes the kernel text as plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.records import dataclass
from tile_core.testing import plain
from tile_core.testing.case import EXACT, Data, Launch, Param, Part, Tolerance, Unit
from tile_core.testing.data import Array, anything, near_ties, numbers
from tile_core.testing.strategies.draws import Draw
from tile_runtime.dtype_table import WORDS

INTEGERS = ("int32", "int64", "uint32", "int16", "uint8", "int8", "uint16", "uint64")


@dataclass(frozen=True)
class Drawn:
    """A chooser for expressions that draws from Hypothesis."""

    draw: Draw

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        return self.draw(st.sampled_from(tuple(items)))

    def integer(self, low: int, high: int) -> int:
        """Return an integer of a closed range."""
        return int(self.draw(st.integers(low, high)))


def themed(
    theme: str, draw: Draw, params: Sequence[Param], body: str, launches: Mapping[str, Data],
    tolerance: Tolerance = EXACT, meanings: Mapping[str, Any] = MappingProxyType({}),
    plainly: Callable[[str], str] = str, **rest: Any,
) -> Unit:  # fmt: skip
    """Return a unit of one theme.

    ``launches`` are the inputs by name of the launch, ``meanings`` the values of names; ``plainly`` gives the text of
    the expected results.
    """
    made: list[Unit] = []

    def want(d: Data) -> Any:
        return plain.run(plainly(made[0].text()), list(params), d, meanings)

    data = {name: Launch(functools.partial(_copied, d)) for name, d in launches.items()}
    part = Part((), body, want, tolerance)
    name = f"{theme}-{draw(st.integers(0, 10**6))}"
    made.append(Unit("fuzz", name, tuple(params), "", {"": part}, data, **rest))
    return made[0]


def _copied(d: Data, rng: np.random.Generator) -> Data:
    return {k: x.copy() if isinstance(x, np.ndarray) else x for k, x in d.items()}


def spelled(draw: Draw, dtype: str, often: bool = False) -> str:
    """Return the spelling of an element type: string, language name, or alias.

    Names are more frequent on request.
    """
    forms = [f"T.{dtype}"] * (4 if often else 1) + [f'"{dtype}"', f'T.dtype("{dtype}")']
    forms += [f"T.{word}" for word, name in WORDS.items() if name == dtype]
    return str(draw(st.sampled_from(forms)))


def randoms(draw: Draw, shape: tuple[int, ...], dtype: str, low: int = -4, high: int = 4) -> Array:
    """Return an array of small numbers."""
    return numbers(np.random.default_rng(draw(st.integers(0, 10**6))), shape, dtype, low, high)


def convertible(draw: Draw, shape: tuple[int, ...], source: str, to: str) -> Array:
    """Return an array of any bit patterns, or values next to ties of a conversion."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return near_ties(rng, shape, source, to) if draw(st.booleans()) else anything(rng, shape, source)


def patterns(draw: Draw, shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array of any bit patterns."""
    return anything(np.random.default_rng(draw(st.integers(0, 10**6))), shape, dtype)
