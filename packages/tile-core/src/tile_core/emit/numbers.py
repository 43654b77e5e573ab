"""Variables for the coordinates of threads in blocks and of blocks in grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.abi.signature import Dim
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.structural import items
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, map_expr

THREAD, BLOCK = "thread_index", "block_index"
_KINDS = {f"tile.{kind}": kind for kind in (THREAD, BLOCK)}
_AXES = "xyz"


class Numbers(StmtRewriter):
    """Replaces calls for the coordinates of threads and blocks by variables.

    Parameters
    ----------
    block, grid
        Threads and blocks along each axis; a coordinate along an axis of extent 1 is 0.
    """

    def __init__(self, block: tuple[int, int, int], grid: tuple[Dim, Dim, Dim]) -> None:
        self._extents: dict[str, tuple[Any, Any, Any]] = {THREAD: block, BLOCK: grid}
        self._bound: dict[tuple[str, int], Any] = {}
        self._used: dict[tuple[str, int], Any] = {}

    def adopt(self, s: Stmt) -> None:
        """Take over the variables that the outermost statements bind to a coordinate; their bindings disappear."""
        if type(s) is tirx.SeqStmt:
            for part in items(s.seq):
                self.adopt(part)
        elif type(s) is tirx.AttrStmt:
            self.adopt(s.body)
        elif type(s) is tirx.Bind:
            key = _key(s.value)
            if key is not None and key not in self._bound and nodes.dtype_of(s.var) == "int32":
                self._bound[key] = s.var

    def used(self) -> Iterator[tuple[str, int, Any]]:
        """Yield kind, axis and variable of each coordinate that was replaced."""
        for kind, axis in sorted(self._used):
            yield kind, axis, self._used[kind, axis]

    def bind_ranges(self, analyzer: Analyzer) -> None:
        """Bind the ranges of the variables in an analyzer."""
        for kind, axis, var in self.used():
            extent = self._extents[kind][axis]
            most = extent if isinstance(extent, int) else 2**31 - 1
            analyzer.bind(var, ir.Range.from_min_extent(0, most), True)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Drop the binding of a variable that was taken over."""
        key = _key(s.value)
        if key is not None and key in self._bound and s.var.same_as(self._bound[key]):
            self._number(key)
            return nodes.seq([])
        return super().visit_Bind(s)

    def expr(self, e: Expr) -> Expr:
        """Return an expression with variables for coordinates."""
        return map_expr(e, self._call, ir.Call)

    def _call(self, e: Call) -> Call:
        key = _key(e)
        return e if key is None else self._number(key)

    def _number(self, key: tuple[str, int]) -> Expr:
        kind, axis = key
        if self._extents[kind][axis] == 1 and key not in self._bound:
            return nodes.int_const(0)
        if key not in self._used:
            bound = self._bound.get(key)
            self._used[key] = tirx.Var(f"{kind[0]}{_AXES[axis]}", "int32") if bound is None else bound
        return self._used[key]


def _key(e: Expr) -> tuple[str, int] | None:
    kind = _KINDS.get(nodes.operator_name(e))
    return None if kind is None else (kind, int(nodes.as_int(e.args[0])))
