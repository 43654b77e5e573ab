"""Recognize loops that compute the elements of register arrays, one in each iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tile_core.analysis.affine import linear_form
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import bodies_of, collect, loads_of
from tile_core.records import dataclass


class Kept(Exception):
    """An array has to stay: the array, and the reason."""

    def __init__(self, array: BufferVar, reason: str) -> None:
        super().__init__(reason)
        self.array, self.reason = array, reason


@dataclass(frozen=True)
class ElementMap:
    """A loop nest whose iterations each compute one element of some arrays.

    Attributes
    ----------
    position
        Its position in the list.
    nest
        The statement.
    indices
        The index of each array that it stores.
    digits
        By array the loop variables with their strides and extents.
    """

    position: int
    nest: Stmt
    indices: Mapping[BufferVar, Expr]
    digits: Mapping[BufferVar, tuple[tuple[Var, int, int], ...]]


def _loops(s: Stmt) -> list[Stmt] | None:
    """Return the nested loops of a statement; ``None`` if they have another form."""
    if type(s) is tirx.For:
        simple = isinstance(nodes.as_int(s.extent), int) and nodes.as_int(s.min) == 0 and s.step is None
        inner = _loops(s.body)
        return [s, *inner] if simple and inner is not None else None
    if type(s) is tirx.SeqStmt:
        found = [_loops(x) for x in s.seq]
        if any(x is None for x in found) or sum(map(bool, found)) > 1:
            return None
        return next((x for x in found if x), [])
    if type(s) is tirx.IfThenElse:
        found = [_loops(x) for x in bodies_of(s)]
        return found[0] if all(x is not None for x in found) and not any(found[1:]) else None
    return [] if type(s) in (tirx.Bind, tirx.BufferStore) else None


def _digits(array: BufferVar, index: Expr, loops: Sequence[Stmt]) -> tuple[tuple[Var, int, int], ...]:
    """Return loop variables with strides and extents if they count the elements of an array.

    Raises
    ------
    Kept
        If iterations share elements, or do not cover the array.
    """
    variables = [x.loop_var for x in loops]
    form = linear_form(index, variables)
    extents = [int(nodes.as_int(x.extent)) for x in loops]
    size = 1
    known = form is not None and nodes.as_int(form.rest) == 0
    found = sorted(zip(variables, form.steps, extents, strict=True), key=lambda d: d[1]) if form and known else []
    for _, stride, extent in found:
        known = known and stride == size
        size *= extent
    if not known or size != prod(nodes.shape_of(array)):
        raise Kept(array, "a loop writes a part of it")
    return tuple(found)


def element_map(position: int, s: Stmt, arrays: set[BufferVar]) -> ElementMap | None:
    """Return the map of a statement that writes arrays, or ``None``.

    Raises
    ------
    Kept
        If an array that it accesses has to stay.
    """
    for call in collect(s, ir.Call):
        for load in loads_of(call) if nodes.is_tile_call(call) else ():
            if load.source in arrays:
                raise Kept(load.source, "an instruction takes it")
    indices: dict[BufferVar, Expr] = {}
    for store in collect(s, tirx.BufferStore):
        if store.buffer in arrays:
            index = indices.setdefault(store.buffer, store.indices[0])
            if not _equal(index, store.indices[0]):
                raise Kept(store.buffer, "a loop writes several elements of it")
    if not indices:
        return None
    loops = _loops(s)
    if loops is None:
        raise Kept(next(iter(indices)), "a loop that is not a map over its elements writes it")
    for load in loads_of(s):
        if load.source in indices and not _equal(load.indices[0], indices[load.source]):
            raise Kept(load.source, "a loop reads other elements than it writes")
    digits = {a: _digits(a, index, loops) for a, index in indices.items()}
    return ElementMap(position, s, indices, digits)


def _equal(a: Expr, b: Expr) -> bool:
    return bool(tvm_ffi.structural_equal(a, b, map_free_vars=False))
