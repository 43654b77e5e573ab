"""Conversions between all types with a named rounding and overflow, and ``T.round`` modes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Data, Launch, Part, Unit, output, refused, scalar, tensor
from tile_core.testing.data import INTEGERS, Array, anything, from_codes, near_ties, stored, values

_COUNT = 300
_FLOATS = tuple(name for name, d in DTYPES.items() if d.is_float)
#: Source -> the types that it is converted to.
PAIRS = {
    "float32": (*_FLOATS[1:], "int4", "uint4", *INTEGERS),
    "float64": (*_FLOATS, "uint4", "int8", "uint32", "int64"),
    "float16": ("float32", "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn", "int8", "uint16"),
    "bfloat16": ("float16", "float8_e5m2", "tfloat32", "int4", "int32"),
    "float8_e5m2": ("float8_e4m3fn", "float8_e5m2", "uint8"),
    "tfloat32": ("bfloat16", "int16"),
    "int16": ("float16", "float8_e4m3fn"),
    "uint8": ("float4_e2m1fn", "float32"),
}
#: Between integers, and from wide integers to floats: only saturation.
_SATURATED = {
    "int32": ("int8", "uint8", "uint4", "int64", "uint32", "float16", "float8_e4m3fn", "tfloat32", "float32"),
    "uint32": ("bfloat16", "tfloat32", "float8_e8m0fnu"),
    "uint64": ("int64", "int16", "float32", "tfloat32", "float8_e5m2", "float64"),
    "int4": ("uint8", "uint4"),
    "int64": ("uint64", "int32", "bfloat16", "tfloat32", "float16", "float4_e2m1fn"),
}
#: How -> (rounding, saturation).
_WAYS = {
    "rn": ("rn", True), "rz": ("rz", None), "rz-sat": ("rz", True), "ru": ("ru", None), "rd": ("rd", None),
    "rd-sat": ("rd", True), "rs": ("rs", None), "rs-sat": ("rs", True),
}  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    found = [_unit(s, t, _WAYS) for s, targets in PAIRS.items() for t in targets]
    found += [_unit(s, t, {"sat": (None, True)}) for s, targets in _SATURATED.items() for t in targets]
    return [*found, _integral("float32"), _integral("float16"), _constants(), *_refusals()]


def _unit(source: str, target: str, ways: Mapping[str, tuple[str | None, bool | None]]) -> Unit:
    parts = {}
    for name, (mode, sat) in ways.items():
        bits = ", rbits=R[i]" if mode == "rs" else ""
        out = f"B_{name.replace('-', '_')}"
        body = f'''
            for i in T.Parallel({_COUNT}):
                {out}[i] = T.cast(A[i], "{target}", round={mode!r}, sat={sat}{bits})
        '''
        parts[name] = Part((output(out, target, _COUNT),), body, None)
    params = (tensor("A", source, _COUNT), tensor("R", "uint32", _COUNT))
    launches = {"": Launch(lambda rng: _data(rng, source, target))}
    return Unit("cast-rounding", f"{source}-{target}", params, "", parts, launches, threads=64)


def _data(rng: np.random.Generator, source: str, target: str) -> Data:
    """Values of any bits, values of the target type, and values near and between those.

    Random words are drawn too.
    """
    if not DTYPES[source].is_float:
        return {"A": near_ties(rng, (_COUNT,), source, target), "R": anything(rng, (_COUNT,), "uint32")}
    near: Array
    no_nan = DTYPES[target].is_float and not DTYPES[target].has_nan
    if DTYPES[target].is_float:
        codes = rng.integers(0, 2 ** min(DTYPES[target].bits, 63), (3, _COUNT), np.uint64)
        near = np.stack([values(from_codes(c, target), target, (_COUNT,)).astype(np.float64) for c in codes])
    else:
        near = rng.integers(-(2 ** min(DTYPES[target].bits, 53)), 2 ** min(DTYPES[target].bits, 53), (3, _COUNT))
    with np.errstate(all="ignore"):
        factor = 1 + rng.choice([-1, 1], _COUNT) * 2.0 ** -rng.integers(1, 40, _COUNT)
        between = near[1] * rng.choice([0.25, 0.5, 0.75, 1.5, 1.125, 1.0625], _COUNT)
        drawn = values(anything(rng, (_COUNT,), source), source, (_COUNT,))
        a = np.choose(rng.integers(0, 4, _COUNT), [drawn, near[0], near[2] * factor, between])
        a = np.where(np.isnan(a) & no_nan, 1.0, a)
        held = stored(a, source)
    if DTYPES[source].bits > 16 and DTYPES[target].is_float:
        beside = near_ties(rng, (_COUNT,), source, target)
        beside = np.where(np.isnan(beside) & no_nan, 1.0, beside).astype(held.dtype)
        held = np.where(rng.integers(0, 4, _COUNT) == 0, beside, held)
    words = anything(rng, (_COUNT,), "uint32")
    words[:4] = 0, 1, 2**32 - 1, 2**31
    return {"A": held, "R": words}


def _integral(dtype: str) -> Unit:
    parts = {}
    for mode in ("rna", "rn", "rz", "ru", "rd"):
        body = f"for i in T.Parallel({_COUNT}):\n    B_{mode}[i] = T.round(A[i], {mode!r})"

        parts[mode] = Part((output(f"B_{mode}", dtype, _COUNT),), body, None)

    def data(rng: np.random.Generator) -> Data:
        quarters = rng.integers(-40, 40, _COUNT) / 4
        return {
            "A": np.where(rng.integers(0, 2, _COUNT) == 1, anything(rng, (_COUNT,), dtype), stored(quarters, dtype))
        }

    return Unit("round", dtype, (tensor("A", dtype, _COUNT),), "", parts, {"": Launch(data)}, threads=64)


def _constants() -> Unit:
    """Python's numbers, and a scalar parameter with a word of the sequence."""
    body = """
        B[0] = T.cast(1 / 3, "float16", round="ru")
        B[1] = T.cast(-1 / 3, "float16", round="rd")
        B[2] = T.cast(1e9, "float16", round="rz")
        B[3] = T.cast(-1e9, "float16", sat=True)
        B[4] = T.cast(1e9, "float16", round="ru")
        B[5] = T.cast(T.cast(300, "uint8", sat=True), "float16")
        B[6] = T.cast(T.cast(2.5, "int8", round="rn"), "float16")
        T.rng_init(5, 1)
        B[7] = T.cast(T.cast(n, "float32") / 3, "float16", round="rs", rbits=T.rng_rand())
    """

    launches = {"": Launch(lambda rng: {"n": int(rng.integers(1, 1000))})}
    part = Part((output("B", "float16", 8),), body, None)
    return Unit("cast-rounding", "constants", (scalar("n"),), "", {"": part}, launches, threads=32)


def _refusals() -> list[Unit]:
    bodies = {
        "mode": 'B[0] = T.cast(A[0], "float16", round="rm")',
        "no-word": 'B[0] = T.cast(A[0], "float16", round="rs")',
        "word-unused": 'B[0] = T.cast(A[0], "float16", round="rz", rbits=n)',
        "word-wide": 'B[0] = T.cast(A[0], "float16", round="rs", rbits=T.cast(n, "int64"))',
        "constant": 'B[0] = T.cast(0.1, "float16", round="rs", rbits=n)',
        "integers": 'B[0] = T.cast(T.cast(n, "int8", round="rz"), "float16")',
        "wide-integer": 'B[0] = T.cast(n, "float16", round="ru")',
        "unsaturated": 'B[0] = T.cast(T.cast(A[0], "int8", sat=False), "float16")',
        "round": 'B[0] = T.round(A[0], "rs")',
    }
    params = [tensor("A", "float32", 1), scalar("n"), output("B", "float16", 1)]
    return [refused("cast-rounding", f"illegal-{n}", b, "K128", params=params) for n, b in bodies.items()]
