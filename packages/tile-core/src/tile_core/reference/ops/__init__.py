"""Tile ops in NumPy for lane-uniform operands; otherwise their reference loops.

An op of the core without an entry in ``MEANINGS``, or one whose operands differ between lanes, is executed by the plain
loops that define it (``TileOp.meaning``), a lane per iteration. Tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tile_core.compat.types import Array, Stmt
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import BARRIER_CALLS
from tile_core.ops.base import COMPLETED, COUNTED, OpCall, View
from tile_core.ops.registry import OPS
from tile_core.reference.expressions import compile_expression
from tile_core.reference.ops import atomics, debug, moves, products, reductions, windows
from tile_core.reference.ops.operands import BoundCall, RegionOperand
from tile_core.reference.scope import CompileScope, Expression, Statement
from tile_core.reference.state import State

__all__ = ["MEANINGS", "compile_op", "compile_value"]


#: The function of an op on regions of the block's memory.
MEANINGS: dict[str, Callable[[BoundCall], None]] = {
    "copy": moves.copy, "fill": moves.fill, "transpose": moves.transpose, "gather": moves.gather,
    "scatter": moves.scatter, "gemm": products.gemm, "gemm_sp": products.gemm_sp,
    "gemm_scaled": products.gemm_scaled, "reduce": reductions.reduce,
    "scan": reductions.scan, "c2d_im2col": windows.im2col, "finalize_reducer": lambda call: None,
}  # fmt: skip


def compile_op(s: Stmt, scope: CompileScope) -> Statement:
    """Return the function of a statement that is a call of the language.

    Raises
    ------
    NoReferenceMeaning
        If the core defines no meaning of the call.
    """
    name = str(s.value.op.name)[5:]
    if name in ("sync_threads", "sync_warp") or name in BARRIER_CALLS:
        return lambda state: None  # the threads go in lock step
    if name in ("print", "device_assert"):
        return debug.compile_debug(OpCall.decode(s), scope)
    if name in atomics.NAMES:
        return _without_value(atomics.compile_atomic(OpCall.decode(s), scope))
    if name not in OPS:
        raise NoReferenceMeaning(what=f"T.{name}", where=scope.where)
    call = OpCall.decode(s)
    if name in COUNTED or attributes.COMPLETES in call.attrs:
        # A barrier that counts its bytes, or at which it arrives, changes nothing.
        call = replace(call, args=call.args[: (COUNTED | COMPLETED)[name]])
    if name == "gemm_sp":
        call = replace(call, attrs={**call.attrs, attributes.ORIGINS: scope.origins(call.args[1])})
    return _Op(call, scope).run


def compile_value(s: Stmt, scope: CompileScope) -> Expression | None:
    """Return the function of a bound tile call; ``None`` if it is an expression."""
    name = str(s.value.op.name)[5:]
    return atomics.compile_atomic(OpCall.decode(s), scope) if name in atomics.NAMES else None


class _Op:
    """A tile op of the core."""

    def __init__(self, call: OpCall, scope: CompileScope) -> None:
        self.call, self.scope, self.where = call, scope, scope.where
        self.args = [
            RegionOperand(a, scope) if isinstance(a, View) else compile_expression(a, scope) for a in call.args
        ]
        self.types = tuple(a.dtype if isinstance(a, View) else nodes.dtype_of(a) for a in call.args)
        self.meaning = None if scope.loops and call.name != "finalize_reducer" else MEANINGS.get(call.name)
        self._loops: Statement | None = None
        # A loop that is made later still needs the definitions here.
        if self.meaning is None:
            self.loops(None)

    def run(self, state: State) -> None:
        """Execute the op."""
        if state.mask is False:
            return
        bound = None if self.meaning is None else self.bind(state)
        if bound is None or self.meaning is None:
            self.loops(state)
            return
        self.meaning(bound)

    def bind(self, state: State) -> BoundCall | None:
        """Return the call with its operands, or ``None`` if lanes disagree about one."""
        values: list[Array] = []
        for arg in self.args:
            value = arg.bound(state) if isinstance(arg, RegionOperand) else arg(state)
            if value is None or isinstance(value, np.ndarray):
                return None
            values.append(value)
        return BoundCall(tuple(values), self.types, self.call.attrs, self.where)

    def loops(self, state: State | None) -> None:
        """Execute the loops of the op's meaning, which are made when they are first needed."""
        if self._loops is None:
            scope = self.scope
            before = (scope.spread, scope.where)
            scope.spread, scope.where = True, self.where
            self._loops = scope.statement(OPS[self.call.name].meaning(self.call))
            scope.spread, scope.where = before
        if state is None:
            return
        state.values += [None] * (len(self.scope.variables) - len(state.values))
        state.memories += [None] * (len(self.scope.buffers) - len(state.memories))
        self._loops(state)


def _without_value(update: Expression) -> Statement:
    def run(state: State) -> None:
        update(state)

    return run
