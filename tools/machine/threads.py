"""The machine: executes the body of one thread in all threads of a block."""

from __future__ import annotations

import copy

import numpy as np

from machine import schedule
from machine.expressions import compile_expression
from machine.scope import Held
from machine.state import State
from machine.statements import compile_statement
from tile_core.compat.types import Array, Expr, Stmt

__all__ = ["Machine"]


class Machine(State):
    """A block of threads that executes bodies; for its parameters see ``State``."""

    def run(self, body: Stmt) -> Machine:
        """Execute a body in all threads in lockstep, one statement at a time."""
        with np.errstate(all="ignore"):
            schedule.lockstep(self, compile_statement(body, self.numbers))
        self.copies.finished()
        return self

    def scatter(self, body: Stmt, seed: int) -> Machine:
        """Execute a body with interleaved threads: one after another, or access by access."""
        with np.errstate(all="ignore"):
            threads = [self._alone(n) for n in range(self.count)]
            schedule.scattered(threads, compile_statement(body, self.numbers), seed)
        return self

    def eval(self, e: Expr, on: Array = None) -> Array:
        """Return the value of an expression in every lane; undefined in inactive lanes."""
        return compile_expression(e, self.numbers)(self, np.ones(self.count, bool) if on is None else on)

    def _alone(self, lane: int) -> Machine:
        one = copy.copy(self)
        one.lanes = self.lanes[lane : lane + 1]
        one.values, one.private = Held(self.numbers), Held(self.numbers)
        for mine, all_lanes in ((one.values, self.values), (one.private, self.private)):
            mine.held = {n: x[lane : lane + 1] if isinstance(x, np.ndarray) else x for n, x in all_lanes.held.items()}
        one.left = one.skipped = np.zeros(1, bool)
        return one
