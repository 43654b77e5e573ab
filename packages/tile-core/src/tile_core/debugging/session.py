"""A debugger for kernels: stops at statements of an observed execution, and reads commands there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.debugging.expressions import UserExpression
from tile_core.debugging.names import VisibleNames
from tile_core.debugging.snapshots import types_of
from tile_core.records import dataclass
from tile_core.reference.nonfinite import FirstBad, block_of
from tile_core.reference.observe import Observer, Site

if TYPE_CHECKING:
    from tile_core.reference.state import State

__all__ = ["Breakpoint", "Debugger", "Quit", "Stop"]


class Quit(BaseException):
    """Ends the execution; no error of the program, so that nothing reports it as one."""


@dataclass(frozen=True)
class Breakpoint:
    """Where an execution stops.

    Attributes
    ----------
    line
        Before a statement of this line; 0 for any.
    name
        After a statement that writes this tile or variable; empty for ``line``.
    condition
        Only where this is true; ``None`` always.
    """

    line: int = 0
    name: str = ""
    condition: UserExpression | None = None

    def __str__(self) -> str:
        what = f"line {self.line}" if self.line else f"after each write of {self.name}"
        return what if self.condition is None else f"{what} if {self.condition.text}"


@dataclass(frozen=True)
class Stop:
    """A stop of the execution.

    Attributes
    ----------
    state, site
        The execution, and the statement.
    names
        The values of the program's names.
    reason
        Why it stopped; empty after a step.
    """

    state: State
    site: Site
    names: VisibleNames
    reason: str = ""

    @property
    def lanes(self) -> str:
        """Return how many iterations run side by side here; empty for one."""
        count, active = self.state.count, len(self.state.active())
        if count == 1:
            return ""
        return f"{count} iterations" if active == count else f"{active} of {count} iterations"


class Debugger(Observer):
    """Decides where an execution stops.

    Parameters
    ----------
    ask
        Called at each stop; returns when the execution shall go on.
    printed
        Receives what ``T.print`` prints.

    Attributes
    ----------
    breakpoints
        Where it stops, by number; a deleted one is ``None``.
    mode
        ``"step"`` stops at the next line, ``"next"`` at the next one that is not inside of the present statement,
        ``"bad"`` where a NaN (or infinity) is made, ``"go"`` at breakpoints only.
    block
        The only block to stop in; ``None`` for all.
    last
        The latest statement: where an error was raised.
    """

    def __init__(self, ask: Callable[[Stop], None], printed: Callable[[str], None]) -> None:
        self.ask, self.printed = ask, printed
        self.breakpoints: list[Breakpoint | None] = []
        self.mode = "step"
        self.block: tuple[int, ...] | None = None
        self.last: Stop | None = None
        self.tracker: FirstBad = FirstBad()
        self._types: dict[int, str] = {}
        self._depth = self._from = 0
        self._at: Site | None = None
        self._compiled: Any = None

    def start(self, compiled: Any, state: State) -> None:
        """Keep the types of variables."""
        self._compiled, self._types = compiled, types_of(compiled)
        self.tracker.start(compiled)

    def track(self, infinities: bool) -> None:
        """Look for the next NaN, or also infinity, that is made from numbers."""
        self.tracker = FirstBad(infinities)
        self.tracker.start(self._compiled)
        self.mode = "bad"

    def before(self, state: State, site: Site) -> None:
        """Stop before a statement if it is time."""
        self._depth += 1
        if site.where is None or (self.block is not None and block_of(state) != self.block):
            return
        stop = self.last = Stop(state, site, VisibleNames(state, site, self._types))
        reason = next(
            (f"breakpoint {n}: {b}" for n, b in enumerate(self.breakpoints, 1) if b is not None and _reached(b, stop)),
            "",
        )
        if reason and not self._repeats(site):
            self._stop(stop, reason)
        elif self._steps_here() and not self._repeats(site):
            self._stop(stop, "")

    def after(self, state: State, site: Site) -> None:
        """Stop after a statement that wrote a watched tile, or made a NaN."""
        self._depth -= 1
        while state.printed:
            self.printed(state.printed.pop(0))
        if site.where is None:
            return
        stop = Stop(state, site, VisibleNames(state, site, self._types))
        if self.mode == "bad" and self.tracker.found is not None:
            self.last = stop
            self._stop(stop, str(self.tracker.found))
            return
        if self.block is not None and block_of(state) != self.block:
            return
        for n, b in enumerate(self.breakpoints, 1):
            if b is not None and b.name and self._writes(b.name, site) and _holds(b, stop.names):
                self.last = stop
                self._stop(stop, f"breakpoint {n}: {b}")

    def _stop(self, stop: Stop, reason: str) -> None:
        self._at = stop.site
        self.ask(Stop(stop.state, stop.site, stop.names, reason))
        self._from = self._depth

    def _steps_here(self) -> bool:
        return self.mode == "step" or (self.mode == "next" and self._depth <= self._from)

    def _repeats(self, site: Site) -> bool:
        """Whether a statement is another part of the line where it stopped last."""
        at = self._at
        return at is not None and at is not site and at.where == site.where

    def _writes(self, name: str, site: Site) -> bool:
        number, base = site.tiles.get(name), self._compiled.scope.base
        if number is None:
            return getattr(getattr(site.statement, "var", None), "name", None) == name
        return any(base[n] == base[number] for n in site.writes)


def _reached(b: Breakpoint, stop: Stop) -> bool:
    assert stop.site.where is not None
    return bool(b.line) and stop.site.where.line == b.line and _holds(b, stop.names)


def _holds(b: Breakpoint, names: VisibleNames) -> bool:
    if b.condition is None:
        return True
    value = b.condition.value(names)
    mask = names.state.mask
    if isinstance(mask, np.ndarray) and np.shape(value) == mask.shape:  # of the active iterations only
        value = np.asarray(value)[mask]
    return bool(np.any(value))
