"""Layers beside torch's own, with random data of awkward sizes."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402
from torch.nn import functional  # noqa: E402

import tile_torch  # noqa: E402
from tile_core import sparse as formats  # noqa: E402
from tile_torch import Linear4bit, Linear24, ScaledLinear, errors  # noqa: E402
from tile_torch.modules import four_bits, scaled  # noqa: E402
from tile_torch.modules import sparse as sparse24  # noqa: E402

close = torch.testing.assert_close
LAYERS = (Linear24, ScaledLinear, Linear4bit)
SIZES = [(77, 50), (64, 96), (3, 5), (1, 1), (130, 33)]


def weight_of(layer):
    """Return the weight that the layer's products use, in float64."""
    if isinstance(layer, Linear24):
        return (layer.weight * layer.mask).to(layer.dtype).double()
    return layer.dequantize().double()


def expected(layer, x):
    """Return the product by torch in float64, of the operands that the layer uses."""
    given = x.reshape(-1, x.shape[-1])
    if isinstance(layer, ScaledLinear):
        codes, scale = scaled.quantize(given, layer.dtype)
        given = codes.double() * scale.double().unsqueeze(-1)
    else:
        given = given.to(layer.dtype).double()
    y = functional.linear(given, weight_of(layer), None if layer.bias is None else layer.bias.double())
    return y.view(*x.shape[:-1], layer.out_features)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_beside_torch(kind, sizes):
    layer = kind.from_linear(torch.nn.Linear(*sizes, bias=sizes[0] % 2 == 1))
    for shape in ((4, 5), (1,), (), (0,)):
        x = torch.randn(*shape, sizes[0])
        close(layer(x), expected(layer, x).float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [Linear24, Linear4bit])
def test_types_of_operands(kind, dtype):
    layer = kind.from_linear(torch.nn.Linear(70, 40), dtype=dtype)
    for x in (torch.randn(9, 70), torch.randn(9, 70, dtype=dtype)):
        found = layer(x)
        assert found.dtype == x.dtype
        close(found, expected(layer, x).to(x.dtype), rtol=1e-2 if x.dtype == dtype else 1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", LAYERS)
def test_quality_of_the_conversion(kind):
    """Converted weights are near the dense ones, as far as their bits go."""
    dense = torch.nn.Linear(256, 128)
    layer, weight = kind.from_linear(dense), dense.weight.double()
    lost = ((weight_of(layer) - weight).norm() / weight.norm()).item()
    assert lost < {Linear24: 0.47, ScaledLinear: 0.04, Linear4bit: 0.12}[kind]
    if kind is not Linear24:
        x = torch.randn(32, 256)
        error = (layer(x) - dense(x)).norm() / dense(x).norm()
        assert error < (0.06 if kind is ScaledLinear else 0.12)


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients(kind):
    layer = kind.from_linear(torch.nn.Linear(77, 50))
    x, g = torch.randn(6, 77, requires_grad=True), torch.randn(6, 50)
    layer(x).backward(g)
    close(x.grad.double(), g.double() @ weight_of(layer), rtol=2e-2, atol=2e-2)
    close(layer.bias.grad, g.sum(0))
    if kind is Linear24:
        wanted = (g.double().t() @ x.detach().half().double()) * layer.mask
        close(layer.weight.grad.double(), wanted, rtol=2e-2, atol=2e-2)
        assert not layer.weight.grad[~layer.mask].any()
        x.grad = None
        layer.freeze()
        layer(x).backward(g)
        weight = sparse24.decompress(layer.values, layer.metadata)[:, :77]
        close(x.grad.double(), g.double() @ weight.double(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("kind", LAYERS)
def test_state_of_another_layer(kind):
    layer, other = (kind.from_linear(torch.nn.Linear(77, 50)) for _ in range(2))
    x = torch.randn(6, 77)
    assert not torch.equal(layer(x), other(x))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(layer(x), other(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))


@pytest.mark.parametrize("kind", LAYERS)
def test_one_graph_and_export(kind):
    layer = kind.from_linear(torch.nn.Linear(77, 50))
    net = torch.nn.Sequential(layer, torch.nn.GELU())
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (5, 9):
        x, y = (torch.randn(m, 77).requires_grad_() for _ in range(2))
        y.data.copy_(x.data)
        close(compiled(x), net(y))
        compiled(x).sum().backward()
        net(y).sum().backward()
        close(x.grad, y.grad)
    program = torch.export.export(net, (torch.randn(5, 77),), dynamic_shapes=({0: torch.export.Dim("m")},))
    x = torch.randn(11, 77)
    close(program.module()(x), net(x))


@pytest.mark.parametrize("kind", LAYERS)
def test_operators(kind):
    layer = kind.from_linear(torch.nn.Linear(64, 48))
    x, g = torch.randn(6, 64, requires_grad=True), torch.randn(6, 48)
    half = x.detach().half().requires_grad_()
    if kind is ScaledLinear:
        calls = [(scaled.linear, (x, layer.weight, layer.scale)), (scaled.gradient, (g, layer.weight, layer.scale))]
    elif kind is Linear4bit:
        calls = [
            (four_bits.linear, (half, layer.weight, layer.scale, layer.group)),
            (four_bits.gradient, (g, layer.weight, layer.scale, layer.group, 64)),
        ]
    else:
        weight = (layer.weight * layer.mask).detach().half()
        pair = sparse24.compress(weight)
        calls = [
            (sparse24.compress, (weight,)),
            (sparse24.linear, (half, *pair)),
            (sparse24.train, (half, weight.clone().requires_grad_(), *pair)),
            (sparse24.input_gradient, (g, weight)),
            (sparse24.weight_gradient, (g, half.detach())),
        ]
    tests = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    for operator, arguments in calls:  # torch compares no 8-bit floats, as the schema's test does
        found = torch.library.opcheck(operator.default, arguments, test_utils=tests[kind is ScaledLinear :])
        assert set(found.values()) == {"SUCCESS"}, (operator, found)


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient:UserWarning")
@pytest.mark.parametrize("kind", LAYERS)
def test_gradcheck(kind):
    """Operators are linear: differences of a step of 1 are exact where all operands are small integers."""
    m, k, n = 3, 32, 5
    x = torch.randint(-4, 5, (m, k - 1)).half().requires_grad_()
    weight = torch.randint(-4, 5, (n, k)).half()
    # Of 448, the largest value of float8_e4m3fn, so that the scale of each row is 1.
    last = torch.full((m, 1), 448.0)
    if kind is ScaledLinear:
        calls = [
            lambda x: scaled.linear(torch.cat([x.float(), last], 1), weight.to(torch.float8_e4m3fn), torch.ones(n))
        ]
    elif kind is Linear4bit:
        codes, scale = four_bits.quantize(torch.cat([weight[:, 1:], torch.full((n, 1), -8.0)], 1), 32, torch.float16)
        calls = [lambda x: four_bits.linear(torch.cat([x, last.half() / 64], 1), codes, scale, 32)]
    else:
        weight *= sparse24.mask24(weight)
        pair = sparse24.compress(weight)
        calls = [
            lambda x: sparse24.linear(torch.cat([x, last.half() / 64], 1), *pair),
            lambda x: sparse24.train(torch.cat([x, last.half() / 64], 1), weight, *pair),
        ]
        given = torch.randint(-4, 5, (m, k)).half()
        w = weight.clone().requires_grad_()
        # The pair is that of the weight, so that the step is in the operand of the gradient alone.
        (found,) = torch.autograd.grad(sparse24.train(given, w, *pair).sum(), w)
        assert torch.equal(found, torch.ones(n, m).half() @ given)
    for call in calls:
        assert torch.autograd.gradcheck(call, (x,), eps=1.0, atol=0, rtol=0, nondet_tol=0)


class TestLinear24:
    @pytest.mark.parametrize("shape", [(5, 77), (8, 64), (3, 2)])
    def test_the_mask_is_that_of_prune(self, shape):
        weight = torch.randn(shape).half().float()
        weight[0, :4] = torch.tensor([1.0, -1.0, 1.0, -1.0])[: min(4, shape[1])]
        k = shape[1]
        padded = functional.pad(weight, (0, -k % 4)).half()
        assert torch.equal((weight * sparse24.mask24(weight)).half(), formats.prune(padded)[:, :k])

    def test_decompress_is_that_of_the_format(self):
        dense = formats.prune(torch.randn(9, 64).half())
        dense[3] = 0
        dense[4, 1:] = 0
        values, metadata = formats.compress(dense, meta_dtype="int16")
        assert torch.equal(sparse24.decompress(values, metadata), dense)

    def test_frozen_results_are_those_of_the_dense_layer(self):
        layer = Linear24.from_linear(torch.nn.Linear(77, 50))
        x = torch.randn(6, 77)
        y = layer(x)
        dense_bytes = sum(t.nbytes for t in layer.state_dict().values())
        layer.freeze()
        assert torch.equal(layer(x), y)
        assert set(layer.state_dict()) == {"values", "metadata", "bias"}
        assert sum(t.nbytes for t in layer.state_dict().values()) < 0.3 * dense_bytes
        assert layer.freeze() is layer
        with raises_error(errors.BadLayer, layer="Linear24"):
            layer.refresh()

    def test_states_of_frozen_and_dense_layers_load_into_each_other(self):
        dense, frozen = (Linear24.from_linear(torch.nn.Linear(77, 50)) for _ in range(2))
        frozen.freeze()
        x = torch.randn(6, 77)
        a, b = Linear24(77, 50), Linear24(77, 50).freeze()
        a.load_state_dict(frozen.state_dict())
        b.load_state_dict(dense.state_dict())
        assert a.is_frozen
        assert not b.is_frozen
        assert torch.equal(a(x), frozen(x))
        assert torch.equal(b(x), dense(x))
        b(x).sum().backward()
        assert b.weight.grad is not None

    def test_refresh_chooses_again(self):
        layer = Linear24(64, 8)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(8, 64))
        before = layer.mask.clone()
        layer.refresh()
        assert not torch.equal(layer.mask, before)
        assert (layer.mask.view(8, -1, 4).sum(-1) == 2).all()
        assert not layer.weight[~layer.mask].any()

    def test_training_beside_a_masked_layer_of_torch(self):
        def train(net, call):
            torch.manual_seed(1)
            optimizer = torch.optim.Adam(net.parameters(), 1e-2)
            data, losses = torch.randn(256, 64), []
            target = torch.tanh(data[:, :32] * 2)
            for step in range(30):
                chosen = torch.randint(0, 256, (40 + step % 3,))
                loss = functional.mse_loss(call(data[chosen]), target[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return torch.tensor(losses)

        class Masked(torch.nn.Module):
            def __init__(self, layer):
                super().__init__()
                self.weight = torch.nn.Parameter(layer.weight.detach().clone())
                self.bias = torch.nn.Parameter(layer.bias.detach().clone())
                self.mask = layer.mask.clone()

            def forward(self, x):
                return functional.linear(x.half().float(), (self.weight * self.mask).half().float(), self.bias)

        net = torch.nn.Sequential(Linear24(64, 96), torch.nn.GELU(), Linear24(96, 32))
        masked = torch.nn.Sequential(Masked(net[0]), torch.nn.GELU(), Masked(net[2]))
        again = copy.deepcopy(net)
        losses = train(net, net)
        close(losses, train(masked, masked), rtol=0, atol=1e-3)
        assert losses[-1] < 0.7 * losses[0]
        for layer in (net[0], net[2]):
            assert not layer.weight[~layer.mask].any()
        compiled = torch.compile(again, fullgraph=True, dynamic=True, backend="aot_eager")
        close(train(again, compiled), losses, rtol=0, atol=1e-3)


class TestScaledLinear:
    def test_beside_scaled_mm_of_torch(self):
        layer = ScaledLinear.from_linear(torch.nn.Linear(96, 64, bias=False))
        x = torch.randn(32, 96)
        codes, scale = scaled.quantize(x)
        theirs = torch._scaled_mm(
            codes, layer.weight.t(), scale.unsqueeze(-1), layer.scale.unsqueeze(0), out_dtype=torch.bfloat16
        )
        close(layer(x).bfloat16(), theirs, rtol=2e-2, atol=2e-2)

    def test_rows_of_zeros_and_large_values(self):
        layer = ScaledLinear.from_linear(torch.nn.Linear(64, 8, bias=False), dtype=torch.float8_e5m2)
        x = torch.randn(3, 64)
        x[0], x[1] = 0, x[1] * 1e6
        found = layer(x)
        assert not found[0].any()
        close(found, expected(layer, x).float(), rtol=1e-4, atol=1e-2)


class TestLinear4bit:
    @pytest.mark.parametrize("group", [32, 48, 200])
    def test_groups(self, group):
        layer = Linear4bit.from_linear(torch.nn.Linear(101, 30), group=group)
        assert layer.scale.shape == (30, -(-101 // group))
        x = torch.randn(5, 101)
        close(layer(x), expected(layer, x).float(), rtol=1e-4, atol=1e-4)

    def test_beside_the_four_bit_product_of_torch(self):
        layer = Linear4bit.from_linear(torch.nn.Linear(128, 64, bias=False), dtype=torch.bfloat16, group=32)
        x = torch.randn(16, 128).bfloat16()
        codes = torch.stack([layer.weight & 15, layer.weight >> 4], -1).view(64, 128).to(torch.int32)
        packed = torch._convert_weight_to_int4pack_for_cpu((codes + 8) & 15, 1)
        scales = torch.stack([layer.scale, torch.zeros_like(layer.scale)], -1).transpose(0, 1).contiguous()
        theirs = torch._weight_int4pack_mm_for_cpu(x, packed, 32, scales)
        close(layer(x), theirs, rtol=2e-2, atol=2e-2)

    def test_values_that_have_exact_codes(self):
        weight = torch.randint(-8, 8, (16, 64)).float() * 0.25
        weight[:, ::32] = -2.0
        codes, scale = four_bits.quantize(weight, 32, torch.float16)
        assert torch.equal(four_bits.unpack(codes, scale, 32, 64).float(), weight)


@pytest.mark.parametrize("kind", LAYERS)
def test_refusals(kind):
    name = kind.__name__
    with raises_error(errors.BadLayer, layer=name, name="in_features", found=0):
        kind(0, 4)
    with raises_error(errors.BadLayer, layer=name, name="out_features", found=True):
        kind(4, True)
    with raises_error(errors.BadLayer, layer=name, name="dtype", found=torch.float64):
        kind(4, 4, dtype=torch.float64)
    with raises_error(errors.BadLayer, layer=f"{name}.from_linear", found="Conv1d"):
        kind.from_linear(torch.nn.Conv1d(4, 4, 1))
    with raises_error(errors.BadLayer, layer=name, name="input", expected="a last extent of 4"):
        kind(4, 4)(torch.randn(2, 5))
    if kind is Linear4bit:
        with raises_error(errors.BadLayer, layer=name, name="group", found=0):
            kind(4, 4, group=0)


def test_names_of_the_package():
    assert set(tile_torch.__all__) <= set(dir(tile_torch))
    assert all(getattr(tile_torch, name) for name in tile_torch.__all__)
    with pytest.raises(AttributeError, match="no_such"):
        _ = tile_torch.no_such
