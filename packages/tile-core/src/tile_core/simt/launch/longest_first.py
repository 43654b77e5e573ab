"""Order of blocks with unequal trip counts: the longest begin first.

Blocks of causal attention iterate over as many tiles of keys as precede their queries. The last blocks of a grid run
beside idle processors, for as long as they take: the shortest ones should be the last. A grid fixes which blocks there
are, not their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.ranges import whole
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import annotation, collect, role, substitute
from tile_core.records import dataclass

_TYPICAL = 4096
"""Value of a size that is not known at compile time."""
_SAMPLES = 8
_WAVES = 4
"""Blocks of a panel relative to those that run at a time, at least."""
_UNEQUAL = 0.75
"""Mean trip count relative to the largest, at most, for an order that is worth its divisions."""
_WAITING = ("tile.sync_grid", "tile.wait", "tile.launch_", "tile.cluster")
"""Calls with which blocks may wait for others, which must have begun."""


@dataclass(frozen=True)
class LongestFirst:
    """An order of blocks along one axis of the grid.

    Attributes
    ----------
    axis
        The axis.
    descends
        Whether blocks with the largest coordinates begin first.
    panel
        Coordinates along the other axes, counted as one, whose blocks are in this order; then come the next ones. They
        share operands in the L2 cache: the keys of a head of attention.
    """

    axis: int
    descends: bool
    panel: int

    def coordinates(self, extents: Mapping[int, Expr]) -> tuple[list[Stmt], dict[int, Expr]]:
        """Return bindings, and the coordinates of a block by the axes of its grid."""
        counts = {axis: nodes.as_int(extent) for axis, extent in extents.items()}
        is_small = all(isinstance(n, int) for n in counts.values()) and prod(counts.values()) < 2**31
        kind = "int32" if is_small else "int64"
        wide = {axis: nodes.cast(nodes.int_const(0) + extent, kind) for axis, extent in extents.items()}
        rest = sorted(set(extents) - {self.axis})
        flat: Expr = nodes.int_const(0, kind)
        for axis in sorted(extents, reverse=True):
            flat = flat * wide[axis] + nodes.cast(calls.block_index(axis), kind)
        number, panel, inside, other = (nodes.fresh(n, kind) for n in ("block", "panel", "inside", "other"))
        own, most = wide[self.axis], nodes.int_const(self.panel, kind)
        binds = [
            tirx.Bind(number, flat),
            tirx.Bind(panel, tirx.floordiv(number, own * most)),
            tirx.Bind(inside, tirx.floormod(number, own * most)),
        ]
        count: Expr = most
        if not is_small or prod(counts[axis] for axis in rest) % self.panel:
            every: Expr = nodes.int_const(1, kind)
            for axis in rest:
                every = every * wide[axis]
            count = nodes.fresh("rows", kind)
            least = nodes.int_const(1, kind)
            binds.append(tirx.Bind(count, tirx.Max(tirx.Min(most, every - panel * most), least)))
        binds.append(tirx.Bind(other, panel * most + tirx.floormod(inside, count)))
        at = tirx.floordiv(inside, count)
        found, step = {self.axis: own - 1 - at if self.descends else at}, nodes.int_const(1, kind)
        for axis in rest:
            part = tirx.floordiv(other, step)
            found[axis] = part if axis == rest[-1] else tirx.floormod(part, wide[axis])
            step = step * wide[axis]
        return binds, found


def longest_first(body: Stmt, processors: int) -> LongestFirst | None:
    """Return the order of a launch whose trip counts differ along one axis.

    None for equal counts, and for a launch whose blocks all run at a time.

    Parameters
    ----------
    processors
        Blocks that run at a time.
    """
    axes = {int(annotation(s, attributes.AXIS)): s for s in collect(body, tirx.For) if role(s) == "grid"}
    names = {s.loop_var for s in axes.values()}
    if len(names) != len([s for s in collect(body, tirx.For) if role(s) == "grid"]) or not _is_free(body):
        return None
    extents = {axis: _sample(s.extent, {}) for axis, s in axes.items()}
    known = {axis: n for axis, n in extents.items() if n is not None}
    if len(known) != len(axes) or prod(known.values()) <= processors:
        return None
    trips = _trips(body)
    for axis, loop in axes.items():
        others = {s.loop_var: 0 for s in axes.values() if not s.same_as(loop)}
        points = sorted({(known[axis] - 1) * n // (_SAMPLES - 1) for n in range(_SAMPLES)})
        counts = [_total(trips, {**others, loop.loop_var: at}) for at in points]
        found = [n for n in counts if n is not None]
        if len(found) == len(counts) > 1 and sum(found) < _UNEQUAL * len(found) * max(found):
            rises = found == sorted(found)
            if rises or found == sorted(found, reverse=True):
                return LongestFirst(axis, rises, _panel(known[axis], prod(known.values()) // known[axis], processors))
    return None


def _panel(along: int, others: int, processors: int) -> int:
    """Return the width of panels of a few waves, whose last blocks are short."""
    least = min(others, -(-_WAVES * processors // along))
    return next((n for n in range(least, min(others, 2 * least) + 1) if others % n == 0), least)


def _is_free(body: Stmt) -> bool:
    """Whether no block waits for another one."""
    names = (str(getattr(call.op, "name", "")) for call in collect(body, ir.Call))
    return not collect(body, tirx.While) and not any(name.startswith(_WAITING) for name in names)


def _trips(body: Stmt) -> list[Expr]:
    """Return the trip counts of a block's pipelined loops without names of values."""
    values: dict[Var, Expr] = {}
    for s in collect(body, tirx.Bind):
        if not nodes.is_tile_call(s.value):
            values[s.var] = substitute(s.value, values)
    loops = [s for s in collect(body, tirx.For) if role(s) == "pipelined"]
    return [substitute(nodes.int_const(0) + s.extent, values) for s in loops]


def _total(trips: Sequence[Expr], at: Mapping[Var, int]) -> int | None:
    found = [_sample(n, at) for n in trips]
    known = [max(0, n) for n in found if n is not None]
    return sum(known) if len(known) == len(found) else None


def _sample(value: Expr, at: Mapping[Var, int]) -> int | None:
    """Return an expression for values of its variables; sizes have the typical one."""
    free = {v: at.get(v, _TYPICAL) for v in collect(nodes.int_const(0) + value, tirx.Var)}
    given = {v: nodes.int_const(min(n, whole(nodes.dtype_of(v))[1]), nodes.dtype_of(v)) for v, n in free.items()}
    found = nodes.as_int(Analyzer().simplify(substitute(nodes.int_const(0) + value, given)))
    return found if isinstance(found, int) else None
