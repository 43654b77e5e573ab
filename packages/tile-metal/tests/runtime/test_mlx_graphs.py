"""Calls with arrays of the real MLX: what is added to its graph, and that nothing is computed.

MLX records kernels without a device while a function is exported.
"""

import dataclasses
import io
import re
from collections import Counter

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import compiler
from tile_core.errors.launch import MissingArgument, ScalarType, WrongDevice
from tile_metal import mlx
from tile_metal.errors import BadExamples, NotBatched
from tile_metal.runtime.adapter import MetalAdapter
from tile_metal.target import make_target
from tile_metal.testing.cases import cases
from tile_metal.testing.selftest import on_mlx
from tile_runtime.errors.operators import NoGradient

mx = pytest.importorskip("mlx.core", reason="mlx is not installed")

n = T.dynamic("n")


class OnMac(MetalAdapter):
    """MLX's arrays are where they would be on a Mac."""

    def describe(self, value):
        found = super().describe(value)
        return found and dataclasses.replace(found, device=(8, 0))


@pytest.fixture(autouse=True)
def adapter(monkeypatch):
    made = OnMac(make_target("metal3"), find={"mlx": lambda: mx}, system=lambda: (15, 1))
    monkeypatch.setattr(compiler, "find_runtime", lambda *_: made)
    for name in ("eval", "async_eval"):
        monkeypatch.setattr(mx, name, refuse)
    return made


def refuse(*arrays):
    raise AssertionError("something was computed")


def graph(function, *arrays):
    """Return the names of the nodes of a function's graph; kernels by the names that MLX gives them."""
    seen = []
    mx.export_function(lambda row: seen.append(row), function, *arrays)
    rows = [row for row in seen if row["type"] == "primitive"]
    return [row["arguments"][0] if row["name"] == "CustomKernel" else row["name"] for row in rows]


def nodes(function, *arrays):
    """Return the names of the nodes of a graph that cannot be exported, and what the function returned."""
    found = []

    def traced(*given):
        result = function(*given)
        results = result if isinstance(result, tuple) else (result,)
        text = io.StringIO()
        mx.export_to_dot(text, *results)
        found.extend([re.findall(r'label ="(\w+)", shape=rectangle', text.getvalue()), result])
        return given[0]

    mx.export_function(lambda row: None, traced, *arrays)
    return found


def ramp(count, dtype=mx.float32):
    return mx.arange(count).astype(dtype)


@T.prim_func
def scale(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), factor: T.float32):
    with T.Kernel(T.ceildiv(n, 128), threads=32) as bx:
        for i in T.Parallel(128):
            Y[bx * 128 + i] = X[bx * 128 + i] * factor


@T.prim_func
def scale_gradient(G: T.Tensor((n,), "float32"), D: T.Tensor((n,), "float32"), factor: T.float32):
    with T.Kernel(T.ceildiv(n, 128), threads=32) as bx:
        for i in T.Parallel(128):
            D[bx * 128 + i] = G[bx * 128 + i] * factor


@T.prim_func
def accumulate(X: T.Tensor((64,), "float32"), State: T.Tensor((64,), "float32"), Out: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            State[i] = State[i] + X[i]
            Out[i] = State[i] * 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_chain_of_launches(compiled):
    kernel = tile.compile(scale, "metal", out_idx=1)

    def chain(x):
        for k in range(12):
            x = kernel(x, 1.0 + k)
        return x

    found = graph(mx.compile(chain) if compiled else chain, ramp(300))
    assert len(found) == 12
    assert all("scale" in name for name in found)


def test_two_hundred_kernels_of_a_decode_step():
    kernels = [tile.compile(scale, "metal", out_idx=1), tile.compile(accumulate, "metal", out_idx=-1)]

    def step(x, state):
        for k in range(100):
            x = kernels[0](x, float(k))
            x = kernels[1](x, mx.array(state))
        return x

    found = graph(step, ramp(64), ramp(64))
    assert sum("scale" in name for name in found) == sum("accumulate" in name for name in found) == 100


def test_state_is_renewed_by_three_nodes():
    """A copy of the old content, the kernel, and the copy's new content, which becomes that of the object."""
    kernel = tile.compile(accumulate, "metal", out_idx=-1)

    def twice(x, state):
        return kernel(x, state), kernel(x, state), state

    found = re.findall("copy|accumulate", " ".join(graph(twice, ramp(64), ramp(64))))
    assert Counter(found) == {"copy": 4, "accumulate": 2}
    assert found.index("copy") < found.index("accumulate")
    assert found[-1] == "copy"


def test_views_and_pending_arrays_are_passed_as_they_are():
    kernel = tile.compile(scale, "metal", out_idx=1)
    found = graph(lambda x: kernel(x[1:65], 2.0) * kernel(x.reshape(2, 150).T.reshape(-1)[:64], 1.0), ramp(300))
    assert Counter("kernel" if "scale" in name else name for name in found) == {
        "Slice": 2, "Transpose": 1, "Reshape": 2, "kernel": 2, "Multiply": 1,
    }  # fmt: skip


class TestOperators:
    @pytest.fixture
    def op(self):
        made, backward = mlx.op(scale), tile.compile(scale_gradient, "metal", out_idx=1)
        made.register_backward(lambda kept, gradient, factor: (backward(gradient, factor),))
        return made

    @pytest.mark.parametrize("compiled", [False, True])
    def test_a_gradient_is_a_kernel(self, op, compiled):
        gradient = mx.grad(lambda x: (op(x, 3.0) * mx.array(2.0)).sum())
        found = graph(mx.compile(gradient) if compiled else gradient, ramp(300))
        assert ["scale_gradient" in name for name in found].count(True) == 1

    def test_a_gradient_may_keep_results(self):
        op, seen = mlx.op(scale), []
        op.register_backward(lambda kept, gradient, factor: seen.append((kept, factor)) or (gradient * kept,),
                             residuals=lambda arguments, result: result)  # fmt: skip
        found, _ = nodes(mx.grad(lambda x: op(x, 3.0).sum()), ramp(300))
        ((kept, factor),) = seen
        assert (kept.shape, factor) == ((300,), 3.0)
        assert found.count("CustomKernel") == 1

    def test_values_and_gradients_compile(self, op):
        function = mx.compile(mx.value_and_grad(lambda x: op(x, 3.0).sum()))
        found, (value, gradient) = nodes(function, ramp(300))
        assert (value.shape, gradient.shape) == ((), (300,))
        assert found.count("CustomKernel") == 2

    def test_two_results_and_state(self):
        op, before = mlx.op(accumulate), ramp(64)
        op.register_backward(lambda kept, gradients: (gradients[0], None))
        found, (state, out) = nodes(op, ramp(64), before)
        assert (state.shape, out.shape) == ((64,), (64,))
        assert found.count("CustomKernel") == 3
        assert "CustomKernel" not in nodes(lambda x: (op(x, before), before)[1], ramp(64))[0]  # it is unchanged
        _, gradient = nodes(mx.grad(lambda x: op(x, before)[1].sum()), ramp(64))
        assert gradient.shape == (64,)

    def test_without_a_formula(self):
        op = mlx.op(scale)
        with pytest.raises(NoGradient, match="K664"):
            nodes(mx.grad(lambda x: op(x, 3.0).sum()), ramp(300))

    def test_vmap_is_refused(self, op):
        with pytest.raises(NotBatched, match=r"K803.*scale"):
            nodes(mx.vmap(lambda x: op(x, 3.0)), mx.zeros((3, 40)))
        with pytest.raises(NotBatched, match=r"K803.*scale"):
            nodes(mx.vmap(mx.grad(lambda x: (op(x, 3.0) ** 2).sum())), mx.zeros((3, 40)))
        two = mlx.op(accumulate)
        with pytest.raises(NotBatched, match=r"K803.*accumulate"):
            nodes(lambda x, s: mx.vmap(lambda s: two(x, s))(s), ramp(64), mx.zeros((3, 64)))

    def test_vmap_of_a_kernel_is_refused_by_mlx(self):
        kernel = tile.compile(scale, "metal", out_idx=1)
        with pytest.raises(ValueError, match="Not implemented for CustomKernel"):
            graph(mx.vmap(lambda x: kernel(x, 3.0)), mx.zeros((3, 40)))

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_examples(self, op, axis):
        found, result = nodes(lambda x: op.vmap(axis)(x, 2.0), mx.zeros((9, 8)))
        assert result.shape == ((9, 8) if axis == 0 else (8, 9))
        assert found.count("CustomKernel") == result.shape[0]

    def test_examples_of_several_arrays(self):
        op = mlx.op(accumulate)
        _, (state, out) = nodes(lambda x, s: op.vmap((None, 1))(x, s), ramp(64), mx.zeros((64, 5)))
        assert (state.shape, out.shape) == ((5, 64), (5, 64))

    @pytest.mark.parametrize(
        ("axes", "shapes", "reason"),
        [((0, 0), ((4, 64), (3, 64)), "3 and 4 examples"), ((0, 0), ((0, 64), (0, 64)), "0 examples"),
         (None, ((64,), (64,)), "no examples"), ((0,), ((4, 64), (4, 64)), "length 1, for 2 arrays")],
    )  # fmt: skip
    def test_examples_that_do_not_match_are_refused(self, axes, shapes, reason):
        op = mlx.op(accumulate)
        with pytest.raises(BadExamples, match=f"K805.*{reason}"):
            op.vmap(axes)(*map(mx.zeros, shapes))

    def test_other_arguments(self, op):
        with pytest.raises(MissingArgument):
            op(ramp(40))
        with pytest.raises(ScalarType):
            nodes(lambda x: op(x, "3"), ramp(40))
        with pytest.raises(WrongDevice):
            op(np.zeros(40, np.float32), 3.0)
        assert "scale(X: float32(n,), factor: float32) -> Y" in repr(op)


@pytest.fixture
def computing(monkeypatch):
    """MLX computes, on the processor."""
    monkeypatch.undo()


@pytest.mark.parametrize("case", cases(small=True), ids=lambda case: case.name)
def test_the_function_beside_a_kernel_has_the_same_result(case, computing):
    arguments = case.arguments()
    found = case.theirs(mx, *(on_mlx(mx, array) for array in arguments))
    assert str(found.dtype).endswith(case.dtype)
    assert case.wrong(np.array(found.astype(mx.float32)), arguments) == ""


@pytest.mark.parametrize("case", cases(small=True)[::3], ids=lambda case: case.name)
def test_a_kernel_of_the_self_test_is_one_node(case, adapter):
    kernel = tile.compile(case.make(), "metal", out_idx=-1)
    given = [mx.zeros(x.shape, getattr(mx, x.dtype.name)) for x in case.arguments()]
    found = graph(lambda *arrays: kernel(*arrays), *given)
    assert len(found) == 1
