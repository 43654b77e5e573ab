"""``dataclass`` for the many small records of a compiler, defined five times faster.

The standard decorator writes and compiles up to six functions for a class, which takes half a millisecond: a fifth of
the time of a first compilation. Here only ``__init__`` is written, and what compares, hashes and prints are closures.
To type checkers this is the standard decorator, and ``dataclasses.fields``, ``replace`` and ``is_dataclass`` hold.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, *, frozen: bool = False, eq: bool = True, **more: bool) -> Any:
        """Make a dataclass; the standard library makes those with rarely used features."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, **more)
        inherits = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
        if more or inherits or not vars(cls).keys().isdisjoint(("__slots__", "__setattr__")) or _has_options(cls):
            return dataclasses.dataclass(frozen=frozen, eq=eq, **more)(cls)
        return _made(cls, frozen, eq)


class _NotGiven:
    def __repr__(self) -> str:
        return "<factory>"  # in a signature, as the standard library has it


#: The argument for a field that has its value made.
_NOT_GIVEN = _NotGiven()


def _has_options(cls: type) -> bool:
    """Whether a field is to be left out somewhere, or is a keyword."""
    given = [v for v in vars(cls).values() if isinstance(v, dataclasses.Field)]
    return any(not (f.init and f.repr and f.compare and f.hash is None) or f.kw_only is True for f in given)


def _made(cls: type, frozen: bool, eq: bool) -> type:
    # Where there is no text, the standard decorator spells out a signature, which takes as long as all the rest.
    text, cls.__doc__ = cls.__doc__, cls.__doc__ or cls.__name__
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__doc__ = text
    parameters: Any = vars(cls)["__dataclass_params__"]
    # A class that inherits from it, and is made by the standard decorator, reads this.
    parameters.frozen, parameters.eq = frozen, eq
    fields = dataclasses.fields(cls)
    own, names = set(vars(cls)), [f.name for f in fields]
    found: dict[str, Any] = {"__init__": _initializer(cls, fields, frozen), "__repr__": _repr}
    if eq:
        found["__eq__"], found["__hash__"] = _comparison(names)
        if not frozen:
            found["__hash__"] = None
    if frozen:
        found["__setattr__"], found["__delattr__"] = _refusals(cls, frozenset(names))
    if "__eq__" in own and vars(cls).get("__hash__", 0) is None:
        own.discard("__hash__")  # Python has put it there, since the class defines what is equal
    for name, value in found.items():
        if name not in own:
            setattr(cls, name, value)
    return cls


def _initializer(cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """Return ``__init__``; one of a frozen class writes to the instance's dictionary."""
    known: dict[str, Any] = {"_NOT_GIVEN": _NOT_GIVEN}
    parameters, body = ["self"], ["_instance = self.__dict__"] if frozen else []
    for f in fields:
        value = f.name
        if f.default_factory is not dataclasses.MISSING:
            known[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}() if {f.name} is _NOT_GIVEN else {f.name}"
            parameters.append(f"{f.name}=_NOT_GIVEN")
        elif f.default is not dataclasses.MISSING:
            known[f"_default_{f.name}"] = f.default
            parameters.append(f"{f.name}=_default_{f.name}")
        else:
            parameters.append(f.name)
        body.append(f"_instance[{f.name!r}] = {value}" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {**{f.name: f.type for f in fields}, "return": None}
    return made


def _comparison(names: Sequence[str]) -> tuple[Callable[..., Any], Callable[..., int]]:
    """Return ``__eq__`` and ``__hash__``."""
    values: Callable[[Any], Any] = operator.attrgetter(*names) if names else lambda _: ()

    def __eq__(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:
        return hash(values(self))

    return __eq__, __hash__


def _refusals(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return ``__setattr__`` and ``__delattr__`` of a frozen class."""

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self))
    return f"{type(self).__qualname__}({values})"
