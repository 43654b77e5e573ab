"""Maxima and minima of floats: as instructions, and by the functions that texts call."""

import numpy as np

from .table import LANES, Expected, Vector, assembly

_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38]


def vectors() -> list[Vector]:
    """All of them."""
    return [*(_single(kind) for kind in ("max", "min")), *(_double(kind) for kind in ("max", "min"))]


def _pairs(dtype):
    def drawn(rng):
        a, b = (g.ravel() for g in np.meshgrid(*[np.array(_SPECIAL, dtype)] * 2))
        count = -(-a.size // LANES) * LANES
        every = np.stack([np.resize(a, count), np.resize(b, count)], axis=1).view(np.uint32).reshape(-1, LANES, width)
        random = rng.integers(0, 2**32, (2, LANES, width), dtype=np.uint32)
        return [*every, *random]

    width = 2 * np.dtype(dtype).itemsize // 4
    return drawn


def chosen(kind, a, b):
    """Return the number beside a NaN; of two zeros the one by the rule."""
    with np.errstate(invalid="ignore"):
        found = (np.fmax if kind == "max" else np.fmin)(a, b)
    zeros = (a == 0) & (b == 0)
    sign = (np.signbit(a) & np.signbit(b)) if kind == "max" else (np.signbit(a) | np.signbit(b))
    return np.where(zeros, np.where(sign, -0.0, 0.0).astype(a.dtype), found)


def _single(kind):
    body = assembly(f"{kind}.NaN.f32 %0, %1, %2;", "f", "ff")
    body += f" y[1] = __float_as_uint(f{kind}f(__uint_as_float(x[0]), __uint_as_float(x[1])));"

    def oracle(x, _):
        a, b = (np.ascontiguousarray(x[:, i : i + 1]).view(np.float32) for i in (0, 1))
        number = chosen(kind, a, b)
        either = np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), number)
        return Expected(np.concatenate([either, number], axis=1).view(np.uint32))

    return Vector(f"{kind}_f32", f"{kind}.NaN.f32", "extremes", body, 2, 2, _pairs(np.float32), oracle, "f32")


def _double(kind):
    sides = [f"__longlong_as_double((long long)(x[{i}] | (unsigned long long)x[{i + 1}] << 32))" for i in (0, 2)]
    body = f"const long long d = __double_as_longlong(f{kind}({', '.join(sides)}));"
    body += " y[0] = (unsigned)d; y[1] = (unsigned)(d >> 32);"

    def oracle(x, _):
        a, b = (np.ascontiguousarray(x[:, i : i + 2]).view(np.float64) for i in (0, 2))
        return Expected(np.ascontiguousarray(chosen(kind, a, b)).view(np.uint32))

    return Vector(f"{kind}_f64", f"{kind}.NaN.f32", "extremes", body, 4, 2, _pairs(np.float64), oracle, "f64")
