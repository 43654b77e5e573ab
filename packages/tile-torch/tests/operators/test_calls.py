"""Eager calls: results, schemas, outputs in place, numbers, refusals, and what sees a call."""

import pytest

torch = pytest.importorskip("torch")

from expected_errors import raises_error  # noqa: E402

import tile_core as tile  # noqa: E402
import tile_core.language as T  # noqa: E402
import tile_torch  # noqa: E402
from tile_core.errors import launch  # noqa: E402
from tile_runtime.errors import operators  # noqa: E402
from tile_torch import errors  # noqa: E402

from . import programs  # noqa: E402


@pytest.mark.parametrize("m", [0, 1, 5, 37, 64])
def test_results(m):
    f, arguments = programs.operator(), programs.inputs(m)
    torch.testing.assert_close(f(*arguments), programs.reference(*arguments))
    torch.testing.assert_close(f.default(*arguments), programs.reference(*arguments))
    torch.testing.assert_close(f(arguments[0], w=arguments[1]), programs.reference(*arguments))


def test_schema():
    f = programs.operator()
    assert f.schema == f"{f.name}(Tensor X, Tensor w) -> Tensor"
    assert repr(f) == f"<tile_torch.TorchOperator {f.schema}>"
    assert str(f.default) == f.name.replace("::", ".") + ".default"


@pytest.fixture(scope="module")
def scaled_add():
    m = T.dynamic("m")

    @T.prim_func
    def scaled_add(X: T.Tensor((m,), "float32"), a: T.float32, n: T.int32, Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = Y[bx * 32 + i] + a * X[bx * 32 + i] + T.cast(n, "float32")

    return tile_torch.op(programs.name("add"), scaled_add)


def test_a_tensor_that_is_read_and_written_is_declared_so(scaled_add):
    assert scaled_add.schema.endswith("(Tensor X, float a, SymInt n, Tensor(a3!) Y) -> ()")
    x, y = torch.randn(9), torch.randn(9)
    expected = y + 0.5 * x + 3
    version = y._version
    assert scaled_add(x, 0.5, 3, y) is None
    torch.testing.assert_close(y, expected)
    assert y._version > version
    scaled_add.default(x, 0.5, 3, y)
    torch.testing.assert_close(y, expected + 0.5 * x + 3)


def test_gradients_through_tensors_written_in_place_are_refused(scaled_add):
    x, y = torch.randn(9, requires_grad=True), torch.randn(9)
    before = y.clone()
    for call in (scaled_add, scaled_add.default):
        with raises_error(errors.LostInPlace, name="Y", graded="X"):
            call(x, 0.5, 3, y)
    assert torch.equal(y, before)
    with torch.no_grad():
        scaled_add(x, 0.5, 3, y)
    with raises_error(errors.TransformRefused, transform="a gradient"):
        scaled_add.register_backward(lambda ctx: None)
    with raises_error(errors.TransformRefused, transform="torch.func"):
        torch.vmap(lambda v: scaled_add(v, 0.5, 3, v))(torch.randn(2, 9))


def test_a_saved_tensor_that_is_overwritten_is_noticed(scaled_add):
    y = torch.randn(9)
    w = torch.randn(9, requires_grad=True)
    product = w * y
    scaled_add(torch.randn(9), 0.5, 3, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_out_chooses_the_results():
    program = programs.square_gradient(16)
    f = tile_torch.op(programs.name(), program, out=["DW"])
    g, (x, w) = torch.randn(5, 16), programs.inputs(5)
    dx = torch.empty(5, 16)
    assert f.schema.endswith("(Tensor G, Tensor X, Tensor w, Tensor(a3!) DX) -> Tensor")
    torch.testing.assert_close(f(g, x, w, dx), g * x * x)
    torch.testing.assert_close(dx, 2 * g * x * w)


def test_a_function_that_launches_several_kernels():
    twice = tile_torch.kernel(programs.square(16))

    def fourth(x: torch.Tensor, w: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return twice(twice(x, w), w) * scale

    f = tile_torch.op(programs.name(), fourth)
    x, w = programs.inputs(7)
    torch.testing.assert_close(f(x, w), 2 * (x * x * w) ** 2 * w)
    torch.testing.assert_close(f(x, w, 3.0), 3 * (x * x * w) ** 2 * w)
    assert f.schema.endswith("(Tensor x, Tensor w, float scale=2.) -> Tensor")
    torch.library.opcheck(f.default, (x, w))


def test_a_function_that_writes_in_place():
    square = tile_torch.kernel(programs.square(16))

    def apply(x: torch.Tensor, w: torch.Tensor) -> None:
        x.copy_(square(x, w))

    f = tile_torch.op(programs.name(), apply, mutates=["x"])
    x, w = programs.inputs(7)
    expected = programs.reference(x, w)
    f(x, w)
    torch.testing.assert_close(x, expected)
    torch.library.opcheck(f.default, programs.inputs(7))


@pytest.mark.parametrize("way", ["call", "default", "fake"])
def test_wrong_arguments_have_the_errors_of_kernels(way):
    f = programs.operator()
    call = f.default if way == "default" else f
    x, w = programs.inputs(5)

    def run(*arguments):
        if way != "fake":
            return call(*arguments)
        with torch._subclasses.FakeTensorMode() as mode:
            return call(*(mode.from_tensor(a) for a in arguments))

    with raises_error(launch.ShapeMismatch, name="w", expected="16", found=15):
        run(x, w[:15])
    with raises_error(launch.DTypeMismatch, name="X", found="float64"):
        run(x.double(), w)
    with raises_error(launch.RankMismatch, name="X", found=1):
        run(x[0], w)
    with raises_error(launch.StrideMismatch, name="X"):
        run(torch.randn(16, 5).t(), w)


def test_wrong_numbers_of_arguments_are_refused():
    f, (x, w) = programs.operator(), programs.inputs(5)
    with raises_error(launch.MissingArgument, name="w"):
        f(x)
    with raises_error(launch.TooManyArguments, found=3):
        f(x, w, w)
    with raises_error(launch.MissingArgument, name="X"):
        f()


def test_devices():
    f, (x, w) = programs.operator(), programs.inputs(5)
    assert f(x.to("meta"), w.to("meta")).shape == (5, 16)
    with raises_error(operators.NoTargetOf, found="meta", known="cpu, cuda, mps"):
        f.kernel.compiled("meta")


def test_the_target_and_the_options_of_a_device(monkeypatch):
    """Compile the kernel of a device once, without the device."""
    import contextlib

    from tile_torch import launching

    compiled = []
    monkeypatch.setattr(launching.tile, "compile", lambda *arguments: compiled.append(arguments) or len(compiled))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext(device))
    options = {"cuda": {"numerics": "fast"}}
    program = programs.square(16)
    kernel = tile_torch.kernel(program, options=options)
    found = [kernel.compiled(d) for d in ("cpu", "cuda:0", "cuda:1", "mps", "cuda:0", "cpu")]
    assert found == [1, 2, 3, 4, 2, 1]
    assert [(p is program, t, out, o) for p, t, out, o in compiled] == [
        (True, "cpu", (2,), None),
        (True, "cuda", (2,), options["cuda"]),
        (True, "cuda", (2,), options["cuda"]),
        (True, "metal", (2,), None),
    ]


def test_fake_tensors_and_modes_see_the_operator():
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    f, (x, w) = programs.operator(), programs.inputs(5)
    with Watch():
        f(x, w)
    assert seen == [f.default]
    with FlopCounterMode(display=False):
        torch.testing.assert_close(f(x, w), programs.reference(x, w))
    with torch.profiler.profile() as profile:
        f(x, w)
    assert f.name in {event.name for event in profile.events()}
    traced = torch.jit.trace(lambda x, w: f(x, w) + 1, (x, w))
    y, _ = programs.inputs(5)
    torch.testing.assert_close(traced(y, w), programs.reference(y, w) + 1)


def test_parameters_and_inference_mode():
    f, (x, w) = programs.operator(), programs.inputs(5)
    with torch.inference_mode():
        torch.testing.assert_close(f(x, torch.nn.Parameter(w)), programs.reference(x, w))
    with torch.no_grad():
        assert not f(x, torch.nn.Parameter(w)).requires_grad


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("plain", "namespace::name"),
        ("a::b::c", "namespace::name"),
        ("a::b.c", "identifiers"),
        ("a::class", "keyword"),
        ("aten::mul", "belongs to torch"),
        ("a::", "identifiers"),
        (3, "namespace::name"),
    ],
)
def test_names(name, reason):
    with raises_error(operators.BadOperatorName, name=name) as caught:
        tile_torch.op(name, programs.square(16))
    assert reason in caught.value.message


def test_a_name_of_another_library_is_refused():
    library = torch.library.Library("tile_tests", "FRAGMENT")
    library.define("taken(Tensor x) -> Tensor")
    with raises_error(operators.BadOperatorName, name="tile_tests::taken", near="taken_tile"):
        tile_torch.op("tile_tests::taken", programs.square(16))


def test_what_cannot_be_an_operator():
    with raises_error(operators.BadResults, found="Z", what="results"):
        tile_torch.op(programs.name(), programs.square(16), out=["Z"])
    with raises_error(launch.BadOutIdx):
        tile_torch.op(programs.name(), programs.square(16), out=["X"])
    with raises_error(errors.NoSchema, function="no_types"):

        def no_types(x):
            return x

        tile_torch.op(programs.name(), no_types)
    with raises_error(operators.BadResults, found="q", what="written in place"):

        def typed(x: torch.Tensor) -> torch.Tensor:
            return x

        tile_torch.op(programs.name(), typed, mutates=["q"])
    with raises_error(launch.BadSetting):
        tile_torch.op(programs.name(), 3)

    @T.prim_func
    def table(P: T.ptr("float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = 1.0

    with raises_error(operators.NoPointers, name="P"):
        tile_torch.op(programs.name(), table)

    @T.prim_func
    def fill(Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = 1.0

    with raises_error(operators.BadResults, found="Y"):
        tile_torch.op(programs.name(), fill)
    given = tile_torch.op(programs.name(), fill, out=())
    y = torch.zeros(4)
    given(y)
    assert y.tolist() == [1, 1, 1, 1]


def test_a_function_without_shapes_is_refused_and_fake_gives_them():
    raw = tile.compile(programs.square(16), "cpu", out_idx=-1)

    def plain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return raw(x, w)

    f = tile_torch.op(programs.name(), plain)
    x, w = programs.inputs(5)
    torch.testing.assert_close(f(x, w), programs.reference(x, w))
    with torch._subclasses.FakeTensorMode() as mode, raises_error(errors.NoFake, function="plain"):
        f(mode.from_tensor(x), mode.from_tensor(w))
    f = tile_torch.op(programs.name(), plain, fake=lambda x, w: x.new_empty(x.shape))
    torch.library.opcheck(f.default, (x, w))


def test_a_cell_may_define_an_operator_again():
    first = tile_torch.op("tile_tests::again", programs.square(16))
    x, w = programs.inputs(5)
    torch.testing.assert_close(first(x, w), programs.reference(x, w))
    compiled = torch.compile(lambda x, w: first(x, w) + 1, fullgraph=True)
    compiled(x, w)

    @T.prim_func
    def double(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * 2.0

    second = tile_torch.op("tile_tests::again", double)
    assert second.schema == "tile_tests::again(Tensor A) -> Tensor"
    assert second(torch.ones(4)).tolist() == [2, 2, 2, 2]
    assert torch.ops.tile_tests.again(torch.ones(4)).tolist() == [2, 2, 2, 2]
    recompiled = torch.compile(lambda x: second(x) + 1, fullgraph=True)
    assert recompiled(torch.ones(4)).tolist() == [3, 3, 3, 3]
