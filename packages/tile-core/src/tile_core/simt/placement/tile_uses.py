"""The uses of tiles in a program: in data-parallel nests, in tile ops, and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, loads_of, replace_for, role
from tile_core.ops.base import View
from tile_core.simt.placement.variant_selection import number_of

#: Annotation of the outermost loop of a data-parallel nest: its number.
NEST = "tile.nest"
PARALLEL = ("parallel", "vectorized")


@dataclass(frozen=True)
class TileAccess:
    """A load or store of one element.

    Attributes
    ----------
    buffer, indices
        The buffer, and the element's indices.
    is_store
        Whether it is a store.
    inner
        Loops between the nest and the access: (variable, start, extent).
    """

    buffer: Any
    indices: tuple[Any, ...]
    is_store: bool
    inner: tuple[tuple[Any, Any, Any], ...] = ()


@dataclass
class Nest:
    """A data-parallel nest: perfectly nested loops, and the accesses of their body.

    Attributes
    ----------
    number
        Its number, see ``number_nests``.
    loops
        The loops, outermost first.
    body
        The innermost loop's body.
    outer
        Serial loops around it: (variable, start, extent).
    accesses
        Every load and store of the body.
    """

    number: int
    loops: tuple[Any, ...]
    body: Any
    outer: tuple[tuple[Any, Any, Any], ...]
    accesses: list[TileAccess] = field(default_factory=list)

    @property
    def variables(self) -> list[Var]:
        """The loops' variables."""
        return [loop.loop_var for loop in self.loops]

    @property
    def extents(self) -> tuple[int, ...] | None:
        """The loops' extents, or ``None`` if one is not known at compile time."""
        found = [nodes.as_int(loop.extent) for loop in self.loops]
        return tuple(found) if all(isinstance(e, int) for e in found) else None

    @property
    def starts(self) -> list[Any]:
        """The first values of the loops' variables."""
        return [nodes.as_int(loop.min) for loop in self.loops]


@dataclass(frozen=True)
class OpSite:
    """A tile op that a variant was selected for."""

    number: int
    stmt: Any

    def views(self) -> dict[int, View]:
        """Return the region operands by position."""
        return {i: View.of(a) for i, a in enumerate(self.stmt.value.args) if hasattr(a, "region")}


@dataclass
class Sites:
    """The uses found in a program.

    Attributes
    ----------
    nests, ops
        In program order.
    scattered
        Buffers accessed by plain statements, or inside the arguments of ops.
    viewed
        Buffers that are, or have, a view.
    allocated
        Buffers allocated outside nests.
    """

    nests: list[Nest] = field(default_factory=list)
    ops: list[OpSite] = field(default_factory=list)
    scattered: set[Any] = field(default_factory=set)
    viewed: set[Any] = field(default_factory=set)
    allocated: list[Any] = field(default_factory=list)


def number_nests(body: Stmt) -> Stmt:
    """Return the body with a number on every outermost data-parallel loop."""
    return _Number().stmt(body)


def nest_of(loop: Stmt) -> tuple[tuple[Any, ...], Any]:
    """Return the perfectly nested data-parallel loops from ``loop`` on, and the innermost body."""
    loops = [loop]
    body = loop.body
    while isinstance(body, tirx.For) and role(body) in PARALLEL and not _uses(body, loops):
        loops.append(body)
        body = body.body
    return tuple(loops), body


def find_sites(body: Stmt) -> Sites:
    """Return all uses of tiles; nests must have numbers."""
    sites = Sites(viewed=viewed_buffers(body))
    _FindUses(sites).visit(body, ())
    return sites


def viewed_buffers(body: Stmt) -> set[BufferVar]:
    """Return the buffers that are, or have, a view."""
    found: set[Any] = set()
    for view in collect(body, tirx.DeclBuffer):
        found |= {view.buffer, *collect(view.data, tirx.Var)}
    return found


def shares_bytes(s: Stmt, viewed: set[Any]) -> bool:
    """Whether iterations of a nest store elements that share a byte: one thread then runs them all."""
    for store in collect(s, tirx.BufferStore):
        packed = DTYPES[nodes.element_type(store.buffer)].is_packed
        if packed and (nodes.scope_of(store.buffer) == "global" or store.buffer in viewed):
            return True
    return False


class _Number(StmtRewriter):
    def __init__(self) -> None:
        self.count = 0

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) not in PARALLEL:
            return super().visit_For(s)
        number, self.count = self.count, self.count + 1
        return replace_for(s, s.body, annotations={**dict(s.annotations), NEST: nodes.int_const(number)})


class _FindUses:
    def __init__(self, sites: Sites) -> None:
        self.sites = sites

    def visit(self, s: Stmt, outer: tuple[tuple[Any, Any, Any], ...]) -> None:
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self.visit(x, outer)
        elif isinstance(s, tirx.For):
            self.loop(s, outer)
        elif isinstance(s, (tirx.While, tirx.IfThenElse)):
            self.scatter(s.condition)
            for part in [s.body] if isinstance(s, tirx.While) else [s.then_case, s.else_case]:
                if part is not None:
                    self.visit(part, outer)
        elif isinstance(s, tirx.AttrStmt):
            self.visit(s.body, outer)
        elif isinstance(s, tirx.AllocBuffer):
            self.sites.allocated.append(s.buffer)
        elif isinstance(s, tirx.DeclBuffer):
            pass
        elif number_of(s) is not None:
            self.op(s)
        else:
            self.scatter(s)

    def loop(self, s: Stmt, outer: tuple[tuple[Any, Any, Any], ...]) -> None:
        self.scatter(s.min)
        self.scatter(s.extent)
        if role(s) in PARALLEL and shares_bytes(s, self.sites.viewed):
            self.scatter(s)
        elif role(s) in PARALLEL:
            loops, body = nest_of(s)
            number = int(annotation(s, NEST, -1))
            self.sites.nests.append(nest := Nest(number, loops, body, outer))
            nest.accesses.extend(_accesses(body, ()))
        elif role(s) == "grid":
            self.visit(s.body, outer)
        else:
            self.visit(s.body, (*outer, (s.loop_var, s.min, s.extent)))

    def op(self, s: Stmt) -> None:
        site = OpSite(number_of(s) or 0, s)
        self.sites.ops.append(site)
        for arg in s.value.args:
            if hasattr(arg, "region"):
                for r in arg.region:
                    self.scatter(r.min)
            else:
                self.scatter(arg)

    def scatter(self, node: Any) -> None:
        self.sites.scattered |= {x.source for x in loads_of(node)}
        self.sites.scattered |= {x.buffer for x in collect(node, tirx.BufferStore)}
        for call in collect(node, ir.Call):
            for arg in call.args:
                if hasattr(arg, "region"):
                    self.sites.scattered.add(arg.source)


def _uses(loop: Stmt, outer: Sequence[Stmt]) -> bool:
    """Whether a loop's bounds depend on the variables of the loops around it."""
    found = {v for part in (loop.min, loop.extent) for v in collect(part, tirx.Var)}
    return any(o.loop_var in found for o in outer)


def _accesses(s: Stmt, inner: tuple[tuple[Any, Any, Any], ...]) -> Iterator[TileAccess]:
    if isinstance(s, tirx.SeqStmt):
        for x in s.seq:
            yield from _accesses(x, inner)
    elif isinstance(s, tirx.For):
        yield from _loads(s.min, inner)
        yield from _loads(s.extent, inner)
        yield from _accesses(s.body, (*inner, (s.loop_var, s.min, s.extent)))
    elif isinstance(s, (tirx.While, tirx.IfThenElse)):
        yield from _loads(s.condition, inner)
        for part in [s.body] if isinstance(s, tirx.While) else [s.then_case, s.else_case]:
            if part is not None:
                yield from _accesses(part, inner)
    elif isinstance(s, tirx.AttrStmt):
        yield from _accesses(s.body, inner)
    elif isinstance(s, tirx.BufferStore):
        yield TileAccess(s.buffer, tuple(s.indices), True, inner)
        yield from _loads(s.value, inner)
        for i in s.indices:
            yield from _loads(i, inner)
    elif isinstance(s, (tirx.Evaluate, tirx.Bind)):
        yield from _loads(s.value, inner)
        for call in collect(s.value, ir.Call):
            for arg in call.args:
                if hasattr(arg, "region"):
                    mins = tuple(r.min for r in arg.region)
                    yield TileAccess(arg.source, mins, True, inner)
                    yield TileAccess(arg.source, mins, False, inner)


def _loads(e: Expr, inner: tuple[tuple[Any, Any, Any], ...]) -> Iterator[TileAccess]:
    for load in loads_of(e):
        yield TileAccess(load.source, tuple(load.indices), False, inner)
