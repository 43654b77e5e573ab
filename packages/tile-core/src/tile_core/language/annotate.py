"""Annotations: layouts of buffers, fills of out-of-range reads, and hints for the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tile_core.ir.attributes import L2_HIT_RATIO, RASTERIZATION, SAFE_VALUES

if TYPE_CHECKING:
    from tile_core.layout import LayoutMap

from collections.abc import Callable, Mapping

from tile_core.compat.tvm import tirx
from tile_core.errors.language import BadAnnotation
from tile_core.errors.lowering import LayoutUnsupported
from tile_core.ir import nodes
from tile_core.values.builder import current, untraced
from tile_core.values.checks import flag, shown
from tile_core.values.constants import constant
from tile_core.values.scalar import is_python
from tile_core.values.value import Buffer, Scalar, Value, as_value

Annotated = TypeVar("Annotated")


def annotate_layout(layouts: Mapping[Buffer, LayoutMap | Callable[..., object]]) -> None:
    """Give buffers a layout: ``T.annotate_layout({A_shared: make_swizzled_layout(A_shared)})``.

    Raises
    ------
    BadAnnotation
        If a key is not a buffer, a buffer already has a layout or has runtime extents, the shapes differ, or a
        tensor's layout gives anything but places in memory.
    LayoutError
        If two elements would share an address, or a function cannot locate an element at run time.
    LayoutUnsupported
        If a tensor's layout has gaps.
    """
    builder = current("T.annotate_layout")
    for buffer, layout in _items("annotate_layout", layouts):
        if any(buffer is b for b in builder.layouts):
            found, instead = f"{buffer.name} has a layout already", "annotate a buffer once"
            raise BadAnnotation(what="annotate_layout", found=found, instead=instead)
        builder.layouts[buffer] = _checked(buffer, layout)


def _checked(buffer: Buffer, layout: LayoutMap | Callable[..., object]) -> LayoutMap:
    from tile_core.layout import CallableLayout, Layout, LayoutMap, prove
    from tile_core.layout.expressions import memory_index

    unknown = [e for e in buffer.shape if not isinstance(e, int)]
    extents = tuple(e for e in buffer.shape if isinstance(e, int))
    if unknown:
        extent = as_value(unknown[0]).expr
        found = f"{buffer.name} has the extent {extent}, which calls decide, and a layout has constant ones"
        instead = "leave the layout out, or annotate the tile that the tensor is copied to"
        raise BadAnnotation(what="annotate_layout", found=found, instead=instead)
    if callable(layout) and not isinstance(layout, LayoutMap):
        # An index function: (i, j) -> the memory index.
        layout = Layout(extents, layout)
    if not isinstance(layout, LayoutMap):
        found = f"{type(layout).__name__} for {buffer.name} is not a layout"
        instead = "use a value of tile.layout, or T.Layout(shape, function)"
        raise BadAnnotation(what="annotate_layout", found=found, instead=instead)
    shape = tuple(layout.shape)
    if shape != tuple(buffer.shape):
        found = f"the layout of shape {shape} does not fit {buffer.name} of shape {tuple(buffer.shape)}"
        raise BadAnnotation(what="annotate_layout", found=found, instead="make a layout of the buffer's shape")
    if buffer.scope == "global" and not set(layout.axes) <= {"memory"}:
        found = f"{buffer.name} is in global memory, but its layout gives {', '.join(layout.axes)}"
        raise BadAnnotation(what="annotate_layout", found=found, instead="make the layout with T.Layout")
    if isinstance(layout, (CallableLayout, Layout)) and set(layout.axes) <= {"memory"}:
        with untraced():
            memory_index(layout, [nodes.fresh(f"i{d}") for d in range(len(shape))])
    if buffer.scope == "global" and layout.span != layout.numel:
        raise LayoutUnsupported(buffer=buffer.name, span=layout.span, size=layout.numel)
    proof = prove(layout)
    if proof.collision is not None:
        raise proof.collision.error(shape)
    return layout


def annotate_safe_value(values: Mapping[Buffer, Scalar]) -> None:
    """Set the value of out-of-range reads of tensors instead of 0: ``T.annotate_safe_value({A: -1.0})``.

    Values are Python numbers, or constants of the language such as ``-T.infinity("float32")``.
    """
    builder = current("T.annotate_safe_value")
    safe = builder.attrs.setdefault(SAFE_VALUES, {})
    for buffer, value in _items("annotate_safe_value", values):
        if isinstance(value, Value) and isinstance(value.expr, (tirx.IntImm, tirx.FloatImm)):
            value = value.expr.value
        if not is_python(value):
            found, instead = f"the value for {buffer.name} is not known while tracing", "use a constant"
            raise BadAnnotation(what="annotate_safe_value", found=found, instead=instead)
        safe[str(buffer.var.name)] = constant(value, buffer.dtype).expr


def annotate_l2_hit_ratio(ratios: Mapping[Buffer, float]) -> None:
    """Set the fraction of a tensor to keep in the last-level cache; a hint."""
    builder = current("T.annotate_l2_hit_ratio")
    table = builder.attrs.setdefault(L2_HIT_RATIO, {})
    for buffer, ratio in _items("annotate_l2_hit_ratio", ratios):
        if not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
            found, instead = f"the ratio for {buffer.name} is {ratio!r}", "use a number from 0 to 1"
            raise BadAnnotation(what="annotate_l2_hit_ratio", found=found, instead=instead)
        table[str(buffer.var.name)] = float(ratio)


def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Rasterize blocks in panels for better cache use; a hint without effect on results.

    Parameters
    ----------
    panel_size
        Blocks per panel, at least 1.
    order
        ``"row"`` or ``"column"``.
    enable
        ``False``: no effect.
    """
    builder = current("T.use_swizzle")
    if not isinstance(panel_size, int) or isinstance(panel_size, bool) or not 1 <= panel_size < 2**31:
        found = f"panel_size is {shown(panel_size)}, expected an int from 1 to {2**31 - 1}"
        raise BadAnnotation(what="use_swizzle", found=found, instead="nearest legal value: 1")
    order = "column" if isinstance(order, str) and order == "col" else order
    if not isinstance(order, str) or order not in ("row", "column"):
        instead = 'use "row" or "column"'
        raise BadAnnotation(what="use_swizzle", found=f"order is {shown(order)}", instead=instead)
    if flag("use_swizzle", "enable", enable):
        builder.attrs[RASTERIZATION] = {"panel": panel_size, "order": order}


def _items(what: str, mapping: Mapping[Buffer, Annotated]) -> list[tuple[Buffer, Annotated]]:
    if not isinstance(mapping, Mapping):
        found, instead = f"found {type(mapping).__name__}", "pass a dict {buffer: value}"
        raise BadAnnotation(what=what, found=found, instead=instead)
    for key in mapping:
        if not isinstance(key, Buffer):
            found, instead = f"a key is {key!r}, expected a buffer of this kernel", "use the buffer object as the key"
            raise BadAnnotation(what=what, found=found, instead=instead)
    return list(mapping.items())
