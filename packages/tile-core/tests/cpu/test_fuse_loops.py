"""Loops that are fused on the CPU: which are, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.compiler import lower
from tile_core.cpu.fuse_loops import fuse_loops
from tile_core.ir import attributes, nodes
from tile_core.ir.program import ParamInfo, Program
from tile_core.ir.visit import collect, statements
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reference import execute

N = 96
X, Y, Z = (tirx.decl_buffer([2 * N], "float32", name, scope="global", layout=None) for name in "XYZ")
TILE = tirx.decl_buffer([4, N], "float32", "TILE", scope="global", layout=None)
BUFFERS = (X, Y, Z, TILE)
ONE = nodes.const(1.0, "float32")


def loop(body, extent=N, role="parallel"):
    """Return a loop whose body is a function of its variable."""
    var = nodes.fresh("i")
    return nodes.for_loop(var, extent, body(var), role)


def put(buffer, *indices, value):
    return nodes.store(buffer, value, list(indices))


def at(buffer, *indices):
    return nodes.load(buffer, list(indices))


def steps(width, count, offset=0):
    """Return a reduction: ``width`` partial totals in Z of elements of Y."""
    return loop(
        lambda o: loop(lambda j: put(Z, j, value=at(Z, j) + at(Y, o * width + j + offset)), width), count, "serial"
    )


def doubled(extent=N):
    return loop(lambda i: put(Y, i, value=at(X, i) + at(X, i)), extent)


def doubled_into(buffer):
    return loop(lambda i: put(buffer, i, value=at(X, i) + at(X, i)))


def rows(read):
    first = loop(lambda i: loop(lambda j: put(TILE, i, j, value=at(X, i + j) + ONE)), 4)
    return [first, loop(lambda i: loop(lambda j: put(Z, j, value=at(Z, j) + read(i, j))), 4, "serial")]


#: Statements, and how many loops around all others are left of them.
FUSED = {
    "element by element": ([doubled(), loop(lambda i: put(Z, i, value=at(Y, i) + ONE))], 1),
    "three loops": (
        [doubled(), loop(lambda i: put(X, i, value=at(Y, i) + ONE)), loop(lambda i: put(Z, i, value=at(X, i)))], 1,
    ),
    "an element that is replaced": ([doubled(), loop(lambda i: put(X, i, value=ONE))], 1),
    "past a loop of other elements": ([doubled(), loop(lambda i: put(Z, i, value=ONE), 32), steps(32, 3)], 2),
    "steps": ([doubled(), steps(32, 3)], 1),
    "steps of some elements": ([doubled(), steps(32, 2)], 2),
    "the second of two windows": ([doubled(), loop(lambda i: put(Z, i, value=at(Y, i) + ONE), 64)], 2),
    "rows": (rows(lambda i, j: at(TILE, i, j)), 1),
    "rows after rows in order": (
        [
            loop(lambda i: loop(lambda j: put(X, i + 1, value=at(X, i) + at(TILE, i, j)), N, "serial"), 4, "serial"),
            loop(lambda i: loop(lambda j: put(TILE, i, j, value=ONE)), 4),
        ],
        1,
    ),
}  # fmt: skip
SEPARATE = {
    "the next element": [doubled(), loop(lambda i: put(Z, i, value=at(Y, i + 1)))],
    "the element before": [doubled(), loop(lambda i: put(Z, i + 1, value=at(Y, i + 1) + at(Y, i)), N - 1)],
    "backwards": [doubled(), loop(lambda i: put(Z, i, value=at(Y, N - 1 - i)))],
    "one element of all": [doubled(), loop(lambda i: put(Z, i, value=at(Y, nodes.int_const(5))))],
    "steps from the middle of one": [doubled(), steps(32, 2, 8)],
    "more elements than there are": [doubled(64), steps(32, 3)],
    "an overlap of steps": [
        doubled(), loop(lambda o: loop(lambda j: put(Z, j, value=at(Z, j) + at(Y, o * 16 + j)), 32), 5, "serial"),
    ],
    "later elements of rows": rows(lambda i, j: at(TILE, 3 - i, j)),
    "an element that is read later": [
        loop(lambda i: put(Y, i, value=at(X, i + 1))), loop(lambda i: put(X, i, value=ONE)),
    ],
    "twice as far": [doubled(), loop(lambda i: put(Z, i, value=at(Y, i * 2)), 32)],
    "a loop in order that reads on": [
        loop(lambda i: put(Z, i, value=at(X, i + 1)), N, "serial"), loop(lambda i: put(X, i, value=at(Z, i))),
    ],
    "two loops in order": [
        loop(lambda i: loop(lambda j: put(TILE, i, j, value=ONE)), 4, "serial"),
        loop(lambda i: loop(lambda j: put(Z, j, value=at(Z, j) + at(TILE, i, j))), 4, "serial"),
    ],
    "before a loop in order": [
        loop(lambda i: put(Z, i, value=at(X, i)), N, "serial"), loop(lambda i: put(Y, i, value=at(Z, i))),
    ],
}  # fmt: skip


def results(body):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(tuple(int(n) for n in nodes.shape_of(b)), "float32") for b in BUFFERS]
    params = tuple(ParamInfo(str(b.name), "tensor", "float32", tuple(nodes.shape_of(b))) for b in BUFFERS)
    execute(Program(tirx.PrimFunc([*BUFFERS], body), "loops", params), arrays, unwritten=())
    return [x.tobytes() for x in arrays]


@pytest.mark.parametrize("name", FUSED)
def test_loops_are_fused(name):
    parts, left = FUSED[name]
    body = nodes.seq(parts)
    new = fuse_loops(body, 512)
    assert len(list(statements(new))) == left
    assert results(new) == results(body)


@pytest.mark.parametrize("name", SEPARATE)
def test_other_loops_stay(name):
    body = nodes.seq(SEPARATE[name])
    assert fuse_loops(body, 512).same_as(body)


def test_elements_by_another_name_stay():
    view = tirx.decl_buffer([2 * N], "float32", "V", data=tirx.buffer_data(Y), layout=None)
    user = loop(lambda i: put(Z, i, value=at(view, i)))
    body = nodes.seq([tirx.DeclBuffer(view, data=tirx.buffer_data(Y)), doubled(), user])
    assert fuse_loops(body, 512).same_as(body)


def test_calls_with_effects_stay_in_order():
    call = tirx.Evaluate(tirx.call_extern("int32", "f"))
    for parts in ([doubled(), call, steps(32, 3)], [loop(lambda i: nodes.seq([doubled(1), call])), steps(32, 3)]):
        body = nodes.seq(parts)
        assert fuse_loops(body, 512).same_as(body)


def test_fused_loops_keep_vectors():
    wide = loop(lambda i: put(Y, i, value=at(X, i) + ONE))
    gathered = loop(lambda i: put(Z, i * 2, value=at(Y, i)))
    body = nodes.seq([wide, gathered])
    assert fuse_loops(body, 512).same_as(body)


@pytest.mark.sweep(0.5)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 129, 1021])
def test_rows_of_all_lengths(size: int, dtype: str) -> None:
    @T.prim_func
    def normalized(X: T.Tensor((6, size), dtype), Y: T.Tensor((6, size), dtype), M: T.Tensor((6,), "float32")):
        with T.Kernel(T.ceildiv(6, 4), threads=64) as bx:
            x = T.alloc_fragment((4, size), "float32")
            squares = T.alloc_fragment((4, size), "float32")
            top = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_max(x, top, dim=1)
            x[...] = x - top[:, None]
            squares[...] = x * x
            T.reduce_sum(squares, total, dim=1)
            x[...] = x / (total[:, None] + 1.0)
            T.copy(x, Y[bx * 4, 0])
            T.copy(top, M[bx * 4])

    rng = np.random.default_rng(size)
    x = rng.standard_normal((6, size)).astype(T.dtype(dtype).numpy())
    x[0, 0] = -0.0
    y, m = np.full_like(x, 7), np.full(6, 7, "float32")
    tile.compile(normalized, "cpu")(x, y, m)
    wide = x.astype("float64")
    top = wide.max(1, keepdims=True)
    wanted = (wide - top) / (((wide - top) ** 2).sum(1, keepdims=True) + 1)
    assert np.array_equal(m, top[:, 0].astype("float32"))
    bound = {"float32": 2.0**-20, "bfloat16": 2.0**-8, "float16": 2.0**-10}[dtype]
    assert (np.abs(y.astype("float64") - wanted) <= bound * np.abs(wanted) + 2.0**-24).all()


S, U = (tirx.decl_buffer([N], "float32", name, scope="local.fragment", layout=None) for name in "SU")


def block(*parts):
    """Return a launch of one block with scratch S and U."""
    body = nodes.seq([tirx.AllocBuffer(S), tirx.AllocBuffer(U), *parts])
    return nodes.for_loop(nodes.fresh("block"), 1, body, "grid", annotations={attributes.AXIS: 0})


def stored(body):
    return {str(s.buffer.name) for s in collect(fuse_loops(body, 512), tirx.BufferStore)}


#: Parts of a block, and the scratch that is still written.
SCRATCH = {
    "used at once": ([doubled_into(S), loop(lambda i: put(Z, i, value=at(S, i) + ONE))], set()),
    "two in a row": (
        [doubled_into(S), loop(lambda i: put(U, i, value=at(S, i) + ONE)), loop(lambda i: put(Z, i, value=at(U, i)))],
        set(),
    ),
    "used later": (
        [doubled_into(S), loop(lambda i: put(Z, i, value=at(S, i))), loop(lambda i: put(Y, i, value=at(S, N - 1 - i)))],
        {"S"},
    ),
    "the last use": (
        [
            doubled_into(S), loop(lambda i: put(Y, i, value=at(S, N - 1 - i))),
            loop(lambda i: put(S, i, value=at(S, i) + ONE)), loop(lambda i: put(Z, i, value=at(S, i))),
        ],
        {"S"},
    ),
    "a total": (
        [loop(lambda i: nodes.seq([put(S, 0, value=at(S, 0) + at(X, i)), put(Z, i, value=at(S, 0))]), N, "serial")],
        {"S"},
    ),
    "a shifted element": (
        [loop(lambda i: nodes.seq([put(S, i, value=at(X, i)), put(Z, i, value=at(S, i - 1))]), N, "serial")], {"S"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRATCH)
def test_scratch_of_one_iteration_is_a_name(name):
    parts, left = SCRATCH[name]
    assert stored(block(*parts)) & {"S", "U"} == left


def test_scratch_that_nothing_uses_is_not_computed():
    unused = [doubled_into(S), loop(lambda i: put(U, i, value=at(S, i) + ONE))]
    new = fuse_loops(block(*unused, doubled()), 512)
    assert [str(s.buffer.name) for s in collect(new, tirx.BufferStore)] == ["Y"]
    assert not collect(fuse_loops(block(*unused), 512), tirx.BufferStore)


def test_a_program_of_unused_tiles_compiles() -> None:
    @T.prim_func
    def idle(X: T.Tensor((100, 64), "float32"), Y: T.Tensor((100, 64), "float32")):
        with T.Kernel(2, threads=64) as bx:
            x = T.alloc_shared((50, 64), "float32")
            y = T.alloc_fragment((50, 64), "float16")
            T.copy(X[bx * 50, 0], x)
            T.copy(x, y)
            if bx == 1:
                T.copy(x, Y[50, 0])

    x = np.random.default_rng(0).standard_normal((100, 64), "float32")
    y = np.full_like(x, 7)
    tile.compile(idle, "cpu")(x, y)
    assert np.array_equal(y[50:], x[50:])
    assert (y[:50] == 7).all()


@pytest.mark.parametrize("used", [False, True])
def test_elements_that_only_their_own_step_reads_are_not_stored(used: bool) -> None:
    """A reduction reads each element of a row's tile once, in one of several loops of a step."""

    @T.prim_func
    def top(X: T.Tensor((6, 512), "float32"), Y: T.Tensor((6,), "float32"), Z: T.Tensor((6, 512), "float32")):
        with T.Kernel(6, threads=64) as r:
            x, t = T.alloc_fragment((512,), "float32"), T.alloc_fragment((1,), "float32")
            for j in T.Parallel(512):
                x[j] = X[r, j] * 3.0
            T.reduce_max(x, t, dim=0)
            Y[r] = t[0]
            if used:
                T.copy(x, Z[r, :])

    plugins = installed()
    lowered = lower(top, make_context("cpu:x86-64-v4", plugins=plugins), plugins).lowered
    stored = {str(s.buffer.name) for s in collect(lowered.body, tirx.BufferStore)}
    assert ("x" in stored) == used
    x = np.random.default_rng().standard_normal((6, 512), "float32")
    y, z = np.full(6, 7, "float32"), np.full_like(x, 7)
    tile.compile(top, "cpu")(x, y, z)
    assert np.array_equal(y, x.max(1) * np.float32(3))
    assert np.array_equal(z, x * np.float32(3) if used else np.full_like(x, 7))
