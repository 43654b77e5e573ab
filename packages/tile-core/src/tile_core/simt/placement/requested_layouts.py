"""Layouts that a program requests for its tiles: applied, or rejected with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors import InternalError
from tile_core.errors.lowering import FragmentLayoutUnsupported
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout import FragmentLayout, LayoutMap, StackedLayout, fragment_of

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.errors.base import Where
    from tile_core.simt.variant import Block


def requested_layouts(
    body: Stmt,
    layouts: Mapping[str, LayoutMap],
    versions: Mapping[BufferVar, BufferVar],
    slots: Mapping[BufferVar, LayoutMap] | None = None,
) -> dict[BufferVar, LayoutMap]:
    """Return the layouts of shared buffers.

    Parameters
    ----------
    body
        The block's program.
    layouts
        The layouts that the user requested, by buffer name.
    versions
        Buffers with a slot per pipeline stage, and the buffers that they replace.
    slots
        Layouts of their slots that copies require, consistent with the requested ones.
    """
    names = {str(new.name): str(old.name) for new, old in versions.items()}
    viewed = {v for d in collect(body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
    found: dict[BufferVar, LayoutMap] = {}
    for alloc in collect(body, tirx.AllocBuffer):
        name, shape = str(alloc.buffer.name), tuple(nodes.shape_of(alloc.buffer))
        layout = (slots or {}).get(alloc.buffer, layouts.get(names.get(name, name)))
        if layout is None or nodes.scope_of(alloc.buffer) != "shared" or "memory" not in layout.axes:
            continue
        if shape == (shape[0], *layout.shape) and name in names:
            layout = StackedLayout(layout, shape[0])
        if tuple(layout.shape) != shape:
            raise InternalError(stage="layouts", detail=f"a layout of shape {layout.shape} for {name} of shape {shape}")
        if alloc.buffer not in viewed:  # those with views are in row-major order, as ``check_layouts`` saw to
            found[alloc.buffer] = layout
    return found


def requested_fragments(
    body: Stmt, layouts: Mapping[str, LayoutMap], block: Block, ctx: Context
) -> dict[BufferVar, FragmentLayout]:
    """Return the layouts of fragments.

    Raises
    ------
    FragmentLayoutUnsupported
        If the block's threads cannot hold a fragment in that layout.
    """
    found = {}
    for alloc in collect(body, tirx.AllocBuffer):
        layout = layouts.get(str(alloc.buffer.name))
        if layout is not None and nodes.scope_of(alloc.buffer) == "local.fragment":
            answer = fragment_of(layout, block.count)
            if isinstance(answer, str):
                raise not_kept(alloc.buffer, answer, ctx, nodes.where_of(alloc))
            found[alloc.buffer] = answer
    return found


def not_kept(buffer: BufferVar, reason: str, ctx: Context, where: Where | None = None) -> FragmentLayoutUnsupported:
    """Return the error for a fragment whose requested layout is impossible."""
    facts = {"buffer": str(buffer.name), "target": ctx.target.text, "reason": reason}
    return FragmentLayoutUnsupported(**facts, where=where)
