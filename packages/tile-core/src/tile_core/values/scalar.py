"""``Value``: a scalar at trace time, with Python's operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeGuard, Union

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BinaryNode, BufferVar, DTypeLike, Expr, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadOperand, NotCompileTime
from tile_core.ir import nodes
from tile_core.numerics.regions import marked
from tile_core.values import builder as _builder
from tile_core.values.numpy_like import adopt
from tile_core.values.promotion import check_fits, common_type, computed, rounded, weak_type
from tile_core.vocabulary import word

if TYPE_CHECKING:
    import numpy as np


class OneElement(Protocol):
    """A buffer of one element: a variable of ``T.alloc_var``, or a rank-0 tensor."""

    @property
    def is_scalar(self) -> bool:
        """Whether it is."""
        ...

    def value(self) -> Value:
        """Return its current value."""
        ...


Index = Union[int, "Value"]
"""An index or extent: a Python int, known while tracing, or a runtime integer."""

Shape = Union[int, "Value", Sequence[Index]]
"""Extents, outermost first; of one dimension the extent alone."""

Number = Union[int, float, "Value"]
"""A number: Python's, known while tracing, or one that the kernel computes."""

Scalar = Union[int, float, "Value", "OneElement", "np.generic"]
"""A scalar operand: a number, a variable or a NumPy scalar."""


_CHOOSE = (
    "use `if`, `and`, `or` and `not` in the text of the kernel function or of a T.macro, or T.if_then_else; a Python "
    "argument decides while tracing"
)


class Value:
    """A scalar that the kernel computes.

    Attributes
    ----------
    expr
        The tirx expression. Reading it first binds the value if memory that it reads was written meanwhile, or if
        it is used inside a loop but was computed before it.
    dtype
        Its element type.
    reads
        IR buffers that the expression loads from.
    element
        ``(buffer, indices)`` when the value is one element of a buffer, else ``None``.
    """

    __slots__ = ("__weakref__", "_expr", "dtype", "element", "reads", "scope", "slot")

    def __init__(
        self,
        expr: Expr,
        dtype: DType,
        reads: tuple[BufferVar, ...] = (),
        element: tuple[Any, tuple[Index, ...]] | None = None,
    ) -> None:
        self._expr = expr
        self.dtype = dtype
        self.reads = reads
        self.element = element
        self.slot: _builder.StatementSlot | None = None
        if reads and (active := _builder.tracing()) is not None:
            self.scope = active.scope
            active.watch(self)

    @property
    def expr(self) -> Expr:
        """The tirx expression."""
        if self.reads:
            _builder.settle(self)
        return self._expr

    def become(self, var: Var) -> None:
        """Refer to ``var`` from now on: the value was bound to it."""
        self._expr, self.reads, self.slot = var, (), None

    def __repr__(self) -> str:
        return f"<{self.dtype} value {self._expr}>"

    def __bool__(self) -> bool:
        raise NotCompileTime(what="the truth of a runtime value", value=str(self._expr), fix=_CHOOSE)

    def __index__(self) -> int:
        if isinstance(self._expr, tirx.IntImm):
            return int(self._expr.value)
        fix = (
            "keep it a runtime value, with T.cast(value, 'int32'), and index buffers with it (T.alloc_local((n,), "
            "dtype)), not lists; values that determine shapes must be Python arguments"
        )
        raise NotCompileTime(what="a runtime value as a Python int", value=str(self._expr), fix=fix)

    __int__ = __index__

    def __float__(self) -> float:
        if isinstance(self._expr, (tirx.IntImm, tirx.FloatImm)):
            return float(self._expr.value)
        fix = "use T's function instead of math's, for example T.sqrt(value), or T.cast(value, 'float32')"
        raise NotCompileTime(what="a runtime value as a Python float", value=str(self._expr), fix=fix)

    def __iter__(self) -> NoReturn:
        fix = "write `for i in T.serial(n)` or range(n) in the text of the kernel; unpack only Python values"
        raise NotCompileTime(what="iteration over a runtime value", value=str(self._expr), fix=fix)

    __hash__ = object.__hash__

    def astype(self, dtype: DTypeLike) -> Value:
        """Return the value converted to ``dtype``."""
        return cast(self, to_dtype(dtype))

    # fmt: off
    def __add__(self, o: Scalar) -> Value: return arith(tirx.Add, self, o)
    def __radd__(self, o: Scalar) -> Value: return arith(tirx.Add, o, self)
    def __sub__(self, o: Scalar) -> Value: return arith(tirx.Sub, self, o)
    def __rsub__(self, o: Scalar) -> Value: return arith(tirx.Sub, o, self)
    def __mul__(self, o: Scalar) -> Value: return arith(tirx.Mul, self, o)
    def __rmul__(self, o: Scalar) -> Value: return arith(tirx.Mul, o, self)
    def __truediv__(self, o: Scalar) -> Value: return divide(self, o)
    def __rtruediv__(self, o: Scalar) -> Value: return divide(o, self)
    def __floordiv__(self, o: Scalar) -> Value: return floordiv(self, o)
    def __rfloordiv__(self, o: Scalar) -> Value: return floordiv(o, self)
    def __mod__(self, o: Scalar) -> Value: return floormod(self, o)
    def __rmod__(self, o: Scalar) -> Value: return floormod(o, self)
    def __divmod__(self, o: Scalar) -> tuple[Value, Value]: return floordiv(self, o), floormod(self, o)
    def __rdivmod__(self, o: Scalar) -> tuple[Value, Value]: return floordiv(o, self), floormod(o, self)
    def __pow__(self, o: Scalar) -> Number: return power(self, o)
    def __rpow__(self, o: Scalar) -> Number: return power(o, self)
    def __lt__(self, o: Scalar) -> Value: return compare(tirx.LT, self, o)
    def __le__(self, o: Scalar) -> Value: return compare(tirx.LE, self, o)
    def __gt__(self, o: Scalar) -> Value: return compare(tirx.GT, self, o)
    def __ge__(self, o: Scalar) -> Value: return compare(tirx.GE, self, o)
    def __eq__(self, o: object) -> Any: return compare(tirx.EQ, self, o)
    def __ne__(self, o: object) -> Any: return compare(tirx.NE, self, o)
    def __and__(self, o: Scalar) -> Value: return bitwise("and", self, o)
    def __rand__(self, o: Scalar) -> Value: return bitwise("and", o, self)
    def __or__(self, o: Scalar) -> Value: return bitwise("or", self, o)
    def __ror__(self, o: Scalar) -> Value: return bitwise("or", o, self)
    def __xor__(self, o: Scalar) -> Value: return bitwise("xor", self, o)
    def __rxor__(self, o: Scalar) -> Value: return bitwise("xor", o, self)
    def __lshift__(self, o: Scalar) -> Value: return shift("left", self, o)
    def __rlshift__(self, o: Scalar) -> Value: return shift("left", o, self)
    def __rshift__(self, o: Scalar) -> Value: return shift("right", self, o)
    def __rrshift__(self, o: Scalar) -> Value: return shift("right", o, self)
    # fmt: on

    def __neg__(self) -> Value:
        if isinstance(self.expr, tirx.FloatImm) and not self.dtype.is_narrow:
            return derive(tirx.FloatImm(self.expr.ty, -float(self.expr.value)), self.dtype, self)
        # 0 - x would turn +0 into +0; -0.0 - x is the IEEE negation.
        zero = as_value(-0.0, computed(self.dtype)) if self.dtype.is_float else as_value(0, self.dtype)
        return arith(tirx.Sub, zero, self)

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        if self.dtype == "bool":
            return derive(tirx.Not(self.expr), to_dtype("bool"), self)
        need_integer("~", self)
        if self.dtype.kind == "uint" and self.dtype.bits < 8:  # computed in bytes, whose upper bits stay 0
            return bitwise("xor", self, as_value((1 << self.dtype.bits) - 1, self.dtype))
        return derive(tirx.bitwise_not(self.expr), self.dtype, self)

    def __abs__(self) -> Number:
        return word("abs")(self)

    def __round__(self, digits: object = None) -> Number:
        if digits is not None:
            raise BadOperand(found="round() to a number of digits")
        return word("nearbyint")(self)


adopt(Value, lambda v: str(v._expr), lambda v: False)


def derive(expr: Expr, dtype: DType, *sources: object) -> Value:
    """Return a value computed from others; it depends on the memory that they read."""
    reads: tuple[BufferVar, ...] = ()
    for s in sources:
        if isinstance(s, Value) and s.reads:
            reads = reads + s.reads
    active = _builder.tracing()
    if active is not None and active.level:
        expr = marked(expr, active.level, [s._expr for s in sources if isinstance(s, Value)])
    return Value(expr, dtype, reads)


def as_value(x: Any, dtype: DType | None = None) -> Value:
    """Return ``x`` as a value; a Python number takes ``dtype`` (default: ``int32``, ``float32`` or ``bool``)."""
    if isinstance(x, Value):
        return x
    if tirx.is_buffer_var(x):
        raise BadOperand(found=f"the buffer {x.name} of TVM")
    if isinstance(x, ir.Expr) and hasattr(getattr(x, "ty", None), "dtype"):
        return Value(x, to_dtype(nodes.dtype_of(x)))
    if getattr(x, "is_scalar", False):
        return x.value()
    if hasattr(x, "item") and hasattr(x, "dtype") and getattr(x, "shape", None) == ():
        dtype, x = dtype or to_dtype(x.dtype), x.item()
    if not isinstance(x, (bool, int, float)):
        raise _no_scalar(x)
    if dtype is None:
        dtype = to_dtype("bool" if isinstance(x, bool) else "float32" if isinstance(x, float) else "int32")
        if dtype == "int32" and not -(2**31) <= x < 2**31:
            dtype = to_dtype("int64")
    check_fits(x, dtype)
    if dtype.is_float:
        x = rounded(x, dtype)
    return Value(nodes.const(x, dtype.container), dtype)


def promote(a: Any, b: Any) -> tuple[Value, Value]:
    """Return both operands as values of their common type (see the text of ``values/value.py``)."""
    a, b = (x if _is_number(x) else as_value(x) for x in (_plain(a), _plain(b)))
    if not isinstance(a, Value) and not isinstance(b, Value):
        a, b = as_value(a), as_value(b)
    elif not isinstance(a, Value):
        a = as_value(a, weak_type(a, b.dtype))
    elif not isinstance(b, Value):
        b = as_value(b, weak_type(b, a.dtype))
    target = common_type(a.dtype, b.dtype)
    return cast(a, target), cast(b, target)


def is_python(x: object) -> TypeGuard[int | float]:
    """Whether an object is exactly a Python number: NumPy's ``float64`` is not."""
    return type(x) in (bool, int, float)


def _is_number(x: object) -> TypeGuard[int | float]:
    return isinstance(x, (int, float, bool))


def _plain(x: Any) -> object:
    """Return NumPy's scalars of its default types as the Python numbers that they usually represent."""
    if type(x).__module__ == "numpy" and type(x).__name__ in ("int64", "float64", "bool_", "bool"):
        return x.item() if getattr(x, "shape", None) == () else x
    return x


def cast(value: Scalar, dtype: DType) -> Value:
    """Return ``value`` converted to ``dtype`` (``numerics/rules.py``; integers wrap; bool is ``!= 0``)."""
    value = as_value(value)
    if value.dtype == dtype:
        return value
    source, target = value.dtype.container, dtype.container
    if dtype.is_reduced:
        from tile_core.numerics.exprs import round_tfloat32_expr

        return derive(round_tfloat32_expr(value.expr), dtype, value)
    if dtype == "bool":
        return derive(tirx.NE(value.expr, nodes.zero(source)), dtype, value)
    if value.dtype.is_narrow and (dtype.is_narrow or not dtype.is_float):
        return cast(cast(value, DTYPES["float32"]), dtype)
    if source == target:
        return derive(value.expr, dtype, value)
    folded = _fold_cast(value.expr, target)
    return derive(folded if folded is not None else tirx.Cast(target, value.expr), dtype, value)


def _fold_cast(expr: Expr, target: str) -> Expr | None:
    if isinstance(expr, tirx.IntImm) and target.startswith(("int", "uint", "float")) and not DTYPES[target].is_narrow:
        value = int(expr.value)
        if target.startswith("float"):
            return nodes.const(value, target) if abs(value) < 2**11 else None
        bits = DTYPES[target].bits
        low, high = (0, 2**bits) if target.startswith("uint") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return nodes.const(value, target) if low <= value < high else None
    return None


_INTEGER: dict[BinaryNode, BinaryNode] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
}


def arith(node: BinaryNode, a: Scalar, b: Scalar) -> Value:
    """Return the sum, difference or product denoted by ``node`` (``tirx.Add``, ``Sub`` or ``Mul``)."""
    a, b = promote(a, b)
    if a.dtype == "bool":
        a, b = cast(a, DTYPES["int32"]), cast(b, DTYPES["int32"])
    x, y = a.expr, b.expr
    if a.dtype.is_float:
        # The node itself: TVM's operators fold 0.0 * x to 0.0, which is wrong for NaN and infinities.
        return derive(node(x, y), a.dtype, a, b)
    function = _INTEGER[node]
    if isinstance(x, tirx.IntImm) and isinstance(y, tirx.IntImm):
        # TVM's own folding refuses overflow; in the language integers wrap.
        folded = wrapped(function(int(x.value), int(y.value)), a.dtype)
        return derive(nodes.const(folded, a.dtype.container), a.dtype, a, b)
    return derive(function(x, y), a.dtype, a, b)


def wrapped(value: int, dtype: DType) -> int:
    """Return an integer wrapped to a type's bits."""
    value %= 2**dtype.bits
    return value - 2**dtype.bits if dtype.kind == "int" and value >= 2 ** (dtype.bits - 1) else value


def divide(a: Scalar, b: Scalar) -> Value:
    """Return the true quotient; integers divide as ``float32`` (``float64`` for 64-bit ones), as in Python."""
    a, b = promote(a, b)
    if not a.dtype.is_float:
        wide = DTYPES["float64" if a.dtype.bits == 64 else "float32"]
        a, b = cast(a, wide), cast(b, wide)
    return derive(tirx.Div(a.expr, b.expr), a.dtype, a, b)


def floordiv(a: Scalar, b: Scalar) -> Value:
    """Return the quotient rounded down."""
    a, b = promote(a, b)
    if a.dtype.is_float:
        return derive(tirx.floor(tirx.Div(a.expr, b.expr)), a.dtype, a, b)
    a, b = _divisible("//", a, b)
    return integer_quotient(tirx.floordiv, operator.floordiv, a, b)


def floormod(a: Scalar, b: Scalar) -> Value:
    """Return the remainder with the sign of the divisor, as in Python.

    For floats it is ``a - floor(a / b) * b``, each step rounded or fused as the target does: close to the remainder
    while the quotient has fewer bits than the type's mantissa, and meaningless beyond that. Python's is exact.
    """
    a, b = promote(a, b)
    if a.dtype.is_float:
        quotient = tirx.floor(tirx.Div(a.expr, b.expr))
        return derive(tirx.Sub(a.expr, tirx.Mul(quotient, b.expr)), a.dtype, a, b)
    a, b = _divisible("%", a, b)
    return integer_quotient(tirx.floormod, operator.mod, a, b)


def integer_quotient(node: BinaryNode, python: Callable[[int, int], int], a: Value, b: Value) -> Value:
    """Return a quotient or remainder of integers of one type; for constants Python's result, wrapped."""
    x, y = constant_of(a), constant_of(b)
    if x is not None and y:
        return derive(nodes.const(wrapped(python(x, y), a.dtype), a.dtype.container), a.dtype, a, b)
    return derive(node(a.expr, b.expr), a.dtype, a, b)


def _divisible(symbol: str, a: Value, b: Value) -> tuple[Value, Value]:
    if a.dtype == "bool":
        a, b = cast(a, DTYPES["int32"]), cast(b, DTYPES["int32"])
    refuse_zero(symbol, b)
    return a, b


def power(a: Scalar, b: Scalar) -> Number:
    """Return ``a ** b``; small constant integer powers are products, others are ``T.pow``."""
    return word("pow")(a, b)


def compare(node: BinaryNode, a: object, b: object) -> Value:
    """Return a ``bool`` value; comparing with ``None`` or text is Python's."""
    if a is None or b is None or isinstance(b, str):
        return NotImplemented
    a, b = promote(a, b)
    return derive(node(a.expr, b.expr), DTYPES["bool"], a, b)


def bitwise(kind: str, a: Scalar, b: Scalar) -> Value:
    """Return ``a & b``, ``a | b`` or ``a ^ b`` of integers or bools."""
    a, b = promote(a, b)
    if a.dtype == "bool":
        node = {"and": tirx.And, "or": tirx.Or, "xor": tirx.NE}[kind]
        return derive(node(a.expr, b.expr), a.dtype, a, b)
    need_integer({"and": "&", "or": "|", "xor": "^"}[kind], a)
    call = {"and": tirx.bitwise_and, "or": tirx.bitwise_or, "xor": tirx.bitwise_xor}[kind]
    return derive(call(a.expr, b.expr), a.dtype, a, b)


def shift(direction: str, a: Scalar, b: Scalar) -> Value:
    """Return a shift; counts of the width or more give 0 (or the sign).

    A Python count leaves the type of the left operand; a runtime count of a wider type promotes it, as arithmetic does.
    """
    symbol = "<<" if direction == "left" else ">>"
    if _is_number(a):
        a = as_value(a, b.dtype if isinstance(b, Value) and b.dtype.is_integer else None)
    from tile_core.numerics.build import bind

    a = as_value(a)
    a = cast(a, DTYPES["int32"]) if a.dtype == "bool" else a
    need_integer(symbol, a)
    if not _is_number(b):
        b = as_value(b)
        if b.dtype.is_integer and b.dtype.bits > a.dtype.bits:
            a = cast(a, b.dtype)
    bits, width = a.dtype.bits, str(a.dtype)
    constant = constant_of(b)
    if constant is not None:
        return _shift_by(direction, a, symbol, constant)
    count = as_value(b)
    need_integer(symbol, count)
    sign = direction == "right" and a.dtype.kind == "int"
    call = tirx.shift_left if direction == "left" else tirx.shift_right
    x = a.expr

    def guarded(value: Expr, n: Var) -> Expr:
        # Compared in the type of the count, which may be too wide for the type of the left operand.
        last = nodes.const(bits - 1, str(count.dtype))
        inside = tirx.LE(n, last)
        if count.dtype.kind == "int":
            inside = tirx.And(tirx.GE(n, nodes.zero(str(count.dtype))), inside)
        safe = call(value, nodes.cast(tirx.bitwise_and(n, last), width))
        over = call(value, nodes.const(bits - 1, width)) if sign else nodes.zero(width)
        return tirx.Select(inside, safe, over)

    shifted = bind(x, lambda v: bind(count.expr, lambda n: guarded(v, n), "n"), "v")
    return derive(shifted, a.dtype, a, count)


def _shift_by(direction: str, a: Value, symbol: str, count: int) -> Value:
    if count < 0:
        raise BadOperand(found=f"a negative shift count {count} in {symbol}")
    bits, width = a.dtype.bits, str(a.dtype)
    call = tirx.shift_left if direction == "left" else tirx.shift_right
    if count >= bits:
        if direction == "left" or a.dtype.kind == "uint":
            return as_value(0, a.dtype)
        count = bits - 1
    known = constant_of(a)
    if known is not None:
        # TVM computes constants in 64 bits and refuses overflow; here it wraps.
        low = 0 if a.dtype.kind == "uint" else -(1 << (bits - 1))
        shifted = known << count if direction == "left" else known >> count
        return derive(nodes.const((shifted - low) % (1 << bits) + low, width), a.dtype, a)
    return derive(call(a.expr, nodes.const(count, width)), a.dtype, a)


def constant_of(x: object) -> int | None:
    """Return the Python int of a constant integer, else ``None``."""
    if isinstance(x, int):
        return int(x)
    if isinstance(x, Value) and isinstance(x._expr, tirx.IntImm):
        return int(x._expr.value)
    return None


def simplify(expr: Expr) -> Expr:
    """Return the expression simplified where TVM's analyzer is sound; a difference may become a number."""
    from tile_core.analysis.proofs import Proofs

    proofs = Proofs()
    shown = proofs.show(expr)
    simple = proofs.analyzer.simplify(shown)
    return simple if shown.same_as(expr) or isinstance(simple, tirx.IntImm) else expr


def refuse_zero(symbol: str, divisor: object) -> None:
    """Refuse a constant zero as a divisor."""
    if constant_of(divisor) == 0:
        raise BadOperand(found=f"division by the constant zero in {symbol}")


def need_integer(symbol: str, value: Value) -> None:
    """Refuse a value that is neither an integer nor a bool."""
    if not (value.dtype.is_integer or value.dtype == "bool"):
        fix = 'it takes integers: convert with T.cast(value, "int32"), or T.reinterpret for the bits'
        raise BadOperand(found=f"{symbol} on a {value.dtype} value", fix=fix)


def _no_scalar(x: Any) -> BadOperand:
    """Return the error for an object that is not a scalar, with the probable intention."""
    if not hasattr(type(x), "regions"):  # of an expression of tiles
        return BadOperand(found=describe(x))
    buffer = x.regions()[0].buffer
    element = f"{buffer.name}[{', '.join('ijklmn'[: len(buffer.shape)])}]"
    fix = f"index all dimensions of each tile in it, such as {element}, or assign it to a slice"
    return BadOperand(found=f"an expression of tiles, of shape {tuple(x.shape)},", fix=fix)


def describe(x: object) -> str:
    """Return the name of an object for a message."""
    return f"{x!r}" if isinstance(x, (str, type(None))) else f"an object of type {type(x).__name__}"
