"""Instructions of NVIDIA's assembler in functions in C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import tile_core.language as T
from tile_tilelang.cxx_values import Element, Outside, Typed, computed


def execute(text: str, operands: Sequence[Element | Typed]) -> None:
    """Execute instructions, whose ``%0`` is the first operand."""
    for one in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        name, _, rest = one.partition(" ")
        to, *given = [
            operands[int(part[1:])] if part[0] == "%" else Typed("uint32", int(part, 0))
            for part in map(str.strip, rest.split(","))
        ]  # fmt: skip
        if name not in INSTRUCTIONS or not isinstance(to, Element):
            raise Outside(f"the instruction {one}")
        to.write(INSTRUCTIONS[name](*(value.read().to("uint32") for value in given)))


def _constant(number: int) -> Typed:
    return Typed("uint32", number)


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


#: Instruction -> its meaning, of words.
INSTRUCTIONS: dict[str, Callable[..., Typed]] = {
    "mov.b32": lambda a: a, "and.b32": _plain("and_"), "or.b32": _plain("or_"), "xor.b32": _plain("xor"),
    "shl.b32": _plain("lshift"), "shr.b32": _plain("rshift"), "lop3.b32": _selected, "prmt.b32": _permuted,
    "sub.f16x2": _by_lane(16, _difference), "mul.bf16x2": _by_lane(16, _product),
}  # fmt: skip
#: Function of CUDA -> its meaning, of words.
FUNCTIONS = {f"__v{name}4": _by_lane(8, lambda a, b, n=name: computed(n, a, b).to("uint8")) for name in ("add", "sub")}
