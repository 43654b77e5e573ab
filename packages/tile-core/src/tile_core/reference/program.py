"""A traced program made ready for execution: numbers for its variables and buffers, functions for its statements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.compat.tvm import ir, tirx
from tile_core.errors import Where
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import nodes
from tile_core.ir.access import accesses
from tile_core.ir.program import Program
from tile_core.ir.visit import collect, role
from tile_core.ir.warp import WARP_CALLS
from tile_core.ops.effects import effects
from tile_core.reference.elements import holder
from tile_core.reference.expressions import Expression, compile_expression
from tile_core.reference.lanes import Lanes
from tile_core.reference.rounding import Shaker
from tile_core.reference.sanitizer import Sanitizer
from tile_core.reference.state import State
from tile_core.reference.statements import Statement, compile_statement

__all__ = ["Compiled", "Scope"]

#: Calls that make a kernel one whose body every thread of a block executes.
_THREAD_CALLS = WARP_CALLS | {"thread_index", "lane_index", "warp_index", "sync_threads", "sync_warp"}


class Scope:
    """What is known of a program while its functions are made.

    Attributes
    ----------
    variables, buffers
        Numbers of variables and buffers.
    symbols
        Numbers of symbolic sizes by name.
    base
        By number of a buffer that of the one whose storage it shows.
    units
        By number of a buffer that has its own storage the bytes of the smallest element that a view has.
    reducers
        Numbers of ``T.alloc_reducer`` buffers, with what combines their partial results.
    spread
        Whether parallel loops are the meaning of a tile op, so that their iterations share a lane's private memory.
    loops
        Whether tile ops are always executed by the loops of their meaning.
    where
        The user's line that is being looked at.
    reads
        Numbers of the buffers that loads were made for.
    """

    def __init__(self, program: Program, loops: bool) -> None:
        self.variables: dict[Any, int] = {}
        self.buffers: dict[Any, int] = {}
        self.base: dict[int, int] = {}
        self.units: dict[int, int] = {}
        self.reducers: dict[int, str] = {}
        self.spread, self.loops = False, loops
        self.where: Where | None = program.where
        self.reads: set[int] = set()
        self.threads = uses_threads(program.func.body)
        self.symbols = {name: self.define(v) for name, v in program.symbols.items()}
        self._reducers = {str(k): str(v["op"]) for k, v in program.reducers.items()}

    def define(self, var: Any) -> int:
        """Return the number of a variable, new or not."""
        return self.variables.setdefault(var, len(self.variables))

    def variable(self, var: Any) -> int:
        """Return the number of a variable that is defined."""
        number = self.variables.get(var)
        if number is None and str(var.name) in self.symbols:
            # A program that was pickled has its symbols twice.
            number = self.variables[var] = self.symbols[str(var.name)]
        if number is None:
            raise NoReferenceMeaning(what=f"the variable {var.name}", where=self.where)
        return number

    def allocate(self, buffer: Any, base: Any = None) -> int:
        """Return the number of a buffer that is defined here; ``base`` is the one whose storage it shows."""
        number = self.buffers.setdefault(buffer, len(self.buffers))
        root = number if base is None else self.base[self.buffers[base]]
        self.base[number] = root
        size = holder(nodes.element_type(buffer)).itemsize
        self.units[root] = min(self.units.get(root, size), size)
        op = self._reducers.get(str(buffer.name))
        if op is not None:
            self.reducers[number] = op
        return number

    def buffer(self, buffer: Any) -> int:
        """Return the number of a buffer that is defined."""
        return self.buffers[buffer]

    def sharing(self, numbers: Any) -> frozenset[int]:
        """Return the numbers of all buffers that show the storage of one of ``numbers``."""
        roots = {self.base[n] for n in numbers}
        return frozenset(n for n, root in self.base.items() if root in roots)


class Compiled:
    """A program that can be executed any number of times.

    Parameters
    ----------
    program
        A traced program, before any pass.
    loops
        Execute tile ops by the loops of their meaning also where NumPy has them at once.

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

    def __init__(self, program: Program, loops: bool = False) -> None:
        self.program = program
        scope = self.scope = Scope(program, loops)
        self.symbols = scope.symbols
        self.params: list[tuple[Any, int]] = []
        for param in program.func.params:
            is_buffer = tirx.is_buffer_var(param)
            self.params.append((param, scope.allocate(param) if is_buffer else scope.define(param)))
        self.shapes = {
            number: (self._dims(param.shape), self._dims(param.ty.strides) if param.ty.strides else None)
            for param, number in self.params
            if tirx.is_buffer_var(param)
        }
        safe = program.attrs.get("safe_values", {})
        self.fills = {
            number: compile_expression(nodes.cast(safe[str(p.name)], nodes.element_type(p)), scope)
            for p, number in self.params
            if tirx.is_buffer_var(p) and str(p.name) in safe
        }
        access = accesses(program.func.body, effects)
        self.written = {n for p, n in self.params if access.get(str(p.name), "read") != "read"}
        self.threads = _threads_of(program.func.body)
        self.body = self._grid(program.func.body)

    def state(self, width: int, sanitizer: Sanitizer | None, shake: int | None) -> State:
        """Return the state before the launch, without arguments; ``shake`` is the seed of a ``Shaker``."""
        shaker = None if shake is None else Shaker(shake)
        return State(len(self.scope.variables), len(self.scope.buffers), self.threads, width, sanitizer, shaker)

    def run(self, state: State) -> None:
        """Execute all blocks, one after the other in the order of their numbers, the first axis fastest."""
        with np.errstate(all="ignore"):
            self.body(state)

    def _dims(self, dims: Sequence[Any]) -> list[Expression]:
        return [compile_expression(d, self.scope) for d in dims]

    def _grid(self, s: Any) -> Statement:
        scope = self.scope
        if not (isinstance(s, tirx.For) and role(s) == "grid"):
            return self._block(s)
        extent, number = compile_expression(s.extent, scope), scope.define(s.loop_var)
        axis = int(nodes.as_int(s.annotations[nodes.AXIS]))
        kind = holder(nodes.dtype_of(s.loop_var)).type
        inner = self._grid(s.body)

        def run(state: State) -> None:
            for at in range(int(extent(state))):
                state.values[number], state.grid[axis] = kind(at), at
                inner(state)

        return run

    def _block(self, s: Any) -> Statement:
        scope, body = self.scope, compile_statement(s, self.scope)
        threads = math.prod(self.threads) if scope.threads else 1

        def run(state: State) -> None:
            state.lanes, state.mask = Lanes(threads), None
            body(state)

        return run


def uses_threads(body: Any) -> bool:
    """Return whether a program names its threads."""
    return any(nodes.is_tile_call(c) and str(c.op.name)[5:] in _THREAD_CALLS for c in collect(body, ir.Call))


def _threads_of(body: Any) -> tuple[int, int, int]:
    while isinstance(body, tirx.For) and role(body) == "grid":
        if nodes.THREADS in body.annotations:
            x, y, z = (int(nodes.as_int(n)) for n in body.annotations[nodes.THREADS])
            return x, y, z
        body = body.body
    return 1, 1, 1
