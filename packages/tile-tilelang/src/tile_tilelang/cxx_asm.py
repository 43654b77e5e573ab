"""Instructions of NVIDIA's assembler in functions in C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_tilelang.cxx_values import CxxPointer, CxxValue, Element, Memory, Outside, Typed, computed


def execute(text: str, operands: Sequence[tuple[str, CxxValue]]) -> None:
    """Execute instructions, whose ``%0`` is the first operand, given with its constraint.

    Inputs are read before the first instruction, outputs are written behind the last one. A variable without a value
    among the inputs is a register of the instructions.
    """
    registers, writable = [], []
    for constraint, operand in operands:
        register, has_value = Element(CxxPointer(Memory("uint32"), 0, "uint32")), False
        if constraint[0] != "=" and (has_value := not (isinstance(operand, Element) and operand.is_unwritten())):
            register.write(_word(operand.read(), constraint))
        elif constraint[0] in "=+" and not isinstance(operand, Element):
            raise Outside("an output of an asm that is not a variable or an element")
        registers.append(register)
        writable.append(constraint[0] in "=+" or not has_value)
    for one in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        name, *rest = one.split(None, 1)
        parts = [p.strip() for p in "".join(rest).split(",")]
        count, function = INSTRUCTIONS.get(name, (0, _constant))
        to = re.fullmatch(r"%(\d+)", parts[0])
        if len(parts) != count + 1 or to is None or int(to[1]) >= len(registers) or not writable[int(to[1])]:
            raise Outside(f"the instruction {one}")
        registers[int(to[1])].write(function(*(_operand(p, registers, one) for p in parts[1:])))
    for register, (constraint, operand) in zip(registers, operands, strict=True):
        if isinstance(operand, Element) and constraint[0] in "=+":
            if DTYPES[operand.address.dtype].bits != 32 or DTYPES[operand.address.dtype].is_float:
                raise Outside(f"an output of an asm of type {operand.address.dtype}")
            operand.write(register.read())


def _word(value: Typed, constraint: str) -> Typed:
    if DTYPES[value.dtype].bits != 32 or DTYPES[value.dtype].is_float:
        raise Outside(f"an operand {constraint} of an asm of type {value.dtype}")
    return value.to("uint32")


def _operand(part: str, registers: Sequence[Element], instruction: str) -> Typed:
    """Return an operand of an instruction: a register or an integer."""
    if (at := re.fullmatch(r"%(\d+)", part)) and int(at[1]) < len(registers):
        return registers[int(at[1])].read()
    if (
        re.fullmatch(r"(0[xX][\da-fA-F]+|0[bB][01]+|[1-9]\d*|0)U?", part)
        and not (integer := int(part.rstrip("U"), 0)) >> 32
    ):
        return _constant(integer)
    raise Outside(f"the operand {part} of the instruction {instruction}")


def _constant(integer: int) -> Typed:
    return Typed("uint32", integer)


def _selected(a: Typed, b: Typed, c: Typed, table: Typed) -> Typed:
    """Return for each bit the entry of a table of eight: ``lop3``."""
    found, rows = _constant(0), table.known()
    for row in (r for r in range(8) if rows >> r & 1):
        term = _constant(0xFFFFFFFF)
        for bit, x in zip((4, 2, 1), (a, b, c), strict=True):
            term = computed("and_", term, x if row & bit else computed("xor", x, _constant(0xFFFFFFFF)))
        found = computed("or_", found, term)
    return found


def _permuted(a: Typed, b: Typed, order: Typed) -> Typed:
    """Return four of eight bytes: ``prmt``."""
    found, order_ = _constant(0), order.known()
    if order_ & 0x8888:
        raise Outside("an order of bytes that repeats their signs")
    for byte in range(4):
        word, inside = divmod(order_ >> 4 * byte & 7, 4)
        part = computed("and_", computed("rshift", (a, b)[word], _constant(8 * inside)), _constant(255))
        found = computed("or_", found, computed("lshift", part, _constant(8 * byte)))
    return found


def _by_lane(bits: int, function: Callable[..., Typed]) -> Callable[..., Typed]:
    """Return a function of words that is another one of each of their parts."""

    def apply(*words: Typed) -> Typed:
        found = _constant(0)
        for at in map(_constant, range(0, 32, bits)):
            part = function(*(computed("rshift", w, at).to(f"uint{bits}") for w in words))
            found = computed("or_", found, computed("lshift", part.bits_as(f"uint{bits}").to("uint32"), at))
        return found

    return apply


def _difference(a: Typed, b: Typed) -> Typed:
    """Return a difference of float16."""
    # float32 has it exactly, or rounds so that rounding again is right
    x, y = (T.cast(p.bits_as("float16").tile(), "float32") for p in (a, b))
    return Typed("float16", T.cast(x - y, "float16"))


def _product(a: Typed, b: Typed) -> Typed:
    """Return a product of bfloat16 by integers: a device may take subnormal operands for zero."""
    x, y = (T.cast(p.tile(), "int32") for p in (a, b))
    exponents = [(v >> 7) & 255 for v in (x, y)]
    parts = [(v & 127) | T.if_then_else(e > 0, 128, 0) for v, e in zip((x, y), exponents, strict=True)]
    scale = T.max(exponents[0], 1) + T.max(exponents[1], 1) - 268
    first = T.max(T.min(scale, 127), -126)
    size = T.cast(parts[0] * parts[1], "float32")
    for power in (first, T.max(T.min(scale - first, 127), -126)):
        size = size * T.reinterpret((power + 127) << 23, "float32")
    plain = T.cast(a.bits_as("bfloat16").tile(), "float32") * T.cast(b.bits_as("bfloat16").tile(), "float32")
    signed = T.if_then_else(((x ^ y) >> 15) > 0, -size, size)
    return Typed("bfloat16", T.cast(T.if_then_else(T.max(*exponents) == 255, plain, signed), "bfloat16"))


def _plain(name: str) -> Callable[..., Typed]:
    return lambda a, b: computed(name, a, b)


#: Instruction -> the count of its inputs, and its meaning, of words.
INSTRUCTIONS: dict[str, tuple[int, Callable[..., Typed]]] = {
    "mov.b32": (1, lambda a: a), "and.b32": (2, _plain("and_")), "or.b32": (2, _plain("or_")),
    "xor.b32": (2, _plain("xor")), "shl.b32": (2, _plain("lshift")), "shr.b32": (2, _plain("rshift")),
    "lop3.b32": (4, _selected), "prmt.b32": (3, _permuted), "sub.f16x2": (2, _by_lane(16, _difference)),
    "mul.bf16x2": (2, _by_lane(16, _product)),
}  # fmt: skip
#: Function of CUDA -> its meaning, of words.
FUNCTIONS = {f"__v{name}4": _by_lane(8, lambda a, b, n=name: computed(n, a, b).to("uint8")) for name in ("add", "sub")}
