"""Writer of persistent kernels (``persistent.py``): the loops over tiles of both roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import renamed, replace_for, substitute
from tile_core.simt.pipelining.grids import GridLoops
from tile_core.simt.pipelining.iteration_counts import IterationCount, KeptCount, of_tiles
from tile_core.simt.pipelining.late_epilogue import epilogue_of, in_iterations, without_epilogue, written_by
from tile_core.simt.pipelining.multicast import rank_in
from tile_core.simt.pipelining.persistent import PersistentGrid, PersistentHooks, consumer_role, producer_role
from tile_core.simt.pipelining.persistent_loop import PersistentLoop
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.role_slices import InPlace, RoleSlice


def write_persistent(
    plans: Sequence[LoopPlan], grid: GridLoops, repeated: RoleSlice, persistent: PersistentGrid,
    hooks: PersistentHooks, threads: int,
) -> Stmt:  # fmt: skip
    """Return the loop over the persistent blocks.

    Parameters
    ----------
    plans
        Of the pipelined loops, with schedules of `with_producer_role`.
    repeated
        The statements of a tile that the producer repeats.
    threads
        Of the program.
    """
    return PersistentWriter(plans, grid, repeated, persistent, hooks, threads).written()


class PersistentWriter(PersistentLoop):
    """Writes the loop over the persistent blocks."""

    def __init__(
        self, plans: Sequence[LoopPlan], grid: GridLoops, repeated: RoleSlice, persistent: PersistentGrid,
        hooks: PersistentHooks, threads: int,
    ) -> None:  # fmt: skip
        super().__init__(plans[0], persistent, grid.once)
        #: All pipelined loops.
        self.loops: list[PersistentLoop] = [self, *(PersistentLoop(plan, persistent, False) for plan in plans[1:])]
        self.grid, self.repeated, self.threads = grid, repeated, threads
        self.order, self.thread = hooks.order, hooks.thread
        self.block = nodes.fresh("worker")
        self.tiles, self.clusters = prod(grid.extents.values()) // prod(self.each), persistent.blocks // prod(self.each)
        self.subtiles = epilogue_of(grid) if persistent.late_epilogue else []
        #: Coordinates of the tile before, by axis.
        self.last: dict[int, BufferVar] = {}
        self.held: list[Stmt] = []
        for axis, s in grid.axes.items() if self.subtiles else ():
            kind = nodes.dtype_of(s.loop_var)
            self.last[axis], made = nodes.alloc([1], kind, f"{s.loop_var.name}_before", "local")
            self.held.append(made)

    def written(self) -> Stmt:
        """Return the loop over the persistent blocks."""
        allocated = [s for s in self.grid.body if isinstance(s, tirx.AllocBuffer)]
        made, parts = self.all_objects()
        first = calls.only(("the first thread", 0, 1), nodes.seq(parts))
        names, span = (self.thread, self.number), self.loop.span
        consumers = consumer_role(self.persistent, self.threads, names, [self.consumer_loops()], span)
        producer = producer_role(self.persistent, self.threads, self.thread, self.producer_loops(), span)
        met = [] if self.plan.multicast is None else self.met()
        rings = calls.managed(
            self.managed(), nodes.seq([producer, *self.extra_roles(), consumers, *met]), self.loop.span
        )
        outer = self.grid.axes[min(self.grid.axes)]
        notes = {str(k): v for k, v in outer.annotations.items()}
        notes[attributes.THREADS] = [
            nodes.int_const(self.threads + self.persistent.extra_threads),
            *([nodes.int_const(1)] * 2),
        ]
        notes[attributes.AXIS] = nodes.int_const(0)
        body = nodes.seq([*allocated, *self.held, *made, first, *met, rings])
        extent = nodes.int_const(self.persistent.blocks)
        return replace_for(outer, body, loop_var=self.block, extent=extent, annotations=notes)

    def extra_roles(self) -> list[Stmt]:
        """Return the work of further roles."""
        return []

    def managed(self) -> list[BufferVar]:
        """Return the buffers whose accesses the roles order themselves."""
        results = written_by([s for subtile in self.subtiles for s in subtile])  # other tiles' have no order
        met = self.barriers.values() if self.plan.multicast is not None else ()
        rings = dict.fromkeys(ring for x in self.loops for ring in x.plan.rings.values())
        return [*rings, *met, *results]

    def all_objects(self) -> tuple[list[Stmt], list[Stmt]]:
        """Return the allocations of the barriers of all loops, and their initialisation."""
        made, parts = self.objects()
        by_name = {self.full: self.barriers}
        for loop in self.loops[1:]:
            loop.number = self.number
            if loop.full not in by_name:
                more, initialised = loop.objects()
                made, parts = [*made, *more], [*parts, *initialised]
            loop.barriers = by_name.setdefault(loop.full, loop.barriers)
        return made, parts

    def counts_of(self, name: str, tile_iteration: Expr) -> tuple[list[Stmt], dict[Var, IterationCount]]:
        """Return the statements before all tiles, and the counts of a role by loop."""
        kept: dict[str, KeptCount] = {}
        counts = {x.loop.loop_var: x.counts(name, tile_iteration, kept) for x in self.loops}
        return [s for count in kept.values() for s in count.made], counts

    def producer_loops(self) -> Stmt:
        """Return the loops of the thread that copies."""
        tile_iteration = nodes.fresh("turn")
        coordinates = {s.loop_var: nodes.fresh(str(s.loop_var.name)) for s in self.grid.axes.values()}
        parts = self.tile_coordinates(
            tile_iteration, {axis: coordinates[s.loop_var] for axis, s in self.grid.axes.items()}
        )
        before, counts = self.counts_of("copied", tile_iteration)
        by_loop = {x.loop.loop_var: x for x in self.loops}
        body = self.repeated.written(lambda s: by_loop[s.loop_var].copying(counts[s.loop_var]))
        tile = [*parts, renamed(substitute(nodes.seq(body), coordinates))]
        return nodes.seq([*before, self.over_tiles(tile_iteration, tile)])

    def consumer_loops(self) -> Stmt:
        """Return the loops of the others."""
        tile_iteration = nodes.fresh("turn")
        parts = self.tile_coordinates(tile_iteration, {axis: s.loop_var for axis, s in self.grid.axes.items()})
        before, counts = self.counts_of("computed", tile_iteration)
        by_loop = {x.loop.loop_var: x for x in self.loops}
        during = self.late_epilogue_stores(tile_iteration, self.loop.loop_var)
        in_place = InPlace(by_loop, lambda s: by_loop[s.loop_var].computing(counts[s.loop_var], during))
        body = [s for s in self.grid.body if not isinstance(s, tirx.AllocBuffer)]
        tile = [*map(in_place.stmt, without_epilogue(body, self.subtiles)), *self.keep_coordinates()]
        return nodes.seq([*before, self.over_tiles(tile_iteration, [*parts, *tile]), *self.last_epilogue()])

    def late_epilogue_stores(self, tile_iteration: Expr, k: Expr) -> list[Stmt]:
        """Return the epilogue stores of the preceding tile in an iteration."""
        if not self.subtiles:
            return []
        names, mapping = self.last_names()
        subtiles = in_iterations(self.subtiles, int(nodes.as_int(self.trips)), k, mapping)
        return [tirx.IfThenElse(tile_iteration > nodes.int_const(0), nodes.seq([*names, subtiles]), None)]

    def last_epilogue(self) -> list[Stmt]:
        """Return the epilogue stores of the last tile, after all loops."""
        if not self.subtiles:
            return []
        names, mapping = self.last_names()
        return [*names, *(substitute(s, mapping) for subtile in self.subtiles for s in subtile)]

    def keep_coordinates(self) -> list[Stmt]:
        """Keep the coordinates of a tile; recomputing them would delay the next tile's products."""
        return [
            nodes.store(self.last[a], s.loop_var, [nodes.int_const(0)]) for a, s in self.grid.axes.items() if self.last
        ]

    def last_names(self) -> tuple[list[Stmt], dict[Any, Any]]:
        """Return the preceding tile's coordinates, with bindings before the loop and their variables."""
        found: list[Stmt] = []
        mapping: dict[Any, Any] = {}
        for axis, s in self.grid.axes.items():
            mapping[s.loop_var] = nodes.fresh(str(s.loop_var.name), nodes.dtype_of(s.loop_var))
            at = nodes.load(self.last[axis], [nodes.int_const(0)])
            found.append(tirx.Bind(mapping[s.loop_var], self.inside(axis, at, s.loop_var)))
        return [*found, *self.bound(self.grid.before(), mapping)], mapping

    def inside(self, axis: int, at: Expr, name: Var) -> Expr:
        """Clamp a coordinate to provide its bounds to range analysis."""
        kind = nodes.dtype_of(at)
        last = nodes.int_const(self.grid.extents[axis] - 1, kind)
        return nodes.cast(tirx.Max(tirx.Min(at, last), nodes.int_const(0, kind)), nodes.dtype_of(name))

    def over_tiles(self, tile_iteration: Var, parts: Sequence[Stmt]) -> Stmt:
        """Return a loop over the tiles of a block."""
        notes = {attributes.OVER_BLOCKS: 1}
        return nodes.for_loop(
            tile_iteration, self.tile_count(), nodes.seq(parts), "serial", annotations=notes, span=self.loop.span
        )

    def tile_count(self) -> Expr:
        """Return the number of tiles of a block."""
        more = nodes.int_const(self.tiles - 1 + self.clusters) - self.number_of_cluster()
        return tirx.floordiv(more, nodes.int_const(self.clusters))

    def number_of_cluster(self) -> Expr:
        """Return the number of a block's cluster; without clusters, its own number."""
        count = prod(self.each)
        return self.block if count == 1 else tirx.floordiv(self.block, nodes.int_const(count))

    def tile_coordinates(self, tile_iteration: Var, names: Mapping[int, Var]) -> list[Stmt]:
        """Bind the coordinates of a block's tile, clamped for range analysis."""
        tile = nodes.fresh("tile")
        extents = {axis: n // self.each[axis] for axis, n in self.grid.extents.items()}
        found: list[Stmt] = [
            tirx.Bind(tile, self.number_of_cluster() + tile_iteration * nodes.int_const(self.clusters))
        ]
        flat: Expr = tile
        values: dict[int, Expr] = {}
        for axis in sorted(extents, reverse=True)[:-2]:
            size = prod(n for a, n in extents.items() if a < axis)
            values[axis] = tirx.floordiv(flat, nodes.int_const(size))
            flat = tirx.floormod(flat, nodes.int_const(size))
        low = sorted(extents)[:2]
        if len(low) == 2 and self.order:
            more, values[low[0]], values[low[1]] = self.panels(flat, [extents[a] for a in low])
            found += more
        elif len(low) == 2:
            values[low[0]] = tirx.floormod(flat, nodes.int_const(extents[low[0]]))
            values[low[1]] = tirx.floordiv(flat, nodes.int_const(extents[low[0]]))
        else:
            values[low[0]] = flat
        for axis, name in names.items():
            found.append(tirx.Bind(name, self.inside(axis, self.in_cluster(axis, values[axis]), name)))
        return found

    def in_cluster(self, axis: int, at: Expr) -> Expr:
        """Return the coordinate of a block's tile, given that of its cluster's tiles."""
        count, step = self.each[axis], prod(self.each[:axis])
        if count == 1:
            return at
        mine = tirx.floordiv(rank_in(self.blocks), nodes.int_const(step))
        return at * nodes.int_const(count) + tirx.floormod(mine, nodes.int_const(count))

    def panels(self, flat: Expr, extents: Sequence[int]) -> tuple[list[Stmt], Expr, Expr]:
        """Return the first two coordinates of a tile in swizzled rasterization."""
        panel, by_rows = int(nodes.as_int(self.order["panel"])), str(self.order["order"]) == "row"
        width, height = extents if by_rows else extents[::-1]
        group, within, rows = (nodes.fresh(n) for n in ("panel", "inside", "rows"))
        size = nodes.int_const(width * panel)
        binds = [
            tirx.Bind(group, tirx.floordiv(flat, size)),
            tirx.Bind(within, tirx.floormod(flat, size)),
            tirx.Bind(rows, tirx.Max(tirx.Min(nodes.int_const(panel), height - group * panel), nodes.int_const(1))),
        ]
        across, down = tirx.floordiv(within, rows), group * panel + tirx.floormod(within, rows)
        return (binds, across, down) if by_rows else (binds, down, across)

    def bound(self, binds: Sequence[Stmt], mapping: dict[Any, Any]) -> list[Stmt]:
        """Return renamed copies of bindings, for another thread."""
        found: list[Stmt] = []
        for s in binds:
            var = nodes.fresh(str(s.var.name), nodes.dtype_of(s.var))
            found.append(tirx.Bind(var, substitute(s.value, mapping), s.span))
            mapping[s.var] = var
        return found

    def counted(self, tile_iteration: Expr, k: Expr) -> Expr:
        """Return the number of an iteration of a tile among all iterations of a block."""
        return of_tiles(tile_iteration, int(nodes.as_int(self.trips))).of(k)
