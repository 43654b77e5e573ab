"""``T.dp4a``: the dot product of four 8-bit integers."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.errors.ops import BadElementType
from tile_core.ir import nodes
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.values.value import Region, Tile

#: Legal element types of A and B, and of C.
FACTORS, TOTALS = ("int8", "uint8"), ("int32", "uint32")


def dp4a(A: Tile, B: Tile, C: Tile) -> None:
    """Accumulate ``C[0] += A[0] * B[0] + … + A[3] * B[3]``.

    Parameters
    ----------
    A, B
        ``int8`` or ``uint8`` buffers or elements: four adjacent elements from there are used.
    C
        An ``int32`` (or ``uint32``) element.

    Raises
    ------
    BadElementType
        For other element types.

    Examples
    --------
    >>> T.dp4a(bytes[0, 0:4], bytes[1, 0:4], n[0:1])
    """
    regions = [operands.as_region("dp4a", r, x) for r, x in (("A", A), ("B", B), ("C", C))]
    for role, region, legal in zip("ABC", regions, (FACTORS, FACTORS, TOTALS), strict=True):
        if region.dtype not in legal:
            raise BadElementType(op="dp4a", role=role, found=region.dtype, legal=", ".join(legal))
    a, b, c = (_run(r, n) for r, n in zip(regions, (4, 4, 1), strict=True))
    operands.emit("dp4a", [a, b, c], [c])


def _run(region: Region, length: int) -> Region:
    return Region(region.buffer, region.mins, [*([1] * (len(region.mins) - 1)), length])


def meaning(call: OpCall) -> Stmt:
    """C = C + the sum over l < 4 of A[l] * B[l]."""
    a, b, c = call.args
    zeros = [0] * len(c.extents)
    total = c.load(zeros)
    for lane in range(4):
        x, y = (v.load([*([0] * (len(v.extents) - 1)), lane]) for v in (a, b))
        total = total + nodes.cast(x, c.dtype) * nodes.cast(y, c.dtype)
    return nodes.store(c.buffer, total, c.at(zeros), call.span)


OP = TileOp("dp4a", reads=(0, 1, 2), writes=(2,), meaning=meaning, slots=(0, 1), per_thread=True)
