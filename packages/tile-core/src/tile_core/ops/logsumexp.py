"""``T.logsumexp``: the logarithm of the sum of exponentials, composed of other ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.errors.ops import BadDestination, BadElementType
from tile_core.ir import nodes
from tile_core.ops import operands
from tile_core.ops.base import View
from tile_core.ops.reduce import axis, reduce_max, reduce_sum
from tile_core.values import math
from tile_core.values.allocation import allocate
from tile_core.values.builder import current
from tile_core.values.scalar import cast
from tile_core.values.value import Buffer, Region, Tile, Value

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def logsumexp(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Logarithm of the sum of exponentials along a dimension: ``dst[i] = log(sum_k exp(src[i, k]))``.

    Parameters
    ----------
    src
        Source tile of floats of 16 bits or more.
    dst
        Destination of such floats, without the dimension or with extent 1 there.
    dim
        The dimension; negative ones count from the end.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    The largest element is taken out of the sum first, so that nothing overflows. A line of -infinity gives -infinity,
    one with +infinity +infinity, one with NaN NaN. It is computed in ``float32``, in ``float64`` where an operand is.

    Examples
    --------
    >>> T.logsumexp(F, v, dim=1)
    """
    source, out = operands.as_region("logsumexp", "src", src), operands.as_region("logsumexp", "dst", dst)
    for role, region in (("src", source), ("dst", out)):
        if region.dtype not in _FLOATS:
            raise BadElementType(op="logsumexp", role=role, found=region.dtype, legal=", ".join(_FLOATS))
    at = axis("logsumexp", source, dim)
    _, found = (operands.static_shape("logsumexp", r, x) for r, x in (("src", source), ("dst", out)))
    shape = tuple(int(e) for e in source.shape)
    rest = (*shape[:at], *shape[at + 1 :])
    if found != (tuple(e for e in rest if e != 1) or (1,)):
        keep = (*shape[:at], 1, *shape[at + 1 :])
        raise BadDestination(op="logsumexp", found=out.shape, src=shape, dim=dim, expected=rest or (1,), keep=keep)
    wide = "float64" if "float64" in (source.dtype, out.dtype) else "float32"
    top, total = (allocate("logsumexp", rest or (1,), wide, "local.fragment", n) for n in ("top", "total"))
    powers = allocate("logsumexp", shape, wide, "local.fragment", "powers")
    reduce_max(source, top, dim=at, nan_propagate=True)
    wide_dims = [d for d, e in enumerate(shape) if e != 1]

    def finite(*i: Expr) -> Value:
        x = _at(top, i)
        condition = _number(math.isfinite(x))
        return Value(tirx.Select(condition.expr, x.expr, nodes.zero(wide)), x.dtype)

    def power(*i: Expr) -> Value:
        x = cast(_at(source, i), top.dtype)
        others = [k for d, k in zip(wide_dims, i, strict=False) if d != at]
        return _number(math.exp(x - _at(top, others)))

    def result(*i: Expr) -> Value:
        return _number(math.log(_at(total, i))) + _at(top, i)

    _each(top, finite)
    _each(powers, power)
    reduce_sum(powers, total, dim=at)
    _each(out, result)


def _number(x: object) -> Value:
    assert isinstance(x, Value)
    return x


def _at(tile: Buffer | Region, indices: Sequence[Expr]) -> Value:
    """Return the element of a tile at an index per extent that is not 1."""
    region = tile.whole() if isinstance(tile, Buffer) else tile
    view = View.of(region.ir())
    return Value(nodes.load(view.buffer, view.spread(list(indices) or [nodes.int_const(0)])), region.dtype)


def _each(tile: Buffer | Region, body: Callable[..., Value]) -> None:
    """Emit a parallel loop that stores a value in every element of a tile."""
    builder = current("T.logsumexp")
    region = tile.whole() if isinstance(tile, Buffer) else tile
    view, span = View.of(region.ir()), builder.span()
    extents = [e for e in view.extents if e != 1]

    def store(*indices: Expr) -> Stmt:
        inside = indices if extents else ()
        value = cast(body(*inside), region.dtype)
        return nodes.store(view.buffer, value.expr, view.spread(list(inside) or [nodes.int_const(0)]), span)

    builder.materialise([region.buffer.var])
    builder.emit(nodes.nest(extents or [1], store, "parallel", span=span))
