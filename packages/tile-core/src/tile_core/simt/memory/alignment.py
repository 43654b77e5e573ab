"""Known alignment of addresses, which limits the width of an access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.passes import wrapping
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap


#: The widest access of one thread in bytes, and the alignment of shared buffers.
WIDEST = 16


@dataclass(frozen=True)
class Aligned:
    """The alignment that a version of a kernel assumes of a launch.

    Attributes
    ----------
    addresses
        Alignment of the address in bytes, by parameter; other buffers are aligned to the size of an element.
    divisors
        A divisor of the value, by symbol.
    promised
        Alignment of the address of tensors that are not parameters; it is unchecked.
    """

    addresses: dict[BufferVar, int] = field(default_factory=dict)
    divisors: dict[Var, int] = field(default_factory=dict)
    promised: dict[BufferVar, int] = field(default_factory=dict)

    def of(self, buffer: BufferVar, indices: Sequence[Expr], known: Mapping[Var, int] | None = None) -> int:
        """Return the alignment of an element's address in bytes, up to ``WIDEST``.

        It is 0 if the element is inside a byte.

        Parameters
        ----------
        known
            Divisors of more variables.
        """
        bits = DTYPES[nodes.element_type(buffer)].bits
        size = max(bits // 8, 1)
        if bits < 8 and nodes.scope_of(buffer) == "shared":
            return 0
        own = (
            WIDEST
            if nodes.scope_of(buffer) == "shared"
            else self.addresses.get(buffer, self.promised.get(buffer, size))
        )
        facts = {**(known or {}), **self.divisors}
        offset = 0
        for index, stride in zip(indices, strides_of(buffer), strict=True):
            offset = gcd(offset, factor(index, facts) * factor(stride, facts))
        if bits < 8:
            return gcd(gcd(offset // 2, own), WIDEST) if offset % 2 == 0 else 0
        return gcd(gcd(offset * size, own), WIDEST)

    def joined(self, other: Aligned) -> Aligned:
        """Return the assumptions of both, which are parts of one."""
        return Aligned(
            {**self.addresses, **other.addresses}, {**self.divisors, **other.divisors},
            {**self.promised, **other.promised},
        )  # fmt: skip


def view_roots(body: Stmt) -> dict[BufferVar, BufferVar]:
    """Return the buffer at whose address each view of a program begins."""
    roots: dict[BufferVar, BufferVar] = {}
    for view in collect(body, tirx.DeclBuffer):
        for var in collect(view.data, tirx.Var):
            roots[view.buffer] = roots.get(var, var)
    return roots


def with_views(aligned: Aligned, roots: Mapping[BufferVar, BufferVar]) -> Aligned:
    """Return an assumption that also covers views, see ``view_roots``."""
    views = {view: aligned.addresses[root] for view, root in roots.items() if root in aligned.addresses}
    return replace(aligned, addresses={**aligned.addresses, **views}) if views else aligned


def row_symbols(buffer: BufferVar) -> set[Var]:
    """Return the symbols in a buffer's row strides.

    Their divisors decide whether each row is aligned.
    """
    return {v for s in strides_of(buffer)[:-1] for v in collect(nodes.int_const(0) + s, tirx.Var)}


def strides_of(buffer: BufferVar) -> list[Expr]:
    """Return a buffer's strides in elements; row-major if it names none."""
    given = list(buffer.ty.strides or [])
    if given:
        return [nodes.as_int(s) for s in given]
    found: list[Expr] = []
    step: Expr = 1
    for extent in reversed(nodes.shape_of(buffer)):
        found.insert(0, step)
        if not isinstance(extent, int) and isinstance(step, int) and step >= 2**31:
            step, extent = nodes.int_const(step, "int64"), nodes.cast(extent, "int64")
        step = step * extent
    return found


_MIXED = frozenset((tirx.Add, tirx.Sub, tirx.Min, tirx.Max, tirx.FloorMod))


def factor(e: Expr, known: Mapping[Var, int]) -> int:
    """Return a divisor of an integer expression; 0 if it is zero."""
    kind: Any = type(e)
    if kind is tirx.IntImm or kind is int:
        return abs(int(nodes.as_int(e)))
    if kind is tirx.Var:
        return known.get(e, 1)
    if kind is tirx.Cast:
        return factor(e.value, known)
    if kind in _MIXED:
        return gcd(factor(e.a, known), factor(e.b, known))
    if kind is tirx.Mul:
        return factor(e.a, known) * factor(e.b, known)
    if kind is tirx.FloorDiv:
        by, of = nodes.as_int(e.b), factor(e.a, known)
        return of // by if isinstance(by, int) and by > 0 and of % by == 0 else 1
    if kind is tirx.Select:
        return gcd(factor(e.true_value, known), factor(e.false_value, known))
    if kind is tirx.LShift and isinstance(nodes.as_int(e.b), int):
        return factor(e.a, known) << int(nodes.as_int(e.b))
    if nodes.operator_name(e).startswith(wrapping.PREFIX):
        found = factor(wrapping.plain(e), known)
        return found & -found  # of the divisors of a number, powers of two alone divide what is left of it by wrapping
    return 1


def contiguous_width(layout: LayoutMap, width: int) -> int:
    """Return the widest vector width that a layout supports along the last dimension.

    That number of elements are contiguous, and aligned to their number.

    Parameters
    ----------
    layout
        A layout onto memory.
    width
        The largest power of two to try.
    """
    if "memory" not in layout.axes or layout.replicas != 1:
        return 1
    offsets = np.asarray(layout.tables()["memory"]).reshape(-1, layout.shape[-1])
    while width > 1:
        whole = offsets.shape[1] // width * width
        groups = offsets[:, :whole].reshape(-1, width)
        if whole and (groups[:, 0] % width == 0).all() and (np.diff(groups, axis=1) == 1).all():
            return width
        width //= 2
    return 1
