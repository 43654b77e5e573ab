"""Test functions specialised for one form of calls with NumPy arrays and scalars."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tile_core.abi.adapter import HostMemory
from tile_core.abi.signature import Param, Signature
from tile_core.errors import InternalError
from tile_core.errors import launch as errors
from tile_core.errors.setup import OutOfMemory
from tile_runtime.calls.binder import Binder

from .conftest import Recorder


def tensor(name: str, *shape: Any, dtype: str = "float32", access: Any = "read", **more: Any) -> Param:
    return Param(name, "tensor", dtype, shape, access=access, **more)


ABC = (tensor("A", "m", "k"), tensor("B", "k", "n"), tensor("C", "m", "n", access="write"))


def abc(m: int = 3, n: int = 5, k: int = 7) -> tuple[Any, ...]:
    return np.ones((m, k), "f4"), np.ones((k, n), "f4"), np.ones((m, n), "f4")


def ready(params: tuple[Param, ...], *args: Any, **more: Any) -> tuple[Binder, Recorder]:
    """A binder whose calls like this one are made by the function of their form."""
    launch = Recorder()
    binder = Binder(Signature("f", params, **more), launch)
    for _ in range(3):
        binder(*args)
    assert binder.call != binder.call_by_key
    launch.calls = []
    return binder, launch


def readonly(array: Any) -> Any:
    array.flags.writeable = False
    return array


WRONG = {
    "type": lambda a, b, c: (a.astype("f8"), b, c),
    "rank": lambda a, b, c: (a[None], b, c),
    "shape": lambda a, b, c: (a[:2], b, c),
    "extent": lambda a, b, c: (a, b, c[:, :4].copy()),
    "order": lambda a, b, c: (np.asfortranarray(a), b, c),
    "read-only": lambda a, b, c: (a, b, readonly(c)),
    "byte order": lambda a, b, c: (a.astype(">f4"), b, c),
    "overlap": lambda a, b, c: (a, b, a.reshape(-1)[:15].reshape(3, 5)),
    "a list": lambda a, b, c: ([[1.0]], b, c),
    "a number": lambda a, b, c: (1, b, c),
    "None": lambda a, b, c: (None, b, c),
    "too few": lambda a, b, c: (a, b),
    "too many": lambda a, b, c: (a, b, c, c),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_still_refused(name: str) -> None:
    binder, launch = ready(ABC, *abc())
    for make in (binder.call, binder.call_by_key):
        with pytest.raises(errors.LaunchError):
            make(WRONG[name](*abc()))
        assert launch.calls == []
        make(abc())
        assert len(launch.calls) == 1
        launch.calls = []


def test_other_forms_have_their_own_function_however_many() -> None:
    launch = Recorder()
    binder = Binder(Signature("f", ABC), launch)
    for count in (3, 20):
        forms = [abc(m, m + 1, m + 2) for m in range(1, count)]
        for args in forms * 5:
            binder(*args)
            assert all(x is y for x, y in zip(launch.last, args, strict=True))
        for args in forms:
            with pytest.raises(errors.LaunchError):
                binder(args[0], args[1], args[0])
    assert len(launch.calls) == 5 * (2 + 19)


def test_equal_element_types_of_other_objects() -> None:
    other = np.dtype([("x", "<f4")])["x"].newbyteorder("=")
    binder, launch = ready((tensor("A", "m"),), np.ones(3, "f4"))
    array = np.ones(3, "f4").view(other)
    binder(array)
    assert launch.last[0] is array


def test_strides() -> None:
    memory = np.ones((8, 12), "f4")
    binder, launch = ready((tensor("A", "m", "n", strides=("s", 1)),), memory[:4, :6])
    binder(np.ones((4, 6), "f4"))
    assert launch.last[0].strides == (24, 4)
    for _ in range(3):
        with pytest.raises(errors.LaunchError):
            binder(memory[:4, ::2])
    assert len(launch.calls) == 1


NUMBERS = (tensor("A", 8), Param("s", "scalar", "float32"), Param("n", "scalar", "int8"), Param("b", "scalar", "bool"))


def test_numbers() -> None:
    a = np.ones(8, "f4")
    binder, launch = ready(NUMBERS, a, 2, 3, True)
    for make in (binder.call, binder.call_by_key):
        make((a, 5, -128, False))
        assert launch.last[1:] == (5.0, -128, False)
        assert [type(v) for v in launch.last[1:]] == [float, int, bool]
        make((a, 0.5, 1, False))
        assert launch.last[1] == 0.5
        for bad in ((1, 128, True), (1, 1, 1), (1, 1.0, True), (10**40, 1, True), (1, True, True), ("1", 1, True)):
            with pytest.raises(errors.LaunchError):
                make((a, *bad))
        assert np.isnan((make((a, float("nan"), 1, True)), launch.last[1])[1])


def test_numbers_that_define_symbols() -> None:
    a, b = np.ones(8, "f4"), np.ones(9, "f4")
    binder, launch = ready((Param("n", "scalar", "int32"), tensor("A", "n")), 8, a)
    for make in (binder.call, binder.call_by_key):
        make((9, b))
        make((8, a))
        assert launch.last == (8, a)
        for n, array in ((9, a), (8, b), (True, a), (8.0, a)):
            with pytest.raises(errors.LaunchError):
                make((n, array))


def test_pointers() -> None:
    memory = np.ones(9, "f4")
    at = memory.ctypes.data
    binder, launch = ready((Param("p", "pointer", "float32"), tensor("A", 3)), at, np.ones(3, "f4"))
    for make in (binder.call, binder.call_by_key):
        make((at + 4, np.ones(3, "f4")))
        assert launch.last[0].value == at + 4
        make((ctypes.c_void_p(at), np.ones(3, "f4")))
        assert launch.last[0].value == at
        for bad in (at + 1, -4, 1 << 64, True, 1.0):
            with pytest.raises(errors.LaunchError):
                make((bad, np.ones(3, "f4")))


def test_no_arguments_at_all() -> None:
    binder, launch = ready((tensor("C", 3, access="write"),), out_idx=(0,))
    for make in (binder.call, binder.call_by_key):
        assert make(()) is launch.last[0]
        with pytest.raises(errors.TooManyArguments):
            make((1,))


def test_outputs_in_another_order() -> None:
    params = (tensor("X", "n", access="write"), tensor("A", "n"), tensor("Y", 2, dtype="bfloat16", access="write"))
    binder, launch = ready(params, np.ones(5, "f4"), out_idx=(2, 0))
    for make in (binder.call, binder.call_by_key):
        y, x = make((np.ones(5, "f4"),))
        assert (x.shape, x.dtype.name, y.shape, y.dtype.name) == ((5,), "float32", (2,), "bfloat16")
        assert launch.last[0] is x
        assert launch.last[2].dtype.name == "uint16"
        assert launch.last[2].ctypes.data == y.ctypes.data


def test_what_a_launch_raises_is_of_the_catalogue() -> None:
    found: list[BaseException] = []

    def launch(*values: Any) -> None:
        if found:
            raise found[0]

    binder = Binder(Signature("f", (tensor("A", 3),)), launch)
    args = (np.ones(3, "f4"),)
    for _ in range(3):
        binder(*args)
    refusal = errors.MissingArgument(kernel="f", usage="", name="A", found=0, expected=1)
    for raised, kind in ((ValueError("odd"), InternalError), (MemoryError(), OutOfMemory), (refusal, type(refusal))):
        found[:] = [raised]
        for make in (binder.call, binder.call_by_key, binder.call_checked):
            with pytest.raises(kind):
                make(args)
    found[:] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        binder(*args)


def test_a_launch_by_addresses() -> None:
    class Addresses(HostMemory):
        convention = "pointers"

    calls: list[Any] = []
    params = (tensor("A", "m", "k"), Param("s", "scalar", "float32"), tensor("C", "k", access="write"))
    binder = Binder(
        Signature("f", params), lambda values, location: calls.append((values, location.library)), Addresses()
    )
    a, c = np.ones((2, 3), "f4"), np.ones(3, "f4")
    for _ in range(70):
        binder(a, 2, c)
    assert set(calls) == {((a.ctypes.data, 2.0, c.ctypes.data, 2, 3), "numpy")}
