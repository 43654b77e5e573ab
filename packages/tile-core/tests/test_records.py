"""Our ``dataclass`` makes what the standard library's makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from tile_core import records
from tile_core.plugins.manager import installed
from tile_core.simt.variant import SimtCall
from tile_core.target import Target

DECORATORS = {"ours": records.dataclass, "standard": dataclasses.dataclass}


def classes(dataclass: Callable[..., Any]) -> dict[str, Any]:
    @dataclass(frozen=True)
    class Frozen:
        """A place."""

        x: int
        y: str = "y"
        names: list[str] = field(default_factory=list)
        count: ClassVar[int] = 0

        @property
        def both(self) -> str:
            return f"{self.x}{self.y}"

    @dataclass
    class Plain:
        x: int
        y: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            self.y = (*self.y, self.x)

    @dataclass(eq=False)
    class Alone:
        x: int

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Inherits(Frozen):
        z: float = 0.5

    @dataclass(frozen=True)
    class Own:
        values: int
        other: object = field(default=None, compare=False, repr=False)

        def __hash__(self) -> int:
            return 7

    @dataclass
    class Equal:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True, order=True)
    class Ordered:
        x: int

    return {c.__name__: c for c in (Frozen, Plain, Alone, Empty, Inherits, Own, Equal, Ordered)}


OURS, STANDARD = (classes(d) for d in DECORATORS.values())
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Frozen": (1,), "Plain": (1, (2,)), "Alone": (1,), "Empty": (), "Inherits": (1, "b"), "Own": (1, 2), "Equal": (3,),
    "Ordered": (2,),
}  # fmt: skip


def described(x: Any) -> str:
    return repr(x).replace(f"{type(x).__qualname__.rsplit('.', 1)[0]}.", "")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_instances_are_those_of_the_standard_library(name: str) -> None:
    found = []
    for made in (OURS[name], STANDARD[name]):
        a, b = made(*ARGUMENTS[name]), made(*ARGUMENTS[name])
        try:
            same_hash: object = hash(a) == hash(b)
        except TypeError as error:
            same_hash = str(error).replace(repr(made.__name__), "")
        found.append(
            (
                described(a), vars(a), a == b, a != b, a == 1, same_hash, str(inspect.signature(made)), made.__doc__,
                [(f.name, f.type, f.compare) for f in dataclasses.fields(made)], made.__match_args__,
                copy.copy(a) == a, dataclasses.asdict(a), made.__dataclass_params__.frozen,
            )
        )  # fmt: skip
    if STANDARD[name].__doc__ != "A place.":
        found = [tuple(x for n, x in enumerate(row) if n != 7) for row in found]
    assert found[0] == found[1]


def test_arguments_defaults_and_replacements() -> None:
    frozen = OURS["Frozen"]
    a, b = frozen(x=1), frozen(1, names=["n"])
    assert a.names == []
    assert a.names is not frozen(1).names
    assert a != b
    assert dataclasses.replace(a, y="z") == frozen(1, "z")
    assert b.both == "1y"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        frozen()


@pytest.mark.parametrize("name", ["Frozen", "Inherits", "Empty"])
def test_frozen_ones_refuse_changes(name: str) -> None:
    for made in (OURS[name], STANDARD[name]):
        a = made(*ARGUMENTS[name])
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            a.x = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del a.x


def test_a_class_made_by_the_standard_library_may_inherit() -> None:
    @dataclasses.dataclass(frozen=True)
    class More(OURS["Frozen"]):  # type: ignore[misc]
        z: int = 3

    assert dataclasses.astuple(More(1)) == (1, "y", [], 3)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Thaw", (OURS["Frozen"],), {"__annotations__": {}}))


def test_records_of_the_compiler_are_made_by_it_and_can_be_pickled() -> None:
    assert "_instance" in Target.__init__.__code__.co_varnames
    assert SimtCall.__dataclass_params__.frozen
    target = installed().resolve_target("cpu")
    assert pickle.loads(pickle.dumps(target)) == target
