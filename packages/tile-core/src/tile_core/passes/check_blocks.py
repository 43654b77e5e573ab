"""Refuse launches whose blocks touch the same element of a tensor.

Blocks of a launch have no order: an element that one writes, no other block reads, or writes with another value, but by
an atomic. The *same value* is a constant, or a value that is computed in all these blocks from the same scalars, loop
variables and elements that the launch does not write; a block index may occur in it if it has one value in all of them.

Most tensors are tiled: different blocks have different digits in the indices (``analysis/affine.py``), and nothing
else is done. For the others, indices are computed for blocks (all, or a sample of large grids), so that a refusal names
two blocks and an element. For symbolic extents several sizes are tried, and the launch is refused if blocks conflict in
all of them. Indices and conditions that depend on memory are not decided here, nor is what a block does after it may
have waited for others: behind atomic loads, and updates whose previous value it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.affine import Digits
from tile_core.analysis.block_values import BlockValues
from tile_core.analysis.conflicts import (
    AccessRows,
    assignments,
    element_name,
    read_elsewhere,
    refusal,
    unit_of,
    written_twice,
)
from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown
from tile_core.analysis.iteration_space import Space
from tile_core.analysis.point import Point
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, BufferVar, Call, Expr, Stmt, Var
from tile_core.errors.ops import ParallelRace
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, role
from tile_core.ops.base import OpCall, is_op
from tile_core.ops.effects import effects
from tile_core.ops.registry import OPS

__all__ = ["check_blocks", "is_atomic"]

#: Blocks, and elements of an access, that are enumerated at most.
_BLOCKS, _ELEMENTS = 1 << 10, 1 << 14
#: Assignments after which a launch counts as one that a single block writes in.
_ALONE = 5
_WRITE_FIX = "use {names} in the index, or T.atomic_add and its siblings where blocks combine values"
_READ_FIX = "write to another tensor, or write T.sync_grid() (or a second T.Kernel) between the write and the read"


def check_blocks(body: Stmt, cluster: Sequence[int] = (1, 1, 1)) -> None:
    """Check all launches of a program.

    Parameters
    ----------
    body
        The program.
    cluster
        Blocks of a cluster along x, y and z.

    Raises
    ------
    ParallelRace
        Naming the store or load, two blocks and the element.
    """
    for grid in body.seq if isinstance(body, tirx.SeqStmt) else [body]:
        axes: list[Stmt] = []
        inner = grid
        while isinstance(inner, tirx.For) and role(inner) == "grid":
            axes.append(inner)
            inner = inner.body
        extents = [nodes.as_int(a.extent) for a in axes]
        if any(e != 1 for e in extents) and all(not isinstance(e, int) or e > 0 for e in extents):
            _Launch(axes, inner, cluster).check()


class _Launch:
    """One launch: its blocks' accesses of tensors that it writes."""

    def __init__(self, axes: list[Stmt], body: Stmt, cluster: Sequence[int]) -> None:
        self.axes = axes
        written = _written(body)
        self.flow = Flow(_Loops(axes, written).stmt(body) if written else body, effects)
        self.waits = [p for p in self.flow.points if _may_wait(p)] if written else []
        meets = any(nodes.is_tile_call(s.value, "cluster_wait") for s in collect(body, tirx.Evaluate))
        self.cluster = cluster if meets else (1, 1, 1)
        self.tensors: dict[BufferVar, list[Access]] = {}
        for a in self.flow.accesses if written else ():
            root = self.flow.root(a.buffer)
            if a.how == "element" and nodes.scope_of(root) == "global" and root in written and self._certain(a.point):
                self.tensors.setdefault(root, []).append(a)

    def check(self) -> None:
        """Refuse the first conflict."""
        found = {b: accesses for b, accesses in self.tensors.items() if _plain_write(accesses)}
        if not found:
            return
        loops = [p.stmt for p in self.flow.points if p.kind == "for"]
        digits = Digits(self.axes, loops, self.flow.binds)
        for accesses in found.values():
            if not digits.distinct(accesses):
                self._enumerate(accesses)

    def _certain(self, p: Point) -> bool:
        """Whether loops around a point are counted, and no wait comes before it."""
        if any(x.kind == "while" or self.flow.jumps(x) for x in p.loops):
            return False
        return not any(w.order < p.order or any(x in w.loops for x in p.loops) for w in self.waits)

    def _enumerate(self, accesses: list[Access]) -> None:
        """Refuse if blocks conflict under every assignment that is tried."""
        met: list[ParallelRace] = []
        for k, sizes in enumerate(assignments(accesses, self.axes, self.flow.binds)):
            try:
                space = Space(self.axes, sizes, self.flow.binds, _BLOCKS, _ELEMENTS)
            except Unknown:
                continue
            stores, loads = self._rows(accesses, space)
            race = self._race(space, stores, loads, {str(v.name): n for v, n in sizes.items()})
            if race is not None:
                met.append(race)
            elif len({int(f(r.touched.iteration)) for r in stores for f in (np.min, np.max)}) > 1:
                return
            if k >= _ALONE and not met:
                return
        if met:
            raise met[0]

    @cached_property
    def _values(self) -> BlockValues:
        return BlockValues(self.flow, [a.loop_var for a in self.axes], frozenset(self.tensors))

    def _rows(self, accesses: list[Access], space: Space) -> tuple[list[AccessRows], list[AccessRows]]:
        """Return the known elements of stores and loads; blocks store values of their own."""
        stores: list[AccessRows] = []
        loads: list[AccessRows] = []
        for a in accesses:
            atomic = is_atomic(a.point)
            if not a.write and atomic:
                continue
            try:
                touched = space.touched(a)
            except Unknown:
                continue
            if not len(touched.element):
                continue
            if a.write:
                value = np.zeros(len(touched.element), np.uint64) if atomic else 1 + touched.iteration.astype(np.uint64)
                stores.append(AccessRows(a, touched, value, atomic))
            else:
                loads.append(AccessRows(a, touched, None))
        return stores, loads

    def _race(
        self, space: Space, stores: list[AccessRows], loads: list[AccessRows], sizes: Mapping[str, int]
    ) -> ParallelRace | None:
        if not stores:
            return None
        clusters = self._clusters(space)
        stores, loads = ([_of_clusters(r, clusters) for r in rows] for rows in (stores, loads))
        unit = unit_of([*stores, *loads])
        met = written_twice(stores, unit)
        if met is not None:
            valued = [r if r.atomic else replace(r, value=self._values.of(r.access, r.touched)) for r in stores]
            met = written_twice(valued, unit)
        if met is not None:
            (a, one), (b, two) = self._block(space, met.other), self._block(space, met.mine)
            names = ", ".join(n for n in one if one[n] != two[n])
            found = f"blocks {a} and {b} both write {element_name(met.access, met.at, unit)}"
            return refusal(found, sizes, _WRITE_FIX.format(names=names), met.access.statement)
        met = read_elsewhere(stores, loads, unit, space.count)
        if met is None:
            return None
        (a, _), (b, _) = self._block(space, met.mine), self._block(space, met.other)
        found = f"block {a} reads {element_name(met.access, met.at, unit)}, which block {b} writes"
        return refusal(found, sizes, _READ_FIX, met.access.statement)

    def _block(self, space: Space, number: int) -> tuple[str, dict[str, int]]:
        """Return a block as users write it, and its coordinates by name, x first."""
        named = dict(reversed(space.named(number).items()))
        text = ", ".join(f"{n}={v}" for n, v in named.items())
        return text if len(named) == 1 else f"({text})", named

    def _clusters(self, space: Space) -> Array | None:
        """Return the first block of each block's cluster, if its blocks wait for each other."""
        if tuple(self.cluster) == (1, 1, 1):
            return None
        sizes = [int(self.cluster[int(annotation(a, attributes.AXIS))]) for a in self.axes]
        grids = np.meshgrid(*(v // n for v, n in zip(space.values, sizes, strict=True)), indexing="ij")
        _, first, which = np.unique(
            np.stack([g.ravel() for g in grids]), axis=1, return_index=True, return_inverse=True
        )
        return first[which.ravel()]


def _of_clusters(rows: AccessRows, first: Array | None) -> AccessRows:
    if first is None:
        return rows
    touched = rows.touched
    moved = replace(touched, iteration=first[touched.iteration])
    return replace(rows, touched=moved)


def _written(body: Stmt) -> set[BufferVar]:
    """Return the tensors that a launch writes by stores and tile ops."""
    stores = {s.buffer for s in collect(body, tirx.BufferStore)}
    calls = [s for s in collect(body, (tirx.Evaluate, tirx.Bind)) if nodes.is_tile_call(s.value)]
    stores |= {v.buffer for s in calls if OpCall.decode(s).name in OPS for v in effects(s)[1]}
    views = {d.buffer: d for d in collect(body, tirx.DeclBuffer)}
    roots = {v for b in stores for v in (collect(views[b].data, tirx.Var) if b in views else [b])}
    # The address of a view may depend on sizes, which are variables, too.
    return {b for b in roots if tirx.is_buffer_var(b) and nodes.scope_of(b) == "global"}


def _plain_write(accesses: Iterable[Access]) -> bool:
    """Whether a block writes other than atomically, or reads what others update."""
    writes = [a for a in accesses if a.write]
    return bool(writes) and any(not is_atomic(a.point) for a in accesses)


def is_atomic(p: Point) -> bool:
    """Return whether a statement is a part of an atomic op."""
    marks = (x.stmt for x in p.path if x.kind == "mark" and x.stmt.attr_key == attributes.OP_MARK)
    return any(str(m.node.value).startswith("atomic") for m in marks)


def _may_wait(p: Point) -> bool:
    """Whether a block observes others here: by an atomic load or a returning update."""
    return isinstance(p.stmt, tirx.Bind) and nodes.is_tile_call(p.stmt.value) and "atomic" in str(p.stmt.value.op.name)


class _Loops(StmtRewriter):
    """Replaces tile ops on some tensors by loops, and thread and block indices by variables."""

    def __init__(self, axes: Sequence[Stmt], written: set[BufferVar]) -> None:
        self.written = written
        self.views: set[BufferVar] = set()
        self.blocks = {int(annotation(a, attributes.AXIS)): a.loop_var for a in axes}
        threads = next((t for a in axes if (t := annotation(a, attributes.THREADS)) is not None), (1, 1, 1))
        self.threads = [int(nodes.as_int(t)) for t in threads]
        self.used: dict[int, Var] = {}
        self.known: dict[int, tuple[Expr, Expr]] = {}

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite a statement; the outermost one gets the loops over threads."""
        outermost, self.outermost = self.outermost, False
        new = super().stmt(s)
        if outermost:
            for dim, var in self.used.items():
                new = nodes.for_loop(var, nodes.int_const(self.threads[dim]), new, "serial")
        return new

    outermost = True

    def expr(self, e: Expr) -> Expr:
        """Rewrite the indices of threads and blocks."""
        return map_expr(e, self._index, ir.Call)

    def _index(self, call: Call) -> Expr:
        if nodes.is_tile_call(call, "block_index"):
            return self.blocks.get(int(nodes.as_int(call.args[0])), nodes.int_const(0))
        if not nodes.is_tile_call(call, "thread_index"):
            return call
        dim = int(nodes.as_int(call.args[0]))
        if dim not in self.used:
            self.used[dim] = nodes.fresh(f"thread{dim}", "int32")
        return self.used[dim]

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        """Note a view of a tensor."""
        if any(v in self.written or v in self.views for v in collect(s.data, tirx.Var)):
            self.views.add(s.buffer)
        return s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Expand an op on one of the tensors; barriers stay."""
        s = super().visit_Evaluate(s)
        return self._loops(s) if is_op(s) else s

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Keep an update that returns a value, which may wait, before its loops."""
        s = super().visit_Bind(s)
        return nodes.seq([s, self._loops(s)]) if nodes.is_tile_call(s.value) else s

    def _loops(self, s: Stmt) -> Stmt:
        call = OpCall.decode(s)
        views = [v for side in effects(s) for v in side] if call.name in OPS else []
        if not any(v.buffer in self.written or v.buffer in self.views for v in views):
            return s if is_op(s) else nodes.seq([])
        lowered = OPS[call.name].meaning(call)
        return nodes.mark(attributes.OP_MARK, call.name, lowered, call.span)
