"""Functions of a few lines where no instruction does it alone: exchanges of any type, reductions of a warp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tile_cuda.ptx.exchange_loops import exchange_loops
from tile_cuda.ptx.instruction import Instruction, Operand
from tile_cuda.ptx.values import VALUES, Value

__all__ = ["composed_instructions"]

_SHUFFLE = (Operand("lane", ctype="int"), Operand("clamp", ctype="int"), Operand("mask"))


def composed_instructions() -> Iterator[Instruction]:
    """Yield the functions."""
    yield from _functions()
    yield from _float8()
    for mode, value in product(("idx", "up", "down", "bfly"), VALUES.values()):
        yield _shuffle(mode, value)
    yield from _sources()
    for kind, value in product(("sum", "max", "min", "bitand", "bitor"), VALUES.values()):
        if value.is_integer or not kind.startswith("bit"):
            yield from _reductions(kind, value)
    yield from exchange_loops()


def _functions() -> Iterator[Instruction]:
    """Yield what the device's own functions do not give within the language's bounds."""
    for name, ctype, register, e, size in (
        ("sigmoid_f32", "float", "f", "expf", "fabsf"), ("sigmoid_f64", "double", "d", "exp", "fabs"),
    ):  # fmt: skip
        suffix = "f" if ctype == "float" else ""
        # From e to the minus absolute value, which cannot overflow: small results are kept.
        body = (
            f"const {ctype} y = {e}(-{size}(x));",
            f"return (x < 0.0{suffix} ? y : 1.0{suffix}) / (1.0{suffix} + y);",
        )
        yield Instruction(name, operands=(Operand("s", register, role="result"), Operand("x", register)), body=body)


def _float8() -> Iterator[Instruction]:
    """Yield conversions of one value; the instructions are of two, and saturate where the language does not."""
    code, half = Operand("y", "h", role="result", ctype="unsigned char"), Operand("y", "h", role="result", ctype="f16")
    # The first that rounds to more than the largest number, or to infinity; and the codes of what does not fit.
    forms = {"e4m3": ("<= 464.0f", "0x7f"), "e5m2": ("< 61440.0f", "(x == x ? 0x7c : 0x7e)")}
    for kind, (fits, rest) in forms.items():
        decode = f"cvt_rn_f16x2_{kind}x2"
        body = (f"return (f16){decode}(x);",)
        yield Instruction(f"cvt_f16_{kind}", operands=(half, Operand("x", "h", ctype="unsigned char")),
                          arch="sm_89", body=body, needs=(decode,))  # fmt: skip
        encode = f"cvt_rn_satfinite_{kind}x2_f32"
        lines = (
            "const unsigned sign = __float_as_uint(x) >> 24 & 0x80;",
            f"return (unsigned char)(fabsf(x) {fits} ? {encode}(0.0f, x) : {rest} | sign);",
        )
        yield Instruction(f"cvt_rn_{kind}_f32", operands=(code, Operand("x", "f")), arch="sm_89", body=lines,
                          needs=(encode,))  # fmt: skip


def _shuffle(mode: str, value: Value) -> Instruction:
    base = f"shfl_sync_{mode}_b32"
    operands = (_result(value), _operand("x", value), *_SHUFFLE)
    rest = ", ".join(o.name for o in _SHUFFLE)
    name = f"shfl_sync_{mode}_{value.name}"
    if value.bits < 64:
        word = f"{base}({value.encode('x')}, {rest})"
        body: tuple[str, ...] = (f"return {value.decode(word)};",)
    else:
        body = (
            f"const unsigned long long bits = {value.encode('x')};",
            f"const unsigned low = {base}((unsigned)bits, {rest});",
            f"const unsigned high = {base}((unsigned)(bits >> 32), {rest});",
            f"return {value.decode('((unsigned long long)high << 32 | low)')};",
        )
    return Instruction(name, operands=operands, body=body, needs=(base,))


def _sources() -> Iterator[Instruction]:
    """Yield functions that name the lane to read: the own one where the rule leaves its group or the block."""
    integers = tuple(Operand(n, ctype="int") for n in ("lane", "amount", "width", "lanes"))
    rules = {"idx": "amount & (width - 1)", "up": "own - amount", "down": "own + amount", "bfly": "own ^ amount"}
    for mode, rule in rules.items():
        body = (
            "const int own = lane & (width - 1);",
            f"const int other = {rule};",
            "const int source = lane - own + other;",
            "return other >= 0 && other < width && source < lanes ? source : lane;",
        )
        operands = (Operand("source", role="result", ctype="int"), *integers)
        yield Instruction(f"lane_{mode}", operands=operands, body=body)


@dataclass(frozen=True)
class _Reduction:
    kind: str
    value: Value

    @property
    def step(self) -> str:
        return f"x = {self.value.combine(self.kind, 'x', 'y')};"


def _reductions(kind: str, value: Value) -> Iterator[Instruction]:
    """Yield a reduction of a full warp, and one of a warp's first lanes."""
    step = _Reduction(kind, value).step
    whole = (
        "#pragma unroll",
        "for (int m = 16; m > 0; m /= 2) {",
        f"  const {value.ctype} y = shfl_sync_bfly_{value.name}(x, m, 31, 0xffffffffu);",
        f"  {step}",
        "}",
        "return x;",
    )
    operands = (_result(value), _operand("x", value))
    needs = (f"shfl_sync_bfly_{value.name}", *value.needs)
    yield Instruction(f"warp_reduce_{kind}_{value.name}", operands=operands, body=whole, needs=needs)
    part = (
        "const unsigned mask = lanes < 32 ? (1u << lanes) - 1 : 0xffffffffu;",
        "#pragma unroll",
        "for (int m = 16; m > 0; m /= 2) {",
        f"  const {value.ctype} y = shfl_sync_idx_{value.name}(x, lane + m < lanes ? lane + m : lane, 31, mask);",
        f"  if (lane + m < lanes) {step}",
        "}",
        f"return shfl_sync_idx_{value.name}(x, 0, 31, mask);",
    )
    some = (*operands, Operand("lane", ctype="int"), Operand("lanes", ctype="int"))
    both = (f"shfl_sync_idx_{value.name}", *value.needs)
    yield Instruction(f"warp_reduce_{kind}_{value.name}_part", operands=some, body=part, needs=both)


def _result(value: Value) -> Operand:
    return Operand("y", value.register, role="result", ctype=value.ctype)


def _operand(name: str, value: Value) -> Operand:
    return Operand(name, value.register, ctype=value.ctype)
