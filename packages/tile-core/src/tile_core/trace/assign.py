"""Stores, and what assignment to a name does to a value."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.errors.language import BadStore, StatementOutsideLaunch
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
            raise _no_element(element, value)
        target = element.element[0]
        indices = [to_index(i) for i in element.element[1]]
        text = f"an element of {target.name}"
    builder = current("an assignment to a buffer")
    if isinstance(value, (Region, str)) or value is None or (isinstance(value, Buffer) and not value.is_scalar):
        raise BadStore(value=_text(value), target=text, instead="index it, or use T.copy for whole tiles")
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


def _no_element(target: Any, value: Any) -> BadStore:
    if isinstance(target, Region):
        remedy = "use T.copy or T.fill for tiles, or a T.Parallel loop over the elements"
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
