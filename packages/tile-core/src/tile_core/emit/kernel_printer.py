"""Kernel printer for the C family: the per-thread program as text, with launch facts.

Languages differ in data and a few methods: the syntax of a kernel's head and parameters, words for address spaces and
barriers, names of functions. The common part is here: shared memory is one array of bytes that holds every buffer,
arrays of one element are variables, and names of coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tile_core.abi.kernel_text import Attribute, KernelText, LineMap, ParamFact
from tile_core.compat.structural import attribute, item
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.emit.index_order import IndexOrder
from tile_core.emit.kernel import Launch
from tile_core.emit.numbers import Numbers
from tile_core.emit.text import COMPARE, UNARY, Text, wrapped
from tile_core.errors.base import InternalError, Where
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect
from tile_core.numerics.levels import FAST, STANDARD
from tile_core.simt.launch.constants import key_of

_SHARED = ("shared", "shared.dyn")
_WIDTH = 120


class KernelPrinter(CFamilyEmitter):
    """Prints kernels.

    Parameters
    ----------
    launch
        How the kernel is launched.
    numerics
        Level of numerics of the whole text, see ``tile_core.numerics.regions.text_level``.
    approximate
        Whether functions outside of regions are approximate; by default at level ``"fast"``.
    line_info
        Whether a comment names the user's line wherever it changes.

    Attributes
    ----------
    spaces
        The address-space qualifier of a pointer: for ``"global"``, ``"shared"`` and ``"local"``.
    slab
        Declaration of the block's shared memory, an array of bytes named ``smem``; ``{bytes}`` is its size.
    aligned
        Words that align an array in registers for the widest access.
    restrict
        Word for a pointer that does not alias; empty if there is none.
    vectors
        Type that moves a given number of bytes in one access.
    barrier, warp_barrier
        Statement at which threads of a block, or of a warp, wait for each other.
    adopts
        Whether coordinates are variables at the start of the body; otherwise `number` is printed at each use.
    orders_indices
        Whether indices of global memory are added in the order in which loops change their terms, see ``IndexOrder``.
    """

    spaces: ClassVar[Mapping[str, str]] = {"global": "", "shared": "", "local": ""}
    slab: ClassVar[str] = ""
    aligned: ClassVar[str] = ""
    restrict: ClassVar[str] = ""
    vectors: ClassVar[Mapping[int, str]] = {}
    barrier: ClassVar[str] = ""
    warp_barrier: ClassVar[str] = ""
    adopts: ClassVar[bool] = True
    orders_indices: ClassVar[bool] = True

    def __init__(
        self, launch: Launch, *, numerics: str = STANDARD, line_info: bool = False, approximate: bool | None = None
    ) -> None:
        super().__init__()
        self.approximate = numerics == FAST if approximate is None else approximate
        self.launch, self.numerics, self.line_info = launch, numerics, line_info
        #: Arrays that the text never writes, and arrays of one element, which are variables.
        self.readonly: set[Any] = set()
        self.single: set[Any] = set()
        #: Arrays in registers with accesses that are larger than their elements.
        self.wide: set[Any] = set()
        self.numbers = Numbers(launch.block, launch.grid)
        #: The user's name of the kernel, and that of its function.
        self.name, self.entry = "", ""
        #: Names of the launch's constants, by ``key_of``.
        self.constants: dict[str, str] = {}
        self._order = IndexOrder(self.analyzer)
        self._spaces: dict[Any, str] = {}
        #: Tensors at addresses from tables, and views of them.
        self._addressed: set[Any] = set()
        self._commented: Where | None = None

    # The kernel

    def kernel(self, name: str, params: Sequence[Var], body: Stmt) -> KernelText:
        """Print a kernel.

        Parameters
        ----------
        name
            The user's name of it.
        params
            Buffers and scalar variables in the order of the signature, then symbols that the launch passes besides.
        body
            The program of one thread: statements of the C family and the calls of ``tile_core.ir.calls``.

        Raises
        ------
        NotExpressible
            If the language cannot express a part of the body.
        """
        self.name, self.entry = name, self.writer.fresh(self.entry_of(name))
        arrays = [p for p in params if tirx.is_buffer_var(p)]
        self._spaces.update(dict.fromkeys(arrays, "global"))
        self.readonly.update(p for p in arrays if self.launch.reads_only(p))
        names = {str(p.name): self.writer.name(p) for p in params}
        self.constants = {key: self.writer.fresh(p.name) for key, p in self.launch.constants.items()}
        names |= {p.name: self.constants[key] for key, p in self.launch.constants.items()}
        body = self.prepared(params, body)
        self.begin(params)
        with self.writer.block(""):
            self.stmt(body)
        # The braces are those of the head, which is written once the needs of the body are known.
        lines, origins = self.writer.lines[1:-1], self.writer.origins[1:-1]
        head = self.head(self.entry, params).splitlines()  # first: it determines the types that the text needs
        before = self.before(params)
        head[-1] += " {"
        first = [*before, *head, *(f"  {line}" for line in self.first(params))]
        line_map = LineMap.of([*([None] * len(first)), *origins, None])
        facts = self.launch.facts(self.entry, params, names, line_map, self.lines_at(len(before), len(head)))
        return KernelText("".join(f"{line}\n" for line in [*first, *lines, "}"]), facts)

    def entry_of(self, name: str) -> str:
        """Return the name for the kernel's function."""
        return name

    def prepared(self, params: Sequence[Var], body: Stmt) -> Stmt:
        """Return the body with variables for coordinates, and record what its declarations depend on."""
        if self.adopts:
            self.numbers.adopt(body)
        body = self.numbers.stmt(body)
        self.numbers.bind_ranges(self.analyzer)
        for var in {v for p in params if tirx.is_buffer_var(p) for d in p.shape for v in collect(d, tirx.Var)}:
            dtype = nodes.dtype_of(var)
            most = tirx.IntImm(dtype, 2**31 - 1 if dtype == "int32" else 2**62)
            self.analyzer.bind(var, ir.Range.from_min_extent(nodes.zero(dtype), most), True)
        for kind, axis, var in self.numbers.used():
            if self.adopts:
                self.writer.name(var)
            else:
                self.writer.give(var, self.number(kind, axis))
        accessed = [x for c in collect(body, ir.Call) if nodes.is_tile_call(c) for x in self.accessed_buffers(c)]
        self.wide |= {b for b, size in accessed if size * 8 > bits_of(nodes.element_type(b))}
        for view in collect(body, tirx.DeclBuffer):
            size = bits_of(nodes.element_type(view.buffer))
            self.wide |= {b for b in collect(view.data, tirx.Var) if _is_smaller(b, size)}
        return body

    def number(self, kind: str, axis: int) -> str:
        """Print a coordinate: ``"thread_index"`` in the block, or ``"block_index"`` in the grid, along an axis."""
        raise NotExpressible(what=f"the {kind} along axis {axis}", dialect=self.dialect)

    def accessed_buffers(self, call: Call) -> list[tuple[Any, int]]:
        """Return the buffers that a call accesses, with the bytes per access."""
        name = nodes.operator_name(call)
        if name == "tile.address" and attribute(call, attributes.WORDS) is not None:
            return [(call.args[0].source, 4)]
        if name != "tile.move":
            return []
        return [(load.source, int(nodes.as_int(call.attrs[attributes.BYTES]))) for load in call.args]

    def before(self, params: Sequence[Var]) -> list[str]:
        """Return the lines before the kernel, when its body is printed."""
        return self.prelude.splitlines()

    def head(self, name: str, params: Sequence[Var]) -> str:
        """Print the kernel's head up to the opening brace, wrapped if it is long."""
        given = [self.parameter(p) for p in params]
        given += [self.constant(p, self.constants[key]) for key, p in self.launch.constants.items()]
        line = f"{name}({', '.join(given)})"
        return line if len(line) <= _WIDTH else f"{name}(\n" + ",\n".join(f"    {text}" for text in given) + "\n)"

    def constant(self, p: ParamFact, name: str) -> str:
        """Print the declaration of a constant of the launch, a parameter by value."""
        raise NotExpressible(what="a descriptor of a tensor", dialect=self.dialect, where=self.launch.where)

    def first(self, params: Sequence[Var]) -> list[str]:
        """Return the first lines of the printed body: shared memory and coordinates."""
        lines = [self.slab.format(bytes=self.launch.shared_bytes)] if self.launch.shared_bytes else []
        if self.adopts:
            lines += [
                f"const int {self.writer.name(v)} = {self.number(kind, d)};" for kind, d, v in self.numbers.used()
            ]
        return lines

    def lines_at(self, before: int, head: int) -> dict[str, Attribute]:
        """Return attributes for locations in the text, given the lines before and of the head."""
        return {}

    def parameter(self, p: Var) -> str:
        """Print one parameter, constant if read-only and qualified if it does not alias."""
        name = self.writer.name(p)
        if not tirx.is_buffer_var(p):
            return f"{self.type(nodes.dtype_of(p))} {name}"
        restrict = f"{self.restrict} " if self.restrict and str(p.name) not in self.launch.aliased else ""
        return f"{self.pointer(p)} {restrict}{name}"

    def pointer(self, buffer: BufferVar) -> str:
        """Return the type of a pointer to the elements of a buffer."""
        const = "const " if buffer in self.readonly else ""
        return f"{self.in_space(buffer)}{const}{self.type(nodes.element_type(buffer))}*"

    def in_space(self, buffer: BufferVar) -> str:
        """Return the words for a buffer's address space, with a blank behind them."""
        word = self.spaces[self.space(buffer)]
        return f"{word} " if word else ""

    def space(self, buffer: BufferVar) -> str:
        """Return a buffer's address space: ``"global"``, ``"shared"`` or ``"local"``."""
        found = self._spaces.get(buffer)
        if found is None:
            raise InternalError(stage=f"{self.dialect} text", detail=f"{buffer.name} is used before it is declared")
        return found

    # Statements

    def stmt(self, s: Stmt) -> None:
        """Write one statement, preceded by the user's line if requested."""
        where = nodes.where_of(s) if self.line_info else None
        if where is not None and not isinstance(s, (tirx.SeqStmt, tirx.AttrStmt)):
            if where != self._commented:
                file = where.file.encode("ascii", "backslashreplace").decode("ascii")
                self.writer.line(f"// {file}:{where.line}")
            self._commented = where
        super().stmt(s)

    def write_For(self, s: Stmt) -> None:
        """Write a counted loop, with its unroll factor if it has one."""
        partly = s.kind != tirx.ForKind.UNROLLED and annotation(s, attributes.UNROLL_FACTOR) is not None
        if partly or s.kind == tirx.ForKind.VECTORIZED:
            self.unroll(s)
        self._order.enter(s)
        super().write_For(s)
        self._order.leave()

    def write_Bind(self, s: Stmt) -> None:
        """Write a constant; of an address, the integer, which views of it cast."""
        if nodes.dtype_of(s.var) == "handle":
            self._spaces[s.var] = "global"
            address = self.assigned(s.value.args[0])
            self.writer.line(f"const {self.type('int64')} {self.writer.name(s.var)} = {address};")
            return
        self._order.bind(s)
        super().write_Bind(s)

    def wide_symbols(self, buffer: BufferVar) -> bool:
        """Whether products of 32-bit symbols in the shape of a buffer may exceed 32 bits."""
        # No launch checks the extents of a tensor at an address.
        wide = self.launch.offset_bits == 64 or buffer in self._addressed
        return wide and self._spaces.get(buffer) == "global"

    def offset(self, buffer: BufferVar, indices: Any, dims: range | None = None) -> Expr:
        """Return the offset of an element in its buffer, or along some dimensions."""
        found = super().offset(buffer, indices, dims)
        return self._order.sorted(found) if self.orders_indices and self._spaces.get(buffer) == "global" else found

    def write_AllocBuffer(self, s: Stmt) -> None:
        """Declare a variable, an array in registers, or a part of the block's shared memory."""
        buffer, scope = s.buffer, nodes.scope_of(s.buffer)
        element = self.type(nodes.element_type(buffer))
        if scope in _SHARED:
            self._spaces[buffer] = "shared"
            offset = (dict(s.annotations) if s.annotations else {}).get("tile.offset")
            if offset is None or not self.launch.shared_bytes:
                raise InternalError(
                    stage=f"{self.dialect} text", detail=f"{buffer.name} has no offset in shared memory"
                )
            at = nodes.as_int(offset)
            address = wrapped(Text(f"smem + {at}", COMPARE), UNARY) if at else "smem"
            kind = self.pointer(buffer)
            self.writer.line(f"{kind} const {self.writer.name(buffer)} = ({kind}){address};")
            return
        if not scope.startswith("local"):
            raise NotExpressible(what=f"storage of scope {scope}", dialect=self.dialect)
        self._spaces[buffer] = "local"
        size = math.prod(nodes.shape_of(buffer))
        if size == 1:
            self.single.add(buffer)
            self.writer.line(f"{element} {self.writer.name(buffer)};")
            return
        self.writer.line(f"{self.registers(s)}{element} {self.writer.name(buffer)}[{size}];")

    def registers(self, s: Stmt) -> str:
        """Return the prefix of the declaration of an array in registers."""
        return f"{self.aligned} " if self.aligned and s.buffer in self.wide else ""

    def write_DeclBuffer(self, s: Stmt) -> None:
        """Declare a view: another name and element type of an array's memory."""
        base = s.data.args[0] if isinstance(s.data, ir.Call) else s.data
        if base in self._addressed or not tirx.is_buffer_var(base):
            self._addressed.add(s.buffer)
        self._spaces[s.buffer] = self.space(base)
        if base in self.readonly:
            self.readonly.add(s.buffer)
        address = f"&{self.writer.name(base)}" if base in self.single else self.writer.name(base)
        kind = self.pointer(s.buffer)
        self.writer.line(f"{kind} const {self.writer.name(s.buffer)} = ({kind}){address};")

    def write_Evaluate(self, s: Stmt) -> None:
        """Write an expression for its effect."""
        if nodes.is_tile_call(s.value):
            method: Callable[[Any], None] | None = getattr(self, "write_" + nodes.operator_name(s.value)[5:], None)
            if method is not None:
                method(s)
                return
        if nodes.operator_name(s.value) != "assume":
            super().write_Evaluate(s)

    def write_move(self, s: Stmt) -> None:
        """Write one access that moves several elements."""
        to, source = s.value.args
        kind = self.vectors[int(nodes.as_int(s.value.attrs[attributes.BYTES]))]
        left = f"({self.in_space(to.source)}{kind}*){wrapped(self.address(to), UNARY)}"
        right = f"({self.in_space(source.source)}const {kind}*){wrapped(self.address(source), UNARY)}"
        self.writer.line(f"*{left} = *{right};")

    def write_sync_threads(self, s: Stmt) -> None:
        """Write a barrier of the block."""
        self.writer.line(self.barrier)

    def write_sync_part(self, s: Stmt) -> None:
        """Write a barrier of a part of the block's threads.

        Raises
        ------
        NotExpressible
            If the language has none.
        """
        raise NotExpressible(dialect=self.dialect, what="a barrier of a part of a block", where=nodes.where_of(s))

    def write_sync_warp(self, s: Stmt) -> None:
        """Write a barrier of the warp."""
        self.writer.line(self.warp_barrier)

    def write_async_commit(self, s: Stmt) -> None:
        """Write nothing: copies are complete when they have been executed."""

    def write_async_wait(self, s: Stmt) -> None:
        """Write nothing, see ``write_async_commit``."""

    def write_launch_wait(self, s: Stmt) -> None:
        """Write nothing: launches run one after the other."""

    def write_launch_trigger(self, s: Stmt) -> None:
        """Write nothing, see ``write_launch_wait``."""

    def write_print(self, s: Stmt) -> None:
        """Refuse to print."""
        raise NotExpressible(what="T.print: kernels cannot print", dialect=self.dialect, where=nodes.where_of(s))

    def write_device_assert(self, s: Stmt) -> None:
        """Refuse to stop."""
        what = "T.device_assert: a kernel cannot stop itself"
        raise NotExpressible(what=what, dialect=self.dialect, where=nodes.where_of(s))

    # Expressions

    def element(self, buffer: BufferVar, indices: Any) -> str:
        """Print an element of a buffer; one of a single element is a variable."""
        return self.writer.name(buffer) if buffer in self.single else super().element(buffer, indices)

    def address(self, load: Expr) -> str:
        """Print the address of an element."""
        return Text(f"&{self.bare(load)}", UNARY)

    def call_tile_address(self, e: Call) -> str:
        """Print the address of an element."""
        return self.address(item(e.args, 0))

    def call_tile_descriptor(self, e: Call) -> str:
        """Print the address of a constant of the launch."""
        return Text(f"&{self.constants[key_of(e)]}", UNARY)

    def call_likely(self, e: Expr) -> str:
        """Print the condition itself."""
        return self.bare(e.args[0])


def _is_smaller(base: Var, bits: int) -> bool:
    return tirx.is_buffer_var(base) and bits_of(nodes.element_type(base)) < bits


def bits_of(dtype: str) -> int:
    """Return the bits of an element in memory."""
    return max(8, DTYPES[dtype].bits)
