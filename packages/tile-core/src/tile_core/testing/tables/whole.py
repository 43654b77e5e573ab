"""Expressions of whole tiles: broadcasting, slices on both sides, in-place updates, names in loops, edges."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Unit, one, output, scalar, tensor
from tile_core.testing.data import Array, numbers, values

TYPES = ("float32", "float16", "bfloat16", "int32", "uint8", "int64")
SHAPES = ((16, 32), (9, 33), (1, 7), (24, 1), (17, 65), (8, 128))


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_forms(), *_edges()]


_START = """
    x = T.alloc_{scope}(({rows}, {cols}), "{dtype}")
    r = T.alloc_{scope}(({cols},), "{dtype}")
    c = T.alloc_{scope}(({rows},), "{dtype}")
    T.copy(A, x)
    T.copy(R, r)
    T.copy(C, c)
"""

#: Statements that store B, and what they mean.
_FORMS: dict[str, tuple[str, Any]] = {
    "broadcast": ("y = x * 2 + r[None, :] - c[:, None]\nT.copy(y, B)", lambda x, r, c, n: x * 2 + r - c[:, None]),
    "vectors": ("B[...] = c[:, None] * r", lambda x, r, c, n: c[:, None] * r),
    "where": (
        "B[...] = T.where((x > r) | (x == c[:, None]), x, T.min(r, c[:, None]))",
        lambda x, r, c, n: np.where((x > r) | (x == c[:, None]), x, np.minimum(r, c[:, None])),
    ),
    "in-place": ("x += r\nx *= 2\nx[0:1, :] -= 1\nT.copy(x, B)", lambda x, r, c, n: _first((x + r) * 2)),
    "slices": (
        "x[0:1, :] = r\nx[:, 0] = c\nB[...] = 0\nB[0:{rows}, :] = x",
        lambda x, r, c, n: _column(_row(x, r), c),
    ),
    "op": ("T.copy(x + c[:, None], B)", lambda x, r, c, n: x + c[:, None]),
    "loop": (
        "z = x + 0\nfor k in range(n):\n    z = T.max(z, r) + T.cast(k, '{dtype}')\nT.copy(z, B)",
        lambda x, r, c, n: _looped(x, r, n),
    ),
    "functions": (
        'B[...] = T.clamp(abs(x), 1, 3).astype("int32") // 2',
        lambda x, r, c, n: np.clip(abs(x), 1, 3) // 2,
    ),
    "axes": (
        "B[...] = x + (r * 2)[None, :] - T.min(c, 3)[..., None]",
        lambda x, r, c, n: x + r * 2 - np.minimum(c, 3)[:, None],
    ),
}  # fmt: skip


def _forms() -> list[Unit]:
    found = []
    for k, (name, (code, meaning)) in enumerate(_FORMS.items()):
        for t, dtype in enumerate(TYPES):
            (rows, cols), scope = SHAPES[(k + t) % len(SHAPES)], ("fragment", "shared")[(k + t) % 2]
            start = _START.format(scope=scope, rows=rows, cols=cols, dtype=dtype)
            body = f"{dedent(start).strip()}\n{code.format(rows=rows, dtype=dtype)}"

            def want(d: Data, meaning: Any = meaning, dtype: str = dtype) -> Array:
                x, r, c = (values(d[a], dtype).copy() for a in "ARC")
                result: Array = np.asarray(meaning(x, r, c, int(d["n"])))
                return result

            def data(rng: np.random.Generator, rows: int = rows, cols: int = cols, dtype: str = dtype) -> Data:
                shapes = {"A": (rows, cols), "R": (cols,), "C": (rows,)}
                return {"n": 3, **{a: numbers(rng, s, dtype, 2, 6) for a, s in shapes.items()}}

            params = [
                tensor("A", dtype, rows, cols), tensor("R", dtype, cols), tensor("C", dtype, rows), scalar("n"),
                output("B", dtype, rows, cols),
            ]  # fmt: skip
            threads = (32, 64, 128, 96)[(k + t) % 4]
            found.append(one("whole", f"{name}-{dtype}", params, body, want, {"": data}, VALUE, threads=threads))
    return found


def _edges() -> list[Unit]:
    """Slices at tensor edges: outside reads 0, writes are dropped; aliased slices are read first."""
    body = """
        rows, cols = slice(by * 16, by * 16 + 16), slice(bx * 24, bx * 24 + 24)
        s = T.alloc_shared((16, 24), "float32")
        s[...] = A[rows, cols] * 2
        s[1:16, :] = s[0:15, :] + 1
        B[rows, cols] = s + A[by * 16 + 1 : by * 16 + 17, cols]
    """

    def want(d: Data) -> Array:
        a = values(d["A"], "float32")
        m, n = a.shape
        padded = np.zeros((-(-m // 16) * 16 + 1, n))
        padded[:m] = a
        s: Array = padded[:-1].reshape(-1, 16, n) * 2
        s = np.concatenate([s[:, :1], s[:, :-1] + 1], axis=1).reshape(-1, n)
        return (s + padded[1:])[:m]

    sizes = ((1, 1), (16, 24), (17, 23), (15, 49), (31, 100))
    launches = {
        f"{m}x{n}": lambda rng, m=m, n=n: {"m": m, "n": n, "A": numbers(rng, (m, n), "float32")} for m, n in sizes
    }
    params = [tensor("A", "float32", "m", "n"), output("B", "float32", "m", "n")]
    where = {"symbols": ("m", "n"), "grid": "T.ceildiv(n, 24), T.ceildiv(m, 16)", "axes": "(bx, by)"}
    return [one("whole", "edges", params, body, want, launches, VALUE, threads=96, **where)]


def _first(x: Array) -> Array:
    x[:1] = x[:1] - x.dtype.type(1)
    return x


def _row(x: Array, r: Array) -> Array:
    x[0] = r
    return x


def _column(x: Array, c: Array) -> Array:
    x[:, 0] = c
    return x


def _looped(x: Array, r: Array, n: int) -> Array:
    for k in range(n):
        x = np.maximum(x, r) + x.dtype.type(k)
    return x
