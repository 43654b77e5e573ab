"""Opaque constants of a launch: parameters with descriptors, encoded once per set of values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tile_runtime.abi.descriptor import PlacedDescriptor
from tile_runtime.abi.kernel_text import LaunchFacts, ParamFact
from tile_runtime.types import Argument

Encode = Callable[[ParamFact, PlacedDescriptor], bytes]
_Part = tuple[ParamFact, tuple[str, ...], tuple[int, ...], dict[tuple[int, ...], bytes]]

_MOST = 1024
"""Sets of values whose bytes are kept."""


class ByValue(dict[int, bytes]):
    """A cache of the bytes of a constant by the value that determines it.

    Parameters
    ----------
    make
        Returns the bytes for a value.
    """

    def __init__(self, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: int) -> bytes:
        if len(self) >= _MOST:
            self.clear()
        found = self[value] = self._make(value)
        return found


class LaunchConstants:
    """The values of parameters that no call passes.

    Encoding takes longer than a launch, and most launches repeat addresses and sizes, so the bytes are kept by the
    values that they depend on. Threads may share one; a race encodes twice.

    Parameters
    ----------
    facts
        Of the launched function.
    encode
        Makes the bytes of a parameter, as many as it has, from its descriptor. It raises the errors of the catalogue
        for addresses, extents and strides that the device refuses.
    """

    def __init__(self, facts: LaunchFacts, encode: Encode) -> None:
        self._encode = encode
        self._params = facts.params[len(facts.given) :]
        self._lock = threading.Lock()
        positions = {p.name: i for i, p in enumerate(facts.given)}
        self._parts: list[_Part] = []
        for param in self._params:
            assert param.descriptor is not None
            names = (param.descriptor.source, *param.descriptor.symbols)
            self._parts.append((param, names, tuple(positions[n] for n in names), {}))

    def __bool__(self) -> bool:
        """Whether the function has any."""
        return bool(self._parts)

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the values that decide them."""
        return tuple(sorted({i for _, _, positions, _ in self._parts for i in positions}))

    def __call__(self, values: Sequence[Argument]) -> list[bytes]:
        """Return the bytes of each constant, in the order of the parameters.

        Parameters
        ----------
        values
            What the call passes: addresses and scalars, in the order of the parameters.
        """
        return [self._of(part, values) for part in self._parts]

    def by_value(self, values: Sequence[Argument], moving: Sequence[int]) -> list[tuple[int, ByValue]] | None:
        """Return each constant keyed by the single value that varies between similar launches.

        Parameters
        ----------
        values
            Those of a launch.
        moving
            Positions of the values that differ between launches.

        Returns
        -------
        list of tuple
            Position of the value and the bytes by it; ``None`` if two moving values decide one constant.
        """
        found: list[tuple[int, ByValue]] = []
        for part in self._parts:
            positions = part[2]
            deciding = [i for i in positions if i in moving]
            if len(deciding) > 1:
                return None
            position = deciding[0] if deciding else positions[0]
            found.append((position, ByValue(self._by(part, list(values), position))))
        return found

    def _by(self, part: _Part, values: list[Argument], position: int) -> Callable[[int], bytes]:
        return lambda value: self._of(part, [*values[:position], value, *values[position + 1 :]])

    def _of(self, part: _Part, values: Sequence[Argument]) -> bytes:
        param, names, positions, known = part
        key = tuple(int(values[i]) for i in positions)
        found = known.get(key)
        if found is None:
            assert param.descriptor is not None
            found = self._encode(param, param.descriptor.at(dict(zip(names, key, strict=True))))
            assert len(found) == param.bytes
            with self._lock:
                if len(known) >= _MOST:
                    known.clear()
                known[key] = found
        return found
