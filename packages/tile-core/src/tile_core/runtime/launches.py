"""Make several launches by one call, one after the other, each with its own values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.abi.adapter import NewArray
from tile_core.compat.types import Argument

if TYPE_CHECKING:
    from tile_core.abi.adapter import Convention, Location
    from tile_core.abi.signature import Signature
    from tile_core.ir.program import Program

Launch = Callable[..., object]


@dataclasses.dataclass(frozen=True)
class CompiledLaunch:
    """A launch that was compiled.

    Attributes
    ----------
    program, signature
        The launch as a program of its own, and how it would be called alone.
    lowered
        What the last pass left.
    hidden
        Symbols that it takes after its parameters.
    plan
        Makes its plan, or returns it.
    """

    program: Program
    signature: Signature
    lowered: Any
    hidden: tuple[str, ...]
    plan: Callable[[], Any]


def hidden_of(stages: Sequence[Any]) -> tuple[str, ...]:
    """Return the symbols that the launches together take after the parameters."""
    return tuple(dict.fromkeys(name for stage in stages for name in stage.hidden))


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

        return packed

    def pointers(values: Sequence[Argument], location: Location) -> None:
        for launch, indices in parts:
            launch(tuple([values[n] for n in indices]), location)

    return pointers
