"""MSL as a dialect of the C family: what differs from plain C."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tile_core.compat.tvm import ir, tirx
from tile_core.emit.c_family import CFamilyEmitter, Emitted
from tile_core.emit.text import COMPARE, UNARY, Text, wrapped
from tile_core.errors.base import InternalError, Where
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_core.ir.visit import annotation, collect, map_expr
from tile_core.runtime.signature import Dim
from tile_metal.emit.atomics import is_small
from tile_metal.emit.expressions import MslExpressions
from tile_metal.emit.names import LIBRARY, RESERVED, VECTORS

_AXES = "xyz"
_BUILTINS = {"thread_index": "thread_position_in_threadgroup", "block_index": "threadgroup_position_in_grid"}
_FLAGS = {False: "mem_flags::mem_threadgroup", True: "mem_flags::mem_device | mem_flags::mem_threadgroup"}
_SHARED = ("shared", "shared.dyn")


class MslPrinter(MslExpressions, CFamilyEmitter):
    """Prints the program of one thread.

    Parameters
    ----------
    block, grid
        Threads of a threadgroup, and threadgroups.
    fast_math, line_info
        See ``MetalOptions``.
    device_barriers
        Whether barriers also order accesses of device memory.
    """

    reserved: ClassVar[frozenset[str]] = CFamilyEmitter.reserved | RESERVED

    def __init__(
        self, block: tuple[int, int, int], grid: tuple[Dim, Dim, Dim], *, fast_math: bool = False,
        line_info: bool = False, device_barriers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.extents: Mapping[str, Sequence[Any]] = {"thread_index": block, "block_index": grid}
        self.fast_math, self.line_info, self.device_barriers = fast_math, line_info, device_barriers
        self.helpers: set[str] = set()
        self.builtins: set[str] = set()
        self.readonly: set[Any] = set()
        self.spaces: dict[Any, str] = {}
        self.slab = 0
        self._wide: set[Any] = set()
        self._numbers: dict[tuple[str, int], Any] = {}
        self._single: set[Any] = set()
        self._commented: Where | None = None

    def body(self, statement: Any) -> Emitted:
        """Print a body that stands in a function, its slab of threadgroup memory first."""
        with self.writer.block(""):
            if self.slab:
                self.writer.line(f"alignas(16) threadgroup uchar smem[{self.slab}];")
            self.stmt(map_expr(statement, self._number, ir.Call))
        # The braces belong to the head.
        del self.writer.lines[0], self.writer.origins[0], self.writer.lines[-1], self.writer.origins[-1]
        return Emitted(self.writer.text(), tuple(self.writer.origins))

    def _number(self, e: Any) -> Any:
        """Return a variable for a coordinate of the thread or of its block; 0 where there is but one."""
        kind = next((k for k in _BUILTINS if nodes.is_tile_call(e, k)), None)
        if kind is None:
            return e
        axis = int(nodes.as_int(e.args[0]))
        extent = self.extents[kind][axis]
        if extent == 1:
            return nodes.int_const(0)
        var = self._numbers.get((kind, axis))
        if var is None:
            var = self._numbers[kind, axis] = tirx.Var(f"{kind}_{axis}", "int32")
            self.builtins.add(_BUILTINS[kind])
            self.writer.give(var, Text(f"(int){_BUILTINS[kind]}.{_AXES[axis]}", UNARY))
            most = extent if isinstance(extent, int) else 2**31 - 1
            self.analyzer.bind(var, ir.Range.from_min_extent(0, most), True)
        return var

    # Statements

    def stmt(self, s: Any) -> None:
        """Write one statement, with the user's line in front if that is wanted."""
        where = nodes.where_of(s)
        if self.line_info and where is not None and not isinstance(s, (tirx.SeqStmt, tirx.AttrStmt)):
            if where != self._commented:
                self.writer.line(f"// {where.file}:{where.line}")
            self._commented = where
        super().stmt(s)

    def unroll(self, s: Any) -> None:
        """Write whether a loop should be written out."""
        factor = annotation(s, "tile.unroll_factor")
        how = "unroll(full)" if factor is None else "unroll(disable)" if int(factor) == 1 else f"unroll_count({factor})"
        self.writer.line(f"#pragma clang loop {how}")

    def write_For(self, s: Any) -> None:
        """Write a counted loop."""
        partly = s.kind != tirx.ForKind.UNROLLED and annotation(s, "tile.unroll_factor") is not None
        if partly or s.kind == tirx.ForKind.VECTORIZED:
            self.unroll(s)
        super().write_For(s)

    def write_AllocBuffer(self, s: Any) -> None:
        """Declare a variable, an array in registers, or a part of the threadgroup's slab."""
        buffer, scope = s.buffer, nodes.scope_of(s.buffer)
        element = self.type(nodes.element_type(buffer))
        if scope in _SHARED:
            offset = (dict(s.annotations) if s.annotations else {}).get("tile.offset")
            if offset is None or not self.slab:
                raise InternalError(stage="metal text", detail=f"{buffer.name} has no place in threadgroup memory")
            at = nodes.as_int(offset)
            place = wrapped(Text(f"smem + {at}", COMPARE), UNARY) if at else "smem"
            name, self.spaces[buffer] = self.writer.name(buffer), "threadgroup"
            self.writer.line(f"threadgroup {element}* const {name} = (threadgroup {element}*){place};")
            return
        if not scope.startswith("local"):
            raise NotExpressible(what=f"storage of scope {scope}", dialect=self.dialect)
        self.spaces[buffer] = "thread"
        size = math.prod(nodes.shape_of(buffer))
        if size == 1:
            self._single.add(buffer)
            self.writer.line(f"{element} {self.writer.name(buffer)};")
            return
        align = "alignas(16) " if buffer in self.wide else ""
        self.writer.line(f"{align}{element} {self.writer.name(buffer)}[{size}];")

    def write_DeclBuffer(self, s: Any) -> None:
        """Declare a view: another name and element type of an array's memory."""
        base = s.data.args[0] if isinstance(s.data, ir.Call) else s.data
        space = self.spaces[s.buffer] = self.space(base)
        if base in self.readonly:
            self.readonly.add(s.buffer)
        element = f"{space} {'const ' if base in self.readonly else ''}{self.type(nodes.element_type(s.buffer))}"
        place = f"&{self.writer.name(base)}" if base in self._single else self.writer.name(base)
        self.writer.line(f"{element}* const {self.writer.name(s.buffer)} = ({element}*){place};")

    def write_Evaluate(self, s: Any) -> None:
        """Write an expression for its effect."""
        if nodes.is_tile_call(s.value):
            method: Callable[[Any], None] | None = getattr(self, "write_" + str(s.value.op.name)[5:], None)
            if method is not None:
                method(s)
                return
        if nodes.operator_name(s.value) != "assume":
            super().write_Evaluate(s)

    def write_move(self, s: Any) -> None:
        """Write one access that moves several elements."""
        to, source = s.value.args
        size = int(nodes.as_int(s.value.attrs["bytes"]))
        kind = VECTORS[size]
        left = f"({self.space(to.source)} {kind}*){wrapped(self.place(to), UNARY)}"
        right = f"({self.space(source.source)} const {kind}*){wrapped(self.place(source), UNARY)}"
        self.writer.line(f"*{left} = *{right};")

    def write_sync_threads(self, s: Any) -> None:
        """Write a barrier of the threadgroup."""
        del s
        self.writer.line(f"threadgroup_barrier({_FLAGS[self.device_barriers]});")

    def write_sync_warp(self, s: Any) -> None:
        """Write a barrier of the simdgroup."""
        del s
        self.writer.line(f"simdgroup_barrier({_FLAGS[self.device_barriers]});")

    def write_async_commit(self, s: Any) -> None:
        """Write nothing: copies are complete when they have been executed."""

    def write_async_wait(self, s: Any) -> None:
        """Write nothing, see ``write_async_commit``."""

    def write_print(self, s: Any) -> None:
        """Refuse to print."""
        where = nodes.where_of(s)
        raise NotExpressible(what="T.print: kernels cannot print from a GPU of Metal 3", dialect="MSL", where=where)

    def write_device_assert(self, s: Any) -> None:
        """Refuse to stop."""
        where = nodes.where_of(s)
        raise NotExpressible(what="T.device_assert: a kernel cannot stop itself", dialect="MSL", where=where)

    # Memory

    @property
    def wide(self) -> set[Any]:
        """Register arrays that are read or written in pieces larger than their elements."""
        return self._wide

    def find_wide(self, body: Any) -> None:
        """Look for register arrays that vectors go to or come from."""
        self._wide = {load.source for c in collect(body, ir.Call) if nodes.is_tile_call(c, "move") for load in c.args}

    def space(self, buffer: Any) -> str:
        """Return the address space of a buffer."""
        found = self.spaces.get(buffer)
        if found is None:
            raise InternalError(stage="metal text", detail=f"{buffer.name} is used before it is declared")
        return found

    def element(self, buffer: Any, indices: Any) -> str:
        """Print an element of a buffer; one of a single element is a variable."""
        return self.writer.name(buffer) if buffer in self._single else super().element(buffer, indices)

    def place(self, load: Any) -> str:
        """Print the address of an element."""
        return Text(f"&{self.bare(load)}", UNARY)

    def call_tile_address(self, e: Any) -> str:
        """Print the address of an element."""
        return self.place(e.args[0])

    def call_tile_instruction(self, e: Any) -> str:
        """Print a call of a helper function; parts of words are given by their array and an index."""
        name = str(e.attrs["name"])
        args = [self.bare(a) for a in e.args]
        if is_small(name):
            load = e.args[0].args[0]
            args[0] = f"{self.writer.name(load.source)}, {self.bare(self.offset(load.source, load.indices))}"
        return f"{name if name in LIBRARY else self.helper(name)}({', '.join(args)})"

    # What the lanes of a simdgroup exchange

    def call_tile_shuffle(self, e: Any) -> str:
        """Print one exchange of a word; lanes that do not exist are never asked for."""
        value, lane = self.bare(e.args[1]), self.bare(e.args[2])
        mode, width = str(e.attrs["mode"]), int(e.attrs["width"])
        if mode == "bfly":
            return f"simd_shuffle_xor({value}, (ushort){wrapped(lane, UNARY)})"
        if mode == "idx" and width == 32 and self.is_lane(e.args[2]):
            return f"simd_shuffle({value}, (ushort){wrapped(lane, UNARY)})"
        own = Text(f"(int){self.builtin('thread_index_in_simdgroup')}", UNARY)
        return f"simd_shuffle({value}, (ushort){self.helper(f'lane_{mode}')}({own}, {lane}, {width}))"

    def is_lane(self, e: Any) -> bool:
        """Whether a value is known to be the number of a lane."""
        bound = self.analyzer.const_int_bound(e)
        return bool(bound.min_value >= 0 and bound.max_value < 32)

    def builtin(self, name: str) -> str:
        """Return the name of a built-in variable, which the function then has."""
        self.builtins.add(name)
        return name

    def call_tile_vote(self, e: Any) -> str:
        """Print one vote of the lanes that take part."""
        mode, condition = str(e.attrs["mode"]), self.bare(e.args[1])
        if mode == "ballot":
            return Text(f"(uint)(ulong)(simd_vote::vote_t)simd_ballot({condition})", UNARY)
        return f"simd_{mode}({condition})"
