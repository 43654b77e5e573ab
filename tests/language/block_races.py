"""Racing programs and similar race-free ones, in one table for all tests.

Each program is (extents of the grid, statements of a block, options). The options: ``data`` is what ``R`` holds,
``before`` and ``after`` are statements around the launch, ``threads`` of a block.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from tile_core.testing.run import load

Entry = tuple[Any, ...]
_TWICE = [3, 5, 3, 1, 7, 0, 2, 4]
_ZEROS = [0] * 8

#: Refused when they are compiled: name -> (grid, statements, a part of the message, options).
PROVABLE: dict[str, Entry] = {
    "no block index": ("4", "for i in T.Parallel(64):\n    A[i] += B[bx]", "blocks bx=0 and bx=1 both write A[0]"),
    "split K": (
        "2, 1, 2",
        "c = T.alloc_fragment((8, 8), 'float32')\nT.fill(c, bz)\nfor i, j in T.Parallel(8, 8):\n"
        "    C[i, bx * 8 + j] += c[i, j]",
        "blocks (bx=0, by=0, bz=0) and (bx=0, by=0, bz=1) both write C[0, 0]",
    ),
    "a tile for all blocks": (
        "4",
        "f = T.alloc_fragment((64,), 'float32')\nT.fill(f, bx)\nT.copy(f, A)",
        "blocks bx=0 and bx=1 both write A[0]",
    ),
    "tiles that overlap": (
        "4",
        "f = T.alloc_shared((16,), 'float32')\nT.copy(B[bx * 16], f)\nT.copy(f, A[bx * 12])",
        "blocks bx=0 and bx=1 both write A[12]",
    ),
    "tiles that overlap by one": (
        "3",
        "T.copy(B[bx * 16:bx * 16 + 16], A[bx * 15:bx * 15 + 16])",
        "blocks bx=0 and bx=1 both write A[15]",
    ),
    "a quotient": ("8", "A[bx // 2] = B[bx]", "blocks bx=0 and bx=1 both write A[0]"),
    "a remainder": ("8", "A[bx % 3] = 1.0 * bx", "blocks bx=0 and bx=3 both write A[0]"),
    "one axis left out": ("4, 2", "A[bx] = B[by]", "blocks (bx=0, by=0) and (bx=0, by=1) both write A[0]"),
    "axes that add up": ("4, 3", "A[bx + by] = B[bx * 3 + by]", "both write A[1]"),
    "a neighbour in place": (
        "3",
        "for i in T.Parallel(16):\n    A[bx * 16 + i] = A[bx * 16 + i + 16]",
        "block bx=0 reads A[16], which block bx=1 writes",
    ),
    "a transposition in place": (
        "16",
        "for i in T.Parallel(16):\n    C[bx, i] = C[i, bx]",
        "block bx=0 reads C[1, 0], which block bx=1 writes",
    ),
    "a guard that leaves two": ("4", "if bx < 2:\n    A[0] = B[bx]", "blocks bx=0 and bx=1 both write A[0]"),
    "one writes and all read": (
        "4",
        "if bx == 0:\n    A[5] = 1.0\nB[bx] = A[5]",
        "block bx=1 reads A[5], which block bx=0 writes",
    ),
    "another value on each side": (
        "2",
        "if bx == 0:\n    A[3] = 1.0\nelse:\n    A[3] = 2.0",
        "blocks bx=0 and bx=1 both write A[3]",
    ),
    "a grid of any size": (
        "T.ceildiv(n, 4)",
        "for i in T.Parallel(64):\n    A[i] = N[bx]",
        "blocks bx=0 and bx=1 both write A[0] (with n=",
    ),
    "zero beside an atomic": ("4", "A[0] = 0.0\nT.atomic_add(A[0], B[bx])", "blocks bx=0 and bx=1 both write A[0]"),
    "a read beside an atomic": (
        "4",
        "T.atomic_add(A[0], 1.0)\nB[bx] = A[0]",
        "block bx=0 reads A[0], which block bx=3 writes",
    ),
    "a reduction to one element": (
        "4",
        "f = T.alloc_fragment((16,), 'float32')\ns = T.alloc_fragment((1,), 'float32')\nT.copy(B[bx * 16], f)\n"
        "T.reduce_sum(f, s)\nT.copy(s, A[0:1])",
        "blocks bx=0 and bx=1 both write A[0]",
    ),
    "threads by name": ("4", "tx = T.get_thread_binding(0)\nA[tx] = B[tx] + bx", "both write A[0]"),
    "each block sweeps all": ("4", "for t in T.serial(8):\n    A[t] = B[bx * 8 + t]", "both write A[0]"),
    "a workspace": (
        "4",
        "for i in T.Parallel(8):\n    W[i] = B[bx]",
        "both write W[0]",
        {"before": "W = T.alloc_global((8,), 'float32')", "after": "with T.Kernel(1):\n    T.copy(W, A[0:8])"},
    ),
    "strides that overlap": (
        "4",
        "for i in T.Parallel(4):\n    S[bx, i] = 1.0 * bx",
        "blocks bx=0 and bx=1 both write S[0, 1]",
    ),
    "an index of the block": ("4", "A[T.get_block_binding(0) // 2] = B[bx]", "blocks bx=0 and bx=1 both write A[0]"),
    "in the second launch": (
        "4",
        "A[bx] = B[bx]",
        "both write A[0]",
        {"after": "with T.Kernel(2) as cx:\n    for i in T.Parallel(8):\n        A[i] = 1.0 * cx"},
    ),
}

#: Reported when they run: name -> (grid, statements, options).
BY_DATA: dict[str, Entry] = {
    "an element": ("8", "A[R[bx]] = B[bx]", {"data": _TWICE}),
    "an update": ("8", "A[R[bx]] += 1.0", {"data": _TWICE}),
    "a named index": ("8", "r = R[bx] * 2 + 1\nA[r] = B[bx]", {"data": _TWICE}),
    "a variable": ("8", "v = T.alloc_var('int32')\nv = R[bx]\nv = v + 1\nA[v] = B[bx]", {"data": _TWICE}),
    "bits of data": ("8", "A[R[bx] & 3] = B[bx]", {"data": [0, 1, 2, 3, 4, 5, 6, 7]}),
    "a row": ("8", "for i in T.Parallel(16):\n    C[R[bx], i] = 1.0 * bx", {"data": _TWICE}),
    "a tile at a corner": (
        "4",
        "f = T.alloc_shared((8,), 'float32')\nT.copy(B[bx * 8], f)\nT.copy(f, A[R[bx]])",
        {"data": [0, 8, 12, 24, 0, 0, 0, 0]},
    ),
    "rows of a scatter": (
        "2",
        "s = T.alloc_shared((4, 16), 'float32')\nr = T.alloc_shared((4,), 'int32')\nT.fill(s, bx)\n"
        "T.copy(R[bx * 4], r)\nT.scatter(s, C, r)",
        {"data": [0, 1, 2, 3, 4, 1, 6, 7]},
    ),
    "a guard": ("8", "if R[bx] > 3:\n    A[0] = 1.0 * bx", {"data": _TWICE}),
    "a guarded read": ("8", "A[bx] = T.if_then_else(R[bx] > 3, A[(bx + 1) % 8], 0.0)", {"data": _TWICE}),
    "a read in place": ("8", "A[bx] = A[R[bx]] + 1.0", {"data": _TWICE}),
    "a tile that is read": (
        "4",
        "f = T.alloc_shared((8,), 'float32')\nT.copy(A[R[bx]], f)\nT.copy(f, A[bx * 8])",
        {"data": [0, 12, 16, 24, 0, 0, 0, 0]},
    ),
    "a length": ("8", "for k in T.serial(R[bx]):\n    A[bx * 4 + k] = 1.0 * bx", {"data": [4, 4, 5, 4, 4, 4, 4, 4]}),
    "a first iteration": ("8", "for k in T.serial(R[bx], 8):\n    A[k] = 1.0 * bx", {"data": [7, 8, 8, 7, 8, 8, 8, 8]}),
    "a while loop": (
        "8",
        "v = T.alloc_var('int32')\nv = R[bx]\nwhile v < 8:\n    A[v] = 1.0 * bx\n    v = v + 8",
        {"data": _TWICE},
    ),
    "an early exit": (
        "4",
        "for k in T.serial(8):\n    if R[k] > bx:\n        break\n    A[k] = 1.0 * bx",
        {"data": [0, 3, 3, 3, 0, 0, 0, 0]},
    ),
    "an atomic and a store": ("8", "T.atomic_add(A[R[bx]], 1.0)\nA[bx] = B[bx]", {"data": _TWICE}),
    "an atomic and a read": ("8", "T.atomic_add(A[R[bx]], 1.0)\nB[bx] = A[bx]", {"data": _TWICE}),
    "threads by name, an element": (
        "2",
        "tx = T.get_thread_binding(0)\nif tx < 4:\n    A[R[bx * 4 + tx]] = 1.0 * bx",
        {"data": [3, 5, 2, 1, 7, 0, 3, 4]},
    ),
    "a workspace": (
        "8",
        "W[R[bx]] = B[bx]",
        {
            "data": _TWICE,
            "before": "W = T.alloc_global((8,), 'float32')",
            "after": "with T.Kernel(1):\n    T.copy(W, A[0:8])",
        },
    ),
}

#: Neither refused nor reported: name -> (grid, statements, options).
LEGAL: dict[str, Entry] = {
    "strides with gaps": ("4", "for i in T.Parallel(4):\n    P[bx, i] = 1.0 * bx"),
    "an element of its own": ("8", "A[bx] += B[bx]"),
    "tiles": ("4", "f = T.alloc_shared((16,), 'float32')\nT.copy(B[bx * 16], f)\nT.copy(f, A[bx * 16])"),
    "tiles with gaps": ("4", "T.copy(B[bx * 16:bx * 16 + 8], A[bx * 16:bx * 16 + 8])"),
    "tiles in two dimensions": ("2, 2", "for i, j in T.Parallel(8, 8):\n    C[by * 8 + i, bx * 8 + j] += 1.0"),
    "a tile whose end is outside": (
        "4",
        "f = T.alloc_fragment((20,), 'float32')\nT.fill(f, bx)\nif bx == 3:\n    T.copy(f, A[60])",
    ),
    "all but one outside": ("4", "for i in T.Parallel(64):\n    A[bx * 64 + i] = 1.0 * bx"),
    "one block by a guard": ("4", "if bx == 2:\n    A[0] = B[bx]"),
    "one axis by a guard": ("4, 3", "if by < 1:\n    A[bx] = 1.0 * by"),
    "guards that exclude": ("8", "if bx < 4:\n    A[bx] = A[bx + 4]"),
    "an axis of one block": ("4, 1", "A[bx] = 1.0 * by"),
    "one block": ("1", "for i in T.Parallel(64):\n    A[i] += B[bx]"),
    "the same constant": ("4", "for i in T.Parallel(64):\n    A[i] = 3.0"),
    "the same tile of zeros": ("4", "f = T.alloc_fragment((64,), 'float32')\nT.clear(f)\nT.copy(f, A)"),
    "filled by all": ("4", "T.fill(A, 7)"),
    "the same element of another tensor": ("4, 2", "A[bx] = B[bx]"),
    "the same scalar": ("4", "A[0] = 1.0 * n"),
    "the same whichever block": ("4", "A[0] = T.if_then_else(bx < 9, 2.0, 1.0 * bx)"),
    "the same constant, read behind": ("4", "A[0] = 2.0\nB[bx] = A[0]"),
    "quotient and remainder": ("8", "A[(bx % 4) * 2 + bx // 4] = B[bx]"),
    "swizzled": ("8", "A[bx ^ 5] = B[bx]"),
    "backwards": ("8", "A[7 - bx] = B[bx]"),
    "a permutation by a prime": ("7", "A[bx * 3 % 7] = B[bx]"),
    "even and odd": ("8", "A[2 * bx] = A[2 * bx + 1]"),
    "halves": ("4", "A[bx] = A[bx + 32]"),
    "transposed elsewhere": ("16", "for i in T.Parallel(16):\n    C[bx, i] = D[i, bx]"),
    "atomic updates": ("4", "T.atomic_add(A[0], B[bx])\nT.atomic_max(A[1], B[bx])"),
    "an atomic tile": ("4", "f = T.alloc_shared((64,), 'float32')\nT.copy(B, f)\nT.atomic_add(A, f)"),
    "a barrier of the grid": ("4", "A[bx] = B[bx]\nT.sync_grid()\nB[bx] = A[3 - bx]"),
    "another launch": ("4", "A[bx] = B[bx]", {"after": "with T.Kernel(4) as cx:\n    B[cx] = A[3 - cx]"}),
    "persistent blocks": ("3", "for i, j in T.Persistent((4, 4), 3, bx):\n    C[i, j] = 1.0 * bx"),
    "a sweep with a stride": ("4", "for t in T.serial(8):\n    A[t * 4 + bx] = 1.0 * bx"),
    "rows of any length": ("4", "for i in T.serial(n):\n    M[bx, i] = 1.0 * bx"),
    "a grid of any size": ("T.ceildiv(n, 4)", "for i in T.Parallel(4):\n    N[bx * 4 + i] = 1.0 * bx"),
    "a stride of any size": ("4", "for i in T.serial(n):\n    A[bx * n + i] = 1.0 * bx"),
    "modulo a size that may be large": ("4", "A[bx % n] = B[bx]"),
    "threads by name, tiles": ("4", "tx = T.get_thread_binding(0)\nif tx < 16:\n    A[bx * 16 + tx] = B[tx] + bx"),
    "an element by data": ("8", "A[R[bx]] = B[bx]", {"data": [3, 5, 6, 1, 7, 0, 2, 4]}),
    "a row by data": ("8", "for i in T.Parallel(16):\n    C[R[bx], i] = 1.0 * bx", {"data": [3, 5, 6, 1, 7, 0, 2, 4]}),
    "the same constant by data": ("8", "A[R[bx]] = 1.0", {"data": _TWICE}),
    "a guard by data": ("8", "if R[bx] > 6:\n    A[0] = 1.0 * bx", {"data": _TWICE}),
    "a read by data of another tensor": ("8", "A[bx] = B[R[bx]]", {"data": _TWICE}),
    "a ticket": (
        "8",
        "t = T.atomic_add(Q[0], 1, return_prev=True)\nA[t] = 1.0 * bx",
        {"data": _ZEROS},
    ),
}

_TEXT = """
import tile_core.language as T

n = T.dynamic("n")

@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((16, 16), "float32"),
      D: T.Tensor((16, 16), "float32"), R: T.Tensor((8,), "int32"), Q: T.Tensor((1,), "int32"),
      M: T.Tensor((8, n), "float32"), N: T.Tensor((n,), "float32"),
      S: T.StridedTensor((4, 4), (1, 1), "float32"), P: T.StridedTensor((4, 4), (6, 1), "float32")):
    {before}
    with T.Kernel({grid}, threads={threads}) as ({names},):
{body}
{after}
main = k
"""


def program(entry: Entry) -> Any:
    """Return the program of an entry."""
    grid, body = entry[:2]
    options = entry[-1] if isinstance(entry[-1], dict) else {}
    depth = 0
    axes = 1 + sum((depth := depth + (c == "(") - (c == ")")) == 0 and c == "," for c in grid)
    text = _TEXT.format(
        before=options.get("before", "pass"), grid=grid, threads=options.get("threads", 32),
        names=", ".join(("bx", "by", "bz")[:axes]), body=textwrap.indent(body, " " * 8),
        after=textwrap.indent(options.get("after", ""), " " * 4),
    )  # fmt: skip
    return load(text, "block races")


def arguments(entry: Entry) -> list[Any]:
    """Return arguments for the program of an entry; all that it may write holds numbers."""
    options = entry[-1] if isinstance(entry[-1], dict) else {}
    draw = np.random.default_rng(0)
    tensors = [draw.standard_normal(shape, np.float32) for shape in ((64,), (64,), (16, 16), (16, 16))]
    rows = np.array(options.get("data", range(8)), np.int32)
    n = 12
    return [
        *tensors,
        rows,
        np.zeros(1, np.int32),
        np.zeros((8, n), np.float32),
        np.zeros(n, np.float32),
        _strided(1, 1),
        _strided(6, 1),
    ]


def _strided(*strides: int) -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(24, np.float32), (4, 4), [4 * s for s in strides])
