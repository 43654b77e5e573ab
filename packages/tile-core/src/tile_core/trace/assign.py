"""Stores, and assignment to a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr, Mutator, Var
from tile_core.errors.language import LostTensor, StatementOutsideLaunch
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.values.buffer import value_text
from tile_core.values.builder import current
from tile_core.values.overlap import root_of
from tile_core.values.value import Buffer, Region, TileValue, Value, computed


def read(value: object) -> object:
    """Return the current value of a scalar variable; anything else unchanged.

    A variable without a name yet is also unchanged.
    """
    if isinstance(value, Buffer) and value.scope == "local.var" and not value.fresh:
        return value.value()
    return value


def check_lost(name: str, old: object, value: object, *, owned: bool) -> None:
    """Refuse ``name = value`` if a tensor or tile should store the value.

    Names may be rebound as in Python: to slices and views of their old value, those of tiles to other tiles, and to
    another tensor those that are not the only name of a tensor (``owned``). Anything else was meant as a store: of a
    scalar, or of a value in another kind of memory.

    Raises
    ------
    LostTensor
        With the statement that stores.
    """
    if not isinstance(old, Buffer) or old.scope == "local.var":
        return
    if isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_scalar):
        tile = value if isinstance(value, Buffer) else value.buffer
        kinds = {old.scope, tile.scope}
        if root_of(tile).var.same_as(root_of(old).var) or "global" not in kinds or (kinds == {"global"} and not owned):
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
    """Return the binding of ``name = value``: a new tile, or the block's existing one.

    Parameters
    ----------
    old
        What the name is bound to.
    outside
        Whether it was bound outside of this branch or loop: then only a store keeps Python's meaning.
    alias
        Names the tile's other names; a store would be visible there too.

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
    """Return the value to bind to a name: computed once, except integer arithmetic for proofs.

    Indices stay linear combinations of variables; terms that are opaque to proofs get separate names.
    """
    builder = current("an assignment")
    if builder.scope.kind == "function":
        if value.reads:
            raise StatementOutsideLaunch(kernel=builder.name)
        return value
    if not _worth_binding(value):
        if (expr := _without_opaque(name, value._expr)).same_as(value._expr):
            return value
        return Value(expr, value.dtype)
    expr = value.expr
    if value.dtype.is_integer:
        return Value(_bound(name, expr), value.dtype)
    return Value(builder.bind(name, expr), value.dtype)


def _bound(name: str, expr: Expr, hoisted: bool = False) -> Var:
    """Bind an integer, outside of the loops that do not change it if so asked.

    What TVM would expand to a large sum is kept in memory.
    """
    builder = current("an assignment")
    used: list[Any] = []
    tvm_ffi.structural_walk(expr, (tirx.Var, used.append))
    weight = sum(builder.weights.get(v, 1) for v in used)
    if weight > _HEAVY:
        expr, weight, hoisted = _in_memory(name, expr), 1, False
    var = builder.bind(name, expr, hoisted=hoisted)
    builder.weights[var] = weight
    return var


def _without_opaque(name: str, expr: Expr) -> Expr:
    """Bind the parts of an expression of which proofs see no more than a range.

    They are divisions by values of the launch, and products, divisions, choices and bit operations with its scalars.
    """
    if isinstance(expr, _LEAVES):
        return expr
    scalars = current("an assignment").scalars

    def operation(e: Expr, mutator: Mutator) -> Expr:
        constant = isinstance(e.b, tirx.IntImm)
        opaque = isinstance(e, _DIVISIONS) and not constant
        if not opaque and (not isinstance(e, tirx.Mul) or not constant):
            opaque = any(v.same_as(s) for v in collect(e, tirx.Var) for s in scalars)
        return _bound(name, e, hoisted=True) if opaque else mutator.default_mutate(e)

    return structural.mutated(expr, [(_OPERATIONS, operation)])


def _in_memory(name: str, expr: Expr) -> Any:
    """Store a value in a variable and return an expression that reads it."""
    builder = current("an assignment")
    cell = tirx.decl_buffer([1], nodes.dtype_of(expr), builder.unique(name), scope="local.var", layout=None)
    builder.emit(tirx.AllocBuffer(cell, {}, builder.span()))
    builder.emit(tirx.BufferStore(cell, expr, [nodes.int_const(0)], builder.span()))
    return nodes.load(cell, [nodes.int_const(0)])


#: The largest index expression, in nodes, that is recomputed at every use.
_LARGE = 64
#: TVM's analysis expands chains of integer definitions (as in a random number generator); this limits the variable
#: uses of an expression after full substitution.
_HEAVY = 8
_LEAVES = (tirx.Var, tirx.IntImm, tirx.FloatImm)
_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
_BITS = (tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.LShift, tirx.RShift)
_OPERATIONS = (tirx.Mul, tirx.Min, tirx.Max, *_DIVISIONS, *_BITS)


def _worth_binding(value: Value) -> bool:
    expr = value.expr
    if isinstance(expr, _LEAVES):
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
