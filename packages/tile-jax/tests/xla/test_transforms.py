"""Gradients and batches, beside those of JAX's own operations."""

import pytest

jax = pytest.importorskip("jax")

from expected_errors import raises_error  # noqa: E402

import tile_core.language as T  # noqa: E402
import tile_jax  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402

from . import programs  # noqa: E402
from .programs import close  # noqa: E402

jnp = jax.numpy
BOTH = (0, 1)


def loss(f):
    return lambda x, w: jnp.sin(f(x, w)).sum()


@pytest.mark.parametrize("N", [1, 16, 33])
@pytest.mark.parametrize("m", [1, 37])
def test_gradients(m, N):
    f, arguments = programs.operator(N), programs.inputs(m, N)
    expected = jax.grad(loss(programs.reference), BOTH)(*arguments)
    close(jax.grad(loss(f), BOTH)(*arguments), expected, 1e-4)
    close(jax.jit(jax.grad(loss(f), BOTH))(*arguments), expected, 1e-4)
    close(jax.grad(jax.checkpoint(loss(f)), BOTH)(*arguments), expected, 1e-4)
    value, found = jax.value_and_grad(loss(f))(*arguments)
    close((value, found), (loss(programs.reference)(*arguments), expected[0]), 1e-4)


def test_gradients_in_bfloat16():
    f, arguments = programs.operator(16, "bfloat16"), programs.inputs(9, dtype="bfloat16")
    found = jax.grad(lambda x, w: f(x, w).astype("float32").sum(), BOTH)(*arguments)
    expected = jax.grad(lambda x, w: programs.reference(x, w).astype("float32").sum(), BOTH)(*arguments)
    close(found, expected, 5e-2)


def test_rows_of_a_jacobian():
    f, (x, w) = programs.operator(16), programs.inputs(3)
    close(jax.jacrev(f, BOTH)(x, w), jax.jacrev(programs.reference, BOTH)(x, w))


def test_second_derivatives():
    f = tile_jax.op(programs.name(), programs.square(16), batch="m")
    f.register_backward(lambda kept, g: (2 * kept[0] * kept[1] * g, (g * kept[0] ** 2).sum(0)))
    x, w = programs.inputs(3)
    second = lambda f: jax.grad(lambda x: jnp.sin(jax.grad(loss(f))(x, w)).sum())  # noqa: E731
    close(second(f)(x), second(programs.reference)(x), 1e-4)


def test_what_is_kept_and_gradients_of_some_arguments():
    f = tile_jax.op(programs.name(), programs.square(16))
    seen = []

    def backward(kept, g):
        seen.append([tuple(a.shape) for a in kept])
        return 2 * kept[0] * g, None

    f.register_backward(backward, residuals=lambda arguments, result: (arguments[0] * arguments[1], result))
    x, w = programs.inputs(3)
    close(jax.grad(loss(f))(x, w), jax.grad(loss(programs.reference))(x, w), 1e-4)
    close(jax.grad(loss(f), 1)(x, w), jnp.zeros(16))  # as the formula states
    assert seen[0] == [(3, 16), (3, 16)]


def test_gradients_with_numbers_and_written_arguments():
    m = T.dynamic("m")

    @T.prim_func
    def axpy(X: T.Tensor((m,), "float32"), a: T.float32, Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = Y[bx * 32 + i] + a * X[bx * 32 + i]

    f = tile_jax.op(programs.name("axpy"), axpy, batch="m")
    f.register_backward(lambda kept, g, a: (a * g, g), residuals=lambda arguments, result: None)
    x, y = jnp.arange(5.0), jnp.ones(5)
    for a in (2.0, -3.0):
        ours, theirs = (lambda x, y, a=a: jnp.sin(f(x, a, y)).sum()), (lambda x, y, a=a: jnp.sin(y + a * x).sum())
        close(jax.grad(ours, BOTH)(x, y), jax.grad(theirs, BOTH)(x, y))
        batch = jnp.stack([x, -x])
        each = jax.vmap(jax.grad(ours, BOTH), (0, None))
        close(each(batch, y), jax.vmap(jax.grad(theirs, BOTH), (0, None))(batch, y))


def test_without_a_formula_gradients_are_refused():
    f, (x, w) = tile_jax.op(programs.name(), programs.square(16)), programs.inputs(3)
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f)), jax.jacrev, jax.jacfwd):
        with raises_error(operators.NoGradient, operator=f.name):
            transform(loss(f))(x, w)
    with raises_error(operators.NoGradient, operator=f.name):
        jax.jvp(f, (x, w), (x, w))
    stopped = jax.grad(lambda x: (x * f(jax.lax.stop_gradient(x), w)).sum())
    close(stopped(x), programs.reference(x, w))


def test_forward_mode_with_a_formula_is_refused_by_jax():
    f, (x, w) = programs.operator(16), programs.inputs(3)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(f, (x, w), (x, w))


@pytest.mark.parametrize("batch", [None, "m"])
@pytest.mark.parametrize("axes", [(0, None), (-2, None), (None, 0), (2, 1)])
def test_batches(axes, batch):
    f = programs.operator(16, batch=batch)
    x, w = programs.inputs(5)
    given = [
        a if axis is None else jnp.moveaxis(jnp.stack([a, a + 1, -a]), 0, axis)
        for a, axis in zip((x, w), axes, strict=True)
    ]
    close(jax.jit(jax.vmap(f, axes))(*given), jax.vmap(programs.reference, axes)(*given))
    gradients = [jax.vmap(jax.grad(loss(g), BOTH), axes)(*given) for g in (f, programs.reference)]
    close(*gradients, 1e-4)
    whole = [jax.grad(lambda *a, g=g: jax.vmap(g, axes)(*a).sum(), BOTH)(*given) for g in (f, programs.reference)]
    close(*whole, 1e-4)


@pytest.mark.parametrize("batch", [None, "m"])
def test_batches_of_batches_and_none(batch):
    f, (x, w) = programs.operator(16, batch=batch), programs.inputs(12)
    nested = x.reshape(2, 3, 2, 16)
    close(jax.vmap(jax.vmap(lambda x: f(x, w)))(nested), programs.reference(nested, w))
    close(jax.vmap(lambda x: f(x, w))(nested[0, :0]), programs.reference(nested[0, :0], w))
    close(jax.vmap(lambda x: f(x, w))(jnp.zeros((3, 0, 16))), jnp.zeros((3, 0, 16)))


def test_a_folded_batch_is_one_call():
    x = jnp.ones((7, 5, 16))

    def text(f):
        return jax.jit(jax.vmap(lambda x: f(x, jnp.ones(16)))).lower(x).as_text()

    folded, looped = (text(programs.operator(16, batch=batch)) for batch in ("m", None))
    assert "while" not in folded
    assert "35x16" in folded
    assert "while" in looped
