"""Staged epilogue: accumulators go to global memory through shared memory, where that is faster.

The matrix units leave a thread two adjacent elements of a row, so a warp that stores its accumulators directly writes
sectors of eight rows with each instruction. Through a tile in shared memory it writes whole rows: by a bulk copy, or 16
bytes per thread. The tile reuses the storage of the operands' rings (`tile_core.simt.memory.arena`). Where it does not
fit, lanes exchange elements of 8, 16 or 32 bits until each has 16 bytes (`tile_cuda.ops.copy_lanes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.visit import StmtRewriter, annotation, bodies_of, collect, role
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import Aligned, factor, strides_of
from tile_core.simt.notes import ALIGNED, BLOCK, PIPELINE
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_core.simt.pipelining.dependences import uses
from tile_core.simt.pipelining.late_epilogue import SUBTILE
from tile_core.simt.role_threads import is_shared
from tile_cuda.cost.stores import estimate
from tile_cuda.machine import machine_of
from tile_cuda.ops.boxes import row_lengths
from tile_cuda.ops.copy_lanes import EXCHANGES, LANES
from tile_cuda.ops.copy_matrix import swizzled_rows
from tile_cuda.ops.store_bulk import DIRECT, STAGED
from tile_cuda.ops.store_nests import StoreNest, store_nest
from tile_cuda.ops.warpgroup_plan import WARPGROUP

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_WIDE = 16
"""Bytes that a thread stores at a time."""
_HALF, _HELD = 16, 192
"""Bits of an element that a late epilogue may have; registers of a thread for it and the accumulators."""
_SCRATCH = 4096
"""Bytes of shared memory left for what passes below allocate for ops that are not known yet."""


def stage_results(
    plan: Plan, ctx: Context, accumulators: Collection[BufferVar], stays: bool = False, rows: Collection[BufferVar] = ()
) -> Plan:  # fmt: skip
    """Insert tiles in shared memory between accumulators and global memory.

    Parameters
    ----------
    accumulators
        Accumulator fragments of wgmma products. Others are staged only if the option requires it.
    stays
        Whether the kernel is persistent: no memory is then free behind the loop.
    rows
        Fragments with whole rows in each warpgroup.
    """
    if ctx.options.epilogue == "never":
        return plan
    results = results_of(plan.body, accumulators, ctx.options.epilogue in ("lanes", "always"))
    if not results:
        return plan
    results = replace(results, rows=list(rows))
    return plan.replace(body=_Stage(plan, ctx, results, stays).stmt(plan.body))


def layouts_of_staged(plan: Plan, ctx: Context) -> Plan:
    """Choose layouts without bank conflicts for epilogue tiles that TMA does not read."""
    report = plan[PIPELINE]
    found: dict[Any, LayoutMap] = {}
    for s in collect(plan.body, tirx.Evaluate):
        call = OpCall.decode(s) if is_op(s) and nodes.is_tile_call(s.value, "copy") else None
        if call is not None and STAGED in call.attrs and call.args[0].buffer not in report.slots:
            tile: View = call.args[0]
            made = swizzled_rows(tuple(tile.shape), DTYPES[tile.dtype].bits, row_lengths(call, tile))
            if made is not None:
                found[tile.buffer] = made
    return plan if not found else plan.note(PIPELINE, replace(report, slots={**report.slots, **found}))


@dataclass(frozen=True)
class EpilogueFragments:
    """Fragments whose elements are where the matrix units leave them.

    Attributes
    ----------
    accumulators
        The fragments.
    plain
        Fragments that loop nests access only at the element of their iteration: they stay in registers.
    rows
        Fragments with whole rows in each warpgroup.
    """

    accumulators: Sequence[BufferVar]
    plain: Sequence[BufferVar]
    rows: Sequence[BufferVar] = ()

    def __bool__(self) -> bool:
        return bool(self.accumulators)

    def with_values(self, values: BufferVar, of: BufferVar) -> EpilogueFragments:
        """Return the same with a fragment of values that a nest computes from an accumulator."""
        plain, rows = ([*found, values] if _has(found, of) else found for found in (self.plain, self.rows))
        return EpilogueFragments([*self.accumulators, values], plain, rows)


class _Stage(StmtRewriter):
    def __init__(self, plan: Plan, ctx: Context, results: EpilogueFragments, stays: bool) -> None:
        self.stays = stays
        self.ctx, self.results, self.aligned = ctx, results, plan[ALIGNED]
        self.option, self.threads = ctx.options.epilogue, plan[BLOCK].count
        made = [a.buffer for a in collect(plan.body, tirx.AllocBuffer)]
        self.name = FreshNames(str(v.name) for v in (*collect(plan.body, tirx.Var), *made))
        self.shared = _bytes_of_tiles(plan.body)
        self.annotated = set(map(str, plan.program.layouts))
        #: The statements behind the one that is looked at, in this list and those around; ``None`` in a role.
        self.behind: list[Stmt] | None = []
        #: Whether it stands in a loop or under a condition, and whether in one that threads may disagree about.
        self.inside = self.apart = False
        self.varying = Varying(plan.body)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        body, outer = list(s.seq), self.behind
        new = []
        for at, part in enumerate(body):
            self.behind = None if outer is None else [*body[at + 1 :], *outer]
            new.append(self.stmt(part))
        self.behind = outer
        return nodes.seq(new)

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) == "grid":
            return super().visit_For(s)
        nest = store_nest(s, self.results.accumulators) if role(s) == "parallel" else None
        if nest is not None and not self.apart:
            return self.of_nest(s, nest)
        outer = self.inside, self.apart
        self.inside, self.apart = True, self.apart or self.varying.loop(s) or role(s) in ("parallel", "vectorized")
        new = super().visit_For(s)
        self.inside, self.apart = outer
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        outer = self.inside, self.apart
        self.inside, self.apart = True, self.apart or self.varying.loop(s)
        new = super().visit_While(s)
        self.inside, self.apart = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer = self.inside, self.apart
        self.inside, self.apart = True, self.apart or self.varying.expr(s.condition)
        new = super().visit_IfThenElse(s)
        self.inside, self.apart = outer
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if not is_shared(s):
            return super().visit_AttrStmt(s)
        # Roles run at the same time: nothing of other roles is over.
        outer, self.behind = self.behind, None
        new = super().visit_AttrStmt(s)
        self.behind = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        call = _leaves(s, self.results.accumulators)
        return s if call is None else self.of_copy(s, call)

    def of_copy(self, s: Stmt, call: OpCall) -> Stmt:
        """Return a copy of accumulators to global memory, through other memory if that is faster."""
        answer, scope, mark = self.through_memory(call), "shared", {}
        if isinstance(answer, Reject):
            other = self.through_lanes(call)
            if isinstance(other, Reject):
                return with_attributes(
                    s, {DIRECT: f"it does not go through shared memory: {answer.reason}; {other.reason}"}
                )
            answer, scope, mark = other, "local.fragment", {LANES: other.note}
        if mark and self.may_wait(call):
            return self.in_subtiles(s, call, answer.note)
        source, tensor = call.args[:2]
        tile, made = nodes.alloc(list(source.extents), tensor.dtype, self.name(f"{source.name}_staged"), scope)
        inner = nodes.region(tile, [nodes.int_const(0)] * len(source.extents), list(source.extents))
        attrs = {k: v for k, v in call.attrs.items() if k not in ("hints", "coalesced_width")}
        first = tirx.Evaluate(nodes.tile_call("copy", [s.value.args[0], inner], {**attrs, **mark}), s.span)
        rest = {k: v for k, v in call.attrs.items() if k != "round"} | ({} if mark else {STAGED: answer.note})
        second = tirx.Evaluate(nodes.tile_call("copy", [inner, s.value.args[1]], rest), s.span)
        return nodes.seq([made, first, second])

    def of_nest(self, s: Stmt, nest: StoreNest) -> Stmt:
        """Return a nest that stores accumulators, with vector stores if that is faster."""
        tensor, made = nest.store.buffer, list[Stmt]()
        values = nest.accumulator
        if not nest.is_conversion:
            dtype, name = nodes.element_type(tensor), self.name(f"{values.name}_values")
            values, allocated = nodes.alloc(nest.extents, dtype, name, "local.fragment")
            made = [allocated, nest.valued(values)]
            self.results = self.results.with_values(values, nest.accumulator)
        call = nest.call(values)
        through_lanes = self.through_lanes(call)
        if nest.rectangle and not (isinstance(through_lanes, Reject) and isinstance(self.through_memory(call), Reject)):
            return nodes.seq([*made, self.of_copy(nest.copied(values), call)])
        if isinstance(through_lanes, Reject):
            return s
        tile, allocated = nodes.alloc(
            nest.extents, nodes.element_type(tensor), self.name(f"{values.name}_staged"), "local.fragment"
        )
        whole = [nodes.region(b, [nodes.int_const(0)] * 2, nest.extents) for b in (values, tile)]
        exchange = tirx.Evaluate(nodes.tile_call("copy", whole, {"hints": {}, LANES: through_lanes.note}), s.span)
        return nodes.seq([*made, allocated, exchange, nest.stored(tile)])

    def may_wait(self, call: OpCall) -> bool:
        """Whether the epilogue may be stored in subtiles during a block's next tile.

        Threads then have registers for it beside the accumulators, and each warp has a part of each subtile.
        """
        source, tensor = call.args[:2]
        if (
            not self.stays
            or self.inside
            or DTYPES[tensor.dtype].bits != _HALF
            or DTYPES[source.dtype].bits != 2 * _HALF
        ):
            return False
        if source.name in self.annotated or tuple(tensor.extents[-2:]) != tuple(source.extents):
            return False
        sizes = {b: prod(map(int, nodes.shape_of(b))) for b in self.results.accumulators}
        held = sum(sizes.values()) // self.threads
        return self.threads > WARPGROUP and held + held // 2 <= _HELD and self.has_whole_rows(source)

    def in_subtiles(self, s: Stmt, call: OpCall, note: str) -> Stmt:
        """Return the conversion of results, and exchanges and copies of some columns at a time."""
        source, tensor = call.args[:2]
        rows, columns = source.extents
        width = EXCHANGES[_HALF].columns
        attrs = {k: v for k, v in call.attrs.items() if k not in ("hints", "coalesced_width")}
        rest = {k: v for k, v in call.attrs.items() if k != "round"}
        kept, made = nodes.alloc([rows, columns], tensor.dtype, self.name(f"{source.name}_kept"), "local.fragment")
        whole = nodes.region(kept, [nodes.int_const(0)] * 2, [rows, columns])
        converted = tirx.Evaluate(nodes.tile_call("copy", [s.value.args[0], whole], attrs), s.span)
        new, parts = [made], [converted]
        for number, at in enumerate(range(0, int(columns), width)):
            piece, made = nodes.alloc([rows, width], tensor.dtype, self.name(f"{source.name}_piece"), "local.fragment")
            here = nodes.region(piece, [nodes.int_const(0)] * 2, [rows, width])
            of = nodes.region(kept, [nodes.int_const(0), nodes.int_const(at)], [rows, width])
            corner = [*tensor.mins[:-1], tensor.mins[-1] + nodes.int_const(at) if at else tensor.mins[-1]]
            there = nodes.region(tensor.buffer, corner, [*tensor.extents[:-1], width])
            new.append(made)
            parts.append(tirx.Evaluate(nodes.tile_call("copy", [of, here], {LANES: note, SUBTILE: number}), s.span))
            parts.append(tirx.Evaluate(nodes.tile_call("copy", [here, there], {**rest, SUBTILE: number}), s.span))
        return nodes.seq([*new, *parts])

    def has_whole_rows(self, source: View) -> bool:
        """Whether each warpgroup has whole rows of the accumulator in registers."""
        return _has(self.results.rows, source.buffer) and _has(self.results.plain, source.buffer)

    def through_memory(self, call: OpCall) -> Accept | Reject:
        """Decide whether a copy goes through shared memory."""
        source, tensor = call.args[:2]
        if self.option == "lanes":
            return Reject('the option is "lanes"')
        for reason in self.reasons(call):
            return Reject(reason)
        if self.stays and self.option != "always":
            return Reject("its block is persistent")
        if self.inside:
            return Reject("it is inside of a loop or condition")
        size = prod(source.extents) * DTYPES[tensor.dtype].bits // 8
        free = self.ctx.capabilities.shared_bytes - self.occupied(source) - _SCRATCH
        if size > free:
            return Reject(f"its tile of {size:,} bytes does not fit: {max(free, 0):,} are free")
        if self.option == "always":
            return Accept("through shared memory, as the option requires")
        width = _width(tensor, self.aligned)
        if width < _WIDE:
            return Reject(f"rows of {tensor.name} are only known to begin at multiples of {width} bytes")
        other = sum(self.shared.values())
        found = estimate(tuple(map(int, source.extents)), DTYPES[tensor.dtype].bits)
        if self.blocks(max(size, other)) < self.blocks(other):
            return Reject(f"with its tile of {size:,} bytes fewer blocks would fit on a multiprocessor")
        return Accept(str(found)) if found.is_worth_it else Reject(f"it is not faster: {found}")

    def through_lanes(self, call: OpCall) -> Accept | Reject:
        """Decide whether lanes exchange elements before the store."""
        source, tensor = call.args[:2]
        for reason in self.reasons(call):
            return Reject(f"no exchange between lanes: {reason}")
        if self.apart:
            return Reject("not all threads execute it")
        how = EXCHANGES.get(DTYPES[tensor.dtype].bits)
        if how is None or call.attrs.get("round") or len(source.extents) != 2:
            return Reject("lanes exchange only two-dimensional tiles with elements of 8, 16 or 32 bits")
        if int(source.extents[-1]) % how.columns:
            return Reject(f"lanes exchange {how.columns} columns")
        width = _width(tensor, self.aligned)
        if width < _WIDE and self.option == "auto":
            return Reject(f"rows of {tensor.name} are only known to begin at multiples of {width} bytes")
        found = estimate(tuple(map(int, source.extents)), DTYPES[tensor.dtype].bits)
        return Accept(f"estimated {found.lanes:,} cycles, {found.direct:,} without")

    def reasons(self, call: OpCall) -> Iterator[str]:
        """Yield why a copy takes no detour at all."""
        source, tensor = call.args[:2]
        if any(nodes.as_int(m) != 0 for m in source.mins) or source.extents != tuple(nodes.shape_of(source.buffer)):
            yield f"it copies a part of {source.name}"
        if call.attrs.get("variant"):
            yield f"it requests {call.attrs['variant']}"
        if DTYPES[tensor.dtype].bits < 8:
            yield f"elements of {tensor.dtype} share bytes"

    def blocks(self, size: int) -> int:
        """Return how many blocks of so much shared memory a multiprocessor has at a time."""
        return min(
            self.ctx.capabilities.shared_bytes // max(size, 1), machine_of(self.ctx.target.arch).threads // self.threads
        )

    def occupied(self, source: View) -> int:
        """Return the bytes of shared memory that may be in use where a copy stands."""
        live = self.shared
        # Slots of a persistent kernel are never free: operands of the next tile arrive during the epilogue.
        if self.behind is not None and not self.stays:
            live = {b: n for b, n in live.items() if any(uses(x, b) for x in self.behind)}
        held = 0
        if not any(source.buffer.same_as(b) for b in self.results.plain):
            # Passes below may move it to shared memory.
            held = prod(source.extents) * DTYPES[source.dtype].bits // 8
        return sum(live.values()) + held


def results_of(body: Stmt, products: Collection[BufferVar], every: bool) -> EpilogueFragments:
    """Return the accumulators of products, and the fragments that they are copied to."""
    calls = [OpCall.decode(s) for s in collect(body, tirx.Evaluate) if is_op(s)]
    found = list(products)
    if every:
        found += [c.args[accumulator_of(c)].buffer for c in calls if c.name in ("gemm", "gemm_sp", "gemm_scaled")]
    for call in calls:
        if call.name == "copy" and _has(found, call.args[0].buffer) and call.args[1].scope == "local.fragment":
            found.append(call.args[1].buffer)
    found = [b for b in found if nodes.scope_of(b) == "local.fragment"]
    return EpilogueFragments(found, [b for b in found if _is_plain(body, b)])


def _is_plain(body: Stmt, buffer: BufferVar) -> bool:
    """Whether nests access a fragment only at the elements of their variables."""
    return all(_is_element(indices, loops) for indices, loops in _elements(body, buffer, ()))


def _elements(s: Stmt, buffer: BufferVar, loops: tuple[Any, ...]) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
    """Yield the indices of each element access, and the data-parallel variables around it."""
    if isinstance(s, tirx.For) and role(s) in ("parallel", "vectorized"):
        yield from _elements(s.body, buffer, (*loops, s.loop_var))
        return
    if isinstance(s, tirx.SeqStmt):
        for part in s.seq:
            yield from _elements(part, buffer, loops)
        return
    if isinstance(s, tirx.Evaluate) and is_op(s):
        return
    if isinstance(s, tirx.BufferStore) and s.buffer.same_as(buffer):
        yield list(s.indices), loops
    inside = bodies_of(s)
    for part in inside:
        yield from _elements(part, buffer, loops)
    own = [getattr(s, name) for name in ("min", "extent", "condition") if hasattr(s, name)] if inside else [s]
    for load in (x for part in own for x in collect(part, ir.TensorLoad)):
        if load.source.same_as(buffer):
            yield list(load.indices), loops


def _is_element(indices: Sequence[Any], loops: tuple[Any, ...]) -> bool:
    return len(indices) <= len(loops) and all(i.same_as(v) for i, v in zip(indices, loops, strict=False))


def _leaves(s: Stmt, accumulators: Sequence[BufferVar]) -> OpCall | None:
    """Return the copy of such a fragment to global memory that a statement is."""
    if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
        return None
    call = OpCall.decode(s)
    return call if call.args[1].scope == "global" and _has(accumulators, call.args[0].buffer) else None


def _bytes_of_tiles(body: Stmt) -> dict[BufferVar, int]:
    """Return the most bytes of each shared buffer, with a slot per stage."""
    found: dict[BufferVar, int] = {}
    loops = [s for s in collect(body, tirx.For) if role(s) == "pipelined"]
    for alloc in collect(body, tirx.AllocBuffer):
        if nodes.scope_of(alloc.buffer) == "shared":
            stages = [int(annotation(x, nodes.STAGES, 1)) for x in loops if uses(x, alloc.buffer)]
            bits = max(8, DTYPES[nodes.element_type(alloc.buffer)].bits)
            found[alloc.buffer] = prod(nodes.shape_of(alloc.buffer)) * bits // 8 * max(1, *stages, 1)
    return found


def _width(tensor: View, aligned: Aligned) -> int:
    """Return the alignment in bytes of all rows of a part of a tensor.

    It is at most that of a vector store of a thread.
    """
    size = DTYPES[tensor.dtype].bits // 8
    if nodes.as_int(strides_of(tensor.buffer)[-1]) != 1:
        return size
    origin = [nodes.int_const(0) + m for m in tensor.mins]
    steps = [factor(s, aligned.divisors) * size for s in strides_of(tensor.buffer)[:-1]]
    row = int(tensor.extents[-1]) * size
    width = aligned.of(tensor.buffer, origin) if tensor.buffer in aligned.addresses else size
    while width > size and any(n % width for n in (*steps, row)):
        width //= 2
    return width


def _has(buffers: Collection[BufferVar], buffer: BufferVar) -> bool:
    return any(buffer.same_as(b) for b in buffers)
