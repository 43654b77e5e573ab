"""The grid of a launch: loops over blocks become the block's own coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.errors import InternalError
from tile_core.errors.launch import GridTooLarge
from tile_core.errors.lowering import GridNotComputable
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.program import Dim, dim_of
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, role, substitute
from tile_core.records import dataclass
from tile_core.simt.launch.longest_first import LongestFirst
from tile_core.simt.variant import Block

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.target import Target


Order = Mapping[str, Any] | LongestFirst
"""How blocks are numbered, see `launch`."""


@dataclass(frozen=True)
class Grid:
    """The grid that the host launches.

    Attributes
    ----------
    extents
        Blocks along x, y and z, as the host computes them.
    """

    extents: tuple[Dim, Dim, Dim]


def block_of(body: Stmt, thread: Var) -> Block:
    """Return the threads of the program's blocks; one if it launches nothing."""
    for loop in collect(body, tirx.For):
        if role(loop) == "grid":
            threads = annotation(loop, attributes.THREADS)
            if threads is not None:
                x, y, z = (int(nodes.as_int(t)) for t in threads)
                return Block((x, y, z), thread)
    return Block((1, 1, 1), thread)


def launch(
    body: Stmt, block: Block, order: Order | None = None, cluster: tuple[int, int, int] = (1, 1, 1)
) -> tuple[Stmt, Grid]:
    """Return the program of one thread of one block, and the grid.

    Parameters
    ----------
    body
        The program of one thread, still inside the loops over the grid.
    block
        The threads.
    order
        ``{"panel", "order"}`` of ``T.use_swizzle``, the swizzled rasterization: panels of ``panel`` rows (or columns),
        so that concurrent blocks share operands in the L2 cache. Or `LongestFirst`.
    cluster
        Blocks along x, y and z of a cluster, which rasterization keeps adjacent.
    """
    rewriter = _GridToBlock(block, order or None, cluster)
    new = rewriter.stmt(body)
    x, y, z = block.extents
    thread = calls.thread_index(0) if x > 1 else nodes.int_const(0)
    if y > 1:
        thread = thread + calls.thread_index(1) * x
    if z > 1:
        thread = thread + calls.thread_index(2) * (x * y)
    gx, gy, gz = (rewriter.dim(axis) for axis in range(3))
    return nodes.seq([tirx.Bind(block.thread, nodes.int_const(0) + thread), new]), Grid((gx, gy, gz))


def check_grid(grid: Grid, program: Program, target: Target) -> None:
    """Refuse a constant grid over the limits of a target's launches; launches check all others.

    Raises
    ------
    GridTooLarge
        Naming the axis.
    """
    for axis, found, limit in zip("xyz", grid.extents, target.capabilities.grid_limits, strict=False):
        if isinstance(found, int) and found > limit:
            shown = {"runtime": target.text, "unit": "blocks", "axis": axis, "found": found, "limit": limit}
            raise GridTooLarge(kernel=program.name, where=program.where, **shown)


class _GridToBlock(StmtRewriter):
    def __init__(self, block: Block, order: Order | None, cluster: tuple[int, int, int]) -> None:
        self.block, self.order, self.cluster = block, order, cluster
        self.extents: dict[int, Expr] = {}
        self.binds: dict[Var, Expr] = {}

    def dim(self, axis: int) -> Dim:
        """Return the extent of an axis of the grid as the host computes it.

        Raises
        ------
        GridNotComputable
            If it uses an operation that the host does not have.
        """
        extent = self.extents.get(axis, 1)
        try:
            return dim_of(extent)
        except InternalError as error:
            where = nodes.where_of(self.loops[axis])
            raise GridNotComputable(extent=str(extent), axis=axis, where=where) from error

    def visit_Bind(self, s: Stmt) -> Stmt:
        self.binds[s.var] = substitute(s.value, self.binds)
        return s

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return super().visit_For(s)
        axes: dict[int, Stmt] = {}
        while isinstance(s, tirx.For) and role(s) == "grid":
            axes[int(annotation(s, attributes.AXIS))] = s
            s = s.body
        analyzer = Analyzer()
        for axis, loop in axes.items():
            extent = substitute(nodes.int_const(0) + loop.extent, self.binds)
            self.extents[axis] = nodes.as_int(analyzer.simplify(extent))
        self.loops = axes
        inner = _Indices(axes).stmt(s)
        return nodes.seq([*self.coordinates(axes), inner])

    def coordinates(self, axes: Mapping[int, Stmt]) -> list[Stmt]:
        """Bind the loops' variables to the block's coordinates."""
        where = {axis: calls.block_index(axis) for axis in axes}
        before: list[Stmt] = []
        empty = any(e == 0 for e in self.extents.values() if isinstance(e, int))  # no block needs its coordinates
        if isinstance(self.order, LongestFirst) and not empty:
            before, where = self.order.coordinates({axis: loop.extent for axis, loop in axes.items()})
        elif self.order and 0 in axes and 1 in axes and not empty:
            before, where[0], where[1] = self.panels(axes)
        binds = []
        for axis, loop in sorted(axes.items()):
            value = where[axis]
            value = nodes.cast(value, nodes.dtype_of(loop.loop_var))
            binds.append(tirx.Bind(loop.loop_var, value if nodes.as_int(loop.min) == 0 else value + loop.min))
        return [*before, *binds]

    def panels(self, axes: Mapping[int, Stmt]) -> tuple[list[Stmt], Expr, Expr]:
        assert isinstance(self.order, Mapping)
        panel, by_rows = int(nodes.as_int(self.order["panel"])), str(self.order["order"]) == "row"
        wide, high = (0, 1) if by_rows else (1, 0)
        # What is numbered are clusters, which are blocks if they have one.
        extents = [nodes.int_const(0) + axes[a].extent for a in (wide, high)]
        kind = "int64" if any(nodes.dtype_of(e) == "int64" for e in extents) else "int32"
        width, height = (
            _clusters(nodes.cast(e, kind), self.cluster[a]) for e, a in zip(extents, (wide, high), strict=True)
        )
        x, y = (_clusters(nodes.cast(calls.block_index(a), kind), self.cluster[a]) for a in (0, 1))
        flat = y * (width if by_rows else height) + x
        number, group, inside, rows = (nodes.fresh(n, kind) for n in ("block", "panel", "inside", "rows"))
        binds = [
            tirx.Bind(number, flat),
            tirx.Bind(group, tirx.floordiv(number, width * panel)),
            tirx.Bind(inside, number - group * (width * panel)),
            tirx.Bind(rows, tirx.Min(nodes.int_const(panel, kind), height - group * panel)),
        ]
        across, down = tirx.floordiv(inside, rows), group * panel + tirx.floormod(inside, rows)
        first, second = (across, down) if by_rows else (down, across)
        return binds, self.inside(0, first), self.inside(1, second)

    def inside(self, axis: int, number: Expr) -> Expr:
        """Return the coordinate of a block in its cluster from its number along an axis."""
        size = self.cluster[axis]
        if size == 1:
            return number
        own = tirx.floormod(calls.block_index(axis), nodes.int_const(size))
        return number * size + nodes.cast(own, nodes.dtype_of(number))


def _clusters(blocks: Expr, size: int) -> Expr:
    return blocks if size == 1 else tirx.floordiv(blocks, nodes.int_const(size, nodes.dtype_of(blocks)))


class _Indices(StmtRewriter):
    """Replaces ``T.get_block_binding`` by the grid's variables; missing axes are 0."""

    def __init__(self, axes: dict[int, Stmt]) -> None:
        self.axes = axes

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.index, ir.Call)

    def index(self, call: Call) -> Call:
        if not nodes.is_tile_call(call, "block_index"):
            return call
        loop = self.axes.get(int(nodes.as_int(call.args[0])))
        return nodes.int_const(0) if loop is None else nodes.cast(loop.loop_var, nodes.dtype_of(call))
