"""Read elements of tensors again instead of copies in scratch.

A row of a norm is copied to a tile that several loops read. The tile takes as many bytes of the first-level cache as
the row, often twice, and each element is stored once more than needed. Where a tile has elements of tensors that the
program only reads, converted or added, its users compute them from the tensors::

    x[j] = X[r, j]; total += x[j] * x[j]; Y[r, j] = x[j] * scale
    total += X[r, j] * X[r, j]; Y[r, j] = X[r, j] * scale
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr, renamed_lets, role, statements, substitute, uses_var
from tile_core.numerics.build import lanes_of
from tile_core.passes.float_rules import PREFIX

__all__ = ["read_again"]

#: Calls that are as cheap as a load, and exact or without a product that could be fused with another operation.
_CHEAP = ("reinterpret", f"{PREFIX}add", f"{PREFIX}sub")
#: Elements of tensors for one of the tile, and reads of each element, at most.
_SOURCES, _READS = 2, 3
#: The least elements of a tile for which that pays.
_LEAST = 256


def read_again(parts: Sequence[Stmt], viewed: set[BufferVar], is_plain: Callable[[Stmt], bool]) -> list[Stmt]:
    """Return the statements of a block without copies of tensors that can be read again.

    Parameters
    ----------
    parts
        The statements of a block, in order.
    viewed
        Buffers with several names, which are left alone.
    is_plain
        Whether a statement only computes and stores values.
    """
    made: list[Stmt] = list(parts)
    body = nodes.seq(made)
    loads, uses = (Counter(x) for x in ([e.source for e in collect(body, ir.TensorLoad)], collect(body, tirx.Var)))
    stored = {s.buffer for s in collect(body, tirx.BufferStore)}
    fixed = {b for b, n in loads.items() if uses[b] == n and b not in stored and nodes.scope_of(b) == "global"}
    fixed -= viewed
    scratch = {x.buffer for x in made if type(x) is tirx.AllocBuffer} - viewed
    for at in range(len(made)):
        first = _definition(made[at])
        if first is None or first.buffer not in scratch or not _is_cheap(first.value, fixed):
            continue
        users = _users(made, at, first.buffer, is_plain)
        if users is not None:
            element = functools.partial(_element, first, made[at].loop_var)
            for index in users:
                made[index] = map_expr(made[index], element, ir.TensorLoad)
            made[at] = None
    kept = [s for s in made if s is not None]
    used = {v for s in kept if type(s) is not tirx.AllocBuffer for v in collect(s, tirx.Var)}
    return [s for s in kept if type(s) is not tirx.AllocBuffer or s.buffer in used]


def _definition(s: Stmt) -> Stmt | None:
    """Return the store of a parallel loop that sets a tile of one row."""
    if type(s) is not tirx.For or role(s) != "parallel" or nodes.as_int(s.min) != 0:
        return None
    store = s.body
    if not isinstance(store, tirx.BufferStore) or not store.indices or not store.indices[-1].same_as(s.loop_var):
        return None
    *others, last = nodes.shape_of(store.buffer)
    is_row = all(n == 1 for n in others) and isinstance(last, int) and nodes.as_int(s.extent) == last >= _LEAST
    return store if is_row and not uses_var(store.value, store.buffer) else None


def _is_cheap(value: Expr, fixed: set[BufferVar]) -> bool:
    sources = collect(value, ir.TensorLoad)
    names = (nodes.operator_name(c) for c in collect(value, ir.Call))
    costly = (tirx.Select, tirx.Div, tirx.Mod, tirx.Mul)
    return (
        0 < len(sources) <= _SOURCES
        and all(e.source in fixed for e in sources)
        and all(name in _CHEAP for name in names)
        and not collect(value, costly)
    )


def _users(parts: Sequence[Stmt], at: int, tile: BufferVar, is_plain: Callable[[Stmt], bool]) -> list[int] | None:
    """Return the statements that read what one stores; ``None`` if they need the tile."""
    found, reads = [], 0
    for index in range(at + 1, len(parts)):
        s = parts[index]
        if type(s) is tirx.AllocBuffer or not uses_var(s, tile):
            continue
        stores = [x for x in collect(s, tirx.BufferStore) if x.buffer.same_as(tile)]
        read = [e for e in collect(s, ir.TensorLoad) if e.source.same_as(tile)]
        if not is_plain(s) or (stores and not _replaces(s, tile)) or any(lanes_of(e) > 1 for e in read):
            return None
        found.append(index)
        reads += sum(_reads(s, tile, 1))
        if stores:
            break
    size = int(nodes.as_int(parts[at].extent))
    return found if found and reads <= _READS * size else None


def _replaces(s: Stmt, tile: BufferVar) -> bool:
    """Whether a loop sets all elements of a tile, each from itself at most."""
    if type(s) is not tirx.For or role(s) != "parallel" or not isinstance(s.body, tirx.BufferStore):
        return False
    store = s.body
    same = [e for e in collect(store.value, ir.TensorLoad) if e.source.same_as(tile)]
    whole = nodes.as_int(s.min) == 0 and nodes.as_int(s.extent) == nodes.shape_of(tile)[-1]
    return whole and all(e.indices[-1].same_as(s.loop_var) for e in [store, *same])


def _reads(s: Stmt, tile: BufferVar, count: int) -> Iterator[int]:
    """Yield how often each load of a tile is executed."""
    for x in statements(s):
        if type(x) is tirx.For:
            extent = nodes.as_int(x.extent)
            yield from _reads(x.body, tile, count * (extent if isinstance(extent, int) else 1 << 31))
        else:
            yield from (count for e in collect(x, ir.TensorLoad) if e.source.same_as(tile))


def _element(store: Stmt, var: Var, e: Expr) -> Expr:
    if not e.source.same_as(store.buffer):
        return e
    return renamed_lets(substitute(store.value, {var: nodes.cast(e.indices[-1], nodes.dtype_of(var))}))
