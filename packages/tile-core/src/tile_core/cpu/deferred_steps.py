"""Deferred steps of thread code: statements are emitted once the thread's index is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes


class Rewriter(Protocol):
    """Rewrites expressions into those of one thread."""

    def expr(self, e: Expr) -> Expr:
        """Return the expression of the thread."""
        ...


class DeferredStep(ABC):
    """A step that each thread executes in a loop over the threads."""

    @abstractmethod
    def emit(self, rewriter: Rewriter, t: Var) -> Stmt:
        """Return the statement of thread ``t``; ``rewriter.expr`` gives an expression as that thread sees it."""


class Keep(DeferredStep):
    """Store a value in the thread's slot."""

    def __init__(self, slot: BufferVar, value: Expr) -> None:
        self.slot, self.value = slot, value

    def emit(self, rewriter: Rewriter, t: Var) -> Stmt:
        """Return the store of the value."""
        return nodes.store(self.slot, rewriter.expr(self.value), [t])


class Restore(DeferredStep):
    """Store the value of the thread's slot."""

    def __init__(self, slot: BufferVar, store: Stmt) -> None:
        self.slot, self.store = slot, store

    def emit(self, rewriter: Rewriter, t: Var) -> Stmt:
        """Return the store from the slot."""
        s = self.store
        return tirx.BufferStore(s.buffer, self.slot[t], [rewriter.expr(i) for i in s.indices], s.span)
