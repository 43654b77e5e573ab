"""Every refusal of the tile ops: code, line, text and remedy."""

from __future__ import annotations

import inspect

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import KernelError, ops

# Each entry: the body of a kernel (with A (8, 8) float32, n int32, a shared tile s (8, 8), a fragment f (4, 8), an
# int8 tile b (8, 8) and a variable v), the error, words of its message, words of its remedy.
REFUSALS = [
    (lambda A, n, s, f, b, v: T.copy(3, s), ops.NotATile, "T.copy: src is 3", "pass a buffer"),
    (lambda A, n, s, f, b, v: T.copy(s, "f"), ops.NotATile, "T.copy: dst is 'f'", "pass a buffer"),
    (lambda A, n, s, f, b, v: T.copy(s[0, 0] + 1.0, f), ops.NotATile, "a computed float32 value", "pass a buffer"),
    (lambda A, n, s, f, b, v: T.fill([1, 2], 0), ops.NotATile, "an object of type list", "pass a buffer"),
    (
        lambda A, n, s, f, b, v: T.copy(A[0:n, :], s),
        ops.RuntimeExtent,
        "dimension 0 of src",
        "tile extents must be static",
    ),
    (
        lambda A, n, s, f, b, v: T.fill(A[:, 1:n], 0.0),
        ops.RuntimeExtent,
        "dimension 1 of dst",
        "tile extents must be static",
    ),
    (
        lambda A, n, s, f, b, v: T.copy(s, f),
        ops.ShapesDiffer,
        "src has shape (8, 8), but dst has shape (4, 8)",
        "(4, 8)",
    ),
    (lambda A, n, s, f, b, v: T.copy(s[0:2, 0:3], f[0:3, 0:2]), ops.ShapesDiffer, "(2, 3)", "slice the larger one"),
    (lambda A, n, s, f, b, v: T.cumsum(s, f), ops.ShapesDiffer, "T.cumsum", "or a slice: s[0:4, 0:8]"),
    (lambda A, n, s, f, b, v: T.copy(A[0, 0], v), ops.WritesReadOnly, "the scalar variable", "assign to it with ="),
    (lambda A, n, s, f, b, v: T.gemm(f, s, s), ops.GemmShape, "M of C against M of A (8 against 4)", "C (M, N)"),
    (lambda A, n, s, f, b, v: T.gemm(b, s, s), ops.GemmTypes, "int8 by float32", "cast one side"),
    (lambda A, n, s, f, b, v: T.gemm(b, b, b), ops.GemmTypes, "int8 by int8 into int8", "int32"),
    (
        lambda A, n, s, f, b, v: T.reduce_sum(s, f, dim=2),
        ops.BadDim,
        "dim=2 for an operand of 2 dimensions",
        "from -2 to 1",
    ),
    (lambda A, n, s, f, b, v: T.cumsum(s, dim=True), ops.BadDim, "dim=True", "from -2 to 1"),
    (lambda A, n, s, f, b, v: T.reduce_max(s, f, dim=0), ops.BadDestination, "gives (8,)", "(1, 8)"),
    (
        lambda A, n, s, f, b, v: T.reduce_bitand(s, f, dim=0),
        ops.BadElementType,
        "element type float32",
        "integers and bool",
    ),
    (lambda A, n, s, f, b, v: T.cumsum(s, b), ops.BadElementType, "T.cumsum: dst", "floats of 16 bits or more"),
    (
        lambda A, n, s, f, b, v: T.reduce_with(lambda x, y: T.fill(s, 0), s, f[0, :], identity=0),
        ops.BadFunction,
        "T.reduce_with: the function stores, declares or loops",
        "it must only compute its result from its arguments",
    ),
    (
        lambda A, n, s, f, b, v: T.scan_with(lambda x, y: x[0], (s, s), identity=(0, 0)),
        ops.BadFunction,
        "T.scan_with: the function returns",
        "return a tuple of 2 values",
    ),
    (
        lambda A, n, s, f, b, v: T.reduce_with(lambda x, y: A[T.cast(x, "int32"), 0], s, f[0, :], identity=0),
        ops.BadFunction,
        "reads A at an index that it computes",
        "compute without tables",
    ),
    (lambda A, n, s, f, b, v: T.reduce(s, f, "mean"), ops.BadAttribute, "kind='mean'", "abssum"),
    (lambda A, n, s, f, b, v: T.gemm(s, s, s, k_pack=0), ops.BadAttribute, "k_pack=0", "at least 1"),
    (lambda A, n, s, f, b, v: T.finalize_reducer(s), ops.BadAttribute, "T.finalize_reducer", "T.alloc_reducer"),
    (lambda A, n, s, f, b, v: T.atomic_load(s[0:2, 0]), ops.NotAnElement, "T.atomic_load", "pass an element"),
    (lambda A, n, s, f, b, v: T.view(s, (3, 3)), ops.ViewSize, "(3, 3) of float32 is 288 bits", "exactly the storage"),
    (lambda A, n, s, f, b, v: T.reshape(s[0:4, :], (32,)), ops.ViewOfPart, "the slice", "view the whole buffer"),
    (
        lambda A, n, s, f, b, v: T.atomic_addx4(s[0, 2], A[0, 0]),
        ops.AlignmentRule,
        "last index 2 is not a multiple of 4",
        "T.atomic_add",
    ),
    (
        lambda A, n, s, f, b, v: T.transpose(s, f),
        ops.ShapesDiffer,
        "src transposed has shape (8, 8)",
        "make them equal",
    ),
]


@pytest.mark.parametrize(("body", "error", "text", "remedy"), REFUSALS, ids=lambda x: getattr(x, "__name__", "")[:30])
def test_refusal(body, error, text, remedy):
    with pytest.raises(error) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32"), n: T.int32):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8, 8), "float32")
                f = T.alloc_fragment((4, 8), "float32")
                b = T.alloc_shared((8, 8), "int8")
                v = T.alloc_var("float32")
                body(A, n, s, f, b, v)

    found = caught.value
    assert found.code == error.code
    assert text in found.message
    assert remedy in found.help
    assert found.where.file == __file__
    assert found.where.source in {"body(A, n, s, f, b, v)", inspect.getsource(body).strip()}
    assert str(found).startswith(f"[{error.code}] ")


def test_outside_of_a_launch():
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32")):
            T.clear(A)
            with T.Kernel(1, threads=32):
                T.clear(A)

    assert caught.value.code in ("K206", "K104", "K103")
    assert caught.value.where.source == "T.clear(A)"


def test_scope():
    error = ops.ScopeNotAllowed(op="wgmma_gemm", role="C", found="shared", legal="fragment")
    assert str(error) == "[K204] T.wgmma_gemm: C is in scope shared\n   = help: it must be in: fragment"


def test_divergent_barrier():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding(0)
            if tx < 32:
                s[tx] = A[tx]
                T.sync_threads()
                A[tx] = s[63 - tx]

    with pytest.raises(ops.DivergentBarrier) as caught:
        tile.compile(main, target="cpu")
    assert caught.value.code == "K218"
    assert caught.value.where.source == "T.sync_threads()"
    assert "differs between the threads" in str(caught.value)


def test_every_class_has_a_test():
    classes = {
        c
        for c in vars(ops).values()
        if inspect.isclass(c) and issubclass(c, KernelError) and "K201" <= c.code <= "K218"
    }
    tested = {error for _, error, _, _ in REFUSALS}
    elsewhere = {ops.OutsideLaunch, ops.ScopeNotAllowed, ops.DivergentBarrier, ops.ParallelRace}
    assert {c.__name__ for c in classes - tested - elsewhere} == set()
    assert len({c.code for c in classes}) == len(classes)
