"""``TileValue``: whole tiles in expressions, such as ``x * 2 + b[None, :]`` and ``T.exp(x)``.

An expression of tiles stands for the ``T.Parallel`` loop over its elements, with NumPy's broadcasting: extents are
compared from the last one, and an extent of 1 is repeated. It is a value, as a scalar is: what it reads is read where
it was written. It is computed where it is stored (``y[...] = x * 2``, ``T.copy(x * 2, y)``) or where a name is bound to
it, which makes a tile of its own; if memory that it reads is written before, it is computed just before that.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar
from tile_core.dtypes import DType
from tile_core.errors.language import (
    BadOperand,
    NotCompileTime,
    ShapesDoNotBroadcast,
    StatementOutsideLaunch,
    TooManyIndices,
    UsedAfterScope,
)
from tile_core.ir import nodes
from tile_core.ir.visit import loads_of
from tile_core.values.allocation import allocate
from tile_core.values.buffer import Buffer, Region, add_index, store, to_index
from tile_core.values.builder import Scope, StatementSlot, current
from tile_core.values.checks import shown
from tile_core.values.intervals import interval
from tile_core.values.numpy_like import adopt
from tile_core.values.overlap import difference, disjoint, same_elements
from tile_core.values.scalar import Index, Value, as_value, constant_of
from tile_core.vocabulary import word

_TRUTH = "compare elements, or choose between tiles with T.where(condition, a, b); join conditions with & and |"


class TileValue:
    """A tile that the kernel computes.

    Attributes
    ----------
    function
        From scalars to a scalar.
    operands
        Its operands in order: regions, tile values, numbers and values that read no memory.
    names
        Keywords of the last operands.
    shape, dtype
        Extents, outermost first, and element type.
    reads
        IR buffers that it loads from.
    into
        The tile that ``x += ...`` updates.
    level
        The level of the region of numerics where it was written.
    """

    __slots__ = (
        "__weakref__", "dtype", "function", "into", "level", "names", "operands", "reads", "scope", "shape", "slot",
        "tile",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], operands: Sequence[Any], names: Sequence[str] = ()) -> None:
        self.function, self.names = function, tuple(names)
        self.level = current("an expression of tiles").level
        self.operands = tuple(_operand(x) for x in operands)
        tiles = [x for x in self.operands if isinstance(x, (Region, TileValue))]
        self.shape: tuple[Index, ...] = functools.reduce(_broadcast, (x.shape for x in tiles))
        self.dtype: DType = self._apply([_sample(x) for x in self.operands]).dtype
        self.reads: tuple[BufferVar, ...] = tuple(r for x in tiles for r in _reads(x))
        self.into: Buffer | Region | None = None
        self.tile: Buffer | None = None
        self.slot: StatementSlot | None = None
        builder = current("an expression of tiles")
        self.scope: Scope = builder.scope
        builder.watch(self)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def regions(self) -> list[Region]:
        """Return the regions that its elements are computed from."""
        if self.tile is not None:
            return [self.tile.whole()]
        tiles = [x for x in self.operands if isinstance(x, (Region, TileValue))]
        return [r for x in tiles for r in (x.regions() if isinstance(x, TileValue) else [x])]

    def moved(self, scope: Scope) -> None:
        """Move to another block, such as the operands of conditional expressions."""
        self.scope = scope
        for x in self.operands:
            if isinstance(x, TileValue) and x.scope.closed:
                x.moved(scope)

    def at(self, indices: Sequence[Index], known: dict[Any, Value] | None = None) -> Value:
        """Return an element; ``known`` holds those of the same place that were computed already."""
        known = {} if known is None else known
        own = _own(self.shape, indices)
        key = (id(self), *map(id, own))
        if key not in known:
            if self.tile is not None:
                known[key] = element(self.tile.whole(), own)
            else:
                known[key] = self._apply([_at(x, self._inner(own), known) for x in self.operands])
        return known[key]

    def _inner(self, own: Sequence[Index]) -> Sequence[Index]:
        """Return the indices into the operands of an element's."""
        return own

    def settle(self) -> None:
        """Compute the tile at its definition, if its operands may have changed since.

        Raises
        ------
        UsedAfterScope
            If the block where it was written has ended.
        """
        if self.tile is not None:
            return
        builder = current("an expression of tiles")
        if self.scope.closed:
            raise UsedAfterScope(name="an expression of tiles", kind=self.scope.kind)
        if self.slot is None and builder.scope.depth <= self.scope.depth:
            for x in self.operands:
                if isinstance(x, TileValue):
                    x.settle()
            return
        if self.scope.kind == "function":
            raise StatementOutsideLaunch(kernel=builder.name)
        slot, outer = self.slot or self.scope.slot(), builder.scope
        inner = Scope("block", self.scope, runtime=False)
        self.slot, builder.scope = None, inner
        try:
            self.tile = computed(self)
        finally:
            builder.scope = outer
        for s in inner.statements:
            slot.statements.extend(s.statements if isinstance(s, StatementSlot) else [s])

    def _apply(self, values: Sequence[Any]) -> Value:
        count = len(values) - len(self.names)
        builder = current("an expression of tiles")
        before, builder.regions = builder.regions, [self.level]
        found = self.function(*values[:count], **dict(zip(self.names, values[count:], strict=True)))
        builder.regions = before
        if found is NotImplemented:
            other = next(x for x in self.operands if not isinstance(x, (Region, TileValue)))
            raise BadOperand(found=shown(other))
        return as_value(found)

    def astype(self, dtype: object) -> TileValue:
        """Return the tile converted to an element type."""
        return TileValue(operator.methodcaller("astype", dtype), (self,))

    def __getitem__(self, index: object) -> TileValue:
        """Return the tile with a dimension of extent 1 for each ``None`` of the index.

        Raises
        ------
        BadOperand
            If the index picks elements: the tile needs a name then.
        TooManyIndices
            If it has more items than the tile has dimensions.
        """
        items = list(index) if isinstance(index, tuple) else [index]
        if not all(i is None or i is Ellipsis or _is_full(i) for i in items) or items.count(Ellipsis) > 1:
            self._refuse_element()
        given = sum(isinstance(i, slice) for i in items)
        if given > self.ndim:
            raise TooManyIndices(buffer=repr(self), found=given, rank=self.ndim)
        dots = items.index(Ellipsis) if Ellipsis in items else len(items)
        items[dots : dots + 1] = [slice(None)] * (self.ndim - given)
        return WithAxes(self, [i is None for i in items])

    def __setitem__(self, index: object, value: object) -> NoReturn:
        self._refuse_element()

    def _refuse_element(self) -> NoReturn:
        raise BadOperand(found=f"an element of {self!r}", fix="name the tile first, `y = ...`, and index y")

    def __bool__(self) -> NoReturn:
        raise NotCompileTime(what="the truth of a tile", value=repr(self), fix=_TRUTH)

    def __iter__(self) -> NoReturn:
        raise NotCompileTime(what="iteration over a tile", value=repr(self), fix="name it, and write a loop over it")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"a {self.dtype} tile of shape {_text(self.shape)}"


class WithAxes(TileValue):
    """A tile with new dimensions of extent 1: ``(x * 2)[:, None]``.

    Attributes
    ----------
    new
        Per dimension, whether it is a new one.
    """

    __slots__ = ("new",)

    def __init__(self, tile: TileValue, new: Sequence[bool]) -> None:
        super().__init__(_same, (tile,))
        self.new = tuple(new)
        old = iter(tile.shape)
        self.shape = tuple(1 if n else next(old) for n in self.new)

    def _inner(self, own: Sequence[Index]) -> Sequence[Index]:
        return [i for i, n in zip(own, self.new, strict=True) if not n]


def is_tile(x: object) -> bool:
    """Whether an object is a tile, a slice of one, or a tile expression."""
    return isinstance(x, (Region, TileValue)) or (isinstance(x, Buffer) and not x.is_scalar)


def computed(value: TileValue, default: str = "tile") -> Buffer:
    """Return a new tile with the elements of an expression.

    Raises
    ------
    BadShape
        If an extent is only known at run time.
    """
    value.settle()
    if value.tile is not None:
        return value.tile
    serial = _serial(value.regions())
    buffer = allocate("alloc_fragment", value.shape, value.dtype, "local" if serial else "local.fragment", default)
    buffer.temporary = True
    _store_all(buffer.whole(), value.at, serial)
    return buffer


def assign_region(target: Region, value: object) -> None:
    """Store ``A[0:16, :] = value``: a scalar, or a tile broadcast to the target.

    The value is computed before anything is stored, as in NumPy.

    Raises
    ------
    ShapesDoNotBroadcast
        If the value has an extent that is neither 1 nor the target's.
    BadStore
        If it is neither a tile nor a scalar.
    """
    if hasattr(value, "stored"):  # values of several elements, which another package adds
        value.stored(target)
        return
    if isinstance(value, Buffer):
        value = value.value() if value.is_scalar else value.whole()
    static = all(constant_of(e) is not None for e in target.extents)
    if not isinstance(value, (Region, TileValue)):
        if static and target.scope != "local":
            word("fill")(target, value)
        else:
            _store_all(target, lambda _: value, target.scope == "local")
        return
    if not _same_shape(_broadcast(value.shape, target.shape), target.shape):
        raise _unlike(value.shape, target.shape)
    tile = value if isinstance(value, TileValue) else TileValue(_same, (value,))
    tile.settle()
    if not all(disjoint(r, target) or same_elements(r, target) for r in tile.regions()):
        value = computed(tile).whole()
        tile = TileValue(_same, (value,))
    if static and isinstance(value, Region) and _same_shape(value.shape, target.shape):
        word("copy")(value, target)
        return
    _store_all(target, tile.at, _serial([*tile.regions(), target]))


def element(region: Region, indices: Sequence[Index]) -> Value:
    """Return the element of a region at indices of its shape."""
    found = region.buffer.value() if region.buffer.is_scalar else region.buffer[_coordinates(region, indices)]
    assert isinstance(found, Value)
    return found


def _coordinates(region: Region, indices: Sequence[Index]) -> tuple[Index, ...]:
    at = list(region.mins)
    for d, i in zip(region.kept, indices, strict=True):
        if d is not None:
            at[d] = add_index(at[d], i)
    return tuple(at)


def _store_all(target: Region, at: Callable[[Sequence[Index]], object], serial: bool) -> None:
    """Emit the loop that stores ``at(indices)`` in every element of a region."""
    builder = current("an assignment to a tile")
    span = builder.span()
    bounds = [_evaluated_once(to_index(e)) for e in target.shape]
    if any(nodes.as_int(b) == 0 for b in bounds):
        return
    dtype = "int64" if any(nodes.dtype_of(b) == "int64" for b in bounds) else "int32"
    extents = [nodes.cast(b, dtype) for b in bounds]
    loops = [nodes.fresh(builder.unique(_index_name(d)), dtype) for d in range(len(extents))]
    builder.ranges |= {v: (0, max(0, interval(e)[1] - 1)) for v, e in zip(loops, extents, strict=True)}
    scope = builder.push("loop" if serial else "parallel")
    indices = [as_value(v) for v in loops]
    store(target.buffer, _coordinates(target, indices), at(indices))
    body = builder.pop(scope)
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        body = nodes.for_loop(var, extent, body, "serial" if serial else "parallel", span=span)
    builder.emit(body)


def _evaluated_once(bound: Any) -> Any:
    return current().bind("bound", bound) if loads_of(bound) else bound


def _index_name(d: int) -> str:
    return "ijk"[d] if d < 3 else f"i{d}"


def _serial(regions: Sequence[Region]) -> bool:
    """Whether a thread computes all elements for itself: tiles of ``T.alloc_local`` are its own.

    Raises
    ------
    BadOperand
        If there is also a fragment, of which a thread has a part.
    """
    scopes = {r.scope for r in regions if r.kept}
    if {"local", "local.fragment"} <= scopes:
        name = next(r.buffer.name for r in regions if r.kept and r.scope == "local")
        fix = "copy the fragment to shared memory first, or use a fragment instead of T.alloc_local"
        raise BadOperand(found=f"{name}, which every thread has for itself, beside a fragment,", fix=fix)
    return "local" in scopes


def _operand(x: Any) -> Any:
    """Return an operand to keep: scalars are read now, elements with the tile."""
    if isinstance(x, Buffer):
        x = x.value() if x.is_scalar else x.whole()
    if not isinstance(x, Value):
        return x
    expr = x.expr  # which settles it
    if not x.reads:
        return x
    if x.element is not None:
        buffer, indices = x.element
        return Region(buffer, indices, [1] * len(indices), ())
    return Value(current("an expression of tiles").bind("v", expr), x.dtype)


def _sample(x: Any) -> Any:
    if isinstance(x, (Region, TileValue)):
        return Value(tirx.Var("x", x.dtype.container), x.dtype)
    return x


def _reads(x: Region | TileValue) -> tuple[BufferVar, ...]:
    if isinstance(x, TileValue):
        return x.reads
    indices = (r for i in x.mins if isinstance(i, Value) for r in i.reads)
    return (x.buffer.var, *indices)


def _at(x: Any, indices: Sequence[Index], known: dict[Any, Value]) -> Any:
    if isinstance(x, TileValue):
        return x.at(indices, known)
    return element(x, _own(x.shape, indices)) if isinstance(x, Region) else x


def _own(shape: Sequence[Index], indices: Sequence[Index]) -> list[Index]:
    """Return the indices into a tile that is broadcast."""
    last = indices[len(indices) - len(shape) :]
    return [0 if constant_of(e) == 1 else i for e, i in zip(shape, last, strict=True)]


def _broadcast(a: Sequence[Index], b: Sequence[Index]) -> tuple[Index, ...]:
    """Return the shape of both tiles in one expression."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    shape = list(long[: len(long) - len(short)])
    for x, y in zip(long[len(shape) :], short, strict=True):
        if constant_of(y) != 1 and constant_of(x) != 1 and difference(x, y) != 0:
            raise _unlike(a, b)
        shape.append(y if constant_of(x) == 1 else x)
    return tuple(shape)


def _same_shape(a: Sequence[Index], b: Sequence[Index]) -> bool:
    return len(a) == len(b) and all(difference(x, y) == 0 for x, y in zip(a, b, strict=True))


def _unlike(a: Sequence[Index], b: Sequence[Index]) -> ShapesDoNotBroadcast:
    return ShapesDoNotBroadcast(a=_text(a), b=_text(b))


def _is_full(item: object) -> bool:
    return isinstance(item, slice) and item.start is None and item.stop is None and item.step is None


def _same(x: Value) -> Value:
    return x


def _text(shape: Sequence[Index]) -> str:
    inner = ", ".join(str(e._expr) if isinstance(e, Value) else str(e) for e in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def _operator(name: str) -> Callable[..., Any]:
    on_values = getattr(Value, name)

    def apply(a: Value, *others: Any) -> Any:
        return on_values(a, *others)

    def method(self: Any, *others: Any) -> Any:
        if isinstance(self, Buffer) and self.is_scalar and not any(map(is_tile, others)):
            return getattr(self.value(), name)(*others)
        return TileValue(apply, (self, *others))

    method.__name__ = method.__qualname__ = name
    return method


def _equality(name: str) -> Callable[[Any, object], Any]:
    operation = _operator(name)

    def method(self: Any, other: object) -> Any:
        # Keys of dictionaries, such as T.annotate_layout({A_shared: ...}), are compared with others by their hashes.
        return operation(self, other) if is_tile(other) or isinstance(other, _SCALARS) else NotImplemented

    return method


def _deferring(name: str) -> Callable[..., Any]:
    """Return an operator of scalars that leaves tiles to their own."""
    on_values = getattr(Value, name)

    @functools.wraps(on_values)
    def method(self: Value, other: object) -> Any:
        return NotImplemented if is_tile(other) else on_values(self, other)

    return method


_SCALARS = (int, float, Value, Buffer)
_BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_BOTH = [f"__{n}__" for n in _BINARY] + ["__lt__", "__le__", "__gt__", "__ge__"]
_REFLECTED = [f"__r{n}__" for n in _BINARY]
_UNARY = ["__neg__", "__pos__", "__invert__", "__abs__", "__round__", "astype"]
for _kind in (Buffer, Region, TileValue):
    for _name in (*_BOTH, *_REFLECTED, *_UNARY):
        setattr(_kind, _name, _operator(_name))
    for _name in ("__eq__", "__ne__"):
        setattr(_kind, _name, _equality(_name))
    setattr(_kind, "__hash__", object.__hash__)  # noqa: B010
for _name in (*_BOTH, *_REFLECTED, "__eq__", "__ne__"):
    setattr(Value, _name, _deferring(_name))
adopt(TileValue, repr, lambda t: True)
setattr(Region, "assign", assign_region)  # noqa: B010
