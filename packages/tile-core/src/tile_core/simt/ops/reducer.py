"""``finalize_reducer`` on threads, and the forms of a reducer before it.

A reducer is a fragment that many iterations of a data-parallel loop update: ``buf[i] = buf[i] + x``. On threads it has
one of two forms.

*Partial*: every thread has a copy of every element in its registers, ``partial(shape, threads)``. That form is legal if
``may_be_partial`` holds for the program, and accesses of the buffer then mean:

- an update (``is_update``), whatever the layout of its loop, is done by the thread that runs the iteration,
  by the first of these threads if iterations are replicated. The loop's layout does not follow the reducer
  (it is not an anchor), and the proof that stores reach all copies is left out for it;
- an assignment before the first update (``buf[i] = v``, a fill) stores ``v`` in the first copy and the neutral
  element in all others, ``assigned(value, kind, dtype, first)``; for a neutral ``v`` that is an ordinary store. All
  threads run it: such a loop gets the layout ``partial`` of its own extents;
- ``finalize_reducer`` combines the copies, so that all hold the result; from then on the buffer is an ordinary fragment
  replicated in every thread.

Where rows and columns come out even, every group of threads has copies of rows of its own instead, see
``simt/placement/reducer_rows.py``.

*Shared*: everything else (the reducer is read before it is complete, updated again after it, updated in another way
than its operation, viewed, or large) makes it a shared buffer, one copy for the block. A loop that updates it must run
on one thread, in order: the layout of its iterations is ``alone(extents, threads)``, where only the first copy
runs. ``finalize_reducer`` then does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow
from tile_core.analysis.paths import Paths
from tile_core.analysis.point import Point
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Node, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import collect, loads_of
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept, Reject
from tile_core.numerics.extremes import extreme_of
from tile_core.ops.copy import convert
from tile_core.ops.effects import effects
from tile_core.ops.reduce import accumulator, neutral
from tile_core.simt.ops.combination import Combination
from tile_core.simt.ops.cross_thread import combine_threads
from tile_core.simt.ops.shuffles import ByShuffles
from tile_core.simt.register_loops import each

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.variant import SimtCall

#: The most elements of a reducer that every thread can replicate in registers.
MOST_ELEMENTS = 64

#: Nodes of updates by the kind of reduction.
_BITWISE = {"bitand": "BitwiseAnd", "bitor": "BitwiseOr", "bitxor": "BitwiseXor"}


class FinalizeByShuffles(ByShuffles):
    """Combines the partial results of all threads; a reducer with one copy is left unchanged."""

    op = "finalize_reducer"

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept reducers that all threads of the block finish."""
        return Reject("a single thread executes it here") if call.divergent else Accept()

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Combine lanes, then groups."""
        buffer = call.args[0].buffer
        dist = call.placement.fragments.get(buffer)
        if dist is None or dist.replicas == 1:
            return nodes.seq([])
        kind, dtype = str(call.attrs[attributes.KIND]), nodes.element_type(buffer)
        wide, array, thread = accumulator(dtype), call.placement.arrays[buffer], call.block.thread
        combine = Combination(kind, wide)
        start = combine.neutral
        total, allocate = nodes.alloc([dist.registers], wide, "acc", "local")

        def take(r: Var) -> Stmt:
            value = convert(array[r], wide)
            present = dist.holds(thread)
            value = tirx.Select(tirx.all(*present), value, start) if present else value
            return nodes.store(total, combine(start, value), [r])

        digits = [d for d in dist.replica if d.extent > 1]
        scratch, near, far = combine_threads(dist, thread, digits, self.lanes(call, ctx), [total], combine)
        give = each(dist.registers, lambda r: nodes.store(array, convert(total[r], dtype), [r], call.span))
        first = calls.step(nodes.seq([each(dist.registers, take), near]), call.span)
        return nodes.seq([allocate, scratch, first, far, calls.step(give)])


def partial(shape: Sequence[int], threads: int) -> FragmentLayout:
    """Return the layout of a tile that every thread replicates."""
    dims, stride = [], 1
    for extent in reversed(tuple(shape)):
        dims.append((Digit(extent, stride, "register"),))
        stride *= extent
    return FragmentLayout(tuple(shape), tuple(reversed(dims)), threads, (Digit(threads, 1, "thread"),))


def alone(extents: Sequence[int], threads: int) -> FragmentLayout:
    """Return an iteration layout in which the first copy runs all iterations in order."""
    return partial(extents, threads)


def assigned(value: Expr, kind: str, dtype: str, first: Sequence[Expr]) -> Expr:
    """Return the value that a thread's copy stores when a reducer is assigned.

    The first copy gets the assigned value, each other copy the neutral element.
    """
    others = neutral(kind, dtype)
    return value if _equal(value, others) or not first else tirx.Select(tirx.all(*first), value, others)


def is_update(store: Stmt, kind: str) -> bool:
    """Whether a store combines an element of a reducer with a value independent of it."""
    mine = [x for x in loads_of(store.value) if x.source.same_as(store.buffer)]
    same = [x for x in mine if all(_equal(a, b) for a, b in zip(x.indices, store.indices, strict=True))]
    inside = [x for i in store.indices for x in loads_of(i) if x.source.same_as(store.buffer)]
    if len(mine) != 1 or len(same) != 1 or inside:
        return False
    if kind in _BITWISE:
        value = store.value
        return type(value).__name__ == _BITWISE[kind] and (_equal(value.a, same[0]) or _equal(value.b, same[0]))
    return _adds(store.value, same[0]) if kind == "sum" else _chooses(store.value, same[0], kind)


def may_be_partial(body: Stmt, buffer: BufferVar, kind: str) -> bool:
    """Whether threads may keep partial copies of a reducer.

    It must be assigned, then updated, then finished, then only read.

    Parameters
    ----------
    body
        The block's program, with tile ops.
    buffer
        The reducer.
    kind
        Its operation.
    """
    if prod(int(nodes.as_int(d)) for d in buffer.shape) > MOST_ELEMENTS:
        return False
    flow = Flow(body)
    uses: dict[str, set[Point]] = {}
    for p in flow.points:
        uses.setdefault(_use(p, buffer, kind), set()).add(p)
    return _OTHER not in uses and _in_order(Paths(flow, skips=True), flow.top[:1], uses)


#: The use of a reducer at a point: begin it anew, assign it, update it, finish it, read it, or other uses.
_NEW, _ASSIGNED, _UPDATED, _DONE, _READ, _OTHER = "new", "assigned", "updated", "done", "read", "other"


def _in_order(paths: Paths, entry: Sequence[Point], uses: Mapping[str, set[Point]]) -> bool:
    """Whether a reducer is assigned, updated, finished once and read in this order."""
    new, updated, done = (uses.get(kind, set()) for kind in (_NEW, _UPDATED, _DONE))
    begun = new | updated | uses.get(_ASSIGNED, set())

    def behind(points: set[Point], stops: set[Point]) -> set[Point]:
        return paths.reached([q for p in points for q in paths.follow(p)], stops)

    unfinished = behind(begun, done) | paths.reached(entry, done)
    return (
        not unfinished & uses.get(_READ, set())
        and not behind(done, new) & (updated | done)
        and not behind(done | updated, new) & uses.get(_ASSIGNED, set())
    )


def _use(p: Point, buffer: BufferVar, kind: str) -> str:
    """Return a point's own use of a reducer; none without a mention."""
    s = p.stmt
    if isinstance(s, tirx.AllocBuffer):
        return _NEW if s.buffer.same_as(buffer) else ""
    if not any(_mentions(part, buffer) for part in p.own):
        return ""
    if p.kind == "for" or isinstance(s, tirx.DeclBuffer):
        return _OTHER
    if isinstance(s, tirx.BufferStore) and s.buffer.same_as(buffer):
        return _UPDATED if is_update(s, kind) else _OTHER if _reads(s.value, buffer) else _ASSIGNED
    if not isinstance(s, tirx.Evaluate) or not nodes.is_tile_call(s.value):
        return _READ
    written = [a for a in s.value.args if hasattr(a, "region") and a.source.same_as(buffer)]
    if nodes.is_tile_call(s.value, "finalize_reducer"):
        return _DONE
    if nodes.is_tile_call(s.value, "fill") and len(written) == 1 and not _reads(s.value.args[1], buffer):
        parts = zip(written[0].region, buffer.shape, strict=True)
        whole = all(nodes.as_int(r.min) == 0 and nodes.as_int(r.extent) == nodes.as_int(n) for r, n in parts)
        return _NEW if whole else _ASSIGNED
    return _OTHER if any(v.buffer.same_as(buffer) for v in effects(s)[1]) else _READ


def _reads(e: Node, buffer: BufferVar) -> bool:
    return any(x.source.same_as(buffer) for x in loads_of(e))


def _mentions(part: Node, buffer: BufferVar) -> bool:
    if isinstance(part, tirx.BufferStore) and part.buffer.same_as(buffer):
        return True
    regions = [a.source for c in collect(part, ir.Call) for a in c.args if hasattr(a, "region")]
    views = [v for d in collect(part, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)]
    return _reads(part, buffer) or any(b.same_as(buffer) for b in (*regions, *views))


def _adds(value: Expr, old: Expr) -> bool:
    """Whether a value is a sum with the old value as a term."""
    if value.same_as(old) or _equal(value, old):
        return True
    terms = _terms(value)
    inner = isinstance(value, tirx.Cast) and _terms(value.value) and nodes.dtype_of(value) == nodes.dtype_of(old)
    return any(_adds(x, old) for x in ((value.value,) if inner else terms))


def _terms(value: Expr) -> tuple[Expr, ...]:
    """Return the terms of a sum, or the minuend of a difference.

    In a strict region both are calls.
    """
    name = nodes.operator_name(value)
    if isinstance(value, tirx.Add):
        return value.a, value.b
    if isinstance(value, tirx.Sub):
        return (value.a,)
    return tuple(value.args[: 2 if "_add_" in name else 1]) if name.startswith(("ieee_add_rn", "ieee_sub_rn")) else ()


def _chooses(value: Expr, old: Expr, kind: str) -> bool:
    """Whether a value is the larger (smaller) of the old value and another."""
    dtype = nodes.dtype_of(old)
    if isinstance(value, tirx.Max if kind == "max" else tirx.Min) and "float" not in dtype:
        return _equal(value.a, old) or _equal(value.b, old)
    return extreme_of(value) == (kind, False) and any(_equal(x, old) for x in value.args)


def _equal(a: Expr, b: Expr) -> bool:
    return bool(tvm_ffi.structural_equal(a, b, map_free_vars=False))
