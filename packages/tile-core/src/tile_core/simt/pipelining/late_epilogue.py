"""Late epilogue of persistent kernels: a tile's stores overlap the next tile's main loop.

The statements after a tile's loop may be split into *subtiles* if nothing in the block waits for their effects. A
target marks them by the attribute ``SUBTILE``, and each subtile reads fragments of its own. Subtile ``p`` of a tile is
executed in iteration ``p`` of the next tile's loop, after its product is issued, so matrix units stay busy while
results are stored. The subtiles of a block's last tile follow all loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect, loads_of, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.dependences import uses
from tile_core.simt.pipelining.grids import GridLoops


def epilogue_of(grid: GridLoops) -> list[list[Stmt]]:
    """Return the epilogue subtiles of a block in order; none if delaying is illegal.

    They can be delayed if no other statement of the block accesses the tensors that they write, and if their
    coordinates use only variables of the grid or bindings before the loop that depend on these: other values may have
    changed by then. Each tile must execute the loop, equally often.
    """
    if not grid.once:
        return []
    body = [s for s in grid.body if not isinstance(s, tirx.AllocBuffer)]
    count = 0
    while count < len(body) and _subtile(body[-1 - count]) is not None:
        count += 1
    subtiles = body[len(body) - count :]
    written = written_by(subtiles)
    if any(uses(s, b) for s in body[: len(body) - count] for b in written):
        return []
    named = {s.var for s in grid.before()}
    own = {s.var for s in body if isinstance(s, tirx.Bind)} - named
    if any(v in own for s in subtiles for v in collect(s, tirx.Var)):
        return []
    if any(loads_of(at) for s in subtiles for at in _corners(s)):
        return []
    return [list(group) for _, group in groupby(subtiles, _subtile)]


def without_epilogue(body: Sequence[Stmt], subtiles: Sequence[Sequence[Stmt]]) -> list[Stmt]:
    """Return the statements of a tile without its epilogue subtiles."""
    return list(body[: len(body) - sum(map(len, subtiles))])


def written_by(subtiles: Sequence[Stmt]) -> list[BufferVar]:
    """Return the tensors in global memory that statements write."""
    views = [OpCall.decode(s).args[1] for s in subtiles]
    found: dict[BufferVar, None] = {v.buffer: None for v in views if isinstance(v, View) and v.scope == "global"}
    return list(found)


def in_iterations(subtiles: Sequence[Sequence[Stmt]], trips: int, k: Expr, mapping: Mapping[Any, Any]) -> Stmt:
    """Return the epilogue subtiles of another tile, each in its iteration.

    Parameters
    ----------
    trips
        Trip count of the loop; several subtiles share an iteration if there are more of them.
    mapping
        The names of that tile.
    """
    each, kind = -(-len(subtiles) // trips), nodes.dtype_of(k)
    found: Any = None
    for at in reversed(range(0, len(subtiles), each)):
        part = nodes.seq([substitute(s, dict(mapping)) for subtile in subtiles[at : at + each] for s in subtile])
        found = tirx.IfThenElse(tirx.EQ(k, nodes.int_const(at // each, kind)), part, found)
    return tirx.IfThenElse(k < nodes.int_const(-(-len(subtiles) // each), kind), found, None)


def _corners(s: Stmt) -> list[Expr]:
    """Return the corners of the regions that an op accesses."""
    views = [v for v in OpCall.decode(s).args if isinstance(v, View)]
    return [nodes.int_const(0) + at for v in views for at in v.mins]


def _subtile(s: Stmt) -> int | None:
    if not is_op(s) or attributes.SUBTILE not in s.value.attrs or not nodes.is_tile_call(s.value, "copy"):
        return None
    return int(nodes.as_int(s.value.attrs[attributes.SUBTILE]))
