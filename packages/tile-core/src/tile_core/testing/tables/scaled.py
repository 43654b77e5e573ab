"""T.fp8_scaled_matmul: formats, scales per tensor, row, column and block, and refusals."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import VALUE, Data, Unit, one, output, refused, tensor
from tile_core.testing.data import Array, more_fp8, numbers, stored, values

_USUAL = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
FORMATS = (*_USUAL, *more_fp8(*_USUAL))
SCALES = ("float32", "float8_e8m0fnu", "float16")


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for n, a in enumerate(FORMATS):
        b = _USUAL[(n * 3 + 1) % 4]
        for k, kind in enumerate(("tensor", "row", "block")):
            found.append(_unit(a, b, SCALES[(n + k) % 3], kind, turned=(n + k) % 2 == 1))
    return [*found, *_refusals()]


def _unit(a: str, b: str, scale: str, kind: str, turned: bool) -> Unit:
    m, n, k, block = 17, 24, 64, 32
    sa = {"tensor": (1,), "row": (m,), "block": (m, k // block)}[kind]
    sb = {"tensor": (1,), "row": (n,), "block": (n, k // block) if turned else (k // block, n)}[kind]
    right = (n, k) if turned else (k, n)
    body = f'''
        A_s = T.alloc_shared(({m}, {k}), "{a}")
        B_s = T.alloc_shared({right}, "{b}")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.fp8_scaled_matmul(A_s, SA, B_s, SB, C, transpose_B={turned})
    '''

    def data(rng: np.random.Generator) -> Data:
        drawn = {
            "A": numbers(rng, (m, k), a, -3, 3), "B": numbers(rng, right, b, -3, 3),
            "SA": stored(2.0 ** rng.integers(-2, 3, sa), scale), "SB": stored(2.0 ** rng.integers(-2, 3, sb), scale),
        }  # fmt: skip
        return drawn

    def want(d: Data) -> Array:
        x, y = values(d["A"], a), values(d["B"], b)
        p, q = values(d["SA"], scale), values(d["SB"], scale)
        y, q = (y.T, q.T) if turned and kind == "block" else (y.T if turned else y, q)
        if kind == "block":
            parts = [
                (x[:, i * block : (i + 1) * block] @ y[i * block : (i + 1) * block]) * p[:, i, None] * q[i]
                for i in range(k // block)
            ]
            total: Array = np.sum(parts, axis=0)
            return total
        return (x @ y) * (p[:, None] if kind == "row" else p) * q

    params = [
        tensor("A", a, m, k),
        tensor("SA", scale, *sa),
        tensor("B", b, *right),
        tensor("SB", scale, *sb),
        output("C", "float32", m, n),
    ]
    name = f"{a}-{b}-{kind}-{scale}{'-t' if turned else ''}"
    return one("fp8_scaled_matmul", name, params, body, want, {"": data}, VALUE)


def _refusals() -> list[Unit]:
    lines = """
        a = T.alloc_shared((16, 32), "{a}")
        b = T.alloc_shared((32, 16), "float8_e4m3fn")
        s = T.alloc_shared({s}, "float32")
        t = T.alloc_shared((1,), "float32")
        c = T.alloc_fragment((16, 16), "float32")
        T.fp8_scaled_matmul(a, s, b, t, c)
    """
    op = "fp8_scaled_matmul"
    return [
        refused(op, "illegal-float16", lines.format(a="float16", s=(1,)), "K222"),
        refused(op, "illegal-uint8-without-format", lines.format(a="uint8", s=(1,)), "K222"),
        refused(op, "illegal-scale", lines.format(a="float8_e5m2", s=(7,)), "K223"),
    ]
