"""Strides, conversions under autocast, distributed tensors and subclasses."""

import os

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402

import tile_core.language as T  # noqa: E402
import tile_torch  # noqa: E402
from tile_core.errors import launch  # noqa: E402
from tile_torch import errors  # noqa: E402

from . import programs  # noqa: E402

close = torch.testing.assert_close


@pytest.fixture(scope="module")
def strided():
    """Return an operator that reads rows and columns by their strides."""
    m, n, sm, sn = (T.dynamic(s) for s in ("m", "n", "sm", "sn"))

    @T.prim_func
    def double(X: T.StridedTensor((m, n), (sm, sn), "float32"), Y: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 32), T.ceildiv(n, 32), threads=32) as (bx, by):
            for i, j in T.Parallel(32, 32):
                Y[bx * 32 + i, by * 32 + j] = X[bx * 32 + i, by * 32 + j] * 2.0

    return tile_torch.op(programs.name(), double)


@pytest.fixture(scope="module")
def images():
    """Return an operator on images of any layout."""
    n, h, w = (T.dynamic(s) for s in ("n", "h", "w"))
    strides = tuple(T.dynamic(f"s{axis}") for axis in range(4))

    @T.prim_func
    def negate(X: T.StridedTensor((n, 8, h, w), strides, "float32"), Y: T.Tensor((n, 8, h, w), "float32")):
        with T.Kernel(n, 8, T.ceildiv(h, 8), threads=32) as (b, c, by):
            for i, j in T.Parallel(8, w):
                Y[b, c, by * 8 + i, j] = -X[b, c, by * 8 + i, j]

    return tile_torch.op(programs.name(), negate)


VIEWS = {
    "rows": lambda: torch.randn(9, 7),
    "transposed": lambda: torch.randn(7, 9).t(),
    "every second column": lambda: torch.randn(9, 14)[:, ::2],
    "a column": lambda: torch.randn(9, 7)[:, 2:3],
    "one row": lambda: torch.randn(1, 7),
    "expanded": lambda: torch.randn(1, 7).expand(9, 7),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_kernel_with_strides_takes_any_view(strided, view):
    x = VIEWS[view]()
    for call in (strided, strided.default):
        found = call(x)
        close(found, 2 * x)
        assert found.is_contiguous()


def test_fakes_have_the_strides_of_results(strided):
    with torch._subclasses.FakeTensorMode() as mode:
        for make in VIEWS.values():
            x = make()
            real = strided(x)
            fake = strided(mode.from_tensor(x))
            assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
    torch.library.opcheck(strided.default, (VIEWS["transposed"](),))


def test_channels_last(images):
    x = torch.randn(2, 8, 5, 7).to(memory_format=torch.channels_last)
    close(images(x), -x)
    compiled = torch.compile(lambda x: images(x * 2) + 1, fullgraph=True, backend="aot_eager")
    close(compiled(x), 1 - 2 * x)
    torch.library.opcheck(images.default, (x,))


def test_other_layouts_of_contiguous_parameters_are_refused_by_name():
    f = programs.operator()
    x, w = torch.randn(16, 5).t(), torch.randn(16)
    for call in (f, f.default):
        with raises_error(launch.StrideMismatch, name="X", kernel="square_mul"):
            call(x, w)
    compiled = torch.compile(lambda x: f(x.t(), w), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="StrideMismatch"):
        compiled(torch.randn(16, 5))


def test_compiled_code_keeps_the_strides_that_eager_code_has(strided):
    """The operator gets what the program wrote, whichever layout the compiler would prefer."""

    def program(x):
        return strided((x * 2).t().contiguous().t()) + strided(x.t()).t()

    x = torch.randn(9, 7)
    close(torch.compile(program, fullgraph=True, backend="aot_eager")(x), program(x))


class TestAutocast:
    def test_operators_are_left_alone(self):
        f, (x, w) = programs.operator(), programs.inputs(5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            close(f(x, w), programs.reference(x, w))
            with raises_error(launch.DTypeMismatch, found="bfloat16"):
                f(x.bfloat16(), w)

    @pytest.mark.parametrize("way", ["call", "default", "compiled", "grad"])
    def test_a_policy_converts(self, way):
        f = tile_torch.op(programs.name(), programs.square(16), autocast=torch.float32)
        gradient = tile_torch.op(programs.name("g"), programs.square_gradient(16))
        f.register_backward(
            lambda ctx, g: (lambda dx, dw: (dx, dw.sum(0)))(*gradient(g.contiguous(), *ctx.saved_tensors))
        )
        x, w = programs.inputs(5)
        half = x.bfloat16()
        call = {"call": f, "default": f.default, "grad": f}.get(way)
        if way == "compiled":
            call = torch.compile(lambda x, w: f(x, w), fullgraph=True, backend="aot_eager")
        with raises_error(launch.DTypeMismatch) if way != "compiled" else pytest.raises(Exception, match="DType"):
            call(half, w)
        torch._dynamo.reset()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if way == "grad":
                found = torch.func.grad(lambda h: f(h, w).sum())(half)
                close(found, (2 * half.float() * w).bfloat16())
                return
            half.requires_grad_()
            found = call(half, w)
            close(found, programs.reference(half.float(), w))
            found.sum().backward()
        close(half.grad, (2 * half.float() * w).bfloat16())


def test_distributed_tensors_are_refused_by_name(tmp_path):
    distributed = pytest.importorskip("torch.distributed.tensor")
    os.environ.setdefault("MASTER_ADDR", "localhost")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        f, (x, w) = programs.operator(), programs.inputs(4)
        sharded = distributed.distribute_tensor(x, mesh, [distributed.Shard(0)])
        whole = distributed.distribute_tensor(w, mesh, [distributed.Replicate()])
        with raises_error(errors.ShardedArgument, operator=f.name, number=0) as caught:
            f(sharded, whole)
        assert "to_local" in caught.value.help
        with pytest.raises(NotImplementedError, match=f.name.replace("::", ".")):
            f.default(sharded, whole)
        close(f(sharded.to_local(), whole.to_local()), programs.reference(x, w))
    finally:
        torch.distributed.destroy_process_group()


def test_a_subclass_sees_the_operator():
    from torch.testing._internal.two_tensor import TwoTensor

    f, (x, w) = programs.operator(), programs.inputs(4)
    found = f(TwoTensor(x, x + 1), TwoTensor(w, w))
    assert type(found) is TwoTensor
    close(found.a, programs.reference(x, w))
    close(found.b, programs.reference(x + 1, w))
