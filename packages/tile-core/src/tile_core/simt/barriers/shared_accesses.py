"""Reads and writes of memory that threads share, by statement of a per-thread program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from math import gcd, prod
from typing import Any

from tile_core.analysis.accesses import Access
from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.structural import attribute, identity, items
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import collect, distinct, role, substitute, variables
from tile_core.records import dataclass
from tile_core.simt.memory.arena import listed
from tile_core.simt.memory.shared_layouts import packed_buffers
from tile_core.simt.role_threads import role_of

_COMMON = ("shared", "global")
_STORES = (calls.UNTIL_READ, calls.UNTIL_STORED)
_MOST_GROUPS = 16
"""The maximum number of counted groups, above the pending count of any wait."""


@dataclass(frozen=True, eq=False)
class ByteRange:
    """The bytes of a buffer.

    Attributes
    ----------
    space
        ``"shared"`` for a buffer in the arena; otherwise the number of the buffer, which overlaps no other.
    first, last
        The half-open range of bytes; ``None`` if the size is unknown.
    size
        Bytes of an element; 0 if elements are smaller than a byte.
    """

    space: str | int
    first: int
    last: int | None
    size: int

    def overlaps(self, other: ByteRange) -> bool:
        """Whether two buffers overlap."""
        begins, ends = other.last is None or self.first < other.last, self.last is None or other.first < self.last
        return self.space == other.space and begins and ends


@dataclass(frozen=True)
class Awaited:
    """The completion of an asynchronous access.

    Attributes
    ----------
    name
        ``calls.UNTIL_GROUP``, the name of a barrier's buffer, or the name in the waiting call.
    index
        The barrier object; ``None`` if it is unknown, so that no wait matches it.
    issuer
        The number of the thread that issues and waits for a copy out of shared memory.
    groups
        The number of groups that the thread has committed since, its own included, up to ``_MOST_GROUPS``; of a wait,
        the maximum number of pending groups.
    """

    name: str
    index: tuple[Any, ...] | None = ()
    issuer: int = 0
    groups: int = 0

    def ends_by(self, wait: Awaited) -> bool:
        """Whether a wait is for this."""
        if self.name == wait.name == calls.UNTIL_GROUP:
            return self.groups > wait.groups
        if self.name != wait.name or self.index is None or wait.index is None:
            return False
        return all(tvm_ffi.structural_equal(a, b) for a, b in zip(self.index, wait.index, strict=True))


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
        The first element, over the variables of ``ranges`` and the context; ``None`` if unknown.
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
    proxy
        Empty for accesses of threads.
    until
        The completion of an asynchronous access; ``None`` for others.
    synced
        The barrier of the program after a write of a thread that no fence has made visible to other proxies.
    settled
        Whether a barrier of its role orders it, so that only other threads may conflict with it.
    seen
        Whether all threads that execute the program here have waited for it, and may read what it wrote.
    box
        Extents of the accessed box from ``corner`` on, if known: of a copy out of shared memory.
    corner
        The first element of that; ``None`` if it is unknown.
    once
        Whether each of its executions accesses other elements.
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
    proxy: str = ""
    until: Awaited | None = None
    synced: Any = None
    settled: bool = False
    seen: bool = False
    box: tuple[int, ...] = ()
    corner: tuple[Any, ...] | None = None
    once: bool = False
    moved: dict[Any, SharedAccess] = field(default_factory=dict, repr=False)

    @cached_property
    def shared(self) -> bool:
        """Whether it is an access of the block's own memory."""
        return nodes.scope_of(self.buffer) == "shared"

    @cached_property
    def used(self) -> frozenset[Var]:
        """The variables that it depends on."""
        until = () if self.until is None else self.until.index or ()
        named = (*(self.indices or ()), *(self.corner or ()), *self.conditions, *until)
        return frozenset(distinct([v for e in named for v in variables(e)]))

    def past(
        self, loop: Any, var: Var, bounds: tuple[int, int] | None, inner: frozenset[Any] = frozenset()
    ) -> SharedAccess:
        """Return the access as seen by later iterations of a loop and after it.

        Parameters
        ----------
        loop, var
            Identity and variable of the loop.
        bounds
            First value and extent of the variable, if they are constant.
        inner
            Variables that the loop's body binds: they too belong to another iteration.
        """
        found = self.moved.get(loop)
        if found is None:
            found = self.moved[loop] = self._past(var, bounds, inner)
            found.moved[loop] = found
        return found

    @property
    def store(self) -> Awaited | None:
        """The completion of a copy out of shared memory, awaited by barrier insertion."""
        return self.until if self.until is not None and self.until.name in _STORES else None

    def drained(self, waits: Mapping[int, bool]) -> SharedAccess:
        """Return the access after threads waited for their copies: reads, or (true) writes too."""
        if self.store is None or self.store.issuer not in waits:
            return self
        ended = self.store.name == calls.UNTIL_READ or waits[self.store.issuer]
        return self.changed("drained", until=None) if ended else self

    def beside(self, other: SharedAccess) -> bool:
        """Whether two boxes have no element in common."""
        if not self.box or not other.box or not self.buffer.same_as(other.buffer):
            return False
        if self.once and other.once and self.stmt.same_as(other.stmt):
            return True
        if self.corner is None or other.corner is None:
            return False
        return any(map(_separate, self.corner, self.box, other.corner, other.box))

    def outside(self, region: Expr) -> SharedAccess:
        """Return the access as seen outside its managed region."""
        if self.region is None or not self.region.same_as(region):
            return self
        return self.changed(("outside", region), region=None, until=None)

    def changed(self, key: Any, **fields: Any) -> SharedAccess:
        """Return the access with other fields, the same one each time for a key."""
        found = self.moved.get(key)
        if found is None:
            found = self.moved[key] = replace(self, **fields, moved={})
        return found

    def met(self, point: Any) -> SharedAccess | None:
        """Return the remaining access after a barrier of the block; ``point`` is that barrier."""
        if self.until is not None or self.synced is not None:
            return self
        if self.proxy or not self.write:
            return None
        return self.changed(("met", id(point)), synced=point)

    def met_in_role(self, point: Any, asynchronous: bool) -> SharedAccess:
        """Return the access after a barrier of its role, which orders only its threads."""
        if self.until is not None or self.settled:
            return self
        unfenced = asynchronous and self.write and not self.proxy
        return self.changed(("role", id(point)), settled=True, synced=point if unfenced else None)

    def left_role(self) -> SharedAccess:
        """Return the access as seen by the other threads of the block."""
        left = self.settled or self.seen
        return self.changed("left", settled=False, seen=False, synced=None) if left else self

    def committed(self) -> SharedAccess:
        """Return the access after the thread has ended a group of copies."""
        if self.until is None or self.until.name != calls.UNTIL_GROUP or self.until.groups == _MOST_GROUPS:
            return self
        return self.changed("committed", until=replace(self.until, groups=self.until.groups + 1))

    def waited(self, ended: Awaited, collective: bool) -> SharedAccess:
        """Return the access after a wait of all threads or of some."""
        if self.until is None or not self.until.ends_by(ended):
            return self
        return self.changed(("waited", collective), until=None, seen=collective and ended.name != calls.UNTIL_GROUP)

    def _past(self, var: Var, bounds: tuple[int, int] | None, inner: frozenset[Any]) -> SharedAccess:
        if var not in self.used and inner.isdisjoint(self.used):
            return self
        lost = inner if bounds is not None else inner | {var}
        if self.until is not None and any(variables(e) & (lost | {var}) for e in self.until.index or ()):
            return replace(self, until=replace(self.until, index=None), moved={})._past(var, bounds, inner)
        conditions = tuple(c for c in self.conditions if not variables(c) & lost)
        used = set().union(*(variables(e) for e in (*(self.indices or ()), *conditions)))
        moved = set().union(*map(variables, self.corner or ())) & (lost | {var})
        if moved and self.corner is not None:
            before = {v: tirx.Var(f"{v.name}_any", v.ty) for v in moved}
            corner = tuple(substitute(e, before) for e in self.corner)
            return replace(self, corner=corner, moved={})._past(var, bounds, inner)
        indices = self.indices
        if indices is not None and any(variables(e) & lost for e in indices):
            return replace(self, indices=None, conditions=conditions, moved={})
        if indices is None or var not in used or bounds is None:
            same = len(conditions) == len(self.conditions)
            return self if same else replace(self, conditions=conditions, moved={})
        other = tirx.Var(f"{var.name}_before", var.ty)
        indices = tuple(substitute(e, {var: other}) for e in indices)
        conditions = tuple(substitute(e, {var: other}) for e in conditions)
        return replace(self, indices=indices, conditions=conditions, ranges=(*self.ranges, (other, *bounds)), moved={})


class Accesses:
    """Accesses of a program's points to memory that threads share.

    Parameters
    ----------
    flow
        The program, whose allocations give the offsets of buffers.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.memory: dict[Any, ByteRange] = {}
        self.packed = packed_buffers(flow.body)
        self.binds: dict[Any, Any] = {}
        #: Whether an access is asynchronous or uses another proxy.
        self.asynchronous = False
        allocs = collect(flow.body, tirx.AllocBuffer)
        self.bases = {b: flow.root(b) for b in (*(a.buffer for a in allocs), *flow.roots)}
        for alloc in allocs:
            if nodes.scope_of(alloc.buffer) == "shared":
                offset = (alloc.annotations or {}).get(attributes.OFFSET)
                space = identity(alloc.buffer) if offset is None else "shared"
                self._locate(alloc.buffer, space, 0 if offset is None else int(nodes.as_int(offset)))
        for view, base in flow.roots.items():
            known = self.memory.get(base)
            self._locate(view, identity(base) if known is None else known.space, 0 if known is None else known.first)
        for var, value in flow.binds.items():
            if not collect(value, (ir.TensorLoad,)) and not _has_opaque(value):
                self.binds[var] = substitute(value, self.binds)
        self._conditions: dict[Any, tuple[Any, ...]] = {}
        self._opaque: dict[Point, frozenset[Var]] = {}
        self._managed: dict[Any, set[BufferVar]] = {}

    def _locate(self, buffer: BufferVar, space: str | int, first: int) -> ByteRange:
        bits = DTYPES[nodes.element_type(buffer)].bits
        size = (0 if buffer in self.packed else 1) if bits < 8 else bits // 8
        shape = nodes.shape_of(buffer)
        known = all(isinstance(n, int) for n in shape)
        last = first + max(1, prod(shape) * max(1, bits // 8)) if known else None
        found = self.memory[buffer] = ByteRange(space, first, last, size)
        return found

    def of(self, p: Point) -> list[SharedAccess]:
        """Return the accesses of a point itself."""
        return [x for a in self.flow.accesses_at(p) for x in self._of(a, p)]

    def of_whole(self, p: Point) -> list[SharedAccess]:
        """Return the accesses of a point and its inner points, with ranges for loop variables."""
        return [x for q in (p, *self.flow.inside(p)) for a in self.flow.accesses_at(q) for x in self._of(a, p)]

    def opaque(self, p: Point) -> frozenset[Var]:
        """Return the variables that a loop's body binds to values that are not loop-invariant."""
        found = self._opaque.get(p)
        if found is None:
            bound = (q.stmt.var for q in self.flow.inside(p) if type(q.stmt) is tirx.Bind)
            found = self._opaque[p] = frozenset(v for v in bound if v not in self.binds)
        return found

    def _of(self, a: Access, unit: Point) -> list[SharedAccess]:
        """Return an inner point's access as one of a point; none for private memory."""
        if nodes.scope_of(a.buffer) not in _COMMON:
            return []
        if a.how == "element":
            return [self._access(a, unit)]
        if a.how == "move":
            assert a.call is not None
            return [self._access(a, unit, int(nodes.as_int(a.call.attrs[attributes.BYTES])))]
        atomic = _is_atomic(a.call)
        if a.how != "address":
            return [replace(self._access(a, unit), indices=None, atomic=atomic, moved={})]
        assert a.operand is not None
        access, proxy, until = (str(attribute(a.operand, key, "")) for key in ("access", "proxy", "until"))
        atomic = atomic or access == "a"
        if _on_barriers(a.call):
            return [replace(self._access(a, unit), atomic=atomic, moved={})]
        self.asynchronous = self.asynchronous or bool(proxy or until)
        ended = self.until(until, a.call) if until else None
        found = self._access(a, unit)
        if until in _STORES:
            ended = Awaited(until, (), 0 if a.point.role is None else role_of(a.point.role).first)
        box = tuple([int(nodes.as_int(n)) for n in attribute(a.operand, attributes.BOX, ())])
        if box:
            found = replace(found, box=box, corner=found.indices, once=self._once(a, box), moved={})
        return [replace(found, indices=None, atomic=atomic, proxy=proxy, until=ended, moved={})]

    def _once(self, a: Access, box: tuple[int, ...]) -> bool:
        """Whether each iteration of each surrounding loop moves a box by at least its extents."""
        free = list(range(len(box)))
        indices = [substitute(i, self.binds) for i in a.indices]
        loops = [p for p in a.point.loops if not is_grid(p)]
        own = [p.stmt.loop_var for p in loops if p.kind == "for"]
        if len(own) < len(loops):
            return False
        inner = set(own).union(*(self.opaque(p) for p in loops))
        for var in own:
            for d in free:
                form = linear_form(indices[d], [var])
                if form is None or abs(form.steps[0]) < box[d] or collect(form.rest, ir.TensorLoad):
                    continue
                if not variables(form.rest) & inner:
                    free.remove(d)
                    break
            else:
                return False
        return True

    def _access(self, a: Access, unit: Point, size: int = 0) -> SharedAccess:
        memory = self.memory.get(a.buffer) or self._locate(a.buffer, identity(a.buffer), 0)
        ranges, lost = self._iterations(a.point, unit)
        known: tuple[Any, ...] | None = tuple(substitute(i, self.binds) for i in a.indices)
        if any(collect(i, ir.TensorLoad) or variables(i) & lost for i in known or ()):
            known = None
        return SharedAccess(
            a.buffer, memory, a.write, False, known, size or memory.size, unit.stmt, ranges,
            self.conditions(a.point), self._region(a),
        )  # fmt: skip

    def _iterations(self, p: Point, unit: Point) -> tuple[tuple[tuple[Any, int, int], ...], frozenset[Any]]:
        """Return the ranges of loops between a unit and a point, and the unknown variables."""
        ranges: tuple[tuple[Any, int, int], ...] = ()
        lost: frozenset[Any] = frozenset()
        for loop in (x for x in p.loops if unit.contains(x)):
            bounds, lost = bounds_of(loop.stmt), lost | self.opaque(loop)
            if bounds is not None:
                ranges = (*ranges, (loop.stmt.loop_var, *bounds))
            elif loop.kind == "for":
                lost = lost | {loop.stmt.loop_var}
        return ranges, lost

    def conditions(self, p: Point) -> tuple[Expr, ...]:
        """Return the conditions that hold at a point."""
        key = (p.around, p.side)
        if key not in self._conditions:
            held = [c if holds else tirx.Not(c) for c, holds in p.conditions if not collect(c, ir.TensorLoad)]
            if p.role is not None:
                number = p.role.node[3]
                held += [number >= 0, number < p.role.node[2]]
            self._conditions[key] = tuple(substitute(c, self.binds) for c in held)
        return self._conditions[key]

    def _region(self, a: Access) -> Stmt | None:
        """Return the outermost managed region around an access that orders its buffer, if any does."""
        root = self.flow.root(a.buffer)
        return next((p.stmt for p in a.point.path if root in self.managed(p)), None)

    def managed(self, p: Point) -> set[BufferVar]:
        """Return the buffers that a managed region orders; none for other statements."""
        if p.kind != "mark" or p.stmt.attr_key != attributes.MANAGED:
            return set()
        if p not in self._managed:
            self._managed[p] = listed(p.stmt.node, self.bases)
        return self._managed[p]

    def until(self, name: str, instruction: Call | None) -> Awaited:
        """Return the end of an instruction's access to an operand."""
        if name != calls.UNTIL_PHASE:
            return Awaited(name)
        args = () if instruction is None else items(instruction.args)
        addresses = [a for a in args if nodes.is_tile_call(a, "address")]
        objects = [a.args[0] for a in addresses if str(attribute(a, attributes.ACCESS)) == "a"]
        return self.phase(objects[0]) if len(objects) == 1 else Awaited(name, None)

    def phase(self, address: Expr) -> Awaited:
        """Return the wait for a barrier object."""
        return Awaited(str(address.source.name), tuple(substitute(i, self.binds) for i in address.indices))

    def waits(self, s: Stmt) -> Awaited | None:
        """Return the accesses whose end a statement waits for.

        A step does if one statement in it does; it must access no memory of the block itself.
        """
        if type(s) is tirx.AttrStmt:
            inside = [w for x in collect(s, tirx.Evaluate) if (w := self.waits(x)) is not None]
            return inside[0] if len(inside) == 1 else None
        call = s.value if type(s) is tirx.Evaluate else None
        if call is None or not nodes.is_tile_call(call):
            return None
        if nodes.is_tile_call(call, "async_wait"):
            return Awaited(calls.UNTIL_GROUP, groups=int(nodes.as_int(call.args[0])))
        if nodes.is_tile_call(call, "barrier_wait"):
            return self.phase(call.args[0].args[0])
        name = call.attrs.get(attributes.WAITS) if call.attrs else None
        return None if name is None else Awaited(str(name))


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


def _separate(a: Expr, extent: int, b: Expr, other: int) -> bool:
    """Whether ``n`` elements from ``a`` and ``b`` are disjoint by a constant gap or remainders."""
    analyzer = Analyzer()
    a, b = nodes.int_const(0) + a, nodes.int_const(0) + b
    gap = nodes.as_int(analyzer.simplify(b - a))
    if isinstance(gap, int):
        return gap >= extent or -gap >= other
    first, second = analyzer.modular_set(a), analyzer.modular_set(b)
    period = gcd(int(first.coeff), int(second.coeff))
    gap = int(second.base) - int(first.base)
    return period > 0 and gap % period >= extent and -gap % period >= other


def _on_barriers(call: Call | None) -> bool:
    """Whether a call is one of those for barrier objects, which access one object."""
    return call is not None and str(call.op.name).startswith("tile.barrier_")


def _is_atomic(call: Call | None) -> bool:
    """Whether a call is an atomic op; addresses of instructions have their own attribute."""
    return call is not None and nodes.is_tile_call(call) and str(call.op.name)[5:].startswith("atomic")


def _has_opaque(e: Expr) -> bool:
    return any(not nodes.is_tile_call(c, "thread_index") and nodes.is_tile_call(c) for c in collect(e, ir.Call))
