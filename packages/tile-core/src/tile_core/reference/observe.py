"""Observed executions: functions that are called before and after each statement of a program.

The statements are those of the user's source: loops that define a tile op are a part of its one statement. Only
programs that are compiled for it (``Compiled(observed=True)``) call an observer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.ir.warp import REDUCTIONS, SHUFFLES
from tile_core.ops.base import OpCall
from tile_core.ops.effects import effects
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.reference.scope import CompileScope, Expression, Statement
    from tile_core.reference.state import State

__all__ = ["Observer", "Site", "observed_expression", "observed_statement"]

#: Statements without an effect that a user would see.
_SILENT = ("SeqStmt", "AttrStmt", "AllocBuffer", "DeclBuffer")
#: Statements that contain others.
_COMPOUND = ("For", "While", "IfThenElse")
_LEAVES = ("Var", "TensorLoad", "BufferLoad", "IntImm", "FloatImm")


@dataclass(frozen=True)
class Site:
    """A statement of a program.

    Attributes
    ----------
    where
        The user's line.
    statement
        The statement in the IR.
    operation
        What the user called, such as ``T.reduce_sum``; empty for other statements.
    names
        Numbers of the variables that it may use, by name: of equal names the innermost one.
    tiles
        The same of buffers.
    writes
        Numbers of the buffers that it may write itself; of a loop or branch none.
    indices
        Of a store: the functions of its indices.
    loop
        Of a loop: the number of its variable; else -1.
    part
        Whether it is a part of the loops that define a tile op.
    """

    where: Where | None
    statement: Stmt
    operation: str
    names: dict[str, int]
    tiles: dict[str, int]
    writes: tuple[int, ...]
    indices: tuple[Expression, ...] = ()
    loop: int = -1
    part: bool = False


class Observer:
    """Base of observers, whose methods an observed execution calls.

    Attributes
    ----------
    tracker
        Follows NaN through values, see ``nonfinite``; or ``None``.
    """

    tracker: Any = None

    def start(self, compiled: Any, state: State) -> None:
        """The arguments are bound, and the first launch begins."""

    def before(self, state: State, site: Site) -> None:
        """Some lanes are about to execute a statement."""

    def after(self, state: State, site: Site) -> None:
        """They have executed it."""


def observed_statement(
    s: Stmt, made: Statement, scope: CompileScope, known: tuple[int, int], indices: Sequence[Expression]
) -> Statement:
    """Return the function of a statement that an observer watches.

    Parameters
    ----------
    made
        Its function.
    known
        How many variables and buffers there were before it.
    indices
        Of a store: the functions of its indices.
    """
    kind = type(s).__name__
    if kind in _SILENT or nodes.is_nop(s) or (scope.spread and kind in _COMPOUND):
        return made
    called = kind == "Evaluate" and nodes.is_tile_call(s.value)
    ended = scope.ended
    names = {str(v.name): n for v, n in list(scope.variables.items())[: known[0]] if ("variable", n) not in ended}
    tiles = {str(b.name): n for b, n in list(scope.buffers.items())[: known[1]] if ("buffer", n) not in ended}
    if kind == "Bind":
        names[str(s.var.name)] = scope.variables[s.var]
    if kind in _COMPOUND:
        ended |= {("variable", n) for n in range(known[0], len(scope.variables))}
        ended |= {("buffer", n) for n in range(known[1], len(scope.buffers))}
    operation = OpCall.decode(s).written if called else ""
    loop = scope.variables[s.loop_var] if kind == "For" else -1
    writes = _writes(s, kind, scope)
    site = Site(scope.where, s, operation, names, tiles, writes, tuple(indices), loop, scope.spread)

    def run(state: State) -> None:
        observer = state.observer
        if observer is None or state.mask is False:
            made(state)
            return
        if not site.part:
            observer.before(state, site)
        tracker = observer.tracker
        if tracker is None:
            made(state)
        else:
            tracker.execute(state, site, made)
        if not site.part:
            observer.after(state, site)

    return run


def observed_expression(e: Expr, made: Expression) -> Expression:
    """Return the function of a float expression whose values a tracker follows."""
    kind = type(e).__name__
    dtype = "" if kind in ("StringImm", "int", "float", "bool") else nodes.dtype_of(e)
    if dtype not in DTYPES or not DTYPES[dtype].is_float:
        return made
    name = operation_name(e)
    mixes = isinstance(e, ir.Call) and name in {*SHUFFLES, *REDUCTIONS}

    def evaluate(state: State) -> Any:
        tracker = None if state.observer is None else state.observer.tracker
        if tracker is None:
            return made(state)
        mark = tracker.mark()
        value = made(state)
        if kind == "Var":
            tracker.variable(state, e, value, dtype)
        elif kind in _LEAVES:
            tracker.leaf(value, dtype)
        else:
            tracker.computed(mark, name, value, dtype, mixes)
        return value

    return evaluate


def operation_name(e: Expr) -> str:
    """Return the name of an expression's operation."""
    kind = type(e).__name__
    if isinstance(e, ir.Call):
        name = nodes.operator_name(e)
        return (str(e.args[0].value) if name == "call_pure_extern" else name).removeprefix("tile.")
    words = {"Add": "addition", "Sub": "subtraction", "Mul": "multiplication", "Div": "division", "Select": "a choice"}
    return f"conversion to {nodes.dtype_of(e)}" if kind == "Cast" else words.get(kind, kind)


def _writes(s: Stmt, kind: str, scope: CompileScope) -> tuple[int, ...]:
    if kind == "BufferStore":
        return (scope.buffers[s.buffer],)
    if kind not in ("Evaluate", "Bind") or not nodes.is_tile_call(s.value):
        return ()
    return tuple(dict.fromkeys(scope.buffers[v.buffer] for v in effects(s)[1]))
