"""Open loops, and handles of open ``if`` and ``while`` statements."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.errors.language import EndlessTrace, RuntimeElse
from tile_core.ir import nodes
from tile_core.records import dataclass
from tile_core.trace.conditions import as_condition
from tile_core.trace.containers import Containers
from tile_core.values.builder import Builder, Scope
from tile_core.values.value import Value

if TYPE_CHECKING:
    pass


#: Iterations of a loop of Python: each is traced, so more than these would be a program that nothing compiles.
MOST_TRACED = 2**16


@dataclass
class Loop:
    """An open loop: of Python, or of the kernel (then ``kind`` says which)."""

    kind: str
    scope: Scope
    left: bool = False
    single: bool = True


class PythonBranch:
    """An ``if`` whose condition is known while tracing."""

    def __init__(self, condition: bool) -> None:
        self.condition = condition

    def then(self) -> bool:
        """Whether the body runs."""
        return self.condition

    def otherwise(self) -> bool:
        """Whether the ``else`` runs."""
        return not self.condition

    def end(self) -> None:
        """Nothing to do."""


class Branch:
    """An ``if`` of the kernel: both sides are traced."""

    def __init__(self, builder: Builder, condition: Value, containers: Containers) -> None:
        self.builder = builder
        self.containers = containers
        self.condition = condition.expr
        self.span = builder.span()
        self.open: Scope | None = None
        self.sides: list[Any] = []

    def then(self) -> bool:
        """Start the body."""
        self.open = self.builder.push("branch")
        return True

    def otherwise(self) -> bool:
        """Start the ``else``."""
        self._close()
        return self.then()

    def end(self) -> None:
        """Emit the statement."""
        self._close()
        self.containers.check("branch")
        then, other = [*self.sides, None][:2]
        self.builder.emit(tirx.IfThenElse(self.condition, then, other, self.span))

    def _close(self) -> None:
        assert self.open is not None
        self.sides.append(self.builder.pop(self.open))
        self.open = None


class While:
    """A ``while``: of Python, until a condition turns out to be a runtime value."""

    def __init__(self, loops: list[Loop], builder: Builder, has_else: bool) -> None:
        self.loops = loops
        self.builder = builder
        self.has_else = has_else
        self.span = builder.span()
        self.mark = Loop("python", builder.scope)
        self.condition: Any = None
        self.containers: Containers | None = None
        self.scope: Scope | None = None
        self.traced = 0
        loops.append(self.mark)

    def open(self) -> bool:
        """Start an evaluation of the condition; false after the body of a runtime loop."""
        if self.condition is None:
            self.scope = self.builder.push("while")
            return True
        assert self.scope is not None
        assert self.containers is not None
        self.loops.remove(self.mark)
        self.containers.check("loop")
        body = self.builder.pop(self.scope)
        self.builder.emit(tirx.While(self.condition, body, self.span))
        if self.has_else and self.mark.left:
            raise RuntimeElse()
        return False

    def test(self, condition: Any) -> bool:
        """Whether the body runs (now, or as a loop of the kernel)."""
        runtime = as_condition(condition)
        scope = self.scope
        assert scope is not None
        if runtime is None:
            return self._python(bool(condition), scope)
        self.condition = runtime.expr
        self.containers = Containers(sys._getframe(1).f_locals)
        self.mark.kind, self.mark.scope = "while", scope
        if scope.statements:
            # The condition needs statements: test it inside an infinite loop.
            leave = tirx.IfThenElse(tirx.Not(self.condition), tirx.Break(self.span), None, self.span)
            self.builder.emit(leave)
            self.condition = nodes.const(True, "bool")
        return True

    def _python(self, truth: bool, scope: Scope) -> bool:
        assert scope.parent is not None
        scope.parent.statements.extend(scope.statements)
        scope.closed = True
        self.builder.scope = scope.parent
        if not truth:
            self.loops.remove(self.mark)
        self.traced += 1
        if truth and self.traced > MOST_TRACED:
            raise EndlessTrace(loop="while", count=MOST_TRACED)
        return truth
