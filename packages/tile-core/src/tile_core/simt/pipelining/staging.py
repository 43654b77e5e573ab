"""Copies through registers: load during computation, store once the buffer is free.

For a target whose copies from global to shared memory are loads and stores of threads. A store directly after its load
waits for memory; here an iteration computes between them::

    load first(0)
    for k:
        store first(k); load second(k); compute on first
        store second(k); load first(k + 1), if there is one; compute on second

Tiles used by the same statements form a group; a loop with one group loads the next iteration's. A tile needs one
buffer, not one per stage, and tiles of different groups have disjoint lifetimes, so that they may share it. All of it
is ordinary loads and stores, whose barriers are placed as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import replace_for, substitute
from tile_core.records import dataclass
from tile_core.simt.pipelining.dependences import Analysis, Candidate, top_level, uses, without_dead

MOST_BYTES = 64
"""Registers of a thread, in bytes, that the tiles of a group may take."""


@dataclass(frozen=True)
class Group:
    """Copies whose tiles are used by the same statements.

    Attributes
    ----------
    copies
        The copies.
    last
        Position of the last statement of the loop's body that uses their tiles.
    """

    copies: tuple[Candidate, ...]
    last: int


def not_staged(candidate: Candidate, threads: int) -> str:
    """Return the reason why a copy cannot go through registers; empty if it can.

    Parameters
    ----------
    threads
        Of the block.
    """
    extents = [nodes.as_int(n) for n in candidate.call.args[1].extents]
    dtype = _held(candidate)
    if not all(isinstance(n, int) for n in extents) or DTYPES[dtype].bits < 8:
        return f"no registers hold {dtype} tiles of its shape"
    if prod(extents) % threads:
        return f"its elements do not divide among {threads} threads"
    return ""


def groups_of(loop: Stmt, copies: Sequence[Candidate], threads: int) -> tuple[Group, ...]:
    """Return the groups of a loop by first use; none under excessive register pressure."""
    body = top_level(loop.body)
    groups: list[Group] = []
    for first, last, copy in sorted(((*_used(body, c), c) for c in copies), key=lambda used: used[0]):
        if groups and first <= groups[-1].last:
            group = groups.pop()
            groups.append(Group((*group.copies, copy), max(group.last, last)))
        else:
            groups.append(Group((copy,), last))
    held = [sum(_bytes(c) for c in g.copies) // threads for g in groups]
    return () if max(held, default=0) > MOST_BYTES else tuple(groups)


def write_staged(
    loop: Stmt, groups: Sequence[Group], analysis: Analysis, own: dict[Any, Any], name: Callable[[str], str]
) -> Stmt:
    """Return the statements of a loop whose copies go through registers.

    Parameters
    ----------
    groups
        Its copies.
    analysis
        Finds the bindings that corners of copies need.
    own
        By shared buffer that only this loop uses its allocation, which moves into the loop: an iteration writes it
        before it reads it, so its storage may be reused.
    name
        Makes a name that the program does not have.
    """
    return _StagedWriter(loop, groups, analysis, own, name).write()


class _StagedWriter:
    def __init__(
        self, loop: Stmt, groups: Sequence[Group], analysis: Analysis, own: dict[Any, Any], name: Callable[[str], str]
    ) -> None:
        self.loop, self.groups, self.own = loop, groups, own
        self.body = top_level(loop.body)
        self.binds = [analysis.recomputed(loop, group.copies) for group in groups]
        self.kind = nodes.dtype_of(loop.loop_var)
        self.analyzer = Analyzer()
        #: By position of a copy the registers that hold its tile.
        self.held: dict[int, BufferVar] = {}
        self.before: list[Any] = []
        for copy in (c for g in groups for c in g.copies):
            dst = copy.call.args[1]
            self.held[copy.position], new = nodes.alloc(
                list(dst.extents), _held(copy), name(f"{copy.buffer.name}_ahead"), "local.fragment"
            )
            self.before.append(new)

    def write(self) -> Stmt:
        loop = self.loop
        trips, first = nodes.as_int(loop.extent), nodes.int_const(0, self.kind) + loop.min
        begin = self.loaded(0, first)
        if not (isinstance(trips, int) and trips > 0):
            begin = tirx.IfThenElse(loop.extent > nodes.int_const(0, self.kind), begin, None, loop.span)
        moved = {c.position for g in self.groups for c in g.copies}
        moved |= {i for i, s in enumerate(self.body) if isinstance(s, tirx.AllocBuffer) and s.buffer in self.own}
        kept = {id(s) for s in without_dead(self.body, moved, sorted({i for found in self.binds for i in found}))}
        following = {g.last: at for at, g in enumerate(self.groups[:-1], 1)}
        parts: list[Any] = self.stage_group(0)
        for position, s in enumerate(self.body):
            parts += [s] if id(s) in kept else []
            parts += self.stage_group(following[position]) if position in following else []
        notes = {str(k): v for k, v in loop.annotations.items()} | {attributes.ROLE: "serial"}
        return nodes.seq([*self.before, begin, replace_for(loop, nodes.seq(parts), annotations=notes)])

    def stage_group(self, at: int) -> list[Stmt]:
        """Return the stores of a group's tiles, and the loads of the next group's."""
        parts: list[Any] = []
        for copy in self.groups[at].copies:
            if copy.buffer in self.own:
                parts.append(self.own[copy.buffer])
            dst, held = copy.call.args[1], self.held[copy.position]
            source = nodes.region(held, [nodes.int_const(0)] * len(dst.extents), dst.extents)
            to = nodes.region(dst.buffer, dst.mins, dst.extents)
            parts.append(tirx.Evaluate(nodes.tile_call("copy", [source, to], {}), copy.stmt.span))
        var = self.loop.loop_var
        if at + 1 < len(self.groups):
            return [*parts, self.loaded(at + 1, var)]
        following = var + nodes.int_const(1, self.kind)
        more = following < self.loop.min + self.loop.extent
        return [*parts, tirx.IfThenElse(more, self.loaded(0, following), None, self.loop.span)]

    def loaded(self, at: int, iteration: Expr) -> Stmt:
        """Return the loads of a group's tiles for an iteration."""
        mapping: dict[Any, Any] = {self.loop.loop_var: iteration}
        parts: list[Any] = []
        for bind in (self.body[i] for i in self.binds[at]):
            var = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
            parts.append(tirx.Bind(var, self.value(bind.value, mapping), bind.span))
            mapping[bind.var] = var
        for copy in self.groups[at].copies:
            src, held = copy.call.args[0], self.held[copy.position]
            mins = [self.value(nodes.int_const(0) + m, mapping) for m in src.mins]
            to = nodes.region(held, [nodes.int_const(0)] * len(copy.call.args[1].extents), copy.call.args[1].extents)
            call = nodes.tile_call("copy", [nodes.region(src.buffer, mins, src.extents), to], dict(copy.call.attrs))
            parts.append(tirx.Evaluate(call, copy.stmt.span))
        return nodes.seq(parts)

    def value(self, e: Expr, mapping: dict[Any, Any]) -> Expr:
        """Return an expression with variables substituted and constants folded."""
        return self.analyzer.simplify(substitute(e, mapping))


def _used(body: Sequence[Stmt], copy: Candidate) -> tuple[int, int]:
    """Return the positions of the first and last statement that use a copy's tile."""
    found = [i for i, s in enumerate(body) if i != copy.position and uses(s, copy.buffer)]
    return (found[0], found[-1]) if found else (copy.position, copy.position)


def _held(copy: Candidate) -> str:
    """Return the narrower element type of a copy, which registers hold."""
    src, dst = copy.call.args[:2]
    return str(min((dst.dtype, src.dtype), key=lambda dtype: DTYPES[dtype].bits))


def _bytes(copy: Candidate) -> int:
    return prod(int(n) for n in copy.call.args[1].extents) * DTYPES[_held(copy)].bits // 8
