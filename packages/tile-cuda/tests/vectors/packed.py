"""Arithmetic of two 16-bit floats in a register."""

from fractions import Fraction

import ml_dtypes
import numpy as np

from .extremes import chosen
from .table import LANES, Expected, Vector, assembly

DTYPES = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}


def vectors() -> list[Vector]:
    """All of them."""
    return [v for kind in DTYPES for v in _of(kind)]


def _of(kind):
    for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        # Float32 has more than twice the digits: rounding twice is rounding once.
        yield _vector(f"{name}.rn.{kind}", 2, lambda a, b, f=function: f(a, b), _arithmetic(kind))
    yield _vector(f"fma.rn.{kind}", 3, lambda a, b, c: _exact(a, b, c, DTYPES[kind]), _fused(kind))
    for name, function in COMPARISONS.items():
        yield _vector(
            f"set.{name}.u32.{kind}", 2, lambda a, b, f=function: np.where(f(a, b), 0xFFFF, 0), _special(kind)
        )
    for name in ("max", "min"):
        yield _vector(f"{name}.{kind}", 2, lambda a, b, n=name: chosen(n, a, b), _special(kind))
        nan = lambda a, b, n=name: np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), chosen(n, a, b))  # noqa: E731
        yield _vector(f"{name}.NaN.{kind}", 2, nan, _special(kind))
    if kind == "f16x2":
        yield _vector("neg.f16x2", 1, lambda a: -a, _numbers)
        yield _vector("abs.f16x2", 1, np.abs, _numbers)


def _vector(opcode, count, function, values):
    dtype = DTYPES[opcode.split(".")[-1]]

    @np.errstate(all="ignore")
    def oracle(x, _):
        halves = [np.ascontiguousarray(x[:, i : i + 1]).view(dtype).astype(np.float32) for i in range(count)]
        found = function(*halves)
        if found.dtype.kind == "f":
            codes = np.where(np.isnan(found), 0x7FFF, found.astype(dtype).view(np.uint16))
        else:
            codes = found
        return Expected(np.ascontiguousarray(codes.astype(np.uint16)).view(np.uint32))

    operands = ", ".join(f"%{i}" for i in range(count + 1))
    body = assembly(f"{opcode} {operands};", "r", "r" * count)
    return Vector(opcode.replace(".", "_"), opcode, "packed", body, count, 1, values, oracle)


def _exact(a, b, c, dtype):
    """Return ``a * b + c`` rounded once."""
    total = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    out = total.astype(np.float32).copy()
    for at in np.ndindex(total.shape):
        if np.isfinite(total[at]):
            exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
            out[at] = _round(exact, dtype) if exact else total[at]
    return out


def _round(x, dtype):
    """Return the nearest number of a type, ties to even: the steps of its exponent, counted."""
    info = ml_dtypes.finfo(dtype)
    size, exponent = abs(x), info.minexp
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - info.nmant)
    rounded = round(size / unit) * unit  # Python rounds fractions to even
    value = np.inf if rounded > Fraction(float(info.max)) else float(rounded)
    return np.float32(-value if x < 0 else value)


_CODES = {
    "f16x2": [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01],
    "bf16x2": [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1],
}  # fmt: skip


def _numbers(rng):
    """Numbers without NaN, whose sign and payload are open."""
    codes = rng.integers(0, 0x7C01, (3, LANES, 2)) | rng.integers(0, 2, (3, LANES, 2)) << 15
    return [np.ascontiguousarray(x.astype(np.uint16)).view(np.uint32) for x in codes]


def _special(kind, count=2):
    def drawn(rng):
        grid = np.meshgrid(*[np.array(_CODES[kind], np.uint16)] * 2)
        pairs = np.stack([np.resize(g.ravel(), LANES * 2 * 4) for g in grid], axis=-1).reshape(4, LANES, 2, 2)
        found = [np.ascontiguousarray(p.transpose(0, 2, 1)).view(np.uint32)[:, :, 0] for p in pairs]
        if count == 3:
            found = [np.concatenate([f, np.resize(f[::-1, :1], (LANES, 1))], axis=1) for f in found]
        return [*found, *(rng.integers(0, 2**32, (2, LANES, count), dtype=np.uint32))]

    return drawn


def _arithmetic(kind):
    def drawn(rng):
        return [*_special(kind)(rng), *_near(rng, kind, 2)]

    return drawn


def _fused(kind):
    """Ties of a product that a tiny addend breaks, too: double would lose it."""

    def drawn(rng):
        dtype = DTYPES[kind]
        bits = ml_dtypes.finfo(dtype).nmant + 1
        odd = lambda: rng.integers(2 ** (bits - 1), 2**bits, (LANES, 2)) | 1  # noqa: E731
        a, b = odd().astype(np.float32), odd().astype(np.float32) * 2.0**-bits
        tiny = rng.choice([-1, 1], (LANES, 2)) * float(ml_dtypes.finfo(dtype).smallest_subnormal)
        ties = [np.full((LANES, 2), 1 + 2.0 ** (1 - bits)), np.full((LANES, 2), 1.5), tiny]
        found = [
            np.concatenate([np.ascontiguousarray(x.astype(dtype)).view(np.uint32) for x in group], axis=1)
            for group in ((a, b, -a * b), ties, (a, b, tiny))
        ]
        return [*found, *_special(kind, 3)(rng), *_near(rng, kind, 3)]

    return drawn


def _near(rng, kind, count):
    """Numbers of similar size, also subnormal ones."""
    bias, width = (0x3C00, 10) if kind == "f16x2" else (0x3F80, 7)
    found = []
    for around in (bias, 1 << width, bias // 2):
        codes = around + rng.integers(-(3 << width), 3 << width, (LANES, count, 2))
        codes = np.abs(codes) | rng.integers(0, 2, codes.shape) << 15
        found.append(np.ascontiguousarray(codes.astype(np.uint16)).view(np.uint32)[:, :, 0])
    return found
