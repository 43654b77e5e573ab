"""MSL as a device language of the C family: what differs from plain C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tile_core.abi.kernel_text import Attribute
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.emit.kernel import Launch
from tile_core.emit.kernel_printer import KernelPrinter, bits_of
from tile_core.emit.text import UNARY, Text, wrapped
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation
from tile_core.numerics.levels import STANDARD, STRICT
from tile_metal.emit.atomics import is_small
from tile_metal.emit.expressions import MslExpressions
from tile_metal.emit.helper import AS_WRITTEN, PRECISE
from tile_metal.emit.helpers import HELPER_NAMES, needed
from tile_metal.emit.matrices import is_tensor_product, lanes_name, poison_name
from tile_metal.emit.names import LIBRARY, RESERVED, VECTORS
from tile_metal.errors import TooManyBuffers

BODY, HEAD = "metal.body", "metal.head"
"""Attributes of the facts: the 1-based lines at which the kernel's body and its head begin."""

MOST_BUFFERS = 31
"""Buffers of a kernel; the scalars take one (MSL specification, "Attributes to Locate Buffers")."""

_BUILTINS = {"thread_index": "thread_position_in_threadgroup", "block_index": "threadgroup_position_in_grid"}
_LANE = "thread_index_in_simdgroup"
_THREAD = "thread_position_in_threadgroup"


class MslPrinter(MslExpressions, KernelPrinter):
    """Prints kernels.

    Parameters
    ----------
    launch, numerics, line_info, approximate
        See ``KernelPrinter``.
    device_barriers
        Whether barriers also order accesses of device memory.
    """

    reserved: ClassVar[frozenset[str]] = KernelPrinter.reserved | RESERVED | HELPER_NAMES
    spaces: ClassVar[Mapping[str, str]] = {"global": "device", "shared": "threadgroup", "local": "thread"}
    slab: ClassVar[str] = "alignas(16) threadgroup uchar smem[{bytes}];"
    aligned: ClassVar[str] = "alignas(16)"
    restrict: ClassVar[str] = "__restrict"
    vectors: ClassVar[Mapping[int, str]] = VECTORS
    adopts: ClassVar[bool] = False

    def __init__(
        self, launch: Launch, *, numerics: str = STANDARD, line_info: bool = False, device_barriers: bool = False,
        approximate: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(launch, numerics=numerics, line_info=line_info, approximate=approximate)
        self.helpers: set[str] = set()
        self.builtins: set[str] = set()
        #: Variables with the result of the lane check of a tensor product, by its function.
        self._known: dict[str, str] = {}
        self._struct = ""
        self._flags = ("mem_flags::mem_device | " if device_barriers else "") + "mem_flags::mem_threadgroup"

    # The kernel

    def begin(self, params: Sequence[Var]) -> None:
        """Choose the name of the scalars' structure, and check the number of buffers.

        Raises
        ------
        TooManyBuffers
            If there are.
        """
        buffers = len(_arrays(params)) + bool(_scalars(params))
        if buffers > MOST_BUFFERS:
            raise TooManyBuffers(kernel=self.name, found=buffers, limit=MOST_BUFFERS, where=self.launch.where)
        self._struct = self.writer.fresh(f"{self.entry}_args")

    def before(self, params: Sequence[Var]) -> list[str]:
        """Return the headers and functions that the text needs, and the structure of scalars."""
        functions = needed(self.helpers)
        headers = dict.fromkeys(["metal_stdlib", *(h for f in functions for h in f.headers)])
        lines = [*(f"#include <{h}>" for h in headers), "using namespace metal;"]
        # Hosts may compile in another mode. MSL specification, "Math Modes".
        lines += AS_WRITTEN if self.numerics == STRICT else () if self.is_fast else PRECISE
        for f in functions:
            lines += ["", *f.lines(self.numerics == STRICT)]
        members = [f"  {self.type(nodes.dtype_of(p))} {self.writer.name(p)};" for p in _scalars(params)]
        # One structure, so that no scalar is too small to be bound.
        return [*lines, "", *([f"struct {self._struct} {{", *members, "};", ""] if members else [])]

    def head(self, name: str, params: Sequence[Var]) -> str:
        """Print the kernel's head: arrays, the structure of scalars, and used built-in values."""
        arrays = _arrays(params)
        heads = [f"{self.parameter(p)} [[buffer({i})]]" for i, p in enumerate(arrays)]
        if _scalars(params):
            heads.append(f"constant {self._struct}& args [[buffer({len(arrays)})]]")
        heads += [f"{'uint' if b == _LANE else 'uint3'} {b} [[{b}]]" for b in sorted(self.builtins)]
        start = f"[[kernel, max_total_threads_per_threadgroup({self.launch.threads})]] void {name}("
        return "\n".join([start, *(f"    {h}{',' if h is not heads[-1] else ''}" for h in heads), ")"])

    def first(self, params: Sequence[Var]) -> list[str]:
        """Print the body's first lines: named scalars, threadgroup memory, lane checks."""
        names = [(self.type(nodes.dtype_of(p)), self.writer.name(p)) for p in _scalars(params)]
        asked = [f"const bool {name} = {lanes_name(f)}((int){_THREAD}.x & 31);" for f, name in self._known.items()]
        return [*(f"const {kind} {name} = args.{name};" for kind, name in names), *super().first(params), *asked]

    def lines_at(self, before: int, head: int) -> dict[str, Attribute]:
        """Return where the kernel's head and body begin."""
        return {HEAD: before + 1, BODY: before + head + 1}

    def number(self, kind: str, axis: int) -> str:
        """Print a coordinate, an unsigned 32-bit integer."""
        return Text(f"(int){self.builtin(_BUILTINS[kind])}.{'xyz'[axis]}", UNARY)

    # Statements

    def unroll(self, s: Stmt) -> None:
        """Write whether a loop should be unrolled."""
        factor = annotation(s, attributes.UNROLL_FACTOR)
        how = "unroll(full)" if factor is None else "unroll(disable)" if int(factor) == 1 else f"unroll_count({factor})"
        self.writer.line(f"#pragma clang loop {how}")

    def write_sync_threads(self, s: Stmt) -> None:
        """Write a barrier of the threadgroup."""
        self.writer.line(f"threadgroup_barrier({self._flags});")

    def write_sync_warp(self, s: Stmt) -> None:
        """Write a barrier of the simdgroup."""
        self.writer.line(f"simdgroup_barrier({self._flags});")

    # Instructions

    def call_tile_instruction(self, e: Call) -> str:
        """Print a call of a helper function; packed words are an array and an index."""
        name = str(e.attrs[attributes.NAME])
        args = [self.bare(a) for a in e.args]
        if is_small(name):
            load = e.args[0].args[0]
            args[0] = self.array_and_index(load)
        if name.startswith("matmul2d_") and not is_tensor_product(name):
            args.insert(0, self.known_lanes(name.removesuffix(poison_name(""))))
        return f"{name if name in LIBRARY else self.helper(name)}({', '.join(args)})"

    def array_and_index(self, load: Expr) -> str:
        """Print a small element as an array at a word, and a 32-bit index."""
        name, index = self.writer.name(load.source), self.offset(load.source, load.indices)
        if nodes.dtype_of(index) == "int32":
            return f"{name}, {self.bare(index)}"
        each, whole = 32 // bits_of(nodes.element_type(load.source)), self.named(index)
        return f"{name} + {whole} / {each} * {each}, (int)({whole} % {each})"

    def known_lanes(self, name: str) -> str:
        """Return the variable with the result of a tensor product's lane check."""
        if name not in self._known:
            self._known[name] = self.writer.fresh("known_lanes")
            self.builtin(_THREAD)  # data lie by the number of the thread, whatever lane of a simdgroup that is
        return self._known[name]

    # What the lanes of a simdgroup exchange

    def call_tile_shuffle(self, e: Call) -> str:
        """Print one exchange of a word, never from lanes that do not exist."""
        value, lane = self.bare(e.args[1]), self.bare(e.args[2])
        mode, width = str(e.attrs[attributes.MODE]), int(e.attrs[attributes.WIDTH])
        if mode == "bfly":
            return f"simd_shuffle_xor({value}, (ushort){wrapped(lane, UNARY)})"
        if mode == "idx" and width == 32 and self.is_lane(e.args[2]):
            return f"simd_shuffle({value}, (ushort){wrapped(lane, UNARY)})"
        own = Text(f"(int){self.builtin('thread_index_in_simdgroup')}", UNARY)
        return f"simd_shuffle({value}, (ushort){self.helper(f'lane_{mode}')}({own}, {lane}, {width}))"

    def is_lane(self, e: Expr) -> bool:
        """Whether a value is known to be the number of a lane."""
        bound = self.analyzer.const_int_bound(e)
        return bool(bound.min_value >= 0 and bound.max_value < 32)

    def builtin(self, name: str) -> str:
        """Return the name of a built-in variable, which the function then has."""
        self.builtins.add(name)
        return name

    def call_tile_group_reduce(self, e: Call) -> str:
        """Print a reduction over the simdgroup; integer addition wraps like unsigned integers."""
        kind, value = str(e.attrs[attributes.KIND]).removeprefix("bit"), e.args[1]
        if kind == "sum" and nodes.dtype_of(value) == "int32":
            return self.narrowed(f"simd_sum({self.unsigned(value)})", "int32")
        return f"simd_{kind}({self.bare(value)})"

    def call_tile_vote(self, e: Call) -> str:
        """Print one vote of the lanes that take part."""
        mode, condition = str(e.attrs[attributes.MODE]), self.bare(e.args[1])
        if mode == "ballot":
            return Text(f"(uint)(ulong)(simd_vote::vote_t)simd_ballot({condition})", UNARY)
        return f"simd_{mode}({condition})"


def _arrays(params: Sequence[Var]) -> list[BufferVar]:
    return [p for p in params if tirx.is_buffer_var(p)]


def _scalars(params: Sequence[BufferVar]) -> list[Any]:
    return [p for p in params if not tirx.is_buffer_var(p)]
