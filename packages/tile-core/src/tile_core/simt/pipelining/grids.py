"""Grids whose blocks can be split into roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect, role
from tile_core.simt.pipelining.dependences import Candidate, top_level
from tile_core.simt.pipelining.role_slices import RoleSlice

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
    loops
        The pipelined loops in them.
    """

    axes: Mapping[int, Stmt]
    body: Sequence[Stmt]
    loops: Sequence[Stmt]

    @property
    def extents(self) -> dict[int, int]:
        """Blocks along each axis."""
        return {axis: int(nodes.as_int(s.extent)) for axis, s in self.axes.items()}

    @property
    def loop(self) -> int | None:
        """The position of the only pipelined loop; ``None`` if statements contain it."""
        found = [i for i, s in enumerate(self.body) if any(s.same_as(x) for x in self.loops)]
        return found[0] if len(self.loops) == 1 == len(found) else None

    @property
    def once(self) -> bool:
        """Whether each block executes the loop once, with a constant trip count."""
        fixed = isinstance(nodes.as_int(self.loops[0].extent), int) and nodes.as_int(self.loops[0].min) == 0
        return self.loop is not None and fixed

    @property
    def repeats(self) -> bool:
        """Whether another loop may repeat a pipelined loop."""
        around = [x for s in self.body for x in collect(s, tirx.For) if role(x) != "pipelined"]
        return any(s.same_as(x) for outer in around for x in collect(outer.body, tirx.For) for s in self.loops)

    def before(self) -> list[Stmt]:
        """Return the statements before the loop that only name values."""
        found = self.body[: self.loop]
        return [s for s in found if isinstance(s, tirx.Bind) and not collect(s.value, (ir.Call, ir.TensorLoad))]


def grid_of(s: Stmt, fixed: bool = True) -> GridLoops | str:
    """Return the grid that a producer warp can serve, or the rejection reason.

    Parameters
    ----------
    fixed
        Whether blocks are persistent: the number of tiles must then be a constant.
    """
    axes: dict[int, Stmt] = {}
    while isinstance(s, tirx.For) and role(s) == "grid":
        axes[int(annotation(s, attributes.AXIS))] = s
        s = s.body
    body = top_level(s)
    loops = [x for x in collect(s, tirx.For) if role(x) == "pipelined"]
    inner = [x for outer in loops for x in collect(outer.body, tirx.For) if role(x) == "pipelined"]
    if not loops or inner:
        return "a pipelined loop is nested in another one" if inner else "its block has no pipelined loop"
    for axis in axes.values() if fixed else ():
        if not isinstance(nodes.as_int(axis.extent), int) or nodes.as_int(axis.min) != 0:
            return "the number of its blocks is not known at compile time"
    if collect(s, (tirx.Break, tirx.Continue, tirx.Return, tirx.DeclBuffer, tirx.While)):
        return "its block has jumps or views"
    if collect(s, tirx.AttrStmt):
        return "its block has roles of its own"
    for call in collect(s, ir.Call):
        name = str(getattr(call.op, "name", ""))
        if name.startswith("tile.") and name[5:].startswith(_OWN):
            return f"it calls {name[5:]}"
    threads = next((t for t in (annotation(x, attributes.THREADS) for x in axes.values()) if t is not None), None)
    if threads is None or any(int(nodes.as_int(t)) != 1 for t in list(threads)[1:]):
        return "its threads have several dimensions"
    return GridLoops(axes, body, loops)


def outer_grid(body: Stmt) -> Stmt | None:
    """Return the outermost loop over blocks; ``None`` if a program has several or none."""
    loops = [s for s in collect(body, tirx.For) if role(s) == "grid"]
    inner = [x for s in loops for x in collect(s.body, tirx.For)]
    outer = [s for s in loops if not any(s.same_as(x) for x in inner)]
    return outer[0] if len(outer) == 1 else None


def slice_of(grid: GridLoops, loops: Sequence[tuple[Stmt, Sequence[Candidate], Sequence[int]]]) -> RoleSlice:
    """Return the statements that a producer repeats.

    Parameters
    ----------
    loops
        The pipelined loops, their copies, and the positions of bindings that the corners of copies use.
    """
    values = {}
    for loop, copies, binds in loops:
        inside = top_level(loop.body)
        corners = [m for c in copies for m in c.call.args[0].mins]
        values[loop.loop_var] = [loop.min, loop.extent, *corners, *(inside[i].value for i in binds)]
    return RoleSlice(grid.body, values)
