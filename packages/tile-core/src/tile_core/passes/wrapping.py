"""Integer arithmetic that wraps, on code generators that assume it does not overflow.

TVM's LLVM code generator marks additions, subtractions and products of 32 and 64 bits as never overflowing, unsigned
ones too: ``0 - x`` of unsigned integers becomes 0, ``x + 1 > x`` true. Its simplifier does the same. In the
language integers wrap. ``hide`` replaces the arithmetic of *data* by opaque calls before the first simplification;
``reveal`` puts back forms that cannot overflow: 32-bit operations in 64 bits, which LLVM combines to single
instructions again, and 64-bit ones with the top bit handled apart. Indices are not data:
``passes/wrap_unproven.py`` sees to them, and leaves plain what analyses may look into.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tile_core.analysis.ranges import Ranges, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, replace_for
from tile_core.numerics.build import bind, cast, constant, type_name

_OPERATIONS = {"add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul}
_NAMES = {node.__name__: name for name, node in _OPERATIONS.items()}
_WIDE = ("int32", "int64", "uint32", "uint64")

#: Name prefix of the operators for wrapping operations.
PREFIX = nodes.WRAPPING_PREFIX


def hide(body: Stmt, params: Iterable[Var] = ()) -> Stmt:
    """Return the statement with the 32 and 64-bit integer arithmetic of its data as calls.

    Data are values read from memory, scalar parameters, values computed from both, and all unsigned values, except
    where they are indices, loop bounds or extents.

    Parameters
    ----------
    body
        A statement of scalar operations.
    params
        The parameters of the function.
    """
    return _Hide({p for p in params if not tirx.is_buffer_var(p)}).stmt(body)


def reveal(body: Stmt) -> Stmt:
    """Return the statement with wrapping operations, per lane where vectorized."""

    def restore(e: Call) -> Call:
        name = str(getattr(e.op, "name", ""))
        return _wrapping(name[len(PREFIX) :], *e.args) if name.startswith(PREFIX) else e

    return map_expr(body, restore, ir.Call)


def operation(e: Expr, a: Expr, b: Expr) -> Call:
    """Return the call for an addition, subtraction or product of ``a`` and ``b`` like ``e``."""
    return ir.Call(nodes.register_scalar_op(PREFIX + _NAMES[type(e).__name__]), [a, b], ret_ty=e.ty, span=e.span)


def plain(e: Expr) -> Expr:
    """Return a sum of products with plain operations instead of calls.

    Other expressions are left.
    """
    name = nodes.operator_name(e)
    if name.startswith(PREFIX):
        return _OPERATIONS[name[len(PREFIX) :]](plain(e.args[0]), plain(e.args[1]))
    return type(e)(plain(e.a), plain(e.b)) if type(e).__name__ in _NAMES else e


def wrapped(e: Expr) -> Expr:
    """Return a sum of products, its operations as calls: the inverse of ``plain``."""
    return operation(e, wrapped(e.a), wrapped(e.b)) if type(e).__name__ in _NAMES else e


class _Hide(StmtRewriter):
    def __init__(self, data: set[Var]) -> None:
        self.data = data
        #: Bits of loop variables, and of names for clamped values.
        self.bits: dict[Var, int] = {}

    def visit_For(self, s: Stmt) -> Stmt:
        bounds = nodes.as_int(s.min), nodes.as_int(s.extent)
        if all(isinstance(n, int) for n in bounds):
            self.bits[s.loop_var] = max(map(abs, (bounds[0], sum(bounds)))).bit_length() + 1
        body = self.body(s.body)
        return s if body.same_as(s.body) else replace_for(s, body)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        value = self.expr(s.value)
        return s if value.same_as(s.value) else tirx.BufferStore(s.buffer, value, list(s.indices), s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if self.is_data(s.value):
            self.data.add(s.var)
            low, high = Ranges().of(s.value) if type(s.value) is tirx.Max else (-1, 0)
            if low >= 0:
                self.bits[s.var] = high.bit_length() + 1
        return super().visit_Bind(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return s

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        body = self.body(s.body)
        return s if body.same_as(s.body) else tirx.AttrStmt(s.node, s.attr_key, s.value, body, s.span)

    def expr(self, e: Expr) -> Expr:
        if not collect(e, tuple(_OPERATIONS.values())):
            return e

        def arithmetic(x: Expr, mutator: Mutator) -> Expr:
            data = type_name(x) in _WIDE and self.is_data(x) and _bits(x, self.bits) > int(type_name(x)[-2:])
            a, b = mutator.mutate(x.a), mutator.mutate(x.b)
            if data:
                return operation(x, a, b)
            return x if a.same_as(x.a) and b.same_as(x.b) else type(x)(a, b, x.span)

        def let(x: Expr, mutator: Mutator) -> Expr:
            if self.is_data(x.value):
                self.data.add(x.var)
            value, body = mutator.mutate(x.value), mutator.mutate(x.body)
            return x if value.same_as(x.value) and body.same_as(x.body) else tirx.Let(x.var, value, body, x.span)

        handlers = [(tuple(_OPERATIONS.values()), arithmetic), (tirx.Let, let), (ir.TensorLoad, lambda x, _: x)]
        return structural.mutated(e, handlers)

    def is_data(self, e: Expr) -> bool:
        """Whether a value comes from memory or is unsigned."""
        if type_name(e).startswith("uint") or collect(e, ir.TensorLoad):
            return True
        return any(v in self.data for v in collect(e, tirx.Var))


def _bits(e: Expr, known: Mapping[Var, int]) -> int:
    """Return the bits, with sign, that hold every value of an expression; 99 if unknown.

    Products of 8-bit integers cannot overflow: as plain products they become the dot product instructions of
    processors.
    """
    if isinstance(e, tirx.IntImm):
        return int(e.value).bit_length() + 1
    if type(e) is tirx.Var:
        return known.get(e, 99)
    if isinstance(e, tirx.Broadcast):
        return _bits(e.value, known)
    if isinstance(e, tirx.Cast):
        source = type_name(e.value)
        if source.startswith(("int", "uint")):
            return min(_bits(e.value, known), int(source.lstrip("uint")) + source.startswith("u"))
    if isinstance(e, ir.TensorLoad):
        kind = type_name(e)
        return int(kind.lstrip("uint")) + kind.startswith("u") if kind.startswith(("int", "uint")) else 99
    if isinstance(e, tirx.Mul):
        return _bits(e.a, known) + _bits(e.b, known)
    if isinstance(e, (tirx.Add, tirx.Sub)) and not (isinstance(e, tirx.Sub) and type_name(e).startswith("uint")):
        return max(_bits(e.a, known), _bits(e.b, known)) + 1
    return 99


def _wrapping(name: str, a: Expr, b: Expr) -> Expr:
    kind = type_name(a)
    if isinstance(a, tirx.IntImm) and isinstance(b, tirx.IntImm):
        return constant(_folded(name, int(a.value), int(b.value), kind), kind, a)
    if kind in ("int32", "uint32"):
        # The sum, difference and product of two 32-bit numbers fit into signed 64 bits, except for unsigned products.
        wide = "uint64" if kind == "uint32" and name == "mul" else "int64"
        return cast(kind, _OPERATIONS[name](cast(wide, a), cast(wide, b)))
    build = {"add": _add64, "sub": _sub64, "mul": _mul64}[name]
    unsigned = bind(cast("uint64", a), lambda x: bind(cast("uint64", b), lambda y: build(x, y), "y"), "x")
    return cast(kind, unsigned)


def _folded(name: str, a: int, b: int, kind: str) -> int:
    """Return the result for constants, with wrapping, as copies of unrolled loops have them."""
    exact = {"add": a + b, "sub": a - b, "mul": a * b}[name]
    low, high = whole(kind)
    return (exact - low) % (high - low + 1) + low


def _high(like: Var) -> Expr:
    return tirx.shift_left(constant(1, "uint64", like), constant(63, "uint64", like))


def _low63(x: Expr) -> Expr:
    return tirx.bitwise_and(x, constant(2**63 - 1, "uint64", x))


def _add64(x: Var, y: Expr) -> Expr:
    """Add modulo 2^64: without the top bits no carry is lost; xor adds these."""
    top = tirx.bitwise_and(tirx.bitwise_xor(x, y), _high(x))
    return tirx.bitwise_xor(tirx.Add(_low63(x), _low63(y)), top)


def _sub64(x: Expr, y: Expr) -> Expr:
    """Subtract modulo 2^64: with the top bit set in ``x`` only, nothing borrows."""
    top = tirx.bitwise_and(tirx.bitwise_not(tirx.bitwise_xor(x, y)), _high(x))
    return tirx.bitwise_xor(tirx.Sub(tirx.bitwise_or(x, _high(x)), _low63(y)), top)


def _mul64(x: Var, y: Var) -> Expr:
    """Multiply by halves: the low product plus the low halves of shifted cross products."""
    half, mask = constant(32, "uint64", x), constant(2**32 - 1, "uint64", x)
    xl, yl = tirx.bitwise_and(x, mask), tirx.bitwise_and(y, mask)
    xh, yh = tirx.shift_right(x, half), tirx.shift_right(y, half)
    mixed = tirx.Add(tirx.bitwise_and(tirx.Mul(xh, yl), mask), tirx.bitwise_and(tirx.Mul(xl, yh), mask))
    low = tirx.Mul(xl, yl)
    return bind(low, lambda p: bind(tirx.shift_left(mixed, half), lambda q: _add64(p, q), "q"), "p")
