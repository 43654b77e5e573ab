"""Test objects of every kind in every argument of functions and methods."""

import inspect
import os

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import InternalError, TileError
from tile_core.errors.launch import BadSetting, DeviceAssertFailed

ROWS = T.dynamic("rows")


@T.prim_func
def scale(X: T.Tensor((ROWS, 4), "float32"), a: T.float32, i: T.int32, Y: T.Tensor((ROWS, 4), "float32")):
    with T.Kernel(ROWS) as b:
        for j in T.Parallel(4):
            Y[b, j] = X[b, j] * a + i


@tile.jit(out_idx=-1, target="cpu")
def factory(n, dtype="float32"):
    @T.prim_func
    def copy(X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=16):
            T.copy(X, Y)

    return copy


@tile.jit(target="cpu")
def double(X, block: int = 8):
    N = T.const("N")
    X: T.Tensor[(N,), "float32"]
    Y = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=16) as b:
        for i in T.Parallel(block):
            Y[b * block + i] = X[b * block + i] * 2
    return Y


X = np.arange(12, dtype="float32").reshape(3, 4)
OBJECTS = [
    None, 1.5, -7, "s", "", b"b", [], [[1, 2]], (), {}, {"nonsense": 1}, {1: 2}, object(), print, T, os, np.float32,
    np.dtype("float32"), lambda: 0, 2**80, -(2**80), float("nan"), 1j, True, range(3), ValueError(), type, slice(3),
    ..., NotImplemented, memoryview(b"abc"), T.Tensor((3, 4)), ROWS, "cpu:", "cpu:no-such-processor", ":", "cuda:sm_0",
    [3, 3], [True], [None], [17],
    np.zeros(3), np.zeros((3, 4), "int32"), np.zeros((3, 4), object), np.zeros((3, 4), "S3"),
    X.T,
    np.zeros((3, 8), "float32")[:, ::2], np.zeros((2, 4), "float32"), np.zeros((3, 4), ">f4"), np.ma.zeros((3, 4)),
    np.zeros((3, 4), [("a", "f4")]), np.array(5.0), np.datetime64("2020"), np.zeros((3, 4), "complex64"),
    tile.TileError,
]  # fmt: skip
NAMES = [f"{n}-{type(x).__name__}" for n, x in enumerate(OBJECTS)]


@pytest.fixture(scope="module")
def kernel():
    return tile.compile(scale, target="cpu")


def fine(action):
    """Whether an action succeeds; all that it may raise is of the catalogue, with a line of help."""
    try:
        action()
        return True
    except TileError as error:
        refusal = error
    assert not isinstance(refusal, InternalError), refusal
    assert refusal.message, repr(refusal)
    assert refusal.help, repr(refusal)
    assert str(refusal).startswith(f"[{refusal.code}] ")
    return False


@pytest.mark.parametrize("x", OBJECTS, ids=NAMES)
def test_arguments_of_a_call(x, kernel):
    y = np.full((3, 4), -1, "float32")
    for position in range(4):
        values = [X, 2.0, 3, y]
        values[position] = x
        for call in (kernel, kernel.verify, kernel.bench):
            more = {"repeat": 1, "warmup": 0} if call == kernel.bench else {}
            if not fine(lambda: call(*values, **more)):  # noqa: B023
                assert (y == -1).all(), "a refused call wrote its output"
            elif position < 3 and call == kernel:
                np.testing.assert_array_equal(y, values[0] * np.float32(values[1]) + np.int32(values[2]))
            y[...] = -1


@pytest.mark.parametrize("x", OBJECTS, ids=NAMES)
def test_settings_of_methods(x, kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = (X, 2.0, 3, np.zeros((3, 4), "float32"))
    for setting in ("rtol", "atol", "seed", "runtime", "no_such"):
        fine(lambda: kernel.verify(*arguments, **{setting: x}))  # noqa: B023
    if not isinstance(x, int):
        assert not fine(lambda: kernel.bench(*arguments, repeat=x))
        assert not fine(lambda: kernel.bench(*arguments, warmup=x))
    assert not fine(lambda: kernel.export(x)) or isinstance(x, str)  # the name of a file
    assert not fine(lambda: kernel(*arguments, x))


@pytest.mark.parametrize("x", OBJECTS, ids=NAMES)
def test_settings_of_compile_and_explain(x):
    assert not fine(lambda: tile.compile(x))
    assert not fine(lambda: tile.explain(x, "cpu"))
    assert not fine(lambda: tile.compile(scale, target=x))
    assert not fine(lambda: tile.explain(scale, target=x))
    if x is not None and not (isinstance(x, (list, tuple)) and not x):
        assert not fine(lambda: tile.compile(scale, target="cpu", out_idx=x))
    if x is not None and not (isinstance(x, dict) and not x):
        assert not fine(lambda: tile.compile(scale, target="cpu", options=x))
        assert x is True or not fine(lambda: tile.compile(scale, target="cpu", options={"parallel": x}))
    if x is not None and not isinstance(x, str):
        assert not fine(lambda: tile.compile(scale, target="cpu", dump=x))


@pytest.mark.parametrize("x", OBJECTS, ids=NAMES)
def test_jit(x):
    fine(lambda: tile.jit(x))
    fine(lambda: tile.jit(out_idx=x, target="cpu")(factory.function).program(8))
    fine(lambda: tile.jit(target=x)(factory.function)(8))
    fine(lambda: tile.jit(target="cpu", options=x)(factory.function).program(8))
    assert not fine(lambda: tile.jit(nonsense=x)(factory.function))
    assert not fine(lambda: factory.program(8, x)) or x in (np.float32, np.dtype("float32"))
    assert not fine(lambda: double(x)) or x.dtype == np.float32
    assert not fine(lambda: double.program(X[0], x)) or x is True
    if not (isinstance(x, int) and x > 0):
        assert not fine(lambda: factory.program(x)) or getattr(x, "shape", None) == () or x is ROWS


@pytest.mark.parametrize("x", OBJECTS, ids=NAMES)
def test_declarations_and_decorators(x):
    if x is not None:
        assert not fine(lambda: T.prim_func(x))
        assert not fine(lambda: T.macro(x))
    fine(lambda: T.Tensor(x))
    fine(lambda: T.Tensor[x])
    fine(lambda: T.dtype(x))
    fine(lambda: T.dynamic(x))
    fine(lambda: T.float16(x))


@pytest.mark.parametrize("name", [n for n in dir(T) if not n.startswith("__") and n != "GemmWarpPolicy"])
def test_nothing_of_the_language_does_harm_outside_of_a_kernel(name):
    for arguments in ((), (1,), (X,), (None, None), ("float32",), ((4, 4), "float32"), (1, 2, 3)):
        found = getattr(T, name)
        if callable(found) and takes(found, arguments):
            fine(lambda: found(*arguments))  # noqa: B023


def takes(function, arguments):
    """Whether Python itself accepts this number of arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def test_outside_of_a_kernel():
    for action in (
        lambda: T.copy(X, X), lambda: T.gemm(X, X, X), lambda: T.alloc_shared((4,), "float32"), lambda: T.Kernel(1),
        lambda: T.sync_threads(), lambda: T.clear(X), lambda: T.const("N"), lambda: T.empty((4,)),
        lambda: T.get_thread_binding(), lambda: T.annotate_layout({}), lambda: T.use_swizzle(4),
        lambda: list(T.Parallel(4)), lambda: bool(ROWS), lambda: int(ROWS), lambda: [1, 2][ROWS],
        lambda: T.no_such_name,
    ):  # fmt: skip
        assert not fine(action)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda k: k.bench(repeat=0), "bench: repeat is 0, expected an int from 1 to 1000000"),
        (lambda k: k.verify(rtol=-1), "verify: rtol is -1, expected a number of at least 0"),
        (lambda k: k.verify(runtime=5), "verify: runtime is 5, expected text"),
        (lambda k: k.export(None), "export: path is None, expected a path"),
        (lambda k: tile.compile(factory), "program is an object of type JitFunction"),
        (lambda k: tile.explain(5), "tile.explain: program is 5, expected what @T.prim_func returns"),
    ],
)
def test_settings_are_named(action, text, kernel):
    with pytest.raises(BadSetting) as info:
        action(kernel)
    assert info.value.code == "K434"
    assert text in str(info.value)
    assert info.value.help


def test_assertions_on_the_device_name_their_line():
    @T.prim_func
    def check(X: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.serial(4):
                T.device_assert(X[i] < 3, "too large")

    kernel = tile.compile(check, target="cpu")
    kernel(np.zeros(4, "int32"))
    with pytest.raises(DeviceAssertFailed, match="too large") as info:
        kernel(np.full(4, 3, "int32"))
    assert info.value.code == "K432"
    assert info.value.where is not None
    assert info.value.help
