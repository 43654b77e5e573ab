"""Convert operands of tile ops to regions, with checks common to all ops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import DTypeLike
from tile_core.errors.naming import naming
from tile_core.errors.ops import (
    BadAttribute,
    BadElementType,
    EmptyOperand,
    NotATile,
    OutsideLaunch,
    RuntimeExtent,
    ShapesDiffer,
    WritesReadOnly,
)
from tile_core.ir import nodes
from tile_core.ir.attributes import CALLED, HINTS, NUMERICS, REQUIRES, Attrs
from tile_core.numerics.levels import STRICT
from tile_core.values import checks
from tile_core.values.builder import Builder, current
from tile_core.values.intervals import interval
from tile_core.values.overlap import difference, disjoint
from tile_core.values.value import (
    Buffer,
    Index,
    Region,
    TileValue,
    Value,
    as_value,
    computed,
    constant_of,
    simplify,
    to_index,
)

if TYPE_CHECKING:
    from tile_core.dtypes import DType


def as_region(op: str, role: str, x: object, like: Region | None = None) -> Region:
    """Return the region denoted by an operand.

    Parameters
    ----------
    op, role
        Names for messages, such as ``"copy"`` and ``"src"``.
    x
        A buffer, a region, an expression of them, which is computed first, or one element, which is a corner: its
        extents come from ``like`` (right-aligned), or are 1.

    Raises
    ------
    NotATile
        If ``x`` is another object.
    """
    if isinstance(x, TileValue):
        return computed(x).whole()
    if isinstance(x, Region):
        return x if op == "copy" or None not in x.kept else computed(TileValue(lambda v: v, (x,))).whole()
    if isinstance(x, Buffer):
        return x.whole()
    if isinstance(x, Value) and x.element is not None:
        buffer, corner = x.element
        return _from_corner(buffer, corner, like)
    raise NotATile(op=op, role=role, found=_describe(x))


def _from_corner(buffer: Buffer, corner: Sequence[Index], like: Region | None) -> Region:
    extents: list[Index] = [1] * len(corner)
    if like is not None:
        wanted = list(like.extents)
        while len(wanted) > len(corner) and constant_of(wanted[0]) == 1:
            wanted = wanted[1:]
        if len(wanted) > len(corner):
            wanted = [e for e in wanted if constant_of(e) != 1] or [1]
        for d, e in enumerate(reversed(wanted[-len(corner) :]) if wanted else []):
            extents[len(corner) - 1 - d] = e
        _warn_of_axes(buffer, corner, extents)
    return Region(buffer, corner, extents)


class SuspectCorner(UserWarning):
    """A tile at a corner that exceeds an axis for every position of the corner."""


def _warn_of_axes(buffer: Buffer, corner: Sequence[Index], extents: Sequence[Index]) -> None:
    """Warn of a tile that is longer than the axis of its corner.

    A tile extends along the last axes. Where one of them is shorter than the tile and the corner moves along it by
    single elements, as along the heads of a layout (batch, sequence, heads, channels), another axis is probably meant.
    """
    for axis, (size, index, extent) in enumerate(zip(buffer.shape, corner, extents, strict=True)):
        if not isinstance(size, int) or not isinstance(extent, int) or extent <= size or size == 1:
            continue
        longer = next((a for a in range(axis) if extents[a] == 1 and not _is_shorter(buffer.shape[a], extent)), None)
        low, high = interval(nodes.int_const(0) + to_index(index))
        if longer is None or not 0 <= low <= high < size or not high or _is_multiple(index, extent):
            continue
        message = (
            f"the tile of {extent} elements along axis {axis} of {buffer.name}, which has {size}, always extends "
            f"beyond it; to select one element there and a tile along axis {longer}, write slices: "
            f"{_sliced(buffer, extents, axis, longer)}"
        )
        where = current("a tile op").where()
        if where is not None:
            warnings.warn_explicit(message, SuspectCorner, where.file, where.line, registry=_WARNED)


#: Lines that were warned of.
_WARNED: dict[str | tuple[str, type[Warning], int], int] = {}


def _is_shorter(size: Index, extent: int) -> bool:
    return isinstance(size, int) and size < extent


def _is_multiple(index: Index, extent: int) -> bool:
    return nodes.as_int(simplify(tirx.floormod(nodes.int_const(0) + to_index(index), extent))) == 0


def _sliced(buffer: Buffer, extents: Sequence[Index], axis: int, longer: int) -> str:
    """Return the source text of the region with the tile along another axis."""
    axes = [f"i{d}" if e == 1 else f"i{d}:i{d} + {e}" for d, e in enumerate(extents)]
    axes[longer], axes[axis] = f"i{longer}:i{longer} + {extents[axis]}", f"i{axis}"
    return f"{buffer.name}[{', '.join(axes)}]"


def static_shape(op: str, role: str, region: Region) -> tuple[int, ...]:
    """Return the extents that are not 1 (or ``(1,)``) as ints.

    Raises
    ------
    RuntimeExtent
        If an extent is only known at run time.
    """
    extents = []
    for d, e in enumerate(region.extents):
        constant = e if isinstance(e, int) else nodes.as_int(simplify(to_index(e)))
        if not isinstance(constant, int):
            raise RuntimeExtent(op=op, role=role, dim=d, found=str(to_index(e)))
        extents.append(constant)
    return tuple(e for e in extents if e != 1) or (1,)


def same_shape(op: str, roles: tuple[str, str], a: Region, b: Region) -> tuple[int, ...]:
    """Check that two operands have equal extents except those of 1, and return them."""
    shape_a, shape_b = static_shape(op, roles[0], a), static_shape(op, roles[1], b)
    if shape_a != shape_b:
        facts: dict[str, Any] = {"a": roles[0], "b": roles[1], "shape_a": shape_a, "shape_b": shape_b}
        raise ShapesDiffer(op=op, **facts | _fitting(a, shape_a, b, shape_b))
    return shape_a


def _fitting(a: Region, shape_a: tuple[int, ...], b: Region, shape_b: tuple[int, ...]) -> dict[str, str]:
    """Return the remedy for different shapes, if one fits into the other."""
    for large, wide, shape in ((a, shape_a, shape_b), (b, shape_b, shape_a)):
        name, rank = large.buffer.name, len(large.extents)
        corner = ", ".join("ijklmn"[:rank])
        if len(wide) < len(shape) <= rank and rank <= len("ijklmn"):
            return {"fix": f"the corner of a tile of shape {shape} has an index for each dimension: {name}[{corner}]"}
        if len(wide) == len(shape) == rank and all(x >= y for x, y in zip(wide, shape, strict=True)):
            part = ", ".join(f"0:{extent}" for extent in shape)
            return {"fix": f"give the corner of a tile of shape {shape}, {name}[{corner}], or a slice: {name}[{part}]"}
        if len(wide) == len(shape) == rank and large.buffer.scope == "global":
            outside = f"elements outside of {name} read as zero and are not written"
            return {"fix": f"give the corner of a tile of shape {shape}: {name}[{corner}]; {outside}"}
    return {}


def apart(op: str, source: Region, to: Region, aligned: bool = True) -> Region:
    """Return the source, or a copy if the op would overwrite elements before reading them.

    Parameters
    ----------
    aligned
        The op reads exactly the elements that it writes, so equal regions need no copy.
    """
    if disjoint(source, to):
        return source
    if aligned and source.buffer.var.same_as(to.buffer.var) and _equal(source, to):
        return source
    builder: Builder = current(f"T.{op}")
    shape = static_shape(op, "src", source)
    scope = source.scope if source.scope in ("shared", "local") else "local.fragment"
    name = builder.unique(f"{source.buffer.name}_kept")
    from tile_core.compat.tvm import tirx

    extents = [int(nodes.as_int(simplify(to_index(e)))) for e in source.extents]
    var = tirx.decl_buffer(extents, source.dtype.container, name, scope=scope, layout=None)
    builder.emit(tirx.AllocBuffer(var, {}, builder.span()))
    kept = Region(Buffer(var, extents, source.dtype, scope, name), [0] * len(extents), extents, source.kept)
    assert static_shape(op, "src", kept) == shape
    emit("copy", [source, kept], [kept], {HINTS: {}})
    return kept


def _equal(a: Region, b: Region) -> bool:
    return all(difference(x, y) == 0 for x, y in zip(a.mins, b.mins, strict=True))


def emit(op: str, args: Sequence[Region | Value], writes: Sequence[Region], attrs: Attrs | None = None) -> None:
    """Emit a tile op at the user's line, after binding values that read ``writes``."""
    from tile_core.compat.tvm import tirx

    builder: Builder = current(f"T.{op}")
    if builder.threads is None:
        raise OutsideLaunch(op=op)
    for region in writes:
        if region.buffer.scope == "local.var":
            raise WritesReadOnly(op=op, name=region.buffer.name)
        if region.buffer.temporary:
            raise NotATile(op=op, role="the destination", found="an expression")
    if any(r.is_empty for r in writes):
        return  # nothing is written
    for operand in args if writes else ():
        if isinstance(operand, Region) and operand.is_empty:
            raise EmptyOperand(op=op, found=repr(operand))
    builder.materialise([r.buffer.var for r in writes])
    if builder.requires:
        attrs = {**(attrs or {}), REQUIRES: builder.requires}
    attrs = in_region(op, attrs, builder.level)
    if builder.called is not None:
        attrs = {**(attrs or {}), CALLED: list(builder.called)}
    ir_args = [a.ir() if isinstance(a, Region) else a.expr if isinstance(a, Value) else a for a in args]
    builder.emit(tirx.Evaluate(nodes.tile_call(op, ir_args, attrs), builder.span()))


def in_region(op: str, attrs: Attrs | None, level: str) -> Attrs | None:
    """Return the attributes of an op in a region of numerics.

    Only ops that combine elements have a level; ``""`` is the level outside of regions.
    """
    from tile_core.ops.registry import OPS

    if not level or not (OPS[op].accumulates or (level == STRICT and op.startswith("atomic"))):
        return attrs
    return {**(attrs or {}), NUMERICS: level}


@contextmanager
def requires(variants: str) -> Iterator[None]:
    """Refuse emitted inner ops on targets without a variant of this name prefix.

    For names that a package adds to the language for a kind of hardware, and that are the language's own ops besides.
    """
    builder: Builder = current("a tile op")
    before, builder.requires = builder.requires, variants
    try:
        yield
    finally:
        builder.requires = before


@contextmanager
def called(name: str, instead: str = "") -> Iterator[None]:
    """Make errors of inner ops and of their variants name the user's call.

    Parameters
    ----------
    name
        Of the call: ``"T.fast_gemm"``.
    instead
        What the user may write where it does not fit, ``"write T.gemm"``.
    """
    builder: Builder = current(name)
    before, builder.called = builder.called, (name, instead)
    try:
        with naming(name.removeprefix("T.")):
            yield
    finally:
        builder.called = before


def scalar(x: object, dtype: DTypeLike) -> Value:
    """Return a scalar operand converted to ``dtype``, as a value."""
    from tile_core.values.constants import constant
    from tile_core.values.promotion import check_fits
    from tile_core.values.scalar import is_python
    from tile_core.values.value import cast

    if is_python(x) and (isinstance(x, bool) or dtype != "bool"):
        if not isinstance(x, bool) and dtype.is_narrow:
            check_fits(x, dtype)
        return constant(x, dtype)
    return cast(x if isinstance(x, Value) else as_value(x, _literal_type(x, dtype)), dtype)


def moves_exactly(op: str, source: Region, to: Region) -> None:
    """Refuse moves to ``tfloat32`` that would round: its registers hold any ``float32``.

    Raises
    ------
    BadElementType
        If the source is wider.
    """
    src = source.dtype
    if to.dtype.is_reduced and not holds(to.dtype, src):
        legal = f"{src}; T.copy, and stores of elements, round to {to.dtype}"
        raise BadElementType(op=op, role="dst", found=to.dtype, legal=legal)


def holds(to: DType, dtype: DType) -> bool:
    """Whether a float type holds all numbers of another type."""
    if dtype.is_float:
        return dtype.exponent <= to.exponent and dtype.mantissa <= to.mantissa
    return dtype.bits <= to.mantissa


def flag(op: str, name: str, x: object) -> bool:
    """Return a compile-time flag.

    Raises
    ------
    BadAttribute
        If it is neither a bool nor 0 or 1.
    """
    if checks.is_flag(x):
        return bool(x)
    raise BadAttribute(op=op, name=name, found=named(x), legal="True or False, known while the kernel is traced")


def integer(op: str, name: str, x: object, low: int, high: int = 2**31 - 1) -> int:
    """Return a compile-time integer.

    Raises
    ------
    BadAttribute
        If it is not a Python integer from ``low`` to ``high``.
    """
    number = checks.python_int(x)
    if number is not None and low <= number <= high:
        return number
    top = "" if high == 2**31 - 1 else f" and at most {high}"
    raise BadAttribute(op=op, name=name, found=named(x), legal=f"a Python integer of at least {low}{top}")


class named:
    """An argument of any type as messages show it: short, and on one line."""

    def __init__(self, x: object) -> None:
        self.x = x

    def __repr__(self) -> str:
        return checks.shown(self.x)


def _literal_type(x: object, dtype: DType) -> DType | None:
    """Return the type of an operand of another library; ``None`` for its own.

    The type decides whether the operand fits.
    """
    return None if isinstance(x, Buffer) or not dtype.is_computed or dtype == "bool" else dtype


def _describe(x: object) -> str:
    if isinstance(x, Value):
        return f"a computed {x.dtype} value"
    return f"{x!r}" if isinstance(x, (int, float, str, type(None))) else f"an object of type {type(x).__name__}"
