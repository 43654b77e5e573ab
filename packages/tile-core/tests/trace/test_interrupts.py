"""Test that exceptions of signal handlers arrive unchanged at any instruction."""

import contextlib
import functools
import signal
import sys
import threading

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_runtime.errors.interrupts import is_interrupt

N = 37


class Late(Exception):
    """Of a time-out."""


class Stop(BaseException):
    """Like ``KeyboardInterrupt``."""


@T.macro
def doubled(x):
    return x + x


def add():
    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 8), threads=8) as b:
            for i in T.Parallel(8):
                if b * 8 + i < N:
                    B[b * 8 + i] = doubled(A[b * 8 + i])

    return k


def reduced():
    @T.prim_func
    def k(A: T.Tensor((8, 16), "float16"), B: T.Tensor((8,), "float16")):
        with T.Kernel(1, threads=32):
            s, r = T.alloc_shared((8, 16), "float16"), T.alloc_fragment((8,), "float16")
            T.copy(A, s)
            T.reduce_with(lambda x, y: T.max(x, y), s, r, dim=1, identity=0)
            T.copy(r, B)

    return k


def product():
    @T.prim_func
    def k(A: T.Tensor((32, 16), "float16"), B: T.Tensor((16, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((32, 16), "float16"), T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)

    return k


@tile.jit(target="cpu")
def eager(A):
    M = T.const("M")
    A: T.Tensor[(M,), "float32"]
    B = T.empty((M,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(M):
            B[i] = A[i] + 1
    return B


WORK = {
    "add": lambda: tile.compile(add(), "cpu"),
    "reduced": lambda: tile.compile(reduced(), "cpu"),
    "product": lambda: tile.compile(product(), "cpu"),
    "eager": lambda: eager.changed().compile(M=8),
}


def plain(error):
    def handler(number, frame):
        raise error

    return handler


def resetting(error):
    def handler(number, frame):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        helper(error)

    def helper(error):
        raise error

    return handler


class Called:
    def __init__(self, error):
        self.error = error

    def __call__(self, *arguments):
        raise self.error


HANDLERS = {
    "function": plain, "resetting": resetting, "object": Called, "method": lambda e: Called(e).__call__,
    "partial": lambda e: functools.partial(lambda e, n, f: (_ for _ in ()).throw(e), e),
}  # fmt: skip


@contextlib.contextmanager
def handled(handler):
    old = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, old)


class Alarm:
    """Raises the signal at the n-th call of a function; counts calls."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        if event == "call":
            self.count += 1
            if self.count == self.at:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGALRM)

    @contextlib.contextmanager
    def set(self):
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


@functools.cache
def calls(name):
    WORK[name]()
    alarm = Alarm(-1)
    with tile.disable_cache(), alarm.set():
        WORK[name]()
    return alarm.count


def interrupted(name, error, made, at):
    """Run, with a signal at a call; return the exception.

    Python drops exceptions in the finalizers of generators. Only then, a later call is tried.
    """
    lost, hook = [], sys.unraisablehook
    sys.unraisablehook = lambda dropped: lost.append(dropped.exc_value)
    try:
        with tile.disable_cache(), handled(made), Alarm(at).set():
            WORK[name]()
    except type(error) as caught:
        return caught
    finally:
        sys.unraisablehook = hook
    assert error in lost, "the interrupt is gone"
    return interrupted(name, error, made, at + 3)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", [Late, Stop, TimeoutError])
@pytest.mark.parametrize("name", WORK)
def test_at_any_call(name, kind, part):
    rng = np.random.default_rng()
    for at in rng.integers(calls(name) * part // 10, calls(name) * (part + 1) // 10, 4):
        error = kind("late")
        caught = interrupted(name, error, plain(error), max(1, int(at) - 100))
        assert caught is error, (at, caught)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("name", WORK)
def test_every_kind_of_handler(name, handler):
    error = Late()
    assert interrupted(name, error, HANDLERS[handler](error), calls(name) // 2) is error


def test_handlers_are_as_before():
    handler = plain(Late())
    with handled(handler):
        WORK["add"]()
        assert signal.getsignal(signal.SIGALRM) is handler


def test_a_handler_set_by_a_handler_stays():
    def first(number, frame):
        signal.signal(signal.SIGALRM, second)

    def second(number, frame):
        pass

    with tile.disable_cache(), handled(first):
        with Alarm(calls("add") // 2).set():
            WORK["add"]()
        assert signal.getsignal(signal.SIGALRM) is second


def test_an_error_of_the_kernel_is_one_of_the_catalogue():
    """Also where a handler raised before, whose exception the kernel's function has handled."""

    def wrong():
        with contextlib.suppress(Late):
            signal.raise_signal(signal.SIGALRM)
        raise Late("of the kernel")

    def build():
        @T.prim_func
        def k(A: T.Tensor((N,), "float32")):
            wrong()

    with handled(plain(Late("late"))), pytest.raises(tile.TileError) as caught:
        build()
    assert caught.value.code == "K126"


def test_other_threads_compile():
    found = []
    thread = threading.Thread(target=lambda: found.append(WORK["add"]()))
    with handled(plain(Late())):
        thread.start()
        thread.join()
    assert found


def test_a_handler_is_recognized_in_a_traceback():
    for make in HANDLERS.values():
        error = Late()
        with handled(make(error)), pytest.raises(Late):
            signal.raise_signal(signal.SIGALRM)
        assert is_interrupt(error)
    with pytest.raises(Late) as caught:
        raise Late
    assert not is_interrupt(caught.value)
