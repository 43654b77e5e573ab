"""``T.copy(src, dst)``: element copy between any two scopes, with conversion."""

from __future__ import annotations

from tile_core.compat.types import Expr, Span, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import BadAttribute
from tile_core.ir import nodes
from tile_core.ir.attributes import COALESCED_WIDTH, HINTS, ROUND, VARIANT, AttrDict
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.values import checks
from tile_core.values.value import Region, Tile, Value


def copy(
    src: Tile, dst: Tile, *, coalesced_width: int | None = None, variant: str | None = None, **hints: object
) -> None:
    """Copy a tile: ``dst[...] = src[...]``, converted to the element type of ``dst``.

    Parameters
    ----------
    src, dst
        A buffer, a slice, or one element, which is the corner of a tile whose extents come from the other side.
        Any two scopes. Extents of 1 are left out when shapes are compared.
    coalesced_width
        Elements per vector access that the lowering should try; a hint, never an error.
    variant
        Name of the lowering variant to force.
    **hints
        ``disable_tma``, ``eviction_policy``: hints that a target may follow. ``loop_layout`` is refused.

    Raises
    ------
    NotATile, RuntimeExtent, ShapesDiffer, BadAttribute
        If the operands do not describe two tiles of one static shape; for a variant that is no name.

    Notes
    -----
    Elements of ``src`` outside its buffer read as zero (or the buffer's safe value); writes outside are dropped. Where
    both sides overlap, all of ``src`` is read before ``dst`` is written.

    Examples
    --------
    >>> T.copy(A[0, 0], S)
    """
    known = ("disable_tma", "eviction_policy", "loop_layout", "annotations")
    attrs: AttrDict = {HINTS: checks.hints("copy", hints, known)}
    checks.no_loop_layout("copy", hints.get("loop_layout"))
    to, source = _sides(src, dst)
    operands.same_shape("copy", ("src", "dst"), source, to)
    source = operands.apart("copy", source, to)
    if coalesced_width is not None:
        attrs[COALESCED_WIDTH] = operands.integer("copy", "coalesced_width", coalesced_width, 1)
    if variant is not None:
        if not isinstance(variant, str):
            legal = "the name of a variant"
            raise BadAttribute(op="copy", name="variant", found=operands.named(variant), legal=legal)
        attrs[VARIANT] = variant
    if to.dtype.is_reduced and source.dtype != to.dtype:
        attrs[ROUND] = str(to.dtype)
    operands.emit("copy", [source, to], [to], attrs)


def _sides(src: Tile, dst: Tile) -> tuple[Region, Region]:
    src_corner = isinstance(src, Value) and src.element is not None
    dst_corner = isinstance(dst, Value) and dst.element is not None
    if src_corner and not dst_corner:
        to = operands.as_region("copy", "dst", dst)
        return to, operands.as_region("copy", "src", src, like=to)
    source = operands.as_region("copy", "src", src)
    return operands.as_region("copy", "dst", dst, like=source if dst_corner else None), source


def meaning(call: OpCall) -> Stmt:
    """For every index: load, convert, store."""
    src, dst = call.args
    return elementwise_copy(src, dst, round_to=call.attrs.get(ROUND), span=call.span)


def elementwise_copy(src: View, dst: View, *, round_to: str | None = None, span: Span = None) -> Stmt:
    """Return the loops of a copy."""

    def body(*indices: Expr) -> Stmt:
        value = nodes.load(src.buffer, src.spread(indices))
        if round_to is not None:
            from tile_core.numerics.exprs import round_tfloat32_expr

            value = round_tfloat32_expr(value)
        return nodes.store(dst.buffer, convert(value, dst.dtype), dst.spread(indices), span)

    return nodes.nest(dst.shape, body, "parallel", span=span)


def convert(value: Expr, dtype: str) -> Expr:
    """Return an IR value converted between element types; two narrow floats go through ``float32``."""
    source = nodes.dtype_of(value)
    if source == dtype:
        return value
    if DTYPES[source].is_narrow and (DTYPES[dtype].is_narrow or not DTYPES[dtype].is_float):
        value = nodes.cast(value, "float32")
    if dtype == "bool":
        from tile_core.compat.tvm import tirx

        return tirx.NE(value, nodes.zero(nodes.dtype_of(value)))
    return nodes.cast(value, dtype)


OP = TileOp("copy", reads=(0,), writes=(1,), meaning=meaning, slots=(0,))
