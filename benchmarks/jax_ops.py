"""Costs of an operator of JAX that is a tile kernel, beside XLA's own operations.

    python benchmarks/jax_ops.py [--seconds 2] [--json FILE]

Both sides compute ``x * x * w`` of 8 x 16 floats on the CPU. Demand: a call inside of ``jax.jit`` takes at most five
times as long as XLA's own, alone and in a chain of 100. Longer chains, of which XLA makes one loop, are reported. It
needs JAX.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from sides import Row, at_most, interleaved, run

import tile_core.language as T
import tile_jax

_CALLS = 50
_CHAINS = (1, 100, 1000)
_DEMANDED = 100


def operator() -> tile_jax.JaxOperator:
    """Return the operator."""
    m, N, block = T.dynamic("m"), 16, 32

    @T.prim_func
    def square(X: T.Tensor((m, N), "float32"), w: T.Tensor((N,), "float32"), Y: T.Tensor((m, N), "float32")):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * X[bx * block + i, j] * w[j]

    return tile_jax.op("tile_benchmarks::square", square)


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return a row for each length of a chain of calls in one compiled function."""
    draw = np.random.default_rng(0).uniform
    x, w = (jax.numpy.asarray(draw(0.9, 1.1, shape), "float32") for shape in ((8, 16), (16,)))
    f = operator()

    def theirs(x: jax.Array, w: jax.Array) -> jax.Array:
        return x * x * w

    np.testing.assert_allclose(f(x, w), theirs(x, w), rtol=1e-6)
    rows = []
    for length in _CHAINS:
        sides = [_repeated(jax.jit(_chain(call, length)), x, w) for call in (f, theirs)]
        ours, xla = (s / _CALLS / length * 1e6 for s in interleaved(*sides, seconds=arguments.seconds))
        name = "one call of a compiled function" if length == 1 else f"each of {length} calls in one function"
        ratio = ours / xla
        demand = at_most(ratio, 5.0) if length <= _DEMANDED else None
        rows.append({"call": name, "operator us": ours, "XLA us": xla, "ratio": ratio, "demand": demand})
    return rows


def _chain(call: Callable[..., Any], length: int) -> Callable[..., Any]:
    return lambda x, w: functools.reduce(lambda value, _: call(value, w), range(length), x)


def _repeated(call: Callable[..., Any], x: Any, w: Any) -> Callable[[], None]:
    call(x, w)

    def repeat() -> None:
        for _ in range(_CALLS):
            jax.block_until_ready(call(x, w))

    return repeat


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")


if __name__ == "__main__":
    run("operators of JAX", measure, options)
