"""Two small numbers as 16-bit floats in one word, without conversions.

A float whose last digit is worth 1, such as 128 in bfloat16, holds a small natural number in its last digits, and the
difference to that float is exact. Two numbers of 4 bits of one byte, such as quantized weights, take few operations::

    word = (byte | byte << 12) & 0x000f000f    the halves are both numbers
    pair = (word | 0x43004300) - 0x43004300    bfloat16: 128 + n - 128

Floats of 4 bits become floats with a smaller exponent by moving their bits, 0.5 a subnormal one, and one product with a
power of two corrects it exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.quotients import simplified, with_simplified_indices
from tile_core.analysis.ranges import Ranges
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr, replace_for, statements, substitute
from tile_core.numerics.build import cast, type_name
from tile_core.numerics.codecs import encode
from tile_core.passes import wrapping
from tile_core.passes.packed_instructions import PackedFloats

__all__ = ["FLOAT4", "NIBBLES", "float4_pair", "integer_pair", "nibble_pair", "with_integers_inline"]

#: Types of 4 bits, and the bit that a number's code flips to count from its least number.
NIBBLES = {"int4": 8, "uint4": 0}
#: The type of 4-bit floats: a sign, two bits of an exponent whose bias is 1, and one more.
FLOAT4 = "float4_e2m1fn"

#: By type the power of two whose last digit is worth 1, and the numbers that its digits hold.
_MAGIC = {"bfloat16": 128, "float16": 1024}
_BOTH = 0x10001
#: By type the bits of a fraction and the bias of an exponent.
_FORMATS = {"bfloat16": (7, 127), "float16": (10, 15)}


def integer_pair(e: Expr, at: Callable[[Expr, int], Expr], packed: PackedFloats, analyzer: Analyzer) -> Expr | None:
    """Return the word of two small integers as floats; ``None`` of other numbers.

    Parameters
    ----------
    e
        A conversion to a 16-bit float, perhaps by way of float32.
    at
        Returns an expression in one of the two elements, 0 for the low half of the word.
    packed
        The instructions; one of them subtracts both halves of a word from those of another.
    analyzer
        The ranges and divisors of variables.
    """
    kind = type_name(e)
    subtract = packed.subtraction(kind)
    number = e.value.value if type(e.value) is tirx.Cast and type_name(e.value) == "float32" else e.value
    if subtract is None or kind not in _MAGIC or not type_name(number).startswith(("int", "uint")):
        return None
    ranges, magic = Ranges(), _MAGIC[kind]
    (low, offset), (high, other) = (_without_offset(at(number, k), ranges) for k in (0, 1))
    bounds = [ranges.of(low), ranges.of(high)]
    least, most = min(b[0] for b in bounds), max(b[1] for b in bounds)
    if offset != other or most - least >= magic or abs(least + offset) > magic:
        return None
    if least:
        low, high = (cast("int32", e) - nodes.int_const(least) for e in (low, high))
    code = int(encode(np.asarray(float(magic)), kind))
    numbers, flipped = _halves(low, high, ranges, analyzer)
    word = _flipped(numbers, flipped | code, packed)
    return subtract(word, _word(int(encode(np.asarray(float(magic - least - offset)), kind))))


def float4_pair(
    e: Expr, at: Callable[[Expr, int], Expr], kind: str, packed: PackedFloats, analyzer: Analyzer
) -> Expr | None:
    """Return the word of two 4-bit floats, made of integers, as floats; ``None`` of others.

    Parameters
    ----------
    e
        A 4-bit float.
    at, packed, analyzer
        See ``integer_pair``.
    kind
        The type of the floats.
    """
    if nodes.operator_name(e) != "reinterpret":
        return None
    numbers, flipped = _halves(at(e.args[0], 0), at(e.args[0], 1), Ranges(), analyzer)
    return _float4(tirx.bitwise_xor(numbers, _word(flipped)) if flipped else numbers, kind, packed)


def nibble_pair(byte: Expr, source: str, kind: str, packed: PackedFloats) -> Expr | None:
    """Return the word of the two nibbles of a byte as floats, or ``None``.

    Parameters
    ----------
    byte
        The byte.
    source, kind
        Types of the numbers and of the floats.
    packed
        See ``integer_pair``.
    """
    if source == FLOAT4:
        return _float4(_of_byte(cast("uint32", byte), 15), kind, packed)
    subtract = packed.subtraction(kind)
    if subtract is None or kind not in _MAGIC:
        return None
    flipped, magic = NIBBLES[source], _MAGIC[kind]
    code, base = (int(encode(np.asarray(float(x)), kind)) for x in (magic, magic + flipped))
    return subtract(_flipped(_of_byte(cast("uint32", byte), 15), flipped | code, packed), _word(base))


def with_integers_inline(loop: Stmt) -> Stmt:
    """Return a loop without names of integers, so that conversions show their bits.

    Integers that are computed from memory that the loop writes, or by calls, keep their names.
    """
    written = {s.buffer for s in collect(loop.body, tirx.BufferStore)}

    def is_inline(var: Var, value: Expr) -> bool:
        if not type_name(var).startswith(("int", "uint")) or any(map(_is_opaque, collect(value, ir.Call))):
            return False
        return not any(x.source in written for x in collect(value, ir.TensorLoad))

    def let(e: Expr, mutator: Mutator) -> Expr:
        value = mutator.mutate(e.value)
        if is_inline(e.var, value):
            return mutator.mutate(substitute(e.body, {e.var: value}))
        return tirx.Let(e.var, value, mutator.mutate(e.body), e.span)

    body = structural.mutated(loop.body, [(tirx.Let, let)]) if collect(loop.body, tirx.Let) else loop.body
    names: dict[Var, Expr] = {}
    kept: list[Stmt] = []
    for s in statements(body):
        new = substitute(s, names)
        if type(new) is tirx.Bind and is_inline(new.var, new.value):
            names[new.var] = new.value
        else:
            kept.append(new)
    return loop if body.same_as(loop.body) and not names else replace_for(loop, nodes.seq(kept))


def _float4(codes: Expr, kind: str, packed: PackedFloats) -> Expr | None:
    """Return the floats of two codes in a word.

    The product must keep subnormal numbers: 0.5 is one until it is multiplied.
    """
    multiply = packed.operations.get((kind, "mul"))
    if multiply is None or kind not in _FORMATS:
        return None
    digits, bias = _FORMATS[kind]
    size, sign = digits - 1, 12  # how far the size and the sign move up
    if size + 4 <= sign:
        moved = codes * nodes.int_const((1 << size) + (1 << sign), "uint32")  # no copy overlaps the other
        bits = tirx.bitwise_and(moved, _word(7 << size | 1 << 15))
    else:
        sizes, signs = (tirx.shift_left(codes, nodes.int_const(up, "uint32")) for up in (size, sign))
        bits = tirx.bitwise_or(tirx.bitwise_and(sizes, _word(7 << size)), tirx.bitwise_and(signs, _word(1 << 15)))
    return multiply(bits, _word(int(encode(np.asarray(2.0 ** (bias - 1)), kind))))


def _is_opaque(call: Expr) -> bool:
    name = nodes.operator_name(call)
    return not name.startswith((wrapping.PREFIX, "shift_", "bitwise_"))


def _word(code: int) -> Expr:
    return nodes.int_const(code * _BOTH, "uint32")


def _flipped(numbers: Expr, bits: int, packed: PackedFloats) -> Expr:
    """Flip bits of both halves of a word, with its mask if possible."""
    if packed.masked is not None and type(numbers) is tirx.BitwiseAnd:
        return packed.masked(numbers.a, numbers.b, _word(bits))
    return tirx.bitwise_xor(numbers, _word(bits))


def _without_offset(e: Expr, ranges: Ranges) -> tuple[Expr, int]:
    """Return an integer without the constants that are added to it, and their total."""
    if type(e) is tirx.Cast and _holds(e, ranges):
        inner, offset = _without_offset(e.value, ranges)
        return inner, offset
    plain = wrapping.plain(e) if nodes.operator_name(e).startswith(wrapping.PREFIX) else e
    if type(plain) in (tirx.Add, tirx.Sub) and _does_not_wrap(plain, ranges):
        added = nodes.as_int(plain.b)
        if isinstance(added, int):
            inner, offset = _without_offset(plain.a, ranges)
            return inner, offset + (added if type(plain) is tirx.Add else -added)
    return e, 0


def _holds(e: Expr, ranges: Ranges) -> bool:
    """Whether a conversion of an integer keeps its value."""
    return type_name(e.value).startswith(("int", "uint")) and ranges.of(e) == ranges.of(e.value)


def _does_not_wrap(e: Expr, ranges: Ranges) -> bool:
    """Whether a sum or difference has the value of the mathematical one."""
    (a, b), (c, d) = ranges.of(e.a), ranges.of(e.b)
    exact = (a + c, b + d) if type(e) is tirx.Add else (a - d, b - c)
    return ranges.of(e) == exact


def _halves(low: Expr, high: Expr, ranges: Ranges, analyzer: Analyzer) -> tuple[Expr, int]:
    """Return a word with two natural numbers, and the bits to flip in both halves."""
    low, high = (_stripped(e, ranges) for e in (low, high))
    if type(low) is type(high) is tirx.BitwiseXor:
        flipped = nodes.as_int(low.b)
        if isinstance(flipped, int) and flipped == nodes.as_int(high.b) and flipped >= 0:
            inner, more = _halves(low.a, high.a, ranges, analyzer)
            return inner, flipped ^ more
    nibbles = _nibbles(low, high, ranges, analyzer)
    if nibbles is not None:
        return nibbles, 0
    words = [cast("uint32", e) for e in (low, high)]
    return tirx.bitwise_or(words[0], tirx.shift_left(words[1], nodes.int_const(16, "uint32"))), 0


def _stripped(e: Expr, ranges: Ranges) -> Expr:
    """Return an expression of the same natural number without conversions and masks that change nothing."""
    while True:
        if type(e) is tirx.Cast and _holds(e, ranges):
            e = e.value
        elif type(e) is tirx.BitwiseAnd and _keeps(e.b, e.a, ranges):
            e = e.a
        else:
            return e


def _keeps(mask: Expr, e: Expr, ranges: Ranges) -> bool:
    """Whether a mask has all bits of a number."""
    bits, (least, most) = nodes.as_int(mask), ranges.of(e)
    return isinstance(bits, int) and bits & (bits + 1) == 0 and least >= 0 and most <= bits


def _nibbles(low: Expr, high: Expr, ranges: Ranges, analyzer: Analyzer) -> Expr | None:
    """Return the word of two nibbles of an integer, adjacent or 16 bits apart.

    It is ``None`` of other numbers.
    """
    if type(low) is not tirx.BitwiseAnd or type(high) is not tirx.BitwiseAnd:
        return None
    mask = nodes.as_int(low.b)
    if not isinstance(mask, int) or mask != nodes.as_int(high.b) or not 0 < mask < 16:
        return None
    low, high = (_stripped(e.a, ranges) for e in (low, high))
    (of, first), (same, second) = (_shift(e, ranges) for e in (low, high))
    of, same = (with_simplified_indices(e, analyzer) for e in (of, same))
    apart = analyzer.simplify(_amount(second, analyzer) - _amount(first, analyzer))
    if not tvm_ffi.structural_equal(of, same, map_free_vars=False) or nodes.as_int(apart) not in (4, 16):
        return None
    from_ = _amount(first, analyzer)
    if nodes.as_int(apart) == 16:
        # Of a word of 32 bits: an amount beyond 31 would begin anew.
        bound = analyzer.const_int_bound(from_)
        if not 0 <= bound.min_value <= bound.max_value <= 12:
            return None
        return _of_word(of, from_, mask)
    word = "uint64" if type_name(low).endswith("64") else "uint32"
    bits = cast(word, of)
    if nodes.as_int(from_) != 0:
        bits = tirx.shift_right(bits, cast(word, from_))
    bits = cast("uint32", bits)
    least, most = ranges.of(of)
    if least < 0 or most > 255:
        bits = tirx.bitwise_and(bits, nodes.int_const(255, "uint32"))
    return _of_byte(bits, mask)


def _of_word(word: Expr, first: Expr, mask: int) -> Expr:
    """Return the word of two nibbles that are 16 bits apart."""
    shifted = tirx.shift_right(word, cast(type_name(word), first))
    return tirx.bitwise_and(cast("uint32", shifted), _word(mask))


def _of_byte(bits: Expr, mask: int) -> Expr:
    """Return the word of the two nibbles of a byte.

    One product puts a copy of the byte 12 bits further up.
    """
    return tirx.bitwise_and(bits * nodes.int_const(1 + (1 << 12), "uint32"), _word(mask))


def _shift(e: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """Return the shifted integer, and by how many bits."""
    name = nodes.operator_name(e)
    if type(e) is tirx.RShift or name == "shift_right":
        of, by = (e.a, e.b) if type(e) is tirx.RShift else e.args
        return _stripped(of, ranges), by
    return e, nodes.int_const(0)


def _amount(e: Expr, analyzer: Analyzer) -> Expr:
    """Return a number of bits as an index that an analyzer simplifies."""

    def plain(x: Expr) -> Expr:
        if type(x) is tirx.Cast:
            return x.value if type_name(x.value).startswith("int") else x
        if type(x) is tirx.BitwiseAnd:
            mask = nodes.as_int(x.b)
            if isinstance(mask, int) and mask & (mask + 1) == 0:
                return tirx.floormod(x.a, nodes.int_const(mask + 1, type_name(x.a)))
        return wrapping.plain(x) if nodes.operator_name(x).startswith(wrapping.PREFIX) else x

    return simplified(cast("int32", map_expr(e, plain, (tirx.Cast, tirx.BitwiseAnd, ir.Call))), analyzer)
