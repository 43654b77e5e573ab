"""Conflicts: elements that parallel executions write and read, or write with different values.

Executions are numbered (iterations of ``T.Parallel``, blocks of a grid). The elements that each touches are enumerated
(``iteration_space``), so that a conflict has two concrete executions and one concrete element.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.iteration_space import Touched, overlapping_strides
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Expr, Stmt, Var
from tile_core.errors.ops import ParallelRace
from tile_core.ir import nodes
from tile_core.ir.names import as_written
from tile_core.ir.visit import collect
from tile_core.records import dataclass

_SIZES = (64, 67, 128, 1, 1000, 3, 16, 4099, 17, 255)
_SMALL, _LARGE = (1, 2, 0, 3), (1000, 4099, 255, 64)
_ROUNDS = 5


@dataclass(frozen=True)
class AccessRows:
    """The elements that one access touches.

    Attributes
    ----------
    access
        The access.
    touched
        One entry per execution of it.
    value
        Value numbers of the stored values, in the order of ``touched.element``; ``None`` for loads and unknown values.
    atomic
        Whether it is an atomic update.
    """

    access: Access
    touched: Touched
    value: Array | None
    atomic: bool = False


@dataclass(frozen=True)
class Conflict:
    """Two executions that conflict.

    Attributes
    ----------
    access
        The store that comes second, or the load.
    mine, other
        The numbers of the execution that makes this access, and of the other one.
    at
        The unit of storage that both touch.
    """

    access: Access
    mine: int
    other: int
    at: int


def unit_of(rows: Sequence[AccessRows]) -> int:
    """Return the bits of the smallest element type among a buffer's accesses, views included."""
    return min(bits_of(r.access.buffer) for r in rows)


def bits_of(buffer: BufferVar) -> int:
    """Return the width of an element in bits."""
    from tile_core.dtypes import DTYPES

    return int(DTYPES[nodes.element_type(buffer)].bits)


def written_twice(stores: Sequence[AccessRows], unit: int) -> Conflict | None:
    """Return two executions that write different values to one element, if there are any."""
    known = [r for r in stores if r.value is not None and len(r.touched.element)]
    if not known:
        return None
    at, who, what, which = _stacked(known, unit)
    order = np.argsort(at, kind="stable")
    at, who, what, which = at[order], who[order], what[order], which[order]
    start = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    differs = [np.minimum.reduceat(c, start) != np.maximum.reduceat(c, start) for c in (who, what)]
    met = np.flatnonzero(differs[0] & differs[1])
    if not len(met):
        return None
    first = int(start[met[0]])
    end = first + int(np.count_nonzero(at == at[first]))
    one, two = _unlike(who[first:end], what[first:end])
    a, b = first + one, first + two
    return Conflict(known[int(which[b])].access, int(who[b]), int(who[a]), int(at[a]))


def read_elsewhere(stores: Sequence[AccessRows], loads: Sequence[AccessRows], unit: int, count: int) -> Conflict | None:
    """Return an execution that reads an element which another one writes, if there is any.

    Reads after a plain store of the same execution are left to ``written_twice``.
    """
    written = [r for r in stores if len(r.touched.element)]
    if not written:
        return None
    at, who, _, which = _stacked(written, unit)
    order = np.argsort(at, kind="stable")
    at, who, which = at[order], who[order], which[order]
    start = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    elements, low, high = at[start], np.minimum.reduceat(who, start), np.maximum.reduceat(who, start)
    # Atomic updates leave the element to the others, too.
    orders = np.array([sys.maxsize if r.atomic else r.access.order for r in written])[which]
    for row in loads:
        if not len(row.touched.element):
            continue
        here, mine, _, _ = _columns(row, unit, 0)
        k = np.minimum(np.searchsorted(elements, here), len(elements) - 1)
        meets = (elements[k] == here) & ((low[k] != mine) | (high[k] != mine))
        earlier = orders < row.access.order
        if earlier.any():  # an execution reads what it has written itself
            meets &= ~np.isin(here * count + mine, at[earlier] * count + who[earlier])
        if meets.any():
            x = int(np.flatnonzero(meets)[0])
            other = int(low[k[x]] if low[k[x]] != mine[x] else high[k[x]])
            return Conflict(row.access, int(mine[x]), other, int(here[x]))
    return None


def element_name(access: Access, at: int, unit: int) -> str:
    """Return an element of an access's buffer as users write it."""
    element = at * unit // bits_of(access.buffer)
    extents = [nodes.as_int(e) for e in access.buffer.shape]
    if not extents or not all(isinstance(e, int) for e in extents[1:]):
        return f"{access.buffer.name}" if len(extents) != 1 else f"{access.buffer.name}[{element}]"
    strides = overlapping_strides(access.buffer)
    if strides is not None:
        offsets = sum(s * g for s, g in zip(strides, np.indices(extents, sparse=True), strict=True))
        index = np.unravel_index(int(np.flatnonzero(offsets == element)[0]), extents)
        return f"{access.buffer.name}[{', '.join(str(int(i)) for i in index)}]"
    found: list[int] = []
    for extent in reversed(extents[1:]):
        element, rest = divmod(element, extent)
        found.append(rest)
    return f"{access.buffer.name}[{', '.join(str(i) for i in [element, *reversed(found)])}]"


def assignments(
    accesses: Sequence[Access],
    loops: Sequence[Stmt],
    around: Mapping[Var, Expr],
    inside: Mapping[Var, Expr] | None = None,
) -> Iterator[dict[Var, int]]:
    """Yield values to try for unknown variables: one empty assignment if there are none.

    A conflict counts if it occurs in all of them. So there are also assignments in which one variable is much smaller,
    or much larger, than the others: relations between sizes that a program relies on hold in one of them.

    Parameters
    ----------
    accesses
        The accesses of one buffer.
    loops
        The loops of the executions, and those around them.
    around
        Names with their values.
    inside
        Those of them that each execution binds; then the others are tried, too, if their values are from memory.
    """
    free = _free(accesses, loops, around, inside)
    if not free:
        yield {}
        return
    draw = random.Random(len(free))
    for k in range(_ROUNDS):
        yield {v: _SIZES[k] if len(free) == 1 else draw.choice(_SIZES) for v in free}
    for small, large in zip(_SMALL, _LARGE, strict=True):
        yield dict.fromkeys(free, small)
        for one in free if len(free) > 1 else ():
            yield {v: small if v is one else large for v in free}
            yield {v: large if v is one else max(small, 2) for v in free}


def refusal(found: str, sizes: Mapping[str, int], fix: str, node: Stmt) -> ParallelRace:
    """Return the error about a conflict, which occurs with these sizes, at a statement."""
    when = f" (with {', '.join(f'{n}={v}' for n, v in sizes.items())})" if sizes else ""
    where = nodes.where_of(node)
    return ParallelRace(found=as_written(found + when, where), fix=as_written(fix, where), where=where)


def _free(
    accesses: Sequence[Access], loops: Sequence[Stmt], around: Mapping[Var, Expr], inside: Mapping[Var, Expr] | None
) -> list[Var]:
    """Return the variables of unknown value: symbols, scalars, names of loaded values."""
    within = dict.fromkeys(loop for a in accesses for loop in a.loops)
    seen = {loop.loop_var for loop in (*loops, *within)} | set(inside or ())
    parts: list[Expr] = [loop.extent for loop in loops] + [x for loop in within for x in (loop.min, loop.extent)]
    for a in accesses:
        parts += [*a.indices, *a.buffer.shape, *(c for c, _ in a.conditions)]
    parts += (inside or {}).values()
    found: list[Var] = []
    while parts:
        for var in collect(parts.pop(), tirx.Var):
            if var in seen or tirx.is_buffer_var(var):
                continue
            seen.add(var)
            value = around.get(var)
            if value is not None and not collect(value, (ir.TensorLoad, ir.Call)):
                parts.append(value)
            elif value is None or inside is not None:
                found.append(var)
    return sorted(found, key=lambda v: str(v.name))


def _columns(rows: AccessRows, unit: int, number: int) -> tuple[Array, ...]:
    """Return (unit of storage, execution, value, index of the access); wide elements take several units."""
    parts = bits_of(rows.access.buffer) // unit
    touched, count = rows.touched, len(rows.touched.element)
    value = np.zeros(count, np.uint64) if rows.value is None else rows.value
    if parts == 1:
        return touched.element, touched.iteration, value, np.full(count, number)
    at = (touched.element[:, None] * parts + np.arange(parts)).ravel()
    return at, np.repeat(touched.iteration, parts), np.repeat(value, parts), np.full(count * parts, number)


def _stacked(rows: Sequence[AccessRows], unit: int) -> list[Array]:
    """Return the columns of several accesses, concatenated."""
    return [np.concatenate(c) for c in zip(*(_columns(r, unit, k) for k, r in enumerate(rows)), strict=True)]


def _unlike(who: Array, what: Array) -> tuple[int, int]:
    """Return two rows that differ in both execution and value."""
    for first in (0, int(np.flatnonzero(who != who[0])[0])):
        other = np.flatnonzero((who != who[first]) & (what != what[first]))
        if len(other):
            return first, int(other[0])
    raise AssertionError("rows of two executions and two values hold two that differ in both")
