"""Layout inference: a layout over threads for each fragment, or shared memory instead.

Layouts that ops demand come first (a product's accumulator); data-parallel nests propagate them to the other fragments
that they access; a fragment still without one gets a plain layout. Finally every access of every nest is proved,
element by element, to find its data in the thread that executes it. A fragment that fails, or on which two demands
disagree, is *demoted*: it becomes a shared buffer, which is always right, and the caller starts again.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.structural import identity
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.layout import LayoutMap
from tile_core.layout.fragment import FragmentLayout, spread
from tile_core.lowering.dispatch import Selection, guarded
from tile_core.ops.effects import effects
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import Aligned, view_roots, with_views
from tile_core.simt.ops.reducer import is_update, partial
from tile_core.simt.placement.locality_proof import agrees
from tile_core.simt.placement.reducer_rows import rows_of_groups
from tile_core.simt.placement.tile_uses import Nest, OpSite, Sites, TileAccess, find_sites
from tile_core.simt.placement.variant_selection import call_of, number_of
from tile_core.simt.placement.vector_width import coalesced, in_memory, is_contiguous, size_of, widest
from tile_core.simt.role_threads import block_in
from tile_core.simt.variant import Block, Placement, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context


@dataclass(frozen=True)
class Inferred:
    """The outcome.

    Attributes
    ----------
    placement
        The layouts of fragments and of shared buffers.
    nests
        The layout of each nest's iterations by number; a nest of unknown extents has none.
    demoted
        Fragments that must become shared buffers, each with the reason; if there are any, the rest is incomplete.
    """

    placement: Placement
    nests: Mapping[int, FragmentLayout]
    demoted: Mapping[BufferVar, str]


def infer(
    body: Stmt,
    selections: Mapping[int, Selection],
    block: Block,
    ctx: Context,
    aligned: Aligned,
    layouts: Mapping[BufferVar, LayoutMap] | None = None,
    reducers: Mapping[str, str] | None = None,
    fragments: Mapping[BufferVar, FragmentLayout] | None = None,
    *,
    names_threads: bool,
) -> Inferred:
    """Infer the placement of a program's tiles.

    Parameters
    ----------
    body
        The program: nests with numbers, selected ops.
    selections
        The variant of each op.
    block
        The threads.
    ctx
        The compilation's context.
    aligned
        The assumption about launch arguments.
    layouts
        Layouts of shared buffers that the user requested.
    reducers
        The operation of each reducer by name. Fragments among them are updated by every thread in a copy of its own.
    fragments
        Layouts of fragments that the user requested. A fragment that cannot keep its layout is demoted like others; the
        caller decides whether that is an error.
    names_threads
        Whether the traced program names its threads.
    """
    known = with_views(aligned, view_roots(body))

    def attempt(by_rows: bool) -> _Inference:
        given = dict(layouts or {}), dict(reducers or {})
        found = _Inference(find_sites(body), selections, block, ctx, known, *given, names_threads)
        found.held.update(fragments or {})
        found.annotated = frozenset(fragments or {})
        found.by_rows = by_rows
        found.solve()
        return found

    first = attempt(by_rows=True)
    # Copies of a reducer in every thread fit every loop.
    return attempt(by_rows=False).result if first.rows and (first.misses_rows or first.result.demoted) else first.result


class _Inference:
    def __init__(
        self,
        sites: Sites,
        selections: Mapping[int, Selection],
        block: Block,
        ctx: Context,
        aligned: Aligned,
        layouts: dict[BufferVar, LayoutMap],
        reducers: dict[str, str],
        names_threads: bool,
    ) -> None:
        self.names_threads = names_threads
        self.sites, self.selections, self.block, self.ctx = sites, selections, block, ctx
        self.aligned = aligned
        #: The result, which is complete at the end.
        self.held: dict[BufferVar, FragmentLayout] = {}
        self.layouts, self.reducers = layouts, dict[BufferVar, str]()
        self.nests, self.demoted = dict[int, FragmentLayout](), dict[BufferVar, str]()
        self.placement = Placement(self.held, layouts=layouts, reducers=self.reducers)
        self.asked = frozenset(layouts)
        #: Fragments that ops only read, with the layouts that they demanded.
        self.operands: dict[BufferVar, FragmentLayout] = {}
        #: Reducers whose rows belong to groups of threads, whether to try that, and whether a loop needs other rows.
        self.rows: set[BufferVar] = set()
        self.by_rows, self.misses_rows = True, False
        self.annotated: frozenset[BufferVar] = frozenset()
        self.result = Inferred(self.placement, self.nests, self.demoted)
        self.fragments = {b: None for b in sites.allocated if nodes.scope_of(b) == "local.fragment"}
        self.fragments |= dict.fromkeys(self._local_tiles())
        self.kinds = {b: reducers[str(b.name)] for b in sites.allocated if str(b.name) in reducers}
        self.calls = {o.number: call_of(o.stmt, block_in(o.role, block), self.placement) for o in sites.ops}
        #: The placement of an op's operands when its variant answered last, and the answer.
        self.answers: dict[int, tuple[tuple[object, ...], Mapping[int, LayoutMap]]] = {}
        self.roles = self._roles()

    def solve(self) -> Inferred:
        for buffer in self.fragments:
            if buffer in self.sites.scattered:
                self.demote(buffer, "plain statements access it")
            elif buffer in self.sites.viewed:
                self.demote(buffer, "it has views")
            elif len(self.users(buffer)) > 1 or (buffer in self.annotated and None not in self.users(buffer)):
                self.demote(buffer, "threads of several roles use it")
        self.replicate_reducers()
        # Ops that constrain several fragments have the least choice: their demands reach the others before these
        # choose for themselves, and a product picks a plan that fits.
        while self.ask_ops(least=2) or self.propagate() or self.ask_ops() or self.decide():
            pass
        self.spread_nests()
        for nest in self.sites.nests:
            self.verify(nest)
        return self.result

    def replicate_reducers(self) -> None:
        """Replicate a reducer in every thread; assign it in all threads or once.

        Loops assign a private reducer on all threads, a shared one on one thread.
        """
        for buffer in self.kinds:
            if self.in_registers(buffer):
                if not self.distribute_reducer_rows(buffer):
                    self.held[buffer] = partial(tuple(nodes.shape_of(buffer)), self.block.count)
                self.reducers[buffer] = self.kinds[buffer]
        for nest in self.sites.nests:
            if nest.extents is None or nest.number in self.nests:
                continue
            for store in (x for x in collect(nest.body, tirx.BufferStore) if x.buffer in self.kinds):
                if not self.in_registers(store.buffer) or not is_update(store, self.kinds[store.buffer]):
                    self.nests[nest.number] = partial(nest.extents, self.block.count)

    def users(self, buffer: BufferVar) -> Mapping[object, Block]:
        """Return the threads that use a buffer, by role; the block's without a role."""
        return self.roles.get(identity(buffer)) or {None: self.block}

    def _roles(self) -> dict[int, dict[object, Block]]:
        """Return the threads that use each buffer, by role."""
        found: dict[int, dict[object, Block]] = {}
        used = [(n.role, {identity(a.buffer) for a in n.accesses}) for n in self.sites.nests]
        used += [(o.role, {identity(v.buffer) for v in o.views.values()}) for o in self.sites.ops]
        for mark, buffers in used:
            block = block_in(mark, self.block)
            role = None if mark is None else (block.begins, block.count)
            for number in buffers:
                found.setdefault(number, {}).setdefault(role, block)
        return found

    def distribute_reducer_rows(self, buffer: BufferVar) -> bool:
        """Distribute a reducer's rows over groups of threads if all updating loops allow it."""
        width = self.ctx.capabilities.execution_width
        if not self.by_rows or width is None or self.block.first % width or set(self.users(buffer)) != {None}:
            return False
        given = (self.block.count, width, self.vector_of_row)
        found = rows_of_groups(buffer, self.kinds[buffer], self.sites.nests, *given)
        placed = self.nests
        if found is None or any(placed.get(n, layout) != layout for n, layout in found[1].items()):
            return False
        for nest in (n for n in self.sites.nests if n.number in found[1]):
            others = {s.buffer for s in collect(nest.body, tirx.BufferStore)} & set(self.kinds) - {buffer}
            # A reducer in shared memory is updated by one thread; one that is assigned has a loop of its own form.
            if not all(self.in_registers(b) and self.updates(nest, b) for b in others):
                return False
        self.rows.add(buffer)
        self.held[buffer] = found[0]
        placed.update(found[1])
        return True

    # State

    def known(self, buffer: BufferVar) -> FragmentLayout | None:
        return self.held.get(buffer)

    def is_open(self, buffer: BufferVar) -> bool:
        return buffer in self.fragments and buffer not in self.demoted and self.known(buffer) is None

    def in_registers(self, buffer: BufferVar) -> bool:
        return buffer in self.fragments and buffer not in self.demoted

    def demote(self, buffer: BufferVar, reason: str) -> None:
        self.demoted.setdefault(buffer, reason)

    def _local_tiles(self) -> list[BufferVar]:
        """Private arrays that a nest fills as a tile: their elements belong to iterations.

        In a program that names its threads, a loop of ``T.vectorized`` fills an array of each thread.
        """
        local = {b for b in self.sites.allocated if nodes.scope_of(b) == "local"}
        found = []
        for nest in self.sites.nests:
            if self.names_threads and role(nest.loops[0]) == "vectorized":
                continue
            for a in nest.accesses:
                used = {v for i in a.indices for v in _variables(i)}
                if a.is_store and a.buffer in local and used & set(nest.variables):
                    found.append(a.buffer)
        return found

    # Demands of ops

    def ask_ops(self, least: int = 0) -> bool:
        """Query the ops that demand layouts of at least ``least`` fragments."""
        changed = False
        for site in self.sites.ops:
            changed |= self.ask(site, least)
        return changed

    def ask(self, site: OpSite, least: int) -> bool:
        variant = self.selections[site.number].variant
        views = site.views
        whole = not (isinstance(variant, SimtVariant) and variant.takes_parts)
        for view in views.values():
            if whole and self.in_registers(view.buffer) and view.extents != tuple(nodes.shape_of(view.buffer)):
                self.demote(view.buffer, f"{variant.op} takes a part of it")
        if not isinstance(variant, SimtVariant):
            return False
        changed = False
        wants = self.answer(site, variant)
        if sum(isinstance(want, FragmentLayout) for want in wants.values()) < least:
            return False
        for position, want in wants.items():
            buffer = views[position].buffer
            if isinstance(want, FragmentLayout):
                if self.known(buffer) is None and all(w.buffer is not buffer for w in effects(site.stmt)[1]):
                    self.operands[buffer] = want
                changed |= self.want(buffer, want, variant.name)
            elif self.in_registers(buffer):
                self.demote(buffer, f"{variant.name} takes it from shared memory")
            elif buffer not in self.sites.viewed and buffer not in self.layouts:
                self.layouts[buffer] = want
                changed = True
        return changed

    def answer(self, site: OpSite, variant: SimtVariant) -> Mapping[int, LayoutMap]:
        """Return the layouts that a variant demands, given those of its operands."""
        placed = self.held, self.layouts
        state = tuple([known.get(view.buffer) for view in site.views.values() for known in placed])
        before, wants = self.answers.get(site.number, (None, {}))
        if before is None or any(map(operator.is_not, before, state)):
            wants = guarded(variant, "layouts", self.calls[site.number], self.ctx)
            self.answers[site.number] = state, wants
        return wants

    def want(self, buffer: BufferVar, layout: FragmentLayout, who: str) -> bool:
        if not self.in_registers(buffer):
            return False
        found = self.known(buffer)
        if found is None:
            self.held[buffer] = layout
            return True
        if found != layout and not found.same_as(layout):
            # Accumulators keep their threads, with all that follows them in attention; the operand of the next product,
            # which several groups of threads read or some do not, is exchanged once. It has fewer elements to exchange
            # than accumulators in shared memory, which each loop reads again.
            operands = [b for b, of in self.operands.items() if of.registers > layout.registers and of.same_as(found)]
            for other in operands:
                self.demote(other, f"{who} needs {buffer.name} in {layout}, but this operand keeps it in {found}")
            if not operands:
                self.demote(buffer, f"{who} needs {layout}, but it is {found}")
        elif layout.registers > found.registers:
            # The same elements in the same registers, and more padding, which this op writes.
            self.held[buffer] = layout
            return True
        return False

    # Propagation through nests

    def propagate(self) -> bool:
        changed = False
        for nest in self.sites.nests:
            if nest.extents is None or nest.number < 0:
                for a in nest.accesses:
                    if self.in_registers(a.buffer):
                        self.demote(a.buffer, "a loop without constant extents accesses it")
                continue
            if nest.number not in self.nests:
                anchor = self.anchor(nest)
                if anchor is not None:
                    self.nests[nest.number] = anchor
                    changed = True
            if nest.number in self.nests:
                changed |= self.derive(nest)
        return changed

    def anchor(self, nest: Nest) -> FragmentLayout | None:
        """Return the layout that runs each iteration on the owner of its fragment element."""
        best: FragmentLayout | None = None
        for a in nest.accesses:
            known = self.known(a.buffer)
            if known is None or a.buffer in self.demoted or a.buffer in set(self.kinds) - self.rows:
                continue
            order = _plain(a, nest)
            if order is None or any(v is None for v in order.values()) or len(order) != len(nest.loops):
                continue
            kept = [d for d in order.values() if d is not None]
            if any(n != 1 for d, n in enumerate(known.padded) if d not in kept):
                continue
            dims = tuple(known.dims[d] for d in kept)
            extents = nest.extents or ()
            if any(prod(g.extent for g in digits) < n for digits, n in zip(dims, extents, strict=True)):
                continue
            found = FragmentLayout(extents, dims, known.threads, known.replica)
            if a.buffer in self.annotated:
                return found
            if best is None or found.replicas < best.replicas:
                best = found
        return best

    def derive(self, nest: Nest) -> bool:
        """Give fragments of a nest without a layout the one implied by its iterations."""
        changed = False
        own = self.nests[nest.number]
        for a in sorted(nest.accesses, key=lambda a: not a.is_store):
            if not self.is_open(a.buffer):
                continue
            found = _carried(a, nest, own)
            if found is not None:
                self.held[a.buffer] = found
                changed = True
        return changed

    # Fragments without a layout

    def decide(self) -> bool:
        """Give one open fragment, or one nest that touches one, a plain layout."""
        for site in self.sites.ops:
            for view in site.views.values():
                if self.is_open(view.buffer):
                    return self.give(view.buffer)
        for nest in self.sites.nests:
            if nest.extents is None or nest.number in self.nests:
                continue
            if any(self.is_open(a.buffer) for a in nest.accesses):
                self.nests[nest.number] = self.plain(nest)
                return True
        for buffer in self.fragments:
            if self.is_open(buffer):
                return self.give(buffer)
        return False

    def give(self, buffer: BufferVar) -> bool:
        shape = tuple(nodes.shape_of(buffer))
        threads = next(iter(self.users(buffer).values())).count
        self.held[buffer] = spread(shape, threads, self.vector_of_tile(buffer))
        return True

    def vector_of_tile(self, buffer: BufferVar) -> int:
        users = [n for n in self.sites.nests if any(a.buffer.same_as(buffer) for a in n.accesses)]
        size = min([size_of(buffer), *(size_of(a.buffer) for n in users for a in n.accesses if in_memory(a.buffer))])
        threads = next(iter(self.users(buffer).values())).count
        vector = widest(tuple(nodes.shape_of(buffer)), size, threads)
        return min([vector, *(coalesced(vector, nest, self.aligned) for nest in users)])

    def vector_of_row(self, nest: Nest) -> int:
        """Return the widest vector width of a nest's memory accesses and open fragments."""
        tiles = [a.buffer for a in nest.accesses if self.is_open(a.buffer) and is_contiguous(a, nest)]
        return max([self.vector_of(nest), *(self.vector_of_tile(b) for b in tiles)])

    def plain(self, nest: Nest) -> FragmentLayout:
        return spread(nest.extents or (1,), block_in(nest.role, self.block).count, self.vector_of(nest))

    def vector_of(self, nest: Nest) -> int:
        sizes = [size_of(a.buffer) for a in nest.accesses if in_memory(a.buffer) and is_contiguous(a, nest)]
        if not sizes:
            return 1
        vector = widest(nest.extents or (1,), min(sizes), block_in(nest.role, self.block).count)
        return coalesced(vector, nest, self.aligned)

    def spread_nests(self) -> None:
        for nest in self.sites.nests:
            if nest.extents is not None and nest.number >= 0:
                self.nests.setdefault(nest.number, self.plain(nest))

    # Proof

    def verify(self, nest: Nest) -> None:
        own = self.nests.get(nest.number)
        if own is None:
            return
        copies_kept = []
        for a in nest.accesses:
            if not self.in_registers(a.buffer):
                continue
            known = self.known(a.buffer)
            if a.buffer in self.kinds and known is not None:
                if a.buffer in self.rows and agrees(a, nest, own, known) and not self.updates(nest, a.buffer):
                    self.misses_rows = True
                continue
            reason = "nothing places it" if known is None else agrees(a, nest, own, known)
            if reason:
                self.give_way(nest, a.buffer, reason)
            elif a.is_store and own.replicas > 1:
                copies_kept.append(a.buffer)
        written = {a.buffer for a in nest.accesses if a.is_store and in_memory(a.buffer)}
        atomics = any(number_of(s) is not None for s in collect(nest.body, tirx.Bind))
        if copies_kept and (atomics or any(not a.is_store and a.buffer in written for a in nest.accesses)):
            for buffer in copies_kept:
                self.demote(buffer, "threads that hold copies of it would see a store of the same loop")

    def updates(self, nest: Nest, buffer: BufferVar) -> bool:
        stores = [s for s in collect(nest.body, tirx.BufferStore) if s.buffer.same_as(buffer)]
        return bool(stores) and all(is_update(s, self.kinds[buffer]) for s in stores)

    def give_way(self, nest: Nest, buffer: BufferVar, reason: str) -> None:
        """Demote a mismatched fragment; if the user placed it, others of its nest instead."""
        held = {a.buffer for a in nest.accesses if self.in_registers(a.buffer)} - self.annotated - set(self.kinds)
        for other in held if buffer in self.annotated else ():
            self.demote(other, f"{buffer.name} has an annotated layout")
        if buffer not in self.annotated or not held:
            self.demote(buffer, reason)


def _variables(e: Expr) -> set[Var]:
    return set(collect(e, tirx.Var))


def _plain(a: TileAccess, nest: Nest) -> dict[Var, int | None] | None:
    """Return the dimension of each loop variable; ``None`` for other forms of indices."""
    found: dict[Var, int | None] = dict.fromkeys(nest.variables)
    if any(start != 0 for start in nest.starts):
        return None
    for d, index in enumerate(a.indices):
        if isinstance(index, tirx.Var) and index in found and found[index] is None:
            found[index] = d
        elif nodes.as_int(index) != 0:
            return None
    return found


def _carried(a: TileAccess, nest: Nest, own: FragmentLayout) -> FragmentLayout | None:
    """Return the fragment layout that puts each element where the iterations that access it run."""
    order = _plain(a, nest)
    if order is None:
        return None
    shape = tuple(nodes.shape_of(a.buffer))
    by_dim = {d: at for at, d in enumerate(order.values()) if d is not None}
    if any(n != 1 for d, n in enumerate(shape) if d not in by_dim):
        return None
    dropped = [at for at, d in enumerate(order.values()) if d is None]
    kept = own.project(*dropped) if dropped else own
    positions = [at for at in range(len(nest.loops)) if at not in dropped]
    dims = tuple(kept.dims[positions.index(by_dim[d])] if d in by_dim else () for d in range(len(shape)))
    if any(prod(g.extent for g in digits) < n for digits, n in zip(dims, shape, strict=True)):
        return None
    return FragmentLayout(shape, dims, own.threads, kept.replica)
