"""Compile a traced program for execution: numbered variables and buffers, statement functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.access import accesses
from tile_core.ir.attributes import AXIS, SAFE_VALUES, THREADS, Attrs
from tile_core.ir.calls import BARRIER_CALLS
from tile_core.ir.program import Program, cluster_of
from tile_core.ir.visit import collect, role
from tile_core.numerics.levels import STANDARD
from tile_core.ops.effects import effects
from tile_core.reference.blocks import BlockWatch
from tile_core.reference.cluster import block_state, compile_side_by_side, has_sends
from tile_core.reference.elements import holder
from tile_core.reference.expressions import compile_expression
from tile_core.reference.lanes import LaneSet
from tile_core.reference.observe import Observer
from tile_core.reference.rounding import Shaker
from tile_core.reference.sanitizer import Sanitizer
from tile_core.reference.scope import CompileScope, Expression, Statement, uses_threads
from tile_core.reference.state import State
from tile_core.reference.statements import compile_statement

__all__ = ["Compiled"]


class Compiled:
    """A program that can be executed any number of times.

    Parameters
    ----------
    program
        A traced program, before any pass.
    loops
        Execute tile ops by the loops of their meaning also where NumPy has them at once.
    observed
        Call the observer of the state, see ``observe``.

    Attributes
    ----------
    params
        The parameters with their numbers, as variables or as buffers.
    written
        Numbers of the parameters that may be written.

    Raises
    ------
    NoReferenceMeaning
        If it has an operation of a backend without a meaning.
    """

    def __init__(self, program: Program, loops: bool = False, observed: bool = False) -> None:
        self.program = program
        scope = self.scope = CompileScope(program, loops, compile_statement, observed)
        self.symbols = scope.symbols
        self.params: list[tuple[Var, int]] = []
        for param in program.func.params:
            is_buffer = tirx.is_buffer_var(param)
            self.params.append((param, scope.allocate(param) if is_buffer else scope.define(param)))
        self.shapes = {
            number: (self._dims(param.shape), self._dims(param.ty.strides) if param.ty.strides else None)
            for param, number in self.params
            if tirx.is_buffer_var(param)
        }
        self.fills = self._fills(program.attrs)
        access = accesses(program.func.body, effects)
        self.written = {n for p, n in self.params if access.get(str(p.name), "read") != "read"}
        body = program.func.body
        self.threads = _threads_of(body)
        several = len(program.launches) > 1
        cluster = cluster_of(program.attrs)
        self.body = self._launches(program, list(body.seq)) if several else self._launch(body, self.threads, cluster)

    def state(
        self, width: int, bounds: bool | None, shake: int | None, printed: list[str] | None, level: str = STANDARD
    ) -> State:
        """Return the state before the launch, without arguments.

        Parameters
        ----------
        width
            Threads of a warp.
        bounds
            Of a ``Sanitizer``; ``None`` for memory that is not watched.
        shake
            Seed of a ``Shaker``, or ``None``.
        printed
            Receives the lines of ``T.print``, or ``None``.
        level
            Level of numerics, by whose bounds the ``Shaker`` changes results.
        """
        shaker = None if shake is None else Shaker(shake, level)
        sanitizer = None if bounds is None else Sanitizer(bounds, BlockWatch(self.scope.ordered))
        state = State(len(self.scope.variables), len(self.scope.buffers), self.threads, width, sanitizer, shaker)
        state.printed = [] if printed is None else printed
        return state

    def run(self, state: State, observer: Observer | None = None) -> None:
        """Execute all blocks sequentially in the order of their indices, the first axis fastest."""
        state.observer = observer
        if observer is not None:
            observer.start(self, state)
        with np.errstate(all="ignore"):
            self.body(state)

    def _dims(self, dims: Sequence[Expr]) -> list[Expression]:
        return [compile_expression(d, self.scope) for d in dims]

    def _fills(self, attrs: Attrs) -> dict[int, Expression]:
        """Return the fill value of out-of-bounds reads by tensor number."""
        safe = attrs.get(SAFE_VALUES, {})
        return {
            number: compile_expression(nodes.cast(safe[str(p.name)], nodes.element_type(p)), self.scope)
            for p, number in self.params
            if tirx.is_buffer_var(p) and str(p.name) in safe
        }

    def _launches(self, program: Program, bodies: Sequence[Stmt]) -> Statement:
        """Return several launches in order, each with its own threads and values outside."""
        made = []
        for body, attrs in zip(bodies, program.launches, strict=True):
            self.scope.threads = uses_threads(body)
            threads = _threads_of(body)
            made.append((threads, self._fills(attrs), self._launch(body, threads, cluster_of(attrs))))

        def run(state: State) -> None:
            for threads, fills, launch in made:
                state.threads, state.grid = threads, {}
                state.fills = {number: value(state) for number, value in fills.items()}
                launch(state)

        return run

    def _launch(self, s: Stmt, threads: tuple[int, int, int], cluster: tuple[int, int, int]) -> Statement:
        """Return a launch, which begins with no accesses of blocks to compare."""
        inner, extents, body = self._grid(s, threads, cluster), [], s
        while isinstance(body, tirx.For) and role(body) == "grid":
            extents.append(compile_expression(body.extent, self.scope))
            body = body.body

        def run(state: State) -> None:
            if state.sanitizer is not None:
                state.sanitizer.blocks.launch(math.prod(int(extent(state)) for extent in extents))
            inner(state)

        return run

    def _grid(self, s: Stmt, threads: tuple[int, int, int], cluster: tuple[int, int, int]) -> Statement:
        scope = self.scope
        if has_sends(s):
            return self._clusters(s, threads, cluster)
        if not (isinstance(s, tirx.For) and role(s) == "grid"):
            return self._block(s, threads, cluster)
        extent, number = compile_expression(s.extent, scope), scope.define(s.loop_var)
        axis = int(nodes.as_int(s.annotations[AXIS]))
        kind = holder(nodes.dtype_of(s.loop_var)).type
        inner = self._grid(s.body, threads, cluster)

        def run(state: State) -> None:
            for at in range(int(extent(state))):
                state.values[number], state.grid[axis] = kind(at), at
                inner(state)

        return run

    def _clusters(self, s: Stmt, threads: tuple[int, int, int], cluster: tuple[int, int, int]) -> Statement:
        """Return the launch of a program whose clusters run in lockstep."""
        scope, axes = self.scope, []
        while isinstance(s, tirx.For) and role(s) == "grid":
            axis, kind = int(nodes.as_int(s.annotations[AXIS])), holder(nodes.dtype_of(s.loop_var)).type
            axes.append((axis, compile_expression(s.extent, scope), scope.define(s.loop_var), kind))
            s = s.body
        run_cluster = compile_side_by_side(s, scope)
        lanes = math.prod(threads) if scope.threads else 1

        def run(state: State) -> None:
            steps = [range(0, int(extent(state)), cluster[axis]) for axis, extent, _, _ in axes]
            for first in itertools.product(*steps):
                if state.sanitizer is not None:
                    state.sanitizer.blocks.enter(first)
                states = []
                for within in itertools.product(*(range(cluster[axis]) for axis, *_ in axes)):
                    mine = block_state(state)
                    for (axis, _, number, kind), low, more in zip(axes, first, within, strict=True):
                        mine.values[number], mine.grid[axis] = kind(low + more), low + more
                    mine.lanes, mine.mask = LaneSet(lanes), None
                    states.append(mine)
                run_cluster(states, range(len(states)))

        return run

    def _block(self, s: Stmt, threads: tuple[int, int, int], cluster: tuple[int, int, int]) -> Statement:
        scope, body = self.scope, compile_statement(s, self.scope)
        lanes = math.prod(threads) if scope.threads else 1
        # Barriers of a cluster order the accesses of its blocks, which count as one.
        steps = cluster if _has_barriers(s) else (1, 1, 1)

        def run(state: State) -> None:
            state.lanes, state.mask = LaneSet(lanes), None
            if state.sanitizer is not None:
                state.sanitizer.blocks.enter(tuple(n // steps[axis] for axis, n in sorted(state.grid.items())))
            body(state)

        return run


def _has_barriers(s: Stmt) -> bool:
    return any(nodes.operator_name(c).removeprefix("tile.") in BARRIER_CALLS for c in collect(s, ir.Call))


def _threads_of(body: Stmt) -> tuple[int, int, int]:
    while isinstance(body, tirx.For) and role(body) == "grid":
        if THREADS in body.annotations:
            x, y, z = (int(nodes.as_int(n)) for n in body.annotations[THREADS])
            return x, y, z
        body = body.body
    return 1, 1, 1
