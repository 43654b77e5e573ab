"""One loop over adjacent elements, rewritten to two elements per iteration (see ``pack_floats``)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.quotients import are_equal
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Key, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import bodies_of, collect, replace_for, substitute, uses_var
from tile_core.numerics.build import cast, type_name
from tile_core.numerics.codecs import decode, encode
from tile_core.passes.packed_instructions import PackedFloats
from tile_core.passes.packed_integers import FLOAT4, NIBBLES, float4_pair, integer_pair, nibble_pair

__all__ = ["PackedLoop"]

_NODES = {
    tirx.Add: "add", tirx.Sub: "sub", tirx.Mul: "mul",
    tirx.LT: "lt", tirx.LE: "le", tirx.GT: "gt", tirx.GE: "ge", tirx.EQ: "eq",
}  # fmt: skip
_CALLS = {
    f"{nodes.FLOAT_PREFIX}{name}": name
    for name in ("add", "sub", "mul", "max", "min", "max_nan", "min_nan", "lt", "le", "gt", "ge", "eq")
} | {"fabs": "abs"}
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq"})
_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


class Arrays(Protocol):
    """Facts about the arrays in registers of a program."""

    packed: PackedFloats
    fuses: bool
    analyzer: Analyzer

    def view(self, buffer: BufferVar) -> BufferVar | None:
        """Return the view of an array whose elements are pairs; ``None`` if it has none."""

    def is_private(self, buffer: BufferVar) -> bool:
        """Whether only its own name accesses the memory of an array in registers."""


class PackedLoop:
    """Rewrites one loop.

    Parameters
    ----------
    arrays
        The arrays of the program.
    loop
        A loop from 0 with an even constant extent.
    """

    def __init__(self, arrays: Arrays, loop: Stmt) -> None:
        self.arrays, self.packed, self.loop = arrays, arrays.packed, loop
        self.analyzer = arrays.analyzer
        v = self.v = loop.loop_var
        kind = nodes.dtype_of(v)
        self.q = nodes.fresh(str(v.name), kind)
        self.analyzer.bind(self.q, ir.Range.from_min_extent(nodes.zero(kind), loop.extent // 2), True)
        twice = self.q * nodes.int_const(2, kind)
        #: What a variable is in each of the two elements, and the word that holds both.
        self.elements: dict[Var, tuple[Expr, Expr]] = {v: (twice, twice + nodes.int_const(1, kind))}
        self.words: dict[Var, Var] = {}
        self.out: list[Stmt] = []
        self.operations = 0
        self._named: dict[Key, Var] = {}
        self._choices: dict[Key, tuple[Expr, Expr, Expr] | None] = {}
        self._element = 0
        #: A type to whose pairs 4-bit floats are converted; a bfloat16 is the shorter way to float32.
        self._exact = next((t for t in ("bfloat16", "float16") if (t, "mul") in self.packed.operations), None)
        #: Whether the current expression is evaluated only under a condition; what its branch defines and writes.
        self._guarded = False
        self._inner: set[Var] = set()

    def rewritten(self) -> Stmt | None:
        """Return the loop with two elements per iteration; ``None`` if no instruction computes two."""
        parts = _parts_of(self.loop.body)
        if not _is_plain(parts) or not self._are_independent():
            return None
        for s in parts:
            self._named.clear()  # a store may change what a name was computed from
            self._choices.clear()
            if isinstance(s, tirx.IfThenElse):
                self._if(s)
            elif isinstance(s, tirx.Bind):
                self._bind(s)
            else:
                self._store(s)
        if not self.operations:
            return None
        body, kind = nodes.seq(self.out), nodes.dtype_of(self.q)
        extent = int(self.loop.extent) // 2
        if extent == 1:
            return substitute(body, {self.q: nodes.zero(kind)})
        return replace_for(self.loop, body, loop_var=self.q, extent=nodes.int_const(extent, kind))

    def _handlers(self) -> list[Any]:
        """Return the functions that replace parts of expressions."""
        branches = (tirx.And, tirx.Or, tirx.Select)
        return [(tirx.Cast, self._cast), (ir.Call, self._call), (tirx.Var, self._var), (branches, self._branch)]

    def _are_independent(self) -> bool:
        """Whether iterations access only own elements of written arrays, and call nothing."""
        calls = collect(self.loop.body, ir.Call)
        if any(nodes.is_tile_call(c) or nodes.operator_name(c) in ("address_of", "buffer_data") for c in calls):
            return False
        if collect(self.loop.body, tirx.Let):
            return False
        written: dict[BufferVar, list[Expr]] = {}
        for s in collect(self.loop.body, tirx.BufferStore):
            if not self.arrays.is_private(s.buffer) or len(s.indices) != 1:
                return False
            written.setdefault(s.buffer, []).append(s.indices[0])
        for e in collect(self.loop.body, ir.TensorLoad):
            if e.source in written:
                written[e.source] += list(e.indices)
        return all(self._is_own(indices) for indices in written.values())

    def _is_own(self, indices: list[Expr]) -> bool:
        first, low, high = indices[0], *(self._at(indices[0], k) for k in (0, 1))
        step = nodes.as_int(self.analyzer.simplify(high - low))
        same = all(tvm_ffi.structural_equal(first, i, map_free_vars=False) for i in indices)
        return same and isinstance(step, int) and step != 0

    # Statements

    def _bind(self, s: Stmt) -> None:
        if self._is_invariant(s.value):
            self.out.append(s)
            return
        if self._is_packable(s.value):
            self.words[s.var] = self._name(s.value, str(s.var.name))
            return
        values = self._at(s.value, 0), self._at(s.value, 1)
        if are_equal(values[0], values[1], self.analyzer):
            self.out.append(tirx.Bind(s.var, values[0], s.span))
            return
        both = [tirx.Var(s.var.name, s.var.ty) for _ in (0, 1)]
        self.out += [tirx.Bind(v, x, s.span) for v, x in zip(both, values, strict=True)]
        self.elements[s.var] = (both[0], both[1])

    def _store(self, s: Stmt) -> None:
        pair = self._pair(s.buffer, s.indices)
        value = None if pair is None else self._stored(s.value, nodes.element_type(s.buffer))
        if pair is not None and value is not None:
            self.out.append(tirx.BufferStore(pair.source, value, list(pair.indices), s.span))
            return
        if self._is_packable(s.value) and not isinstance(s.value, ir.TensorLoad):
            self._name(s.value)  # before either element is stored
        for k in (0, 1):
            value, indices = self._at(s.value, k), [self._at(i, k) for i in s.indices]
            self.out.append(tirx.BufferStore(s.buffer, value, indices, s.span))

    def _if(self, s: Stmt) -> None:
        """Write the branch of each element, before it what both have in common."""
        self._inner = {x.buffer for x in collect(s, tirx.BufferStore)}.union(x.var for x in collect(s, tirx.Bind))
        self.out += [self._branch_at(s, k) for k in (0, 1)]
        self._inner = set()

    def _branch_at(self, s: Stmt, k: int) -> Stmt:
        """Return a statement of a branch for one of the elements."""
        if isinstance(s, tirx.IfThenElse):
            condition = self._at(s.condition, k)
            outer, self._guarded = self._guarded, True
            sides = [nodes.seq([self._branch_at(x, k) for x in _parts_of(side)]) for side in bodies_of(s)]
            self._guarded = outer
            return tirx.IfThenElse(condition, sides[0], sides[1] if len(sides) == 2 else None, s.span)
        value = self._at(s.value, k)
        if isinstance(s, tirx.BufferStore):
            return tirx.BufferStore(s.buffer, value, [self._at(i, k) for i in s.indices], s.span)
        var = tirx.Var(s.var.name, s.var.ty)
        self.elements[s.var] = (var, var)
        return tirx.Bind(var, value, s.span)

    def _stored(self, value: Expr, kind: str) -> Expr | None:
        """Return the pair that a value is in two elements, if one expression computes it."""
        if kind in self.packed.join:
            return self._word(value)
        if isinstance(value, ir.TensorLoad):
            return self._pair_of(value)
        of = type_name(value.value) if isinstance(value, tirx.Cast) else ""
        if kind not in self.packed.encode or of not in ("float32", *self.packed.join):
            return None
        self.operations += 1
        return self.packed.encode[kind](*(cast("float32", self._at(value.value, k)) for k in (0, 1)))

    # One element

    def _at(self, e: Expr, k: int) -> Expr:
        """Return an expression for one of the two elements."""
        outer, self._element = self._element, k
        new = structural.mutated(e, self._handlers())
        self._element = outer
        return new

    def _var(self, e: Var, _: Mutator) -> Expr:
        if e in self.words:
            return _half(self.words[e], self._element, type_name(e))
        found = self.elements.get(e)
        return e if found is None else found[self._element]

    def _cast(self, e: Expr, mutator: Mutator) -> Expr:
        """Take an element from the word of both if that is computed at once."""
        kind, of = type_name(e), type_name(e.value)
        if self._can_name(e):
            return _half(self._name(e), self._element, kind)
        by = "float16" if of in self.packed.decode else self._exact if of == FLOAT4 else None
        value = e.value if by is None else tirx.Cast(by, e.value)
        plain = kind == "float32" and of == "bfloat16" and self._pair_of(value) is not None
        if (kind == "float32" or kind in self.packed.join) and (plain or self._can_name(value)):
            self.operations += 1
            return cast(kind, _wide_half(self._name(value), self._element, type_name(value)))
        return mutator.default_mutate(e)

    def _can_name(self, e: Expr) -> bool:
        """Whether the word of both elements is better computed at once, and may be."""
        if isinstance(e, (tirx.Var, ir.TensorLoad)) or self._is_invariant(e) or not self._is_packable(e):
            return False
        return not self._guarded or self._is_total(e)

    def _call(self, e: Expr, mutator: Mutator) -> Expr:
        if nodes.operator_name(e) != "if_then_else":
            return mutator.default_mutate(e)
        condition = mutator.mutate(e.args[0])
        return tirx.if_then_else(condition, *self._under(e.args[1:], mutator), span=e.span)

    def _branch(self, e: Expr, mutator: Mutator) -> Expr:
        if isinstance(e, tirx.Select):
            condition = mutator.mutate(e.condition)
            return tirx.Select(condition, *self._under((e.true_value, e.false_value), mutator), e.span)
        return type(e)(mutator.mutate(e.a), *self._under((e.b,), mutator), e.span)

    def _under(self, sides: tuple[Expr, ...], mutator: Mutator) -> list[Expr]:
        outer, self._guarded = self._guarded, True
        new = [mutator.mutate(x) for x in sides]
        self._guarded = outer
        return new

    # Both elements

    def _name(self, e: Expr, name: str = "pair") -> Var:
        """Return the variable of the word that an expression is in both elements."""
        key = tvm_ffi.StructuralKey((e,))
        found = self._named.get(key)
        if found is None:
            word = self._word(e)
            found = self._named[key] = tirx.Var(name, "uint32")
            self.out.append(tirx.Bind(found, word))
        return found

    def _is_packable(self, e: Expr) -> bool:
        """Whether one expression computes both elements."""
        kind = type_name(e)
        if kind not in self.packed.join:
            return False
        if isinstance(e, tirx.Var):
            return e in self.words
        if isinstance(e, ir.TensorLoad):
            return self._pair_of(e) is not None
        if isinstance(e, tirx.Cast):
            of = type_name(e.value)
            if of in self.packed.decode:
                return kind == "float16" and self._pair_of(e.value) is not None
            return of == "float32" or of in self.packed.join or self._integers(e) is not None
        return self._choice(e) is not None

    def _word(self, e: Expr) -> Expr:
        """Return the word that an expression of a 16-bit type is in both elements."""
        kind = type_name(e)
        if self._is_invariant(e):
            return self._repeated(e)
        if isinstance(e, tirx.Var) and e in self.words:
            return self.words[e]
        pair = self._pair_of(e)
        if pair is not None:
            return pair
        if isinstance(e, tirx.Cast) and self._is_packable(e):
            of = type_name(e.value)
            if of in self.packed.decode:
                self.operations += 1
                return self.packed.decode[of](self._pair_of(e.value))
            found = self._integers(e)
            if found is None and of == "float32":
                found = self._operation(e)
            if found is not None:
                self.operations += 1
                return found
            return self.packed.join[kind](*(cast("float32", self._at(e.value, k)) for k in (0, 1)))
        choice = self._choice(e)
        if choice is not None:
            mask, *sides = choice
            self.operations += 1
            yes, no = (self._word(x) for x in sides)
            return tirx.bitwise_or(tirx.bitwise_and(yes, mask), tirx.bitwise_and(no, tirx.bitwise_not(mask)))
        low, high = (self._at(e, k) for k in (0, 1))
        return _both(low, low if are_equal(low, high, self.analyzer) else high)

    def _integers(self, e: Expr) -> Expr | None:
        """Return the word of two small integers, or 4-bit floats, that become floats."""
        byte = self._pair_of(e.value) if type_name(e.value) in (*NIBBLES, FLOAT4) else None
        if byte is not None:
            return nibble_pair(byte, type_name(e.value), type_name(e), self.packed)
        if type_name(e.value) == FLOAT4:
            return float4_pair(e.value, self._at, type_name(e), self.packed, self.analyzer)
        return integer_pair(e, self._at, self.packed, self.analyzer)

    def _repeated(self, e: Expr) -> Expr:
        """Return the word that holds a loop-invariant number twice."""
        if isinstance(e, tirx.FloatImm):
            return tirx.IntImm("uint32", int(encode(np.asarray(float(e.value)), type_name(e))) * 0x10001)
        one = self._at(e, 0)
        return _both(one, one)

    def _operation(self, e: Expr) -> Expr | None:
        """Return the packed instruction whose result is a rounded operation of float32."""
        kind = type_name(e)
        name, operands = _operation_of(e.value)
        if name == "sub" and _is_negative_zero(operands[0]) and (kind, "neg") in self.packed.operations:
            name, operands = "neg", operands[1:]
        narrow = [_narrowed(x, kind) for x in operands]
        if (kind, name) not in self.packed.operations or name in _COMPARISONS or not all(map(_is_expr, narrow)):
            return None
        fused = self._fused(kind, name, narrow) if name in ("add", "sub") and self.arrays.fuses else None
        return self.packed.operations[kind, name](*map(self._word, narrow)) if fused is None else fused

    def _fused(self, kind: str, name: str, operands: list[Expr]) -> Expr | None:
        """Return the fused form of a sum whose operand is a product."""
        fma = self.packed.operations.get((kind, "fma"))
        neg = self.packed.operations.get((kind, "neg"))
        if fma is None or neg is None:
            return None
        for at, other in ((0, 1), (1, 0)):
            factors = _factors(operands[at], kind)
            if factors is None or self._is_invariant(operands[at]):
                continue
            a, b = map(self._word, factors)
            c = self._word(operands[other])
            if name == "sub":
                a, c = (a, neg(c)) if at == 0 else (neg(a), c)
            return fma(a, b, c)
        return None

    def _choice(self, e: Expr) -> tuple[Expr, Expr, Expr] | None:
        """Return the mask and the sides of a choice whose sides may both be evaluated."""
        if isinstance(e, tirx.Select):
            condition, yes, no = e.condition, e.true_value, e.false_value
        elif nodes.operator_name(e) == "if_then_else":
            condition, yes, no = e.args
        else:
            return None
        key = tvm_ffi.StructuralKey((e,))
        if key not in self._choices:
            mask = self._mask(condition) if self._is_total(yes) and self._is_total(no) else None
            self._choices[key] = None if mask is None else (mask, yes, no)
        return self._choices[key]

    def _mask(self, e: Expr) -> Expr | None:
        """Return the word whose halves are all ones where a condition holds in their element."""
        if isinstance(e, tirx.Not):
            inner = self._mask(e.a)
            return None if inner is None else tirx.bitwise_not(inner)
        if isinstance(e, (tirx.And, tirx.Or)):
            join = tirx.bitwise_and if isinstance(e, tirx.And) else tirx.bitwise_or
            sides = [self._mask(e.a), self._mask(e.b) if self._is_total(e.b) else None]
            return join(*sides) if all(map(_is_expr, sides)) else None
        name, operands = _operation_of(e)
        for kind in self.packed.join:
            narrow = [_narrowed(x, kind) for x in operands]
            if name in _COMPARISONS and (kind, name) in self.packed.operations and all(map(_is_expr, narrow)):
                return self.packed.operations[kind, name](*map(self._word, narrow))
        return None

    # Facts

    def _is_invariant(self, e: Expr) -> bool:
        return not any(v in self.elements or v in self.words for v in collect(e, tirx.Var))

    def _is_total(self, e: Expr) -> bool:
        """Whether an expression may be evaluated where the program does not, at little cost."""
        if any(nodes.operator_name(c) not in _CALLS for c in collect(e, ir.Call)):
            return False
        used = [*collect(e, tirx.Var), *(x.source for x in collect(e, ir.TensorLoad))]
        if any(v in self._inner for v in used):
            return False
        if any(not isinstance(nodes.as_int(d.b), int) for d in collect(e, _DIVISIONS) if _is_integer(d)):
            return False
        return all(self._is_inside(x) for x in collect(e, ir.TensorLoad))

    def _is_inside(self, e: Expr) -> bool:
        """Whether a load reads an element of an array in registers in every iteration."""
        if not nodes.scope_of(e.source).startswith("local") or len(e.indices) != 1:
            return False
        size = nodes.as_int(e.source.shape[0])
        bounds = [self.analyzer.const_int_bound(self._index(e.indices[0], k)) for k in (0, 1)]
        return isinstance(size, int) and all(b.min_value >= 0 and b.max_value < size for b in bounds)

    def _index(self, e: Expr, k: int) -> Expr:
        return self.analyzer.simplify(self._at(e, k))

    def _pair_of(self, e: Expr) -> Expr | None:
        """Return the word of both elements of a load that may be made here."""
        if not isinstance(e, ir.TensorLoad) or (self._guarded and not self._is_total(e)):
            return None
        return self._pair(e.source, e.indices)

    def _pair(self, buffer: BufferVar, indices: list[Expr]) -> Expr | None:
        """Return the load of both elements if they are halves of one word."""
        view = self.arrays.view(buffer) if len(indices) == 1 and uses_var(indices[0], self.v) else None
        if view is None or collect(indices[0], ir.TensorLoad):
            return None
        low, high = (self._index(indices[0], k) for k in (0, 1))
        two = nodes.int_const(2, nodes.dtype_of(low))
        if nodes.as_int(self.analyzer.simplify(high - low)) != 1:
            return None
        if nodes.as_int(self.analyzer.simplify(tirx.floormod(low, two))) != 0:
            return None
        return nodes.load(view, [self.analyzer.simplify(tirx.floordiv(low, two))])


def _parts_of(s: Stmt) -> list[Stmt]:
    return structural.items(s.seq) if isinstance(s, tirx.SeqStmt) else [s]


def _is_plain(parts: list[Stmt]) -> bool:
    """Whether statements are bindings, stores and branches of these."""
    branches = [s for s in parts if isinstance(s, tirx.IfThenElse)]
    rest = (isinstance(s, (tirx.Bind, tirx.BufferStore, tirx.IfThenElse)) for s in parts)
    return all(rest) and all(_is_plain(_parts_of(side)) for s in branches for side in bodies_of(s))


def _operation_of(e: Expr) -> tuple[str, list[Expr]]:
    """Return the name of a float32 operation, or an empty one, and its operands."""
    name = _NODES.get(type(e))
    if name is not None:
        return name, [e.a, e.b]
    name = _CALLS.get(nodes.operator_name(e), "")
    return name, list(e.args) if name else []


def _narrowed(e: Expr, kind: str) -> Expr | None:
    """Return the number of a 16-bit type that a float32 is in any case."""
    if isinstance(e, tirx.Cast) and type_name(e.value) == kind and type_name(e) == "float32":
        return e.value
    if isinstance(e, tirx.FloatImm) and type_name(e) == "float32":
        code = encode(np.asarray(float(e.value)), kind)
        return tirx.FloatImm(kind, float(e.value)) if float(decode(code, kind)) == float(e.value) else None
    return None


def _factors(e: Expr, kind: str) -> list[Expr] | None:
    name, operands = _operation_of(e.value) if isinstance(e, tirx.Cast) else ("", [])
    narrow = [_narrowed(x, kind) for x in operands]
    return narrow if name == "mul" and all(map(_is_expr, narrow)) else None


def _is_expr(e: Expr | None) -> bool:
    return e is not None


def _is_negative_zero(e: Expr) -> bool:
    inner = e.value if isinstance(e, tirx.Cast) else e
    return isinstance(inner, tirx.FloatImm) and float(inner.value) == 0 and bool(np.signbit(float(inner.value)))


def _is_integer(division: Expr) -> bool:
    return type_name(division).startswith(("int", "uint"))


def _both(low: Expr, high: Expr) -> Expr:
    """Return the word of two 16-bit numbers, perhaps the same one twice."""
    bits = _bits(low)
    other = bits if low.same_as(high) else _bits(high)
    return tirx.bitwise_or(bits, tirx.shift_left(other, nodes.int_const(16, "uint32")))


def _bits(e: Expr) -> Expr:
    return cast("uint32", tirx.reinterpret("uint16", e))


def _half(word: Var, k: int, kind: str) -> Expr:
    """Return the float in one half of a word."""
    shifted = tirx.shift_right(word, nodes.int_const(16, "uint32")) if k else word
    return tirx.reinterpret(kind, cast("uint16", shifted))


def _wide_half(word: Var, k: int, kind: str) -> Expr:
    """Return the float32 of one half of a word."""
    if kind != "bfloat16":
        return cast("float32", _half(word, k, kind))
    upper = nodes.int_const(0xFFFF0000, "uint32")  # a bfloat16 is the upper half of a float32
    bits = tirx.bitwise_and(word, upper) if k else tirx.shift_left(word, nodes.int_const(16, "uint32"))
    return tirx.reinterpret("float32", bits)
