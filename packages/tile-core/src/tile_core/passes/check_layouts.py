"""Refuse annotated layouts that no target could follow, so that none is silently ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.language import BadAnnotation
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout import LayoutMap, row_major

#: Where a layout may place the elements of each scope.
_HELD = {"shared": frozenset({"memory"}), "local.fragment": frozenset({"thread", "warp", "lane", "register"})}


def check_layouts(body: Stmt, layouts: Mapping[str, LayoutMap], reducers: Collection[str]) -> None:
    """Check the layouts of a program's buffers; sizes for parameters are checked when applied.

    Parameters
    ----------
    body
        The program.
    layouts
        By the name of the buffer.
    reducers
        Names of reducers.

    Raises
    ------
    BadAnnotation
        Naming the buffer and what can be done instead.
    """
    if not layouts:
        return
    views = collect(body, tirx.DeclBuffer)
    for view in (d for d in views if str(d.buffer.name) in layouts):
        found = f"{view.buffer.name} is a view, which shows the memory of another buffer"
        raise _refused(found, "annotate the buffer that it shows, which then has no views", view)
    for alloc in (a for a in collect(body, tirx.AllocBuffer) if str(a.buffer.name) in layouts):
        name, scope = str(alloc.buffer.name), nodes.scope_of(alloc.buffer)
        layout = layouts[name]
        if name in reducers:
            raise _refused(f"{name} is a reducer, which may have a copy per thread", "leave it out", alloc)
        if scope not in _HELD:
            found = f"{name} lies in {scope or 'global'} scratch, which has a fixed layout"
            raise _refused(found, "annotate tensors, shared buffers and fragments", alloc)
        if not set(layout.axes) <= _HELD[scope]:
            kind, instead = (
                ("shared memory", "T.Layout") if scope == "shared" else ("registers of threads", "T.Fragment")
            )
            found = f"{name} lies in {kind}, and its layout gives {', '.join(layout.axes)}"
            raise _refused(found, f"make the layout with {instead}", alloc)
    for view, name in ((d, str(v.name)) for d in views for v in collect(d.data, tirx.Var)):
        if name in layouts and not _is_row_major(layouts[name]):
            found = f"{name} has views, which show its memory in row-major order"
            raise _refused(found, "leave the layout out, or copy into a buffer of its own for the view", view)


def _is_row_major(layout: LayoutMap) -> bool:
    return bool(layout.tables() == row_major(layout.shape).tables())


def _refused(found: str, instead: str, s: Stmt) -> BadAnnotation:
    return BadAnnotation(what="annotate_layout", found=found, instead=instead, where=nodes.where_of(s))
