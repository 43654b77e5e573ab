"""Calls: results, element types, numbers, arrays that are read and written, layouts, and refusals."""

import threading

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402
from expected_errors import raises_error  # noqa: E402
from jax.experimental.layout import Format, Layout  # noqa: E402

import tile_core.language as T  # noqa: E402
import tile_jax  # noqa: E402
from tile_core.errors import launch  # noqa: E402
from tile_jax import errors  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402

from . import programs  # noqa: E402
from .programs import close  # noqa: E402

jnp = jax.numpy


@pytest.mark.parametrize("N", [1, 16, 33])
@pytest.mark.parametrize("m", [0, 1, 5, 37, 64])
def test_results(m, N):
    f, arguments = programs.operator(N), programs.inputs(m, N)
    expected = programs.reference(*arguments)
    close(f(*arguments), expected)
    close(f(arguments[0], w=arguments[1]), expected)
    close(jax.jit(lambda x, w: f(x + 1, w) - 1)(*arguments), programs.reference(arguments[0] + 1, arguments[1]) - 1)
    with jax.disable_jit():
        close(f(*arguments), expected)


TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


@pytest.mark.parametrize("dtype", [*TYPES, "int4", "uint4", "float4_e2m1fn"])
def test_every_element_type(dtype):
    n = T.dynamic("n")

    @T.prim_func
    def copied(X: T.Tensor((n, 6), dtype), Y: T.Tensor((n, 6), dtype)):
        with T.Kernel(T.ceildiv(n, 8), threads=32) as bx:
            tile = T.alloc_shared((8, 6), dtype)
            T.copy(X[bx * 8 : bx * 8 + 8, :], tile)
            T.copy(tile, Y[bx * 8 : bx * 8 + 8, :])

    stored = dtype if dtype in TYPES else "uint8"
    columns = 6 if dtype in TYPES else 3
    with jax.enable_x64(True):
        f = tile_jax.op(programs.name("copy"), copied)
        size = jnp.dtype(stored).itemsize
        bits = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 256, (13, columns * size), "uint8")
        x = jnp.asarray(bits.view(jnp.dtype(stored)))
        y = jax.jit(f)(x)
        assert y.dtype == x.dtype
        assert np.asarray(y).tobytes() == bits.tobytes()
        jaxpr = jax.jit(f).lower(x).compile().as_text()
        assert "copy(" not in jaxpr
        assert "fusion(" not in jaxpr


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_arithmetic_of_other_types(dtype):
    with jax.enable_x64(True):
        f, (x, w) = programs.operator(16, dtype), programs.inputs(9, dtype=dtype)
        close(f(x, w), programs.reference(x, w), 2e-2 if dtype != "float64" else 1e-14)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False]),
        ("int32", [-(1 << 31), 7]),
        ("int64", [-(1 << 63)]),
        ("uint64", [(1 << 64) - 1, 3]),
        ("float32", [0.5, -0.0, float("inf"), float("nan")]),
        ("float64", [1e300, 1]),
        ("bfloat16", [0.1, -3.0]),
    ],
)
def test_numbers(dtype, values):
    @T.prim_func
    def filled(X: T.Tensor((3,), "float32"), a: getattr(T, dtype), Y: T.Tensor((3,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(3):
                Y[i] = a

    with jax.enable_x64(True):
        f = tile_jax.op(programs.name("fill"), filled)
        for value in values:
            found = np.asarray(jax.jit(lambda x, value=value: f(x, value))(jnp.zeros(3, "float32")))
            np.testing.assert_array_equal(found, np.full(3, value).astype(found.dtype))
            assert np.signbit(found.astype("float64")).all() == np.signbit(np.float64(value))


@pytest.fixture(scope="module")
def scaled_add():
    m = T.dynamic("m")

    @T.prim_func
    def scaled_add(X: T.Tensor((m,), "float32"), a: T.float32, n: T.int32, Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = Y[bx * 32 + i] + a * X[bx * 32 + i] + T.cast(n, "float32")

    return tile_jax.op(programs.name("add"), scaled_add)


def test_an_array_that_is_read_and_written_is_argument_and_result(scaled_add):
    x, y = jnp.arange(9.0), jnp.ones(9)
    close(scaled_add(x, 0.5, 3, y), 4 + 0.5 * x)
    close(y, jnp.ones(9))
    step = jax.jit(lambda y: scaled_add(scaled_add(x, 1.0, 0, y), 1.0, 0, y))
    close(step(y), 2 + x)
    close(jax.grad(lambda x: x.sum())(y), jnp.ones(9))


def test_a_donated_array_is_written_in_place(scaled_add):
    step = jax.jit(lambda x, y: scaled_add(x, 2.0, 1, y), donate_argnums=1)
    x, y = jnp.arange(1000.0), jnp.ones(1000)
    address = y.unsafe_buffer_pointer()
    found = step(x, y)
    assert found.unsafe_buffer_pointer() == address
    assert y.is_deleted()
    close(found, 2 + 2 * x)
    assert "copy(" not in step.lower(x, found).compile().as_text()


def test_out_chooses_the_results():
    f = tile_jax.op(programs.name(), programs.square_gradient(16), out=["DW"])
    (x, w), g = programs.inputs(5), jnp.ones((5, 16))
    found = f(g, x, w, jnp.zeros((5, 16)))
    close(found, (2 * x * w, x * x))
    assert repr(f).startswith(f"<tile_jax.JaxOperator {f.name}: square_mul_gradient(G: float32(m, 16)")


def test_layouts_of_xla_are_made_right():
    f, (x, w) = programs.operator(16), programs.inputs(37)
    close(jax.jit(lambda t: f(t.T, w))(x.T), programs.reference(x, w))
    close(jax.jit(lambda t: f(t[::2, ::-1], w))(x), programs.reference(x[::2, ::-1], w))
    layout = Layout(major_to_minor=(1, 0))
    form = Format(layout, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    columns = jax.device_put(x, form)
    close(f(columns, w), programs.reference(x, w))
    close(jax.jit(f, in_shardings=(form, None))(columns, w), programs.reference(x, w))


def test_memory_of_other_libraries():
    f, (x, w) = programs.operator(16), programs.inputs(7)
    memory = np.zeros(7 * 16 + 1, "float32")[1:].reshape(7, 16)  # not aligned to 16 bytes
    memory[:] = x
    close(f(jax.dlpack.from_dlpack(memory), w), programs.reference(x, w))
    close(f(memory, np.asarray(w)), programs.reference(x, w))


def test_parameters_with_strides():
    m, s = T.dynamic("m, s")

    @T.prim_func
    def strided(X: T.StridedTensor((m, 5), (s, 1), "float32"), Y: T.Tensor((m, 5), "float32")):
        with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
            for i, j in T.Parallel(8, 5):
                Y[bx * 8 + i, j] = X[bx * 8 + i, j]

    @T.prim_func
    def padded(X: T.StridedTensor((m, 5), (8, 1), "float32"), Y: T.Tensor((m, 5), "float32")):
        with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
            for i, j in T.Parallel(8, 5):
                Y[bx * 8 + i, j] = X[bx * 8 + i, j]

    x = programs.inputs(11, 5)[0]
    f, g = (tile_jax.op(programs.name(), p) for p in (strided, padded))
    for rows in (x, x[:1]):
        close(f(rows), rows)
    with raises_error(launch.StrideMismatch, name="X"):
        g(x)


def test_several_launches_with_memory_between_them():
    M, splits = 8, 4

    @T.prim_func
    def split_sum(X: T.Tensor((splits, M), "float32"), Y: T.Tensor((M,), "float32")):
        parts = T.alloc_global((splits, M), "float32")
        with T.Kernel(splits, threads=32) as bx:
            for i in T.Parallel(M):
                parts[bx, i] = X[bx, i] * 2.0
        with T.Kernel(1, threads=32):
            for i in T.Parallel(M):
                Y[i] = parts[0, i] + parts[1, i] + parts[2, i] + parts[3, i]

    f = tile_jax.op(programs.name(), split_sum)
    x = jnp.arange(32.0).reshape(4, 8)
    assert len(f.kernel.compiled("cpu").machine_code()) == 2
    close(jax.jit(f)(x), 2 * x.sum(0))
    close(jax.vmap(f)(jnp.stack([x, x + 1])), jnp.stack([2 * x.sum(0), 2 * (x + 1).sum(0)]))


def test_inside_of_loops_and_conditions():
    f, (x, w) = programs.operator(16), programs.inputs(5)
    x, w = x / 4, jnp.tanh(w)
    expected = x
    for _ in range(3):
        expected = programs.reference(expected, w)
    close(jax.lax.fori_loop(0, 3, lambda _, x: f(x, w), x), expected)
    close(jax.lax.scan(lambda x, _: (f(x, w), None), x, None, 3)[0], expected)
    close(jax.jit(lambda x, c: jax.lax.cond(c, f, lambda x, w: x, x, w))(x, True), programs.reference(x, w))


def test_large_arrays_take_the_version_with_wide_offsets(monkeypatch):
    monkeypatch.setattr("tile_runtime.calls.wide.LIMIT", 100)
    f, (x, w) = tile_jax.op(programs.name("wide"), programs.square(16)), programs.inputs(37)
    lowered = jax.jit(f).lower(x, w).as_text()
    assert f"{f.name}|wide" in lowered
    assert f"{f.name}|wide" not in jax.jit(f).lower(x[:2], w).as_text()
    close(f(x, w), programs.reference(x, w))
    close(f(x[:2], w), programs.reference(x[:2], w))


def test_a_second_definition_replaces_the_first():
    m, name = T.dynamic("m"), programs.name("again")

    def made(factor):
        @T.prim_func
        def scale(X: T.Tensor((m,), "float32"), Y: T.Tensor((m,), "float32")):
            with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
                for i in T.Parallel(32):
                    Y[bx * 32 + i] = X[bx * 32 + i] * factor

        return tile_jax.op(name, scale)

    x = jnp.arange(5.0)
    first = made(2.0)
    compiled = jax.jit(first)
    close(compiled(x), 2 * x)
    close(made(3.0)(x), 3 * x)
    close(compiled(x), 2 * x)


def test_prints_and_failed_assertions_arrive(capfd):
    @T.prim_func
    def checked(X: T.Tensor((4,), "int32"), Y: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            T.print(X[0])
            T.device_assert(X[1] < 8, "no such page")
            for i in T.Parallel(4):
                Y[i] = X[i]

    f = tile_jax.op(programs.name("assert"), checked)
    x = jnp.arange(4, dtype="int32") + 3
    close(jax.jit(f)(x), x)
    assert "3" in capfd.readouterr().out
    with pytest.raises(Exception, match=r"K432.*no such page.*test_calls.py:\d+ block 0") as caught:
        jax.block_until_ready(jax.jit(f)(x + 9))
    assert "crossing" not in str(caught.value)
    close(jax.jit(f)(x), x)


def test_loops_without_a_known_end():
    @T.prim_func
    def halved(X: T.Tensor((1,), "int32"), Y: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            x = T.alloc_var("int32")
            x = X[0]
            while x > 10:
                x = x // 2
            Y[0] = x

    f = tile_jax.op(programs.name("while"), halved)
    assert int(jax.jit(f)(jnp.asarray([1000], "int32"))[0]) == 7


def test_threads_that_call_at_the_same_time():
    f, (x, w) = programs.operator(16), programs.inputs(4000)
    call = jax.jit(lambda x: f(x, w).sum(1))
    found = {}

    def work(n):
        found[n] = [call(x + n) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(6):
        for one in found[n]:
            close(one, programs.reference(x + n, w).sum(1), 1e-4)


def test_wrong_arguments_are_refused_while_jax_traces():
    f, (x, w) = programs.operator(16), programs.inputs(5)
    for call in (f, jax.jit(f), jax.jit(lambda x, w: f(x, w))):
        with raises_error(launch.DTypeMismatch, name="X", found="float16"):
            call(x.astype("float16"), w)
        with raises_error(launch.ShapeMismatch, name="w", found=3):
            call(x, w[:3])
        with raises_error(launch.RankMismatch, name="X"):
            call(x[0], w)
    with raises_error(launch.MissingArgument, name="w"):
        f(x)
    with raises_error(launch.UnknownKeyword, name="v"):
        f(x, v=w)
    with raises_error(launch.TooManyArguments):
        f(x, w, w)


def test_wrong_numbers_are_refused(scaled_add):
    x = jnp.ones(9)
    with raises_error(errors.TracedNumber, name="a") as caught:
        jax.jit(scaled_add)(x, 0.5, 3, x)
    assert "static_argnums" in caught.value.help
    close(jax.jit(scaled_add, static_argnums=(1, 2))(x, 0.5, 3, x), jnp.full(9, 4.5))
    with raises_error(launch.ScalarType, name="n"):
        scaled_add(x, 0.5, 3.5, x)
    with raises_error(launch.ScalarRange, name="n"):
        scaled_add(x, 0.5, 1 << 40, x)


def test_unpacked_elements_of_four_bits_are_refused():
    @T.prim_func
    def nibbles(X: T.Tensor((8,), "float4_e2m1fn"), Y: T.Tensor((8,), "float4_e2m1fn")):
        with T.Kernel(1, threads=32):
            T.copy(X, Y)

    f = tile_jax.op(programs.name(), nibbles)
    with raises_error(launch.DTypeMismatch, name="X"):
        f(jnp.zeros(8, "float4_e2m1fn"))


def test_operators_that_cannot_be_defined():
    m = T.dynamic("m")
    program = programs.square(16)
    for name in ("f", "a::b::c", "a b::c", 3):
        with raises_error(operators.BadOperatorName):
            tile_jax.op(name, program)
    with raises_error(operators.BadResults, found="Z"):
        tile_jax.op(programs.name(), program, out=["Z"])
    for batch in ("k", "m"):
        with raises_error(operators.BadBatch, found=batch):
            tile_jax.op(programs.name(), transposed(), batch=batch)

    @T.prim_func
    def reads(X: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            T.print(X[0])

    @T.prim_func
    def points(X: T.ptr("float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = 1.0

    @T.prim_func
    def strides(X: T.Tensor((m, 4), "float32"), Y: T.StridedTensor((m, 4), (8, 1), "float32")):
        with T.Kernel(m, threads=32) as bx:
            for i in T.Parallel(4):
                Y[bx, i] = X[bx, i]

    for program, error in (
        (reads, operators.BadResults),
        (points, operators.NoPointers),
        (strides, operators.BadResults),
    ):
        with raises_error(error):
            tile_jax.op(programs.name(), program)


def transposed():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def transposed(X: T.Tensor((m, n), "float32"), Y: T.Tensor((n, m), "float32")):
        with T.Kernel(m, threads=32) as bx:
            for i in T.Parallel(32):
                Y[i, bx] = X[bx, i]

    return transposed


def test_results_of_disabled_types_are_refused():
    @T.prim_func
    def widened(X: T.Tensor((4,), "float32"), Y: T.Tensor((4,), "float64")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = T.cast(X[i], "float64")

    f = tile_jax.op(programs.name(), widened)
    with raises_error(errors.WideElements, name="Y", dtype="float64"):
        f(jnp.ones(4))
    with jax.enable_x64(True):
        close(f(jnp.ones(4, "float32")), jnp.ones(4))
