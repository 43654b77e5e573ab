"""Layers on a CUDA device, beside products of torch in float64."""

import pytest

torch = pytest.importorskip("torch")

from .test_layers import LAYERS, SIZES, expected, weight_of  # noqa: E402

pytestmark = pytest.mark.device
close = torch.testing.assert_close


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_beside_torch(kind, sizes):
    layer = kind.from_linear(torch.nn.Linear(*sizes, bias=sizes[0] % 2 == 1)).cuda()
    for shape in ((4, 5), (1,), (), (0,)):
        x = torch.randn(*shape, sizes[0], device="cuda")
        close(layer(x), expected(layer, x).float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients(kind):
    layer = kind.from_linear(torch.nn.Linear(77, 50)).cuda()
    x, g = torch.randn(6, 77, device="cuda", requires_grad=True), torch.randn(6, 50, device="cuda")
    layer(x).backward(g)
    close(x.grad.double(), g.double() @ weight_of(layer), rtol=2e-2, atol=2e-2)
    close(layer.bias.grad, g.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", LAYERS)
def test_captured(kind):
    """A layer in a CUDA graph has the results of new inputs."""
    layer = kind.from_linear(torch.nn.Linear(77, 50)).cuda()
    x = torch.randn(6, 77, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            layer(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = layer(x)
        for _ in range(2):
            x.copy_(torch.randn(6, 77))
            graph.replay()
            close(found, expected(layer, x).float(), rtol=1e-3, atol=1e-3)
