"""Operators on a CUDA device: streams, CUDA graphs, autocast, gradients and graphs of ``torch.compile``."""

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402

import tile_torch  # noqa: E402
from tile_core.errors import launch  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402

from . import programs  # noqa: E402

# What torch's compiler and CUDA graphs warn of differs between its versions.
pytestmark = [pytest.mark.device, pytest.mark.filterwarnings("ignore")]
close = torch.testing.assert_close
#: Cycles of a kernel that waits: about 50 ms, much longer than a launch takes.
WAIT = 100_000_000


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def f():
    return programs.operator()


def inputs(*arguments, requires_grad=False, **named):
    return tuple(t.cuda().requires_grad_(requires_grad) for t in programs.inputs(*arguments, **named))


def near(found, expected):
    """Compare reductions over rows, whose order differs."""
    close(found, expected, rtol=1e-4, atol=1e-3)


def gradients(call, arguments):
    return torch.autograd.grad(call(*arguments).sin().sum(), arguments)


@pytest.mark.parametrize("m", [0, 1, 37, 1024])
def test_results_and_gradients(f, m):
    plain, graded = inputs(m), inputs(m, requires_grad=True)
    for call in (f, f.default):
        result = call(*plain)
        assert result.device == plain[0].device
        close(result, programs.reference(*plain))
        near(gradients(call, graded), gradients(programs.reference, graded))


def test_checks_of_torch():
    f = programs.operator(6, "float64")
    arguments = inputs(5, 6, torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, arguments)
    assert set(torch.library.opcheck(f.default, arguments).values()) == {"SUCCESS"}


def test_functions_and_batches(f):
    x, w = torch.randn(4, 5, 16, device="cuda"), torch.randn(16, device="cuda")
    close(torch.vmap(f, in_dims=(0, None))(x, w), x * x * w)
    loss = lambda x, w: f(x, w).sin().sum()  # noqa: E731
    found = torch.vmap(torch.func.grad(loss), in_dims=(0, None))(x, w)
    close(found, torch.cos(x * x * w) * 2 * x * w)


def test_tensors_of_two_devices_are_refused(f):
    x, w = inputs(5)
    before = x.clone()
    for call in (f, f.default):
        with raises_error(launch.LaunchError):
            call(x, w.cpu())
        with raises_error(launch.LaunchError):
            call(x.cpu(), w)
    assert torch.equal(x, before)


class TestStreams:
    def test_a_launch_waits_for_its_own_stream(self, f):
        """A write that is queued on the same stream precedes the launch."""
        x, w = inputs(37)
        f(x, w)
        new, stream = torch.randn_like(x), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(WAIT)
            x.copy_(new)
            results = [f(x, w), f.default(x, w)]
        torch.cuda.current_stream().wait_stream(stream)
        for result in results:
            close(result, new * new * w)

    def test_a_launch_does_not_wait_for_other_streams(self, f):
        x, w = inputs(37)
        busy, free = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(free):
            f(x, w)  # compiles, and leaves memory to the allocator
        torch.cuda.synchronize()
        with torch.cuda.stream(busy):
            torch.cuda._sleep(10 * WAIT)
        with torch.cuda.stream(free):
            result = f(x, w)
        free.synchronize()
        assert not busy.query()
        close(result, x * x * w)

    def test_gradients_on_the_stream_of_the_forward_pass(self, f):
        arguments = inputs(37, requires_grad=True)
        gradients(f, arguments)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(WAIT)
            with torch.no_grad():
                arguments[0].mul_(-0.5)
            found = gradients(f, arguments)
        torch.cuda.current_stream().wait_stream(stream)
        near(found, gradients(programs.reference, arguments))


class TestGraphs:
    @pytest.mark.parametrize("way", ["call", "default"])
    def test_captured_calls_and_gradients(self, f, way):
        call = f if way == "call" else f.default
        x, w = inputs(37, requires_grad=True)

        def step():
            y = call(call(x, w), w)
            return y.detach(), *torch.autograd.grad(y.sin().sum(), (x, w))

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step()
        for _ in range(3):
            with torch.no_grad():
                x.copy_(torch.randn(37, 16))
                w.copy_(torch.randn(16))
            for result in found:
                result.fill_(float("nan"))
            graph.replay()
            y = programs.reference(programs.reference(x, w), w)
            near(found, (y.detach(), *torch.autograd.grad(y.sin().sum(), (x, w))))

    def test_make_graphed_callables(self, f):
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(16))

            def forward(self, x):
                return f(x, self.weight).relu()

        layer = Layer().cuda()
        graphed = torch.cuda.make_graphed_callables(layer, (torch.randn(37, 16, device="cuda", requires_grad=True),))
        for _ in range(3):
            x = torch.randn(37, 16, device="cuda", requires_grad=True)
            graphed(x).sum().backward()
            expected = (x.detach() ** 2 * layer.weight > 0) * 2 * x * layer.weight
            close(x.grad, expected.detach())

    def test_compiled_and_captured_by_inductor(self, f):

        def loss(x, w):
            return (f(x + 1, w).relu() * 2).sum()

        compiled = torch.compile(loss, fullgraph=True, mode="reduce-overhead")
        for _ in range(4):  # the first calls warm up and capture
            torch.compiler.cudagraph_mark_step_begin()
            arguments = inputs(37, requires_grad=True)
            found = [g.clone() for g in torch.autograd.grad(compiled(*arguments), arguments)]
            near(found, list(torch.autograd.grad(loss(*arguments), arguments)))


class TestAutocast:
    def test_an_operator_without_a_type_is_left_alone(self, f):
        x, w = inputs(5)
        for call in (f, f.default):
            with torch.autocast("cuda", torch.float16):
                result = call(x, w)
                with raises_error(launch.DTypeMismatch, name="X", found="float16"):
                    call(x.half(), w)
            assert result.dtype == torch.float32
            close(result, x * x * w)

    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_an_operator_with_a_type_converts(self, name):
        f = tile_torch.op(programs.name(), programs.square(16, name), autocast=getattr(torch, name))
        x, w = inputs(5)
        dtype = getattr(torch, name)
        for call in (f, f.default):
            with torch.autocast("cuda"):
                result = call(x, w)
            assert result.dtype == dtype
            close(result, x.to(dtype) * x.to(dtype) * w.to(dtype), rtol=2e-2, atol=1e-3)
            with torch.autocast("cpu"), raises_error(launch.DTypeMismatch, name="X", found="float32"):
                call(x, w)


def test_meta_tensors_have_no_target(f):
    x, w = inputs(5)
    assert f(x.to("meta"), w.to("meta")).shape == (5, 16)
    with raises_error(operators.NoTargetOf, found="meta"):
        f.kernel.compiled("meta")
