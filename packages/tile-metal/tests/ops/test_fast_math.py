"""Fast math: documented errors of every function, under any legal reassociation.

The text is compiled on the host with ``-ffast-math``. The models of MSL's own functions are not what a device computes,
so what is measured is what this package adds: its own functions, and what it makes of those of the library.
"""

from __future__ import annotations

import dataclasses
import math
import shutil

import ml_dtypes
import numpy as np
import pytest
from metal_lint.clang import NEWEST, OLDEST
from zoo import launch

import tile_core.language as T
import tile_emulator
from tile_core.plugins.contexts import make_context
from tile_core.vocabulary import NAMES
from tile_metal.emulation import dialect

CLANG = next((n for v in range(NEWEST, OLDEST - 1, -1) if shutil.which(n := f"clang++-{v}")), shutil.which("clang++"))

pytestmark = [
    pytest.mark.sweep(2),
    pytest.mark.skipif(CLANG is None, reason="clang++, whose pragmas control reassociation, is not installed"),
]

#: What each function is, its arguments' range, and how many units in the last place it may be off.
ONE = {
    "exp": (np.exp, (-80, 80), 6), "exp2": (np.exp2, (-120, 120), 6), "exp10": (lambda x: 10.0**x, (-35, 35), 6),
    "log": (np.log, (1e-30, 1e30), 6), "log2": (np.log2, (1e-30, 1e30), 6), "log10": (np.log10, (1e-30, 1e30), 6),
    "log1p": (np.log1p, (-0.999, 1e4), 6), "expm1": (np.expm1, (-60, 60), 6), "sqrt": (np.sqrt, (1e-30, 1e30), 6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30), 6), "sin": (np.sin, (-20, 20), 6), "cos": (np.cos, (-20, 20), 6),
    "tan": (np.tan, (-1.5, 1.5), 6), "sinh": (np.sinh, (-60, 60), 6), "cosh": (np.cosh, (-60, 60), 6),
    "tanh": (np.tanh, (-12, 12), 6), "asin": (np.arcsin, (-1, 1), 6), "acos": (np.arccos, (-1, 1), 6),
    "atan": (np.arctan, (-1e3, 1e3), 6), "asinh": (np.arcsinh, (-1e3, 1e3), 6), "acosh": (np.arccosh, (1, 1e3), 6),
    "atanh": (np.arctanh, (-0.999, 0.999), 6), "cbrt": (np.cbrt, (-1e9, 1e9), 6),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-80, 80), 6), "erf": (np.vectorize(math.erf), (-4, 4), 6),
    "floor": (np.floor, (-99, 99), 0), "ceil": (np.ceil, (-99, 99), 0), "trunc": (np.trunc, (-99, 99), 0),
    "rint": (np.rint, (-99, 99), 0), "round": (np.rint, (-99, 99), 0), "nearbyint": (np.rint, (-99, 99), 0),
    "abs": (np.abs, (-99, 99), 0),
}  # fmt: skip
TWO = {
    "pow": (np.power, (0.1, 9), 6), "atan2": (np.arctan2, (-9, 9), 6), "hypot": (np.hypot, (-1e20, 1e20), 6),
    "fmod": (np.fmod, (-99, 99), 0), "copysign": (np.copysign, (-9, 9), 0), "max": (np.maximum, (-9, 9), 0),
    "nextafter": (np.nextafter, (-9, 9), 0), "min": (np.minimum, (-9, 9), 0),
}  # fmt: skip
COUNT = 2048
#: Of the vocabulary's functions of floats, those that fast math does not concern: bits, or refused with fast math.
OTHERS = "isnan isinf isfinite fma clamp".split()


def program(names, kind="float32"):
    """Return a program with one row of results per function of one or two operands.

    The empty name is the operand itself.
    """

    @T.prim_func
    def main(
        A: T.Tensor((len(names), COUNT), "float32"),
        B: T.Tensor((len(names), COUNT), "float32"),
        Q: T.Tensor((len(names), COUNT), kind),
    ):
        with T.Kernel(COUNT // 128, threads=128) as b:
            for i in T.Parallel(128):
                at = b * 128 + i
                for n, name in enumerate(names):
                    if name in TWO:
                        Q[n, at] = getattr(T, name)(A[n, at], B[n, at])
                    elif name:
                        Q[n, at] = getattr(T, name)(A[n, at])
                    else:
                        Q[n, at] = A[n, at]

    return main


def arguments(low, high, seed=0):
    """Numbers of all magnitudes within a range, small ones and those near zero among them."""
    rng = np.random.default_rng(seed)
    wide = rng.uniform(-1, 1, COUNT) * 10.0 ** rng.integers(-12, 31, COUNT)
    even = rng.uniform(low, high, COUNT)
    found = np.where((np.arange(COUNT) % 2 == 0) & (wide > low) & (wide < high), wide, even)
    return found.astype(np.float32)


def run(made, a, b, kind="float32", contract="off"):
    """Return a program's outputs, compiled with fast math by us and by the host."""
    context = make_context("metal", options={"numerics": "fast"})
    text = launch.lowered(made, context)
    own = dialect(context.target)
    flags = [f for f in own.flags if "__METAL_VERSION__" not in f]
    flags += ["-D__METAL_VERSION__=320", "-O2", "-ffast-math", f"-ffp-contract={contract}"]
    rows = made.params[2].shape[0]
    values = {"A": a, "B": b, "Q": np.full((rows, COUNT), 0x55, np.uint8 if "float8" in kind else kind)}
    result = tile_emulator.run(text.text, text.facts, values, dataclasses.replace(own, flags=tuple(flags)))
    assert result.ok, "\n".join(map(str, result.reports))
    return result.outputs["Q"].reshape(rows, COUNT)


def units(found, exact):
    """Return errors in units in the last place, with subnormals counted as zeros."""
    exact = np.asarray(exact, np.float64)
    unit = np.spacing(np.maximum(np.abs(exact), np.finfo(np.float32).tiny).astype(np.float32)).astype(np.float64)
    return np.abs(found.astype(np.float64) - exact) / unit


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    monkeypatch.setenv("CXX", CLANG)


@pytest.mark.parametrize("contract", ["off", "fast"])
def test_functions(contract):
    rows = {**ONE, **TWO}
    a, b = (np.stack([arguments(*row[1], seed=seed) for row in rows.values()]) for seed in (0, 1))
    found = run(program(list(rows)), a, b, contract=contract)
    wrong = []
    for n, (name, (function, _, limit)) in enumerate(rows.items()):
        given = (a[n], b[n]) if name in TWO else (a[n],)
        with np.errstate(all="ignore"):
            exact = function(*(given if limit == 0 else [x.astype(np.float64) for x in given]))
        off = units(found[n], exact)
        if not off.max() <= limit:
            wrong.append(f"{name} of {', '.join(str(x[off.argmax()]) for x in given)}: {off.max():.1f} units")
    assert not wrong


def test_every_function_of_the_language_is_here():
    modules = {"values.math", "language.binary", "values.powers", "values.extremes"}
    named = {name for name, (module, own) in NAMES.items() if module in modules and name == own}
    assert named - set(OTHERS) == {*ONE, *TWO}


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("kind", INTEGERS)
def test_a_conversion_to_integers(kind):
    a = np.concatenate([arguments(-1e5, 1e5)[: COUNT // 2], arguments(-3e19, 3e19)[: COUNT // 2]])
    limits = np.iinfo(kind)
    found = run(program([""], kind), a[None], a[None], kind)[0]
    expected = [min(max(math.trunc(float(x)), limits.min), limits.max) for x in a]
    assert found.tolist() == expected


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_a_conversion_to_narrow_floats(kind):
    a = arguments(-400, 400) * np.float32(2.0) ** np.random.default_rng(2).integers(-24, 1, COUNT).astype(np.float32)
    expected = a.astype(np.dtype(getattr(ml_dtypes, kind)))
    assert run(program([""], kind), a[None], a[None], kind)[0].tolist() == expected.view(np.uint8).tolist()
