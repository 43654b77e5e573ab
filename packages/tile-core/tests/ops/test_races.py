"""Test races in T.Parallel: the two conflicting iterations are reported."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import ParallelRace

ONE, TWO = (64,), (8, 8)

#: name -> (extents, statements, what the refusal says).
REFUSED = {
    "turned": (ONE, "A[i] = A[(i + 1) % 64]", "iteration i=0 of T.Parallel reads A[1], which iteration i=1 writes"),
    "reversed": (ONE, "A[i] = A[63 - i]", "reads A[63], which iteration i=63 writes"),
    "transposed": (TWO, "s[i, j] = s[j, i]", "iteration (i=0, j=1) of T.Parallel reads s[1, 0]"),
    "seen through a view": (TWO, "s[i, j] = v[i * 8 + (j + 1) % 8]", "reads s_view[1], which iteration"),
    "in wider elements": ((32,), "w[i] = w[i] + T.int64(b[2 * i + 2])", "reads b[2], which iteration i=1 writes"),
    "under a condition": (
        ONE, "if i >= 32:;     A[i] = 0.0; x = T.if_then_else(i < 32, A[i + 32], 0.0); s[i // 8, i % 8] = x",
        "reads A[32]",
    ),
    "in a block that is not the first": ((16,), "A[i] = A[i + bx * 8]", "which iteration"),
    "in an inner loop": ((8,), "for k in T.serial(8):;     A[i + k] = T.float32(i)", "both write A[1]"),
    "in half of the iterations": (ONE, "A[i // 2] = B[i]", "iterations i=0 and i=1 of T.Parallel both write A[0]"),
    "with a scalar's offset": ((8,), "A[i + n] = A[i + n + 1]", "(with n="),
    "modulo a scalar": ((8,), "A[0] = B[i % n]", "both write A[0]"),
    "named first": ((8,), "x = A[i + 1]; A[i] = x", "reads A[1], which iteration i=1 writes"),
    "far apart in a large loop": ((1024, 1024), "L[i, j] = L[(i + 512) % 1024, j]", "of T.Parallel reads L["),
}  # fmt: skip

ACCEPTED = {
    "the other half": ((32,), "A[i] = A[i + 32]"),
    "its own element": (ONE, "A[i] = A[i] + 1.0"),
    "its own element by another formula": (TWO, "s[i, j] = v[i * 8 + j]"),
    "even and odd": ((32,), "A[2 * i] = A[2 * i + 1]"),
    "the same constant": (ONE, "A[i // 2] = 3.0"),
    "the same element of another tensor": (ONE, "A[i // 2] = B[i // 2]"),
    "the same by a choice": (ONE, "A[i // 2] = T.if_then_else(i < 64, B[i // 2], B[i])"),
    "conditions that exclude one another": (ONE, "if i < 32:;     A[i] = A[i + 32]"),
    "what it has written itself": (ONE, "A[0] = 1.0; B[i] = A[0]"),
    "a flag under data": (ONE, "if B[i] > 0.0:;     A[0] = 1.0"),
    "rows from memory": ((8,), "A[R[i]] = B[i]"),
    "a stride from a scalar": (TWO, "A[i * n + j] = 1.0 * j"),
    "modulo a scalar that may be large": ((8,), "A[i % n] = B[i]"),
    "blocks": ((8,), "A[bx * 16 + i] = A[bx * 16 + 8 + i]"),
    "an atomic": (ONE, "T.atomic_add(A[0], B[i])"),
    "outside of the tensor": (ONE, "A[i] = A[i + 64]"),
    "an array of its own": (
        (8,), "own = T.alloc_local((4,), 'float32'); own[0] = B[i]; A[i] = own[0]",
    ),
    "a large transposition": ((1024, 1024), "L[i, j] = M[j, i]"),
}  # fmt: skip

TEXT = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), R: T.Tensor((8,), "int32"), n: T.int32,
      L: T.Tensor((1024, 1024), "float32"), M: T.Tensor((1024, 1024), "float32")):
    with T.Kernel({blocks}, threads=32) as bx:
        s = T.alloc_shared((8, 8), "float32")
        b = T.alloc_shared((128,), "int32")
        T.clear(s)
        T.clear(b)
        v = T.view(s, (64,))
        w = T.view(b, (64,), "int64")
        if bx >= 0:
            for {names} in T.{loop}({extents}):
                {body}
"""


def program(path, extents, body, loop="Parallel"):
    names = "i, j" if len(extents) == 2 else "i"
    body = body.replace("; ", "\n" + " " * 16)
    text = TEXT.format(
        names=names, extents=", ".join(map(str, extents)), body=body, loop=loop, blocks=4 if "bx" in body else 1
    )
    path.write_text(text)
    scope: dict[str, object] = {"__name__": "races"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    extents, body, text = REFUSED[name]
    with pytest.raises(ParallelRace) as caught:
        tile.compile(program(tmp_path / "k.py", extents, body), target="cpu")
    assert caught.value.code == "K214"
    assert text in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.source in body


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name, tmp_path):
    extents, body = ACCEPTED[name]
    tile.compile(program(tmp_path / "k.py", extents, body), target="cpu")


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("A[i] = A[(i + 1) % 4]", "iteration i=0 of T.vectorized reads A[1], which iteration i=1 writes"),
        ("A[i // 2] = B[i]", "iterations i=0 and i=1 of T.vectorized both write A[0]"),
    ],
)
def test_lanes_are_called_as_they_are_written(tmp_path, statement, found):
    with pytest.raises(ParallelRace) as caught:
        tile.compile(program(tmp_path / "k.py", (4,), statement, loop="vectorized"), "cpu")
    assert found in caught.value.message


def test_symbolic_sizes(tmp_path):
    """A witness is a legal size."""

    @T.prim_func
    def turned(A: T.Tensor((T.dynamic("m"),), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(T.dynamic("m")):
                A[i] = A[(i + 1) % T.dynamic("m")]

    with pytest.raises(ParallelRace, match=r"iteration i=0 of T.Parallel reads A\[1\].*\(with m=64\)"):
        tile.compile(turned, target="cpu")

    @T.prim_func
    def scaled(A: T.Tensor((T.dynamic("m"),), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(T.dynamic("m")):
                A[i] = A[i] * 2.0

    tile.compile(scaled, target="cpu")


def test_the_remedy_fits():
    @T.prim_func
    def read(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = A[(i + 3) % 8]

    @T.prim_func
    def written(A: T.Tensor((8,), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(8, 8):
                A[i] = B[i, j]

    for kernel, remedy in ((read, "copy the source to another buffer first"), (written, "T.atomic_add, T.reduce_*")):
        with pytest.raises(ParallelRace) as caught:
            tile.compile(kernel, target="cpu")
        assert remedy in caught.value.help
