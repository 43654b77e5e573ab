"""Tile ops used beside scalar and thread code, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.compat.types import DTypeLike
from tile_core.testing import oracles
from tile_core.testing.plain.memory import Memory, Region, Variable, allocate
from tile_core.testing.plain.numbers import Number, arith, convert, extreme, is_float, number
from tile_core.testing.plain.whole import Whole


def copy(src: Any, dst: Any, **hints: Any) -> None:
    """Copy a tile to another: all is read first."""
    if isinstance(src, Number) and isinstance(dst, Number):
        a, b = (Region(x.element[0], list(x.element[1]), [1] * len(x.element[1])) for x in (src, dst))
    elif isinstance(dst, Number):
        a = as_region(src)
        b = _corner(dst, a)
    elif isinstance(src, Number):
        b = as_region(dst)
        a = _corner(src, b)
    else:
        a, b = as_region(src), as_region(dst)
    b.write(a.read())


def fill(dst: Any, value: Any) -> None:
    """Store one value everywhere."""
    to = as_region(dst)
    made = np.empty(to.extents, object)
    for at in np.ndindex(*to.extents):
        made[at] = value
    to.write(made)


def clear(dst: Any) -> None:
    """Store zeros."""
    fill(dst, 0)


def transpose(src: Any, dst: Any) -> None:
    """Exchange the last two dimensions."""
    as_region(dst).write(np.swapaxes(as_region(src).read(), -1, -2))


def view(buffer: Memory, shape: Any = None, dtype: DTypeLike = None) -> Memory:
    """Return the same bytes as another shape or type."""
    from tile_core.dtypes import DTYPES

    kind = str(dtype or buffer.dtype)
    flat = buffer.data if buffer.data.dtype == object else buffer.data.reshape(-1).view(DTYPES[kind].numpy())
    if shape is None:
        shape = (*buffer.shape[:-1], -1)
    dims = tuple(int(d) for d in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    return Memory(flat.reshape(dims), kind, buffer.scope)


def gemm(
    A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, clear_accum: bool = False,
    **hints: Any,
) -> None:  # fmt: skip
    """Multiply and add: exact, then rounded once."""
    a, b, c = (values_of(x) for x in (A, B, C))
    to = as_region(C)
    result = oracles.gemm(a, b, c, transpose_a=transpose_A, transpose_b=transpose_B, clear_accum=clear_accum)
    write_values(to, result.reshape(to.extents))


def gemm_sp(
    A_sparse: Any, E: Any, B: Any, C: Any, transpose_A: bool = False, transpose_E: bool = False,
    transpose_B: bool = False, clear_accum: bool = False, **hints: Any,
) -> None:  # fmt: skip
    """Multiply the dense matrix that kept values and metadata stand for, and add."""
    from tile_core.dtypes import DTYPES

    kept, words = (
        np.asarray(x.T if t else x) for x, t in ((values_of(A_sparse), transpose_A), (values_of(E), transpose_E))
    )
    group = 2 if DTYPES[as_region(A_sparse).buffer.dtype].bits == 32 else 4
    each = group // 2
    nibbles = DTYPES[as_region(E).buffer.dtype].bits // 4
    dense = np.zeros((len(kept), 2 * kept.shape[1]), kept.dtype)
    for i, j in np.ndindex(*kept.shape):
        code = int(words[i, j // each // nibbles]) >> j // each % nibbles * 4 & 15
        index = code >> 1 & 1 if each == 1 else code >> 2 * (j % 2) & 3
        dense[i, j // each * group + index] += kept[i, j]
    to = as_region(C)
    given = dense, values_of(B), values_of(C)
    result = oracles.gemm(*given, transpose_b=transpose_B, clear_accum=clear_accum)
    write_values(to, result.reshape(to.extents))


def _reduction(kind: str) -> Any:
    def combine(src: Any, dst: Any, dim: int = -1, clear: bool = True, nan_propagate: bool = False) -> None:
        to = as_region(dst)
        data = values_of(src) if kind in ("any", "all") else _operands(src, dst)
        before = None if clear else values_of(dst).reshape(tuple(np.delete(data.shape, dim)))
        result = oracles.reduce(kind, data, dim, before=before, nan_propagate=nan_propagate)
        write_values(to, result.reshape(to.extents))

    return combine


def reduce(src: Any, dst: Any, kind: str, dim: int = -1, clear: bool = True, **hints: Any) -> None:
    """Reduce by the name of the operation."""
    OPS[f"reduce_{kind}"](src, dst, dim, clear, **hints)


def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Cumulative addition."""
    to = src if dst is None else dst
    write_values(as_region(to), oracles.cumsum(_operands(src, to), dim, reverse))


def cumprod(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Running products."""
    to = src if dst is None else dst
    write_values(as_region(to), oracles.cumprod(_operands(src, to), dim, reverse))


def cummax(
    src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, nan_propagate: bool = False, **hints: Any
) -> None:  # fmt: skip
    """Running maxima."""
    to = src if dst is None else dst
    write_values(as_region(to), oracles.cummax(_operands(src, to), dim, reverse, nan_propagate))


#: The named reductions.
_KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor", "prod", "any", "all")
#: Updates that an operator of numbers is.
_OPERATORS = {"add": "+", "and": "&", "or": "|", "xor": "^"}


def _folded(function: Any, src: Any, identity: Any, dim: int, reverse: bool, several: bool) -> Any:
    """Return each component's running states along the last axis, and the axis order."""
    tiles = [np.moveaxis(_squeezed(as_region(x).read()), dim, -1) for x in src]
    if reverse:
        tiles = [np.flip(t, -1) for t in tiles]
    made = [np.empty(t.shape, object) for t in tiles]
    for at in np.ndindex(tiles[0].shape[:-1]):
        state = tuple(identity)
        for k in range(tiles[0].shape[-1]):
            element = (*at, k)
            new = tuple(t[element] for t in tiles)
            state = function(state, new) if several else (function(state[0], new[0]),)
            for m, x in zip(made, state, strict=True):
                m[element] = x
    return made


def _squeezed(x: Any) -> Any:
    return x if x.ndim <= 2 else x.reshape([e for e in x.shape if e != 1])


def _typed(identity: Any, dst: Any) -> list[Number]:
    return [convert(x, as_region(d).buffer.dtype) for x, d in zip(identity, dst, strict=True)]


def reduce_with(function: Any, src: Any, dst: Any, dim: int = -1, *, identity: Any) -> None:
    """Reduce with a function."""
    several = isinstance(src, tuple)
    src, dst, identity = (x if several else (x,) for x in (src, dst, identity))
    src = [_converted(s, as_region(d).buffer.dtype) for s, d in zip(src, dst, strict=True)]
    for made, d in zip(_folded(function, src, _typed(identity, dst), dim, False, several), dst, strict=True):
        to = as_region(d)
        to.write(made[..., -1].reshape(to.extents))


def scan_with(function: Any, src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, *, identity: Any) -> None:
    """Scan with a function."""
    several = isinstance(src, tuple)
    dst = src if dst is None else dst
    src, dst, identity = (x if several else (x,) for x in (src, dst, identity))
    src = [_converted(s, as_region(d).buffer.dtype) for s, d in zip(src, dst, strict=True)]
    for made, d in zip(_folded(function, src, _typed(identity, dst), dim, reverse, several), dst, strict=True):
        to = as_region(d)
        to.write(np.moveaxis(np.flip(made, -1) if reverse else made, -1, dim).reshape(to.extents))


def _operands(src: Any, dst: Any) -> Any:
    """Return the values of a tile that accumulate into another one.

    Integers wrap to its type first.
    """
    dtype = as_region(dst).buffer.dtype
    return values_of(src if is_float(dtype) else _converted(src, dtype))


def _converted(src: Any, dtype: str) -> Memory:
    """Return a copy of a tile in another type."""
    region = as_region(src)
    made = allocate(tuple(region.extents), dtype, "local")
    as_region(made).write(region.read())
    return made


def _arg_reduction(kind: str) -> Any:
    def op(src: Any, dst: Any, dim: int = -1) -> None:
        write_values(as_region(dst), getattr(np, kind)(values_of(src), axis=dim))

    return op


def _in_order(src: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    """Return the values, and their indices in order."""
    x = values_of(src)
    rank = np.unique(np.where(x != x, np.inf, x), return_inverse=True)[1].reshape(x.shape) * 2 + (x != x)
    return x, np.argsort(-rank if largest else rank, axis=dim, kind="stable")


def sort(src: Any, dst: Any = None, dim: int = -1, descending: bool = False) -> None:
    """Sort values."""
    x, order = _in_order(src, dim, descending)
    to = as_region(src if dst is None else dst)
    write_values(to, np.take_along_axis(x, order, dim).reshape(to.extents))


def topk(src: Any, values: Any, indices: Any, dim: int = -1, largest: bool = True) -> None:
    """Find the first elements of the order."""
    x, order = _in_order(src, dim, largest)
    order = order.take(range(as_region(values).extents[dim]), axis=dim)
    write_values(as_region(values), np.take_along_axis(x, order, dim))
    write_values(as_region(indices), order)


def _atomic(kind: str) -> Any:
    def update(dst: Any, value: Any, memory_order: Any = None, return_prev: bool = False, **hints: Any) -> Any:
        def combined(old: Number, new: Any) -> Any:
            new = convert(number(new), old.dtype)
            if kind in _OPERATORS:
                return arith(_OPERATORS[kind], old, new)
            return extreme(old, new, 1 if kind == "max" else -1, False)

        tile = isinstance(value, (Memory, Region))
        if isinstance(dst, Number) and not (tile and as_region(value).extents):
            buffer, at = dst.element
            old = buffer.read(at)
            buffer[at] = combined(old, value)
            return old if return_prev else None
        to = _corner(dst, as_region(value)) if isinstance(dst, Number) else as_region(dst)
        news = as_region(value).read().reshape(to.extents) if tile else np.full(to.extents, None, object)
        olds = to.read()
        made = np.empty(to.extents, object)
        for at in np.ndindex(*to.extents):
            made[at] = combined(olds[at], news[at] if tile else value)
        to.write(made)
        return None

    return update


def _vector(width: int) -> Any:
    def update(dst: Any, value: Any, **hints: Any) -> None:
        (a, low), (b, start) = dst.element, value.element
        for n in range(width):
            at, by = (*low[:-1], low[-1] + n), (*start[:-1], start[-1] + n)
            a[at] = a.read(at) + convert(b.read(by), a.dtype)

    return update


def atomic_load(src: Any, memory_order: Any = None) -> Number:
    """Return an element."""
    buffer, at = src.element
    found: Number = buffer.read(at)
    return found


def atomic_store(dst: Any, value: Any, memory_order: Any = None) -> None:
    """Store an element."""
    buffer, at = dst.element
    buffer[at] = value


def dp4a(A: Any, B: Any, C: Any) -> None:
    """Add the product of four and four integers."""
    (a, i), (b, j), (c, k) = A.element, B.element, C.element
    total = c.read(k)
    for n in range(4):
        product = int(a.read((*i[:-1], i[-1] + n))) * int(b.read((*j[:-1], j[-1] + n)))
        total = total + convert(product, total.dtype)
    c[k] = total


def as_region(x: Any) -> Region:
    """Return a tile op's operand as a region: a buffer, slice, or element."""
    if isinstance(x, Region):
        return x
    if isinstance(x, Number):
        buffer, at = x.element
        return Region(buffer, list(at), [1] * len(at))
    if isinstance(x, Whole):
        x = x.memory()
    if isinstance(x, Variable):
        raise TypeError("a variable is not a tile")
    return Region(x, [0] * len(x.shape), list(x.shape))


def _corner(x: Number, like: Region) -> Region:
    """Return the region at a corner, with the other side's trailing non-unit extents."""
    buffer, at = x.element
    extents = [e for e in like.extents if e != 1] or [1]
    if len(like.extents) == len(at):
        extents = like.extents
    return Region(buffer, list(at), [*([1] * (len(at) - len(extents))), *extents[-len(at) :]])


def values_of(x: Any) -> Any:
    """Return a tile as float64 or int64, without extents of 1 beyond two dimensions."""
    region = as_region(x)
    numbers = region.read()
    exact = np.float64 if is_float(region.buffer.dtype) else np.uint64 if region.buffer.dtype == "uint64" else np.int64
    flat = np.array([n.value for n in numbers.reshape(-1)], object).astype(exact)
    kept = [e for e in numbers.shape if e != 1 or len(numbers.shape) <= 2]
    return flat.reshape(kept if len(kept) else (1,))


def write_values(to: Region, result: Any) -> None:
    """Convert and store an array of values."""
    made = np.empty(to.extents, object)
    flat = made.reshape(-1)
    for n, x in enumerate(np.asarray(result).reshape(-1).tolist()):
        flat[n] = convert(x, to.buffer.dtype)
    to.write(made)


OPS: dict[str, Any] = {
    "copy": copy, "fill": fill, "clear": clear, "transpose": transpose, "view": view,
    "reshape": lambda buffer, shape: view(buffer, shape), "gemm": gemm, "gemm_v2": gemm, "gemm_sp": gemm_sp,
    "gemm_sp_v2": gemm_sp,     "reduce": reduce, "cumsum": cumsum, "cumprod": cumprod,
    "cummax": cummax, "atomic_load": atomic_load, "atomic_store": atomic_store, "dp4a": dp4a,
    "sort": sort, "topk": topk, "reduce_with": reduce_with, "scan_with": scan_with,
    "argmax": _arg_reduction("argmax"), "argmin": _arg_reduction("argmin"),
    "atomic_addx2": _vector(2), "atomic_addx4": _vector(4),
    **{f"atomic_{k}": _atomic(k) for k in ("add", "max", "min", "and", "or", "xor")},
    **{f"reduce_{k}": _reduction(k) for k in _KINDS},
}  # fmt: skip
