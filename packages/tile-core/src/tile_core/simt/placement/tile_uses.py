"""The uses of tiles in a program: in data-parallel nests, in tile ops, and elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, replace_for, role
from tile_core.ops.base import OpCall, View
from tile_core.records import dataclass
from tile_core.simt.placement.variant_selection import number_of

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

    buffer: BufferVar
    indices: tuple[Expr, ...]
    is_store: bool
    inner: tuple[tuple[Var, Expr, Expr], ...] = ()


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
    role
        The mark of the threads that execute it, if these are a part of the block's.
    """

    number: int
    loops: tuple[Stmt, ...]
    body: Stmt
    outer: tuple[tuple[Var, Expr, Expr], ...]
    accesses: list[TileAccess] = field(default_factory=list)
    role: Stmt | None = None

    @property
    def variables(self) -> list[Var]:
        """The loops' variables."""
        return [loop.loop_var for loop in self.loops]

    @cached_property
    def extents(self) -> tuple[int, ...] | None:
        """The loops' extents, or ``None`` if one is not known at compile time."""
        found = [nodes.as_int(loop.extent) for loop in self.loops]
        return None if any(not isinstance(e, int) for e in found) else tuple(found)

    @property
    def starts(self) -> list[int]:
        """The first values of the loops' variables."""
        return [nodes.as_int(loop.min) for loop in self.loops]


@dataclass(frozen=True)
class OpSite:
    """A tile op that a variant was selected for.

    Attributes
    ----------
    views
        Its region operands by position.
    """

    number: int
    stmt: Stmt
    role: Stmt | None
    views: Mapping[int, View]


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
    scattered: set[BufferVar] = field(default_factory=set)
    viewed: set[BufferVar] = field(default_factory=set)
    allocated: list[Stmt] = field(default_factory=list)


def number_nests(body: Stmt) -> Stmt:
    """Return the body with a number on every outermost data-parallel loop."""
    return _Number().stmt(body)


def nest_of(loop: Stmt) -> tuple[tuple[Stmt, ...], Stmt]:
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
    _FindUses(Flow(body), sites)
    return sites


def viewed_buffers(body: Stmt) -> set[BufferVar]:
    """Return the buffers that are, or have, a view."""
    found: set[BufferVar] = set()
    for view in collect(body, tirx.DeclBuffer):
        found |= {view.buffer, *collect(view.data, tirx.Var)}
    return found


def shares_bytes(s: Stmt, viewed: set[BufferVar]) -> bool:
    """Whether iterations of a nest store elements of one byte.

    One thread then runs them all.
    """
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
        return replace_for(s, s.body, annotations={**dict(s.annotations), attributes.NEST: nodes.int_const(number)})


class _FindUses:
    def __init__(self, flow: Flow, sites: Sites) -> None:
        self.flow, self.sites = flow, sites
        for p in flow.walk(lambda p: p.kind != "for" or role(p.stmt) not in PARALLEL):
            if type(p.stmt) is tirx.AllocBuffer:
                sites.allocated.append(p.stmt.buffer)
            elif (number := number_of(p.stmt)) is not None:
                views = {i: a for i, a in enumerate(OpCall.decode(p.stmt).args) if isinstance(a, View)}
                sites.ops.append(OpSite(number, p.stmt, p.role, views))
                self.scatter(a for a in flow.accesses_at(p) if a.how != "tile")
            else:
                self.scatter(flow.accesses_at(p))
            if p.kind == "for" and role(p.stmt) in PARALLEL:
                self.nest(p)

    def nest(self, p: Point) -> None:
        inside = [a for q in self.flow.inside(p) for a in sorted(self.flow.accesses_at(q), key=lambda a: not a.write)]
        if shares_bytes(p.stmt, self.sites.viewed):
            self.scatter(inside)
            return
        loops, body = nest_of(p.stmt)
        outer = tuple(_range(x) for x in p.loops if x.kind == "for" and not is_grid(x))
        nest = Nest(int(annotation(p.stmt, attributes.NEST, -1)), loops, body, outer, role=p.role)
        self.sites.nests.append(nest)
        for a in inside:
            around = [x for x in a.point.loops if p.contains(x)]
            if len(around) >= len(loops) and a.how != "whole":
                inner = tuple(_range(x) for x in around[len(loops) :] if x.kind == "for")
                # Of an address it is not known which elements are accessed, only where from.
                nest.accesses.append(TileAccess(a.buffer, a.indices, a.write and not a.pointed, inner))

    def scatter(self, accesses: Iterable[Access]) -> None:
        self.sites.scattered |= {a.buffer for a in accesses if a.how != "whole"}


def _range(loop: Point) -> tuple[Var, Expr, Expr]:
    return loop.stmt.loop_var, loop.stmt.min, loop.stmt.extent


def _uses(loop: Stmt, outer: Sequence[Stmt]) -> bool:
    """Whether a loop's bounds depend on the variables of the loops around it."""
    found = {v for part in (loop.min, loop.extent) for v in collect(part, tirx.Var)}
    return any(o.loop_var in found for o in outer)
