"""Rebuild the statements of program points with their barriers, and split branches around barriers."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import substitute, uses_var, with_bodies
from tile_core.simt.barriers.program_points import FENCE_GLOBAL, FENCE_INIT, FENCE_PROXY, ProgramPoint
from tile_core.simt.role_threads import role_of
from tile_core.simt.variant import Block


class BarrierWriter:
    """Rebuilds statements from program points.

    Parameters
    ----------
    block
        The threads, if the program has roles.
    """

    def __init__(self, block: Block | None = None) -> None:
        self.block = block
        #: The numbers of the barriers of roles, by first thread and count.
        self.numbers: dict[tuple[int, int], int] = {}

    def barrier(self, p: ProgramPoint) -> Stmt:
        """Return the barrier of a point: of the threads of its role, or of all."""
        if p.role is None:
            return calls.sync_threads()
        role = role_of(p.role)
        number = self.numbers.setdefault((role.first, role.count), len(self.numbers) + 1)
        return calls.sync_part(number, role.count)

    def meeting(self, p: ProgramPoint) -> list[Stmt]:
        """Return the barrier before a point, with the waits and fences that precede it."""
        return [*self.drains(p), *_fences(p), self.barrier(p)]

    def drains(self, p: ProgramPoint) -> list[Stmt]:
        """Return the waits of threads for their copies out of shared memory."""
        found = []
        for issuer, stored in sorted(p.drains.items()):
            assert self.block is not None
            wait, mine = calls.store_wait(stored), tirx.EQ(self.block.thread, nodes.int_const(issuer))
            found.append(wait if self.block.count == 1 else tirx.IfThenElse(mine, wait, None))
        return found

    def work(self, s: Stmt, body: Stmt) -> Stmt:
        """Return the statement of a role's threads."""
        assert self.block is not None
        role, thread = role_of(s), self.block.thread
        if role.count == self.block.count:
            return body
        first, end = nodes.int_const(role.first), nodes.int_const(role.first + role.count)
        return tirx.IfThenElse(tirx.all(thread >= first, thread < end), body, None, s.span)

    def whole(self, points: list[ProgramPoint]) -> Stmt:
        """Return the statement of some points that all threads reach."""
        out: list[Any] = []
        for p in points:
            if p.meet:
                out += self.meeting(p)
            out.extend(self.one(p))
        return nodes.seq(out)

    def one(self, p: ProgramPoint) -> list[Any]:
        """Return the statements of a point."""
        s = p.stmt
        if p.between:
            return _two_steps(s, self.barrier(p))
        if p.kind == "role":
            return [self.work(s, self.whole(p.parts[0]))]
        if not p.parts:
            return [*_fences(p), self.barrier(p) if p.role is not None else s] if p.kind == "sync" else [s]
        if p.kind == "grid" and p.drains:
            return [self.rebuilt(p, [nodes.seq([self.whole(p.parts[0]), *self.drains(p)])])]
        if p.kind == "if" and p.varying and p.split:
            return self.parted(p)
        return [self.rebuilt(p, [self.whole(part) for part in p.parts])]

    def rebuilt(self, p: ProgramPoint, parts: list[Any]) -> Any:
        """Return a compound statement with its bodies replaced."""
        if p.kind == "while" and p.end:
            parts = [nodes.seq([parts[0], *self.drains(p), self.barrier(p)])]
        return with_bodies(p.stmt, parts)

    def parted(self, p: ProgramPoint, mask: Any = None) -> list[Any]:
        """Return a divergent branch as parts, each guarded by its saved condition."""
        s = p.stmt
        taken = nodes.fresh("taken", "bool")
        out = [tirx.Bind(taken, s.condition if mask is None else tirx.And(mask, s.condition), s.span)]
        sides = [taken]
        if len(p.parts) == 2:
            other = nodes.fresh("other", "bool")
            out.append(tirx.Bind(other, tirx.Not(taken) if mask is None else tirx.And(mask, tirx.Not(taken)), s.span))
            sides.append(other)
        for side, part in zip(sides, p.parts, strict=True):
            out.extend(self.under(part, side))
        return out

    def under(self, points: list[ProgramPoint], mask: Any) -> list[Any]:
        """Return statements that all threads reach, with the points predicated by ``mask``."""
        return _Masked(self, mask).write(points)


class _Masked:
    """Points under a mask: each run without a barrier becomes a branch of its own."""

    def __init__(self, owner: BarrierWriter, mask: Var) -> None:
        self.owner, self.mask = owner, mask
        self.out: list[Any] = []
        self.group: list[Any] = []
        self.kept: dict[Any, Any] = {}

    def write(self, points: list[ProgramPoint]) -> list[Stmt]:
        for at, p in enumerate(points):
            if p.meet:
                self.flush(points[at:])
                for s in self.owner.meeting(p):
                    self.put(s)
            if isinstance(p.stmt, (tirx.AllocBuffer, tirx.DeclBuffer)):
                self.put(p.stmt)
            elif p.between:
                *before, barrier, written = _two_steps(p.stmt, self.owner.barrier(p))
                for s in before:
                    (self.out if isinstance(s, tirx.AllocBuffer) else self.group).append(s)
                self.flush([ProgramPoint(written), *points[at + 1 :]])
                self.put(barrier)
                self.group.append(written)
            elif p.split:
                self.flush(points[at:])
                for s in self.compound(p):
                    self.put(s)
            else:
                self.group.extend(self.owner.one(p))
        self.flush([])
        return self.out

    def compound(self, p: ProgramPoint) -> list[Stmt]:
        if p.kind == "if" and p.varying:
            return self.owner.parted(p, self.mask)
        if p.kind == "while" or (p.kind == "for" and p.varying):
            kind = "while loop" if p.kind == "while" else "loop"
            raise DivergentBarrier(what=f"a {kind} whose threads meet inside", where=nodes.where_of(p.stmt))
        return [self.owner.rebuilt(p, [nodes.seq(self.owner.under(part, self.mask)) for part in p.parts])]

    def put(self, s: Stmt) -> None:
        self.out.append(substitute(s, self.kept))

    def flush(self, rest: list[ProgramPoint]) -> None:
        """End a run; its bindings that ``rest`` uses are kept in variables."""
        if not self.group:
            return
        body: list[Any] = []
        kept: dict[Any, Any] = {}
        for s in self.group:
            body.append(s)
            if not isinstance(s, tirx.Bind) or not any(uses_var(p.stmt, s.var) for p in rest):
                continue
            cell, allocate = nodes.alloc([1], nodes.dtype_of(s.var), f"{s.var.name}_kept", "local.var")
            self.out.append(allocate)
            body.append(nodes.store(cell, s.var, [0]))
            kept[s.var] = nodes.load(cell, [0])
        self.put(tirx.IfThenElse(self.mask, nodes.seq(body), None))
        self.kept |= kept
        self.group = []


def _fences(p: ProgramPoint) -> list[Stmt]:
    """Return the fences before the barrier of a point."""
    kinds = [k for k in p.fences if k != FENCE_PROXY or FENCE_GLOBAL not in p.fences]
    return [calls.fence_init() if k == FENCE_INIT else calls.fence_proxy(k == FENCE_GLOBAL) for k in kinds]


def _two_steps(s: Stmt, barrier: Stmt) -> list[Stmt]:
    """Return the statement split into a read, a barrier and a write."""
    if isinstance(s, tirx.BufferStore):
        var = nodes.fresh(f"{s.buffer.name}_kept", nodes.dtype_of(s.value))
        return [
            tirx.Bind(var, s.value, s.span),
            barrier,
            tirx.BufferStore(s.buffer, var, list(s.indices), s.span),
        ]
    target, source = s.value.args
    size = int(nodes.as_int(s.value.attrs[attributes.BYTES]))
    count = max(1, size // max(1, _bytes(source.source)))
    held, allocate = nodes.alloc([count], nodes.element_type(source.source), f"{target.source.name}_kept", "local")
    zero = nodes.int_const(0)
    return [
        allocate,
        calls.move(held, [zero], source.source, list(source.indices), size, s.span),
        barrier,
        calls.move(target.source, list(target.indices), held, [zero], size, s.span),
    ]


def _bytes(buffer: BufferVar) -> int:
    return DTYPES[nodes.element_type(buffer)].bits // 8
