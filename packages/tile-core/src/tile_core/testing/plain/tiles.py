"""The tile ops that kernels of scalar and thread code use beside it: element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.compat.types import DTypeLike
from tile_core.numerics import oracles
from tile_core.testing.plain.memory import Memory, Region, Variable
from tile_core.testing.plain.numbers import Number, convert, extreme, is_float, number


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


def _reduction(kind: str) -> Any:
    def combine(src: Any, dst: Any, dim: int = -1, clear: bool = True, nan_propagate: bool = False) -> None:
        to = as_region(dst)
        data = values_of(src)
        before = None if clear else values_of(dst).reshape(tuple(np.delete(data.shape, dim)))
        result = oracles.reduce(kind, data, dim, before=before, nan_propagate=nan_propagate)
        write_values(to, result.reshape(to.extents))

    return combine


def reduce(src: Any, dst: Any, kind: str, dim: int = -1, clear: bool = True, **hints: Any) -> None:
    """Reduce by the name of the operation."""
    OPS[f"reduce_{kind}"](src, dst, dim, clear, **hints)


def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Running sums."""
    write_values(as_region(src if dst is None else dst), oracles.cumsum(values_of(src), dim, reverse))


def cummax(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, **hints: Any) -> None:
    """Running maxima."""
    write_values(as_region(src if dst is None else dst), oracles.cummax(values_of(src), dim, reverse))


def _atomic(kind: str) -> Any:
    def update(dst: Any, value: Any, memory_order: Any = None, return_prev: bool = False, **hints: Any) -> Any:
        def combined(old: Number, new: Any) -> Any:
            new = convert(number(new), old.dtype)
            return old + new if kind == "add" else extreme(old, new, 1 if kind == "max" else -1, False)

        if isinstance(dst, Number):
            buffer, at = dst.element
            old = buffer.read(at)
            buffer[at] = combined(old, value)
            return old if return_prev else None
        to = as_region(dst)
        tile = isinstance(value, (Memory, Region))
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


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Number:
    """Return an element."""
    buffer, at = src.element
    found: Number = buffer.read(at)
    return found


def atomic_store(dst: Any, value: Any, memory_order: str = "seq_cst") -> None:
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
    """Return an operand of a tile op as a region: a whole buffer, a slice, or an element."""
    if isinstance(x, Region):
        return x
    if isinstance(x, Number):
        buffer, at = x.element
        return Region(buffer, list(at), [1] * len(at))
    if isinstance(x, Variable):
        raise TypeError("a variable is no tile")
    return Region(x, [0] * len(x.shape), list(x.shape))


def _corner(x: Number, like: Region) -> Region:
    """Return the region at a corner: the last extents of the other side that are not 1."""
    buffer, at = x.element
    extents = [e for e in like.extents if e != 1] or [1]
    if len(like.extents) == len(at):
        extents = like.extents
    return Region(buffer, list(at), [*([1] * (len(at) - len(extents))), *extents[-len(at) :]])


def values_of(x: Any) -> Any:
    """Return a tile as float64 or int64, without extents of 1 beyond two dimensions."""
    region = as_region(x)
    numbers = region.read()
    exact = np.float64 if is_float(region.buffer.dtype) else np.int64
    flat = np.array([n.value for n in numbers.reshape(-1)]).astype(exact)
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
    "reshape": lambda buffer, shape: view(buffer, shape), "gemm": gemm, "gemm_v2": gemm,
    "reduce": reduce, "cumsum": cumsum,
    "cummax": cummax, "atomic_load": atomic_load, "atomic_store": atomic_store, "dp4a": dp4a,
    "atomic_addx2": _vector(2), "atomic_addx4": _vector(4),
    **{f"atomic_{k}": _atomic(k) for k in ("add", "max", "min")},
    **{f"reduce_{k}": _reduction(k) for k in ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")},
}  # fmt: skip
