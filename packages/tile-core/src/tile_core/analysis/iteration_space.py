"""Every access of a loop nest with the elements that it touches, enumerated with NumPy integers.

``accesses_of`` lists the loads and stores of a nest's body with their enclosing conditions and inner loops.
``Space`` holds values of the loop variables (all of them, or a sample), and says which element an access touches in
which iteration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect

#: Largest number of (iteration, inner iteration) pairs that are enumerated for one access.
LIMIT = 1 << 16


@dataclass(frozen=True)
class NestAccess:
    """One load or store in the body of a nest.

    Attributes
    ----------
    statement
        The store, or the statement that holds the load.
    buffer, indices, value
        The element; ``value`` is the stored value, ``None`` for a load.
    conditions
        Conditions that guard it, each with the value that it must have.
    loops
        Loops between the nest and the access, outermost first.
    order
        Position in program order.
    pointed
        Whether only the address of the element is taken here.
    """

    statement: Any
    buffer: Any
    indices: tuple[Any, ...]
    value: Any
    conditions: tuple[tuple[Any, bool], ...]
    loops: tuple[Any, ...]
    order: int
    pointed: bool = False


@dataclass
class Body:
    """The accesses of a nest's body.

    Attributes
    ----------
    accesses
        Loads and stores that a condition or loop of known kind guards.
    unclear
        Stores under unknown control flow: ``while``, loops with an early exit.
    binds
        Names bound in the body, with their values.
    """

    accesses: list[NestAccess] = field(default_factory=list)
    unclear: list[Any] = field(default_factory=list)
    binds: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    conditions: tuple[tuple[Any, bool], ...] = ()
    loops: tuple[Any, ...] = ()
    clear: bool = True

    def under(self, condition: Expr, holds: bool) -> _Place:
        return replace(self, conditions=(*self.conditions, (condition, holds)))


def body_of(body: Stmt) -> Body:
    """List the accesses of a nest's body."""
    walker = _Walker()
    leaves = bool(collect(body, (tirx.Break, tirx.Continue)))
    walker.stmt(body, _Place(clear=not (leaves and _leaves(body))))
    return walker.found


def _leaves(s: Stmt) -> bool:
    """Whether a statement leaves its enclosing loop, or ends the iteration."""
    if isinstance(s, (tirx.Break, tirx.Continue)):
        return True
    if isinstance(s, tirx.SeqStmt):
        return any(_leaves(x) for x in s.seq)
    if isinstance(s, tirx.AttrStmt):
        return _leaves(s.body)
    if isinstance(s, tirx.IfThenElse):
        return any(_leaves(x) for x in (s.then_case, s.else_case) if x is not None)
    return False


class _Walker:
    def __init__(self) -> None:
        self.found = Body()
        self.order = itertools.count()
        self.statement: Any = None

    def stmt(self, s: Stmt, at: _Place) -> None:
        self.statement = s
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self.stmt(x, at)
        elif isinstance(s, tirx.For):
            self.expr(s.min, at)
            self.expr(s.extent, at)
            self.stmt(s.body, replace(at, loops=(*at.loops, s), clear=at.clear and not _leaves(s.body)))
        elif isinstance(s, tirx.While):
            self.stmt(s.body, replace(at, clear=False))
        elif isinstance(s, tirx.IfThenElse):
            self.expr(s.condition, at)
            self.stmt(s.then_case, at.under(s.condition, True))
            if s.else_case is not None:
                self.stmt(s.else_case, at.under(s.condition, False))
        elif isinstance(s, tirx.AttrStmt):
            self.stmt(s.body, at)
        elif isinstance(s, tirx.Bind):
            self.expr(s.value, at)
            self.found.binds[s.var] = s.value
        elif isinstance(s, tirx.Evaluate):
            self.expr(s.value, at)
        elif isinstance(s, tirx.BufferStore):
            for part in (s.value, *s.indices):
                self.expr(part, at)
            self._add(s.buffer, s.indices, s.value, at)

    def expr(self, e: Expr, at: _Place, pointed: bool = False) -> None:
        if not collect(e, ir.TensorLoad):
            return
        if isinstance(e, ir.TensorLoad):
            for index in e.indices:
                self.expr(index, at)
            self._add(e.source, e.indices, None, at, pointed)
            return
        sides = sides_of(e)
        if sides is None:
            for part in parts_of(e):
                self.expr(part, at, nodes.is_tile_call(e, "address"))
            return
        first, then, other = sides
        self.expr(first, at)
        for side, holds in ((then, True), (other, False)):
            if side is not None:
                self.expr(side, at.under(first, holds))

    def _add(self, buffer: BufferVar, indices: Any, value: Any, at: _Place, pointed: bool = False) -> None:
        if at.clear:
            places = at.conditions, at.loops, next(self.order)
            found = NestAccess(self.statement, buffer, tuple(indices), value, *places, pointed)
            self.found.accesses.append(found)
        elif value is not None:
            self.found.unclear.append(self.statement)


def sides_of(e: Expr) -> tuple[Any, Any, Any] | None:
    """Return (condition, evaluated if it holds, evaluated if not) of an expression that chooses."""
    if isinstance(e, tirx.And):
        return e.a, e.b, None
    if isinstance(e, tirx.Or):
        return e.a, None, e.b
    return choice_of(e)


def choice_of(e: Expr) -> tuple[Any, Any, Any] | None:
    """Return (condition, value if it holds, value if not) of a conditional expression."""
    if isinstance(e, tirx.Select):
        return e.condition, e.true_value, e.false_value
    if nodes.operator_name(e) == "if_then_else":
        return tuple(e.args)
    return None


def parts_of(e: Expr) -> Iterator[Any]:
    """Yield the operands of an expression."""
    if isinstance(e, ir.Call):
        yield from e.args
    elif isinstance(e, ir.TensorLoad):
        yield from e.indices
    elif hasattr(e, "region"):
        for r in e.region:
            yield from (r.min, r.extent)
    elif isinstance(e, tirx.Let):
        yield from (e.value, e.body)
    else:
        for name in ("a", "b", "value", "condition", "true_value", "false_value"):
            part = getattr(e, name, None)
            if isinstance(part, ir.Expr):
                yield part


@dataclass(frozen=True)
class Touched:
    """The elements that one access touches, one entry per execution of it.

    Attributes
    ----------
    element
        Row-major indices of the elements in their buffer.
    iteration
        Numbers of the iterations of the nest.
    env
        Values of the variables, in the shape that ``kept`` has.
    kept
        Which executions happen, and inside the buffer.
    """

    element: Any
    iteration: Any
    env: Mapping[Any, Any]
    kept: Any


class Space:
    """Values of the variables of a nest.

    Parameters
    ----------
    nest
        The loops, outermost first.
    outer
        Values of the variables bound outside.
    binds
        Names of the body with their values; those that cannot be computed stay unknown.

    Raises
    ------
    Unknown
        If an extent of the nest reads memory or uses an unknown variable.
    """

    def __init__(self, nest: Sequence[Stmt], outer: Mapping[Var, Any], binds: Mapping[Any, Any]) -> None:
        extents = [max(0, int(evaluate(loop.extent, outer))) for loop in nest]
        self.nest, self.binds, self.extents = nest, binds, extents
        self.values = [_some(e, len(nest), math.prod(extents)) for e in extents]
        self.shape = tuple(len(v) for v in self.values)
        self.count = math.prod(self.shape)
        self.outer = dict(outer)

    def named(self, iteration: int) -> dict[str, int]:
        """Return the values of the loop variables in an iteration, by name."""
        at = np.unravel_index(iteration, self.shape) if self.shape else ()
        pairs = zip(self.nest, self.values, at, strict=True)
        return {str(loop.loop_var.name): int(values[k]) for loop, values, k in pairs}

    def touched(self, access: NestAccess) -> Touched:
        """Return the elements that an access touches.

        Raises
        ------
        Unknown
            If an index or a condition reads memory.
        """
        env, happens, dims = self._grid(access.loops)
        for condition, holds in access.conditions:
            happens = happens & (np.asarray(evaluate(condition, env), bool) == holds)
        element: Any = np.int64(0)
        for index, extent in zip(access.indices, access.buffer.shape, strict=True):
            value, size = evaluate(index, env), evaluate(extent, env)
            happens = happens & (value >= 0) & (value < size)
            element = element * size + value
        number = np.arange(self.count).reshape(self.shape + (1,) * (dims - len(self.shape)))
        element, iteration, kept = np.broadcast_arrays(np.asarray(element, np.int64), number, happens)
        return Touched(element[kept], iteration[kept], env, kept)

    def _grid(self, loops: Sequence[Any]) -> tuple[dict[Any, Any], Any, int]:
        """Return the environment of an access under inner loops, which executions happen, and the dimensions."""
        dims = len(self.shape) + len(loops)
        env, happens = dict(self.outer), np.ones((1,) * dims, bool)
        for d, (loop, values) in enumerate(zip(self.nest, self.values, strict=True)):
            env[loop.loop_var] = _along(values, d, dims)
        self._bind(env)
        room = max(2, LIMIT // max(1, self.count))
        for d, loop in enumerate(loops, len(self.shape)):
            start, extent = evaluate(loop.min, env), evaluate(loop.extent, env)
            largest = max(0, int(np.max(extent, initial=0)))
            values = _along(_some(largest, 1, largest if largest <= room else LIMIT * largest, room), d, dims)
            room = max(2, room // max(1, values.size))
            happens = happens & (values < extent)
            env[loop.loop_var] = start + values
            self._bind(env)
        return env, happens, dims

    def _bind(self, env: dict[Var, Any]) -> None:
        for var, value in self.binds.items():
            if var not in env:
                try:
                    env[var] = evaluate(value, env)
                except Unknown:
                    continue


def _along(values: Array, axis: int, dims: int) -> Array:
    shape = [1] * dims
    shape[axis] = -1
    return np.asarray(values, np.int64).reshape(shape)


def _some(extent: int, dims: int, total: int, limit: int = LIMIT) -> Array:
    """Return all indices below an extent, or a sample if there are too many."""
    return np.arange(extent) if total <= limit else some_of(extent, max(2, int(limit ** (1 / max(1, dims)))))


def some_of(extent: int, budget: int) -> Array:
    """Return all indices below an extent, or the first, the last and some between if they exceed a budget."""
    if extent <= budget:
        return np.arange(extent)
    ends = [x for k in range(max(1, budget // 4)) for x in (k, extent - 1 - k)]
    powers = [p + d for p in (1 << k for k in range(extent.bit_length())) for d in (-1, 0, 1)]
    found = list(dict.fromkeys(k for k in (*ends, *powers) if 0 <= k < extent))[:budget]
    rest = np.random.default_rng(extent).integers(0, extent, max(0, budget - len(found)))
    return np.unique(np.concatenate([np.array(found, np.int64), rest]))
