"""Functions of a few instructions: the sigmoid, conversions of float8, shuffles."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cuda.ptx.exchange_loops import exchange_loops
from tile_cuda.ptx.instruction import Instruction, PtxOperand
from tile_cuda.ptx.lane_transposes import transposes
from tile_cuda.ptx.metadata import metadata_exchanges
from tile_cuda.ptx.values import VALUES, PtxValue

__all__ = ["composed_instructions"]

_SHUFFLE = (PtxOperand("lane", ctype="int"), PtxOperand("clamp", ctype="int"), PtxOperand("mask"))


def composed_instructions() -> Iterator[Instruction]:
    """Yield the functions."""
    yield from _functions()
    yield from _float8()
    for mode in ("idx", "up", "down", "bfly"):
        yield _shuffle(mode)
    yield from transposes()
    yield from metadata_exchanges()
    yield from exchange_loops()


def _functions() -> Iterator[Instruction]:
    """Yield functions for which the device's own ones exceed the language's error bounds."""
    # Both use exp(-|x|), which cannot overflow: small results are kept.
    double = ("const double y = exp(-fabs(x));", "return (x < 0.0 ? y : 1.0) / (1.0 + y);")
    # The device's division without its test for extreme divisors, behind which the quotients of a thread wait for each
    # other: this divisor is between 1 and 2, and 1 where the dividend is small.
    single = (
        "const float y = expf(-fabsf(x)), n = x < 0.0f ? y : 1.0f, d = 1.0f + y;",
        "const float r = rcp_approx_ftz_f32(d), s = fmaf(fmaf(-d, r, 1.0f), r, r), q = n * s;",
        "return fmaf(fmaf(-d, q, n), s, q);",
    )
    for name, register, body, needs in (
        ("sigmoid_f32", "f", single, ("rcp_approx_ftz_f32",)), ("sigmoid_f64", "d", double, ()),
    ):  # fmt: skip
        operands = (PtxOperand("s", register, role="result"), PtxOperand("x", register))
        yield Instruction(name, operands=operands, body=body, needs=needs)


def _float8() -> Iterator[Instruction]:
    """Yield conversions of one value and of two; the instructions convert two, and always saturate."""
    code, half = (
        PtxOperand("y", "h", role="result", ctype="unsigned char"),
        PtxOperand("y", "h", role="result", ctype="f16"),
    )
    # The smallest value that rounds to more than the largest number, or to infinity; and the codes on overflow.
    forms = {"e4m3": ("<= 464.0f", "0x7f"), "e5m2": ("< 61440.0f", "({x} == {x} ? 0x7c : 0x7e)")}
    for kind, (fits, rest) in forms.items():
        decode = f"cvt_rn_f16x2_{kind}x2"
        body = (f"return (f16){decode}(x);",)
        yield Instruction(f"cvt_f16_{kind}", operands=(half, PtxOperand("x", "h", ctype="unsigned char")),
                          arch="sm_89", body=body, needs=(decode,))  # fmt: skip
        encode = f"cvt_rn_satfinite_{kind}x2_f32"
        lines = (
            "const unsigned sign = __float_as_uint(x) >> 24 & 0x80;",
            f"return (unsigned char)(fabsf(x) {fits} ? {encode}(0.0f, x) : {rest.format(x='x')} | sign);",
        )
        yield Instruction(f"cvt_rn_{kind}_f32", operands=(code, PtxOperand("x", "f")), arch="sm_89", body=lines,
                          needs=(encode,))  # fmt: skip
        low, high = (
            f"(fabsf({x}) {fits} ? pair & {byte} : ({rest.format(x=x)} | __float_as_uint({x}) >> 24 & 0x80){shift})"
            for x, byte, shift in (("low", "0xff", ""), ("high", "0xff00", " << 8"))
        )
        pair = (
            f"const unsigned pair = {encode}(high, low);",
            f"if (fabsf(high) {fits} && fabsf(low) {fits}) return (unsigned short)pair;",
            f"return (unsigned short)({low} | {high});",
        )
        operands = (PtxOperand("y", "h", role="result"), PtxOperand("high", "f"), PtxOperand("low", "f"))
        yield Instruction(f"cvt_rn_{kind}x2_f32", operands=operands, arch="sm_89", body=pair, needs=(encode,))


def _shuffle(mode: str) -> Instruction:
    """Return the exchange of a word; the instruction has no signed and unsigned forms."""
    base, word = f"shfl_sync_{mode}_b32", VALUES["uint32"]
    operands = (_result(word), _operand("x", word), *_SHUFFLE)
    body = (f"return {base}(x, {', '.join(o.name for o in _SHUFFLE)});",)
    return Instruction(f"shfl_sync_{mode}_{word.name}", operands=operands, body=body, needs=(base,))


def _result(value: PtxValue) -> PtxOperand:
    return PtxOperand("y", value.register, role="result", ctype=value.ctype)


def _operand(name: str, value: PtxValue) -> PtxOperand:
    return PtxOperand(name, value.register, ctype=value.ctype)
