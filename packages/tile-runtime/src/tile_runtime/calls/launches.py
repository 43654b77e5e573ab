"""Make several launches by one call, one after the other, each with its own values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tile_runtime.abi.adapter import NewArray
from tile_runtime.types import Argument

if TYPE_CHECKING:
    from tile_runtime.abi.adapter import Convention, Location

Launch = Callable[..., object]


@dataclasses.dataclass(frozen=True)
class MachineCode:
    """A launch without Python.

    Attributes
    ----------
    function
        A function of tvm-ffi, see ``RuntimeAdapter.machine_code``.
    positions
        The values that it takes, in order: parameters of the kernel, and after their number its hidden symbols.
    """

    function: object
    positions: tuple[int, ...]


def machine_code_of(launch: Launch, count: int, adapter: Any) -> tuple[MachineCode, ...]:
    """Return the launches of a kernel without Python; empty if one needs it."""
    parts = getattr(launch, "parts", None) or [(launch, range(count))]
    convert = getattr(adapter, "machine_code", lambda launch: None)
    found = tuple(MachineCode(convert(one), tuple(indices)) for one, indices in parts)
    return () if any(code.function is None for code in found) else found


def in_order(
    launches: Sequence[Launch], stages: Sequence[Any], params: Sequence[str], hidden: Sequence[str],
    convention: Convention,
) -> Launch:  # fmt: skip
    """Return one launch that runs several on the same values; see ``RuntimeAdapter.load``.

    Parameters
    ----------
    launches
        What the adapter loaded.
    stages
        Their ``signature`` and ``hidden``.
    params, hidden
        Names of the values that the result is called with.
    convention
        How the adapter's launches take their arguments.
    """
    if len(launches) == 1:
        return launches[0]
    position = {name: n for n, name in enumerate(params)}
    symbol = {name: len(params) + n for n, name in enumerate(hidden)}
    parts = [
        (launch, [*(position[p.name] for p in s.signature.params), *(symbol[h] for h in s.hidden)])
        for launch, s in zip(launches, stages, strict=True)
    ]
    if convention == "packed":

        def packed(*values: Argument) -> None:
            current = list(values)
            new = [n for n, value in enumerate(values) if isinstance(value, NewArray)]
            for launch, indices in parts:
                launch(*[current[n] for n in indices])
                for n in new:
                    if n in indices:  # it has content from now on
                        current[n] = values[n].array

        packed.parts = parts  # type: ignore[attr-defined]
        return packed

    def pointers(values: Sequence[Argument], location: Location) -> None:
        for launch, indices in parts:
            launch(tuple([values[n] for n in indices]), location)

    return pointers
