"""The table of bounds: its implementations on the CPU keep it, over all float32 values by rotation."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from float_sweep import NAMES, mantissas, part_of_all, swept, worst

from tile_core.numerics import bounds
from tile_core.numerics.bounds import BOUNDS, EXACT, ErrorBound, LevelBounds, bound_of, units_of
from tile_core.numerics.levels import FAST, LEVELS, STANDARD, STRICT
from tile_core.reference.functions import FUNCTIONS
from tile_core.vocabulary import NAMES as VOCABULARY

#: Parts of all values, of which each rotation sweeps one: a prime, so that a part has all exponents and mantissas.
PARTS = 4099
ROTATION = os.environ.get("SWEEP_TURN", "0")
PART = 0 if ROTATION == "all" else int(ROTATION) // 7


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_functions_keep_their_bounds_on_the_cpu(name, level):
    found = swept(name, part_of_all(PART, PARTS), "cpu", None, level, expanded=True)
    assert found.ratio <= 1, found


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once_more(name, dtype):
    """All values: the kernel's result is the float32 function's within its bound, rounded."""
    import tile_core as tile
    import tile_core.language as T
    from tile_core.testing.data import all_codes, values

    function = getattr(T, name)

    @T.prim_func
    def main(X: T.Tensor((65536,), dtype), Y: T.Tensor((65536,), dtype)):
        with T.Kernel(64, threads=128) as bx:
            for i in T.Parallel(1024):
                Y[bx * 1024 + i] = function(X[bx * 1024 + i])

    x = all_codes(dtype, (65536,))
    y = values(np.asarray(tile.compile(main, "cpu", out_idx=1)(x)), dtype)
    wide = values(x, dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(FUNCTIONS["roundaway" if name == "round" else name](wide))
        bound = bound_of(name, STANDARD, dtype) or ErrorBound(0)
        error = bound.allowed(exact, [wide])
        low, high = (np.asarray(exact + e).astype(x.dtype).astype(np.float64) for e in (-error, error))
    good = (y >= low) & (y <= high) | (np.isnan(exact) & np.isnan(y))
    assert good.all(), (wide[~good][0], y[~good][0], exact[~good][0])


@pytest.mark.parametrize("name", ["exp", "log"])
def test_a_bound_that_is_wrong_fails(monkeypatch, name):
    """float32 results are never within a quarter of a unit of all exact ones."""
    x = mantissas(3, 6)
    with np.errstate(all="ignore"):
        y = np.asarray(FUNCTIONS[name](x.astype(np.float64))).astype(np.float32)
    assert worst(name, x, y, STANDARD).ratio <= 1
    tight = ErrorBound(0.25)
    monkeypatch.setitem(bounds.BOUNDS, name, LevelBounds(tight, tight, tight))
    for level in LEVELS:
        assert worst(name, x, y, level).ratio > 1


#: Wrong results of functions, and the levels that find them; an argument of zero is among the values.
PLANTED = {
    "a special value": ("exp", lambda x, y: np.where(np.isnan(x), 0, y), LEVELS),
    "an infinity": ("log", lambda x, y: np.where(x == 0, np.float32(-3e38), y), LEVELS),
    "an early overflow": ("exp", lambda x, y: np.where(y > 1e38, np.inf, y), LEVELS),
    "a zero for a normal number": ("exp", lambda x, y: np.where(y < 2.0**-120, 0, y), LEVELS),
    "a flushed result": ("exp", lambda x, y: np.where(y < 2.0**-126, 0, y), (STRICT, STANDARD)),
    "a flushed argument": (
        "rsqrt", lambda x, y: np.where(abs(x) < 2.0**-126, np.copysign(np.inf, x), y), (STRICT, STANDARD),
    ),
    "the sign of a zero": ("sin", lambda x, y: np.where(x == 0, 0, y), (STRICT, STANDARD)),
    "an approximation": ("sin", lambda x, y: y + np.float32(2.0**-14), (STRICT, STANDARD)),
    "an approximation near a pole": ("tan", lambda x, y: y * np.float32(1.01), LEVELS),
    "a rounding to an integer": ("floor", lambda x, y: np.where(np.isfinite(y), y + 1, y), LEVELS),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_wrong_results_are_found_at_each_level(planted):
    name, wrong, levels = PLANTED[planted]
    x = np.concatenate([mantissas(3, 8), np.array([0.0, -0.0], np.float32)])
    with np.errstate(all="ignore"):
        y = np.asarray(FUNCTIONS[name](x.astype(np.float64))).astype(np.float32)
        changed = wrong(x, y).astype(np.float32)
    for level in LEVELS:
        assert worst(name, x, y, level).ratio <= 1, level
        assert (worst(name, x, changed, level).ratio > 1) == (level in levels), level


def test_the_parts_are_all_values():
    parts = [part_of_all(n, 7 * 65536) for n in range(3)]
    assert sum(-(-((1 << 32) - n) // 4099) for n in range(4099)) == 1 << 32
    assert len(np.unique(np.concatenate(parts).view(np.uint32))) == sum(map(len, parts))
    assert len(mantissas(1)) == 2 * 256 * 4096
    assert len({int(b) >> 23 for b in mantissas(1, 2).view(np.uint32)}) == 512


def test_the_table_has_every_function_of_floats():
    tests = {"isnan", "isinf", "isfinite"}
    float_functions = {n for n in FUNCTIONS if n in VOCABULARY and not n.startswith("ieee_")} | {"clamp", "max", "min"}
    operators = {"add", "sub", "mul", "div", "neg"}
    assert (float_functions | operators) - tests - {"fma", "ldexp"} <= set(BOUNDS) | EXACT
    assert set(BOUNDS) - operators <= float_functions


def test_levels_widen_each_bound():
    x = np.array([-300.0, -2.0, -0.5, 0.0, 0.5, 1.0, 2.0, 300.0])
    for name, row in BOUNDS.items():
        with np.errstate(all="ignore"):
            errors = [row.at(level).allowed(np.exp(x / 9), [x, x]) for level in (STRICT, STANDARD, FAST)]
        assert (errors[0] <= errors[1]).all(), name
        # Fast bounds with an absolute part or a range may be below those of standard for large results.
        if not row.fast.absolute and not math.isfinite(row.fast.high):
            assert (errors[1] <= errors[2] * 6).all(), name


def test_the_page_shows_the_table():
    page = (Path(__file__).parents[4] / "docs" / "language" / "scalars.md").read_text(encoding="utf-8")
    shown = page.split("<!-- bounds: begin -->\n")[1].split("\n<!-- bounds: end -->")[0]
    assert shown == bounds.as_table()


def test_units():
    values = np.array([1.0, 1.5, 2.0, 3.4e38, 1e-45, 2.0**-126, 2.0**-127, 0.0, 0.99999999])
    expected = [2.0**-23, 2.0**-23, 2.0**-22, 2.0**104, 2.0**-149, 2.0**-149, 2.0**-149, 2.0**-149, 2.0**-24]
    np.testing.assert_array_equal(units_of(values), expected)
    assert units_of(np.array([1.0]), "float64") == 2.0**-52


def test_float64_has_one_bound():
    assert {bound_of("exp", level, "float64") for level in LEVELS} == {bounds.WIDE}
    assert {bound_of("div", level, "float64") for level in LEVELS} == {ErrorBound(0.5)}
    assert bound_of("floor", FAST, "float32") is None
