"""The first operation of a program that makes a NaN, or an infinity, from numbers.

Each float expression leaves an entry: in which lanes its value is bad, and in which of these an operation below it
made that of good operands. A store reports the first lane that stores such a value, so values that a condition discards
do not count. Of a tile op whole operands count: if one of them has a bad element already, the result only propagates
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array, Expr
from tile_core.dtypes import DTYPES
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.records import dataclass
from tile_core.reference.elements import decode
from tile_core.reference.lanes import LaneSet
from tile_core.reference.observe import Observer, Site

if TYPE_CHECKING:
    from tile_core.reference.ops.regions import MemoryRegion
    from tile_core.reference.scope import Statement
    from tile_core.reference.state import State

__all__ = ["FirstBad", "Made", "block_of", "block_text"]


@dataclass(frozen=True)
class Made:
    """A bad value that an operation made of numbers.

    Attributes
    ----------
    what
        ``"NaN"`` or ``"an infinity"``.
    operation
        The operation, such as ``"division"`` or ``"T.gemm"``.
    operands
        The numbers that it was made of; empty for tile ops.
    where
        The user's line.
    block
        Indices of the block.
    buffer, index
        The element that first held it.
    """

    what: str
    operation: str
    operands: tuple[float, ...]
    where: Where | None
    block: tuple[int, ...]
    buffer: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        of = f" of {' and '.join(f'{x:g}' for x in self.operands)}" if self.operands else ""
        line = "" if self.where is None else f"line {self.where.line}: "
        at = f"{self.buffer}[{', '.join(map(str, self.index))}]"
        return f"{line}{self.operation}{of} makes {self.what}, first in {at} of block {block_text(self.block)}"


class _Entry:
    """A value, and its bad lanes; arrays have an element a lane."""

    __slots__ = ("bad", "made", "operations", "value")

    def __init__(self, value: Array, bad: Array, made: Array, operations: list[tuple[str, list[Array], Array]]) -> None:
        self.value, self.bad, self.made, self.operations = value, bad, made, operations


class FirstBad(Observer):
    """Finds the first bad value of an execution.

    Parameters
    ----------
    infinities
        Whether infinities are bad, too.

    Attributes
    ----------
    found
        What was found, or ``None``.
    """

    def __init__(self, infinities: bool = False) -> None:
        self.infinities = infinities
        self.found: Made | None = None
        self.tracker = self
        self._entries: list[_Entry] = []
        self._variables: dict[int, tuple[LaneSet, _Entry]] = {}
        self._numbers: dict[Any, int] = {}
        self._site: Site | None = None
        self._op_has_bad = False

    def start(self, compiled: Any, state: State | None = None) -> None:
        """Keep the numbers of the variables."""
        self._numbers = compiled.scope.variables

    # Expressions

    def mark(self) -> int:
        """Return the position of the next entry, for ``computed``."""
        return len(self._entries)

    def leaf(self, value: Array, dtype: str) -> None:
        """An expression read a number from memory, or is one."""
        value = decode(value, dtype)
        self._entries.append(_Entry(value, self._is_bad(value), np.False_, []))

    def variable(self, state: State, var: Expr, value: Array, dtype: str) -> None:
        """An expression is a variable."""
        known = self._variables.get(self._numbers.get(var, -1))
        if known is None:
            self.leaf(value, dtype)
            return
        lanes, entry = known
        index = state.lanes.within(lanes)
        parts = [(name, operands, _part(at, index)) for name, operands, at in entry.operations]
        made = _Entry(decode(value, dtype), _part(entry.bad, index), _part(entry.made, index), parts)
        for n, (name, operands, at) in enumerate(parts):
            parts[n] = (name, [_part(x, index) for x in operands], at)
        self._entries.append(made)

    def computed(self, mark: int, name: str, value: Array, dtype: str, mixes: bool) -> None:
        """An operation computed a value of the entries since ``mark``; ``mixes`` if lanes exchange values."""
        operands = self._entries[mark:]
        del self._entries[mark:]
        value = decode(value, dtype)
        bad = self._is_bad(value)
        if not np.any(bad):
            self._entries.append(_Entry(value, np.False_, np.False_, []))
            return
        before: Array = np.False_
        passed: Array = np.False_
        for x in operands:
            own = x.bad & ~x.made
            before = before | (np.any(x.bad) if mixes else x.bad)
            passed = passed | (np.any(own) if mixes else own)
        fresh = bad & ~before
        made = fresh | (bad & before & ~passed)
        operations = [operation for x in operands for operation in x.operations]
        if mixes:  # of lanes that are not known
            operations = [(below, [], np.True_) for below, _, _ in operations]
        if np.any(fresh):
            operations.append((name, [x.value for x in operands], fresh))
        self._entries.append(_Entry(value, bad, made, operations))

    # Statements

    def execute(self, state: State, site: Site, made: Statement) -> None:
        """Execute a statement, and look at what it stores."""
        mark, before = len(self._entries), self._site
        self._site, self._op_has_bad = site, False
        try:
            made(state)
        finally:
            self._site = before
        entries = self._entries[mark:]
        del self._entries[mark:]
        kind = type(site.statement).__name__
        if not entries or kind not in ("BufferStore", "Bind"):
            return
        if kind == "Bind":
            self._variables[self._numbers[site.statement.var]] = (state.lanes, entries[-1])
        elif np.any(entries[0].made) and DTYPES[nodes.dtype_of(site.statement.value)].is_float:
            self._stored(state, site, entries[0])

    def read(self, values: Array, dtype: str) -> None:
        """A tile op reads an operand."""
        self._op_has_bad = self._op_has_bad or bool(np.any(self._is_bad(decode(values, dtype))))

    def write(self, region: MemoryRegion, values: Array) -> None:
        """A tile op writes its result; ``values`` are those inside the buffer."""
        if self._op_has_bad or self.found is not None or self._site is None:
            return
        bad = np.atleast_1d(self._is_bad(decode(values, region.dtype)))
        if not bad.any():
            return
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        index = tuple(int(i) + s.start for i, s in zip(first, region.inside, strict=False))
        value = decode(np.atleast_1d(values)[first], region.dtype)
        operation = self._site.operation
        entry = self._entries[-1] if operation == "T.fill" and self._entries else None
        if entry is not None and not np.any(entry.made):
            return
        if entry is not None and entry.operations:
            operation = entry.operations[0][0]
        self._report(region.state, self._site, (operation, ()), value, (region.memory.root.name, index))

    def _stored(self, state: State, site: Site, entry: _Entry) -> None:
        if self.found is not None:
            return
        active = state.active()
        lanes = active[np.broadcast_to(entry.made, state.count)[active]]
        memory = state.memories[site.writes[0]]
        mark = len(self._entries)
        columns = [np.broadcast_to(index(state), state.count) for index in site.indices]
        del self._entries[mark:]
        for lane in lanes:
            index = tuple(int(c[lane]) for c in columns)
            if all(0 <= i < extent for i, extent in zip(index, memory.shape, strict=True)):
                name, operands, _ = next(o for o in entry.operations if _at(o[2], lane))
                numbers = tuple(float(_at(x, lane)) for x in operands)
                self._report(state, site, (name, numbers), _at(entry.value, lane), (memory.root.name, index))
                return

    def _report(
        self, state: State, site: Site, made_by: tuple[str, tuple[float, ...]], value: Any,
        element: tuple[str, tuple[int, ...]],
    ) -> None:  # fmt: skip
        what = "NaN" if np.isnan(value) else "an infinity"
        operation, operands = made_by
        self.found = Made(what, operation, operands, site.where, block_of(state), *element)

    def _is_bad(self, value: Array) -> Array:
        if getattr(value, "dtype", None) is None or value.dtype.kind != "f":
            return np.False_
        return ~np.isfinite(value) if self.infinities else np.isnan(value)


def block_of(state: State) -> tuple[int, ...]:
    """Return the indices of the block that is executed, x first."""
    return tuple(int(state.grid[axis]) for axis in sorted(state.grid)) or (0,)


def block_text(block: tuple[int, ...]) -> str:
    """Return the indices of a block as messages show them."""
    return str(block[0]) if len(block) == 1 else f"({', '.join(map(str, block))})"


def _part(x: Array, index: Array) -> Array:
    return x[index] if isinstance(x, np.ndarray) and x.ndim else x


def _at(x: Array, lane: int) -> Any:
    return x[lane] if isinstance(x, np.ndarray) and x.ndim else x
