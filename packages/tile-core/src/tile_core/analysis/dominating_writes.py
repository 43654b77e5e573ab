"""Which tensors a program reads only where it has written them before: what they hold at first does not matter.

A write dominates a read if every path to the read passes it (A. Aho et al., *Compilers*, section 9.6). Here it is an
earlier statement of the same scope, or of one around it, that stores the same elements: equal indices, equal regions or
the whole tensor. A loop's stores hold for all of its trips once it has ended; a later loop over the same range may read
them back. Stores in branches, in loops that may run not at all or end early, and through views are passed over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, role, statements, substitute

Effects = Callable[[Any], tuple[list[Any], list[Any]]]


def initialised_by_program(body: Stmt, effects: Effects) -> set[str]:
    """Return the names of the buffers whose every read is dominated by a write of what is read.

    Parameters
    ----------
    body
        A program.
    effects
        From a decoded tile call (statement or binding) to (views read, views written).
    """
    search = _WriteSearch(effects)
    search.visit(body, (), [])
    return search.written - search.exposed


@dataclass(frozen=True)
class _AccessedElements:
    """Elements of a buffer: a corner and extents for each dimension."""

    buffer: Any
    mins: tuple[Any, ...]
    extents: tuple[Any, ...]
    #: Loops whose variables stand for all of their values: those that have ended.
    over: tuple[Any, ...] = ()

    @property
    def is_whole(self) -> bool:
        shape = tuple(map(nodes.as_int, self.buffer.shape))
        starts_at_0 = all(isinstance(m, int) and m == 0 for m in map(nodes.as_int, self.mins))
        return starts_at_0 and len(shape) == len(self.extents) and all(map(_equal, shape, self.extents))


@dataclass
class _WriteSearch:
    effects: Effects
    written: set[str] = field(default_factory=set)
    exposed: set[str] = field(default_factory=set)

    def visit(self, s: Stmt, loops: tuple[Stmt, ...], known: list[_AccessedElements]) -> None:
        """Note what a statement exposes, and add to ``known`` what it writes on all paths."""
        for part in statements(s):
            if isinstance(part, tirx.For):
                self.loop(part, loops, known)
            elif isinstance(part, (tirx.IfThenElse, tirx.While)):
                self.reads(part.condition, loops, known)
                sides = (part.then_case, part.else_case) if isinstance(part, tirx.IfThenElse) else (part.body,)
                for side in sides:
                    if side is not None:
                        self.visit(side, loops, list(known))
            elif isinstance(part, tirx.AttrStmt):
                self.visit(part.body, loops, known)
            elif isinstance(part, tirx.DeclBuffer):
                self.exposed.update(str(v.name) for v in collect(part.data, tirx.Var))
            else:
                self.simple(part, loops, known)

    def loop(self, s: Stmt, loops: tuple[Stmt, ...], known: list[_AccessedElements]) -> None:
        self.reads((s.min, s.extent), loops, known)
        inside = list(known)
        self.visit(s.body, (*loops, s), inside)
        if collect(s.body, (tirx.Break, tirx.Continue)) or loads_of(s.min) or loads_of(s.extent):
            return
        runs = isinstance(s.extent, tirx.IntImm) and int(s.extent.value) > 0
        for access in inside[len(known) :]:
            if any(s.loop_var.same_as(v) for m in access.mins for v in collect(m, tirx.Var)):
                known.append(_AccessedElements(access.buffer, access.mins, access.extents, (*access.over, s)))
            elif runs or role(s) == "grid":
                known.append(access)

    def simple(self, s: Stmt, loops: tuple[Stmt, ...], known: list[_AccessedElements]) -> None:
        value = getattr(s, "value", None)
        if isinstance(s, tirx.BufferStore):
            self.reads((s.value, *s.indices), loops, known)
            self.write(_AccessedElements(s.buffer, tuple(s.indices), (1,) * len(s.indices)), known)
        elif value is not None and nodes.is_tile_call(value):
            read, written = self.effects(s)
            for view in read:
                self.read(_AccessedElements(view.buffer, tuple(view.mins), tuple(view.extents)), loops, known)
            self.reads(value, loops, known)
            for view in written:
                self.write(_AccessedElements(view.buffer, tuple(view.mins), tuple(view.extents)), known)
        else:
            self.reads(s, loops, known)

    def reads(self, node: Any, loops: tuple[Stmt, ...], known: list[_AccessedElements]) -> None:
        for part in node if isinstance(node, tuple) else (node,):
            for load in loads_of(part):
                self.read(_AccessedElements(load.source, tuple(load.indices), (1,) * len(load.indices)), loops, known)

    def read(self, access: _AccessedElements, loops: tuple[Stmt, ...], known: list[_AccessedElements]) -> None:
        name = str(access.buffer.name)
        if name in self.exposed:
            return
        if not any(_covers(k, access, loops) for k in reversed(known) if k.buffer.same_as(access.buffer)):
            self.exposed.add(name)

    def write(self, access: _AccessedElements, known: list[_AccessedElements]) -> None:
        self.written.add(str(access.buffer.name))
        # What memory holds may change before the read, and an equal index is another element then.
        if not any(loads_of(e) for e in (*access.mins, *access.extents) if not isinstance(e, int)):
            known.append(access)


def _covers(written: _AccessedElements, read: _AccessedElements, loops: tuple[Stmt, ...]) -> bool:
    """Whether all that is read was written."""
    if written.is_whole:
        return True
    if not all(map(_equal, written.extents, read.extents)):
        return False
    return any(
        all(_equal(substitute(m, names), r) for m, r in zip(written.mins, read.mins, strict=True))
        for names in _namings(written.over, loops)
    )


def _namings(over: tuple[Stmt, ...], loops: tuple[Stmt, ...]) -> Iterator[dict[Any, Any]]:
    """Yield the ways to call the variables of ended loops by those of running loops over the same range."""
    for chosen in itertools.permutations(loops, len(over)):
        if all(_equal(a.min, b.min) and _equal(a.extent, b.extent) for a, b in zip(over, chosen, strict=True)):
            yield {a.loop_var: b.loop_var for a, b in zip(over, chosen, strict=True)}


def _equal(a: Expr, b: Expr) -> bool:
    a, b = nodes.as_int(a), nodes.as_int(b)
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(tvm_ffi.structural_equal(a, b, map_free_vars=False))
