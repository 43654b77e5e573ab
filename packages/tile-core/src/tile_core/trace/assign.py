"""Stores, and what assignment to a name does to a value."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.errors.language import BadStore, LostTensor, StatementOutsideLaunch
from tile_core.ir import nodes
from tile_core.values.builder import current
from tile_core.values.value import Buffer, Region, Value, as_value, cast, to_index


def store(buffer: Any, index: Any, value: Any) -> None:
    """Emit ``buffer[index] = value``, converted to the element type of the buffer.

    Raises
    ------
    BadStore
        If ``buffer[index]`` is no element, or ``value`` no scalar.
    """
    if buffer.is_scalar:
        target, indices = buffer, [nodes.int_const(0)] * (1 if buffer.scope == "local.var" else 0)
        text = buffer.name
    else:
        element = buffer[index]
        if not isinstance(element, Value) or element.element is None:
            raise _no_element(buffer, index, element, value)
        target = element.element[0]
        indices = [to_index(i) for i in element.element[1]]
        text = f"an element of {target.name}"
    builder = current("an assignment to a buffer")
    if isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_scalar):
        raise BadStore(value=_text(value), target=text, instead="index it, or use T.copy for whole tiles")
    if isinstance(value, (str, bytes, list, tuple, dict, set)) or value is None:
        raise BadStore(value=_text(value), target=text, instead=f"store one number of type {target.dtype}")
    new = cast(value if isinstance(value, Value) else _literal(value, target.dtype), target.dtype).expr
    builder.materialise([target.var])
    builder.emit(tirx.BufferStore(target.var, new, indices, builder.span()))


def _literal(value: Any, dtype: Any) -> Value:
    from tile_core.values.promotion import weak_type

    if type(value) not in (bool, int, float) or (dtype == "bool" and not isinstance(value, bool)):
        return as_value(value)
    if isinstance(value, float) and dtype.is_integer:
        # C and Python truncate; a constant fraction is more likely a mistake, which as_value reports.
        return as_value(value, dtype)
    return as_value(value, dtype if not dtype.is_narrow else weak_type(value, dtype))


def _no_element(buffer: Any, index: Any, target: Any, value: Any) -> BadStore:
    if isinstance(target, Region):
        given = index if isinstance(index, tuple) else (index,)
        remedy = "use T.copy or T.fill for tiles, or a T.Parallel loop over the elements"
        if len(given) < buffer.ndim and not any(i is Ellipsis or isinstance(i, slice) for i in given):
            remedy = f"{buffer.name} has {buffer.ndim} dimensions: give an index for each, or {remedy}"
        return BadStore(value=_text(value), target=f"the slice {target!r}", instead=remedy)
    return BadStore(value=_text(value), target=str(target), instead="assign to an element such as A[i, j]")


def _text(value: Any) -> str:
    if isinstance(value, Value):
        return f"a {value.dtype} value"
    return f"{value!r}" if isinstance(value, (int, float, str, type(None), Buffer, Region)) else type(value).__name__


def read(value: Any) -> Any:
    """Return the current value of a scalar variable; anything else, and a variable that has no name yet, unchanged."""
    if isinstance(value, Buffer) and value.scope == "local.var" and not value.fresh:
        return value.value()
    return value


def check_lost(name: str, old: Any, value: Any) -> None:
    """Refuse ``name = value`` where ``name`` is a tensor or a tile, and the value was meant to be stored in it.

    Names may be bound again as in Python: to parts and views of what they were, those of tiles to other tiles. What is
    left is a store that was meant: of a scalar, or of what lies in memory of another kind.

    Raises
    ------
    LostTensor
        With the statement that stores.
    """
    if not isinstance(old, Buffer) or old.scope == "local.var":
        return
    if isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_scalar):
        tile = value if isinstance(value, Buffer) else value.buffer
        if _memory(tile).var.same_as(_memory(old).var) or "global" not in (old.scope, tile.scope):
            return
        source = repr(value) if isinstance(value, Region) else value.name
        found, fix = source, f"T.copy({source}, {name}) stores it"
    elif isinstance(value, (int, float)) or (isinstance(value, Value) and not _reads(value, old)):
        found = _text(value)
        fix = f"{name}[i, j] = ... stores an element, and T.fill({name}, value) one in all"
        fix = f"{name}[()] = ... stores it" if old.is_scalar else fix
    else:
        return
    kind = "tensor" if old.scope == "global" else "tile"
    raise LostTensor(name=name, found=found, what=f"the {kind} {old.name}", fix=f"{fix}; otherwise choose another name")


def _memory(buffer: Buffer) -> Buffer:
    """Return the buffer whose memory this is: that of a view is another one's."""
    return base if (base := getattr(buffer, "base", None)) is not None else buffer


def _reads(value: Value, buffer: Buffer) -> bool:
    return any(r.same_as(buffer.var) for r in value.reads)


def settled(name: str, value: Value) -> Value:
    """Return the value as a name should hold it: computed once, unless it is plain integer arithmetic."""
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


def _in_memory(name: str, value: Value, expr: Any) -> Any:
    """Store a value in a variable and return what reads it."""
    from tile_core.values.value import tvm_name

    builder = current("an assignment")
    cell = tirx.decl_buffer([1], tvm_name(value.dtype), builder.unique(name), scope="local.var", layout=None)
    builder.emit(tirx.AllocBuffer(cell, {}, builder.span()))
    builder.emit(tirx.BufferStore(cell, expr, [nodes.int_const(0)], builder.span()))
    return nodes.load(cell, [nodes.int_const(0)])


#: Nodes of an index expression that is not computed again at every use.
_LARGE = 64
#: TVM's analysis looks through definitions of integers by one another (as in a random number generator); so many uses
#: of variables may an expression have when they are all put in their places.
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
