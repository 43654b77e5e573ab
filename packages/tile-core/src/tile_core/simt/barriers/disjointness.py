"""Disjointness of accesses: proofs that different threads never touch the same byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tile_core.analysis.affine import linear_form
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.uniformity import Varying
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir
from tile_core.compat.types import Array, Call, Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr, substitute, variables
from tile_core.simt.barriers.shared_accesses import SharedAccess
from tile_core.simt.variant import Block

#: The most elements, over all threads and iterations, that are enumerated.
MOST = 1 << 17
_WIDE = 1 << 20


class Owners:
    """Compares the accesses of all threads of a block.

    Parameters
    ----------
    block
        The threads; without them nothing is proven.
    varying
        Which variables differ between threads.
    bounds
        First value and extent of the loop variables for which they are constant.
    """

    def __init__(self, block: Block | None, varying: Varying, bounds: Mapping[Any, tuple[int, int]]) -> None:
        self.varying, self.bounds = varying, bounds
        self.count = 0 if block is None else block.count
        self.values: dict[Any, Any] = {}
        self.axes = [nodes.fresh(f"t{d}") for d in range(3)]
        if block is not None:
            number = np.arange(block.count, dtype=np.int64)
            x, y, _ = block.extents
            parts = (number % x, number // x % y, number // (x * y))
            self.values = dict(zip(self.axes, parts, strict=True))
            if block.thread is not None:
                self.values[block.thread] = number
        self.prints: dict[tuple[Any, ...], Any] = {}
        self.kept: list[SharedAccess] = []
        self.named: dict[SharedAccess, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}

    def apart(self, a: SharedAccess, b: SharedAccess) -> bool:
        """Whether no byte is provably touched by different threads in ``a`` and ``b``."""
        if not self.count or a.indices is None or b.indices is None:
            return False
        same = a.buffer.same_as(b.buffer)
        flat = isinstance(a.memory.space, str) and isinstance(b.memory.space, str)
        if not same and not (flat and len(a.indices) == len(b.indices) == 1):
            return False
        if len(a.indices) != len(b.indices) or not a.memory.size or not b.memory.size:
            return False
        cancelled = self.cancelled(a, b)
        if cancelled is None:
            return False
        unit = a.memory.size if same else 1
        first, second = (self.footprint(x, cancelled, unit, not same) for x in (a, b))
        return first is not None and second is not None and not _meet(first, second)

    def cancelled(self, a: SharedAccess, b: SharedAccess) -> tuple[Any, ...] | None:
        """Return the variables that contribute equally to both addresses; ``None`` if others are unknown."""
        (ia, _), (ib, _) = self.names(a), self.names(b)
        own = {v for x in (a, b) for v, _, _ in x.ranges}
        free = frozenset[Any]().union(*map(variables, (*ia, *ib))) - own - set(self.values)
        found = []
        for v in free:
            if v not in self.varying.vars and _same_terms(ia, ib, v):
                found.append(v)
            elif v not in self.bounds:
                return None
        return tuple(sorted(found, key=lambda v: str(v.name)))

    def names(self, a: SharedAccess) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return indices and conditions in which the thread's coordinates are variables."""
        if a not in self.named:
            assert a.indices is not None
            self.named[a] = (
                tuple(self.with_axes(e) for e in a.indices), tuple(self.with_axes(c) for c in a.conditions)
            )  # fmt: skip
        return self.named[a]

    def with_axes(self, e: Expr) -> Expr:
        """Return an expression with variables for the thread's coordinates."""

        def axis(call: Call) -> Var:
            return self.axes[int(nodes.as_int(call.args[0]))] if nodes.is_tile_call(call, "thread_index") else call

        return map_expr(e, axis, ir.Call)

    def footprint(self, a: SharedAccess, cancelled: tuple[Var, ...], unit: int, absolute: bool) -> Any:
        """Return (addresses, lowest thread, highest thread) of an access; ``None`` if too many to enumerate."""
        key = (id(a), *map(identity, cancelled), unit, absolute)
        if key not in self.prints:
            self.kept.append(a)
            try:
                self.prints[key] = self.look(a, cancelled, unit, absolute)
            except (Unknown, OverflowError):
                self.prints[key] = None
        return self.prints[key]

    def look(self, a: SharedAccess, cancelled: tuple[Var, ...], unit: int, absolute: bool) -> Any:
        """Return the result of ``footprint``, or raise ``Unknown``."""
        indices, conditions = self.names(a)
        zero = {v: nodes.int_const(0, nodes.dtype_of(v)) for v in cancelled}
        indices = tuple(substitute(e, zero) for e in indices)
        used = frozenset[Any]().union(*map(variables, (*indices, *conditions)))
        known = {v: (start, extent) for v, start, extent in a.ranges if v in used}
        known |= {v: self.bounds[v] for v in used if v in self.bounds and v not in known and v not in cancelled}
        length = max(1, -(-a.bytes // unit)) if not absolute else a.bytes
        total = self.count * length
        for _, extent in known.values():
            total *= max(extent, 1)
        if total > MOST:
            return None
        env, shape = self.environment(known)
        addresses = self.addresses(indices, env, shape, length)
        thread = np.broadcast_to(np.arange(self.count).reshape(-1, *[1] * (len(shape) - 1)), shape)
        mask = np.ones(shape, dtype=bool)
        for c in conditions:
            try:
                mask &= np.broadcast_to(np.asarray(evaluate(c, env), dtype=bool), shape)
            except Unknown:
                continue
        starts, threads = addresses[mask], thread[mask]
        if absolute:
            starts = a.memory.first + starts * a.memory.size
        steps = np.arange(length, dtype=np.int64)
        return _owners((starts[:, None] + steps).ravel(), np.repeat(threads, length))

    def environment(self, known: Mapping[Any, tuple[int, int]]) -> tuple[dict[Any, Any], tuple[int, ...]]:
        """Return arrays of the threads and of the loop variables that span all combinations."""
        shape = (self.count, *(extent for _, extent in known.values()))
        rank = len(shape)
        env = {v: values.reshape(-1, *[1] * (rank - 1)) for v, values in self.values.items()}
        for axis, (v, (start, extent)) in enumerate(known.items(), 1):
            env[v] = np.arange(start, start + extent, dtype=np.int64).reshape(*[1] * axis, -1, *[1] * (rank - 1 - axis))
        return env, shape

    def addresses(
        self, indices: Sequence[Expr], env: Mapping[Var, Array], shape: tuple[int, ...], length: int
    ) -> Array:
        """Return one linear index for each tuple of indices; the last one spans ``length`` elements."""
        total: Any = np.zeros(shape, dtype=np.int64)
        for e in indices:
            value = np.broadcast_to(np.asarray(evaluate(e, env), dtype=np.int64), shape)
            if len(indices) > 1:
                if value.size and (abs(value).max() + length >= _WIDE // 2 or len(indices) > 3):
                    raise Unknown
                value = value + _WIDE // 2
            total = total * _WIDE + value
        return total


def _same_terms(ia: Sequence[Expr], ib: Sequence[Expr], v: Var) -> bool:
    """Whether a variable adds the same term to the indices on both sides."""
    for a, b in zip(ia, ib, strict=True):
        one, two = (linear_form(e, [v]) for e in (a, b))
        if one is None or two is None or one.steps != two.steps:
            return False
    return True


def _owners(addresses: Array, threads: Array) -> Any:
    """Return the distinct addresses in order, with their lowest and highest thread."""
    order = np.lexsort((threads, addresses))
    addresses, threads = addresses[order], threads[order]
    starts = (
        np.flatnonzero(np.r_[True, addresses[1:] != addresses[:-1]]) if len(addresses) else np.zeros(0, dtype=np.int64)
    )
    ends = np.r_[starts[1:], len(addresses)] - 1 if len(addresses) else starts
    return addresses[starts], threads[starts], threads[ends]


def _meet(a: Any, b: Any) -> bool:
    """Whether two different threads touch one address."""
    _, i, j = np.intersect1d(a[0], b[0], assume_unique=True, return_indices=True)
    lowest = np.minimum(a[1][i], b[1][j])
    highest = np.maximum(a[2][i], b[2][j])
    return bool(np.any(lowest != highest))
