"""What a printer must know before the first line: where thread numbers are used, what memory is addressed and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr
from tile_core.ir.warp import WARP
from tile_core.runtime.signature import Dim
from tile_cuda.ptx import TABLE

_AXES = "xyz"
_INDICES = {"thread_index": "threadIdx", "block_index": "blockIdx"}
#: Bytes of what an instruction's addresses point to.
_SIZES = {"unsigned": 4, "int": 4, "float": 4, "double": 8, "unsigned long long": 8, "unsigned short": 2}


@dataclass
class Prepared:
    """A body, ready to be printed.

    Attributes
    ----------
    body
        Thread and block numbers are variables.
    numbers
        Those variables, each with the built-in that it holds.
    aligned
        Register arrays that are read or written as something else than their elements.
    """

    body: Any
    numbers: list[tuple[Any, str]] = field(default_factory=list)
    aligned: set[Any] = field(default_factory=set)


def prepare(body: Any, params: Sequence[Any], grid: tuple[Dim, Dim, Dim], block: tuple[int, int, int],
            analyzer: Any) -> Prepared:  # fmt: skip
    """Return the body with variables for the numbers of threads and blocks; the analyzer learns their ranges."""
    numbers = _Numbers(grid, block)
    numbers.adopt(body)
    prepared = Prepared(numbers.stmt(body))
    calls = [c for c in collect(prepared.body, ir.Call) if nodes.is_tile_call(c)]
    prepared.numbers = [(numbers.used[kind, d], f"{_INDICES[kind]}.{_AXES[d]}") for kind, d in sorted(numbers.used)]
    for (kind, d), var in numbers.used.items():
        extent = block[d] if kind == "thread_index" else grid[d]
        analyzer.bind(var, ir.Range.from_min_extent(0, extent if isinstance(extent, int) else 2**31 - 1), True)
    for var in {v for p in params if tirx.is_buffer_var(p) for d in p.shape for v in collect(d, tirx.Var)}:
        most = tirx.IntImm(nodes.dtype_of(var), 2**31 - 1 if nodes.dtype_of(var) == "int32" else 2**62)
        analyzer.bind(var, ir.Range.from_min_extent(nodes.zero(nodes.dtype_of(var)), most), True)
    prepared.aligned = _addressed(calls)
    return prepared


def _addressed(calls: list[Any]) -> set[Any]:
    """Return the buffers that are read or written in pieces larger than their elements."""
    found = set()
    for call in calls:
        if nodes.is_tile_call(call, "move"):
            found |= {load.source for load in call.args if int(nodes.as_int(call.attrs["bytes"])) > _bytes(load.source)}
        elif nodes.is_tile_call(call, "instruction") and str(call.attrs["name"]) in TABLE:
            for operand, arg in zip(TABLE[str(call.attrs["name"])].parameters, call.args, strict=False):
                if nodes.is_tile_call(arg, "address") and _SIZES.get(operand.element, 0) > _bytes(arg.args[0].source):
                    found.add(arg.args[0].source)
    return found


def _bytes(buffer: Any) -> int:
    return DTYPES[nodes.element_type(buffer)].bits // 8


class _Numbers(StmtRewriter):
    """Replaces calls for the numbers of threads and blocks by variables, the user's own where there are some."""

    def __init__(self, grid: tuple[Dim, Dim, Dim], block: tuple[int, int, int]) -> None:
        self.block = block
        self.extents: dict[str, tuple[Any, Any, Any]] = {"thread_index": block, "block_index": grid}
        self.known: dict[tuple[str, int], Any] = {}
        self.used: dict[tuple[str, int], Any] = {}

    def adopt(self, s: Any) -> None:
        """Take over the variables that the outermost statements bind to a number."""
        if isinstance(s, tirx.SeqStmt):
            for part in s.seq:
                self.adopt(part)
        elif isinstance(s, tirx.AttrStmt):
            self.adopt(s.body)
        elif isinstance(s, tirx.Bind):
            key = self.key(s.value)
            if key is not None and key not in self.known and nodes.dtype_of(s.var) == "int32":
                self.known[key] = s.var

    def key(self, e: Any) -> tuple[str, int] | None:
        for kind in _INDICES:
            if nodes.is_tile_call(e, kind):
                return kind, int(nodes.as_int(e.args[0]))
        return None

    def number(self, kind: str, axis: int) -> Any:
        """Return the variable of a number; 0 where there is but one."""
        key = (kind, axis)
        if self.extents[kind][axis] == 1 and key not in self.known:
            return nodes.int_const(0)
        var = self.used.get(key)
        if var is None:
            name = ("t" if kind == "thread_index" else "b") + _AXES[axis]
            known = self.known.get(key)
            var = self.used[key] = tirx.Var(name, "int32") if known is None else known
        return var

    def linear(self) -> Any:
        """Return the number of the thread in the block."""
        x, y, _ = self.block
        total = self.number("thread_index", 0)
        for axis, size in ((1, x), (2, x * y)):
            step = self.number("thread_index", axis)
            if not isinstance(step, tirx.IntImm):
                total = total + step * nodes.int_const(size)
        return total

    def visit_Bind(self, s: Any) -> Any:
        key = self.key(s.value)
        if key is not None and key in self.known and s.var.same_as(self.known[key]):
            self.number(*key)
            return nodes.seq([])
        return super().visit_Bind(s)

    def expr(self, e: Any) -> Any:
        return map_expr(e, self.call, ir.Call)

    def call(self, e: Any) -> Any:
        key = self.key(e)
        if key is not None:
            return self.number(*key)
        if nodes.is_tile_call(e, "lane_index"):
            return tirx.floormod(self.linear(), nodes.int_const(WARP))
        if nodes.is_tile_call(e, "warp_index"):
            return tirx.floordiv(self.linear(), nodes.int_const(WARP))
        return e
