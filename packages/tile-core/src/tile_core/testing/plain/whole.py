"""Expressions of whole tiles in plain Python: arrays of numbers with NumPy's broadcasting."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.testing.plain.memory import Memory, Region, allocate
from tile_core.testing.plain.numbers import Number, number

#: Names of ``T`` that take tiles element by element.
ELEMENTWISE = frozenset(
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh sigmoid erf floor ceil trunc nearbyint rint round isnan isinf isfinite fma atan2 hypot fmod copysign "
    "nextafter pow power abs max min clamp if_then_else Select where cast reinterpret floordiv floormod truncdiv "
    "truncmod ceildiv shift_left shift_right bitwise_and bitwise_or bitwise_xor bitwise_not popcount".split()
)
_OPERATORS = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne neg invert abs".split()
_REFLECTED = "add sub mul truediv floordiv mod and_ or_ xor".split()
_AUGMENTED = "add sub mul truediv floordiv mod and_ or_ xor lshift rshift".split()


class Whole:
    """The elements of an expression of tiles.

    Attributes
    ----------
    numbers
        An array of ``Number``.
    """

    is_tile = True

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @property
    def dtype(self) -> str:
        """Element type."""
        found: str = self.numbers.reshape(-1)[0].dtype
        return found

    def memory(self) -> Memory:
        """Return a tile that holds the elements."""
        made = allocate(self.numbers.shape, self.dtype, "fragment")
        Region.of(made, ()).write(self.numbers)
        return made

    def astype(self, dtype: Any) -> Whole:
        """Return the tile converted."""
        return apply(lambda x: x.astype(dtype), self)

    def __getitem__(self, index: Any) -> Any:
        found = self.numbers[index]
        return found if isinstance(found, Number) else Whole(found)

    __hash__ = object.__hash__


class WholeTiles:
    """``T`` for kernels with expressions of tiles: functions of scalars take them element by element."""

    def __init__(self, language: Any) -> None:
        self._language = language

    def __getattr__(self, name: str) -> Any:
        """Return the definition of a name."""
        found = getattr(self._language, "Select" if name == "where" else name)
        if name in ELEMENTWISE:
            return lambda *args, **words: lifted(found, args, words)
        return found


def lifted(function: Callable[..., Any], args: tuple[Any, ...], words: dict[str, Any]) -> Any:
    """Call a function of scalars, element by element if an argument is a tile."""
    if not any(getattr(a, "is_tile", False) for a in (*args, *words.values())):
        return function(*args, **words)
    names = list(words)
    count = len(args)
    return apply(lambda *v: function(*v[:count], **dict(zip(names, v[count:], strict=True))), *args, *words.values())


def apply(function: Callable[..., Any], *operands: Any) -> Whole:
    """Return the results of a function of scalars on broadcast operands."""
    arrays = [array_of(x) for x in operands]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    spread = [np.broadcast_to(a, shape) for a in arrays]
    made = np.empty(shape, object)
    for at in np.ndindex(*shape):
        made[at] = number(function(*(a[at] for a in spread)))
    return Whole(made)


def array_of(x: Any) -> Any:
    """Return an operand as an array of numbers; scalars have no dimensions."""
    if isinstance(x, Whole):
        return x.numbers
    if isinstance(x, Memory) and x.is_tile:
        return Region.of(x, ()).read()
    if isinstance(x, Region):
        return x.read().reshape([n for d, n in enumerate(x.extents) if d in x.kept])
    one = np.empty((), object)
    one[()] = x
    return one


def _assign(region: Region, value: Any) -> None:
    """Store a scalar or a tile, which is broadcast, converted to the element type."""
    shape = [n for d, n in enumerate(region.extents) if d in region.kept]
    region.write(np.broadcast_to(array_of(value), shape))


def _with_axes(memory: Memory, items: Any) -> Whole:
    """Return the elements that an index with ``None`` names: every ``None`` is a new dimension."""
    found = memory[tuple(i for i in items if i is not None)]
    return Whole(array_of(found)[tuple(i for i in (_axis(i) for i in items) if i is not Ellipsis)])


def _axis(item: Any) -> Any:
    return None if item is None else slice(None) if isinstance(item, slice) else Ellipsis


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: Any, *others: Any) -> Any:
        if isinstance(self, Memory) and not self.shape and not any(isinstance(o, (Region, Whole)) for o in others):
            return function(self.get(), *others)
        return apply(function, self, *others)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda self, other: apply(lambda a, b: function(b, a), self, other)


def _augmented(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        made = apply(function, self, other)
        target = Region.of(self, ()) if isinstance(self, Memory) else self
        target.write(np.broadcast_to(made.numbers, array_of(self).shape))
        return self

    return method


for _kind in (Memory, Region, Whole):
    for _name in _OPERATORS:
        setattr(_kind, f"__{_name.strip('_')}__", _operator(_name))
    for _name in _REFLECTED:
        setattr(_kind, f"__r{_name.strip('_')}__", _reflected(_name))
    setattr(_kind, "__hash__", object.__hash__)  # noqa: B010
setattr(Memory, "with_axes", _with_axes)  # noqa: B010
setattr(Region, "assign", _assign)  # noqa: B010
setattr(Region, "__getitem__", lambda self, index: Whole(array_of(self))[index])  # noqa: B010
for _kind in (Memory, Region):
    setattr(_kind, "astype", lambda self, dtype: Whole(array_of(self)).astype(dtype))  # noqa: B010
    for _name in _AUGMENTED:
        setattr(_kind, f"__i{_name.strip('_')}__", _augmented(_name))
