"""Test hostile use: changing arrays, threads, odd kernel locations, trapping operands."""

import copy
import pickle
import threading

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors import launch as errors
from tile_core.errors.language import NoSource, OutsideKernel, PythonError

ROWS = T.dynamic("rows")


@T.prim_func
def increment(X: T.Tensor((ROWS, 4), "float32"), Y: T.Tensor((ROWS, 4), "float32")):
    with T.Kernel(ROWS) as b:
        for j in T.Parallel(4):
            Y[b, j] = X[b, j] + 1


@pytest.fixture(scope="module")
def kernel():
    return tile.compile(increment, target="cpu")


def in_threads(count, work):
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_calls_from_threads(kernel):
    def work(number):
        for repetition in range(50):
            x = np.full((1 + (number + repetition) % 7, 4), number, "float32")
            y = np.zeros_like(x)
            kernel(x, y)
            assert (y == number + 1).all()

    in_threads(8, work)


def test_a_factory_in_threads_compiles_once():
    @tile.jit(target="cpu", out_idx=-1)
    def scaled(n):
        @T.prim_func
        def body(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    Y[i] = X[i] * n

        return body

    def work(_):
        for n in (3, 4):
            assert (scaled(n)(np.ones(n, "float32")) == n).all()

    in_threads(6, work)


def test_an_array_that_changes_after_a_call(kernel):
    x, y = np.ones((6, 4), "float32"), np.zeros((6, 4), "float32")
    kernel(x, y)
    for shape in ((4, 6), (3, 8), (24,)):
        x.shape = shape
        with pytest.raises(errors.LaunchError):
            kernel(x, y)
    x.shape = (6, 4)
    x.dtype = "int32"
    with pytest.raises(errors.DTypeMismatch):
        kernel(x, y)
    x.dtype = "float32"
    kernel(x, y)
    y.flags.writeable = False
    with pytest.raises(errors.ReadOnlyOutput):
        kernel(x, y)


def test_arrays_that_lie(kernel):
    class Wide(np.ndarray):
        shape = property(lambda self: (100, 4))

    class Lie:
        def __dlpack__(self, **_):
            return 5

        def __dlpack_device__(self):
            return (1, 0)

    for x in (np.ones((3, 4), "float32").view(Wide), Lie()):
        with pytest.raises(errors.LaunchError):
            kernel(x, np.zeros((3, 4), "float32"))


def test_indices_far_outside_read_zero_and_write_nothing():
    @T.prim_func
    def far(X: T.Tensor((4,), "float32"), I: T.Tensor((4,), "int32"), J: T.Tensor((4,), "int64"), Y: T.Tensor((4,), "float32")):  # fmt: skip  # noqa: E501, E741
        with T.Kernel(1):
            s, own = T.alloc_shared((4,), "float32"), T.alloc_local((2,), "float32")
            for j in T.serial(4):
                s[I[j]] = 5.0
                own[I[j]] = 3.0
                Y[J[j]] = 1.0
                Y[j] = X[I[j]] + s[I[j]] + own[I[j]] + X[J[j]]

    y = np.full(4, 7, "float32")
    i = np.array([-(2**31), 2**31 - 1, 10**9, -1], "int32")
    j = np.array([-(2**63), 2**63 - 1, 2**40, -(2**32)], "int64")
    tile.compile(far, target="cpu")(np.ones(4, "float32"), i, j, y)
    assert (y == 0).all()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8"])
def test_divisions_have_a_result_for_all_operands(dtype):
    """By zero: 0. The least number by -1: itself, as wrapping says. Processors would stop the process."""

    @T.prim_func
    def divide(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype), Q: T.Tensor((4, 64), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                Q[0, i] = A[i] // B[i]
                Q[1, i] = A[i] % B[i]
                Q[2, i] = T.truncdiv(A[i], B[i])
                Q[3, i] = T.truncmod(A[i], B[i])

    limits = np.iinfo(dtype)
    seed = 20
    rng = np.random.default_rng(seed)
    some = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 3, 7, limits.max // 2], dtype)
    if limits.min < 0:
        some = np.concatenate([some, -some[4:], np.array([-1], dtype)])
    a, b = rng.choice(some, 64), rng.choice(some, 64)
    a[:4], b[:4] = [limits.min, 0, limits.max, limits.min], [limits.max if limits.min == 0 else -1, 0, 0, 0]
    q = np.full((4, 64), 77, dtype)
    tile.compile(divide, target="cpu")(a, b, q)
    for at, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        floor, rest = (x // y, x % y) if y else (0, 0)
        short = (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0
        left = x - short * y if y else 0
        wrapped = [np.array(v & ((1 << limits.bits) - 1), f"uint{limits.bits}").astype(dtype) for v in (floor, short)]
        assert q[:, at].tolist() == [wrapped[0], rest, wrapped[1], left], (x, y)


def test_long_chains_of_integers_compile():
    """As of a random number generator: TVM's analysis must not look through all of them."""

    @T.prim_func
    def chain(X: T.Tensor((2,), "int32"), m: T.int32):
        with T.Kernel(1):
            t, u = m, m
            for q in T.static_range(60):
                t = t * 3 + q % 7 - (t ^ 5)
                u = u + u
            X[0] = t
            X[1] = u

    x, t = np.zeros(2, "int32"), 3
    tile.compile(chain, target="cpu")(x, 3)
    for q in range(60):
        t = (t * 3 + q % 7 - (t ^ 5) + 2**31) % 2**32 - 2**31
    assert x.tolist() == [t, 0]


def test_a_method_makes_kernels():
    class Maker:
        scale = 3

        @tile.jit(target="cpu", out_idx=-1)
        def make(self, n):
            s = self.scale

            @T.prim_func
            def body(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
                with T.Kernel(1):
                    for i in T.Parallel(n):
                        Y[i] = X[i] * s

            return body

    maker, x = Maker(), np.ones(4, "float32")
    assert (maker.make(4)(x) == 3).all()
    maker.scale = 5
    assert (maker.make(4)(x) == 5).all()


def test_what_a_kernel_closes_over_may_change():
    table, x = [1], np.ones(4, "float32")

    @tile.jit(target="cpu", out_idx=-1)
    def make(n):
        @T.prim_func
        def body(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    Y[i] = X[i] * table[0]

        return body

    assert (make(4)(x) == 1).all()
    table[0] = 9
    assert (make(4)(x) == 9).all()


def test_kernels_are_copied_but_not_pickled(kernel):
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy(kernel) is kernel
    with raises_error(errors.NotProvided, action="pickling") as info:
        pickle.dumps(kernel)
    assert info.value.code == "U401"
    assert "pickle its program" in info.value.help
    again = pickle.loads(pickle.dumps(increment))
    x, y = np.ones((2, 4), "float32"), np.zeros((2, 4), "float32")
    tile.compile(again, target="cpu")(x, y)
    assert (y == 2).all()


def test_text_without_a_file():
    names = {"T": T}
    with pytest.raises(NoSource) as info:
        exec("@T.prim_func\ndef k(X: T.Tensor((4,))):\n    with T.Kernel(1):\n        X[0] = 1\n", names)
    assert info.value.code == "K112"


def test_endless_recursion_is_the_users():
    @T.macro
    def again(X):
        again(X)

    with raises_error(PythonError, kind="RecursionError") as info:

        @T.prim_func
        def k(X: T.Tensor((4,), "float32")):
            with T.Kernel(1):
                again(X)

    assert info.value.where.source == "again(X)"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_and_leave_no_trace(kind):
    def stop():
        raise kind

    with pytest.raises(kind):

        @T.prim_func
        def k(X: T.Tensor((4,), "float32")):
            with T.Kernel(1):
                stop()

    with pytest.raises(OutsideKernel):
        T.alloc_shared((4,), "float32")
