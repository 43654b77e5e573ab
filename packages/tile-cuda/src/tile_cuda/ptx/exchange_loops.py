"""Atomic updates without an instruction: compare-and-swap loops that repeat until no other thread interferes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tile_cuda.ptx.instruction import Instruction, PtxOperand
from tile_cuda.ptx.memory import SCOPES
from tile_cuda.ptx.values import VALUES, PtxValue

#: Stores of a 4-bit number in half a byte, as updates of the byte: another thread may store the other half.
HALVES = {"low": "(before & 0xf0) | x", "high": "(before & 0x0f) | (x << 4)"}


#: Updates of single bits -> their operators.
BITS = {"and": "&", "or": "|", "xor": "^"}


def exchange_loops() -> Iterator[Instruction]:
    """Yield the updates, for every part of memory and order."""
    for space, order in product(SCOPES, ("", "acquire", "release", "acq_rel")):
        for kind, value in product(("add", "max", "min", *BITS), VALUES.values()):
            if loops(kind, value.name):
                yield _loop(kind, value, space, order)
        for half in HALVES if not order else ():
            yield _loop(half, VALUES["uint8"], space, order)


def loops(kind: str, name: str) -> bool:
    """Whether there is such a loop for a type."""
    narrow = name in ("s8", "u8", "s16", "u16")
    if narrow or kind in BITS:
        return narrow
    return name == "bf16" if kind == "add" else name in ("f16", "bf16", "f32", "f64")


def loop_name(kind: str, name: str, space: str, order: str) -> str:
    """Return the name of a loop."""
    return "_".join(["atomic", *([order] if order else []), space, kind, name])


def _combined(kind: str, value: PtxValue) -> str:
    """Return the new value, from ``before`` and ``x``."""
    if kind in BITS:
        return f"before {BITS[kind]} x"
    return HALVES.get(kind) or value.combine("sum" if kind == "add" else kind, "before", "x")


def _loop(kind: str, value: PtxValue, space: str, order: str) -> Instruction:
    bits = max(value.bits, 16)
    word = {16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}[bits]
    qualified = f"{order}_{SCOPES[space]}_{space}" if order else space
    read, exchange = f"ld_relaxed_{SCOPES[space]}_{space}_b{bits}", f"atom_{qualified}_cas_b{bits}"
    inside = _combined(kind, value)
    if value.bits == 8:
        pointer: tuple[str, ...] = (
            "unsigned short* const word = (unsigned short*)((unsigned long long)p & ~1ull);",
            "const int shift = ((unsigned long long)p & 1) * 8;",
        )
        before, after = (
            f"({value.ctype})(old >> shift)",
            f"(unsigned short)((old & (0xff00 >> shift)) | ((unsigned char)({inside}) << shift))",
        )
    else:
        pointer = (f"{word}* const word = ({word}*)p;",)
        before = value.decode("old")
        after = value.encode(inside if value.is_integer is False else f"({inside})")
    body = (
        *pointer,
        f"{word} old = {read}(word);",
        "for (;;) {",
        f"  const {value.ctype} before = {before};",
        f"  const {word} found = {exchange}(word, old, {after});",
        "  if (found == old) return before;",
        "  old = found;",
        "}",
    )
    operands = (
        PtxOperand("old", value.register, role="result", ctype=value.ctype),
        PtxOperand("p", role=space, ctype=value.ctype),
        PtxOperand("x", value.register, ctype=value.ctype),
    )
    needs = (read, exchange, *value.needs)
    return Instruction(loop_name(kind, value.name, space, order), operands=operands, body=body, needs=needs)
