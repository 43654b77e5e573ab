"""Operators on a CUDA device: results, XLA's stream, gradients, arrays that are read and written, export."""

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402

import tile_core.language as T  # noqa: E402
import tile_jax  # noqa: E402

from . import programs  # noqa: E402
from .programs import close  # noqa: E402

# What JAX warns of on devices differs between its versions.
pytestmark = [pytest.mark.device, pytest.mark.filterwarnings("ignore")]
jnp = jax.numpy


@pytest.fixture(autouse=True)
def on_device():
    with jax.default_device(jax.devices("cuda")[0]):
        yield


@pytest.mark.parametrize("m", [0, 1, 37, 1000])
def test_results(m):
    f, (x, w) = programs.operator(), programs.inputs(m)
    found = jax.jit(lambda x, w: f(x + 1, w) - 1)(x, w)
    assert {d.platform for d in found.devices()} == {"gpu"}
    close(found, programs.reference(x + 1, w) - 1)
    close(f(x, w), programs.reference(x, w))


def test_launches_are_in_the_order_of_the_stream():
    """Kernels read what slow operations of XLA have written, and are read by the ones that follow."""
    f, (x, w) = programs.operator(256), programs.inputs(256, 256)
    mix = jnp.asarray(np.linalg.qr(np.random.default_rng(2).standard_normal((256, 256)))[0], "float32")

    def slow(x):
        # Without rounding to tf32, so that two runs stay near each other.
        exact = jax.lax.Precision.HIGHEST
        return jax.lax.fori_loop(0, 2000, lambda _, value: jnp.matmul(value, mix, precision=exact), x)

    def chain(call):
        return jax.jit(lambda x, w: slow(call(slow(call(slow(x), w)), w)))

    for seed in range(3):
        x, _ = programs.inputs(256, 256, seed=seed)
        close(chain(f)(x, w), chain(programs.reference)(x, w), 1e-3)


def test_gradients_and_batches():
    f, (x, w) = programs.operator(), programs.inputs(5)
    loss = lambda call: lambda x, w: jnp.sin(call(x, w)).sum()  # noqa: E731
    found = jax.jit(jax.grad(loss(f), argnums=(0, 1)))(x, w)
    close(found, jax.grad(loss(programs.reference), argnums=(0, 1))(x, w))
    many = jnp.stack([x, x + 1, x - 2])
    found = jax.jit(jax.vmap(jax.grad(loss(f)), in_axes=(0, None)))(many, w)
    close(found, jax.vmap(jax.grad(loss(programs.reference)), in_axes=(0, None))(many, w))


def test_an_array_that_is_read_and_written():
    m = T.dynamic("m")

    @T.prim_func
    def scaled_add(X: T.Tensor((m,), "float32"), a: T.float32, Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = Y[bx * 32 + i] + a * X[bx * 32 + i]

    f = tile_jax.op(programs.name("add"), scaled_add)
    x, y = jnp.arange(99.0), jnp.ones(99)
    step = jax.jit(lambda y: f(x, 0.5, f(x, 1.0, y)), donate_argnums=0)
    close(f(x, 0.5, y), 1 + 0.5 * x)
    close(y, jnp.ones(99))
    close(step(y), 1 + 1.5 * x)


def test_export_with_symbolic_shapes():
    f, (x, w) = programs.operator(), programs.inputs(9)
    (m,) = jax.export.symbolic_shape("m")
    shapes = jax.ShapeDtypeStruct((m, 16), "float32"), jax.ShapeDtypeStruct((16,), "float32")
    again = jax.export.deserialize(tile_jax.export(jax.jit(lambda x, w: f(x, w) + 1))(*shapes).serialize())
    for rows in (9, 2, 100):
        x, _ = programs.inputs(rows)
        close(again.call(x, w), programs.reference(x, w) + 1)
