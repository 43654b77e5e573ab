"""Stores, and assignment to a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr
from tile_core.errors.language import LostTensor, StatementOutsideLaunch
from tile_core.ir import nodes
from tile_core.values.buffer import value_text
from tile_core.values.builder import current
from tile_core.values.overlap import root_of
from tile_core.values.value import Buffer, Region, TileValue, Value, computed


def read(value: object) -> object:
    """Return the current value of a scalar variable; anything else, and a variable that has no name yet, unchanged."""
    if isinstance(value, Buffer) and value.scope == "local.var" and not value.fresh:
        return value.value()
    return value


def check_lost(name: str, old: object, value: object) -> None:
    """Refuse ``name = value`` if ``name`` is a tensor or a tile and the value was meant to be stored in it.

    Names may be rebound as in Python: to slices and views of their old value, those of tiles to other tiles. Anything
    else was meant as a store: of a scalar, or of a value in another kind of memory.

    Raises
    ------
    LostTensor
        With the statement that stores.
    """
    if not isinstance(old, Buffer) or old.scope == "local.var":
        return
    if isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_scalar):
        tile = value if isinstance(value, Buffer) else value.buffer
        if root_of(tile).var.same_as(root_of(old).var) or "global" not in (old.scope, tile.scope):
            return
        source = repr(value) if isinstance(value, Region) else value.name
        found, fix = source, f"T.copy({source}, {name}) stores it"
    elif isinstance(value, (int, float)) or (isinstance(value, Value) and not _reads(value, old)):
        found = value_text(value)
        fix = f"{name}[i, j] = ... stores an element, and T.fill({name}, value) one in all"
        fix = f"{name}[()] = ... stores it" if old.is_scalar else fix
    else:
        return
    kind = "tensor" if old.scope == "global" else "tile"
    raise LostTensor(name=name, found=found, what=f"the {kind} {old.name}", fix=f"{fix}; otherwise choose another name")


def tile_named(
    name: str, old: object, value: TileValue, outside: bool, alias: Callable[[Buffer], str | None]
) -> object:
    """Return what ``name = value`` binds: a new tile, or within a branch or loop the tile of the name.

    Parameters
    ----------
    old
        What the name is bound to.
    outside
        Whether it was bound outside of this branch or loop: then only a store keeps Python's meaning.
    alias
        Says what else a tile is known as; a store would be seen there too.

    Raises
    ------
    LostTensor
        If the tile of the name cannot hold the value, or is known otherwise too.
    """
    if value.into is not None:
        target = value.into.whole() if isinstance(value.into, Buffer) else value.into
        target.assign(value)
        return old
    if isinstance(old, Buffer) and not old.is_scalar and (outside or old.scope == "global"):
        also = alias(old)
        same = (value.shape, value.dtype) == (old.shape, old.dtype)
        if old.scope != "global" and same and also is None:
            old.whole().assign(value)
            return old
        kind = "tensor" if old.scope == "global" else f"{old.dtype} tile"
        what = f"the {kind} {old.name}" + ("" if also is None else f", which is also {also}")
        fix = f"{name}[...] = ... stores it, converted; otherwise choose another name"
        raise LostTensor(name=name, found=repr(value), what=what, fix=fix)
    new = computed(value, name)
    new.temporary = False
    return new


def shares(x: object, tile: Buffer) -> bool:
    """Whether an object is a tile, or a part or view of it."""
    buffer = x.buffer if isinstance(x, Region) else x
    return isinstance(buffer, Buffer) and root_of(buffer) is root_of(tile)


def _reads(value: Value, buffer: Buffer) -> bool:
    return any(r.same_as(buffer.var) for r in value.reads)


def settled(name: str, value: Value) -> Value:
    """Return the value to bind to a name: computed once, unless it is plain integer arithmetic."""
    builder = current("an assignment")
    if builder.scope.kind == "function":
        if value.reads:
            raise StatementOutsideLaunch(kernel=builder.name)
        return value
    if not _worth_binding(value):
        return value
    expr = value.expr
    if value.dtype.is_integer:
        used: list[Any] = []
        tvm_ffi.structural_walk(expr, (tirx.Var, used.append))
        weight = sum(builder.weights.get(v, 1) for v in used)
        if weight > _HEAVY:
            expr, weight = _in_memory(name, value, expr), 1
        var = builder.bind(name, expr)
        builder.weights[var] = weight
        return Value(var, value.dtype)
    return Value(builder.bind(name, expr), value.dtype)


def _in_memory(name: str, value: Value, expr: Expr) -> Any:
    """Store a value in a variable and return an expression that reads it."""
    from tile_core.values.value import tvm_name

    builder = current("an assignment")
    cell = tirx.decl_buffer([1], tvm_name(value.dtype), builder.unique(name), scope="local.var", layout=None)
    builder.emit(tirx.AllocBuffer(cell, {}, builder.span()))
    builder.emit(tirx.BufferStore(cell, expr, [nodes.int_const(0)], builder.span()))
    return nodes.load(cell, [nodes.int_const(0)])


#: The largest index expression, in nodes, that is recomputed at every use.
_LARGE = 64
#: TVM's analysis expands chains of integer definitions (as in a random number generator); this limits the variable
#: uses of an expression after full substitution.
_HEAVY = 8


def _worth_binding(value: Value) -> bool:
    expr = value.expr
    if isinstance(expr, (tirx.Var, tirx.IntImm, tirx.FloatImm)):
        return False
    if value.reads:
        return True
    if value.dtype.is_float:
        return True
    found: list[Any] = []
    parts: list[Any] = []
    tvm_ffi.structural_walk(expr, [(ir.Call, found.append), (ir.Expr, parts.append)])
    # Large ones too: `t = t + t` in a loop of Python would double the tree each time.
    return bool(found) or len(parts) > _LARGE
