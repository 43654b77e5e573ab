"""Conversions, integer instructions, and exchanges between threads of a warp."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tile_cuda.ptx.instruction import Instruction, PtxOperand, function_name

#: PTX type: register class and C++ type.
KINDS = {
    "u8": ("h", "unsigned char"), "s8": ("h", "signed char"), "u16": ("h", "unsigned short"), "s16": ("h", "short"),
    "b16": ("h", "unsigned short"), "u32": ("r", "unsigned"), "s32": ("r", "int"), "b32": ("r", "unsigned"),
    "u64": ("l", "unsigned long long"), "s64": ("l", "long long"), "b64": ("l", "unsigned long long"),
    "f32": ("f", "float"), "f64": ("d", "double"), "f16": ("h", "f16"), "bf16": ("h", "bf16"),
    "f16x2": ("r", "unsigned"), "bf16x2": ("r", "unsigned"), "tf32": ("r", "unsigned"),
    "e4m3x2": ("h", "unsigned short"), "e5m2x2": ("h", "unsigned short"),
}  # fmt: skip


def scalar_instructions() -> Iterator[Instruction]:
    """Yield the instructions."""
    yield from _addresses()
    yield from _conversions()
    yield from _extremes()
    yield from _approximations()
    yield from _packed()
    yield from _integers()
    yield from _exchanges()
    yield from _moves()


def _addresses() -> Iterator[Instruction]:
    operands = (PtxOperand("a", role="result"), PtxOperand("p", role="shared"))
    yield Instruction("shared_address", operands=operands, body=("return (unsigned)__cvta_generic_to_shared(p);",))


def _pure(opcode: str, result: str, *inputs: tuple[str, str], arch: str = "sm_80", name: str = "") -> Instruction:
    """Return an instruction without effects: ``result`` and inputs are PTX types."""
    operands = [PtxOperand("d", KINDS[result][0], 0, "result", KINDS[result][1])]
    operands += [PtxOperand(n, KINDS[kind][0], ctype=KINDS[kind][1]) for n, kind in inputs]
    form = ", ".join(f"{{{o.name}}}" for o in operands)
    return Instruction(name or function_name(opcode), opcode, tuple(operands), form, arch)


def _moves() -> Iterator[Instruction]:
    """Yield moves, whose results are opaque to the compiler (``tile_cuda.emit.masked_shifts``)."""
    for bits in (32, 64):
        yield _pure(f"mov.b{bits}", f"s{bits}", ("x", f"s{bits}"), name=f"mov_b{bits}_opaque")


def _conversions() -> Iterator[Instruction]:
    for opcode in ("cvt.f32.f16", "cvt.f64.f16", "cvt.rn.f16.f32", "cvt.rn.f16.f64", "cvt.rn.bf16.f32",
                   "cvt.rna.tf32.f32"):  # fmt: skip
        to, source = opcode.split(".")[-2:]
        yield _pure(opcode, to, ("x", source))
    # The upper half of a float32: cvt.f32.bf16 does the same from sm_90 on.
    bf16 = (PtxOperand("y", "f", role="result"), PtxOperand("x", "h", ctype="bf16"))
    yield Instruction("cvt_f32_bf16", operands=bf16, body=("return __uint_as_float((unsigned)x << 16);",))
    yield _double_to_bf16()
    for to in ("f16x2", "bf16x2"):
        yield _pure(f"cvt.rn.{to}.f32", to, ("high", "f32"), ("low", "f32"))
    for kind in ("e4m3x2", "e5m2x2"):
        yield _pure(f"cvt.rn.f16x2.{kind}", "f16x2", ("x", kind), arch="sm_89")
        yield _pure(f"cvt.rn.satfinite.{kind}.f32", kind, ("high", "f32"), ("low", "f32"), arch="sm_89")
        yield _pure(f"cvt.rn.satfinite.{kind}.f16x2", kind, ("x", "f16x2"), arch="sm_89")


def _double_to_bf16() -> Instruction:
    """Round to odd: towards zero, with the last bit set if inexact."""
    body = (
        "const float y = (float)x;",
        "unsigned bits = __float_as_uint(y);",
        "if (x == x && (double)y != x) {",
        "  if (fabs((double)y) > fabs(x)) bits -= 1;",
        "  bits |= 1;",
        "}",
        "return cvt_rn_bf16_f32(__uint_as_float(bits));",
    )
    operands = (PtxOperand("y", "h", role="result", ctype="bf16"), PtxOperand("x", "d"))
    return Instruction("cvt_rn_bf16_f64", operands=operands, body=body, needs=("cvt_rn_bf16_f32",))


def _extremes() -> Iterator[Instruction]:
    """Yield ``max`` and ``min``, also those that propagate NaN, which float64 lacks.

    NVRTC folds ``fmaxf`` of two constants without regard to the signs of zeros; an instruction is opaque to it.
    """
    for kind in ("max", "min"):
        for dtype in ("f32", "f64"):
            yield _pure(f"{kind}.{dtype}", dtype, ("a", dtype), ("b", dtype))
        yield _pure(f"{kind}.NaN.f32", "f32", ("a", "f32"), ("b", "f32"))
        operands = (PtxOperand("d", "d", role="result"), PtxOperand("a", "d"), PtxOperand("b", "d"))
        body = (f"return a != a ? a : b != b ? b : {kind}_f64(a, b);",)
        yield Instruction(f"{kind}_nan_f64", operands=operands, body=body, needs=(f"{kind}_f64",))


def _approximations() -> Iterator[Instruction]:
    """Yield approximate functions of level ``"standard"``, subnormal numbers included.

    ``div.full`` and ``sqrt.approx`` are within 2 units in the last place (PTX ISA, "div", "sqrt"). ``ex2`` keeps
    subnormal results at the price of a comparison and two products; ``exp2_of_half_f32`` instead squares the power of
    half its exponent, which is never subnormal. Its relative error is twice that of ``ex2``.
    """
    yield _pure("div.full.f32", "f32", ("a", "f32"), ("b", "f32"))
    yield _pure("rcp.approx.ftz.f32", "f32", ("x", "f32"))
    yield _pure("sqrt.approx.f32", "f32", ("x", "f32"))
    yield _pure("ex2.approx.ftz.f32", "f32", ("x", "f32"))
    operands = (PtxOperand("y", "f", role="result"), PtxOperand("half", "f"))
    body = ("const float root = ex2_approx_ftz_f32(half);", "return root * root;")
    yield Instruction("exp2_of_half_f32", operands=operands, body=body, needs=("ex2_approx_ftz_f32",))


def _packed() -> Iterator[Instruction]:
    """Yield operations on two 16-bit floats.

    They name their rounding: without it, the assembler may fuse them.
    """
    for kind, arch in (("f16x2", "sm_80"), ("bf16x2", "sm_90")):
        for op in ("add", "sub", "mul"):
            yield _pure(f"{op}.rn.{kind}", kind, ("a", kind), ("b", kind), arch=arch)
        yield _pure(f"fma.rn.{kind}", kind, ("a", kind), ("b", kind), ("c", kind))
        for op in ("max", "min", "max.NaN", "min.NaN"):
            yield _pure(f"{op}.{kind}", kind, ("a", kind), ("b", kind))
        for comparison in ("lt", "le", "gt", "ge", "eq"):
            yield _pure(f"set.{comparison}.u32.{kind}", "u32", ("a", kind), ("b", kind), arch=arch)
    for op in ("abs", "neg"):  # of bfloat16 they are multiply-adds, no modifiers of operands
        yield _pure(f"{op}.f16x2", "f16x2", ("x", "f16x2"))


def _integers() -> Iterator[Instruction]:
    for a, b in product(("s32", "u32"), repeat=2):
        total = "u32" if a == b == "u32" else "s32"
        yield _pure(f"dp4a.{a}.{b}", total, ("a", "b32"), ("b", "b32"), ("c", total))
    yield _pure("prmt.b32", "b32", ("a", "b32"), ("b", "b32"), ("selector", "b32"))
    operands = (PtxOperand("d", role="result"), PtxOperand("a"), PtxOperand("b"), PtxOperand("c"))
    for table in range(256):
        form = f"{{d}}, {{a}}, {{b}}, {{c}}, 0x{table:02x}"
        yield Instruction(f"lop3_b32_{table:02x}", "lop3.b32", operands, form)


def _exchanges() -> Iterator[Instruction]:
    numbers = (PtxOperand("lane", ctype="int"), PtxOperand("clamp", ctype="int"), PtxOperand("mask"))
    shuffled = (PtxOperand("d", role="result"), PtxOperand("x"), *numbers)
    for mode in ("idx", "up", "down", "bfly"):
        opcode = f"shfl.sync.{mode}.b32"
        yield Instruction(function_name(opcode), opcode, shuffled, "{d}, {x}, {lane}, {clamp}, {mask}", volatile=True)
    voted = (PtxOperand("d", role="result"), PtxOperand("holds"), PtxOperand("mask"))
    for mode in ("all", "any"):
        opcode = f"vote.sync.{mode}.pred"
        form = "{ .reg .pred p, q; setp.ne.u32 p, {holds}, 0; {opcode} q, p, {mask}; selp.u32 {d}, 1, 0, q; }"
        yield Instruction(function_name(opcode), opcode, voted, form, volatile=True)
    form = "{ .reg .pred p; setp.ne.u32 p, {holds}, 0; {opcode} {d}, p, {mask}; }"
    yield Instruction("vote_sync_ballot_b32", "vote.sync.ballot.b32", voted, form, volatile=True)
    yield Instruction("activemask_b32", "activemask.b32", (PtxOperand("d", role="result"),), "{d}", volatile=True)
