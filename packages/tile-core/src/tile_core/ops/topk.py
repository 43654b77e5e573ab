"""``T.topk``: the largest elements along a dimension, in order, and where they are."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import BadAttribute, BadElementType, ShapesDiffer
from tile_core.ir import nodes
from tile_core.ir.attributes import DIMS, LARGEST, Attrs
from tile_core.numerics.order_keys import key_of, key_type, wide_type
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import axis
from tile_core.values.value import Tile

#: No element has this index.
LAST = 2**31 - 1


def topk(src: Tile, values: Tile, indices: Tile, dim: int = -1, largest: bool = True) -> None:
    """Find the ``k`` largest elements along a dimension, the largest first, and their indices.

    Parameters
    ----------
    src
        Source tile, of any element type.
    values
        Destination for the elements, of the type of ``src`` and of its shape but for ``dim``, which has extent ``k``.
    indices
        Destination for their indices along ``dim``: integers of 32 or 64 bits, in the shape of ``values``.
    dim
        The dimension; negative ones count from the end.
    largest
        Find the smallest elements instead, the smallest first, if ``False``.

    Raises
    ------
    BadDim, BadAttribute, BadElementType, ShapesDiffer, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    Of equal elements those with the lowest indices come first; -0 and +0 are equal. NaN is larger than all numbers, as
    in sorted arrays of NumPy. The source is looked through ``k`` times.

    Examples
    --------
    >>> T.topk(v, scale[0:8], n[0:8])
    """
    largest = operands.flag("topk", "largest", largest)
    source, found, found_at = (
        operands.as_region("topk", role, x) for role, x in (("src", src), ("values", values), ("indices", indices))
    )
    if not found_at.dtype.is_integer or found_at.dtype.bits < 32:
        raise BadElementType(op="topk", role="indices", found=found_at.dtype, legal="int32, int64, uint32, uint64")
    if found.dtype != source.dtype:
        raise BadElementType(op="topk", role="values", found=found.dtype, legal=f"{source.dtype}, as src has")
    at = axis("topk", source, dim)
    operands.static_shape("topk", "src", source)
    shape, result = tuple(source.shape), tuple(found.shape)
    rest = (shape[:at], shape[at + 1 :])
    k = result[at] if len(result) == len(shape) else 0
    if len(result) != len(shape) or (result[:at], result[at + 1 :]) != rest or tuple(found_at.shape) != result:
        roles = ("values", "indices") if tuple(found_at.shape) != result else ("src", "values")
        a, b = (shape, result) if roles[0] == "src" else (result, tuple(found_at.shape))
        raise ShapesDiffer(op="topk", a=roles[0], b=roles[1], shape_a=a, shape_b=b)
    if not isinstance(k, int) or not 1 <= k <= int(shape[at]):
        raise BadAttribute(op="topk", name="k", found=k, legal=f"from 1 to {shape[at]}, the extent of the dimension")
    for out in (found, found_at):
        source = operands.apart("topk", source, out, aligned=False)
    attrs: Attrs = {DIMS: [source.kept[at], found.kept[at], found_at.kept[at]], LARGEST: largest}
    operands.emit("topk", [source, found, found_at], [found, found_at], attrs)


def key(value: Expr, dtype: str, largest: bool) -> Expr:
    """Return an element's key: the element that comes first has the largest."""
    found = key_of("argmax", convert(value, wide_type(dtype)), dtype)
    return found if largest else tirx.bitwise_not(found)


def first(dtype: str) -> tuple[Expr, Expr]:
    """Return a key and an index that come before those of all elements."""
    name = key_type(dtype)
    return nodes.const(2 ** (DTYPES[name].bits - 1) - 1, name), nodes.int_const(-1)


def none(dtype: str) -> tuple[Expr, Expr]:
    """Return a key and an index that come after those of all elements."""
    name = key_type(dtype)
    return nodes.const(-(2 ** (DTYPES[name].bits - 1)), name), nodes.int_const(LAST)


def precedes(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    """Whether a key and an index come before others."""
    return tirx.Or(a[0] > b[0], tirx.And(tirx.EQ(a[0], b[0]), a[1] < b[1]))


def offer(best: Sequence[BufferVar], last: Sequence[Expr], at: Expr, new: Sequence[Expr]) -> Stmt:
    """Return the statement that selects an element between the last found and the best one."""
    names = [nodes.fresh("key", nodes.dtype_of(new[0])), nodes.fresh("index")]
    old = [nodes.fresh("best", nodes.dtype_of(new[0])), nodes.fresh("place")]
    binds = [tirx.Bind(v, x) for v, x in zip((*names, *old), (*new, best[0][at], best[1][at]), strict=True)]
    better = tirx.And(precedes(last, names), precedes(names, old))
    stores = [nodes.store(b, tirx.Select(better, x, y), [at]) for b, x, y in zip(best, names, old, strict=True)]
    return nodes.seq([*binds, *stores])


def outer_of(call: OpCall) -> list[int]:
    """Return the source's dimensions other than that of the op."""
    src, dims = call.args[0], [int(d) for d in call.attrs[DIMS]]
    return [d for d in range(len(src.extents)) if d != dims[0] and src.extents[d] != 1]


def index_of(view: View, dim: int, others: Sequence[Expr], position: Expr) -> list[Expr]:
    """Return the index in a view, per buffer dimension, of a position along ``dim``."""
    found = iter(others)
    zero = nodes.int_const(0)
    return [position if d == dim else next(found) if e != 1 else zero for d, e in enumerate(view.extents)]


def store_found(call: OpCall, others: Sequence[Expr], rank: Expr, index: Expr) -> Stmt:
    """Return the statement that stores a found element and its index by rank."""
    src, values, indices = call.args
    dims = [int(d) for d in call.attrs[DIMS]]
    value = nodes.load(src.buffer, src.at(index_of(src, dims[0], others, index)))
    return nodes.seq([
        nodes.store(values.buffer, value, values.at(index_of(values, dims[1], others, rank)), call.span),
        nodes.store(
            indices.buffer, convert(index, indices.dtype), indices.at(index_of(indices, dims[2], others, rank)),
            call.span,
        ),
    ])  # fmt: skip


def meaning(call: OpCall) -> Stmt:
    """k times: the element that comes first of those after the last one found."""
    src = call.args[0]
    dims, largest = [int(d) for d in call.attrs[DIMS]], bool(call.attrs[LARGEST])
    made = [nodes.alloc([1], d, n, "local") for n in ("best", "last") for d in (key_type(src.dtype), "int32")]
    best, last = [b for b, _ in made[:2]], [b for b, _ in made[2:]]
    zero = nodes.int_const(0)

    def body(*others: Expr) -> Stmt:
        rank, k = nodes.fresh("turn"), nodes.fresh("k")
        rest = others if outer_of(call) else ()
        position = k if src.extents[dims[0]] > 1 else zero
        value = nodes.load(src.buffer, src.at(index_of(src, dims[0], rest, position)))
        step = offer(best, [b[0] for b in last], zero, [key(value, src.dtype, largest), position])
        parts = [nodes.store(b, x, [0]) for b, x in zip(best, none(src.dtype), strict=True)]
        parts.append(nodes.for_loop(k, src.extents[dims[0]], step))
        parts += [nodes.store(a, b[0], [0]) for a, b in zip(last, best, strict=True)]
        parts.append(store_found(call, rest, rank if call.args[1].extents[dims[1]] > 1 else zero, last[1][0]))
        start = [nodes.store(b, x, [0]) for b, x in zip(last, first(src.dtype), strict=True)]
        loop = nodes.for_loop(rank, call.args[1].extents[dims[1]], nodes.seq(parts))
        return nodes.seq([*(s for _, s in made), *start, loop])

    return nodes.nest([src.extents[d] for d in outer_of(call)] or [1], body, "parallel", span=call.span)


OP = TileOp("topk", reads=(0,), writes=(1, 2), meaning=meaning)
