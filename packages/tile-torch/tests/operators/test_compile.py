"""Operators in graphs: ``torch.compile``, ``torch.export``, packages of AOTInductor."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402

import tile_torch  # noqa: E402
from tile_core.errors import launch  # noqa: E402

from . import programs  # noqa: E402

close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def f():
    return programs.operator()


def gradients(function, *arguments):
    return torch.autograd.grad(function(*arguments), arguments)


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
def test_one_graph_with_dynamic_shapes_and_gradients(f, backend):
    def loss(x, w):
        return (f(x + 1, w).relu() * 2).sum()

    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend=backend)
    for m in (37, 5) if backend == "inductor" else (37, 5, 64, 1):  # a batch of one is another graph, to be built
        arguments = programs.inputs(m, requires_grad=True)
        close(gradients(compiled, *arguments), gradients(loss, *arguments))


def test_dynamic_sizes_compile_once(f):
    graphs = []

    def backend(graph, inputs):
        graphs.append([str(n.target) for n in graph.graph.nodes if n.op == "call_function"])
        return graph

    compiled = torch.compile(lambda x, w: f(x, w), fullgraph=True, dynamic=True, backend=backend)
    for m in (37, 5, 64, 200):
        arguments = programs.inputs(m)
        close(compiled(*arguments), programs.reference(*arguments))
    assert graphs == [[f.default.name().replace("::", ".") + ".default"]]


def test_derived_sizes():
    """A result's extent that is computed from symbols has no guard on its value."""
    import tile_core.language as T

    m = T.dynamic("m")

    @T.prim_func
    def twice(X: T.Tensor((m, 8), "float32"), Y: T.Tensor((2 * m + 1, 8), "float32")):
        with T.Kernel(T.ceildiv(2 * m + 1, 32), threads=32) as bx:
            for i, j in T.Parallel(32, 8):
                Y[bx * 32 + i, j] = T.if_then_else(bx * 32 + i < m, X[bx * 32 + i, j], 1.0)

    f, frames = tile_torch.op(programs.name(), twice), []
    compiled = torch.compile(
        lambda x: f(x) * 2, fullgraph=True, dynamic=True, backend=lambda g, _: frames.append(g) or g
    )
    for size in (3, 17, 40):
        x = torch.randn(size, 8)
        close(compiled(x), torch.cat([2 * x, torch.full((size + 1, 8), 2.0)]))
    assert len(frames) == 1


def test_wrong_shapes_are_refused_while_compiling(f):
    compiled = torch.compile(lambda x, w: f(x, w), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"ShapeMismatch.*w\.shape\[0\] must be 16, found 15"):
        compiled(torch.randn(5, 16), torch.randn(15))


def test_gradients_by_functions_are_refused_never_zero(f):
    x, w = programs.inputs(5)
    for call in (f, f.default):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: torch.func.grad(lambda x: call(x, w).sum())(x), fullgraph=True)  # noqa: B023
        with pytest.raises(Exception, match=r"setup_context|not supported"):
            compiled(x)


def test_vmap_in_a_graph(f):
    z, w = torch.randn(3, 5, 16), torch.randn(16)
    compiled = torch.compile(lambda z: torch.vmap(lambda x: f(x, w))(z), backend="aot_eager", fullgraph=True)
    close(compiled(z), z * z * w)


def test_writes_in_place_are_kept_in_order():
    import tile_core.language as T

    m = T.dynamic("m")

    @T.prim_func
    def add(X: T.Tensor((m,), "float32"), Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = Y[bx * 32 + i] + X[bx * 32 + i]

    f = tile_torch.op(programs.name(), add)

    def several(x, y):
        before = y * 2
        f(x, y)
        f(x * 2, y)
        return before + y

    x, y = torch.randn(9), torch.randn(9)
    expected_y = y + 3 * x
    expected = 2 * y + expected_y
    close(torch.compile(several, fullgraph=True, backend="aot_eager")(x, y), expected)
    close(y, expected_y)
    torch.library.opcheck(f.default, (torch.randn(9), torch.randn(9)))


class Layer(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.weight = f, torch.nn.Parameter(torch.randn(16))

    def forward(self, x):
        return self.f(x, self.weight).relu()


@pytest.mark.parametrize("strict", [False, True])
def test_export(f, strict, tmp_path):
    layer = Layer(f)
    rows = {"x": {0: torch.export.Dim("m")}}
    program = torch.export.export(layer, (torch.randn(8, 16),), dynamic_shapes=rows, strict=strict)
    assert f.name.replace("::", ".") + ".default" in [str(n.target) for n in program.graph.nodes]
    torch.export.save(program, tmp_path / "layer.pt2")
    again = torch.export.load(tmp_path / "layer.pt2").module()
    for m in (8, 3, 100):
        x = torch.randn(m, 16)
        close(again(x), layer(x))


PACKAGE = """
import sys
import torch, tile_torch
from packaged import square
f = tile_torch.op("tile_tests::packaged", square)
run = torch._inductor.aoti_load_package(sys.argv[1])
x = torch.randn(9, 16)
torch.testing.assert_close(run(x), f(x, torch.ones(16)).relu())
print("right")
"""


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_a_package_of_aot_inductor_runs_in_another_process(tmp_path):
    f = tile_torch.op("tile_tests::packaged", programs.square(16))
    layer = Layer(f)
    torch.nn.init.ones_(layer.weight)
    rows = {"x": {0: torch.export.Dim("m", min=2, max=4096)}}
    with torch.no_grad():
        program = torch.export.export(layer, (torch.randn(8, 16),), dynamic_shapes=rows)
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "layer.pt2"))
    (tmp_path / "packaged.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(programs.__file__).rpartition('/')[0]!r})\n"
        "from programs import square\nsquare = square(16)\n"
    )
    (tmp_path / "run.py").write_text(PACKAGE)
    done = subprocess.run([sys.executable, "run.py", package], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr


def test_the_fake_of_wrong_arguments_in_export(f):
    with raises_error(launch.RankMismatch, name="X"):
        torch.export.export(Layer(f), (torch.randn(16),))
