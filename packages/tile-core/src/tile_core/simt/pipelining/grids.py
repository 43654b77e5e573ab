"""Grids whose blocks can be split into roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import annotation, collect, role
from tile_core.simt.pipelining.dependences import Candidate, top_level

#: Calls of a program that specify the work of threads or blocks, or that order it, also against other launches. Such a
#: program is left unchanged, since threads of another role would not execute these calls.
_OWN = (
    "sync", "barrier", "cluster", "async", "store_", "warp", "lane", "thread", "block_index", "grid", "wait", "launch_",
)  # fmt: skip


@dataclass(frozen=True)
class GridLoops:
    """The loops over blocks, by axis, and the statements of a block.

    Attributes
    ----------
    axes
        The loops.
    body
        The statements.
    loop
        The place of the pipelined one among them.
    """

    axes: Mapping[int, Stmt]
    body: Sequence[Stmt]
    loop: int

    @property
    def extents(self) -> dict[int, int]:
        """Blocks along each axis."""
        return {axis: int(nodes.as_int(s.extent)) for axis, s in self.axes.items()}

    def before(self) -> list[Stmt]:
        """Return the statements before the loop that only name values."""
        found = self.body[: self.loop]
        return [s for s in found if isinstance(s, tirx.Bind) and not collect(s.value, (ir.Call, ir.TensorLoad))]


def grid_of(s: Stmt, fixed: bool = True) -> GridLoops | str:
    """Return the grid that a producer warp can serve, or the rejection reason.

    Parameters
    ----------
    fixed
        Whether blocks are persistent: the numbers of tiles and iterations must then be constants.
    """
    axes: dict[int, Stmt] = {}
    while isinstance(s, tirx.For) and role(s) == "grid":
        axes[int(annotation(s, nodes.AXIS))] = s
        s = s.body
    body = top_level(s)
    loops = [x for x in collect(s, tirx.For) if role(x) == "pipelined"]
    at = next((i for i, x in enumerate(body) if isinstance(x, tirx.For) and role(x) == "pipelined"), None)
    if len(loops) != 1 or at is None:
        return "its block has several pipelined loops or a nested one"
    for loop in (*axes.values(), loops[0]) if fixed else ():
        if not isinstance(nodes.as_int(loop.extent), int) or nodes.as_int(loop.min) != 0:
            return "the number of its blocks or iterations is not known at compile time"
    if collect(s, (tirx.Break, tirx.Continue, tirx.Return, tirx.DeclBuffer, tirx.While)):
        return "its block has jumps or views"
    if collect(s, tirx.AttrStmt):
        return "its block has roles of its own"
    for call in collect(s, ir.Call):
        name = str(getattr(call.op, "name", ""))
        if name.startswith("tile.") and name[5:].startswith(_OWN):
            return f"it calls {name[5:]}"
    threads = next((t for t in (annotation(x, nodes.THREADS) for x in axes.values()) if t is not None), None)
    if threads is None or any(int(nodes.as_int(t)) != 1 for t in list(threads)[1:]):
        return "its threads have several dimensions"
    return GridLoops(axes, body, at)


def corner_reason(
    grid: GridLoops, copies: Sequence[Candidate], binds: Sequence[int], sizes: Collection[Var] = ()
) -> str:
    """Return the reason why a producer warp cannot compute copies' corners, else empty.

    Parameters
    ----------
    binds
        Positions of bindings in the loop that they use.
    sizes
        Variables that have one value in a launch.
    """
    loop = grid.body[grid.loop]
    inside = top_level(loop.body)
    known = {s.loop_var for s in grid.axes.values()} | {s.var for s in grid.before()} | {loop.loop_var}
    known |= {inside[i].var for i in binds} | set(sizes)
    parts = [loop.min, loop.extent, *(m for c in copies for m in c.call.args[0].mins)]
    parts += [inside[i].value for i in binds] + [s.value for s in grid.before()]
    for part in parts:
        value = nodes.int_const(0) + part
        if collect(value, ir.TensorLoad) or any(v not in known for v in collect(value, tirx.Var)):
            return "its copies depend on values computed in the block"
    return ""
