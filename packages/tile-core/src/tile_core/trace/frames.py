"""The names of one running kernel function or macro, and its control statements.

Two rules keep Python's meaning of names, although a runtime branch or loop body is traced only once:

* a name bound outside a runtime branch or loop is not rebound inside (the new value would hold even if the branch
  is not taken); variables made by ``T.alloc_var`` are stored to instead;
* a name bound inside is not used after the block.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Span, Stmt
from tile_core.dtypes import DType
from tile_core.errors.language import (
    BadBreak,
    EndlessTrace,
    ReboundInBranch,
    RuntimeElse,
    RuntimeReturn,
    UsedAfterScope,
)
from tile_core.records import dataclass
from tile_core.trace.assign import check_lost, read, settled, shares, tile_named
from tile_core.trace.branches import MOST_TRACED, Branch, Loop, PythonBranch, While
from tile_core.trace.conditions import as_condition
from tile_core.trace.containers import Containers
from tile_core.trace.parameters import declaration_of
from tile_core.values.buffer import store
from tile_core.values.builder import Builder, Scope, current
from tile_core.values.value import Buffer, TileValue, Value, as_value, cast

if TYPE_CHECKING:
    pass


_KINDS = {"loop": "loop", "parallel": "loop", "while": "loop", "branch": "branch", "kernel": "launch"}


@dataclass
class Binding:
    """The binding of a name.

    Attributes
    ----------
    value
        The object.
    scope
        Where it was bound.
    uses
        Scopes in which it was used.
    argument
        Whether a caller gave it.
    owned
        Whether the object was made for this name.
    before
        What an assignment to several names has replaced.
    """

    value: Any
    scope: Scope
    uses: list[Scope] = field(default_factory=list)
    argument: bool = False
    owned: bool = False
    before: Any = None


class OpenLoop(Protocol):
    """A loop of the kernel whose body is being recorded."""

    scope: Scope
    single: bool
    targets: Any

    def close(self) -> None:
        """Emit the loop."""
        ...


@runtime_checkable
class Launching(Protocol):
    """The object that ``with`` makes a launch from: ``T.Kernel(...)`` and its siblings."""

    names_hint: Sequence[str]
    unpacked: bool


class RuntimeLoop(Protocol):
    """The object that ``for`` makes a kernel loop from: ``T.serial(n)`` and its siblings."""

    kind: str

    def open_loop(self, builder: Builder, names: Sequence[str]) -> OpenLoop:
        """Open the loop, whose variables have these names."""
        ...


class Frame:
    """Names and loops of one call."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self.builder: Builder = current("a kernel function")
        self.scope = self.builder.scope
        self.loops: list[Loop] = []
        self.names = {name: Binding(value, self.scope, argument=True) for name, value in arguments.items()}
        for value in arguments.values():
            if isinstance(value, Buffer):
                value.bound = True

    # ------------------------------------------------------------------ names

    def named(self, *names: str) -> bool:
        """Set the names for the results of the next expression."""
        self.builder.hint(names)
        return True

    def assign(self, name: str, value: object, *others: str) -> object:
        """Return the value of ``name`` after ``name = value``, also in a tuple assignment."""
        self.builder.hints = []
        old = self.names.get(name)
        alive = old is not None and not old.scope.closed
        value = read(value)
        if isinstance(value, TileValue):
            return self._assign_tile(name, old if alive else None, value)
        if alive and old is not None and _stored(old.value, value):
            store(old.value, 0, value)
            return old.value
        if alive and old is not None:
            self._check_rebinding(name, old, value)
            only = old.argument or (
                old.owned and not any(b.value is old.value for b in self.names.values() if b is not old)
            )
            free = any(n != name and self._held(n, value) for n in others) or not getattr(value, "bound", True)
            check_lost(name, old.value, value, owned=only and not free)
        if isinstance(value, Value):
            value = settled(name, value)
        owned = False
        if isinstance(value, Buffer):
            value.fresh = False
            owned, value.bound = (
                not value.bound and value.name.rstrip("_0123456789") == name.rstrip("_0123456789"),
                True,
            )
        before = old.value if others and old is not None else None
        self.names[name] = Binding(value, self.builder.scope, owned=owned, before=before)
        return value

    def _held(self, name: str, value: object) -> bool:
        """Whether a name has this value before an assignment to it and other names."""
        binding = self.names.get(name)
        return binding is not None and (binding.value is value or binding.before is value)

    def _assign_tile(self, name: str, old: Binding | None, value: TileValue) -> object:
        """Return the tile of ``name = <tile expression>``: new, unless a block rebinds the name."""
        outside = old is not None and self._is_outside(old.scope)
        if old is not None and value.into is None and not isinstance(old.value, Buffer):
            self._check_rebinding(name, old, value)

        def alias(tile: Buffer) -> str | None:
            named = (n for n, b in self.names.items() if n != name and not b.scope.closed and shares(b.value, tile))
            return "the caller's" if old is not None and old.argument else next(named, None)

        new = tile_named(name, None if old is None else old.value, value, outside, alias)
        if old is None or new is not old.value:
            self.names[name] = Binding(new, self.builder.scope)
        return new

    def _is_outside(self, scope: Scope) -> bool:
        """Whether a runtime block lies between a scope and the current position."""
        return any(s.runtime for s in takewhile(lambda s: s is not scope, self.builder.scope.ancestors()))

    def use(self, name: str, value: object) -> object:
        """Return the value of a name, if it may be used here."""
        binding = self.names.get(name)
        if binding is None:
            return value
        if binding.scope.closed:
            raise UsedAfterScope(name=name, kind=_KINDS.get(binding.scope.kind, "block"))
        if not binding.uses or binding.uses[-1] is not self.builder.scope:
            binding.uses.append(self.builder.scope)
        return value

    def bind(self, names: Sequence[str], values: Sequence[Value]) -> None:
        """Record targets of ``for`` and ``with``, which Python has bound."""
        for name, value in zip(names, values, strict=True):
            old = self.names.get(name)
            if old is not None and not old.scope.closed and old.value is not value:
                self._check_shadowing(name, old)
            self.names[name] = Binding(value, self.builder.scope)

    def declare(self, name: str, annotation: object, value: object) -> object:
        """Return the value bound by ``name: annotation = value``, converted to an element type."""
        annotation = declaration_of(annotation)
        if isinstance(annotation, DType) and not isinstance(value, Buffer):
            value = cast(value if isinstance(value, Value) else as_value(value, annotation), annotation)
        return self.assign(name, value)

    def declare_parameter(self, name: str, annotation: object, value: object) -> object:
        """Return the tensor that ``name: T.Tensor[...]`` declares a parameter of an eager kernel to be."""
        if self.builder.eager is None or self.builder.scope.kind != "function":
            return value
        new = self.builder.eager.declare(name, declaration_of(annotation), value)
        self.names[name] = Binding(new, self.scope)
        return new

    def _check_rebinding(self, name: str, old: Binding, value: object) -> None:
        if value is old.value:
            return
        for scope in self.builder.scope.ancestors():
            if scope is old.scope:
                return
            if scope.runtime:
                kind = _KINDS[scope.kind]
                raise ReboundInBranch(name=name, kind=kind, fix=_fix(name, scope, kind, old.value, value))

    def _check_shadowing(self, name: str, old: Binding) -> None:
        # A loop variable may reuse the name, unless an earlier use in the same runtime loop would have seen it.
        for scope in self.builder.scope.ancestors():
            if scope is old.scope:
                return
            inner = scope is not self.builder.scope
            if inner and scope.kind in ("loop", "parallel", "while") and any(scope.encloses(u) for u in old.uses):
                fix = f"choose another name than {name} for the variable of the inner loop"
                raise ReboundInBranch(name=name, kind="loop", fix=fix)

    # ------------------------------------------------------------------ blocks

    def entering(self, manager: object, unpacked: bool, *names: str) -> object:
        """Return the context manager of a ``with``, given the user's names for its results."""
        if isinstance(manager, Launching):
            manager.names_hint, manager.unpacked = names, unpacked
        return manager

    def if_(self, condition: object) -> Branch | PythonBranch:
        """Open an ``if``."""
        runtime = as_condition(condition)
        if runtime is None:
            return PythonBranch(bool(condition))
        return Branch(self.builder, runtime, Containers(sys._getframe(1).f_locals))

    def while_(self, has_else: bool) -> While:
        """Open a ``while``."""
        return While(self.loops, self.builder, has_else)

    def loop(self, iterable: Any, names: Sequence[str], has_else: bool) -> Iterator[object]:
        """Iterate once over a loop of the kernel, and over anything else as Python does."""
        if hasattr(iterable, "open_loop"):
            return self._runtime_loop(iterable, names, has_else, Containers(sys._getframe(1).f_locals))
        return self._python_loop(iterable)

    def _python_loop(self, iterable: Any) -> Iterator[object]:
        mark = Loop("python", self.builder.scope)
        self.loops.append(mark)
        try:
            for count, item in enumerate(iterable):
                if count == MOST_TRACED:
                    raise EndlessTrace(loop="for", count=MOST_TRACED)
                yield item
        finally:
            if mark in self.loops:
                self.loops.remove(mark)

    def _runtime_loop(
        self, spec: RuntimeLoop, names: Sequence[str], has_else: bool, containers: Containers
    ) -> Iterator[object]:
        nest = spec.open_loop(self.builder, names)
        mark = Loop(spec.kind, nest.scope, single=nest.single)
        self.loops.append(mark)
        yield nest.targets
        self.loops.remove(mark)
        containers.check("loop")
        nest.close()
        if has_else and mark.left:
            raise RuntimeElse()

    # ------------------------------------------------------------------ leaving

    def break_(self) -> bool:
        """Leave the innermost loop; true if Python has to do it."""
        return self._leave("break", tirx.Break)

    def continue_(self) -> bool:
        """Continue with the innermost loop's next iteration; true if Python must do it."""
        return self._leave("continue", tirx.Continue)

    def _leave(self, what: str, statement: Callable[[Span], Stmt]) -> bool:
        loop = self.loops[-1]
        here = self.builder.scope
        if loop.kind == "python":
            if here is not loop.scope:
                reason = (
                    "depends on a runtime condition, but its loop (`while True`, or `for` over a Python iterable) runs "
                    "while the kernel is traced"
                )
                instead = "use a loop of the kernel: `while` with the runtime condition, or `for _ in range(n)`"
                raise BadBreak(what=what, reason=reason, instead=instead)
            if what == "break":
                self.loops.remove(loop)
            return True
        if what == "break" and loop.kind in ("Parallel", "vectorized", "Pipelined"):
            reason = f"in T.{loop.kind}, whose iterations do not run one after the other"
            raise BadBreak(what=what, reason=reason, instead="use T.serial, or guard the body with `if`")
        if what == "break" and not loop.single:
            reason = "in a loop over several dimensions would leave only the innermost"
            raise BadBreak(what=what, reason=reason, instead="write nested loops")
        if any(s.kind == "role" for s in takewhile(lambda s: s is not loop.scope, here.ancestors())):
            reason = "in T.ws would leave a loop that other threads of the block stay in"
            raise BadBreak(what=what, reason=reason, instead="leave the loop outside of T.ws")
        loop.left = loop.left or what == "break"
        self.builder.emit(statement(self.builder.span()))
        here.ended = True
        return False

    def return_(self, value: object) -> object:
        """Check that a ``return`` does not depend on runtime values, and return the value."""
        self._check_leaving("return")
        return read(value)

    def raise_(self) -> None:
        """Check that a ``raise`` does not depend on runtime values."""
        self._check_leaving("raise")

    def _check_leaving(self, what: str) -> None:
        for scope in self.builder.scope.ancestors():
            if scope is self.scope:
                return
            if scope.runtime:
                raise RuntimeReturn(what=what, kind=_KINDS[scope.kind])


def _stored(old: object, value: object) -> bool:
    if not (isinstance(old, Buffer) and old.scope == "local.var"):
        return False
    return isinstance(value, (Value, int, float)) or (hasattr(value, "item") and getattr(value, "shape", None) == ())


def _fix(name: str, scope: Scope, kind: str, old: object, value: object) -> str:
    """Return the remedy for a name that a block rebinds.

    Iterations of T.Parallel share no variable.
    """
    if isinstance(value, Buffer) and value.is_scalar:
        stores = f"{name} = ... stores to the variable outside; " if isinstance(old, Buffer) and old.is_scalar else ""
        return f"{stores}choose another name for what is declared here, or declare it in front of the {kind}"
    if isinstance(old, Buffer) and not old.is_scalar:
        return f"{name}[...] = ... stores the value in the tile; otherwise choose another name"
    if not isinstance(value, (Value, bool, int, float)):
        return f"choose another name than {name} here: no variable of the kernel holds it"
    if any(s.kind == "parallel" for s in scope.ancestors()):
        return f"use T.reduce_*, T.alloc_reducer or T.serial to combine iterations, or another name than {name}"
    return f"declare it with `{name} = T.alloc_var(dtype, init=...)`: then every assignment is a store"
