"""Scalar code: parameters of every type, casts, divisions near the limits, functions.

Inputs include NaN and infinities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES, largest
from tile_core.testing.case import EXACT, Tolerance, Unit, output, scalar, tensor
from tile_core.testing.data import COMPUTED, FLOATS, NARROW, Array, beside_ties
from tile_core.testing.data import TYPES as ALL_TYPES
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import INTEGERS, convertible, patterns, spelled, themed

_SPECIAL = (0.0, -0.0, 1.0, -1.5, 3.0, math.inf, -math.inf, math.nan, 1e-40, 65504.0)
#: Operations of one rounding, so that no target may fuse two of them.
_FORMS = (
    "{a} + s", "{a} - s", "{a} * s", "T.max({a}, s)", "T.min(s, {a})", "T.max({a}, s, nan_propagate=True)", "s",
    "T.if_then_else({a} < s, {a}, s)", "T.Select(s >= {a}, {a}, s)", "T.if_then_else(s != s, {a}, s)", "-s", "T.abs(s)",
    "T.clamp({a}, 0, 3)", "T.clamp({a}, 3, 1)", "T.clamp({a}, s, 2)", "T.clamp({a}, 1, s)", "T.clamp(s, {a}, 2)",
    "T.clamp(2, {a}, s)", "T.clamp(s, 2, {a})", "T.clamp(2, 3, 1)",
    "T.clamp({a}, 1)", "T.clamp({a}, max_val=2)", "T.if_then_else(T.any_of(s == {a}, s > {a}), {a}, s)",
    "T.if_then_else(T.all_of(s == {a}, s > 0), s, {a})",
)  # fmt: skip
_TESTS = ("T.isnan(s)", "T.isinf(s)", "T.isfinite(s)", "s == s", "s < 1", "not s > 0")


@st.composite
def parameters(draw: Draw) -> Unit:
    """Draw a kernel that combines scalar parameters of any type, NaN too, with elements."""
    dtype = draw(st.sampled_from((*COMPUTED, "tfloat32")))
    n = draw(st.sampled_from((1, 7, 32, 50)))
    loop = draw(st.sampled_from(("T.Parallel", "T.serial", "T.vectorized")))
    value: float
    if DTYPES[dtype].is_float and draw(st.booleans()):
        value = _literal(draw, dtype)
    elif DTYPES[dtype].is_float:
        value = float(np.float64(draw(st.sampled_from(_SPECIAL))).astype(DTYPES[dtype].numpy()))
    else:
        info = np.iinfo(dtype)
        value = draw(st.sampled_from((0, 1, 3, int(info.max), int(info.min), int(info.max) // 2)))
    form = draw(st.sampled_from(_FORMS)).format(a="A[i]")
    lines = [f"for i in {loop}({n}):", f"    B[i] = {form}"]
    if DTYPES[dtype].is_float:
        lines += [f"if {draw(st.sampled_from(_TESTS))}:", "    C[0] = 1", "else:", "    C[0] = 2"]
    else:
        lines += ["C[0] = T.cast(s > 1, 'int32')"]
    params = [tensor("A", dtype, n), scalar("s", dtype), output("B", dtype, n), output("C", "int32", 1)]
    data = {"A": patterns(draw, (n,), dtype), "s": value}
    return themed(
        "parameters", draw, params, "\n".join(lines), {"": data}, EXACT, threads=draw(st.sampled_from((1, 32, 64)))
    )


@st.composite
def casts(draw: Draw) -> Unit:
    """Draw conversions of any bits between any two element types, by elements and by tiles."""
    source, to = _conversion(draw, ALL_TYPES)
    n = draw(st.sampled_from((2, 8, 16, 34, 64, 100, 130)))
    loop = draw(st.sampled_from(("T.Parallel", "T.serial", "T.vectorized", "T.unroll" if n < 20 else "T.Parallel")))
    body = draw(st.sampled_from((
        "for i in {loop}({n}):\n    B[i] = T.cast(A[i], {to})",
        "for i in {loop}({n}):\n    B[i] = A[i].astype({to})",
        "T.copy(A, B)",
        "a = T.alloc_shared(({n},), '{source}')\nb = T.alloc_fragment(({n},), '{dst}')\n"
        "T.copy(A, a)\nT.copy(a, b)\nT.copy(b, B)",
        "a = T.alloc_fragment(({n},), '{dst}')\nT.copy(A, a)\nT.copy(a, B)",
        "for i in T.Parallel({n}):\n    x = T.alloc_var({to}, init=T.cast(A[i], {to}))\n    B[i] = x",
        "for i in {loop}({n}):\n    B[i] = {number}", "T.fill(B, {number})",
        "for i in {loop}({n}):\n    B[i] = T.cast({number}, {to})",
    )))  # fmt: skip
    body = body.format(
        loop=loop, n=n, to=spelled(draw, to, often=True), source=source, dst=to, number=_literal(draw, to)
    )
    params = [tensor("A", source, n), output("B", to, n)]
    data = {"A": convertible(draw, (n,), source, to)}
    return themed("casts", draw, params, body, {"": data}, threads=draw(st.sampled_from((1, 32, 96))))


def _conversion(draw: Draw, types: Sequence[str]) -> tuple[str, str]:
    """Draw a source and a target type, often prone to double rounding."""
    if draw(st.booleans()):
        return draw(st.sampled_from(types)), draw(st.sampled_from(types))
    wide = ("float64", "int32", "uint32", "int64", "uint64")
    return draw(st.sampled_from(wide)), draw(st.sampled_from(("tfloat32", "float16", "bfloat16", *NARROW)))


def _literal(draw: Draw, dtype: str) -> float:
    """Return a Python number for an element type, next to a tie for floats."""
    kind, rng = DTYPES[dtype], np.random.default_rng(draw(st.integers(0, 10**6)))
    if not kind.is_float:
        return int(rng.integers(-(2 ** (kind.bits - 1)) if kind.kind == "int" else 0, 2 ** (kind.bits - 1) - 1))
    if dtype == "float64":
        return float(rng.standard_normal())
    return max(-largest(kind), min(float(beside_ties(rng, (1,), "float64", dtype)[0]), largest(kind)))


@st.composite
def roundings(draw: Draw) -> Unit:
    """Draw conversions with a named rounding, saturating or not; random words come from arrays."""
    source, to = _conversion(draw, [d for d in ALL_TYPES if d != "bool"])
    n = draw(st.sampled_from((1, 8, 16, 34, 100)))
    kinds = DTYPES[source], DTYPES[to]
    modes: tuple[str | None, ...] = (None, "rn", "rz", "ru", "rd", "rs")
    if not kinds[0].is_float:
        modes = (None,) if not kinds[1].is_float else (None, "rn") if kinds[0].bits > 16 else modes
    mode = draw(st.sampled_from(modes))
    sat = draw(st.sampled_from((True, None) if kinds[0].is_float and not kinds[1].is_float else (True, False, None)))
    words = draw(st.sampled_from(("R[i]", "T.philox(v, i)[1]", "123456789"))) if mode == "rs" else None
    named = "".join(
        f", {k}={v}" for k, v in (("round", mode and repr(mode)), ("sat", sat), ("rbits", words)) if v is not None
    )
    loop = draw(st.sampled_from(("T.Parallel", "T.serial", "T.vectorized")))
    body = f"for i in {loop}({n}):\n    B[i] = T.cast(A[i], {spelled(draw, to)}{named})"
    data = {
        "A": convertible(draw, (n,), source, to),
        "R": patterns(draw, (n,), "uint32"),
        "v": draw(st.integers(0, 99)),
    }
    params = [tensor("A", source, n), tensor("R", "uint32", n), scalar("v"), output("B", to, n)]
    if kinds[0].is_float and kinds[0].bits >= 16 and draw(st.booleans()):
        rounded = f"T.round(A[i], {draw(st.sampled_from(('rna', 'rn', 'rz', 'ru', 'rd')))!r})"
        body += f"\n    C[i] = {rounded}"
        params.append(output("C", kinds[0].container, n))
    return themed("roundings", draw, params, body, {"": data}, threads=draw(st.sampled_from((1, 32, 96))))


@st.composite
def divisions(draw: Draw) -> Unit:
    """Draw integer quotients, remainders, shifts and products near the limits, of elements and of parameters."""
    dtype = draw(st.sampled_from(INTEGERS))
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, 5, 7, int(info.max), int(info.max) - 1, int(info.min), int(info.min) + 1, int(info.max) // 2]
    edges += [-1, -2, -3, -7] if info.min < 0 else []
    n = draw(st.sampled_from((5, 16, 33)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    a, d = rng.choice(np.array(edges, dtype), n), rng.choice(np.array(edges, dtype), n)
    value = int(draw(st.sampled_from(edges)))
    constant = draw(st.sampled_from([c for c in (1, 2, 3, 7, 8, 100, -1, -2, -3, -8) if info.min <= c <= info.max]))
    b = draw(st.sampled_from(("D[i]", "D[i]", "s", str(constant))))
    bits = DTYPES[dtype].bits
    form = draw(st.sampled_from((
        "T.ceildiv({a}, {b})", "{a} // {b}", "{a} % {b}", "T.floordiv({a}, {b})", "T.floormod({a}, {b})",
        "T.truncdiv({a}, {b})", "T.truncmod({a}, {b})", "T.ceildiv({a}, {b}) * {b} - {a}",
        "T.align_up({a}, {b})", "{a} * {b}", "{a} - {b}",
        "T.shift_left({a}, {c})", "T.shift_right({a}, {c})", "{a} >> (D[i] & 15)", "{a} << (D[i] & 7)",
        "{a} >> D[i]", "{a} << s", "T.shift_left({a}, D[i])", "T.shift_right({a}, D[i])",
        "T.bitwise_and({a}, {b}) | T.bitwise_xor({a}, {b})", "T.bitwise_or({a}, T.bitwise_not({b}))", "T.abs({a})",
        "T.cast(T.popcount({a}), {t})", "T.max({a}, T.max_value({t}) - {b})", "T.min({a}, T.min_value({t}) + {b})",
        "T.pow({a}, 3)", "T.power({a}, 2)", "{a} ** 2", "T.reinterpret(T.reinterpret({a}, '{o}'), {t})",
    )))  # fmt: skip
    other = {8: "uint8", 16: "uint16", 32: "float32", 64: "float64"}[bits]
    if "bitwise_not" in form and b.isdigit():
        b = "D[i]"  # a negative Python int does not fit an unsigned type
    text = form.format(a="A[i]", b=b, c=draw(st.integers(0, bits + 1)), t=f'"{dtype}"', o=other)
    loop = draw(st.sampled_from(("T.Parallel", "T.serial", "T.vectorized")))
    params = [tensor("A", dtype, n), tensor("D", dtype, n), scalar("s", dtype), output("B", dtype, n)]
    data = {"A": a, "D": d, "s": value}
    return themed("divisions", draw, params, f"for i in {loop}({n}):\n    B[i] = {text}", {"": data}, threads=32)


#: Functions, the range of their arguments, and their tolerance in units in the last place.
_FUNCTIONS: dict[str, tuple[float, float]] = {
    "exp": (-20, 20), "exp2": (-20, 20), "exp10": (-8, 8), "expm1": (-4, 4), "log": (1e-3, 1e3), "log2": (1e-3, 1e3),
    "log10": (1e-3, 1e3), "log1p": (-0.9, 100), "sqrt": (0, 1e4), "rsqrt": (1e-3, 1e4), "cbrt": (-100, 100),
    "sin": (-10, 10), "cos": (-10, 10), "tan": (-1.2, 1.2), "asin": (-1, 1), "acos": (-1, 1), "atan": (-20, 20),
    "sinh": (-5, 5), "cosh": (-5, 5), "tanh": (-6, 6), "asinh": (-9, 9), "acosh": (1, 50), "atanh": (-0.9, 0.9),
    "sigmoid": (-12, 12), "erf": (-3, 3),
}  # fmt: skip
#: Functions whose results are exact.
_EXACT = ("floor", "ceil", "trunc", "nearbyint", "rint", "round")
_EXACT_PAIRS = ("copysign", "fmod", "nextafter")
_PAIRS = ("atan2", "hypot")
#: Exponent of the least normal number.
_LEAST = {"float64": -1022, "float32": -126, "bfloat16": -126, "float16": -14}
#: Operations of one rounding, on numbers around the least normal one.
_ARITHMETIC = (
    "{a} + {d}", "{a} - {d}", "{a} * {d}", "-{a}", "T.abs({a})", "T.max({a}, {d})", "T.min({d}, {a})",
    "T.if_then_else({a} < {d}, {a}, {d})", "T.Select({a} > 0, {d}, {a})",
)  # fmt: skip


def _known(names: tuple[str, ...]) -> list[str]:
    from tile_core.vocabulary import NAMES

    return [n for n in names if n in NAMES]


@st.composite
def mathematics(draw: Draw) -> Unit:
    """Draw functions of floats that NumPy has too, with the tolerance of the type."""
    dtype = draw(st.sampled_from(FLOATS))
    n = draw(st.sampled_from((5, 32, 70)))
    exact = draw(st.booleans())
    near = Tolerance(*{"float64": (1e-12, 1e-13), "float32": (2e-5, 2e-6)}.get(dtype, (3e-2, 3e-2)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    params, data, lines = [], {}, [f"for i in {draw(st.sampled_from(('T.Parallel', 'T.serial')))}({n}):"]
    for k in range(draw(st.integers(1, 4))):
        text, (low, high) = _function(draw, exact, f"A{k}[i]", f"D{k}[i]")
        for name in (f"A{k}", f"D{k}"):
            params.append(tensor(name, dtype, n))
            drawn = rng.uniform(low, high, n) if low < high else _around_least(rng, n, dtype)
            data[name] = np.asarray(drawn).astype(DTYPES[dtype].numpy())
        params.append(output(f"B{k}", dtype, n))
        lines.append(f"    B{k}[i] = {text}")
    return themed("mathematics", draw, params, "\n".join(lines), {"": data}, EXACT if exact else near, threads=32)


def _around_least(rng: np.random.Generator, n: int, dtype: str) -> Array:
    """Return numbers around the least normal one of a type, and some near 1."""
    least = _LEAST[dtype]
    powers = np.where(rng.integers(0, 4, n) > 0, rng.uniform(least - 6, least + 12, n), rng.uniform(-4, 4, n))
    found: Array = 2.0**powers * rng.choice([-1.0, 1.0], n)
    return found


def _function(draw: Draw, exact: bool, a: str, d: str) -> tuple[str, tuple[float, float]]:
    """Return a function of one or two numbers, and the range of the numbers.

    An empty range stands for numbers around the least normal one.
    """
    wide = (-9.0, 9.0)
    if exact:
        forms = [f"T.{name}({a})" for name in _known(_EXACT)]
        forms += [f"T.{name}({a}, {d})" for name in _known(_EXACT_PAIRS)]
        if draw(st.booleans()):
            return draw(st.sampled_from(_ARITHMETIC)).format(a=a, d=d), (0.0, 0.0)
        return draw(st.sampled_from([*forms, f"T.min({a}, T.infinity('float32'))"])), wide
    pairs = [f"T.{name}({a}, {d})" for name in _known(_PAIRS)]
    name = draw(st.sampled_from([*_known(tuple(_FUNCTIONS)), *pairs, f"T.fma({a}, {d}, {a})", f"{a} / {d}"]))
    return (f"T.{name}({a})", _FUNCTIONS[name]) if name in _FUNCTIONS else (name, wide)
