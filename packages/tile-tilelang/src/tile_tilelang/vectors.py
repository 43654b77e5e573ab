"""Vectors of scalars: loads and stores by a thread, lanes, and vector types.

A vector is a list of values while tracing. Its loads and stores are those of its lanes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tile_core.language as T
from tile_core.dtypes import DTYPES, dtype
from tile_core.values.buffer import Region
from tile_core.values.value import constant_of
from tile_tilelang.errors import BadCall

__all__ = [
    *("VectorType", "atomic_addx2", "atomic_addx4", "extract_lane"),
    *("ldg32", "ldg64", "ldg128", "ldg256", "lds32", "lds64", "lds128", "lds256"),
    *("stg32", "stg64", "stg128", "stg256", "sts32", "sts64", "sts128", "sts256"),
]
_BITS = (32, 64, 128, 256)


class Vector:
    """Values of one element type, which a slice of as many elements takes."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, lane: int) -> Any:
        return self.values[lane]

    def stored(self, target: Any) -> None:
        """Store the values in a slice, ``Y[i : i + 2] = vector``."""
        for store_one, value in zip(_elements("an assignment", target), self, strict=True):
            store_one(value)


class VectorType(str):
    """The name of a vector type, ``T.float32x2``: calls make vectors, tensors of it are refused."""

    element = property(lambda self: DTYPES[self.rpartition("x")[0]])
    lanes = property(lambda self: int(self.rpartition("x")[2]))

    def __call__(self, *values: Any) -> Vector:
        """Return a vector of these values, or of one for all lanes.

        Raises
        ------
        BadCall
            For another number of values.
        """
        given = values * self.lanes if len(values) == 1 else values
        if len(given) != self.lanes:
            raise _bad(str(self), "values", f"{len(values)}", f"{self.lanes}")
        return Vector(T.cast(value, self.element) for value in given)

    @staticmethod
    def named(name: str) -> VectorType | None:
        """Return the type of a name; ``None`` for other names."""
        element, _, lanes = name.rpartition("x")
        return VectorType(name) if element in DTYPES and lanes.isdigit() else None


def reinterpreted(value: Any, to: Any) -> Any:
    """Return the bits of a vector as another one of as many lanes.

    Raises
    ------
    BadCall
        For other lanes.
    """
    kind = to if isinstance(to, VectorType) else VectorType(f"{dtype(to)}x1")
    lanes = value if isinstance(value, Vector) else Vector([value])
    if len(lanes) != kind.lanes:
        raise _bad("reinterpret", "dtype", str(to), f"a type of {len(lanes)} lanes")
    found = Vector(T.reinterpret(lane, kind.element) for lane in lanes)
    return found if isinstance(to, VectorType) else found[0]


def extract_lane(vector: Any, lane: int) -> Any:
    """Return a value of a vector.

    Raises
    ------
    BadCall
        Without a vector that has the lane.
    """
    at = constant_of(lane)
    if not isinstance(vector, Vector):
        raise _bad("extract_lane", "vector", str(vector), "a vector")
    if at is None or not 0 <= at < len(vector):
        raise _bad("extract_lane", "lane", str(lane), f"0 to {len(vector) - 1}")
    return vector[at]


def _adder(count: int) -> Callable[..., Any]:
    name = f"atomic_addx{count}"

    def add(dst: Any, value: Any, return_prev: bool = False) -> Any:
        """Add adjacent elements, each atomically; with ``return_prev`` return a vector."""
        if not return_prev:
            return getattr(T, name)(dst, value)
        pairs = ((_at(name, dst, lane), _at(name, value, lane)) for lane in range(count))
        return Vector([T.atomic_add(to, by, return_prev=True) for to, by in pairs])

    return add


def _at(function: str, operand: Any, lane: int) -> Any:
    """Return an element of a slice, or one behind an element."""
    if isinstance(operand, (Region, Vector)):
        return operand[lane]
    buffer, indices = _element_of(function, operand)
    return buffer[tuple(indices[:-1]) + (indices[-1] + lane,)]


def _elements(function: str, target: Any) -> Iterator[Callable[[Any], None]]:
    """Yield functions that store the elements of a slice, or one element."""
    if isinstance(target, Region):
        yield from (functools.partial(target.__setitem__, at) for at in range(_count(function, target)))
    else:
        buffer, indices = _element_of(function, target)
        yield functools.partial(buffer.__setitem__, tuple(indices))


def _count(function: str, region: Region) -> int:
    extents = [constant_of(e) for e in region.shape]
    if len(extents) != 1 or extents[0] is None:
        raise _bad(function, "the slice", str(region), "one dimension of constant extent")
    return extents[0]


def _element_of(function: str, value: Any) -> tuple[Any, Sequence[Any]]:
    found: tuple[Any, Sequence[Any]] | None = getattr(value, "element", None)
    if found is None:
        raise _bad(function, "the operand", str(value), "an element or a slice")
    return found


def _checked(function: str, bits: int, target: Any) -> None:
    count = _count(function, target) if isinstance(target, Region) else len(_element_of(function, target)[:1])
    if count * target.dtype.bits != bits:
        raise _bad(function, "the operand", f"{count} of {target.dtype}", f"elements of {bits} bits")


def _loader(name: str, bits: int) -> Callable[..., Any]:
    def load(src: Any, pred: Any = None) -> Any:
        """Load elements by one thread; zeros where ``pred`` is false."""
        _checked(name, bits, src)
        found = [src[at] for at in range(_count(name, src))] if isinstance(src, Region) else [src]
        kept = (v if pred is None else T.if_then_else(pred, v, T.cast(0, src.dtype)) for v in found)
        lanes = Vector(T.reinterpret(v, "uint32") if src.dtype.bits == 32 else v for v in kept)
        return lanes[0] if len(lanes) == 1 else lanes

    return load


def _storer(name: str, bits: int) -> Callable[..., None]:
    def store(dst: Any, value: Any, pred: Any = None) -> None:
        """Store the bits of a value or vector by one thread, where ``pred`` is true."""
        _checked(name, bits, dst)
        lanes = value if isinstance(value, Vector) else Vector([value])
        stores = list(_elements(name, dst))
        if len(stores) != len(lanes):
            raise _bad(name, "value", f"of {len(lanes)} lanes", f"{len(stores)}")
        _stored(stores, [T.reinterpret(lane, dst.dtype) for lane in lanes], True if pred is None else pred)

    return store


@T.macro
def _stored(stores: Any, values: Any, pred: Any) -> None:
    if pred:
        for store_one, value in zip(stores, values, strict=True):
            store_one(value)


def _bad(function: str, name: str, found: str, expected: str) -> BadCall:
    return BadCall(
        function=f"T.{function}", name=name, found=found, expected=expected, instead="write the scalar arithmetic"
    )


atomic_addx2, atomic_addx4 = _adder(2), _adder(4)
ldg32, ldg64, ldg128, ldg256 = (_loader(f"ldg{bits}", bits) for bits in _BITS)
lds32, lds64, lds128, lds256 = (_loader(f"lds{bits}", bits) for bits in _BITS)
stg32, stg64, stg128, stg256 = (_storer(f"stg{bits}", bits) for bits in _BITS)
sts32, sts64, sts128, sts256 = (_storer(f"sts{bits}", bits) for bits in _BITS)
