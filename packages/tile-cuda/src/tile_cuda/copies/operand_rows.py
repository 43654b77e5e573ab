"""Rows of swizzled tiles that products read: each copy uses row lengths that they support.

A swizzled tile has one layout, chosen by the first op that needs one: a TMA copy into it or out of it, a gather of
rows, stores of matrices, or one of its products. An instruction whose columns begin or end within a row cannot read it:
those of two warpgroups that share 192 columns of 16 bits begin at 96, in the middle of a row of 128 bytes. So each call
with such a tile has an attribute with the row lengths that all its products can read (``READABLE_ROWS``), and the
choice of a layout uses ``boxes.row_lengths``; a call that cannot make such rows is not a bulk copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir.visit import collect, map_statements
from tile_core.ops import copy_to_block
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_cuda.attributes import READABLE_ROWS
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.simt.kernel_plan import KernelPlan


def require_readable_rows(plan: KernelPlan, products: Sequence[WarpgroupPlan]) -> KernelPlan:
    """Attach to all calls with operands of products the row lengths that these can read.

    Parameters
    ----------
    products
        Products of the program that read operands through shared-memory descriptors.
    """
    found: dict[BufferVar, int] = {}
    for product in products:
        for role in (0, 1):
            if product.shared(role):
                _narrow(found, product.view(role).buffer, sum(product.rows(role)))
    if not found:
        return plan
    _follow_copies(plan.body, found)
    return plan.replace(body=map_statements(plan.body, lambda s: _required(s, found)))


def _narrow(found: dict[BufferVar, int], buffer: BufferVar, sum_of: int) -> bool:
    """Intersect row lengths unless nothing would be left, and report a change."""
    old = found.get(buffer, 0)
    new = (old & sum_of if old else sum_of) or old
    if new != old:
        found[buffer] = new
    return new != old


def _follow_copies(body: Stmt, found: dict[BufferVar, int]) -> None:
    """Restrict tiles of block-to-block byte copies to rows that both sides can read."""
    calls = [OpCall.decode(s) for s in collect(body, tirx.Evaluate) if is_op(s)]
    sides = [[x.buffer for x in call.args[:2]] for call in calls if call.name == copy_to_block.NAME]
    while any(_narrow(found, a, found.get(b, 0)) or _narrow(found, b, found.get(a, 0)) for a, b in sides):
        pass


def _required(s: Stmt, known: dict[BufferVar, int]) -> Stmt:
    """Return a call with the row lengths that products of its tiles can read."""
    if not is_op(s):
        return s
    rows = [known.get(x.buffer, 0) if isinstance(x, View) else 0 for x in OpCall.decode(s).args]
    return with_attributes(s, {READABLE_ROWS: rows}) if any(rows) else s
