"""Scalar arithmetic, comparisons and mathematics, element by element and of every type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import EXACT, VALUE, Data, Launch, Part, Tolerance, Unit, one, output, refused, tensor
from tile_core.testing.data import COMPUTED, FLOATS, INTEGERS, Array, all_codes, anything, numbers, stored, values
from tile_core.testing.source import lines

SHAPE = (9, 47)
#: Rows of a block at most: tiles of more would not fit the shared memory of every target.
BLOCK = 9


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_arithmetic(), *_comparisons(), *_integers(), *_mathematics(), *_extremes(), *_powers(), *_others()]


def _elementwise(
    op: str,
    name: str,
    dtype: str,
    parts: dict[str, tuple[str, Any, str, Tolerance]],
    data: Any,
    shape: tuple[int, ...] = SHAPE,
) -> Unit:
    """Return a unit of expressions of a[i, j] and b[i, j].

    A part maps to (expression, reference, output type, tolerance).
    """
    rows = min(shape[0], BLOCK)
    tile, made = (rows, *shape[1:]), {}
    for part, (expression, want, out, tolerance) in parts.items():
        body = f"for i, j in T.Parallel{tile}:\n    O_{part}[bx * {rows} + i, j] = {expression}"
        made[part] = Part((output(f"O_{part}", out, *shape),), body, want, tolerance)
    start = f'''
        a = T.alloc_fragment({tile}, "{dtype}")
        b = T.alloc_shared({tile}, "{dtype}")
        T.copy(A[bx * {rows}, 0], a)
        T.copy(B[bx * {rows}, 0], b)
    '''
    params = (tensor("A", dtype, *shape), tensor("B", dtype, *shape))
    return Unit(op, name, params, start, made, {"": Launch(data)}, grid=str(-(-shape[0] // rows)))


def _work(dtype: str) -> str:
    """The type in which the language computes."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _applied(dtype: str, function: Callable[[Array, Array], Any]) -> Any:
    def want(d: Data) -> Array:
        with np.errstate(all="ignore"):
            return function(*(values(d[n], dtype).astype(_work(dtype)) for n in "AB"))

    return want


def _pair(dtype: str) -> Any:
    """Any bits, with equal elements among them."""

    def data(rng: np.random.Generator) -> Data:
        a, b = anything(rng, SHAPE, dtype), anything(rng, SHAPE, dtype)
        a[:, ::5] = b[:, ::5]
        return {"A": a, "B": b}

    return data


def _arithmetic() -> list[Unit]:
    table: dict[str, tuple[str, Callable[[Array, Array], Any]]] = {
        "add": ("a[i, j] + b[i, j]", np.add), "sub": ("a[i, j] - b[i, j]", np.subtract),
        "mul": ("a[i, j] * b[i, j]", np.multiply), "neg": ("-a[i, j]", lambda a, b: -a),
    }  # fmt: skip
    found = []
    for dtype in COMPUTED:
        parts = {k: (e, _applied(dtype, f), dtype, EXACT) for k, (e, f) in table.items()}
        found.append(_elementwise("arithmetic", dtype, dtype, parts, _pair(dtype)))
    for dtype in FLOATS:
        near = (
            Tolerance(rtol=2.0**-22)
            if dtype == "float32"
            else Tolerance(rtol=2.0**-51)
            if dtype == "float64"
            else EXACT
        )
        parts = {"div": ("a[i, j] / b[i, j]", _applied(dtype, np.divide), dtype, near)}
        found.append(_elementwise("arithmetic", f"{dtype}-div", dtype, parts, _pair(dtype)))
    return found


def _comparisons() -> list[Unit]:
    table = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
    functions = {
        "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal
    }  # fmt: skip
    found = []
    for dtype in (*COMPUTED, "bool"):
        legal = ("eq", "ne") if dtype == "bool" else tuple(table)
        for half in (legal[:3], legal[3:]):
            parts = {k: (f"a[i, j] {table[k]} b[i, j]", _applied(dtype, functions[k]), "bool", EXACT) for k in half}
            if parts:
                found.append(_elementwise("compare", f"{dtype}-{half[0]}", dtype, parts, _pair(dtype)))
    dtype = "bool"
    logic: dict[str, tuple[str, Any]] = {
        "land": ("a[i, j] and b[i, j]", np.logical_and), "lor": ("a[i, j] or b[i, j]", np.logical_or),
        "lnot": ("not a[i, j]", lambda a, b: ~a), "#3021".strip("#"): ("~a[i, j]", lambda a, b: ~a),
        "lxor": ("a[i, j] ^ b[i, j]", np.logical_xor),
    }  # fmt: skip
    names = {k if k.isidentifier() else f"not{k}": v for k, v in logic.items()}
    parts = {k: (e, _applied(dtype, f), "bool", EXACT) for k, (e, f) in names.items()}
    return [*found, _elementwise("compare", "#3021-logic", dtype, parts, _pair(dtype))]


def _integers() -> list[Unit]:
    found = []
    for dtype in INTEGERS:
        bits = DTYPES[dtype].bits
        division: dict[str, tuple[str, Any]] = {
            "floordiv": ("a[i, j] // b[i, j]", np.floor_divide), "mod": ("a[i, j] % b[i, j]", np.mod),
            "truncdiv": ("T.truncdiv(a[i, j], b[i, j])", _truncdiv),
            "truncmod": ("T.truncmod(a[i, j], b[i, j])", np.fmod),
        }  # fmt: skip
        parts = {k: (e, _applied(dtype, f), dtype, EXACT) for k, (e, f) in division.items()}
        found.append(_elementwise("arithmetic", f"{dtype}-divisions", dtype, parts, _divisors(dtype)))
        logic: dict[str, tuple[str, Any]] = {
            "band": ("a[i, j] & b[i, j]", np.bitwise_and), "bor": ("a[i, j] | b[i, j]", np.bitwise_or),
            "bxor": ("a[i, j] ^ b[i, j]", np.bitwise_xor), "bnot": ("~a[i, j]", lambda a, b: ~a),
        }  # fmt: skip
        parts = {k: (e, _applied(dtype, f), dtype, EXACT) for k, (e, f) in logic.items()}
        found.append(_elementwise("arithmetic", f"{dtype}-bits", dtype, parts, _pair(dtype)))
        shifts: dict[str, tuple[str, Any]] = {
            "shl": ("a[i, j] << 3", lambda a, b: a << a.dtype.type(3)),
            "shr": ("a[i, j] >> 3", lambda a, b: a >> a.dtype.type(3)),
            "narrow_2961": (f"(a[i, j] << {bits // 2}) >> {bits // 2}", lambda a, b,
                n=bits // 2: a << a.dtype.type(n) >> a.dtype.type(n)),
        }  # fmt: skip
        parts = {k: (e, _applied(dtype, f), dtype, EXACT) for k, (e, f) in shifts.items()}
        parts["popcount"] = ("T.popcount(a[i, j])", _popcount(dtype), "int32", EXACT)
        found.append(_elementwise("arithmetic", f"#2961-{dtype}-shifts", dtype, parts, _pair(dtype)))
    return found


def _divisors(dtype: str) -> Any:
    def data(rng: np.random.Generator) -> Data:
        a, b = anything(rng, SHAPE, dtype), numbers(rng, SHAPE, dtype, -7, 7)
        b[b == 0] = 3
        if DTYPES[dtype].kind == "int":  # the least integer divided by -1 is not defined
            a[(a == np.iinfo(a.dtype).min) & (b == -1)] = 5
        return {"A": a, "B": b}

    return data


def _truncdiv(a: Array, b: Array) -> Array:
    quotient: Array = (a - np.fmod(a, b)) // b
    return quotient


def _popcount(dtype: str) -> Any:
    return lambda d: np.bitwise_count(d["A"].view(f"uint{DTYPES[dtype].bits}")).astype(np.int32)


_MATH: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin, "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh, "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)), "erf": np.vectorize(math.erf, otypes=[np.float64]),
}  # fmt: skip
_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint, "abs": np.abs,
    "round": lambda x: np.where(np.abs(x) < 2.0**52, np.copysign(np.floor(np.abs(x) + 0.5), x), x),
}  # fmt: skip
#: Units in the last place: what ``numerics.rules`` allows of float32, and one rounding of the narrower types.
_NEAR = {"float32": 4 * 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 16 * 2.0**-52}
_TINY = {"float32": 2.0**-147, "float16": 2.0**-24, "bfloat16": 2.0**-132, "float64": 1e-300}


def _mathematics() -> list[Unit]:
    found = []
    for dtype in FLOATS:
        shape = (64, 1024) if DTYPES[dtype].bits == 16 else SHAPE
        names = list(_MATH)
        for group in (names[i : i + 4] for i in range(0, len(names), 4)):
            near = Tolerance(_NEAR[dtype], _TINY[dtype])
            parts = {n: (f"T.{n}(a[i, j])", _math(dtype, _MATH[n]), dtype, near) for n in group}
            found.append(_elementwise("math", f"{dtype}-{group[0]}", dtype, parts, _reals(dtype, shape), shape))
        parts = {n: (f"T.{n}(a[i, j])", _math(dtype, f), dtype, EXACT) for n, f in _ROUNDINGS.items()}
        found.append(_elementwise("math", f"{dtype}-roundings", dtype, parts, _reals(dtype, shape), shape))
        tests = {
            n: (f"T.{n}(a[i, j])", _math(dtype, getattr(np, n)), "bool", EXACT) for n in ("isnan", "isinf", "isfinite")
        }
        found.append(_elementwise("math", f"{dtype}-tests", dtype, tests, _reals(dtype, shape), shape))
    return found


def _math(dtype: str, function: Callable[[Any], Any]) -> Any:
    def want(d: Data) -> Array:
        return function(values(d["A"], dtype))

    return want


def _reals(dtype: str, shape: tuple[int, ...]) -> Any:
    """All codes of 16-bit types; of wider ones all magnitudes, subnormal numbers, infinities and NaN.

    Trigonometric functions of large arguments need a long reduction: the range is limited for the wide types.
    """

    def data(rng: np.random.Generator) -> Data:
        if DTYPES[dtype].bits == 16:
            return {"A": all_codes(dtype, shape), "B": all_codes(dtype, shape)}
        drawn = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 2, shape)
        drawn[0, :12] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.5, -2.5, 1e-40]
        return {"A": stored(drawn, dtype), "B": stored(drawn, dtype)}

    return data


def _extremes() -> list[Unit]:
    """#2697, #3024: max, min and clamp with NaN, infinities and both zeros, in either order."""
    found = []
    for dtype in COMPUTED:
        floats = DTYPES[dtype].is_float
        pick_max, pick_min = (_fmax, _fmin) if floats else (np.maximum, np.minimum)
        parts = {
            "max": ("T.max(a[i, j], b[i, j])", _applied(dtype, pick_max), dtype, EXACT),
            "min": ("T.min(b[i, j], a[i, j])", _applied(dtype, pick_min), dtype, EXACT),
            "clamp": ("T.clamp(a[i, j], 1, 3)", _applied(dtype, lambda a, b: np.clip(a, 1, 3)), dtype, EXACT),
            "clamp_none": ("T.clamp(a[i, j], 3, 1)", _applied(dtype, lambda a, b: np.clip(a, 3, 1)), dtype, EXACT),
            "clamp_by": ("T.clamp(a[i, j], b[i, j], 1)", _applied(dtype, _raised), dtype, EXACT),
        }
        if floats:
            parts["maxnan"] = ("T.max(a[i, j], b[i, j], nan_propagate=True)", _applied(dtype, _max_nan), dtype, EXACT)
            parts["max0_2882"] = (
                "T.max(a[i, j], 0.0)",
                _applied(dtype, lambda a, b: _fmax(a, np.zeros_like(a))),
                dtype,
                EXACT,
            )
        found.append(_elementwise("math", f"#3024-{dtype}-extremes", dtype, parts, _pair(dtype)))
    return found


def _fmax(a: Array, b: Array) -> Array:
    result = np.fmax(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a) & np.signbit(b), -0.0, 0.0).astype(a.dtype), result)


def _fmin(a: Array, b: Array) -> Array:
    result = np.fmin(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0).astype(a.dtype), result)


def _raised(a: Array, b: Array) -> Array:
    """``T.clamp(a, b, 1)``: a NaN limit is ignored, and of two zeros the first stays."""
    above = np.where(a < b, b, a)
    return np.where(above > 1, np.ones_like(above), above)


def _max_nan(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a) | np.isnan(b), np.nan, _fmax(a, b))


def _powers() -> list[Unit]:
    """#2571: bfloat16; #2614: constant exponents of 0 and less."""
    found = []
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        parts = {}
        exponents = (0, 1, 2, 3, 5) if dtype == "int32" else (-2, -1, 0, 1, 2, 3)
        near = EXACT if dtype == "int32" else Tolerance(_NEAR[dtype] * 2, _TINY[dtype])
        for n in exponents:
            tag = f"p{n}" if n >= 0 else f"m{-n}"
            parts[tag] = (f"T.pow(a[i, j], {n})", _applied(dtype, lambda a, b, n=n: _power(a, n)), dtype, near)
        if dtype != "int32":
            parts["runtime"] = (
                "T.pow(T.abs(a[i, j]), b[i, j])",
                _applied(dtype, lambda a, b: np.abs(a).astype(float) ** b),
                dtype,
                near,
            )

        def data(rng: np.random.Generator, t: str = dtype) -> Data:
            a = numbers(rng, SHAPE, t, -3, 3)
            a[a == 0] = 2
            return {"A": a, "B": numbers(rng, SHAPE, t, -3, 3)}

        found.append(_elementwise("math", f"#2571-#2614-{dtype}-powers", dtype, parts, data))
    return found


def _power(a: Array, n: int) -> Array:
    result: Array = a**n if n >= 0 or a.dtype.kind == "i" else 1.0 / a.astype(np.float64) ** -n
    return result


def _others() -> list[Unit]:
    """Choices, conversions between types in one expression, reinterpretation, constants."""
    found = []
    for dtype in ("float32", "int16", "float16", "uint8"):
        parts: dict[str, tuple[str, Any, str, Tolerance]] = {
            "select_2682": (
                "T.Select(a[i, j] > 2, a[i, j], b[i, j])", _applied(dtype, lambda a, b: np.where(a > 2, a, b)), dtype,
                EXACT,
            ),
            "chosen": (
                "T.if_then_else(i * 47 + j < 100, a[i, j], b[i, j])",
                _applied(dtype, lambda a, b: np.where(np.arange(9 * 47).reshape(SHAPE) < 100, a, b)), dtype, EXACT,
            ),
            "mixed": ("T.cast(a[i, j], 'float32') * 0.5 + i", _mixed(dtype), "float32", VALUE),
        }  # fmt: skip
        unsigned = f"uint{DTYPES[dtype].bits}"
        if unsigned != dtype:
            parts["bits"] = (
                f"T.reinterpret(a[i, j], '{unsigned}')",
                lambda d, u=unsigned: d["A"].view(u),
                unsigned,
                EXACT,
            )
        found.append(_elementwise("arithmetic", f"#2682-{dtype}-choices", dtype, parts, _pair(dtype)))
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        body = lines(f"""
            B[0] = T.infinity('{dtype}')
            B[1] = T.max_value('{dtype}')
            B[2] = T.min_value('{dtype}')
        """)
        top = {
            "float32": float(np.finfo(np.float32).max),
            "float16": 65504.0,
            "float64": float(np.finfo(np.float64).max),
        }
        largest = top.get(dtype, 2.0**127 * (2 - 2**-7))
        result = np.array([np.inf, largest, -largest])
        found.append(
            one(
                "math", f"constants-{dtype}", [output("B", dtype, 3)], body, lambda d, r=result: r, {"": lambda rng: {}}
            )
        )  # type: ignore[misc]
    f = [tensor("F", "float32", 8), tensor("N", "int32", 8)]
    found += [
        refused("arithmetic", "illegal-float-bits", "x = F[0] & 1", "K103", params=f),
        refused("arithmetic", "illegal-float-shift", "x = F[0] << 1", "K103", params=f),
        refused("arithmetic", "illegal-constant", "N[0] = N[1] + 2**40", "K104", params=f),
        refused("arithmetic", "illegal-zero-divisor", "N[0] = N[1] // 0", "K103", "K128", params=f),
        refused("math", "illegal-infinity", "N[0] = T.infinity('int32')", "K128", params=f),
        refused("math", "illegal-popcount", "N[0] = T.popcount(F[0])", "K103", "K128", params=f),
    ]
    return found


def _mixed(dtype: str) -> Any:
    def want(d: Data) -> Array:
        a = values(d["A"], dtype).astype(np.float32) * np.float32(0.5)
        total: Array = a + np.arange(9, dtype=np.float32)[:, None]
        return total

    return want
