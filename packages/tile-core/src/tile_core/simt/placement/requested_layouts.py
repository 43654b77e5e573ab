"""The layouts that a program asks for, as places of its tiles: obeyed, or refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.errors import InternalError
from tile_core.errors.lowering import FragmentLayoutUnsupported
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout import DigitLayout, Fragment, LayoutMap, StackedLayout, recover
from tile_core.layout.digits import Digit
from tile_core.layout.table import unwrap
from tile_core.simt.distribution import Distribution

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import Block

#: The axes of a thread's number, and what one step along them is; that of a warp is the layout's width.
_WARP_WIDTH = 32


def asked_layouts(body: Any, layouts: Mapping[str, Any], versions: Mapping[Any, Any]) -> dict[Any, LayoutMap]:
    """Return the layouts of shared buffers.

    Parameters
    ----------
    body
        The block's program.
    layouts
        What the user asked for by the name of a buffer.
    versions
        The buffer that stands for another one with a slot per stage of a pipeline, and that one.
    """
    names = {str(new.name): str(old.name) for new, old in versions.items()}
    viewed = {v for d in collect(body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
    found: dict[Any, LayoutMap] = {}
    for alloc in collect(body, tirx.AllocBuffer):
        name, shape = str(alloc.buffer.name), tuple(nodes.shape_of(alloc.buffer))
        layout = layouts.get(names.get(name, name))
        if layout is None or nodes.scope_of(alloc.buffer) != "shared" or "memory" not in layout.axes:
            continue
        if shape == (shape[0], *layout.shape) and name in names:
            layout = StackedLayout(layout, shape[0])
        if tuple(layout.shape) != shape:
            raise InternalError(stage="layouts", detail=f"a layout of shape {layout.shape} for {name} of shape {shape}")
        if alloc.buffer not in viewed:  # those with views are in row-major order, as ``check_layouts`` saw to
            found[alloc.buffer] = layout
    return found


def asked_fragments(body: Any, layouts: Mapping[str, Any], block: Block, ctx: Context) -> dict[Any, Distribution]:
    """Return the distributions of fragments.

    Raises
    ------
    FragmentLayoutUnsupported
        If the block's threads cannot hold a fragment so.
    """
    found = {}
    for alloc in collect(body, tirx.AllocBuffer):
        layout = layouts.get(str(alloc.buffer.name))
        if layout is not None and nodes.scope_of(alloc.buffer) == "local.fragment":
            answer = distribution_of(layout, block.count)
            if isinstance(answer, str):
                raise not_kept(alloc.buffer, answer, ctx, nodes.where_of(alloc))
            found[alloc.buffer] = answer
    return found


def not_kept(buffer: Any, reason: str, ctx: Context, where: Any = None) -> FragmentLayoutUnsupported:
    """Return the error for a fragment whose layout cannot be obeyed."""
    facts = {"buffer": str(buffer.name), "target": ctx.target.text, "reason": reason}
    return FragmentLayoutUnsupported(**facts, where=where)


def distribution_of(layout: LayoutMap, threads: int) -> Distribution | str:
    """Return a user's layout of a fragment on a block of threads, or why there is none.

    Every element is in the thread and in the register that the layout says.
    """
    width = layout.width if isinstance(layout, Fragment) else _WARP_WIDTH
    inner = unwrap(layout)
    digits = inner if isinstance(inner, DigitLayout) else recover(inner)
    groups = None if digits is None else digits.grouped()
    if digits is None or groups is None:
        return "the numbers of thread and register are no sums of terms that each depend on one index alone"
    if digits.offset:
        places = " and ".join(f"{axis} {number}" for axis, number in digits.offset.items())
        return f"its first element lies in {places}, not in number 0"
    dims = tuple(tuple(_on_thread(d, width) for d in group) for group in groups)
    copies = tuple(_on_thread(d, width) for d in digits.replica if d.extent > 1)
    if any(d.axis != "thread" for d in copies):
        return "a thread would hold an element twice"
    try:
        return Distribution(tuple(layout.shape), dims, threads, copies)
    except InternalError:
        return _why_not((*(d for group in dims for d in group), *copies), threads)


def _on_thread(digit: Digit, width: int) -> Digit:
    times = {"warp": width, "lane": 1, "thread": 1}.get(digit.axis)
    return digit if times is None else Digit(digit.extent, digit.stride * times, "thread")


def _why_not(digits: tuple[Digit, ...], threads: int) -> str:
    reached = 1 + sum((d.extent - 1) * d.stride for d in digits if d.axis == "thread")
    if reached > threads:
        return f"it reaches {reached} threads, and the block has {threads}"
    return "threads or registers in between hold nothing"
