"""Programs whose tiles lie behind 2**31 elements of a tensor, where 32-bit offsets would wrap.

``TEXTS`` has one for each way to access a tensor. A is of ``ROWS`` x ``COLUMNS`` elements, and only its last corner of
``TILE`` x ``TILE`` is used, so an array that is zero elsewhere takes little memory on a host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_core.records import dataclass
from tile_core.testing.data import Array
from tile_core.testing.run import load

__all__ = ["COLUMNS", "FAR", "ROWS", "TILE", "FarProgram"]

ROWS, COLUMNS, TILE = 2**16 + 64, 2**15 + 64, 64
_HEAD = """import tile_core.language as T

{symbols}

@T.prim_func
def main(A: T.Tensor(({m}, {n}), "{dtype}"), I: T.Tensor((64,), "int32"), B: T.Tensor((64, 64), "{result}")):
    with T.Kernel(1, threads=128) as bx:
"""


@dataclass(frozen=True)
class FarProgram:
    """A program: its statements, element types, and expected results.

    Attributes
    ----------
    body
        Statements; ``{r}`` and ``{c}`` are the corner's row and column.
    dtype, result
        Of A and of B.
    expected
        A's corner and B after the launch, from the corner, the numbers of rows within it, and B before.
    """

    body: str
    expected: Callable[[Array, Array, Array], tuple[Array, Array]]
    dtype: str = "float16"
    result: str = "float16"

    def load(self, symbolic: bool) -> Any:
        """Return the program, with constant sizes or symbolic ones."""
        m, n = ("m", "n") if symbolic else (ROWS, COLUMNS)
        symbols = 'm, n = T.dynamic("m, n")' if symbolic else ""
        head = _HEAD.format(m=m, n=n, dtype=self.dtype, result=self.result, symbols=symbols)
        r, c = (f"m - {TILE}", f"n - {TILE}") if symbolic else (str(ROWS - TILE), str(COLUMNS - TILE))
        lines = self.body.format(r=r, c=c).splitlines()
        return load(head + "".join(f"        {line}\n" for line in lines), "main")


def _read(corner: Array, rows: Array, b: Array) -> tuple[Array, Array]:
    return corner, corner.astype(b.dtype)


def _written(corner: Array, rows: Array, b: Array) -> tuple[Array, Array]:
    return b.astype(corner.dtype), b


_S, _F = 's = T.alloc_shared((64, 64), "float16")\n', 'f = T.alloc_fragment((64, 64), "float16")\n'
_ROWS = 'rows = T.alloc_shared((64,), "int32")\nfor i in T.Parallel(64):\n    rows[i] = I[i] + ({r})\n'

FAR: Mapping[str, FarProgram] = {
    "elements": FarProgram("for i, j in T.Parallel(64, 64):\n    B[i, j] = A[{r} + i, {c} + j]", _read),
    "elements-written": FarProgram("for i, j in T.Parallel(64, 64):\n    A[{r} + i, {c} + j] = B[i, j]", _written),
    "bytes": FarProgram(
        "for i, j in T.Parallel(64, 64):\n    B[i, j] = A[{r} + i, {c} + j]", _read, "uint8", "uint8"
    ),
    "copy-shared": FarProgram(_S + "T.copy(A[{r}, {c}], s)\nT.copy(s, B)", _read),
    "copy-fragment": FarProgram(_F + "T.copy(A[{r}, {c}], f)\nT.copy(f, B)", _read),
    "copy-out": FarProgram(_S + "T.copy(B, s)\nT.copy(s, A[{r}, {c}])", _written),
    "copy-global": FarProgram("T.copy(A[{r} : {r} + 64, {c} : {c} + 64], B)", _read),
    "fill": FarProgram(
        "T.fill(A[{r} : {r} + 64, {c} : {c} + 64], 3)", lambda corner, rows, b: (np.full_like(corner, 3), b)
    ),
    "gather": FarProgram(
        _ROWS + _S + "T.gather(A[0, {c}], rows, s)\nT.copy(s, B)", lambda corner, rows, b: (corner, corner[rows])
    ),
    "scatter": FarProgram(
        _ROWS + _S + "T.copy(B, s)\nT.scatter(s, A[0, {c}], rows)",
        lambda corner, rows, b: (b[np.argsort(rows)].astype(corner.dtype), b),
    ),
    "indirect": FarProgram(
        "for i, j in T.Parallel(64, 64):\n    B[i, j] = A[I[i] + ({r}), {c} + j]",
        lambda corner, rows, b: (corner, corner[rows]),
    ),
    "atomic": FarProgram(
        "for i, j in T.Parallel(64, 64):\n    T.atomic_add(A[{r} + i, {c} + j], 2)",
        lambda corner, rows, b: (corner + np.int32(2), b), "int32",
    ),
    "reduce": FarProgram(
        'f = T.alloc_fragment((64, 64), "float16")\nt = T.alloc_fragment((64,), "float32")\nT.copy(A[{r}, {c}], f)\n'
        "T.reduce_sum(f, t, dim=1)\nfor i, j in T.Parallel(64, 64):\n    B[i, j] = t[i]",
        lambda corner, rows, b: (corner, np.repeat(corner.astype(np.float32).sum(1, keepdims=True), 64, 1)),
        result="float32",
    ),
    "product": FarProgram(
        's = T.alloc_shared((64, 16), "float16")\nt = T.alloc_shared((64, 16), "float16")\n'
        'c = T.alloc_fragment((64, 64), "float32")\nT.clear(c)\nfor k in T.Pipelined(4, num_stages=2):\n'
        "    T.copy(A[{r}, {c} + k * 16], s)\n    T.copy(A[{r}, {c} + k * 16], t)\n"
        "    T.gemm(s, t, c, transpose_B=True)\nT.copy(c, B)",
        lambda corner, rows, b: (corner, corner.astype(np.float32) @ corner.astype(np.float32).T), result="float32",
    ),
    "transposed": FarProgram(
        "for i, j in T.Parallel(64, 64):\n    B[i, j] = A[{r} + j, {c} + i]", lambda corner, rows, b: (corner, corner.T)
    ),
    "guarded": FarProgram(
        "for i, j in T.Parallel(64, 128):\n    if {c} + j < " + str(COLUMNS) + " and {r} + i < " + str(ROWS) + ":\n"
        "        B[i, j] = A[{r} + i, {c} + j]", _read,
    ),
}  # fmt: skip
"""By the way that A is accessed."""
