"""Test that provable accesses outside scratch buffers are refused, and no others."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import OutsideOfScratch

#: name -> (statements, what the refusal says).
REFUSED = {
    "past a fragment": ("for i in T.Parallel(40):;    f[i] = 0.0", "iteration i=32 writes f[32]: dimension 0 of f"),
    "past a shared tile": ("for i, j in T.Parallel(4, 9):;    s[i, j] = 0.0", "iteration i=0, j=8 writes s[0, 8]"),
    "rows of a shared tile": ("for i, j in T.Parallel(5, 8):;    s[i, j] = 0.0", "i=4, j=0 writes s[4, 0]"),
    "a read": ("for i in T.Parallel(32):;    A[i] = f[i + 8]", "iteration i=24 reads f[32]"),
    "a read before the first": ("for i in T.Parallel(32):;    A[i] = f[i - 1]", "iteration i=0 reads f[-1]"),
    "an accumulation": ("for i in T.Parallel(33):;    f[i] += A[i]", "iteration i=32 "),
    "a serial loop": ("for k in T.serial(33):;    s[0, k % 9] = 0.0", "iteration 8 of k writes s[0, 8]"),
    "an unrolled loop": ("for k in T.unroll(5):;    own[k] = 0.0", "iteration 4 of k writes own[4]"),
    "a loop that starts later": ("for k in T.serial(3, 6):;    own[k] = 0.0", "iteration 1 of k writes own[4]"),
    "in steps": ("for k in T.serial(0, 6, 2):;    own[k] = 0.0", "iteration 2 of k writes own[4]"),
    "backwards": ("for k in T.serial(3, -2, -1):;    own[k] = 0.0", "iteration 4 of k writes own[-1]"),
    "two loops": ("for k in T.serial(3):;    for i in T.Parallel(16):;        f[k * 16 + i] = 0.0", "writes f[32]"),
    "a loop that ends with another": (
        "for k in T.serial(6):;    for m in T.serial(k):;        own[m] = 0.0", "5 of k, 4 of m writes own[4]",
    ),
    "a block": ("for i in T.Parallel(32):;    f[bx * 16 + i] = 0.0", "iteration bx=1, i=16 writes f[32]"),
    "a guard that is too weak": ("for i in T.Parallel(40):;    if i < 33:;        f[i] = 0.0", "writes f[32]"),
    "the wrong side": ("for i in T.Parallel(40):;    A[i] = T.if_then_else(i < 32, 0.0, f[i])", "reads f[32]"),
    "a name": ("for i in T.Parallel(32):;    x = i * 2;    f[x] = 0.0", "iteration i=16 writes f[32]"),
    "a view": ("for i in T.Parallel(33):;    v[i] = 0.0", "writes s_view[32]"),
    "a large loop": ("for i in T.Parallel(1048576):;    f[i // 32767] = 0.0", "writes f[32]"),
    "a loop of unknown length": ("for k in T.serial(n):;    for i in T.Parallel(40):;        f[i] = 0.0", "f[32]"),
    "a condition": ("for i in T.Parallel(40):;    if f[i] > 0.0:;        A[i] = 0.0", "iteration i=32 reads f[32]"),
    "a tile": ("T.copy(s[1, 0], s)", "this statement covers s[4, 7]"),
    "an index": ("for i in T.Parallel(5):;    A[q[i]] = 0.0", "iteration i=4 reads q[4]"),
}  # fmt: skip

ACCEPTED = {
    "a guard": "for i in T.Parallel(40):;    if i < 32:;        f[i] = 0.0",
    "two guards": "for i in T.Parallel(40):;    if i < 36:;        if i < 32 or n < 0:;            f[i] = 0.0",
    "the other side": "for i in T.Parallel(40):;    if i >= 32:;        A[i] = 0.0;    else:;        f[i] = 0.0",
    "a choice": "for i in T.Parallel(40):;    A[i] = T.if_then_else(i < 32, f[i], 0.0)",
    "a condition in order": "for i in T.Parallel(40):;    if i < 32 and f[i] > 0.0:;        A[i] = 0.0",
    "a guard by a scalar": "for i in T.Parallel(40):;    if i < n:;        f[i] = 0.0",
    "an offset by a scalar": "for i in T.Parallel(32):;    f[i + n] = 0.0",
    "a guard by memory": "for i in T.Parallel(40):;    if A[i] > 0.0:;        f[i] = 0.0",
    "an index from memory": "for i in T.Parallel(4):;    f[q[i]] = 0.0",
    "what wraps": "for i in T.Parallel(32):;    f[T.shift_right(i * 134217728, 27) & 31] = 0.0",
    "a tensor": "for i in T.Parallel(40):;    A[i + 60] = 0.0",
    "a loop that does not run": "for k in T.serial(40):;    for m in T.serial(T.max(4 - k, 0)):;        own[k] = 0.0",
    "a loop that is left": "for k in T.serial(40):;    if k >= 4:;        break;    own[k] = 0.0",
    "a remainder": "for i in T.Parallel(40):;    if i % 2 == 0:;        A[i] = f[(i * 7 - 3) % 32]",
    "a flag as a number": "for i in T.Parallel(40):;    A[i] = own[T.cast(i < 3, 'int32') + T.cast(i < 5, 'int32')]",
    "a narrow number": "for i in T.Parallel(40):;    A[i] = f[T.cast(T.cast(i * 8, 'int8'), 'int32') // 8 + 16]",
}  # fmt: skip

TEXT = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((64,), "float32"), n: T.int32):
    with T.Kernel(3, threads=32) as bx:
        f = T.alloc_fragment((32,), "float32")
        s = T.alloc_shared((4, 8), "float32")
        q = T.alloc_shared((4,), "int32")
        own = T.alloc_local((4,), "float32")
        v = T.view(s, (32,))
        T.clear(f)
        T.clear(s)
        T.clear(q)
        for one in T.serial(4):
            own[one] = 0.0
        {body}
"""


def program(path, body):
    text = TEXT.replace("{body}", body.replace(";", "\n" + " " * 8))
    path.write_text(text)
    scope: dict[str, object] = {"__name__": "outside"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    body, text = REFUSED[name]
    with pytest.raises(OutsideOfScratch) as caught:
        tile.compile(program(tmp_path / "k.py", body), target="cpu")
    assert caught.value.code == "K226"
    assert text in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.source.strip() in body


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name, tmp_path):
    kernel = tile.compile(program(tmp_path / "k.py", ACCEPTED[name]), target="cpu")
    if "index from memory" not in name:
        kernel(np.zeros(64, np.float32), 3)


def test_tiles_of_ops_are_covered_to_their_ends() -> None:
    def build(count: int, step: int) -> tile.Kernel:
        @T.prim_func
        def k(A: T.Tensor((64,)), C: T.Tensor((32,))):
            with T.Kernel(1, threads=64):
                f = T.alloc_shared((32,), "float32")
                T.clear(f)
                for n in T.serial(count):
                    T.copy(A[n * step : n * step + 16], f[n * step : n * step + 16])
                T.copy(f, C)

        return tile.compile(k, target="cpu")

    a = np.arange(64, dtype="float32")
    for count, step in ((2, 16), (3, 8)):
        c = np.zeros(32, "float32")
        build(count, step)(a, c)
        np.testing.assert_array_equal(c, a[:32])
    with pytest.raises(OutsideOfScratch, match=r"iteration 2 of n covers f\[32\]"):
        build(4, 16)
    with pytest.raises(OutsideOfScratch, match=r"iteration 3 of n covers f\[39\]"):
        build(4, 8)


def test_tiles_of_ops_under_a_guard_are_accepted() -> None:
    @T.prim_func
    def k(A: T.Tensor((64,)), C: T.Tensor((32,))):
        with T.Kernel(1, threads=64):
            f = T.alloc_shared((32,), "float32")
            for n in T.serial(4):
                if n < 2:
                    T.copy(A[n * 16 : n * 16 + 16], f[n * 16 : n * 16 + 16])
            T.copy(f, C)

    a, c = np.arange(64, dtype="float32"), np.zeros(32, "float32")
    tile.compile(k, target="cpu")(a, c)
    np.testing.assert_array_equal(c, a[:32])
