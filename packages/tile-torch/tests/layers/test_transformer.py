"""A transformer of operators is trained beside torch's own: in one graph, and captured on a device."""

import copy

import pytest

torch = pytest.importorskip("torch")

from . import transformer  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compare(losses, expected):
    torch.testing.assert_close(losses, expected, rtol=2e-3, atol=2e-3)
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("compiled", [False, True])
def test_losses_are_those_of_torch(compiled):
    net, theirs = transformer.networks()
    # Of one graph: nothing falls back to eager calls.
    call = torch.compile(net, fullgraph=True) if compiled else net
    compare(transformer.train(net, call), transformer.train(theirs, theirs))


@pytest.mark.device
@pytest.mark.filterwarnings("ignore")  # torch's compiler and CUDA graphs, which differ between versions
@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_is_captured_in_a_cuda_graph(compiled):
    """Losses of a captured step are those of torch on the host, and of torch and of the operators on the device."""
    net, theirs = transformer.networks()
    state = copy.deepcopy(net.state_dict())
    expected = transformer.train(theirs, theirs)
    for part in (net, theirs):
        part.load_state_dict(state)
        part.cuda()
    compare(transformer.train(theirs, theirs), expected)
    if not compiled:
        compare(transformer.train(net, net), expected)
        net.load_state_dict(state)
    call = torch.compile(net, fullgraph=True) if compiled else net
    compare(transformer.train_captured(net, call), expected)
