"""The builder, which records the statements of a kernel's rewritten Python body as it runs.

A ``Builder`` collects statements in a stack of scopes. Statements get the location of the user's line that is running,
found by walking the Python stack to the first frame whose code the frontend rewrote. Values that read memory are
watched: before a write to memory that a live value depends on, that position is remembered (``materialise``), and if
the value is used again it is bound to a variable there (``settle``). So a value never changes after it is
computed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Span, Stmt, Var
from tile_core.errors import Where
from tile_core.errors.language import OutsideKernel, StatementOutsideLaunch, UsedAfterScope
from tile_core.ir import nodes
from tile_core.ir.attributes import AttrDict
from tile_core.ir.visit import collect

_active = threading.local()


#: Name of the variable through which rewritten code reaches the frontend; its presence marks rewritten code.
SUPPORT = "__tile__"
_LOOPS = ("loop", "parallel", "while")


class StatementSlot:
    """A place between two statements where values may still be bound."""

    __slots__ = ("statements",)

    def __init__(self) -> None:
        self.statements: list[Stmt] = []


class Watched(Protocol):
    """A value or tile that reads memory; see ``Builder.watch``."""

    reads: tuple[BufferVar, ...]
    scope: Scope
    slot: StatementSlot | None


class WatchedValue(Watched, Protocol):
    """A scalar that reads memory."""

    _expr: Expr

    def become(self, var: Var) -> None:
        """Refer to ``var`` from now on."""
        ...


class Scope:
    """An open block of statements.

    Attributes
    ----------
    kind
        ``"function"``, ``"kernel"``, ``"loop"``, ``"parallel"``, ``"branch"`` or ``"while"``.
    runtime
        Whether the statements may run zero times or more than once.
    ended
        Whether a ``break`` or ``continue`` makes the following code unreachable.
    depth
        Number of loops around the statements.
    loop
        Of a loop's statements: its name in the language.
    counters
        Of a counted loop's statements: its variables.
    """

    def __init__(self, kind: str, parent: Scope | None, *, runtime: bool) -> None:
        self.kind = kind
        self.parent = parent
        self.runtime = runtime
        self.statements: list[Stmt | StatementSlot] = []
        self.closed = False
        self.ended = False
        self.loop = ""
        self.counters: tuple[Var, ...] = ()
        self.depth: int = (0 if parent is None else parent.depth) + (kind in _LOOPS)

    def slot(self) -> StatementSlot:
        """Return the place after the last statement."""
        if not self.statements or not isinstance(self.statements[-1], StatementSlot):
            self.statements.append(StatementSlot())
        return self.statements[-1]

    def flat(self) -> list[Stmt]:
        """Return the statements."""
        found: list[Stmt] = []
        for s in self.statements:
            found.extend(s.statements) if isinstance(s, StatementSlot) else found.append(s)
        return found

    def taken(self) -> Stmt:
        """Return the statements as one, and begin again without any."""
        found, self.statements = self.flat(), []
        return nodes.seq(found)

    def changes(self, used: Sequence[Var]) -> bool:
        """Whether a variable may differ between iterations; true outside counted loops."""
        own = [*self.counters, *(s.var for s in self.flat() if type(s) is tirx.Bind)]
        return not self.counters or any(v.same_as(x) for v in used for x in own)

    def ancestors(self) -> Iterator[Scope]:
        """Yield this scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def encloses(self, other: Scope) -> bool:
        """Whether ``other`` is this scope or lies within it."""
        return any(s is self for s in other.ancestors())


class Builder:
    """State of one trace of one kernel function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scope = Scope("function", None, runtime=False)
        self.attrs: AttrDict = {}
        self.symbols: dict[str, Var] = {}
        #: The parameters that are scalars.
        self.scalars: list[Var] = []
        #: Annotations of the launches so far, and tensors of ``T.alloc_global`` with their declarations.
        self.launches: list[AttrDict] = []
        self.workspaces: list[tuple[Any, Any]] = []
        self.threads: tuple[int, int, int] | None = None
        #: The open launch (``language.launch``).
        self.launch: Any = None
        self.layouts: dict[Any, Any] = {}
        self.reducers: dict[str, dict[str, str]] = {}
        #: The required name prefix of variants on the target, for the following tile ops; see ``ops.operands``.
        self.requires = ""
        #: The levels of the open regions of numerics, innermost last.
        self.regions: list[str] = []
        self.called: tuple[str, str] | None = None
        self.eager: Any = None
        #: Whether floats that become elements of 8-bit floats saturate, as in other dialects.
        self.saturates = False
        #: The sequence of random numbers that ``T.rng_init`` began.
        self.random: Any = None
        self.hints: list[str] = []
        #: The number of variable uses in the expansion of each bound integer.
        self.weights: dict[Var, int] = {}
        #: The least and greatest value of loop variables and block indices.
        self.ranges: dict[Var, tuple[int, int]] = {}
        self._names: dict[str, int] = {}
        # By identity: values compare as the kernel's scalars do.
        self._pending: dict[int, weakref.ref[Watched]] = {}

    @property
    def level(self) -> str:
        """The level of the innermost region of numerics; empty outside of regions."""
        return self.regions[-1] if self.regions else ""

    def emit(self, statement: Stmt) -> None:
        """Append a statement to the innermost open scope.

        Raises
        ------
        StatementOutsideLaunch
            If no launch (``with T.Kernel(...)``) is open.
        """
        if self.scope.kind == "function":
            raise StatementOutsideLaunch(kernel=self.name)
        if not self.scope.ended:
            self.scope.statements.append(statement)

    @contextmanager
    def open(self, kind: str, *, runtime: bool = True) -> Iterator[Scope]:
        """Open a scope for the statements emitted inside the ``with``."""
        scope = self.push(kind, runtime=runtime)
        try:
            yield scope
        finally:
            self.pop(scope)

    def push(self, kind: str, *, runtime: bool = True) -> Scope:
        """Open a scope; ``pop`` closes it."""
        self.scope = Scope(kind, self.scope, runtime=runtime)
        return self.scope

    def pop(self, scope: Scope) -> Stmt:
        """Close ``scope`` and return its statements as one."""
        scope.closed = True
        assert scope.parent is not None
        self.scope = scope.parent
        return scope.taken()

    def where(self) -> Where | None:
        """Return the line of the user's source that is running."""
        frame = sys._getframe(1)
        while frame is not None:
            if SUPPORT in frame.f_code.co_freevars:
                return Where(frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def span(self) -> Span:
        """Return the IR span of the user's line that is running."""
        return nodes.span_of(self.where())

    def unique(self, name: str) -> str:
        """Return ``name``, or ``name_1``, ``name_2`` … when it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else self.unique(f"{name}_{count}")

    def hint(self, names: Sequence[str]) -> None:
        """Set the user's names for the results of the next expression."""
        self.hints = list(names)

    def hinted(self, default: str) -> str:
        """Return a unique name for a new object, derived from the user's name."""
        return self.unique(self.hints.pop(0) if self.hints else default)

    def bind(self, name: str, expr: Expr, hoisted: bool = False) -> Var:
        """Emit ``name = expr`` and return the variable.

        Parameters
        ----------
        hoisted
            Whether a value that the loops around do not change is computed before them: it reads no memory.
        """
        var = tirx.Var(self.unique(name), nodes.dtype_of(expr))
        scope, bind = self.scope, tirx.Bind(var, expr, self.span())
        used = collect(expr, tirx.Var) if hoisted else []
        while hoisted and scope.parent is not None and not scope.changes(used):
            scope = scope.parent
        if scope is self.scope:
            self.emit(bind)
        elif not self.scope.ended:
            scope.slot().statements.append(bind)
        return var

    def watch(self, value: Watched) -> None:
        """Watch a value that reads memory."""
        self._pending[id(value)] = weakref.ref(value)

    def materialise(self, buffers: Sequence[BufferVar]) -> None:
        """Record this position for values that read ``buffers``, which are about to be written."""
        for key, ref in list(self._pending.items()):
            value = ref()
            if value is None or value.scope.closed or not value.reads:
                del self._pending[key]
            elif any(r.same_as(w) for r in value.reads for w in buffers):
                value.slot = value.scope.slot()
                del self._pending[key]

    def forget(self) -> list[StatementSlot]:
        """Stop deferring values that read memory; return locations of their remaining uses."""
        slots = []
        for ref in self._pending.values():
            value = ref()
            if value is not None and value.reads:
                value.slot = StatementSlot()
                slots.append(value.slot)
        self._pending.clear()
        return slots

    def settle(self, value: WatchedValue) -> None:
        """Bind a value whose memory was written since, or that an enclosing loop would recompute."""
        if value.slot is None and self.scope.depth <= value.scope.depth:
            return
        if value.scope.closed:
            if value.slot is None:
                return
            raise UsedAfterScope(name="a value", kind=value.scope.kind)
        if value.scope.kind == "function":
            return
        slot = value.slot or value.scope.slot()
        var = tirx.Var(self.unique("v"), nodes.dtype_of(value._expr))
        slot.statements.append(tirx.Bind(var, value._expr, self.span()))
        self._pending.pop(id(value), None)
        value.become(var)

    @contextmanager
    def active(self) -> Iterator[Builder]:
        """Make this the active builder."""
        stack = _stack()
        stack.append(self)
        try:
            yield self
        finally:
            stack.pop()


def _stack() -> list[Builder | None]:
    if not hasattr(_active, "stack"):
        _active.stack = []
    return _active.stack


def current(what: str = "this") -> Builder:
    """Return the active builder.

    Raises
    ------
    OutsideKernel
        If no kernel is being traced; ``what`` names the thing that needs one.
    """
    stack = _stack()
    if not stack or stack[-1] is None:
        raise OutsideKernel(what=what)
    return stack[-1]


@contextmanager
def untraced() -> Iterator[None]:
    """Run code outside the trace: its calls do not become part of the kernel."""
    stack = _stack()
    stack.append(None)
    try:
        yield
    finally:
        stack.pop()


def tracing() -> Builder | None:
    """Return the active builder, or ``None``."""
    stack = _stack()
    return stack[-1] if stack else None


def settle(value: WatchedValue) -> None:
    """See ``Builder.settle``; does nothing outside a trace."""
    if (builder := tracing()) is not None:
        builder.settle(value)
