"""``Buffer`` and ``Region``: tensors, scratch memory and rectangles of them at trace time."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NoReturn, Union

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, DTypeLike, Expr
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import (
    BadOperand,
    BadStore,
    ConstantDoesNotFit,
    IndexOutOfRange,
    NegativeIndex,
    NotCompileTime,
    StepSlice,
    TooManyIndices,
)
from tile_core.ir import nodes
from tile_core.values.builder import current
from tile_core.values.checks import python_int, shown
from tile_core.values.constants import constant
from tile_core.values.numpy_like import adopt
from tile_core.values.roundings import cast_as_named
from tile_core.values.scalar import Index, Scalar, Value, as_value, cast, constant_of, is_python, simplify

Item = Union[int, Value, "Buffer", slice, EllipsisType, None]
"""What indexes one dimension of a buffer."""

Indices = Union[Item, "tuple[Item, ...]"]
"""What indexes a buffer."""

Tile = Union["Buffer", "Region", Value]
"""A tile as an operand: a buffer, a part of one, or one element, which is the corner of a part."""

_COMPARE = "compare elements, for example A[i] > 0; test Python values with `is None`"
_LOOP = "write a loop over its extents, for example `for i in T.Parallel(n)` or T.serial(n), and index it"


class Region:
    """A rectangular part of a buffer.

    Attributes
    ----------
    buffer
        The buffer.
    mins, extents
        Corner and extents, one per dimension of the buffer.
    kept
        Dimensions that remain in ``shape`` (an integer index drops its dimension); ``None`` is a new one of extent 1.
    """

    __slots__ = ("buffer", "extents", "kept", "mins")

    def __init__(
        self, buffer: Buffer, mins: Sequence[Index], extents: Sequence[Index], kept: Sequence[int | None] | None = None
    ) -> None:
        self.buffer = buffer
        self.mins = tuple(mins)
        self.extents = tuple(extents)
        self.kept = tuple(range(len(self.mins))) if kept is None else tuple(kept)

    @property
    def shape(self) -> tuple[Index, ...]:
        """Extents of the kept dimensions."""
        return tuple(1 if d is None else self.extents[d] for d in self.kept)

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements, as far as constant extents show."""
        return any(constant_of(e) == 0 for e in self.extents)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.buffer.dtype

    @property
    def scope(self) -> str:
        """Storage scope."""
        return self.buffer.scope

    def ir(self) -> Expr:
        """Return the tirx region."""
        return nodes.region(self.buffer.var, [to_index(m) for m in self.mins], [to_index(e) for e in self.extents])

    def __getitem__(self, index: Indices) -> Value | Region:
        if _adds_axes(index):
            return _with_axes(self, self.shape, index)
        name = repr(self)
        items = _normalise(name, self.shape, index)
        full: list[Index | slice] = [slice(m, add_index(m, e)) for m, e in zip(self.mins, self.extents, strict=True)]
        for dropped in set(range(len(full))) - set(self.kept):
            full[dropped] = self.mins[dropped]
        axes: list[bool] = []
        for n, (d, item) in enumerate(zip(self.kept, items, strict=True)):
            base, extent = (0, 1) if d is None else (self.mins[d], self.extents[d])
            if isinstance(item, slice):
                low, size = _slice_bounds(name, n, extent, item)
                new: Index | slice = slice(add_index(base, low), add_index(add_index(base, low), size))
                axes.append(d is None)
            else:
                _check_index(name, n, extent, item)
                new = add_index(base, item)
            if d is not None:
                full[d] = new
        found = self.buffer[tuple(full)]
        return _new_axes(found, axes) if any(axes) else found

    def __setitem__(self, index: Indices, value: Scalar) -> None:
        target = self[index]
        if isinstance(target, Region):
            target.assign(value)
        elif target.element is not None:
            self.buffer[target.element[1]] = value

    def assign(self, value: object) -> None:
        """Store a value in all elements; see ``tile_values.assign_region``."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotCompileTime(what="the truth of a slice", value=repr(self), fix=_COMPARE)

    def __iter__(self) -> NoReturn:
        raise NotCompileTime(what="iteration over a slice", value=repr(self), fix=_LOOP)

    def __repr__(self) -> str:
        dims = enumerate(zip(self.mins, self.extents, strict=True))
        parts = [_range_text(m, e) if d in self.kept else _text(m) for d, (m, e) in dims]
        for n in [n for n, d in enumerate(self.kept) if d is None]:
            parts.insert(n, "None")
        return f"{self.buffer.name}[{', '.join(parts)}]"


class Buffer:
    """A tensor parameter or a scratch buffer of the kernel.

    Attributes
    ----------
    var
        The tirx buffer.
    shape
        Extents: Python ints, or values for symbolic dimensions.
    dtype, scope, name
        Element type, storage scope (``global``, ``shared``, ``local.fragment``, ``local`` or ``local.var``), name.
    fresh
        Whether a scalar variable was just allocated and has no user-given name yet.
    bound
        Whether it has a name: one that was bound to it, or that of a parameter.
    temporary
        Whether it holds the value of an expression of tiles without a name: what is written to it is lost.
    pointee
        Of a table of addresses: the element type at each of them.
    """

    bound = False
    temporary = False
    pointee: DType | None = None

    def __init__(self, var: BufferVar, shape: Sequence[Index], dtype: DType, scope: str, name: str) -> None:
        self.fresh = scope == "local.var"
        self.var = var
        self.shape = tuple(shape)
        self.dtype = dtype
        self.scope = scope
        self.name = name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_scalar(self) -> bool:
        """Whether the buffer represents one scalar: a variable (``alloc_var``) or a tensor of rank 0."""
        return self.scope == "local.var" or not self.shape

    @property
    def data(self) -> Buffer:
        """Its storage, for ``T.Tensor(shape, dtype, A.data)``: the buffer itself."""
        return self

    def whole(self) -> Region:
        """Return the region that covers the buffer."""
        return Region(self, [0] * self.ndim, self.shape)

    def value(self) -> Value:
        """Return the current value of a scalar variable (``alloc_var``) or rank-0 tensor."""
        zero = [nodes.int_const(0)] * (1 if self.scope == "local.var" else self.ndim)
        indices = tuple(0 for _ in zero)
        return Value(nodes.load(self.var, zero), self.dtype, (self.var,), (self, indices))

    def __getitem__(self, index: Indices) -> Value | Region:
        if self.scope == "local.var":
            return self.value()
        if _adds_axes(index):
            return _with_axes(self, self.shape, index)
        items = _normalise(self.name, self.shape, index)
        points = [i for i in items if not isinstance(i, slice)]
        if len(points) == len(items):
            for d, point in enumerate(points):
                _check_index(self.name, d, self.shape[d], point)
            indices = [to_index(i) for i in points]
            reads = (self.var, *[r for i in points if isinstance(i, Value) for r in i.reads])
            return Value(nodes.load(self.var, indices), self.dtype, reads, (self, tuple(points)))
        mins: list[Index] = []
        extents: list[Index] = []
        for d, item in enumerate(items):
            low: Index
            extent: Index
            if isinstance(item, slice):
                low, extent = _slice_bounds(self.name, d, self.shape[d], item, self.scope == "global")
            else:
                _check_index(self.name, d, self.shape[d], item)
                low, extent = item, 1
            mins.append(low)
            extents.append(extent)
        kept = [d for d, item in enumerate(items) if isinstance(item, slice)]
        return Region(self, mins, extents, kept)

    def __setitem__(self, index: Indices, value: Scalar) -> None:
        store(self, index, value)

    def __bool__(self) -> bool:
        raise NotCompileTime(what="the truth of a buffer", value=self.name, fix=_COMPARE)

    def __iter__(self) -> NoReturn:
        raise NotCompileTime(what="iteration over a buffer", value=self.name, fix=_LOOP)

    def __repr__(self) -> str:
        dims = ", ".join(str(d.expr) if isinstance(d, Value) else str(d) for d in self.shape)
        return f"{self.name}: {self.dtype}[{dims}] in {self.scope}"


for _name in ("__matmul__", "__rmatmul__"):
    setattr(Buffer, _name, lambda self, other: _multiplied(self.name))
    setattr(Region, _name, lambda self, other: _multiplied(repr(self)))

adopt(Buffer, lambda b: b.name, lambda b: not b.is_scalar)
adopt(Region, lambda r: r.buffer.name, lambda r: True)


def _multiplied(name: str) -> NoReturn:
    raise BadOperand(found=f"the whole tile {name}", fix="T.gemm(A, B, C) adds A @ B to C")


def _adds_axes(index: Indices) -> bool:
    return index is None or (isinstance(index, tuple) and any(i is None for i in index))


def _with_axes(tile: Buffer | Region, shape: Sequence[Index], index: Indices) -> Region:
    """Return the region of an index with ``None``: each is a dimension of extent 1."""
    items = list(index) if isinstance(index, tuple) else [index]
    given = [i for i in items if i is not None and i is not Ellipsis]
    fill = [slice(None)] * (len(shape) - len(given))
    dots = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    items[dots : dots + 1] = fill
    found = tile[tuple(i for i in items if i is not None)]
    return _new_axes(found, [i is None for i in items if i is None or isinstance(i, slice)])


def _new_axes(found: Value | Region, new: Sequence[bool]) -> Region:
    """Return a region with new dimensions; the others follow in order."""
    if isinstance(found, Value):
        assert found.element is not None
        buffer, indices = found.element
        found = Region(buffer, indices, [1] * len(indices), ())
    old = iter(found.kept)
    return Region(found.buffer, found.mins, found.extents, [None if n else next(old) for n in new])


def to_index(i: Scalar) -> Expr:
    """Return an index as an IR expression: ``int32`` where it fits, ``int64`` for ``uint32``."""
    if isinstance(i, Buffer):
        i = as_value(i)
    if isinstance(i, Value):
        if not i.dtype.is_integer:
            raise _bad_index(i)
        wide = "int64" if i.dtype.bits == 64 or i.dtype == "uint32" else "int32"
        return nodes.cast(i.expr, wide)
    number = python_int(i) if not isinstance(i, bool) else int(i)
    if number is None:
        raise _bad_index(i)
    if not -(2**63) <= number < 2**63:
        raise ConstantDoesNotFit(value=shown(number), dtype="int64", low=-(2**63), high=2**63 - 1)
    return nodes.int_const(number, "int32" if -(2**31) <= number < 2**31 else "int64")


def _bad_index(item: object) -> BadOperand:
    """Return the error for an object that is not an index, with the probable intention."""
    found = f"an index of type {getattr(item, 'dtype', type(item).__name__)}"
    if isinstance(item, float) or (isinstance(item, Value) and item.dtype.is_float):
        return BadOperand(found=found, fix='divide with // for an integer, or convert with T.cast(value, "int32")')
    if getattr(item, "dtype", None) == "bool":
        return BadOperand(
            found=found, fix="choose elements with T.where(condition, a, b), as in x[...] = T.where(x > 0, x, 0)"
        )
    if isinstance(item, (tuple, list)):
        fix = f"it holds {len(item)} indices: unpack it where it is bound, `for i, j in ...` or `as (bx, by)`"
        return BadOperand(found=found, fix=fix)
    if isinstance(item, (Buffer, Region)):
        return BadOperand(found="a tile as an index", fix="index with its elements in a T.Parallel loop, or T.gather")
    return BadOperand(found=found)


def add_index(a: Index, b: Index) -> Index:
    """Return ``a + b``, simplified where that is cheap."""
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    return a + b


def _check_index(name: str, dim: int, extent: Index, index: object) -> None:
    constant = constant_of(index)
    if constant is not None and isinstance(extent, int) and not 0 <= constant < extent:
        legal = f"0 to {extent - 1}" if extent else "none, it is empty"
        raise IndexOutOfRange(buffer=name, dim=dim, found=str(constant), extent=extent, legal=legal)


def _normalise(name: str, extents: Sequence[Index], index: Indices) -> list[Index | slice]:
    rank = len(extents)
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if dots:
        items[dots[0] : dots[0] + 1] = [slice(None)] * (rank - len(items) + 1)
    if len(items) > rank:
        raise TooManyIndices(buffer=name, found=len(items), rank=rank)
    items += [slice(None)] * (rank - len(items))
    listed = enumerate(zip(items, extents, strict=True))
    return [i if isinstance(i, slice) else _index_item(name, d, e, i) for d, (i, e) in listed]


def _index_item(name: str, dim: int, extent: Index, item: Any, what: str = "index") -> Index:
    if not isinstance(item, (int, Value)):
        if (isinstance(item, Buffer) and item.is_scalar) or hasattr(item, "ty"):
            item = as_value(item)
        else:
            try:
                item = operator.index(item)
            except TypeError as error:
                raise _bad_index(item) from error
    constant = constant_of(item)
    if constant is None:
        return item
    if constant < 0:
        if isinstance(extent, int):
            legal = str(extent + constant) if constant >= -extent else f"one of 0 to {extent - 1}"
        else:
            legal = f"{_text(extent)} - {-constant}"
        raise NegativeIndex(what=what, buffer=name, dim=dim, found=constant, extent=_text(extent), legal=legal)
    return constant


def _slice_bounds(name: str, dim: int, extent: Index, item: slice, open_ended: bool = False) -> tuple[Index, Index]:
    if item.step not in (None, 1):
        raise StepSlice(buffer=name, dim=dim, step=item.step)
    low: Index = 0 if item.start is None else _index_item(name, dim, extent, item.start, "a slice from")
    high: Index = extent if item.stop is None else _index_item(name, dim, extent, item.stop, "a slice to")
    size = high - low if isinstance(low, int) and isinstance(high, int) else _difference(high, low)
    first = constant_of(low)
    bad = isinstance(size, int) and size < 0
    if isinstance(extent, int) and first is not None:
        # A region that starts inside may end outside, like a tile at the edge; scratch memory has no elements there.
        last = extent if open_ended or not isinstance(size, int) else extent - size
        bad = bad or not 0 <= first <= last or (first == extent and size != 0)
    elif isinstance(extent, int) and isinstance(size, int):
        bad = bad or (size > extent and not open_ended)
    if bad:
        text = f"{_text(low)}:{_text(high)}"
        raise IndexOutOfRange(buffer=name, dim=dim, found=text, extent=_text(extent), legal=f"0:{_text(extent)}")
    return low, size


def _range_text(low: Index, extent: Index) -> str:
    high = low + extent if isinstance(low, int) and isinstance(extent, int) else f"{_text(low)} + {_text(extent)}"
    return f"{_text(low)}:{high}"


def _text(extent: Index) -> str:
    return str(extent.expr) if isinstance(extent, Value) else str(extent)


def _difference(high: Index, low: Index) -> Index:
    if isinstance(low, int) and low == 0:
        return high
    result = simplify(to_index(high) - to_index(low))
    constant = nodes.as_int(result)
    if isinstance(constant, int):
        return constant
    reads = tuple(r for x in (high, low) if isinstance(x, Value) for r in x.reads)
    return Value(result, to_dtype(nodes.dtype_of(result)), reads)


def store(buffer: Buffer, index: Indices, value: object) -> None:
    """Emit ``buffer[index] = value``, converted to the element type of the buffer.

    Raises
    ------
    BadStore
        If ``buffer[index]`` is not an element, or ``value`` not a scalar.
    """
    if buffer.is_scalar:
        target, indices = buffer, [nodes.int_const(0)] * (1 if buffer.scope == "local.var" else 0)
        text = buffer.name
    else:
        element = buffer[index]
        if isinstance(element, Region) and _is_assignable(buffer, index, value):
            element.assign(value)
            return
        if not isinstance(element, Value) or element.element is None:
            raise _no_element(buffer, index, element, value)
        target = element.element[0]
        indices = [to_index(i) for i in element.element[1]]
        text = f"an element of {target.name}"
    builder = current("an assignment to a buffer")
    if isinstance(value, Region) or (isinstance(value, Buffer) and not value.is_scalar):
        instead = "index it, or assign to a slice such as A[0:16, :] or A[...]"
        raise BadStore(value=value_text(value), target=text, instead=instead)
    if isinstance(value, (str, bytes, list, tuple, dict, set)) or value is None:
        raise BadStore(value=value_text(value), target=text, instead=f"store one number of type {target.dtype}")
    number, kind = value if isinstance(value, Value) else _literal(value, target.dtype), target.dtype
    narrows = builder.saturates and kind.is_float and kind.bits == 8 and number.dtype.is_float and number.dtype.bits > 8
    # Before the reads of the target get names: an update has to stay one statement.
    new = (cast_as_named(number, kind, None, True, None) if narrows else cast(number, kind)).expr
    builder.materialise([target.var])
    builder.emit(tirx.BufferStore(target.var, new, indices, builder.span()))


def _is_assignable(buffer: Buffer, index: Indices, value: object) -> bool:
    """Whether a slice may be assigned to, unlike a row ``A[i] = 0``."""
    given = index if isinstance(index, tuple) else (index,)
    slices = any(i is Ellipsis or i is None or isinstance(i, slice) for i in given)
    scalar = isinstance(value, (int, float, Value)) or type(value).__module__ == "numpy"
    return (slices or not scalar) and not (isinstance(value, (str, bytes, list, tuple, dict, set)) or value is None)


def _literal(value: object, dtype: DTypeLike) -> Value:
    if not is_python(value) or (dtype == "bool" and not isinstance(value, bool)):
        return as_value(value)
    if isinstance(value, float) and dtype.is_integer:
        # C and Python truncate; a constant fraction is more likely a mistake, which as_value reports.
        return as_value(value, dtype)
    return constant(value, dtype) if dtype.is_narrow else as_value(value, dtype)


def _no_element(buffer: BufferVar, index: Indices, target: Value | Region, value: object) -> BadStore:
    if isinstance(target, Region):
        given = index if isinstance(index, tuple) else (index,)
        remedy = "assign a tile or a number"
        if len(given) < buffer.ndim and not any(i is Ellipsis or isinstance(i, slice) for i in given):
            remedy = f"{buffer.name} has {buffer.ndim} dimensions: give an index for each, or a slice"
        return BadStore(value=value_text(value), target=f"the slice {target!r}", instead=remedy)
    return BadStore(value=value_text(value), target=str(target), instead="assign to an element such as A[i, j]")


def value_text(value: object) -> str:
    """Return the name of the assigned value for a message."""
    if isinstance(value, Value):
        return f"a {value.dtype} value"
    return f"{value!r}" if isinstance(value, (int, float, str, type(None), Buffer, Region)) else type(value).__name__
