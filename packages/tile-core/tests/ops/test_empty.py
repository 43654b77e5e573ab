"""Test empty tiles: no-ops for empty destinations, refusals for empty sources."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
from tile_core.errors.ops import EmptyOperand

NOTHING = {
    "atomic with a number": "T.atomic_max(B[0:0], 2)",
    "atomic with a tile": "T.atomic_add(B[0:0], A[0:0])",
    "atomic in vectors": "T.atomic_addx2(B[0:0], A[0:0])",
    "fill": "T.fill(B[0:0], 2)",
    "clear": "T.clear(B[0:0])",
    "copy": "T.copy(A[0:0], B[0:0])",
    "copy to scratch": "T.copy(A[0:0], s[0:0])",
    "fill of scratch": "T.fill(s[0:0], 1)",
    "reduction": "T.reduce_sum(M[0:0, :], s[0:0], dim=1)",
    "scan": "T.cumsum(s[0:0])",
    "transposition": "T.transpose(s2[0:0, :], s2[:, 0:0])",
    "product": "T.gemm(s2[0:0, :], s2, f2[0:0, :])",
}

REFUSED = {
    "reduction": "T.reduce_sum(M[:, 0:0], B, dim=1)",
    "maximum": "T.reduce_max(s2[:, 0:0], s, dim=1)",
    "product": "T.gemm(s2[:, 0:0], s2[0:0, :], f2)",
}

TEXT = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((64,), "float32"), M: T.Tensor((64, 32), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((32,), "float32")
        s2 = T.alloc_shared((32, 32), "float32")
        f2 = T.alloc_fragment((32, 32), "float32")
        T.clear(s)
        T.clear(s2)
        T.clear(f2)
        {line}
        T.copy(A[32:64], B[32:64])
"""


def program(path, line):
    text = TEXT.format(line=line)
    path.write_text(text)
    scope: dict[str, object] = {"__name__": "empty"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", NOTHING)
def test_nothing_happens(name, tmp_path):
    kernel = tile.compile(program(tmp_path / "k.py", NOTHING[name]), target="cpu")
    a, b = np.arange(64, dtype=np.float32), np.full(64, -1, np.float32)
    kernel(a, np.ones((64, 32), np.float32), b)
    assert (b[:32] == -1).all()
    assert (b[32:] == a[32:]).all()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    with pytest.raises(EmptyOperand):
        tile.compile(program(tmp_path / "k.py", REFUSED[name]), target="cpu")
