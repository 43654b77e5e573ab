"""Refuse scratch accesses that are provably out of bounds, and negative indices of unrolled loops.

An out-of-bounds access of a scratch buffer is a mistake in the program. The ranges of the indices are checked first; if
they do not fit, indices and conditions are computed for the iterations (all, or a sample with the ends of large loops),
so that a refusal names one that happens. Indices that depend on memory, scalars or symbolic sizes are not decided here:
such an access, if out of bounds, reads the fill value or is dropped.

The variables of ``T.unroll`` are constants in every copy of the body, so a negative index of a tensor is refused there
as it is in a static loop.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.iteration_space import Space, body_of
from tile_core.analysis.ranges import Ranges, whole
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Call, Expr, Stmt, Var
from tile_core.errors.language import NegativeIndex
from tile_core.errors.ops import OutsideOfScratch
from tile_core.ir import attributes, nodes
from tile_core.ir.names import as_written
from tile_core.ir.visit import StmtRewriter, annotation, collect, role
from tile_core.numerics.build import type_name
from tile_core.ops.base import OpCall, View, is_op

__all__ = ["check_scratch"]

_WRAPPING = (tirx.Add, tirx.Sub, tirx.Mul, tirx.LShift, tirx.Cast)


def check_scratch(body: Stmt) -> None:
    """Check all loads and stores of scratch buffers of a program.

    Raises
    ------
    OutsideOfScratch
        Naming the element, and an iteration that touches it.
    NegativeIndex
        Of a tensor, in an unrolled loop.
    """
    found = body_of(_Corners().stmt(body))
    ranges = Ranges()
    for s in collect(body, (tirx.For, tirx.Bind)):
        if isinstance(s, tirx.For):
            ranges.loop(s)
        elif type_name(s.var).startswith(("int", "uint")):
            ranges.set(s.var, ranges.of(s.value))
    for access in found.accesses:
        if nodes.scope_of(access.buffer) == "global":
            _check_unrolled(access, found.binds, ranges)
        elif not access.pointed and not _inside(access, ranges):
            with suppress(Unknown):
                _Executions(access, found.binds, ranges).check()


class _Corners(StmtRewriter):
    """Replaces tile ops by loads of the first and last element of each scratch tile."""

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s):
            return s
        ends: list[Any] = []
        for view in OpCall.decode(s).args:
            if not isinstance(view, View) or view.scope == "global" or not _filled(view.extents):
                continue
            last = [m + (e - 1) for m, e in zip(view.mins, view.extents, strict=True)]
            ends += [tirx.Evaluate(nodes.load(view.buffer, at), s.span) for at in (list(view.mins), last)]
        return nodes.seq(ends) if ends else s


def _filled(extents: tuple[int, ...]) -> bool:
    return all(isinstance(e, int) and e > 0 for e in extents)


def _check_unrolled(access: Access, binds: dict[Var, Expr], ranges: Ranges) -> None:
    """Refuse indices of a tensor that are negative in a copy of an unrolled body."""
    unrolled = {loop.loop_var for loop in access.loops if role(loop) == "unroll" and not _factor(loop)}
    if not unrolled:
        return
    for dim, index in enumerate(access.indices):
        if ranges.of(index)[0] >= 0:
            continue
        with suppress(Unknown):
            alone = _Executions(replace(access, indices=(index,), conditions=()), binds, ranges)
            if alone.loops and all(v in unrolled or v in binds for v in alone.used):
                _Executions(replace(access, indices=(index,)), binds, ranges).refuse_negative(dim)


def _factor(loop: Stmt) -> bool:
    return annotation(loop, attributes.UNROLL_FACTOR) is not None


def _inside(access: Access, ranges: Ranges) -> bool:
    """Whether the ranges of all indices fit, or an extent is unknown."""
    for index, size in zip(access.indices, nodes.shape_of(access.buffer), strict=True):
        low, high = ranges.of(index)
        if isinstance(size, int) and not (low >= 0 and high < size):
            return False
    return True


class _Executions:
    """The executions of one access, in the iterations of the loops that it depends on.

    Raises
    ------
    Unknown
        If an index or a condition depends on an unknown value.
    """

    def __init__(self, access: Access, binds: dict[Var, Call], ranges: Ranges) -> None:
        self.access, self.binds, self.ranges = access, binds, ranges
        self.env: dict[Var, Array] = {}
        self.used: dict[Var, None] = {}
        inner = {loop.loop_var for loop in access.loops} | set(binds)
        for part in (*access.indices, *(c for c, _ in access.conditions)):
            self.look(part)
        self.loops: list[Stmt] = []
        for loop in reversed(access.loops):
            trips = (loop.min, loop.extent)
            # A loop that the access does not depend on is assumed to run, unless another loop decides that.
            if loop.loop_var in self.used or any(v in inner for e in trips for v in collect(e, tirx.Var)):
                self.loops.insert(0, loop)
                for e in trips:
                    self.look(e)

    def look(self, e: Expr) -> None:
        """Record the variables of an expression, through bindings; give up if it may wrap."""
        for part in collect(e, _WRAPPING):
            kind = type_name(part)
            if kind.startswith(("int", "uint")) and self.ranges.of(part) == whole(kind):
                raise Unknown
        for var in collect(e, tirx.Var):
            if var not in self.used and not tirx.is_buffer_var(var):
                self.used[var] = None
                if var in self.binds:
                    self.look(self.binds[var])

    def check(self) -> None:
        """Refuse if one of them is out of bounds."""
        happens = self.happening()
        if not np.any(happens):
            return
        values = [evaluate(index, self.env) for index in self.access.indices]
        for dim, (value, extent) in enumerate(zip(values, self.access.buffer.shape, strict=True)):
            size = nodes.as_int(extent)
            if not isinstance(size, int):
                continue
            bad = np.asarray(happens & ((value < 0) | (value >= size)))
            if bad.any():
                first = np.unravel_index(int(np.flatnonzero(bad)[0]), bad.shape)
                raise self.refusal(dim, size, tuple(int(i) for i in first), values, bad.shape)

    def refuse_negative(self, dim: int) -> None:
        """Refuse if the only index is negative in one of them."""
        happens = self.happening()
        value = evaluate(self.access.indices[0], self.env)
        bad = np.asarray(happens & (value < 0))
        if bad.any():
            extent = nodes.as_int(self.access.buffer.shape[dim])
            worst = int(np.broadcast_to(value, bad.shape)[bad][0])
            size = self.access.buffer.shape[dim] if extent is None else extent
            if extent is None:
                legal = f"{size} - {-worst}"
            else:
                legal = str(extent + worst) if worst >= -extent else f"one of 0 to {extent - 1}"
            raise NegativeIndex(
                what="index", found=worst, dim=dim, buffer=str(self.access.buffer.name), extent=size, legal=legal,
                where=nodes.where_of(self.access.statement),
            )  # fmt: skip

    def happening(self) -> Array:
        """Give the variables their values; return which executions happen."""
        self.env, happens, _ = Space((), {}, {v: self.binds[v] for v in self.used if v in self.binds}).grid(self.loops)
        for condition, holds in self.access.conditions:
            happens = happens & (np.asarray(evaluate(condition, self.env), bool) == holds)
        return happens

    def refusal(
        self, dim: int, size: int, at: tuple[int, ...], values: list[Array], shape: tuple[int, ...]
    ) -> OutsideOfScratch:
        """Return the error about one execution."""

        def here(value: Array) -> int:
            return int(np.broadcast_to(value, shape)[at])

        index = ", ".join(str(here(v)) for v in values)
        where = nodes.where_of(self.access.statement)
        name = as_written(str(self.access.buffer.name), where)
        trips = [(loop, here(self.env[loop.loop_var]) - here(evaluate(loop.min, self.env))) for loop in self.loops]
        iteration = ", ".join(_iteration(loop, trip) for loop, trip in trips)
        found = "reads" if self.access.value is None else "writes"
        if isinstance(self.access.statement, tirx.Evaluate):
            found = "covers"
        return OutsideOfScratch(
            who=as_written(f"iteration {iteration}", where) if iteration else "this statement",
            action=found,
            element=f"{name}[{index}]",
            buffer=name,
            dim=dim,
            extent=size,
            where=where,
        )


def _iteration(loop: Stmt, trip: int) -> str:
    name = str(loop.loop_var.name)
    return f"{name}={trip}" if role(loop) in ("parallel", "vectorized", "grid") else f"{trip} of {name}"
