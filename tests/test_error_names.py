"""Errors of a call use the user's names, also for aliases and composed calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

import tile_core.language as T
import tile_tilelang.language as spelled
from tile_core.errors import TileError
from tile_core.errors.naming import alias, naming
from tile_core.errors.ops import BadAttribute
from tile_core.plugins.manager import installed

NAMES = sorted({*T.__all__, *installed().language_names()})
NAMED = re.compile(r"\[\w+\] T\.(\w+)")
#: What is given for every operand but the first, and for that.
GIVEN = ("text", "shared", "number")
FIRST = ("text", "shared", "tensor")


def attempt(function: Callable[..., Any], first: str, others: str, count: int) -> str:
    """Call a function of T with n arguments, and return its error's first line."""

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 8), "float16")
            objects = {"text": "nonsense", "shared": S, "number": -7, "tensor": A}
            function(*([objects[first]] + [objects[others]] * (count - 1))[:count])

    return str(main)


def counts(function: Callable[..., Any]) -> Iterator[int]:
    """Yield how many arguments a function can take: those that it needs, and one more."""
    legal = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in inspect.signature(function).parameters.values() if p.kind in legal]
    needed = sum(p.default is p.empty for p in taken)
    yield from {needed, min(needed + 1, len(taken))}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", NAMES)
def test_errors_name_the_call(name):
    function = getattr(T, name)
    if not inspect.isfunction(function):
        return
    errors = []
    for first, others, count in product(FIRST, GIVEN, counts(function)):
        try:
            attempt(function, first, others, count)
        except TileError as error:
            errors.append(str(error))
    named = [(found[1], error) for error in errors if (found := NAMED.match(error)) is not None]
    assert [x for x in named if x[0] != name] == []


def test_enough_of_them_are_refused_by_name():
    """The test above would pass if no error named a function."""
    with pytest.raises(TileError, match=r"\[K201\] T\.wgmma_gemm: A is 'nonsense'"):
        attempt(T.wgmma_gemm, "text", "text", 3)
    with pytest.raises(TileError, match=r"\[K201\] T\.gemm_v2: A is 'nonsense'"):
        attempt(T.gemm_v2, "text", "text", 3)
    with pytest.raises(TileError, match=r"\[K201\] T\.simdgroup_gemm_sp: A_sparse is 'nonsense'"):
        attempt(T.simdgroup_gemm_sp, "text", "text", 4)
    with pytest.raises(TileError, match=r"\[K212\] T\.reshape: shape=-7"):
        attempt(T.reshape, "shared", "number", 2)


def test_names_of_tilelang():
    with pytest.raises(TileError, match=r"\[K\d+\] T\.parallel: "):
        attempt(spelled.parallel, "text", "text", 1)
    with pytest.raises(TileError, match=r"\[K232\] T\.gemm: .* is not a barrier"):
        attempt(lambda *tiles: spelled.gemm(*tiles, mbar="nonsense"), "shared", "shared", 3)


def test_what_is_renamed():
    error = BadAttribute(op="gemm", name="policy", found="T.gemm: x", legal="T.gemm")
    with pytest.raises(BadAttribute) as caught, naming("other"):
        raise error
    assert caught.value is error
    assert (error.facts["op"], error.facts["found"], error.facts["legal"]) == ("other", "T.other: x", "T.gemm")
    assert error.args == (error.message,)
    with pytest.raises(TypeError, match=r"^short\(\) missing 1 required"):
        alias("short", one)()


def one(x: object) -> object:
    return x
