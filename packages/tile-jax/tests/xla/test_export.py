"""Exported functions: symbolic extents, other processes and platforms, refusals."""

import importlib
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")

from expected_errors import raises_error  # noqa: E402

import tile_core.language as T  # noqa: E402
import tile_jax  # noqa: E402
from tile_core.errors import launch  # noqa: E402
from tile_jax import errors, operator  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402

from . import programs  # noqa: E402
from .programs import close  # noqa: E402

jnp = jax.numpy


def specs(m, N=16, dtype="float32"):
    return jax.ShapeDtypeStruct((m, N), dtype), jax.ShapeDtypeStruct((N,), dtype)


def symbols(text, constraints=()):
    return jax.export.symbolic_shape(text, constraints=constraints)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_symbolic_extents(dtype):
    f = programs.operator(16, dtype)
    (m,) = symbols("m")
    data = tile_jax.export(jax.jit(lambda x, w: f(x, w) + 1))(*specs(m, dtype=dtype)).serialize()
    loaded = tile_jax.deserialize(data)
    for size in (1, 5, 37, 300):
        x, w = programs.inputs(size, dtype=dtype)
        close(loaded.call(x, w), programs.reference(x, w) + 1, 1e-5 if dtype == "float32" else 2e-2)


def test_gradients_and_batches():
    f = programs.operator(16)
    (b, m) = symbols("b, m")
    gradient = jax.grad(lambda x, w: jnp.sin(jax.vmap(f, (0, None))(x, w)).sum(), (0, 1))
    exported = tile_jax.export(jax.jit(gradient))(jax.ShapeDtypeStruct((b, m, 16), "float32"), specs(1)[1])
    loaded = tile_jax.deserialize(exported.serialize())
    x, w = programs.inputs(24)
    x = x.reshape(4, 6, 16)
    expected = jax.grad(lambda x, w: jnp.sin(programs.reference(x, w)).sum(), (0, 1))(x, w)
    close(loaded.call(x, w), expected, 1e-4)


def test_extents_that_are_expressions():
    n = T.dynamic("n")

    @T.prim_func
    def pairs(X: T.Tensor((2 * n,), "float32"), Y: T.Tensor((n + 1,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(n + 1):
                Y[i] = X[i] + X[T.max(2 * n - 1 - i, 0)]

    f = tile_jax.op(programs.name("pairs"), pairs)
    x = jnp.arange(10.0)
    close(jax.jit(f)(x), (x + x[::-1])[:6])
    exported = tile_jax.export(jax.jit(f))(jax.ShapeDtypeStruct((10,), "float32"))
    assert exported.out_avals[0].shape == (6,)
    close(tile_jax.deserialize(exported.serialize()).call(x), (x + x[::-1])[:6])
    (k,) = symbols("k")
    for extent in (2 * k, k):
        with raises_error((errors.Undecided, launch.ShapeMismatch)[extent is k]):
            tile_jax.export(jax.jit(f))(jax.ShapeDtypeStruct((extent,), "float32"))


def test_arrays_beyond_32_bit_offsets_are_refused_when_they_arrive(monkeypatch):
    monkeypatch.setattr("tile_jax.machine_code.LIMIT", 160)
    f = tile_jax.op(programs.name("bounded"), programs.square(16))
    (m,) = symbols("m")
    loaded = tile_jax.export(jax.jit(f))(*specs(m))
    x, w = programs.inputs(10)
    close(loaded.call(x, w), programs.reference(x, w))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"K422.*'X' spans more elements, at most 160"):
        jax.block_until_ready(loaded.call(*programs.inputs(11)))


def test_checks_that_symbols_do_not_decide_are_refused():
    m = T.dynamic("m", "int64")

    @T.prim_func
    def narrow(X: T.Tensor((m,), "float32"), Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                if T.cast(bx, "int32") * 32 + i < m:
                    Y[T.cast(bx, "int32") * 32 + i] = X[T.cast(bx, "int32") * 32 + i]

    f = tile_jax.op(programs.name("narrow"), narrow)
    if not any(p.narrow for p in f.kernel.signature.params):
        pytest.fail("the program has no index of 32 bits")
    (n,) = symbols("n")
    with raises_error(errors.Undecided, operator=f.name) as caught:
        tile_jax.export(jax.jit(f))(jax.ShapeDtypeStruct((n,), "float32"))
    assert "constraints" in caught.value.help
    (n,) = symbols("n", ["n <= 65536"])
    x = jnp.arange(70.0)
    close(tile_jax.export(jax.jit(f))(jax.ShapeDtypeStruct((n,), "float32")).call(x), x)


def test_operators_that_are_not_defined_are_named(monkeypatch):
    f = tile_jax.op(programs.name("absent"), programs.square(16))
    data = tile_jax.export(jax.jit(f))(*specs(4)).serialize()
    monkeypatch.setattr(operator, "_known", {})
    with raises_error(errors.NotDefined, found=f.name):
        tile_jax.deserialize(data)


def test_plain_jax_refuses_to_serialize_what_a_name_stands_for():
    f = programs.operator(16)
    with pytest.raises(ValueError, match=f.name):
        jax.export.export(jax.jit(f))(*specs(4)).serialize()


def test_export_for_a_platform_that_is_not_here():
    f = programs.operator(16)
    exported = tile_jax.export(jax.jit(f), platforms=["cpu", "cuda"])(*specs(4))
    assert exported.platforms == ("cpu", "cuda")
    assert f'@"{f.name}"' in exported.mlir_module()
    x, w = programs.inputs(4)
    close(tile_jax.deserialize(exported.serialize()).call(x, w), programs.reference(x, w))
    with raises_error(operators.NoTargetOf, operator=f.name, found="tpu"):
        tile_jax.export(jax.jit(f), platforms=["tpu"])(*specs(4))


OTHER = """
import sys
import jax, numpy as np
import tile_core.language as T, tile_jax

m = T.dynamic("m")

@T.prim_func
def double(X: T.Tensor((m, 3), "float32"), Y: T.Tensor((m, 3), "float32")):
    with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
        for i, j in T.Parallel(8, 3):
            Y[bx * 8 + i, j] = X[bx * 8 + i, j] * 2.0

f = tile_jax.op("elsewhere::double", double)
if __name__ == "__main__":
    x = np.arange(33, dtype="float32").reshape(11, 3)
    assert (tile_jax.deserialize(open(sys.argv[1], "rb").read()).call(x) == 2 * x).all()
"""


def test_another_process_loads_it(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(OTHER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("elsewhere")
    (m,) = symbols("m")
    exported = tile_jax.export(jax.jit(module.f))(jax.ShapeDtypeStruct((m, 3), "float32"))
    (tmp_path / "exported").write_bytes(exported.serialize())
    subprocess.run([sys.executable, str(tmp_path / "elsewhere.py"), str(tmp_path / "exported")], check=True)
