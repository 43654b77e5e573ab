"""Storage types: rewrite element types that a target lacks to integers with conversions.

An expression of a type that is not native becomes an expression of its *code*: uint8 for the 8-bit floats and float4,
uint16 for bfloat16 and float16, int8 and uint8 for int4 and uint4. Loads, stores, variables and selects only carry
codes; casts and arithmetic convert. bfloat16 and float16 arithmetic is done in float32 and rounded after every
operation, 4-bit integers wrap. The conversions are those of ``tile_core.numerics.exprs``.

4-bit elements of parameters (and of memory that is viewed as another type) are packed two to a byte, as
``tile_core.numerics.rules`` states: a load takes its nibble, a store merges it into the byte. Such a store is not
independent of its neighbour, so enclosing parallel or vectorised loops become serial; grid loops stay, so
blocks must own whole bytes.

The pass runs on scalar IR, before vectorization. tfloat32 needs nothing here: it is float32 in TVM, and its casts are
rounded when they are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tile_core.compat import structural
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Array, BufferVar, Call, Expr, Mutator, Span, Stmt, UnaryNode, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import as_type, bind, bits_of, cast, constant, constants, equal, type_name
from tile_core.numerics.codecs import decode, encode
from tile_core.numerics.exprs import decode_expr, encode_expr, int4_expr, nibble_expr, widen_expr
from tile_core.records import dataclass

__all__ = ["STORAGE", "Conversions", "legalize_floats"]

STORAGE = {
    name: f"{'int' if d.kind == 'int' else 'uint'}{max(d.bits, 8)}"
    for name, d in DTYPES.items()
    if d.is_packed or (d.is_float and d.bits <= 16)
}
"""The type of the code that represents an element in expressions and in scratch buffers."""

PACKED = frozenset(name for name, d in DTYPES.items() if d.is_packed)
"""Types packed two per byte in parameters."""

_INTEGERS = frozenset({"int4", "uint4"})
#: Types whose values bfloat16 has.
_IN_BFLOAT16 = frozenset(name for name, d in DTYPES.items() if d.bits <= 8)
#: Calls whose loads denote addresses: the element there is not converted.
_ADDRESSED = frozenset({"tile.address", "tile.move"})
_CONSTANTS = (tirx.FloatImm, tirx.IntImm)
_BINARY = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max,
    tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE,
)  # fmt: skip
_BITS = (tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.LShift, tirx.RShift)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


@dataclass(frozen=True)
class Conversions:
    """Conversions between codes and native numbers of a target; others are integer arithmetic.

    Attributes
    ----------
    decode
        By the type of the code: a function from the code and the requested type (float16, float32 or float64).
    encode
        By the type of the code: a function from a float32 number, which follows ``numerics/rules.py`` for every input.
    split
        The statement that stores one half of a byte where other threads may store the other one: of the buffer of
        bytes, the indices, the code as ``uint8`` and which half (``"low"`` or ``"high"``). Stores that
        ``ir.calls.SPLIT`` marks become that.
    nibble
        Returns the element of a type in a byte, by its parity; ``None`` for arithmetic.
    in_bytes
        Whether bytes become 4-bit integers by 8-bit arithmetic, of which vectors hold more.
    """

    decode: Mapping[str, Callable[[Expr, str], Expr]] = field(default_factory=dict)
    encode: Mapping[str, UnaryNode] = field(default_factory=dict)
    split: Callable[[BufferVar, list[Expr], Expr, str], Stmt] | None = None
    nibble: Callable[[Expr, Expr, str], Expr] | None = None
    in_bytes: bool = False


def legalize_floats(func: Expr, native: frozenset[str], conversions: Conversions | None = None) -> Expr:
    """Rewrite all element types of ``func`` that are not in ``native`` to storage types.

    Parameters
    ----------
    func
        A PrimFunc of scalar statements, without tile ops.
    native
        Names of the types that the target loads, stores and computes with. Types that have no entry in ``STORAGE``
        are native in any case.
    conversions
        The target's native conversions.

    Returns
    -------
    PrimFunc
        ``func`` itself if it has none of these types.
    """
    foreign = frozenset(STORAGE) - native
    if not _mentions(func, foreign):
        return func
    rewriter = _RewriteStored(foreign, conversions or Conversions())
    rewriter.packed = _packed_buffers(func, foreign & PACKED)
    params = [rewriter.var(p) for p in func.params]
    body = structural.mutated(func.body, rewriter.callbacks())
    return tirx.PrimFunc(params, body, func.ret_type, func.attrs, func.span)


class _RewriteStored:
    """Replaces variables and expressions of foreign types; ``callbacks`` are the entries of a structural mutation."""

    def __init__(self, foreign: frozenset[str], conversions: Conversions) -> None:
        self.foreign, self.conversions = foreign, conversions
        self.vars: dict[Var, Var] = {}
        self.packed: set[BufferVar] = set()  # the buffers, as they were, whose new form holds two elements per byte
        self.packed_stores = 0
        self.split = False

    def callbacks(self) -> list[Any]:
        return [
            (tirx.Var, self.var), (ir.TensorLoad, self.load), (tirx.BufferStore, self.store), (tirx.Bind, self.bind),
            (tirx.For, self.loop), (tirx.AttrStmt, self.attribute), (tirx.Cast, self.cast),
            (_CONSTANTS, self.number), ((*_BINARY, *_BITS), self.binary), (tirx.BitwiseNot, self.inverted),
            (tirx.Select, self.select),
            (tirx.Let, self.let), (ir.Call, self.call),
        ]  # fmt: skip

    def is_foreign(self, expr: Expr) -> bool:
        return type_name(expr) in self.foreign

    # Variables and buffers

    def var(self, var: Var, _: Mutator = None) -> Var:
        new = self.vars.get(var)
        if new is None:
            new = self.vars[var] = self._renewed(var)
        return new

    def _renewed(self, var: Var) -> Var:
        if not tirx.is_buffer_var(var):
            return tirx.Var(var.name, STORAGE[type_name(var)], var.span) if self.is_foreign(var) else var
        if _element(var) not in self.foreign:
            return var
        shape, strides, offset = list(var.shape), list(var.strides), var.ty.elem_offset
        storage = STORAGE[_element(var)]
        if var in self.packed:
            storage = "uint8"
            shape[-1:] = [_halved(d, up=True) for d in shape[-1:]]
            strides[:-1] = [_halved(s) for s in strides[:-1]]
            offset = _halved(offset)
        return tirx.decl_buffer(
            shape, storage, var.name, None, strides or None, offset, var.scope(), var.ty.data_alignment,
            var.ty.offset_factor, var.span, layout=var.ty.layout,
        )  # fmt: skip

    # Statements

    def bind(self, s: Stmt, mutator: Mutator) -> Stmt:
        value, var = mutator.mutate(s.value), self.var(s.var)
        return s if value.same_as(s.value) and var.same_as(s.var) else tirx.Bind(var, value, s.span)

    def store(self, s: Stmt, mutator: Mutator) -> Stmt:
        buffer = self.var(s.buffer)
        if buffer.same_as(s.buffer):
            return mutator.default_mutate(s)
        value, indices = mutator.mutate(s.value), [mutator.mutate(i) for i in s.indices]
        if s.buffer not in self.packed:
            return tirx.BufferStore(buffer, value, indices, s.span)
        self.packed_stores += 1
        halved = [*indices[:-1], *[_halved(i) for i in indices[-1:]]]
        old = tirx.BufferLoad(buffer, halved, s.span)
        # Masked before the conversion: TVM refuses to fold a negative constant to an unsigned one.
        nibble = cast("uint8", value & constant(15, type_name(value), value))
        if self.split and self.conversions.split is not None:
            return self.half(buffer, halved, nibble, indices[-1] if indices else None, s.span)
        merged = bind(nibble, lambda v: _merge(old, v, indices[-1] if indices else None))
        return tirx.BufferStore(buffer, merged, halved, s.span)

    def half(self, buffer: BufferVar, halved: list[Expr], nibble: Expr, index: Expr, span: Span) -> Stmt:
        """Return the store of a nibble that preserves concurrent stores of its byte's other nibble."""
        assert self.conversions.split is not None
        code = tirx.Var("code", "uint8")
        low, high = (self.conversions.split(buffer, halved, code, which) for which in ("low", "high"))
        if index is None or isinstance(index, tirx.IntImm):
            body = high if index is not None and int(index) % 2 else low
        else:
            name = type_name(index)
            even = equal(index % constant(2, name, index), constant(0, name, index))
            body = tirx.IfThenElse(even, low, high, span)
        return tirx.SeqStmt([tirx.Bind(code, nibble, span), body])

    def attribute(self, s: Stmt, mutator: Mutator) -> Stmt:
        if s.attr_key != attributes.SPLIT:
            return mutator.default_mutate(s)
        outer, self.split = self.split, True
        body = mutator.mutate(s.body)
        self.split = outer
        return body

    def loop(self, s: Stmt, mutator: Mutator) -> Stmt:
        before = self.packed_stores
        new = mutator.default_mutate(s)
        if self.packed_stores == before or s.kind == tirx.ForKind.PARALLEL:
            return new
        notes = dict(new.annotations or {})
        if notes.get("tile.role") in ("parallel", "vectorized"):
            notes["tile.role"] = "serial"
        kind = tirx.ForKind.SERIAL if s.kind == tirx.ForKind.VECTORIZED else s.kind
        return tirx.For(
            new.loop_var, new.min, new.extent, kind, new.body, new.thread_binding, notes, new.step, new.span
        )

    # Expressions

    def load(self, e: Expr, mutator: Mutator) -> Expr:
        buffer = self.var(e.source)
        if buffer.same_as(e.source):
            return mutator.default_mutate(e)
        indices = [mutator.mutate(i) for i in e.indices]
        if e.source not in self.packed:
            return tirx.BufferLoad(buffer, indices, e.span)
        byte = self.byte(e, mutator)
        index = indices[-1] if indices else constant(0, "int32", byte)
        if self.conversions.nibble is not None and _element(e.source) in _INTEGERS:
            return self.conversions.nibble(byte, index % constant(2, type_name(index), index), _element(e.source))
        code = nibble_expr(byte, index)
        return int4_expr(code, "int4", in_bytes=self.conversions.in_bytes) if _element(e.source) == "int4" else code

    def byte(self, e: Expr, mutator: Mutator) -> Expr:
        """The byte of an element of a packed buffer; an element of any other one."""
        if e.source not in self.packed:
            return mutator.mutate(e)
        indices = [mutator.mutate(i) for i in e.indices]
        return tirx.BufferLoad(self.var(e.source), [*indices[:-1], *[_halved(i) for i in indices[-1:]]], e.span)

    def number(self, e: Expr, _: Mutator) -> Expr:
        name = type_name(e)
        return _constant_code(np.asarray(e.value), name) if name in self.foreign else e

    def cast(self, e: Expr, mutator: Mutator) -> Expr:
        source, target = type_name(e.value), type_name(e)
        if source not in self.foreign and target not in self.foreign:
            return mutator.default_mutate(e)
        if target in self.foreign and source in ("float32", "int32") and isinstance(e.value, _CONSTANTS):
            return _constant_code(np.asarray(e.value.value, source), target)
        value = mutator.mutate(e.value)
        if source == target:
            return value
        if source in self.foreign:
            value = self.value_of(value, source, target if target in ("float16", "float64") else "float32")
        if target == "bfloat16" and target in self.foreign and source in _IN_BFLOAT16:
            value = cast("float32", value)
            return cast("uint16", bits_of(value) >> constant(16, "uint32", value))
        return self.code_of(value, target) if target in self.foreign else cast(target, value)

    def value_of(self, code: Expr, name: str, to: str = "float32") -> Expr:
        """Return the number of a code: in ``to`` if native, else float32; integers unchanged."""
        if name in _INTEGERS:
            return code
        to = "float32" if to in self.foreign else to
        if isinstance(code, tirx.IntImm):
            # A number and not its decoding: TVM substitutes constants, and would visit inner variables twice.
            bits = np.asarray(code.value).astype(STORAGE[name])
            return constant(float(decode(bits, name, to)), to, code)
        decoded = self.conversions.decode.get(name)
        return decode_expr(code, name, to) if decoded is None else decoded(code, to)

    def code_of(self, value: Expr, name: str) -> Expr:
        """The code of a number."""
        if name in _INTEGERS:
            return int4_expr(value, name, in_bytes=self.conversions.in_bytes)
        wide, encoded = widen_expr(value), self.conversions.encode.get(name)
        return encode_expr(wide, name) if encoded is None or type_name(wide) != "float32" else encoded(wide)

    def binary(self, e: Expr, mutator: Mutator) -> Expr:
        name = type_name(e.a)
        if name not in self.foreign:
            return mutator.default_mutate(e)
        a, b = (self.value_of(mutator.mutate(x), name) for x in (e.a, e.b))
        result = type(e)(a, b, e.span)
        return result if isinstance(e, _COMPARISONS) else self.code_of(result, name)

    def inverted(self, e: Expr, mutator: Mutator) -> Expr:
        name = type_name(e)
        if name not in self.foreign:
            return mutator.default_mutate(e)
        return self.code_of(tirx.bitwise_not(mutator.mutate(e.a)), name)

    def select(self, e: Expr, mutator: Mutator) -> Expr:
        if not self.is_foreign(e):
            return mutator.default_mutate(e)
        return tirx.Select(*[mutator.mutate(x) for x in (e.condition, e.true_value, e.false_value)], e.span)

    def let(self, e: Expr, mutator: Mutator) -> Expr:
        value, var, body = mutator.mutate(e.value), self.var(e.var), mutator.mutate(e.body)
        same = value.same_as(e.value) and var.same_as(e.var) and body.same_as(e.body)
        return e if same else tirx.Let(var, value, body, e.span)

    def call(self, e: Call, mutator: Mutator) -> Expr:
        types = [type_name(a) for a in e.args if isinstance(a, ir.Expr) and hasattr(a.ty, "dtype")]
        if nodes.is_tile_call(e, "move"):
            args = [self.byte(a, mutator) for a in e.args]
        else:
            args = [mutator.mutate(a) for a in e.args]
        name, result = getattr(e.op, "name", ""), type_name(e)
        if name in ("tirx.address_of", "tirx.buffer_data"):
            return self.pointer(e, args, name)
        if name in _ADDRESSED or (result not in self.foreign and not self.foreign.intersection(types)):
            same = all(a.same_as(b) if hasattr(a, "same_as") else a == b for a, b in zip(args, e.args, strict=True))
            return e if same else ir.Call(e.op, args, attrs=e.attrs, ret_ty=e.ty, span=e.span)
        if name == "tirx.reinterpret":
            to = as_type(STORAGE[result] if result in self.foreign else result, e)
            return args[0] if as_type(type_name(args[0]), args[0]) == to else tirx.reinterpret(to, args[0], e.span)
        if name in ("prim.if_then_else", "tirx.if_then_else"):
            return tirx.if_then_else(*args, span=e.span)
        if name in ("tirx.isnan", "tirx.isinf", "tirx.isfinite"):
            return getattr(tirx, name.removeprefix("tirx."))(self.value_of(args[0], types[0]), e.span)
        values = [
            self.value_of(new, type_name(old)) if self.is_foreign(old) else new
            for old, new in zip(e.args, args, strict=True)
        ]
        if result not in self.foreign:
            return ir.Call(e.op, values, attrs=e.attrs, ret_ty=e.ty, span=e.span)
        compute = STORAGE[result] if result in _INTEGERS else "float32"
        return self.code_of(ir.Call(e.op, values, attrs=e.attrs, ret_ty=compute, span=e.span), result)

    def pointer(self, e: Expr, args: Sequence[Expr], name: str) -> Call:
        """The address of a buffer or element; its pointer type follows the storage type."""
        if args[0].same_as(e.args[0]):
            return e
        return tirx.buffer_data(args[0]) if name == "tirx.buffer_data" else tirx.address_of(args[0])


def _mentions(func: Expr, types: frozenset[str]) -> bool:
    """Whether any variable, constant, cast or call of ``func`` has one of ``types``.

    Every such value starts at one.
    """
    if any(_name_of_var(p) in types for p in func.params):
        return True
    found = collect(func.body, (tirx.Var, tirx.FloatImm, tirx.IntImm, tirx.Cast, ir.Call))
    one_of_each = {identity(x.ty): x for x in found}  # a thousand expressions have a dozen types
    return any(_name_of_var(x) in types for x in one_of_each.values())


def _packed_buffers(func: Expr, types: frozenset[str]) -> set[BufferVar]:
    """Return the buffers of ``types`` with two elements per byte: parameters and their aliases.

    A scratch buffer of 4-bit elements is packed as soon as one view reinterprets its memory as another type, and a
    4-bit view of other memory always is; views between 4-bit types follow each other.
    """
    packed = {p for p in func.params if tirx.is_buffer_var(p) and _element(p) in types}
    # What moves between memory and registers in bytes is packed on both sides.
    moves = [c for c in collect(func.body, ir.Call) if nodes.is_tile_call(c, "move")] if types else []
    packed |= {a.source for c in moves for a in c.args if _element(a.source) in types}
    pairs: list[tuple[BufferVar, BufferVar]] = []

    def visit(s: Stmt) -> None:
        source = s.data.args[0] if isinstance(s.data, ir.Call) and len(s.data.args) else None
        if tirx.is_buffer_var(source):
            pairs.append((s.buffer, source))

    if types:
        tvm_ffi.structural_walk(func.body, [(tirx.DeclBuffer, visit)])
    for _ in pairs:  # a chain of views is at most this long
        for a, b in [*pairs, *((b, a) for a, b in pairs)]:
            if _element(a) in types and (b in packed or _element(b) not in PACKED):
                packed.add(a)
    return packed


def _name_of_var(node: Expr) -> str:
    kind = node.ty
    return type_name(node) if type(kind) is ir.PrimType or not tirx.is_buffer_var(node) else _element(node)


def _element(buffer: BufferVar) -> str:
    return str(buffer.dtype)


def _constant_code(value: Array, name: str) -> Expr:
    code = int(encode(value, name))
    return tirx.IntImm(STORAGE[name], int(decode(code, name)) if name in _INTEGERS else code)


def _halved(index: Expr, up: bool = False) -> Expr:
    """Return the byte of a nibble index; with ``up`` a size in bytes."""
    if isinstance(index, (int, tirx.IntImm)):
        return tirx.IntImm(type_name(index) if hasattr(index, "ty") else "int32", (int(index) + int(up)) // 2)
    return (index + int(up)) // 2


def _merge(old: Expr, code: Var, index: Expr) -> Expr:
    """The byte ``old`` with the nibble of element ``index`` replaced by ``code``."""
    k = constants("uint8", old)
    if index is None:
        return (old & k(0xF0)) | code
    name = type_name(index)
    shift = cast("uint8", index % constant(2, name, index) * constant(4, name, index))
    return (old & (k(0xF0) >> shift)) | (code << shift)
