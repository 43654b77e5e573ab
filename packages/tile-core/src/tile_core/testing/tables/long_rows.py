"""Softmax and normalization of rows that exceed the registers of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.testing.case import Data, Tolerance, Unit, one, output, tensor
from tile_core.testing.data import Array, stored, values
from tile_core.testing.source import lines

#: Form, element type, rows of a block, blocks, elements of a row, threads.
_UNITS = (
    ("softmax", "float32", 1, 2, 131_072, 1024),
    ("softmax", "bfloat16", 1, 1, 131_071, 1024),
    ("norm", "float32", 1, 1, 100_003, 256),
    ("norm", "float16", 2, 1, 9_001, 64),
    ("in-place", "float32", 1, 2, 12_288, 32),
    ("in-place", "float16", 1, 1, 131_072, 256),
)
_SOFTMAX = """
    T.reduce_max(x, s, dim=1)
    for i, j in T.Parallel({rows}, {n}):
        x[i, j] = T.exp(x[i, j] - s[i])
    T.reduce_sum(x, s, dim=1)
    for i, j in T.Parallel({rows}, {n}):
        x[i, j] = x[i, j] / s[i]
    T.copy(x, B[row, 0])
"""
_NORM = """
    q = T.alloc_fragment(({rows}, {n}), "float32")
    for i, j in T.Parallel({rows}, {n}):
        q[i, j] = x[i, j] * x[i, j]
    T.reduce_sum(q, s, dim=1)
    for i, j in T.Parallel({rows}, {n}):
        B[row + i, j] = x[i, j] / T.sqrt(s[i] / {n} + 1.0)
"""
#: The input changes before the elements are read again.
_IN_PLACE = """
    T.reduce_max(x, s, dim=1)
    for i, j in T.Parallel({rows}, {n}):
        A[row + i, j] = 1
    for i, j in T.Parallel({rows}, {n}):
        B[row + i, j] = x[i, j] - s[i]
"""


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    found: Array = e / e.sum(1, keepdims=True)
    return found


def _norm(x: Array) -> Array:
    found: Array = x / np.sqrt((x * x).mean(1, keepdims=True) + 1)
    return found


def _difference(x: Array) -> Array:
    found: Array = x - x.max(1, keepdims=True)
    return found


_FORMS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "softmax": (_SOFTMAX, _softmax), "norm": (_NORM, _norm), "in-place": (_IN_PLACE, _difference),
}  # fmt: skip
_TOLERANCES = {"float32": Tolerance(2e-5, 1e-9), "float16": Tolerance(1e-3, 1e-7), "bfloat16": Tolerance(1e-2, 1e-9)}


def units() -> list[Unit]:
    """Return the units of this table."""
    return [_unit(*given) for given in _UNITS]


def _unit(form: str, dtype: str, rows: int, blocks: int, n: int, threads: int) -> Unit:
    code, meaning = _FORMS[form]
    start = lines(f"""
        x = T.alloc_fragment(({rows}, {n}), "float32")
        s = T.alloc_fragment(({rows},), "float32")
        row = bx * {rows}
        T.copy(A[row, 0], x)
    """)
    shape = (rows * blocks, n)

    def want(d: Data) -> Data:
        x = values(d["A"], dtype).astype(np.float64)
        return {"A": np.ones(shape) if form == "in-place" else x, "B": meaning(x)}

    def data(rng: np.random.Generator) -> Data:
        return {"A": stored(rng.integers(-32, 32, shape) / 8, dtype)}

    params = [output("A", dtype, *shape), output("B", dtype, *shape)]
    if form != "in-place":
        params[0] = tensor("A", dtype, *shape)
    body = f"{start}\n{lines(code.format(rows=rows, n=n))}"
    name = f"{form}-{dtype}-{rows}x{n}-{threads}"
    tolerance = _TOLERANCES[dtype]
    return one("long_rows", name, params, body, want, {"": data}, tolerance, grid=str(blocks), threads=threads)
