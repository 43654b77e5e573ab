"""Test negative indices in unrolled loops: refused unless a guard excludes them."""

from __future__ import annotations

import pytest

import tile_core as tile
from tile_core.errors.language import NegativeIndex

REFUSED = {
    "a read": ("for i in T.unroll(8):;    B[i] = A[i - 3]", "index -3 in dimension 0 of A"),
    "a write": ("for i in T.unroll(8):;    B[i - 1] = A[i]", "index -1 in dimension 0 of B"),
    "one of two": ("for i in T.unroll(8):;    C[bx, i] = M[bx, i - 2]", "index -2 in dimension 1 of M"),
    "a weak guard": ("for i in T.unroll(8):;    if i >= 2:;        B[i] = A[i - 3]", "index -1"),
}  # fmt: skip

ACCEPTED = {
    "a guard": "for i in T.unroll(8):;    if i >= 3:;        B[i] = A[i - 3]",
    "a choice": "for i in T.unroll(8):;    B[i] = T.if_then_else(i >= 3, A[i - 3], 0.0)",
    "a runtime offset": "for i in T.unroll(8):;    C[bx, i] = A[i + bx - 3]",
    "a serial loop": "for i in T.serial(8):;    B[i] = A[i - 3]",
    "a guard by a scalar": "for i in T.unroll(8):;    if i >= n:;        B[i] = A[i - 3]",
    "past the end": "for i in T.unroll(8):;    B[i] = A[i + 60]",
}

TEXT = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((64,), "float32"), M: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32"),
      C: T.Tensor((4, 8), "float32"), n: T.int32):
    with T.Kernel(4, threads=32) as bx:
        {body}
"""


def program(path, body):
    text = TEXT.replace("{body}", body.replace(";", "\n" + " " * 8))
    path.write_text(text)
    scope: dict[str, object] = {"__name__": "unrolled"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    body, text = REFUSED[name]
    with pytest.raises(NegativeIndex) as caught:
        tile.compile(program(tmp_path / "k.py", body), target="cpu")
    assert text in caught.value.message
    assert caught.value.where is not None


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name, tmp_path):
    tile.compile(program(tmp_path / "k.py", ACCEPTED[name]), target="cpu")
