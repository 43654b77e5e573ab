"""Matrix instructions of a warp: loads and stores of fragments, dense and sparse products."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tile_cuda.ptx.instruction import Instruction, PtxOperand, function_name

_INT8 = ("s8", "u8")
_FP8 = ("e4m3", "e5m2")
#: Element types of D, A, B and C, by kind of input.
_HALVES = ("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32")
_ACCUMULATORS = {
    "f32": ("f", 4, "float"), "f16": ("r", 2, "unsigned"), "s32": ("r", 4, "int"), "f64": ("d", 2, "double"),
}  # fmt: skip


def matrix_instructions() -> Iterator[Instruction]:
    """Yield the instructions."""
    yield from _fragments()
    yield from _dense()
    yield from _sparse()
    yield from _scaled()


SCALED = {
    (8, "float8_e8m0fnu", 32): ("mxf8f6f4", "1X"),
    (4, "float8_e8m0fnu", 32): ("mxf4", "2X"),
    (4, "float8_e4m3fn", 16): ("mxf4nvf4", "4X"),
}
"""Kinds of products with scales, and how many of a row they take, by the bits of an element, the scales and the
elements of a block. Powers of two for 16 elements came with PTX 9.1."""
_ELEMENTS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float4_e2m1fn": "e2m1"}
_SCALES = {"float8_e8m0fnu": "ue8m0", "float8_e4m3fn": "ue4m3"}


def scaled_name(a: str, b: str, scale: str, per: int) -> str:
    """Return the function of a product with scales, by the types of the language.

    It takes D, A, B, C, the scales of A, byte and thread of these, and the same of B.
    """
    return function_name(_scaled_opcode(a, b, scale, per))


def _scaled_opcode(a: str, b: str, scale: str, per: int) -> str:
    bits = 4 if a == "float4_e2m1fn" else 8
    kind, count = SCALED[bits, scale, per]
    shape = "m16n8k64" if bits == 4 else "m16n8k32"
    types = f"f32.{_ELEMENTS[a]}.{_ELEMENTS[b]}.f32.{_SCALES[scale]}"
    return f"mma.sync.aligned.{shape}.row.col.kind::{kind}.block_scale.scale_vec::{count}.{types}"


def _scaled() -> Iterator[Instruction]:
    operands = (
        PtxOperand("d", "f", 4, "out", "float"), PtxOperand("a", count=4), PtxOperand("b", count=2),
        PtxOperand("c", "f", 4, ctype="float"),
        *(PtxOperand(f"{x}{name}", register, ctype=ctype) for x in "ab" for name, register, ctype in (
            ("_scale", "r", "unsigned"), ("_byte", "h", "unsigned short"), ("_thread", "h", "unsigned short"))),
    )  # fmt: skip
    form = "{d}, {a}, {b}, {c}, {a_scale}, { {a_byte}, {a_thread} }, {b_scale}, { {b_byte}, {b_thread} }"
    for (bits, scale, per), (a, b) in product(SCALED, product(_ELEMENTS, _ELEMENTS)):
        if (bits == 4) == (a == "float4_e2m1fn") == (b == "float4_e2m1fn"):
            opcode = _scaled_opcode(a, b, scale, per)
            yield Instruction(function_name(opcode), opcode, operands, form, "sm_120a")


def _fragments() -> Iterator[Instruction]:
    for count, trans in product((1, 2, 4), ("", ".trans")):
        opcode = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        operands = (PtxOperand("d", count=count, role="out"), PtxOperand("p", role="shared"))
        yield Instruction(function_name(opcode), opcode, operands, "{d}, {p}", volatile=True, memory=True)
    for count, trans in product((1, 2, 4), ("", ".trans")):
        opcode = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        operands = (PtxOperand("p", role="shared", ctype="void"), PtxOperand("s", count=count))
        yield Instruction(function_name(opcode), opcode, operands, "{p}, {s}", "sm_90", volatile=True, memory=True)
    opcode = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield Instruction(function_name(opcode), opcode, (PtxOperand("d", role="result"), PtxOperand("a")), "{d}, {a}")


def _dense() -> Iterator[Instruction]:
    for k, types in product((8, 16), _HALVES):
        yield _mma(f"m16n8k{k}", types, a=k // 4, b=k // 8)
    for k in (4, 8):
        yield _mma(f"m16n8k{k}", "f32.tf32.tf32.f32", a=k // 2, b=k // 4)
    for k, satfinite, a, b in product((16, 32), ("", ".satfinite"), _INT8, _INT8):
        yield _mma(f"m16n8k{k}", f"s32.{a}.{b}.s32", a=k // 8, b=k // 16, mode=satfinite)
    for c, a, b in product(("f32", "f16"), _FP8, _FP8):
        yield _mma("m16n8k32", f"{c}.{a}.{b}.{c}", a=4, b=2, arch="sm_89")
    yield _mma("m8n8k4", "f64.f64.f64.f64", a=1, b=1, register="d")


def _mma(
    shape: str, types: str, *, a: int, b: int, mode: str = "", arch: str = "sm_80", register: str = "r"
) -> Instruction:
    opcode = f"mma.sync.aligned.{shape}.row.col{mode}.{types}"
    letter, count, ctype = _ACCUMULATORS[types.split(".")[0]]
    operands = (
        PtxOperand("d", letter, count, "out", ctype),
        PtxOperand("a", register, a),
        PtxOperand("b", register, b),
        PtxOperand("c", letter, count, ctype=ctype),
    )
    return Instruction(function_name(opcode), opcode, operands, "{d}, {a}, {b}, {c}", arch)


def _sparse() -> Iterator[Instruction]:
    for small, types in product((True, False), _HALVES):
        yield from _mma_sp("m16n8k16" if small else "m16n8k32", types, 2 if small else 4, selectors=4 if small else 2)
    for small in (True, False):
        shape = "m16n8k8" if small else "m16n8k16"
        yield from _mma_sp(shape, "f32.tf32.tf32.f32", 2 if small else 4, selectors=4 if small else 2)
    for small, satfinite, a, b in product((True, False), ("", ".satfinite"), _INT8, _INT8):
        shape, types = "m16n8k32" if small else "m16n8k64", f"s32.{a}.{b}.s32"
        yield from _mma_sp(shape, types, 2 if small else 4, selectors=2 if small else 1, mode=satfinite)
    for a, b in product(_FP8, _FP8):
        yield from _mma_sp("m16n8k64", f"f32.{a}.{b}.f32", 4, selectors=1, arch="sm_89")


def _mma_sp(
    shape: str, types: str, words: int, *, selectors: int, mode: str = "", arch: str = "sm_80"
) -> Iterator[Instruction]:
    """Yield a sparse product for each selector, a constant that ends the function's name."""
    opcode = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col{mode}.{types}"
    letter, count, ctype = _ACCUMULATORS[types.split(".")[0]]
    operands = (
        PtxOperand("d", letter, count, "out", ctype),
        PtxOperand("a", count=words),
        PtxOperand("b", count=words),
        PtxOperand("c", letter, count, ctype=ctype),
        PtxOperand("e"),
    )
    for selector in range(selectors):
        form = f"{{d}}, {{a}}, {{b}}, {{c}}, {{e}}, 0x{selector}"
        yield Instruction(f"{function_name(opcode)}_{selector}", opcode, operands, form, arch)
