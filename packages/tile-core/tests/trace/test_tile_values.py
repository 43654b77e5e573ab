"""Test tile expressions: their loops, when they are computed, and refusals."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import KernelError


def _body(program):
    return program.script().split("def k(", 1)[1]


def _run(program, *arrays, outputs):
    poisoned = [np.full(shape, np.nan, "float32") for shape in outputs]
    tile.compile(program, "cpu")(*arrays, *poisoned)
    return poisoned


def _kernel(expression, target="y[...]"):
    """Return the program of ``y[...] = expression`` over tiles x (8, 12), b (12,), c (8,)."""

    @T.prim_func
    def k(
        A: T.Tensor((8, 12), "float32"), B: T.Tensor((12,), "float32"), C: T.Tensor((8,), "float32"), n: T.int32,
        Y: T.Tensor((8, 12), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((8, 12), "float32")
            b = T.alloc_fragment((12,), "float32")
            c = T.alloc_fragment((8,), "float32")
            y = T.alloc_fragment((8, 12), "float32")
            T.copy(A, x)
            T.copy(B, b)
            T.copy(C, c)
            expression(x, b, c, n, y)
            T.copy(y, Y)

    return k


@T.macro
def _store(y, value):
    y[...] = value


PAIRS = {
    "arithmetic": (lambda x, b, c, n: x * 2 + 1 - x / 3, lambda x, b, c, n, i, j: x[i, j] * 2 + 1 - x[i, j] / 3),
    "a row": (lambda x, b, c, n: x * 2 + b[None, :], lambda x, b, c, n, i, j: x[i, j] * 2 + b[j]),
    "a row without None": (lambda x, b, c, n: 2 - x * b, lambda x, b, c, n, i, j: 2 - x[i, j] * b[j]),
    "a column": (lambda x, b, c, n: T.exp(x - c[:, None]), lambda x, b, c, n, i, j: T.exp(x[i, j] - c[i])),
    "two vectors": (lambda x, b, c, n: c[:, None] * b[None, :], lambda x, b, c, n, i, j: c[i] * b[j]),
    "a column of a tile": (lambda x, b, c, n: x[:, 3:4] - x, lambda x, b, c, n, i, j: x[i, 3] - x[i, j]),
    "a scalar": (lambda x, b, c, n: x * n + c[2], lambda x, b, c, n, i, j: x[i, j] * n + c[2]),
    "where": (
        lambda x, b, c, n: T.where(x > b, x, -1.0),
        lambda x, b, c, n, i, j: T.Select(x[i, j] > b[j], x[i, j], -1.0),
    ),
    "equality": (
        lambda x, b, c, n: T.where((x == 0) | (b != 1), x, b),
        lambda x, b, c, n, i, j: T.Select((x[i, j] == 0) | (b[j] != 1), x[i, j], b[j]),
    ),
    "functions of several": (
        lambda x, b, c, n: T.max(T.clamp(x, -1, 1), b, c[:, None]),
        lambda x, b, c, n, i, j: T.max(T.clamp(x[i, j], -1, 1), b[j], c[i]),
    ),
    "conversions": (
        lambda x, b, c, n: T.cast(x.astype("float16") + T.cast(b, "float16"), "float32"),
        lambda x, b, c, n, i, j: T.cast(x[i, j].astype("float16") + T.cast(b[j], "float16"), "float32"),
    ),
    "abs and powers": (
        lambda x, b, c, n: abs(x) ** 2 + T.sqrt(abs(b)),
        lambda x, b, c, n, i, j: abs(x[i, j]) ** 2 + T.sqrt(abs(b[j])),
    ),
    "integers": (
        lambda x, b, c, n: (T.cast(x, "int32") * 5 // 3) % 7 ^ (T.cast(b, "int32") << 2),
        lambda x, b, c, n, i, j: (T.cast(x[i, j], "int32") * 5 // 3) % 7 ^ (T.cast(b[j], "int32") << 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_an_expression_is_its_loop(name):
    whole, of_element = PAIRS[name]

    @T.macro
    def loop(x, b, c, n, y):
        for i, j in T.Parallel(8, 12):
            y[i, j] = of_element(x, b, c, n, i, j)

    @T.macro
    def tiles(x, b, c, n, y):
        y[...] = whole(x, b, c, n)

    assert _body(_kernel(tiles)) == _body(_kernel(loop))


def test_a_shared_operand_is_computed_once():
    def gelu(v):
        return v * T.sigmoid(v * 1.702)

    @T.macro
    def tiles(x, b, c, n, y):
        y[...] = gelu(gelu(gelu(gelu(T.exp(x)))))

    assert len(_body(_kernel(tiles))) < 4000  # a copy for every use would be 2**4 exponentials


rng = np.random.default_rng(7)


def _data():
    return tuple(rng.standard_normal(shape).astype("f") for shape in ((8, 12), (12,), (8,)))


def _result(body):
    a, b, c = _data()
    (y,) = _run(_kernel(body), a, b, c, 3, outputs=[(8, 12)])
    return a, b, c, y


def test_names_are_tiles_of_their_own():
    @T.macro
    def body(x, b, c, n, y):
        z = x * 2
        w = z + b
        z = z * 0.5  # another tile: w keeps its value
        y[...] = z + w

    a, b, _, y = _result(body)
    np.testing.assert_allclose(y, a * 3 + b, rtol=1e-5, atol=1e-5)


def test_in_loops_and_branches_a_name_keeps_its_tile():
    @T.macro
    def body(x, b, c, n, y):
        acc = x * 0
        for k in range(n):
            acc = acc * 0.5 + x
            if k == 1:
                acc = acc - b
            acc += 1
        y[...] = acc

    a, b, _, y = _result(body)
    acc = a * 0
    for k in range(3):
        acc = acc * 0.5 + a - (b if k == 1 else 0) + 1
    np.testing.assert_allclose(y, acc, rtol=1e-5)


def test_a_value_is_computed_where_it_was_written():
    kept = []

    @T.macro
    def body(x, b, c, n, y):
        kept.append(x * 2)
        T.clear(x)
        for _ in range(n):
            y[...] = kept[-1] + x
            x[...] = 7

    a, _, _, y = _result(body)
    np.testing.assert_allclose(y, a * 2 + 7)


def test_several_targets_are_assigned_after_all_values():
    @T.macro
    def body(x, b, c, n, y):
        T.copy(x, y)
        z = x + 0
        for _ in range(n):
            y[...], z[...] = z + 1, y * 2
        y[...] = y - z

    a, _, _, y = _result(body)
    p, q = a, a
    for _ in range(3):
        p, q = q + 1, p * 2
    np.testing.assert_allclose(y, p - q, rtol=1e-5)


@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_overlapping_slices_are_read_first(scope):
    @T.macro
    def body(x, b, c, n, y):
        s = T.alloc_shared((8, 12), "float32")
        T.copy(x, s)
        s[1:8, :] = s[0:7, :] * 2
        s[0:4, 0:6] = s[0:4, 6:12] + 1
        s[:, 0] = s[:, 1]
        s[2:4, :] = b
        s[5, :] = 4
        T.copy(s, y)

    a, b, _, y = _result(body)
    a[1:] = a[:-1] * 2
    a[:4, :6] = a[:4, 6:] + 1
    a[:, 0] = a[:, 1]
    a[2:4] = b
    a[5] = 4
    np.testing.assert_allclose(y, a)


def test_ops_take_expressions():
    @T.macro
    def body(x, b, c, n, y):
        top = T.alloc_fragment((8,), "float32")
        T.reduce_max(x * x, top, dim=1)
        T.copy(x - top[:, None], y)
        y[...] = y * 2

    a, _, _, y = _result(body)
    np.testing.assert_allclose(y, (a - (a * a).max(1)[:, None]) * 2, rtol=1e-5)


def test_slices_of_tensors_read_zero_outside_and_drop_writes():
    m = T.dynamic("m")

    @T.prim_func
    def k(A: T.Tensor((m, 5), "float32"), Y: T.Tensor((m, 5), "float32"), Z: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 16), threads=32) as bx:
            Y[bx * 16 : bx * 16 + 16, :] = A[bx * 16 : bx * 16 + 16, :] * 2 + 1
            Z[bx * 16 : bx * 16 + 16] = A[bx * 16 + 1 : bx * 16 + 17, 2] - 1

    a = rng.standard_normal((21, 5)).astype("f")
    y, z = _run(k, a, outputs=[(21, 5), (21,)])
    np.testing.assert_allclose(y, a * 2 + 1)
    np.testing.assert_allclose(z, np.append(a[1:, 2], 0) - 1)


def test_a_threads_own_arrays():
    @T.prim_func
    def k(A: T.Tensor((32, 4), "float32"), Y: T.Tensor((32, 4), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            own = T.alloc_local((4,), "float32")
            for i in T.serial(4):
                own[i] = A[t, i]
            double = own * 2 + T.cast(t, "float32")
            own[...] = double - own[3]
            for i in T.serial(4):
                Y[t, i] = own[i]

    a = rng.standard_normal((32, 4)).astype("f")
    (y,) = _run(k, a, outputs=[(32, 4)])
    np.testing.assert_allclose(y, a * 2 + np.arange(32)[:, None] - a[:, 3:], rtol=1e-5, atol=1e-5)


def test_new_axes_of_an_expression():
    """``None`` in the index of an expression without a name adds a dimension, in every place, and twice over."""

    @T.prim_func
    def k(
        B: T.Tensor((7,), "float32"), C: T.Tensor((5,), "float32"), n: T.int32, Y: T.Tensor((5, 7), "float32"),
        Z: T.Tensor((3, 5, 7), "float32"), W: T.Tensor((1, 7), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            b, c = T.alloc_shared((7,), "float32"), T.alloc_shared((5,), "float32")
            T.copy(B, b)
            T.copy(C, c)
            Y[...] = (b * 2)[None, :] + (c - 1)[..., None]
            Z[...] = ((b + 1)[None] * (c * c)[:, None])[None, ...]
            late = T.exp2((b - 3)[None, :])
            b[...] = 0
            b[0] += 1
            T.copy(late, W)
            for i in range(n):
                b[...] = b + T.cast(i, "float32")
                Z[2, 1:2, :] = (b * 3)[None, :]

    b, c = (rng.integers(-5, 6, m).astype("f") for m in (7, 5))
    y, z, w = _run(k, b, c, 3, outputs=[(5, 7), (3, 5, 7), (1, 7)])
    np.testing.assert_array_equal(y, b * 2 + (c - 1)[:, None])
    np.testing.assert_array_equal(z[:2], np.broadcast_to((b + 1) * (c * c)[:, None], (2, 5, 7)))
    np.testing.assert_array_equal(z[2, 1], 3 * (np.eye(7)[0] + 3))
    np.testing.assert_array_equal(w, np.exp2(b - 3)[None])


def _truth(x, b, c, n, y):
    if x > 0:
        pass


REFUSED = {
    "shapes": (lambda x, b, c, n, y: x + c, "K144", "(8, 12) and (8,)"),
    "a target that is too small": (lambda x, b, c, n, y: y[0:4, :].assign(x), "K144", "(4, 12)"),
    "a target with an extent of 1": (lambda x, b, c, n, y: y[0:1, :].assign(x * 1), "K144", "(1, 12)"),
    "text": (lambda x, b, c, n, y: x + "a", "K103", "'a'"),
    "None": (lambda x, b, c, n, y: operator.lt(x, None), "K103", "None"),
    "bits of floats": (lambda x, b, c, n, y: ~x, "K103", "~ on a float32 value"),
    "truth": (lambda x, b, c, n, y: bool(x > 0), "K105", "T.where"),
    "iteration": (lambda x, b, c, n, y: list(x * 2), "K105", "iteration over a tile"),
    "an element": (lambda x, b, c, n, y: (x * 2)[0, 0], "K103", "name the tile first"),
    "a part": (lambda x, b, c, n, y: (x * 2)[0:4, :], "K103", "name the tile first"),
    "a part from a runtime place": (lambda x, b, c, n, y: (x * 2)[n:, None], "K103", "name the tile first"),
    "two ellipses": (lambda x, b, c, n, y: (x * 2)[..., None, ...], "K103", "name the tile first"),
    "a store to an element": (lambda x, b, c, n, y: (x * 2).__setitem__((0, None), 1), "K103", "name the tile first"),
    "too many axes": (lambda x, b, c, n, y: (b * 2)[:, :, None], "K107", "2"),
    "axes that do not fit": (lambda x, b, c, n, y: x + (c * 2)[None, :], "K144", "(8, 12) and (1, 8)"),
    "a destination": (lambda x, b, c, n, y: T.clear(x * 2), "K201", "an expression"),
    "a product": (lambda x, b, c, n, y: (x * 2) @ x, "K103", "T.gemm"),
    "sum": (lambda x, b, c, n, y: (x * 2).sum(), "K140", "T.reduce_sum"),
    "NumPy": (lambda x, b, c, n, y: np.exp(x * 2), "K140", "T.exp("),
    "an array": (lambda x, b, c, n, y: np.ones(12) * x, "K140", "T.Parallel"),
    "a list": (lambda x, b, c, n, y: y.__setitem__((slice(0, 1), slice(None)), [1]), "K127", "list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, code, text = REFUSED[name]
    with pytest.raises(KernelError) as caught:
        _kernel(body)
    assert caught.value.code == code
    assert text in str(caught.value)


def _converted(x, b, c, n, y):
    z = x * 1
    for _ in range(n):
        z = T.cast(z, "float16")


def _known_twice(x, b, c, n, y):
    z = x * 1
    first = z[0:4, :]
    for _ in range(n):
        z = z + 1
    y[0:4, :] = first


def _of_the_caller(x, b, c, n, y):
    for _ in range(n):
        x = x + 1


def _unused(x, b, c, n, y):
    x + 1


def _mixed(x, b, c, n, y):
    own = T.alloc_local((12,), "float32")
    y[0, :] = own * b


def _another_tile(x, b, c, n, y):
    z = x * 1
    w = x * 2
    for _ in range(n):
        z = w  # noqa: F841


def _a_row_by_its_number(x, b, c, n, y):
    y[0] = 1.0


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (_converted, "K142", "z[...] = ... stores it"),
        (_known_twice, "K142", "which is also first"),
        (_of_the_caller, "K142", "the caller's"),
        (_unused, "K114", "drops it"),
        (_mixed, "K103", "every thread has for itself"),
        (_another_tile, "K111", "z[...] = ..."),
        (_truth, "K105", "T.where"),
        (_a_row_by_its_number, "K127", "2 dimensions"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_refused_statements(body, code, text):
    with pytest.raises(KernelError) as caught:
        _kernel(T.macro(body))
    assert caught.value.code.startswith(code)
    assert text in str(caught.value)


def test_a_tensor_is_not_rebound():
    with pytest.raises(KernelError, match=r"A\[\.\.\.\] = \.\.\. stores it"):

        @T.prim_func
        def k(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                A = A * 2
