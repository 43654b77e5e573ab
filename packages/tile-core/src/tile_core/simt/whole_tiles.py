"""Statements that write all elements of a tile."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import loads_of, role
from tile_core.ops.base import OpCall, is_op
from tile_core.ops.effects import effects
from tile_core.simt.pipelining.dependences import top_level, uses


def filled_with_zeros(s: Stmt) -> BufferVar | None:
    """Return the fragment that a statement fills with zeros, or ``None``."""
    if is_op(s) and nodes.is_tile_call(s.value, "fill"):
        view, value = OpCall.decode(s).args[:2]
        buffer, whole = view.buffer, view.is_whole
    else:
        variables, extents, s = _elements(s)
        if type(s) is not tirx.BufferStore:
            return None
        buffer, value, whole = s.buffer, s.value, _order(s, variables, extents) == [*range(len(variables))]
    return buffer if whole and nodes.scope_of(buffer) == "local.fragment" and is_zero(value) else None


def is_zero(value: Any) -> bool:
    """Whether a value that a tile is filled with is zero, and not -0."""
    return bool(isinstance(value, (tirx.IntImm, tirx.FloatImm)) and value.value == 0 and str(value.value) != "-0.0")


def overwrites(s: Stmt, buffer: BufferVar) -> bool:
    """Whether a statement writes all elements of a tile without other uses."""
    if is_op(s):
        reads, writes = effects(s)
        mine = [v for v in writes if v.buffer.same_as(buffer)]
        return len(mine) == 1 and mine[0].is_whole and not any(v.buffer.same_as(buffer) for v in reads)
    variables, extents, body = _elements(s)
    own = [x for x in top_level(body) if uses(x, buffer)]
    if len(own) != 1 or type(own[0]) is not tirx.BufferStore or _order(own[0], variables, extents) is None:
        return False
    return not any(load.source.same_as(buffer) for load in loads_of(own[0]))


def _elements(s: Stmt) -> tuple[list[Var], list[Any], Stmt]:
    """Return the variables and extents of a data-parallel nest, and its body."""
    variables: list[Var] = []
    extents: list[Any] = []
    while type(s) is tirx.For and role(s) == "parallel" and nodes.as_int(s.min) == 0:
        variables, extents, s = [*variables, s.loop_var], [*extents, nodes.as_int(s.extent)], s.body
    return variables, extents, s


def _order(store: Stmt, variables: list[Var], extents: list[Any]) -> list[int] | None:
    """Return the variable that is each index of a store, if it writes all elements."""
    found = [next((n for n, v in enumerate(variables) if v.same_as(i)), None) for i in store.indices]
    order = [n for n in found if n is not None]
    each = len(order) == len(found) == len(set(order))
    return order if each and [extents[n] for n in order] == nodes.shape_of(store.buffer) else None
