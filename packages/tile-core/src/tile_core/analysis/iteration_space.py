"""Every access of a loop nest with its elements, enumerated with NumPy integers.

``body_of`` lists the loads and stores of a nest's body, with their enclosing conditions and inner loops.
``Space`` holds values of the loop variables (all of them, or a sample), and computes which element an access touches in
which iteration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.compat.types import Array, BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.records import dataclass

#: Largest number of (iteration, inner iteration) pairs that are enumerated for one access.
LIMIT = 1 << 16


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

    accesses: list[Access] = field(default_factory=list)
    unclear: list[Stmt] = field(default_factory=list)
    binds: dict[Var, Expr] = field(default_factory=dict)


def body_of(body: Stmt) -> Body:
    """List the accesses of a nest's body."""
    flow = Flow(body)
    found = Body(binds=flow.binds)
    unclear = {p for p in flow.points if p.kind == "while" or (p.kind == "for" and flow.jumps(p))}
    leaves = bool(flow.jumps(None))
    before = None
    for a in flow.accesses:
        if a.how == "element" or (a.pointed and (before is None or before.indices is not a.indices)):
            if not leaves and a.point.kind != "while" and unclear.isdisjoint(a.point.loops):
                found.accesses.append(a)
            elif a.value is not None:
                found.unclear.append(a.statement)
        before = a
    return found


@dataclass(frozen=True)
class Touched:
    """The elements that one access touches, one entry per execution of it.

    Attributes
    ----------
    element
        Row-major indices of the elements in their buffer; where its strides let elements overlap, their offsets.
    iteration
        Numbers of the iterations of the nest.
    env
        Values of the variables, in the shape that ``kept`` has.
    kept
        Which executions happen, and inside the buffer.
    """

    element: Array
    iteration: Array
    env: dict[Var, Array]
    kept: Array


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
    limit, pairs
        Largest number of iterations, and of (iteration, inner iteration) pairs for one access, that are enumerated.

    Raises
    ------
    Unknown
        If an extent of the nest reads memory or uses an unknown variable.
    """

    def __init__(
        self,
        nest: Sequence[Stmt],
        outer: Mapping[Var, int],
        binds: Mapping[Var, Expr],
        limit: int = LIMIT,
        pairs: int = LIMIT,
    ) -> None:
        extents = [max(0, int(evaluate(loop.extent, outer))) for loop in nest]
        self.nest, self.binds, self.extents = nest, binds, extents
        self.values = [_some(e, len(nest), math.prod(extents), limit) for e in extents]
        self.shape = tuple(len(v) for v in self.values)
        self.count, self.pairs = math.prod(self.shape), pairs
        self.outer = dict(outer)

    def named(self, iteration: int) -> dict[str, int]:
        """Return the values of the loop variables in an iteration, by name."""
        at = np.unravel_index(iteration, self.shape) if self.shape else ()
        pairs = zip(self.nest, self.values, at, strict=True)
        return {str(loop.loop_var.name): int(values[k]) for loop, values, k in pairs}

    def touched(self, access: Access) -> Touched:
        """Return the elements that an access touches.

        Raises
        ------
        Unknown
            If an index or a condition reads memory.
        """
        env, happens, dims = self.grid(access.loops)
        for condition, holds in access.conditions:
            happens = happens & (np.asarray(evaluate(condition, env), bool) == holds)
        element: Array = np.int64(0)
        strides = overlapping_strides(access.buffer)
        for d, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            value, size = evaluate(index, env), evaluate(extent, env)
            happens = happens & (value >= 0) & (value < size)
            element = element * size + value if strides is None else element + value * strides[d]
        number = np.arange(self.count).reshape(self.shape + (1,) * (dims - len(self.shape)))
        element, iteration, kept = np.broadcast_arrays(np.asarray(element, np.int64), number, happens)
        return Touched(element[kept], iteration[kept], env, kept)

    def grid(self, loops: Sequence[Stmt]) -> tuple[dict[Var, Array], Array, int]:
        """Return the environment of an access under inner loops, which executions happen, and the dimensions."""
        dims = len(self.shape) + len(loops)
        env, happens = dict(self.outer), np.ones((1,) * dims, bool)
        for d, (loop, values) in enumerate(zip(self.nest, self.values, strict=True)):
            env[loop.loop_var] = _along(values, d, dims)
        self._bind(env)
        budget = max(2, self.pairs // max(1, self.count))
        for d, loop in enumerate(loops, len(self.shape)):
            start, extent = evaluate(loop.min, env), evaluate(loop.extent, env)
            largest = max(0, int(np.max(extent, initial=0)))
            values = _along(_some(largest, 1, largest if largest <= budget else LIMIT * largest, budget), d, dims)
            budget = max(2, budget // max(1, values.size))
            happens = happens & (values < extent)
            env[loop.loop_var] = start + values
            self._bind(env)
        return env, happens, dims

    def _bind(self, env: dict[Var, Array]) -> None:
        for var, value in self.binds.items():
            if var not in env:
                try:
                    env[var] = evaluate(value, env)
                except Unknown:
                    continue


def overlapping_strides(buffer: BufferVar) -> tuple[int, ...] | None:
    """Return the strides of a tensor if they are constant and may overlap."""
    strides = [nodes.as_int(s) for s in buffer.ty.strides or ()]
    shape = nodes.shape_of(buffer)
    if not strides or not all(isinstance(x, int) for x in (*strides, *shape)):
        return None
    reach = 0
    for stride, extent in sorted((abs(s), e) for s, e in zip(strides, shape, strict=True) if e != 1):
        if stride <= reach:
            return tuple(strides)
        reach += stride * (extent - 1)
    return None


def _along(values: Array, axis: int, dims: int) -> Array:
    shape = [1] * dims
    shape[axis] = -1
    return np.asarray(values, np.int64).reshape(shape)


def _some(extent: int, dims: int, total: int, limit: int = LIMIT) -> Array:
    """Return all indices below an extent, or a sample if there are too many."""
    return np.arange(extent) if total <= limit else _sample(extent, max(2, int(limit ** (1 / max(1, dims)))))


def _sample(extent: int, budget: int) -> Array:
    """Return all indices below an extent, or beyond a budget a sample with both ends."""
    if extent <= budget:
        return np.arange(extent)
    ends = [x for k in range(max(1, budget // 4)) for x in (k, extent - 1 - k)]
    powers = [p + d for p in (1 << k for k in range(extent.bit_length())) for d in (-1, 0, 1)]
    found = list(dict.fromkeys(k for k in (*ends, *powers) if 0 <= k < extent))[:budget]
    rest = np.random.default_rng(extent).integers(0, extent, max(0, budget - len(found)))
    return np.array(sorted({*found, *rest.tolist()}), np.int64)
