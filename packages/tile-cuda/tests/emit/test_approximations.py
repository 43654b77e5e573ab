"""Approximate functions of level ``"standard"``: subnormal numbers, special values, quotients that become integers."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.numerics.bounds import bound_of

from .kit import computed

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, 49.0, 1e-45, -1e-45, 1e-39, 1.1754944e-38, 3.4e38,
           1.7e38, 8.6e37, -126.0, -126.5, -149.4, -150.5, 127.9, 128.0]  # fmt: skip
C = 49.0
OUTPUTS = {
    "exp2": ("float32", lambda x, y: tirx.exp2(x)),
    "exp2_of_difference": ("float32", lambda x, y: tirx.exp2(x * tirx.FloatImm("float32", 0.5) - y)),
    "sqrt": ("float32", lambda x, y: tirx.sqrt(x)),
    "div": ("float32", lambda x, y: x / y),
    "sigmoid": ("float32", lambda x, y: tirx.sigmoid(x)),
    "by_constant": ("float32", lambda x, y: x / tirx.FloatImm("float32", C)),
    "floor": ("float32", lambda x, y: tirx.floor(x / y)),
    "floor_by_constant": ("float32", lambda x, y: tirx.floor(x / tirx.FloatImm("float32", C))),
}


def operands() -> tuple[np.ndarray, np.ndarray]:
    a, b = (g.ravel() for g in np.meshgrid(*[np.array(SPECIAL, np.float32)] * 2))
    rng = np.random.default_rng()
    bits = rng.integers(0, 2**32, (2, 2048 - 484), dtype=np.uint32).view(np.float32)
    near = rng.uniform(-160, 160, (2, 2048)).astype(np.float32)
    return np.concatenate([a, bits[0], near[0]]), np.concatenate([b, bits[1], near[1]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_within_the_table_of_bounds() -> None:
    a, b = operands()
    parts = [
        computed(OUTPUTS, [p, q], ["float32", "float32"])
        for p, q in zip(*(np.split(z, 4) for z in (a, b)), strict=True)
    ]
    found = {name: np.concatenate([part[name] for part in parts]) for name in OUTPUTS}
    x, y = a.astype(np.float64), b.astype(np.float64)
    difference = (x * 0.5 - y).astype(np.float32).astype(np.float64)
    small = np.exp(-np.abs(x))
    exact = {
        "sigmoid": np.where(x < 0, small, 1) / (1 + small),
        "exp2": np.exp2(x), "exp2_of_difference": np.exp2(difference), "sqrt": np.sqrt(x), "div": x / y,
        "by_constant": x / C, "floor": np.floor(a / b), "floor_by_constant": np.floor(a / np.float32(C)),
    }  # fmt: skip
    for name, right in exact.items():
        bound = bound_of({"by_constant": "div"}.get(name, name.split("_")[0]), "standard", "float32")
        limit = np.zeros_like(right) if bound is None else bound.allowed(right, [x, y])
        rounded, got = right.astype(np.float32), found[name]
        with np.errstate(invalid="ignore"):
            close = np.abs(got.astype(np.float64) - right) <= limit
        largest = np.isinf(got) & (np.abs(right) >= np.finfo(np.float32).max) & (np.sign(got) == np.sign(right))
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        wrong = ~(close | largest | same)
        assert not wrong.any(), (name, a[wrong][:3], b[wrong][:3], got[wrong][:3], rounded[wrong][:3])


LEVELS = ["standard", "strict"]
USES = {
    "floor": lambda q: T.floor(q), "round": lambda q: T.round(q), "ceil": lambda q: T.ceil(q),
    "cast": lambda q: T.cast(T.cast(q, "int32"), "float32"), "clamp": lambda q: T.floor(T.min(T.max(q, -30.0), 30.0)),
}  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("way", ["within", "name", "fragment"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("level", LEVELS)
def test_quotients_that_become_integers_are_exact(way: str, use: str, level: str) -> None:
    n = 50
    function = USES[use]

    @T.prim_func
    def main(X: T.Tensor((n, n), "float32"), Y: T.Tensor((n,), "float32"), Z: T.Tensor((n, n), "float32")):
        with T.Kernel(1, threads=64):
            held = T.alloc_fragment((n, n), "float32")
            if way == "fragment":
                for i, j in T.Parallel(n, n):
                    held[i, j] = X[i, j] / Y[j]
            for i, j in T.Parallel(n, n):
                if way == "within":
                    Z[i, j] = function(X[i, j] / Y[j])
                elif way == "name":
                    q = X[i, j] / Y[j]
                    Z[i, j] = function(q)
                else:
                    Z[i, j] = function(held[i, j])

    y = np.arange(1, n + 1, dtype=np.float32)
    x = np.outer(np.arange(1, n + 1, dtype=np.float32), y)
    z = np.full((n, n), np.nan, np.float32)
    tile.compile(main, "cuda:sm_80", runtime="emulator", options={"numerics": level})(x, y, z)
    want = np.repeat(np.arange(1, n + 1, dtype=np.float32), n).reshape(n, n)
    np.testing.assert_array_equal(z, np.minimum(want, 30) if use == "clamp" else want)
