"""Gradients: eager, by ``torch.func``, of second order, batched; refused where there is no formula."""

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402
from torch.func import grad, jacrev, vmap  # noqa: E402

import tile_torch  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402
from tile_torch import errors  # noqa: E402

from . import programs  # noqa: E402

close = torch.testing.assert_close


@pytest.fixture(scope="module")
def f():
    return programs.operator()


def gradients(function, arguments):
    return torch.autograd.grad(function(*arguments).sin().sum(), arguments)


@pytest.mark.parametrize("way", ["call", "default"])
@pytest.mark.parametrize("m", [1, 37])
def test_eager(f, way, m):
    arguments = programs.inputs(m, requires_grad=True)
    call = f if way == "call" else f.default
    close(call(*arguments), programs.reference(*arguments))
    close(gradients(call, arguments), gradients(programs.reference, arguments))


@pytest.mark.parametrize("which", [0, 1])
def test_one_argument_alone(f, which):
    arguments = list(programs.inputs(5))
    arguments[which].requires_grad_()
    f(*arguments).sum().backward()
    found, arguments[which].grad = arguments[which].grad, None
    programs.reference(*arguments).sum().backward()
    close(found, arguments[which].grad)


def test_gradcheck():
    f = programs.operator(6, "float64")
    arguments = programs.inputs(5, 6, torch.float64, requires_grad=True)
    for call in (f, f.default):
        assert torch.autograd.gradcheck(call, arguments)


def test_opcheck(f):
    for arguments in (programs.inputs(5), programs.inputs(5, requires_grad=True), programs.inputs(0)):
        found = torch.library.opcheck(f.default, arguments)
        assert set(found.values()) == {"SUCCESS"}, found


def test_second_order_is_refused_without_a_formula(f):
    arguments = programs.inputs(5, requires_grad=True)
    (first,) = torch.autograd.grad(f(*arguments).sum(), arguments[:1], create_graph=True)
    with raises_error(operators.NoGradient) as caught:
        first.sum().backward()
    assert "register_backward" in caught.value.help


def test_an_operator_without_a_formula_refuses_a_backward_pass():
    f = tile_torch.op(programs.name(), programs.square(16))
    arguments = programs.inputs(5, requires_grad=True)
    for call in (f, f.default):
        result = call(*arguments)
        assert result.requires_grad
        with raises_error(operators.NoGradient, operator=f.name):
            result.sum().backward()
    with raises_error(operators.NoGradient, operator=f.name):
        grad(lambda x, w: f(x, w).sum())(*programs.inputs(5))


def test_second_order_by_operators():
    """A gradient whose formula calls operators with formulas is differentiable."""
    f, mul = programs.operator(6, "float64"), programs.operator(6, "float64", None)
    outer = tile_torch.op(programs.name(), programs.square(6, "float64"))
    outer.register_backward(lambda ctx, g: (2 * g * ctx.saved_tensors[0] * ctx.saved_tensors[1], None))
    x, w = programs.inputs(3, 6, torch.float64)
    assert torch.autograd.gradgradcheck(lambda x: outer(x, w), (x.requires_grad_(),))
    assert f is not mul


def test_setup_context_keeps_what_it_wants():
    f = tile_torch.op(programs.name(), programs.square(16))
    kept = []

    def setup(ctx, inputs, output):
        kept.append(output.shape)
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        assert ctx.needs_input_grad == (True, False)
        x, w = ctx.saved_tensors
        return 2 * g * x * w, None

    f.register_backward(backward, setup_context=setup)
    x, w = programs.inputs(5)
    x.requires_grad_()
    close(torch.autograd.grad(f(x, w).sum(), x)[0], 2 * x * w)
    assert kept == [(5, 16)]


def test_tangents_are_refused_never_dropped(f):
    import torch.autograd.forward_ad as forward_ad

    x, w = programs.inputs(5)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        for call in (f, f.default):
            with raises_error(errors.TransformRefused, transform="forward-mode differentiation"):
                call(dual, w)
            close(call(x, w), programs.reference(x, w))
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(lambda x: f(x, w), (x,), (torch.ones_like(x),))


class TestFunctions:
    def test_grad(self, f):
        x, w = programs.inputs(5)
        close(grad(lambda x: f(x, w).sum())(x), 2 * x * w)
        found = grad(lambda x, w: f(x, w).sum(), argnums=(0, 1))(x, w)
        close(found, (2 * x * w, (x * x).sum(0)))

    def test_jacrev(self, f):
        x, w = programs.inputs(3)
        close(jacrev(lambda x: f(x, w).sum(0))(x), jacrev(lambda x: programs.reference(x, w).sum(0))(x))

    @pytest.mark.parametrize("batch", ["m", None])
    @pytest.mark.parametrize("dims", [(0, None), (1, None), (None, 0), (0, 0), (2, 1)])
    def test_vmap(self, batch, dims):
        f = programs.operator(16, "float32", batch)
        x, w = programs.inputs(5)
        x = x if dims[0] is None else torch.randn(4, 5, 16).movedim(0, dims[0])
        w = w if dims[1] is None else torch.randn(4, 16).movedim(0, dims[1])
        close(vmap(f, in_dims=dims)(x, w), vmap(programs.reference, in_dims=dims)(x, w))

    @pytest.mark.parametrize("batch", ["m", None])
    def test_vmap_of_an_empty_batch(self, batch):
        f = programs.operator(16, "float32", batch)
        assert vmap(f, in_dims=(0, None))(torch.randn(0, 5, 16), torch.randn(16)).shape == (0, 5, 16)

    @pytest.mark.parametrize(("batch", "shapes"), [("m", [(20, 16)]), (None, [(5, 16)] * 4)])
    def test_a_folded_batch_is_one_launch(self, batch, shapes):
        from torch.utils._python_dispatch import TorchDispatchMode

        launches = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                if function is f.default:
                    launches.append(tuple(args[0].shape))
                return function(*args, **(kwargs or {}))

        f = programs.operator(16, "float32", batch)
        x, w = torch.randn(4, 5, 16), torch.randn(16)
        for call in (f, f.default):
            launches.clear()
            with Watch():
                close(vmap(call, in_dims=(0, None))(x, w), programs.reference(x, w))
            assert launches == shapes

    @pytest.mark.parametrize("batch", ["m", None])
    def test_vmap_of_grad(self, batch):
        f = programs.operator(16, "float32", batch)
        x, w = torch.randn(4, 5, 16), torch.randn(16)

        def per_example(function):
            loss = lambda x, w: function(x, w).sin().sum()  # noqa: E731
            return vmap(grad(loss, argnums=(0, 1)), in_dims=(0, None))(x, w)

        close(per_example(f), per_example(programs.reference))

    def test_grad_of_vmap(self, f):
        x, w = torch.randn(4, 5, 16), torch.randn(16)
        loss = lambda call: lambda w: vmap(call, in_dims=(0, None))(x, w).sin().sum()  # noqa: E731
        close(grad(loss(f))(w), grad(loss(programs.reference))(w))

    def test_nested_vmap(self, f):
        x, w = torch.randn(3, 4, 5, 16), torch.randn(3, 16)
        nested = lambda call: vmap(vmap(call, in_dims=(0, None)), in_dims=(0, 0))(x, w)  # noqa: E731
        close(nested(f), nested(programs.reference))

    def test_an_own_rule(self):
        f = tile_torch.op(programs.name(), programs.square(16))
        seen = []

        def rule(info, dims, x, w):
            seen.append((info.batch_size, dims))
            return programs.reference(x.movedim(dims[0], 0), w), 0

        f.register_vmap(rule)
        x, w = torch.randn(5, 4, 16), torch.randn(16)
        close(vmap(f, in_dims=(1, None))(x, w), vmap(programs.reference, in_dims=(1, None))(x, w))
        assert seen == [(4, (1, None))]

    def test_several_results(self):
        f = tile_torch.op(programs.name(), programs.square_gradient(16), batch="m")
        g, x, w = torch.randn(4, 5, 16), torch.randn(5, 16), torch.randn(16)
        found = vmap(f, in_dims=(0, None, None))(g, x, w)
        assert len(found) == 2
        close(found, (2 * g * x * w, g * x * x))


@pytest.mark.parametrize(
    ("batch", "reason"),
    [("k", "is not a symbol"), ("n", "is not only the first extent of X")],
)
def test_batches_that_are_refused(batch, reason):
    import tile_core.language as T

    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def copy(X: T.Tensor((m, n), "float32"), Y: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 32), T.ceildiv(n, 32), threads=32) as (bx, by):
            for i, j in T.Parallel(32, 32):
                Y[bx * 32 + i, by * 32 + j] = X[bx * 32 + i, by * 32 + j]

    with raises_error(operators.BadBatch, found=batch) as caught:
        tile_torch.op(programs.name(), copy, batch=batch)
    assert reason in caught.value.message


def test_a_batch_of_a_function_or_within_an_extent_is_refused():
    import tile_core.language as T

    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    with raises_error(operators.BadBatch, found="m"):
        tile_torch.op(programs.name(), double, batch="m")
    m = T.dynamic("m")

    @T.prim_func
    def halves(X: T.Tensor((2 * m,), "float32"), Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = X[bx * 32 + i]

    with raises_error(operators.BadBatch, found="m") as caught:
        tile_torch.op(programs.name(), halves, batch="m")
    assert "not only the first extent of X" in caught.value.message
    looped = tile_torch.op(programs.name(), halves)
    close(vmap(looped)(torch.arange(12.0).view(3, 4)), torch.tensor([[0.0, 1], [4, 5], [8, 9]]))
