"""Short constructors for the IR: spans, constants, loads, stores, regions, loops and tile calls.

The IR is TVM's tirx (facts about it are in ``ir/grammar.py``). Everything here returns plain tirx objects.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.compat.types import BufferVar, Expr, ForKind, Span, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import Where
from tile_core.errors.base import printable
from tile_core.ir.attributes import ROLE, Attribute, Attrs

T = TypeVar("T")

_source_names: dict[str, Any] = {}
_spans: dict[tuple[str, int], Any] = {}
_registered: dict[str, bool] = {}  # whether they are operators on scalars
#: Name prefix of operators for float operations (``passes/float_rules.py``).
FLOAT_PREFIX = "tile.float_"
#: Name prefix of operators for integer operations that wrap (``passes/wrapping.py``).
WRAPPING_PREFIX = "tile.wrapping_"
#: Name prefixes of operators without side effects.
_ARITHMETIC = (FLOAT_PREFIX, WRAPPING_PREFIX)


def span_of(where: Where | None) -> Span:
    """Return the (shared) tirx span of a source place."""
    if where is None:
        return None
    key = (where.file, where.line)
    span = _spans.get(key)
    if span is None:
        name = _source_names.setdefault(where.file, ir.SourceName(printable(where.file)))
        span = _spans[key] = ir.Span(name, where.line, where.line, 1, 1)
    return span


def where_of(node: Stmt) -> Where | None:
    """Return the source place that a statement or expression carries."""
    span = getattr(node, "span", None)
    return None if span is None else _location(span)


@functools.lru_cache(maxsize=4096)
def _location(span: Span) -> Where | None:
    return Where(str(span.source_name.name), int(span.line)) if hasattr(span, "source_name") else None


def dtype_of(expr: Expr) -> str:
    """Return the element type name of an expression, without lanes; of a pointer, its own."""
    kind = expr.ty
    if type(kind) is ir.PointerType:
        return "handle"
    if type(kind) is not ir.PrimType:
        kind = kind.dtype
    known = structural.texts.get(structural.identity(kind))
    return structural.type_text(kind) if known is None else known[0]


def element_type(buffer: BufferVar) -> str:
    """Return the element type name of a buffer."""
    kind = buffer.ty.dtype
    known = structural.texts.get(structural.identity(kind))
    return structural.type_text(kind) if known is None else known[0]


def scope_of(buffer: BufferVar) -> str:
    """Return the storage scope of a buffer: ``"global"`` for parameters and bound addresses."""
    return str(buffer.ty.storage_scope) or "global"


def shape_of(buffer: BufferVar) -> list[Expr]:
    """Return the extents of a buffer, constant ones as Python ints."""
    return [int(d.value) if type(d) is tirx.IntImm else d for d in structural.items(buffer.ty.shape)]


def bytes_of(buffer: BufferVar) -> int:
    """Return the size of a buffer of constant extents."""
    return -(-math.prod(int(n) for n in shape_of(buffer)) * DTYPES[element_type(buffer)].bits // 8)


def as_int(value: Expr) -> Expr:
    """Return a Python int for a constant expression, anything else unchanged."""
    if type(value) is tirx.IntImm:
        return int(value.value)
    return value


@functools.lru_cache(maxsize=4096)
def int_const(value: int, dtype: str = "int32") -> Expr:
    """Return an integer constant; equal ones are one node."""
    return tirx.IntImm(dtype, value)


def const(value: float, dtype: str) -> Expr:
    """Return a constant of any element type."""
    if dtype == "bool":
        return tirx.IntImm("bool", int(bool(value)))
    if dtype.startswith(("int", "uint")):
        return tirx.IntImm(dtype, int(value))
    if dtype.startswith(("float8", "float4")):
        return tirx.Cast(dtype, tirx.FloatImm("float32", float(value)))
    return tirx.FloatImm(dtype, float(value))


def zero(dtype: str) -> Expr:
    """Return the zero of an element type, as reads out of bounds yield it.

    That is the number whose bits are 0.
    """
    return const(DTYPES[dtype].fill, dtype)


def cast(value: Expr, dtype: str) -> Expr:
    """Return ``value`` converted to ``dtype``; the same object if it already has that type."""
    return value if dtype_of(value) == dtype else tirx.Cast(dtype, value)


def load(buffer: BufferVar, indices: Sequence[Expr], span: Span = None) -> Expr:
    """Return a scalar load."""
    return tirx.BufferLoad(buffer, list(indices), span)


def store(buffer: BufferVar, value: Expr, indices: Sequence[Expr], span: Span = None) -> Stmt:
    """Return a scalar store; the value is converted to the element type of the buffer."""
    return tirx.BufferStore(buffer, cast(value, element_type(buffer)), list(indices), span)


def region(buffer: BufferVar, mins: Sequence[Expr], extents: Sequence[Expr]) -> Expr:
    """Return the region of ``buffer`` with the given corner and extents."""
    ranges = [ir.Range.from_min_extent(m, e) for m, e in zip(mins, extents, strict=True)]
    return tirx.BufferRegion(buffer, ranges)


def seq(statements: Sequence[Stmt | None]) -> Stmt:
    """Return one statement for several; nested sequences are flattened and ``None`` is left out."""
    flat: list[Stmt] = []
    for s in statements:
        if s is None:
            continue
        if type(s) is tirx.SeqStmt:
            flat.extend(structural.items(s.seq))
        elif type(s) is not tirx.Evaluate or not is_nop(s):
            flat.append(s)
    if not flat:
        return tirx.Evaluate(int_const(0))
    return flat[0] if len(flat) == 1 else structural.sequence(flat)


def is_nop(stmt: Stmt) -> bool:
    """Whether the statement does nothing."""
    return type(stmt) is tirx.Evaluate and type(stmt.value) is tirx.IntImm


def for_loop(
    var: Expr,
    extent: Expr,
    body: Stmt,
    role: str = "serial",
    *,
    kind: ForKind = None,
    annotations: Attrs | None = None,
    span: Span = None,
    start: Expr = 0,
    step: Expr | None = None,
) -> Stmt:
    """Return a loop over ``start <= var < start + extent`` with the given role."""
    kinds = {"unroll": tirx.ForKind.UNROLLED, "grid": tirx.ForKind.PARALLEL, "vectorized": tirx.ForKind.VECTORIZED}
    kind = kinds.get(role, tirx.ForKind.SERIAL) if kind is None else kind
    notes = {ROLE: role, **(annotations or {})}
    return tirx.For(var, start, extent, kind, body, None, notes, step, span)


def fresh(name: str, dtype: str = "int32") -> Expr:
    """Return a new variable."""
    return tirx.Var(name, dtype)


def nest(
    extents: Sequence[Expr],
    body: Callable[..., Stmt],
    role: str = "parallel",
    *,
    names: Sequence[str] | None = None,
    span: Span = None,
) -> Stmt:
    """Return a loop nest; ``body`` gets a variable, or 0, per extent."""
    names = names or [f"i{d}" for d in range(len(extents))]
    loop_vars = [fresh(n) for n in names]
    indices = [int_const(0) if as_int(e) == 1 else v for v, e in zip(loop_vars, extents, strict=True)]
    stmt = body(*indices)
    for var, extent in reversed(list(zip(loop_vars, extents, strict=True))):
        if as_int(extent) != 1:
            stmt = for_loop(var, extent, stmt, role, span=span)
    return stmt


def alloc(shape: Sequence[Expr], dtype: str, name: str, scope: str) -> tuple[BufferVar, Stmt]:
    """Return a new scratch buffer and the statement that allocates it."""
    buffer = tirx.decl_buffer(list(shape), dtype, name, scope=scope, layout=None)
    return buffer, tirx.AllocBuffer(buffer)


def register_op(name: str) -> Expr:
    """Register ``tile.<name>`` with TVM as an opaque operator, once per process."""
    full = f"tile.{name}"
    if full not in _registered:
        register_op_attr = tvm.ir.op.register_op_attr
        register_op_attr(full, "TCallEffectKind", tirx.CallEffectKind.Opaque.value)
        register_op_attr(full, "TScriptPrinterName", full, level=20)
        _registered[full] = False
    return ir.Op.get(full)


def register_scalar_op(full: str) -> Expr:
    """Register an elementwise operator on scalars and vectors with TVM, once per process.

    Not as a "pure" one: TVM's analyses substitute a pure value at every use, and visit the two sides of a select with
    it. Three nested exponentials took half a minute.
    """
    if full not in _registered:
        register_op_attr = tvm.ir.op.register_op_attr
        register_op_attr(full, "TCallEffectKind", tirx.CallEffectKind.ReadState.value)
        register_op_attr(full, "TVectorizable", True)
        register_op_attr(full, "TScriptPrinterName", full, level=20)
        _registered[full] = True
    return ir.Op.get(full)


def registered_ops() -> dict[str, bool]:
    """Return the operators registered in this process, by full name, and whether they are elementwise."""
    return dict(_registered)


def register_ops(names: Mapping[str, bool]) -> None:
    """Register operators of another process, without which its programs cannot be read."""
    for name, scalar in names.items():
        if scalar:
            register_scalar_op(name)
        else:
            register_op(name.removeprefix("tile."))


def mark(key: Attribute[T], node: T, body: Stmt, span: Span = None, value: Expr | None = None) -> Stmt:
    """Return a statement with a mark around it."""
    given = ir.StringImm(node) if isinstance(node, str) else int_const(node) if isinstance(node, int) else node
    return tirx.AttrStmt(given, key, int_const(0) if value is None else value, body, span)


def tile_call(name: str, args: Sequence[Expr], attrs: Attrs | None = None, ret: str = "void") -> Expr:
    """Return a call of the tile op ``name``."""
    return structural.call(register_op(name), list(args), ir.DictAttrs(dict(attrs or {})), _type_named(ret))


@functools.lru_cache(maxsize=64)
def _type_named(text: str) -> Any:
    return ir.PointerType(ir.PrimType("void")) if text == "handle" else ir.PrimType(text)


def is_tile_call(expr: Expr, name: str | None = None) -> bool:
    """Whether an expression calls a tile op: the named one, or any beyond arithmetic."""
    if type(expr) is not ir.Call:
        return False
    op = expr.op
    known = structural.op_texts.get(structural.identity(op))
    full = structural.op_name(expr) if known is None else known[0]
    if name is not None:
        return full == "tile." + name
    return full.startswith("tile.") and not full.startswith(_ARITHMETIC)


def operator_name(expr: Expr) -> str:
    """Return the name of an expression's operator without TVM's namespace (``tirx.`` or ``prim.``).

    Calls of tile ops keep their ``tile.``; an expression that is not a call of an operator has the empty name.
    """
    if type(expr) is not ir.Call:
        return ""
    known = structural.op_texts.get(structural.identity(expr.op))
    full = structural.op_name(expr) if known is None else known[0]
    space, _, name = full.partition(".")
    return name if space in ("tirx", "prim") else full
