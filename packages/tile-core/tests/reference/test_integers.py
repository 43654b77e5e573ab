"""Integer expressions against Python's integers, wrapped at the width of the type after every operation."""

import operator

import numpy as np
import pytest

import tile_core.language as T
from tile_core.reference import execute

LANES = 64
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def wrapped(value, dtype):
    bits = BITS[dtype]
    value &= 2**bits - 1
    return value - 2**bits if dtype.startswith("int") and value >> (bits - 1) else value


def floor_divide(a, b):
    return a // b if b else 0


def floor_mod(a, b):
    return a % b if b else 0


def truncated_divide(a, b):
    return (abs(a) // abs(b)) * (1 if (a >= 0) == (b >= 0) else -1) if b else 0


def truncated_mod(a, b):
    return a - truncated_divide(a, b) * b if b else 0


PYTHON = {"//": floor_divide, "%": floor_mod, "truncdiv": truncated_divide, "truncmod": truncated_mod}
PYTHON |= {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_}
PYTHON |= {"^": operator.xor, "min": min, "max": max}
TILE = {"truncdiv": T.truncdiv, "truncmod": T.truncmod, "min": T.min, "max": T.max, "//": operator.floordiv}
TILE |= {"%": operator.mod, "^": operator.xor} | {k: PYTHON[k] for k in "+-*&|"}


def tree(rng, depth):
    """Return a random expression: an operator with two, ``"a"``, ``"b"``, or a number."""
    if depth == 0 or rng.random() < 0.15:
        return ("a", "b", int(rng.integers(1, 9)))[int(rng.integers(3))]
    x, y = tree(rng, depth - 1), tree(rng, depth - 1)
    return (str(rng.choice(sorted(PYTHON))), "a" if isinstance(x, int) and isinstance(y, int) else x, y)


def in_tile(expression, a, b):
    if isinstance(expression, tuple):
        return TILE[expression[0]](*(in_tile(e, a, b) for e in expression[1:]))
    return {"a": a, "b": b}.get(expression, expression) if isinstance(expression, str) else expression


def in_python(expression, a, b, dtype):
    if isinstance(expression, tuple):
        x, y = (in_python(e, a, b, dtype) for e in expression[1:])
        return wrapped(PYTHON[expression[0]](x, y), dtype)
    return {"a": a, "b": b}.get(expression, expression) if isinstance(expression, str) else expression


def numbers(rng, dtype):
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    data = rng.integers(low, high, LANES, dtype, endpoint=True)
    small = [low, high, 0, 1, 2, 3, 7, high - 1, low + 1]
    data[: len(small)] = small
    data[len(small) : 2 * len(small)] = rng.integers(0, 9, len(small))
    return rng.permutation(data)


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_random_expressions(dtype):
    rng = np.random.default_rng([2, BITS[dtype], dtype.startswith("u")])
    expressions = [tree(rng, 3) for _ in range(40)]

    @T.prim_func
    def k(A: T.Tensor((LANES,), dtype), B: T.Tensor((LANES,), dtype), out: T.Tensor((len(expressions), LANES), dtype)):
        with T.Kernel(1, threads=LANES):
            for i in T.Parallel(LANES):
                a, b = A[i], B[i]
                for n, e in enumerate(expressions):
                    out[n, i] = T.cast(in_tile(e, a, b), dtype)

    a, b = numbers(rng, dtype), numbers(rng, dtype)
    found = np.zeros((len(expressions), LANES), dtype)
    execute(k, [a, b, found])
    for e, row in zip(expressions, found, strict=True):
        want = [wrapped(in_python(e, int(x), int(y), dtype), dtype) for x, y in zip(a, b, strict=True)]
        assert row.tolist() == want, e


@pytest.mark.parametrize("dtype", sorted(BITS))
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_floats_become_integers(source, dtype):
    """Towards zero, the limits of the type beyond them, 0 for NaN."""
    values = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.5, 128.0, 255.9, 256.0, -129.0, 3e4, -7e4, 2.0**31, 2.0**32]
    values += [
        -(2.0**31),
        2.0**63,
        2.0**64,
        -(2.0**63),
        1e30,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
        32767.6,
        65535.0,
        2.0**31 - 129,
    ]
    import ml_dtypes

    with np.errstate(over="ignore"):
        given = np.array(values).astype(getattr(ml_dtypes, source, source))

    @T.prim_func
    def k(A: T.Tensor((len(values),), source), out: T.Tensor((len(values),), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(len(values)):
                out[i] = T.cast(A[i], dtype)

    found, info = np.zeros(len(values), dtype), np.iinfo(dtype)
    execute(k, [given, found])
    for x, y in zip(given.astype("float64").tolist(), found.tolist(), strict=True):
        want = 0 if x != x else info.max if x > info.max else info.min if x < info.min else int(x)
        assert y == want, x
