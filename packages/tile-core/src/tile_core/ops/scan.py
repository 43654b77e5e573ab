"""Prefix sums, products and maxima along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DType
from tile_core.errors.ops import BadElementType
from tile_core.ir import nodes
from tile_core.ir.attributes import DIM, KIND, NAN_PROPAGATE, REVERSE, Attrs
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, axis, combiner, neutral

if TYPE_CHECKING:
    from tile_core.values.value import Tile


def cumsum(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive prefix sum along ``dim``.

    ``dst[.., i, ..] = src[.., 0, ..] + … + src[.., i, ..]``.

    Parameters
    ----------
    src, dst
        Tiles of one shape, in any scopes; ``dst`` defaults to ``src``.
    dim
        The dimension to scan; negative ones count from the end.
    reverse
        Sum from the end instead.

    Raises
    ------
    BadDim, BadElementType, ShapesDiffer, NotATile, RuntimeExtent
        If operands and dimension do not fit together.

    Examples
    --------
    >>> T.cumsum(S, dim=1)
    """
    _emit("cumsum", "sum", src, dst, dim, reverse, False)


def cumprod(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive prefix product along ``dim`` (see ``cumsum``)."""
    _emit("cumprod", "prod", src, dst, dim, reverse, False)


def cummax(
    src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False, nan_propagate: bool = False
) -> None:
    """Inclusive prefix maximum along ``dim`` (see ``cumsum``); NaN is left out, or stays with ``nan_propagate``."""
    _emit("cummax", "max", src, dst, dim, reverse, nan_propagate)


def _emit(op: str, kind: str, src: Tile, dst: Tile | None, dim: int, reverse: bool, nan: bool) -> None:
    flags = operands.flag(op, "reverse", reverse), operands.flag(op, "nan_propagate", nan)
    source = operands.as_region(op, "src", src)
    out = source if dst is None else operands.as_region(op, "dst", dst)
    operands.same_shape(op, ("src", "dst"), source, out)
    at = axis(op, source, dim)
    check_types(op, kind, source.dtype, out.dtype)
    source = operands.apart(op, source, out)
    attrs: Attrs = {KIND: kind, DIM: source.kept[at], REVERSE: flags[0], NAN_PROPAGATE: flags[1]}
    operands.emit("scan", [source, out], [out], attrs)


def check_types(op: str, kind: str, src: DType, dst: DType) -> None:
    """Refuse element types that a kind does not scan.

    Raises
    ------
    BadElementType
        With the legal ones.
    """
    if src.is_float != dst.is_float or dst.is_narrow or dst == "bool":
        legal = "floats of 16 bits or more" if src.is_float else "integers"
        raise BadElementType(op=op, role="dst", found=dst, legal=legal)
    if dst.is_reduced and not (kind == "max" and operands.holds(dst, src)):
        legal = f"{dst.container}, which T.copy rounds to {dst}"
        raise BadElementType(op=op, role="dst", found=dst, legal=legal)


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics.

    acc = neutral; for every k in order: acc = combine(acc, src[.., k, ..]); dst[.., k, ..] = acc.
    """
    src, dst = call.args
    kind, dim = str(call.attrs[KIND]), int(call.attrs[DIM])
    extent = src.extents[dim]
    acc = accumulator(dst.dtype)
    combine = combiner(kind, acc, bool(call.attrs[NAN_PROPAGATE]))
    total, allocate = nodes.alloc([1], acc, "acc", "local")
    outer = [d for d, e in enumerate(src.extents) if e != 1 and d != dim]
    shape_dims = [d for d, e in enumerate(src.extents) if e != 1] or [len(src.extents) - 1]

    def body(*indices: Expr) -> Stmt:
        k = nodes.fresh("k")
        position = extent - 1 - k if call.attrs[REVERSE] else k
        if extent == 1:
            position = nodes.int_const(0)
        by_dim = dict(zip(outer, indices, strict=False))
        by_dim[dim] = position
        compact = [by_dim.get(d, nodes.int_const(0)) for d in shape_dims]
        value = convert(nodes.load(src.buffer, src.spread(compact)), acc)
        step = nodes.seq([
            nodes.store(total, combine(total[0], value), [0]),
            nodes.store(dst.buffer, convert(total[0], dst.dtype), dst.spread(compact), call.span),
        ])  # fmt: skip
        return nodes.seq([allocate, nodes.store(total, neutral(kind, acc), [0]), nodes.for_loop(k, extent, step)])

    return nodes.nest([src.extents[d] for d in outer] or [1], body, "parallel", span=call.span)


OP = TileOp("scan", reads=(0,), writes=(1,), meaning=meaning, slots=(0,), accumulates=True)
