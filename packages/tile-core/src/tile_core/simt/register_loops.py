"""Per-thread loops over the registers of a tile, and bounds conditions of accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import Digits, FragmentLayout
from tile_core.ops.base import View

#: Loops of more iterations are not unrolled.
MOST_UNROLLED = 64
#: Registers of 32 bits that a thread may have on any target; larger arrays lie in local memory.
MOST_REGISTERS = 255
#: Trip count up to which an innermost loop is unrolled, whatever array it runs over.
LONGEST_VECTOR = 16


class Walk:
    """One loop variable per digit of the register, and a thread's coordinates from them.

    Parameters
    ----------
    dist
        The tile's layout.
    thread
        Index of the thread in its block, whether it holds anything or not: coordinates stay within the padded tile.
    """

    def __init__(self, dist: FragmentLayout, thread: Var) -> None:
        self.dist = dist
        self.thread = thread
        self.values = [[self._value(g) for g in digits] for digits in dist.dims]

    def _value(self, digit: Digit) -> Expr:
        if digit.extent == 1:
            return nodes.int_const(0)
        return nodes.fresh("r") if digit.axis == "register" else self.dist.digit(self.thread, digit)

    def coordinate(self, d: int) -> Expr:
        """Return the coordinate along a dimension."""
        weight = prod(g.extent for g in self.dist.dims[d])
        total: Expr | None = None
        for value, digit in zip(self.values[d], self.dist.dims[d], strict=True):
            weight //= digit.extent
            if digit.extent > 1:
                part = value if weight == 1 else value * nodes.int_const(weight)
                total = part if total is None else total + part
        return nodes.int_const(0) if total is None else total

    def coordinates(self) -> list[Expr]:
        """Return the coordinates, possibly in the padding."""
        return [self.coordinate(d) for d in range(len(self.dist.dims))]

    def register(self, dims: Sequence[Digits] | None = None, chosen: Sequence[int] | None = None) -> Expr:
        """Return the register; with ``dims`` that of another layout whose digits are those of ``chosen``."""
        groups = self.dist.dims if dims is None else dims
        values = self.values if chosen is None else [self.values[d] for d in chosen]
        total: Expr | None = None
        for held, digits in zip(values, groups, strict=False):
            for value, digit in zip(held, digits, strict=True):
                if digit.axis == "register" and digit.extent > 1:
                    part = value if digit.stride == 1 else value * nodes.int_const(digit.stride)
                    total = part if total is None else total + part
        return nodes.int_const(0) if total is None else total

    def wrap(self, body: Stmt, dims: Sequence[int] | None = None) -> Stmt:
        """Return loops over the registers of some dimensions (of all) around a statement.

        The innermost one is marked if its iterations are adjacent in the last dimension.
        """
        overflows = self.dist.registers > MOST_REGISTERS
        for d in reversed(range(len(self.dist.dims)) if dims is None else dims):
            for value, digit in reversed(list(zip(self.values[d], self.dist.dims[d], strict=True))):
                if digit.axis == "register" and digit.extent > 1:
                    is_last = d == len(self.dist.dims) - 1 and digit is self.dist.dims[d][-1]
                    if overflows and not (is_last and digit.extent <= LONGEST_VECTOR):
                        body = rolled(value, digit.extent, body)
                        continue
                    notes = {attributes.VECTOR: nodes.int_const(digit.extent)} if is_last else {}
                    body = nodes.for_loop(value, digit.extent, body, loop_role(digit.extent), annotations=notes)
        return body

    def inside(self, dims: Sequence[int] | None = None) -> list[Expr]:
        """Return the conditions that the thread holds an element, not padding, in the register."""
        tile = self.dist
        chosen = range(len(tile.dims)) if dims is None else dims
        limits = [self.coordinate(d) < tile.shape[d] for d in chosen if tile.padded[d] != tile.shape[d]]
        return [*tile.holds(self.thread), *limits]


def loop_role(extent: int) -> str:
    """Return the role of a loop of constant extent."""
    return "unroll" if extent <= MOST_UNROLLED else "serial"


def registers(array: BufferVar) -> int:
    """Return the elements of a register array."""
    return int(nodes.as_int(array.shape[0]))


def each(count: int, body: Any) -> Stmt:
    """Return ``body(i)`` for ``i`` below a constant, as a loop unrolled if short."""
    if count == 1:
        return body(nodes.int_const(0))
    i = nodes.fresh("r")
    if count > MOST_REGISTERS:
        return rolled(i, count, body(i))
    return nodes.for_loop(i, count, body(i), loop_role(count))


def unrolled(name: str, extent: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Return ``body(i)`` for ``i`` below a constant extent, as a loop that is always unrolled."""
    if extent == 1:
        return body(nodes.int_const(0))
    var = nodes.fresh(name)
    return nodes.for_loop(var, extent, body(var), "unroll")


def rolled(var: Var, extent: int, body: Stmt) -> Stmt:
    """Return a loop that compilers must not unroll.

    Its array is larger than a thread's registers.
    """
    return nodes.for_loop(var, extent, body, "serial", annotations={attributes.UNROLL_FACTOR: nodes.int_const(1)})


def when(conditions: Sequence[Expr], body: Stmt) -> Stmt:
    """Return a statement under conditions."""
    return tirx.IfThenElse(tirx.all(*conditions), body, None) if conditions else body


def choose(conditions: Sequence[Expr], yes: Expr, no: Expr | None = None, lazily: bool = True) -> Expr:
    """Return a value under conditions, else another one (zero).

    ``lazily``: ``yes`` must only be evaluated under the conditions.
    """
    if not conditions:
        return yes
    no = nodes.zero(nodes.dtype_of(yes)) if no is None else no
    condition = tirx.all(*conditions)
    return tirx.if_then_else(condition, yes, no) if lazily else tirx.Select(condition, yes, no)


def bounds(view: View, indices: Sequence[Expr]) -> list[Expr]:
    """Return the conditions that an index is in the buffer; none if proven.

    The index has one value per dimension of the view.
    """
    found: list[Expr] = []
    shape = nodes.shape_of(view.buffer)
    for low, extent, size, index in zip(view.mins, view.extents, shape, indices, strict=True):
        known = isinstance(low, int) and isinstance(extent, int)
        coordinate = index if known and low == 0 else index + low
        if not (known and low >= 0):
            found.append(coordinate >= 0)
        if not (known and isinstance(size, int) and low + extent <= size):
            found.append(coordinate < size)
    return found


def kept(view: View, indices: Sequence[Expr]) -> list[Expr]:
    """Return the indices of the dimensions that are not 1, as ``View.spread`` takes them."""
    wide = [i for i, e in zip(indices, view.extents, strict=True) if e != 1]
    return wide or [nodes.int_const(0)]


def load(view: View, indices: Sequence[Expr], safe_values: Mapping[BufferVar, Expr]) -> Expr:
    """Return a load of memory; outside the buffer it gives the safe value (zero)."""
    value = view.load(list(indices))
    conditions = bounds(view, indices)
    if not conditions:
        return value
    safe = safe_values.get(view.buffer)
    fill = nodes.zero(view.dtype) if safe is None else nodes.cast(safe, view.dtype)
    return tirx.if_then_else(tirx.all(*conditions), value, fill)
