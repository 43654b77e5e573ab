"""The reads and writes of a program's expressions and statements, in execution order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tile_core.analysis.point import Conditions, Point
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Operand, Stmt
from tile_core.ir import attributes, nodes
from tile_core.records import dataclass

How = Literal["element", "move", "address", "whole", "tile"]
"""A load or store; a wide one; an element's address, given to an instruction; a buffer by name; a tile of an op."""

_ATOMS = frozenset((tirx.IntImm, tirx.FloatImm, tirx.Var))
#: Whether an instruction writes, for each of its accesses through an address.
_WRITES = {"r": (False,), "w": (True,)}
_ZEROS: Iterator[int] = itertools.repeat(0)

Effects = Callable[[Stmt], tuple[list[Operand], list[Operand]]]
"""From the statement of a tile op to the views that it reads, and those that it writes (``ops.effects``)."""


@dataclass(frozen=True, eq=False)
class Access:
    """One read or write of memory.

    Attributes
    ----------
    point
        The statement that makes it.
    order
        Its number among all accesses of the program: a statement reads before it writes.
    buffer
        What is accessed; it may be a view of another buffer.
    write
        Whether it writes.
    how
        How it is named.
    indices
        The element, or the corner of a tile; nothing for a whole buffer.
    extents
        Of a tile; ``None`` for one element, or for the number of bytes in ``call``.
    value
        What a store writes.
    conditions
        Expressions that guard it, each with the value that it must have: those of branches, outermost first, then those
        inside its own expression.
    call, operand
        The call that it is an operand of, and that operand, if it is one.
    """

    point: Point
    order: int
    buffer: BufferVar
    write: bool
    how: How
    indices: tuple[Expr, ...]
    extents: tuple[int, ...] | None = None
    value: Expr | None = None
    conditions: Conditions = ()
    call: Call | None = None
    operand: Expr | None = None

    @property
    def statement(self) -> Stmt:
        """The statement that makes it."""
        return self.point.stmt

    @property
    def pointed(self) -> bool:
        """Whether only the address of the element is taken here."""
        return self.how == "address"

    @property
    def loops(self) -> tuple[Stmt, ...]:
        """The counted loops around it, outermost first."""
        return tuple(p.stmt for p in self.point.loops if p.kind == "for")


def accesses_of(point: Point, effects: Effects | None = None, numbers: Iterator[int] = _ZEROS) -> list[Access]:
    """Return the accesses of a statement itself, without those of its body, in order.

    Parameters
    ----------
    effects
        Of tile ops; without it each op reads and writes all its tiles.
    numbers
        Of the accesses.
    """
    if point.kind == "plain":
        found = _found_in(point.stmt, effects)
        return _at(point, found, numbers) if found else []
    if point.kind == "mark":
        return []
    search = _AccessSearch(None, effects)
    for e in point.own:
        search.expr(e, ())
    return _at(point, search.found, numbers) if search.found else []


def accesses_in(e: Operand, point: Point) -> list[Access]:
    """Return the accesses of an expression of a statement, in order; each has number 0."""
    search = _AccessSearch(None, None)
    search.expr(e, ())
    return _at(point, search.found, _ZEROS)


def _at(point: Point, found: Sequence[_Found], numbers: Iterator[int]) -> list[Access]:
    """Return accesses as those of a point."""
    around = point.conditions
    return [
        Access(
            point, next(numbers), f.buffer, f.write, f.how, f.indices, f.extents, f.value,
            (*around, *f.choices) if f.choices else around, f.call, f.operand,
        )
        for f in found
    ]  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _found_in(s: Stmt, effects: Effects | None) -> Sequence[_Found]:
    """Return the accesses of a plain statement, which many passes need."""
    search = _AccessSearch(s, effects)
    if type(s) is tirx.BufferStore:
        value, indices = s.value, tuple(structural.items(s.indices))
        for e in (value, *indices):
            search.expr(e, ())
        search.add(s.buffer, True, "element", indices, (), value=value)
    else:
        value = getattr(s, "condition", None) if type(s) is tirx.AssertStmt else getattr(s, "value", None)
        if value is not None:
            search.expr(value, ())
    return search.found


class _Found(NamedTuple):
    """An access without its point, see ``Access``.

    The conditions in ``choices`` are those inside the statement's own expressions.
    """

    buffer: BufferVar
    write: bool
    how: How
    indices: tuple[Expr, ...]
    extents: tuple[int, ...] | None
    value: Expr | None
    choices: Conditions
    call: Call | None
    operand: Expr | None


class _AccessSearch:
    """Search for the accesses of expressions, of a plain statement if one is given."""

    def __init__(self, stmt: Stmt | None, effects: Effects | None) -> None:
        self.stmt, self.effects = stmt, effects
        self.found: list[_Found] = []

    def add(
        self, buffer: BufferVar, write: bool, how: How, indices: tuple[Expr, ...], choices: Conditions,
        extents: Sequence[int] | None = None, value: Expr | None = None, call: Call | None = None,
        operand: Expr | None = None,
    ) -> None:  # fmt: skip
        tile = None if extents is None else tuple(extents)
        self.found.append(_Found(buffer, write, how, indices, tile, value, choices, call, operand))

    def expr(self, e: Expr, choices: Conditions) -> None:
        """Add the accesses of an expression."""
        kind = type(e)
        if kind in _ATOMS or not hasattr(e, "ty"):
            return
        if kind is ir.TensorLoad:
            indices = tuple(structural.items(e.indices))
            for index in indices:
                if type(index) not in _ATOMS:
                    self.expr(index, choices)
            self.add(e.source, False, "element", indices, choices)
        elif kind is ir.Call:
            self.call(e, choices)
        elif structural.collect(e, (ir.TensorLoad, ir.Call)):
            self.parts(e, choices)

    def parts(self, e: Expr, choices: Conditions) -> None:
        sides = sides_of(e)
        if sides is None:
            for part in parts_of(e):
                self.expr(part, choices)
            return
        first, then, other = sides
        self.expr(first, choices)
        for side, holds in ((then, True), (other, False)):
            if side is not None:
                self.expr(side, (*choices, (first, holds)))

    def call(self, call: Call, choices: Conditions, instruction: Call | None = None) -> None:
        """Add the accesses of a call that is an argument of ``instruction``."""
        name = nodes.operator_name(call)
        if name == "tile.move":
            self.move(call, choices)
        elif name == "tile.address":
            self.address(call, choices, instruction)
        elif name in ("address_of", "buffer_data"):
            inner = structural.item(call.args, 0)
            for index in getattr(inner, "indices", ()):
                self.expr(index, choices)
            self.whole(getattr(inner, "source", inner), choices, call)
        else:
            args = structural.items(call.args)
            if [arg for arg in args if hasattr(arg, "region")]:
                self.tiles(call, args, choices)
            elif name == "if_then_else":
                self.parts(call, choices)
            else:
                self.plain(call, args, choices)

    def plain(self, call: Call, args: Sequence[Expr], choices: Conditions) -> None:
        for arg in args:
            kind = type(arg)
            if kind is ir.Call:
                self.call(arg, choices, call)
            elif kind is tirx.Var:
                if tirx.is_buffer_var(arg):
                    self.whole(arg, choices, call)
            elif kind not in _ATOMS:
                self.expr(arg, choices)

    def move(self, call: Call, choices: Conditions) -> None:
        target, source = structural.items(call.args)
        there, here = tuple(structural.items(target.indices)), tuple(structural.items(source.indices))
        for index in (*there, *here):
            self.expr(index, choices)
        for element, at, write in ((source, here, False), (target, there, True)):
            self.add(element.source, write, "move", at, choices, call=call)

    def address(self, call: Call, choices: Conditions, instruction: Call | None) -> None:
        element = structural.item(call.args, 0)
        at = tuple(structural.items(element.indices))
        for index in at:
            if type(index) not in _ATOMS:
                self.expr(index, choices)
        named = call if instruction is None else instruction
        for write in _WRITES.get(str(structural.attribute(call, attributes.ACCESS)), (False, True)):
            self.add(element.source, write, "address", at, choices, call=named, operand=call)

    def whole(self, buffer: BufferVar, choices: Conditions, call: Call) -> None:
        for write in (False, True):
            self.add(buffer, write, "whole", (), choices, call=call)

    def tiles(self, call: Call, args: Sequence[Expr], choices: Conditions) -> None:
        """Add the accesses of a tile op."""
        for arg in args:
            for part in parts_of(arg) if hasattr(arg, "region") else (arg,):
                self.expr(part, choices)
        if self.effects is not None and self.stmt is not None and self.stmt.value.same_as(call):
            for write, views in enumerate(self.effects(self.stmt)):
                for v in views:
                    self.add(v.buffer, bool(write), "tile", tuple(v.mins), choices, v.extents, call=call)
            return
        for write in (False, True):
            for arg in args:
                if hasattr(arg, "region"):
                    ranges = structural.items(arg.region)
                    corner, extents = tuple([r.min for r in ranges]), [nodes.as_int(r.extent) for r in ranges]
                    self.add(arg.source, write, "tile", corner, choices, extents, call=call)


def sides_of(e: Expr) -> tuple[Expr, Expr | None, Expr | None] | None:
    """Return (condition, evaluated if it holds, evaluated if not) of an expression that chooses."""
    if type(e) is tirx.And:
        return e.a, e.b, None
    if type(e) is tirx.Or:
        return e.a, None, e.b
    return choice_of(e)


def choice_of(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """Return (condition, value if it holds, value if not) of a conditional expression."""
    if type(e) is tirx.Select:
        return e.condition, e.true_value, e.false_value
    if nodes.operator_name(e) == "if_then_else":
        condition, then, other = e.args
        return condition, then, other
    return None


def parts_of(e: Expr) -> Iterator[Expr]:
    """Yield the operands of an expression."""
    if type(e) is ir.Call:
        yield from structural.items(e.args)
    elif type(e) is ir.TensorLoad:
        yield from structural.items(e.indices)
    elif hasattr(e, "region"):
        for r in structural.items(e.region):
            yield from (r.min, r.extent)
    elif type(e) is tirx.Let:
        yield from (e.value, e.body)
    else:
        kind: Any = type(e)
        for name in _operands(kind):
            part = getattr(e, name)
            if isinstance(part, ir.Expr):
                yield part


@functools.cache
def _operands(kind: Any) -> tuple[str, ...]:
    """Return the attributes of a kind of expressions that are operands."""
    names = ("a", "b", "value", "condition", "true_value", "false_value", "base", "stride")
    return tuple(name for name in names if hasattr(kind, name))
