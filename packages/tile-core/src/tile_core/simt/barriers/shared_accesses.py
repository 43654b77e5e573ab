"""Reads and writes of memory that threads share, by statement of a per-thread program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role, substitute
from tile_core.simt.memory.arena import OFFSET
from tile_core.simt.memory.shared_layouts import base_of, packed_buffers

_COMMON = ("shared", "global")


@dataclass(frozen=True)
class ByteRange:
    """The bytes of a buffer.

    Attributes
    ----------
    space
        ``"shared"`` for a buffer in the arena; otherwise the buffer itself, which overlaps no other.
    first, last
        The half-open range of bytes; ``None`` if the size is unknown.
    size
        Bytes of an element; 0 if elements are smaller than a byte.
    """

    space: Any
    first: int
    last: int | None
    size: int

    def overlaps(self, other: ByteRange) -> bool:
        """Whether two buffers overlap."""
        if self.space is not other.space and not _same(self.space, other.space):
            return False
        return (other.last is None or self.first < other.last) and (self.last is None or other.first < self.last)


@dataclass(frozen=True, eq=False)
class SharedAccess:
    """One access of one thread.

    Attributes
    ----------
    buffer, memory
        The buffer, and its memory.
    write
        Whether it writes.
    atomic
        Whether it is unordered with other atomic accesses of the same buffer.
    indices
        The first element, over variables that ``ranges`` and the context know; ``None`` if unknown.
    bytes
        Bytes from there on.
    ranges
        Variables of finished loops, with first value and extent: each may have any of its values.
    conditions
        Conditions known to hold when it executes.
    stmt
        The statement.
    region
        The managed region that orders its buffer, while inside it.
    """

    buffer: Any
    memory: ByteRange
    write: bool
    atomic: bool
    indices: tuple[Any, ...] | None
    bytes: int
    stmt: Any
    ranges: tuple[tuple[Any, int, int], ...] = ()
    conditions: tuple[Any, ...] = ()
    region: Any = None
    later: dict[Any, SharedAccess] = field(default_factory=dict, repr=False)

    @property
    def shared(self) -> bool:
        """Whether it is an access of the block's own memory."""
        return nodes.scope_of(self.buffer) == "shared"

    def past(self, var: Var, bounds: tuple[int, int] | None, inner: frozenset[Any] = frozenset()) -> SharedAccess:
        """Return the access as seen by later iterations of the loop of ``var``, and after the loop.

        Parameters
        ----------
        bounds
            First value and extent of the variable, if they are constant.
        inner
            Variables that the loop's body binds: they too belong to another iteration.
        """
        found = self.later.get(var)
        if found is None:
            found = self.later[var] = self._past(var, bounds, inner)
            found.later[var] = found
        return found

    def outside(self, region: Expr) -> SharedAccess:
        """Return the access as seen outside its managed region."""
        if self.region is None or not self.region.same_as(region):
            return self
        found = self.later.get(region)
        if found is None:
            found = self.later[region] = replace(self, region=None, later={})
        return found

    def _past(self, var: Var, bounds: tuple[int, int] | None, inner: frozenset[Any]) -> SharedAccess:
        lost = inner if bounds is not None else inner | {var}
        conditions = tuple(c for c in self.conditions if not variables(c) & lost)
        used = set().union(*(variables(e) for e in (*(self.indices or ()), *conditions)))
        indices = self.indices
        if indices is not None and any(variables(e) & lost for e in indices):
            return replace(self, indices=None, conditions=conditions, later={})
        if indices is None or var not in used or bounds is None:
            same = len(conditions) == len(self.conditions)
            return self if same else replace(self, conditions=conditions, later={})
        other = tirx.Var(f"{var.name}_before", var.ty)
        indices = tuple(substitute(e, {var: other}) for e in indices)
        conditions = tuple(substitute(e, {var: other}) for e in conditions)
        return replace(self, indices=indices, conditions=conditions, ranges=(*self.ranges, (other, *bounds)), later={})


class Accesses:
    """Finds the accesses of statements.

    Parameters
    ----------
    body
        The program, whose allocations give the offsets of buffers.
    """

    def __init__(self, body: Stmt) -> None:
        self.memory: dict[Any, ByteRange] = {}
        self.bases: dict[Any, Any] = {}
        self.packed = packed_buffers(body)
        self.binds: dict[Any, Any] = {}
        for alloc in collect(body, tirx.AllocBuffer):
            self.bases[alloc.buffer] = alloc.buffer
            if nodes.scope_of(alloc.buffer) == "shared":
                offset = (alloc.annotations or {}).get(OFFSET)
                space = alloc.buffer if offset is None else "shared"
                self._place(alloc.buffer, space, 0 if offset is None else int(nodes.as_int(offset)))
        for view in collect(body, tirx.DeclBuffer):
            base = base_of(view)
            base = self.bases.get(base, base)
            if base is not None:
                self.bases[view.buffer] = base
                known = self.memory.get(base)
                self._place(view.buffer, base if known is None else known.space, 0 if known is None else known.first)
        for bind in collect(body, tirx.Bind):
            if not collect(bind.value, (ir.TensorLoad,)) and not _has_opaque(bind.value):
                self.binds[bind.var] = substitute(bind.value, self.binds)

    def _place(self, buffer: BufferVar, space: Any, first: int) -> None:
        bits = DTYPES[nodes.element_type(buffer)].bits
        size = (0 if buffer in self.packed else 1) if bits < 8 else bits // 8
        shape = nodes.shape_of(buffer)
        known = all(isinstance(n, int) for n in shape)
        last = first + max(1, prod(shape) * max(1, bits // 8)) if known else None
        self.memory[buffer] = ByteRange(space, first, last, size)

    def of_expr(self, e: Expr, where: ProgramPlace) -> list[SharedAccess]:
        """Return the reads of an expression, and the accesses of its calls."""
        found: list[SharedAccess] = []
        places: list[Any] = []
        pointers: list[Any] = []
        everything = collect(e, ir.Call)
        for call in everything:
            found += self._of_call(call, where, pointers)
            places += _pointed(call)
        for call in everything:
            if nodes.is_tile_call(call, "address") and not _among(call, pointers):
                found += self._pointer(call, False, where)
        for x in collect(e, ir.TensorLoad):
            if not _among(x, places):
                found += self._access(x.source, x.indices, False, where)
        return found

    def of_store(self, s: Stmt, where: ProgramPlace) -> tuple[list[SharedAccess], list[SharedAccess]]:
        """Return the reads and the write of a store."""
        reads = self.of_expr(s.value, where)
        for i in s.indices:
            reads += self.of_expr(i, where)
        return reads, self._access(s.buffer, s.indices, True, where)

    def of_step(self, s: Stmt, where: ProgramPlace) -> Iterator[SharedAccess]:
        """Yield all accesses inside a statement; the variables of its loops get ranges."""
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                yield from self.of_step(x, where)
        elif isinstance(s, tirx.For):
            yield from self.of_expr(s.min, where)
            yield from self.of_expr(s.extent, where)
            yield from self.of_step(s.body, where.loop(s, self.opaque(s.body)))
        elif isinstance(s, tirx.While):
            yield from self.of_expr(s.condition, where)
            yield from self.of_step(s.body, where.loop(s, self.opaque(s.body)))
        elif isinstance(s, tirx.IfThenElse):
            yield from self.of_expr(s.condition, where)
            yield from self.of_step(s.then_case, where.under(s.condition))
            if s.else_case is not None:
                yield from self.of_step(s.else_case, where.under(tirx.Not(s.condition)))
        elif isinstance(s, tirx.AttrStmt):
            yield from self.of_step(s.body, where)
        else:
            yield from self.of_simple(s, where)

    def opaque(self, body: Stmt) -> frozenset[Var]:
        """Return the variables that a loop's body binds to values that are not loop-invariant."""
        return frozenset(b.var for b in collect(body, tirx.Bind) if b.var not in self.binds)

    def of_simple(self, s: Stmt, where: ProgramPlace) -> list[SharedAccess]:
        """Return all accesses of a statement without a body."""
        if isinstance(s, tirx.BufferStore):
            reads, writes = self.of_store(s, where)
            return [*reads, *writes]
        if isinstance(s, (tirx.Bind, tirx.Evaluate)):
            return self.of_expr(s.value, where)
        return self.of_expr(s.condition, where) if isinstance(s, tirx.AssertStmt) else []

    def _of_call(self, call: Call, where: ProgramPlace, pointers: list[Any]) -> list[SharedAccess]:
        if nodes.is_tile_call(call, "move"):
            size = int(nodes.as_int(call.attrs["bytes"]))
            target, source = call.args
            return [
                *self._access(source.source, source.indices, False, where, size),
                *self._access(target.source, target.indices, True, where, size),
            ]
        atomic = _is_atomic(call)
        found: list[SharedAccess] = []
        for arg in call.args:
            if nodes.is_tile_call(arg, "address"):
                pointers.append(arg)
                found += self._pointer(arg, atomic, where)
            elif isinstance(arg, tirx.Var) and tirx.is_buffer_var(arg):
                found += self._whole(arg, where, ("r", "w"), atomic)
            elif nodes.operator_name(arg) in ("address_of", "buffer_data"):
                inner = arg.args[0]
                found += self._whole(getattr(inner, "source", inner), where, ("r", "w"), atomic)
        return found

    def _pointer(self, call: Call, atomic: bool, where: ProgramPlace) -> list[SharedAccess]:
        access = str(call.attrs["access"])
        atomic = atomic or access == "a"
        return self._whole(call.args[0].source, where, ("r", "w") if access == "a" else tuple(access), atomic)

    def _whole(
        self, buffer: BufferVar, where: ProgramPlace, kinds: tuple[str, ...], atomic: bool
    ) -> list[SharedAccess]:
        """Return accesses at places that an instruction chooses: they may be anywhere in the buffer."""
        found: list[SharedAccess] = []
        for kind in kinds:
            found += [replace(a, indices=None, atomic=atomic, later={}) for a in self._access(
                buffer, (), kind == "w", where
            )]  # fmt: skip
        return found

    def _access(
        self, buffer: BufferVar, indices: Any, write: bool, where: ProgramPlace, size: int = 0
    ) -> list[SharedAccess]:
        if nodes.scope_of(buffer) not in _COMMON:
            return []
        if buffer not in self.memory:
            self._place(buffer, buffer, 0)
        memory = self.memory[buffer]
        known: tuple[Any, ...] | None = tuple(substitute(i, self.binds) for i in indices)
        if any(collect(i, ir.TensorLoad) or variables(i) & where.lost for i in known or ()):
            known = None
        region = where.region_of(self.bases.get(buffer, buffer))
        return [
            SharedAccess(
                buffer, memory, write, False, known, size or memory.size, where.stmt, where.ranges,
                tuple(substitute(c, self.binds) for c in where.conditions), region,
            )
        ]  # fmt: skip


@dataclass(frozen=True)
class ProgramPlace:
    """The context of a statement in the program."""

    stmt: Any = None
    ranges: tuple[tuple[Any, int, int], ...] = ()
    conditions: tuple[Any, ...] = ()
    regions: tuple[tuple[Any, frozenset[Any]], ...] = ()
    lost: frozenset[Any] = frozenset()

    def at(self, stmt: Stmt) -> ProgramPlace:
        """Return the context of a statement here."""
        return replace(self, stmt=stmt)

    def under(self, condition: Expr) -> ProgramPlace:
        """Return the context under a condition; one that reads memory is ignored."""
        if collect(condition, ir.TensorLoad):
            return self
        return replace(self, conditions=(*self.conditions, condition))

    def loop(self, s: Stmt, opaque: frozenset[Any]) -> ProgramPlace:
        """Return the context inside a loop whose iterations all count as one."""
        bounds = bounds_of(s)
        if bounds is not None:
            return replace(self, ranges=(*self.ranges, (s.loop_var, *bounds)), lost=self.lost | opaque)
        mine = {s.loop_var} if isinstance(s, tirx.For) else set()
        return replace(self, lost=self.lost | opaque | mine)

    def inside(self, region: Expr, managed: Iterable[Any]) -> ProgramPlace:
        """Return the context inside a region that manages some buffers."""
        return replace(self, regions=(*self.regions, (region, frozenset(managed))))

    def region_of(self, buffer: BufferVar) -> Any:
        """Return the outermost region that manages a buffer, if any does."""
        return next((region for region, managed in self.regions if buffer in managed), None)


def bounds_of(loop: Stmt) -> tuple[int, int] | None:
    """Return the first value and the extent of a loop's variable if they are constant."""
    if not isinstance(loop, tirx.For):
        return None
    start, extent = nodes.as_int(loop.min), nodes.as_int(loop.extent)
    if not isinstance(start, int) or not isinstance(extent, int):
        return None
    return start, max(extent, 0)


def is_unordered(loop: Stmt) -> bool:
    """Whether a loop's iterations do not depend on each other."""
    return role(loop) in ("parallel", "vectorized")


def variables(e: Expr) -> set[Var]:
    """Return the variables of an expression."""
    return set(collect(e, tirx.Var))


def _among(x: Expr, others: list[Expr]) -> bool:
    return any(x.same_as(o) for o in others)


def _pointed(call: Call) -> list[Expr]:
    """Return the loads among a call's arguments that only denote an address."""
    if nodes.is_tile_call(call, "move"):
        return list(call.args)
    if nodes.is_tile_call(call, "address") or nodes.operator_name(call) == "address_of":
        return [call.args[0]]
    return []


def _is_atomic(call: Call) -> bool:
    """Whether a call is an atomic op of the language; for instructions, each address says so itself."""
    return nodes.is_tile_call(call) and str(call.op.name)[5:].startswith("atomic")


def _has_opaque(e: Expr) -> bool:
    return any(not nodes.is_tile_call(c, "thread_index") and nodes.is_tile_call(c) for c in collect(e, ir.Call))


def _same(a: Any, b: Any) -> bool:
    return a == b if isinstance(a, str) or isinstance(b, str) else bool(a.same_as(b))
