"""Paths of an execution: points reachable without passing certain others.

This is reachability in the control-flow graph (A. Aho et al., *Compilers*, section 9.2), whose edges follow from the
points of a program: a statement of a list leads to the next one, a branch to the first statements of its sides, the end
of a loop's body back to its beginning and on.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid, runs


class Paths:
    """The paths of a program.

    Parameters
    ----------
    flow
        Its points.
    skips
        Whether loops that are not known to run may be passed over; otherwise each runs at least once.
    """

    def __init__(self, flow: Flow, skips: bool = False) -> None:
        self.skips = skips
        self._next: dict[Point, Point] = {}
        for siblings in (flow.top, *(part for p in flow.points for part in p.parts)):
            self._next.update(itertools.pairwise(siblings))

    def reached(self, starts: Iterable[Point], stops: Collection[Point], within: Point | None = None) -> set[Point]:
        """Return the points on paths from ``starts`` up to ``stops``, inside ``within``."""
        found: set[Point] = set()
        left = list(starts)
        while left:
            p = left.pop()
            if p not in found and (within is None or within.contains(p)):
                found.add(p)
                left += [] if p in stops else self.follow(p)
        return found

    def follow(self, p: Point) -> list[Point]:
        """Return the possible successors of a point once it has evaluated its own expressions."""
        if p.kind == "break":
            return self.after(p.loops[-1]) if p.loops else []
        if p.kind == "continue":
            return self._end(p.loops[-1]) if p.loops else []
        if not p.parts:
            return self.after(p)
        inside = [part[0] for part in p.parts if part]
        skipped = len(inside) < (2 if p.kind == "if" else 1)
        passed = self.skips and p.kind in ("for", "while") and not runs(p)
        return [*inside, *(self.after(p) if skipped or passed else [])]

    def after(self, p: Point) -> list[Point]:
        """Return the possible successors of a point once all of its parts have ended."""
        if p in self._next:
            return [self._next[p]]
        around = p.around
        if around is None:
            return []
        return self._end(around) if around.kind in ("for", "while") else self.after(around)

    def _end(self, loop: Point) -> list[Point]:
        """Return the points that may be next when an iteration has ended."""
        again = [] if is_grid(loop) else [loop] if loop.kind == "while" else loop.parts[0][:1]
        return [*again, *self.after(loop)]
