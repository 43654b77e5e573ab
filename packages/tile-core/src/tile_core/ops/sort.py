"""``T.sort``: sort along a dimension by a data-independent sorting network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import BadElementType, ScopeNotAllowed
from tile_core.ir import nodes
from tile_core.ir.attributes import DESCENDING, DIM, Attrs
from tile_core.numerics.order_keys import key_type, sort_key, sorted_value, wide_type
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.ops.copy import convert
from tile_core.ops.reduce import axis
from tile_core.values.builder import current
from tile_core.values.value import Tile

_LEGAL = "shared, local.fragment or global, outside of T.Parallel"


def sort(src: Tile, dst: Tile | None = None, dim: int = -1, descending: bool = False) -> None:
    """Sort along one dimension.

    Parameters
    ----------
    src, dst
        Tiles of one shape and element type; ``dst`` defaults to ``src``.
    dim
        The dimension; negative ones count from the end.
    descending
        Put the largest element first.

    Raises
    ------
    BadDim, BadElementType, ShapesDiffer, ScopeNotAllowed, NotATile, RuntimeExtent
        If the operands do not fit together, are private to a thread, or the statement is in a parallel loop.

    Notes
    -----
    NaN is larger than all numbers, as in NumPy, and -0 is smaller than +0. Of a NaN, sign and payload are lost. The
    tile is also held in shared memory, its extent along ``dim`` rounded up to a power of two.

    Examples
    --------
    >>> T.sort(S, dim=1)
    """
    descending = operands.flag("sort", "descending", descending)
    source = operands.as_region("sort", "src", src)
    out = source if dst is None else operands.as_region("sort", "dst", dst)
    operands.same_shape("sort", ("src", "dst"), source, out)
    at = axis("sort", source, dim)
    if source.dtype != out.dtype:
        raise BadElementType(op="sort", role="dst", found=out.dtype, legal=f"{source.dtype}, as src has")
    nested = any(s.kind == "parallel" for s in current("T.sort").scope.ancestors())
    for role, region in (("src", source), ("dst", out)):
        if region.scope not in ("shared", "local.fragment", "global") or nested:
            found = f"{region.scope}, in a T.Parallel loop" if nested else region.scope
            raise ScopeNotAllowed(op="sort", role=role, found=found, legal=_LEGAL)
    attrs: Attrs = {DIM: source.kept[at], DESCENDING: descending}
    operands.emit("sort", [operands.apart("sort", source, out), out], [out], attrs)


#: Exchanges of a group of places, as pairs of their numbers.
_PAIR, _QUAD = ((0, 1),), ((0, 2), (1, 3), (0, 1), (2, 3))


def meaning(call: OpCall) -> Stmt:
    """Keys of all elements; a bitonic network of comparisons; the elements of the keys."""
    return lowered(call)


def lowered(call: OpCall, near: int = 31) -> Stmt:
    """Keys of all elements; a bitonic network of comparisons; the elements of the keys.

    Parameters
    ----------
    call
        The op.
    near
        Exchanges inside of ``2**near`` keys along the dimension are done for one such part after the other.
    """
    src, dst = call.args
    dim, descending = int(call.attrs[DIM]), bool(call.attrs[DESCENDING])
    kept = [d for d, e in enumerate(src.extents) if e != 1] or [len(src.extents) - 1]
    others = [d for d in kept if d != dim]
    length, rows = int(src.extents[dim]), prod(int(src.extents[d]) for d in others)
    if length == 1:
        return _moved(call, kept)
    steps = (length - 1).bit_length()
    kind = key_type(src.dtype)
    # The dimension comes first: neighbouring lanes of a vector, and neighbouring threads, have different rows.
    keys, allocate = nodes.alloc([1 << steps, rows], kind, "keys", "shared")

    def index(k: Expr, row: Expr) -> list[Expr]:
        found = {dim: k}
        for d in reversed(others[1:]):
            found[d] = tirx.floormod(row, nodes.int_const(int(src.extents[d])))
            row = tirx.floordiv(row, nodes.int_const(int(src.extents[d])))
        found.update(dict.fromkeys(others[:1], row))
        return [found[d] for d in kept]

    def begin(k: Expr, row: Expr) -> Stmt:
        value = nodes.load(src.buffer, src.spread(index(k, row)))
        return nodes.store(keys, sort_key(convert(value, wide_type(src.dtype)), src.dtype, descending), [k, row])

    def fill(k: Expr, row: Expr) -> Stmt:
        last = nodes.const(2 ** (DTYPES[kind].bits - 1) - 1, kind)
        return nodes.store(keys, last, [k + length, row])

    def end(k: Expr, row: Expr) -> Stmt:
        value = sorted_value(keys[k, row], dst.dtype, descending)
        return nodes.store(dst.buffer, convert(value, dst.dtype), dst.spread(index(k, row)), call.span)

    parts = [allocate, nodes.nest([length, rows], begin, "parallel", span=call.span)]
    if length < 1 << steps:
        parts.append(nodes.nest([(1 << steps) - length, rows], fill, "parallel", span=call.span))
    parts.append(_network(keys, steps, rows, near))
    return nodes.seq([*parts, nodes.nest([length, rows], end, "parallel", span=call.span)])


def _network(keys: BufferVar, steps: int, rows: int, near: int) -> Stmt:
    """Merge runs of 1, 2, 4, … keys: mirror images, then half distances.

    Exchanges inside of ``2**near`` keys are done for one such part after the other.
    """

    def merged(distance: int, within: int, base: Expr) -> list[Stmt]:
        """Exchanges from a distance on, of ``2**within`` keys from ``base`` on."""
        parts = []
        while distance >= 0:  # two levels at a time: keys are read and written half as often
            wide = distance >= 1
            step = 1 << (distance - 1 if wide else distance)

            def group(run: Expr, at: Expr, step: int = step, count: int = 4 if wide else 2) -> tuple[Expr, ...]:
                low = run * nodes.int_const(count * step) + at
                return tuple(base + low + nodes.int_const(n * step) for n in range(count))

            levels = _QUAD if wide else _PAIR
            parts.append(_exchanges(keys, within, rows, step, group, levels))
            distance -= 2 if wide else 1
        return parts

    def mirrored(size: int, within: int, base: Expr) -> Stmt:
        def group(run: Expr, at: Expr) -> tuple[Expr, Expr]:
            begin = base + run * nodes.int_const(2 << size)
            return begin + at, begin + nodes.int_const((2 << size) - 1) - at

        return _exchanges(keys, within, rows, 1 << size, group, _PAIR)

    def parts_of(body: Callable[[Expr], list[Stmt]]) -> Stmt:
        part = nodes.fresh("part")
        return nodes.for_loop(part, 1 << (steps - near), nodes.seq(body(part * nodes.int_const(1 << near))))

    zero = nodes.int_const(0)
    if near >= steps:
        every = range(steps)
        return nodes.seq([x for s in every for x in (mirrored(s, steps, zero), *merged(s - 1, steps, zero))])
    small = range(near)
    parts = [parts_of(lambda b: [x for s in small for x in (mirrored(s, near, b), *merged(s - 1, near, b))])]
    for size in range(near, steps):
        parts.append(mirrored(size, steps, zero))
        for distance in range(size - 1, near - 1, -1):
            step = 1 << distance

            def pair(run: Expr, at: Expr, step: int = step) -> tuple[Expr, Expr]:
                low = run * nodes.int_const(2 * step) + at
                return low, low + nodes.int_const(step)

            parts.append(_exchanges(keys, steps, rows, step, pair, _PAIR))
        parts.append(parts_of(lambda b: merged(near - 1, near, b)))
    return nodes.seq(parts)


def _exchanges(
    keys: BufferVar, steps: int, rows: int, inside: int, positions: Callable[[Expr, Expr], Sequence[Expr]],
    levels: Sequence[tuple[int, int]],
) -> Stmt:  # fmt: skip
    """Order the keys of each pair of ``levels``, for all groups of ``positions``."""
    count = len(positions(nodes.int_const(0), nodes.int_const(0)))

    def exchange(run: Expr, at: Expr, row: Expr) -> Stmt:
        parts, held = [], []
        for position in positions(run, at):
            held.append(nodes.fresh("key", nodes.element_type(keys)))
            parts.append(tirx.Bind(held[-1], keys[position, row]))
        for low, high in levels:
            pair = (tirx.Min(held[low], held[high]), tirx.Max(held[low], held[high]))
            for n, value in zip((low, high), pair, strict=True):
                held[n] = nodes.fresh("key", nodes.element_type(keys))
                parts.append(tirx.Bind(held[n], value))
        return nodes.seq(
            [*parts, *(nodes.store(keys, x, [p, row]) for p, x in zip(positions(run, at), held, strict=True))]
        )

    extents = [(1 << steps) // count // inside, inside, rows]
    return nodes.nest(extents, exchange, "parallel", names=("run", "at", "row"))


def _moved(call: OpCall, kept: list[int]) -> Stmt:
    src, dst = call.args

    def body(*indices: Expr) -> Stmt:
        return nodes.store(dst.buffer, nodes.load(src.buffer, src.spread(indices)), dst.spread(indices), call.span)

    return nodes.nest([src.extents[d] for d in kept], body, "parallel", span=call.span)


OP = TileOp("sort", reads=(0,), writes=(1,), meaning=meaning)
