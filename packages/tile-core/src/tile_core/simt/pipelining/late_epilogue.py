"""Results that leave while the next tile is computed, where blocks stay for several tiles (``workers.py``).

Behind the loop of a tile, statements whose effect nothing in the block waits for may come in *pieces*: a target marks
them by the attribute ``LATER``, and each piece reads fragments of its own. Piece ``p`` of a tile is then executed in
iteration ``p`` of the next tile's loop, behind the begin of its product, so that the units that compute have work while
results leave; those of a block's last tile leave behind all loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.dependences import uses
from tile_core.simt.pipelining.grids import GridLoops

#: Attribute of an op: the number of the piece that it is a part of.
SUBTILE = "later"


def epilogue_of(grid: GridLoops) -> list[list[Stmt]]:
    """Return the pieces that a block's statements end with, in order; none if they cannot wait for the next tile.

    They can if nothing else of the block accesses the tensors that they write, and where they write is said by names of
    the grid, or bound before the loop from these: what a variable, a tile or a tensor says may be another thing then.
    """
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


def without_epilogue(behind: Sequence[Stmt], subtiles: Sequence[Sequence[Stmt]]) -> list[Stmt]:
    """Return the statements of a tile behind its loop that do not wait for the next one."""
    return list(behind[: len(behind) - sum(map(len, subtiles))])


def written_by(subtiles: Sequence[Stmt]) -> list[BufferVar]:
    """Return the tensors in global memory that statements write."""
    views = [OpCall.decode(s).args[1] for s in subtiles]
    found: dict[BufferVar, None] = {v.buffer: None for v in views if isinstance(v, View) and v.scope == "global"}
    return list(found)


def in_iterations(subtiles: Sequence[Sequence[Stmt]], trips: int, k: Expr, mapping: Mapping[Any, Any]) -> Stmt:
    """Return the pieces of another tile, each under the condition that it is its iteration's turn.

    Parameters
    ----------
    trips
        Of the loop; several pieces share an iteration if it has fewer.
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
    """Return the expressions that say which parts of tiles and tensors an op is about."""
    views = [v for v in OpCall.decode(s).args if isinstance(v, View)]
    return [nodes.int_const(0) + at for v in views for at in v.mins]


def _subtile(s: Stmt) -> int | None:
    if not is_op(s) or SUBTILE not in s.value.attrs or not nodes.is_tile_call(s.value, "copy"):
        return None
    return int(nodes.as_int(s.value.attrs[SUBTILE]))
