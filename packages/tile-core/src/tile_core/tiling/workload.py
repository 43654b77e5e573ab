"""Describe the products of a traced program as plain data, see ``lowering/tilings.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.program import Program
from tile_core.ir.visit import annotation, bodies_of, collect, role, statements
from tile_core.lowering.tilings import TiledProduct, Workload
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.pipelining.async_products import products_of
from tile_core.simt.placement.staged_tiles import kept_names, stage_tiles

ASSUMED = 4096
"""Extent of a dynamic dimension for which the caller gives none."""
UNKNOWN_TRIPS = 64
"""Assumed trip count of a loop whose bounds are data."""
_DATA = 2**24
"""Upper bound from which a trip count is data: the range of its type."""
_ATTRS = (attributes.POLICY, attributes.VARIANT, attributes.NUMERICS)


def workload_of(program: Program, sizes: Mapping[str, int]) -> Workload | None:
    """Return the launch of a program with the most multiplications, or ``None`` without products.

    Parameters
    ----------
    program
        A traced program.
    sizes
        Values of its dynamic dimensions, by name; those without one count as ``ASSUMED``.
    """
    launches = [_launch(stage, sizes) for stage in program.stages]
    best = max((found for found in launches if found.products), key=_work, default=None)
    if best is None:
        return None
    other = sum(found.tensor_bytes for found in launches) - best.tensor_bytes
    return replace(best, other_bytes=other, launches=len(launches))


def dynamic_sizes(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the values that an estimate uses for the dynamic dimensions of a program."""
    return {name: int(sizes.get(name, ASSUMED)) for name in program.symbols}


def _work(found: Workload) -> int:
    return found.blocks * sum(p.m * p.n * p.k * p.trips for p in found.products)


def _launch(program: Program, sizes: Mapping[str, int]) -> Workload:
    ranges = Ranges()
    for name, value in dynamic_sizes(program, sizes).items():
        ranges.set(program.symbols[name], (value, value))
    body = program.func.body
    grids = [s for s in collect(body, tirx.For) if role(s) == "grid"]
    threads = max((prod(map(int, t)) for s in grids if (t := annotation(s, attributes.THREADS)) is not None), default=1)
    shared = sum(
        _bytes(s.buffer, lambda e: ranges.of(e)[1])
        for s in collect(body, tirx.AllocBuffer)
        if nodes.scope_of(s.buffer).startswith("shared")
    )
    tensors = [v for v in program.func.params if tirx.is_buffer_var(v)]
    axes = {int(annotation(s, attributes.AXIS)): trip_count(s.extent, ranges) for s in grids}
    for s in grids:
        ranges.loop(s)
    rows = _pitches(body, lambda e: ranges.of(e)[1])
    written = {x.buffer for s in _pipelined(body) for x in collect(s, tirx.BufferStore)}
    found = tuple(_product(call, around, rows, written) for call, around in _walk(body, _Surroundings(), ranges))
    size = sum(_bytes(v, lambda e: ranges.of(e)[1]) for v in tensors)
    blocks, grid = max(1, prod(axes.values())), (axes.get(0, 0), axes.get(1, 0))
    staged = sum(_bytes(b, lambda e: ranges.of(e)[1]) for b in _staged(body))
    converted = sum(nodes.bytes_of(x.tile) for x in stage_tiles(body, kept_names(program))[1])
    return Workload(found, blocks, threads, size, shared, 0, 1, grid, staged, converted)


@dataclass(frozen=True)
class _Surroundings:
    """The loops around a statement of a block."""

    trips: float = 1.0
    stages: int = 1


def _walk(s: Stmt, around: _Surroundings, ranges: Ranges) -> Iterator[tuple[OpCall, _Surroundings]]:
    """Yield each product with the loops around it."""
    for one in statements(s):
        if is_op(one) and products_of(one):
            yield OpCall.decode(one), around
            continue
        inner = around
        if type(one) is tirx.While:
            inner = _Surroundings(around.trips * UNKNOWN_TRIPS, around.stages)
        elif type(one) is tirx.For and role(one) != "grid":
            stages = around.stages
            if role(one) == "pipelined":
                stages = max(1, int(annotation(one, attributes.NUM_STAGES, 1)))
            inner = _Surroundings(around.trips * trip_count(one.extent, ranges), stages)
            ranges.loop(one)
        for body in bodies_of(one):
            yield from _walk(body, inner, ranges)


def trip_count(extent: Expr, ranges: Ranges) -> int:
    """Return the trip count of a loop, the mean over blocks; ``UNKNOWN_TRIPS`` where data decides."""
    low, high = ranges.of(extent) if not isinstance(extent, int) else (extent, extent)
    return UNKNOWN_TRIPS if high > _DATA else max(1, (max(low, 0) + high + 1) // 2)


def _product(
    call: OpCall, around: _Surroundings, pitches: Mapping[BufferVar, int], written: set[BufferVar]
) -> TiledProduct:
    p = Problem.of(call)
    converted = sum(prod(map(int, v.shape)) for v in (p.a, p.b) if v.buffer in written and v.scope == "shared")
    rows = pitches.get(p.a.buffer, 0), pitches.get(p.b.buffer, 0)
    attrs = {name: call.attrs[name] for name in _ATTRS if name in call.attrs}
    k = p.k if isinstance(p.k, int) else int(nodes.as_int(p.k))
    return TiledProduct(
        call.name, int(p.m), int(p.n), int(k), p.types, (p.turned_a, p.turned_b),
        (p.a.scope, p.b.scope, p.c.scope), rows, max(1, round(around.trips)), around.stages, attrs, converted,
    )  # fmt: skip


def _staged(body: Stmt) -> set[BufferVar]:
    """Return the shared tiles that pipelined loops copy from global memory."""
    return {target.buffer for loop in _pipelined(body) for source, target in _copies(loop) if target.scope == "shared"}


def _pipelined(body: Stmt) -> list[Stmt]:
    return [s for s in collect(body, tirx.For) if role(s) == "pipelined"]


def _copies(body: Stmt) -> Iterator[tuple[View, View]]:
    """Yield source and target of each copy from global memory."""
    for s in collect(body, tirx.Evaluate):
        call = OpCall.decode(s) if is_op(s) else None
        if call is None or call.name != "copy":
            continue
        source, target = call.args[:2]
        if isinstance(source, View) and isinstance(target, View) and source.scope == "global" and source.extents:
            yield source, target


def _pitches(body: Stmt, value: Callable[[Expr], int]) -> dict[BufferVar, int]:
    """Return the bytes from row to row of the tensors from which tiles are copied."""
    found: dict[BufferVar, int] = {}
    for source, target in _copies(body):
        columns = nodes.shape_of(source.buffer)[-1]
        size = columns if isinstance(columns, int) else value(columns)
        found[target.buffer] = size * DTYPES[source.dtype].bits // 8
    return found


def _bytes(buffer: Any, value: Callable[[Expr], int]) -> int:
    """Return the bytes of a buffer."""
    extents = [e if isinstance(e, int) else value(e) for e in nodes.shape_of(buffer)]
    return prod(extents) * DTYPES[nodes.element_type(buffer)].bits // 8
