"""CUDA C++ as a dialect of the C family: what differs from plain C."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tile_core.analysis.proofs import linear_parts
from tile_core.compat.tvm import ir, tirx
from tile_core.emit.c_family import CFamilyEmitter, Emitted
from tile_core.emit.text import COMPARE, UNARY, Text, infix, wrapped
from tile_core.errors.base import InternalError, Where
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_core.ir.visit import annotation, collect
from tile_core.numerics.codecs import encode
from tile_core.simt.memory.alignment import strides_of
from tile_cuda.emit import places
from tile_cuda.emit.debug import DebugStatements
from tile_cuda.emit.functions import RESERVED
from tile_cuda.emit.mathematics import MathCalls
from tile_cuda.emit.prepare import Prepared
from tile_cuda.emit.warp import WarpCalls
from tile_cuda.ptx import TABLE, instruction

_HALVES = {"float16": "f16", "bfloat16": "bf16"}
_VECTORS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}
_WIDTH = 120
_SHARED = ("shared", "shared.dyn")
_INFINITE = {
    "float32": ("__int_as_float", {"nan": "0x7fc00000", "inf": "0x7f800000", "-inf": "0xff800000"}),
    "float64": ("__longlong_as_double",
                {"nan": "0x7ff8000000000000", "inf": "0x7ff0000000000000", "-inf": "0xfff0000000000000"}),
}  # fmt: skip


class CudaPrinter(WarpCalls, MathCalls, DebugStatements, CFamilyEmitter):
    """Prints the program of one thread.

    Attributes
    ----------
    functions
        Names of the functions of the instruction table that the text calls.
    storage
        Names of the types of 16-bit floats that it mentions.
    readonly
        Buffers that the text never writes.
    aliased
        Names of parameters that may share memory with others.
    prepared
        What is known before the first line.
    """

    reserved: ClassVar[frozenset[str]] = CFamilyEmitter.reserved | RESERVED | frozenset(TABLE)
    types: ClassVar[dict[str, str]] = {**CFamilyEmitter.types, "uint32": "unsigned", **_HALVES}

    def __init__(self, arch: str, fast_math: bool, line_info: bool) -> None:
        super().__init__()
        self.arch, self.fast_math, self.line_info = arch, fast_math, line_info
        self.functions: set[str] = set()
        self.storage: set[str] = set()
        self.readonly: set[Any] = set()
        self.aliased: frozenset[str] = frozenset()
        self.prepared = Prepared(None)
        self._single: set[Any] = set()
        self._constants: set[Any] = set()
        #: What each turn of a loop binds, and how many loops the statement stands in.
        self._changing: set[Any] = set()
        self._loops = 0
        self._head = ""
        self._commented: Where | None = None
        self._slab = False

    @property
    def dialect(self) -> str:
        """Name of the language, for messages."""
        return "CUDA C++"

    def type(self, dtype: str) -> str:
        """Return the name of an element type."""
        found = super().type(dtype)
        if dtype in _HALVES:
            self.storage.add(found)
        return found

    def helper(self, name: str) -> str:
        """Return the name of a function of the table, which the text then has.

        Raises
        ------
        InstructionMissing
            If the architecture lacks it.
        """
        instruction(name, self.arch)
        self.functions.add(name)
        return name

    # The function

    def open(self, head: str, params: Sequence[str], *, uses_shared: bool) -> None:
        """Take the head of the function; it goes over several lines if it is long."""
        self._slab = uses_shared
        line = f"{head}({', '.join(params)})"
        self._head = line if len(line) <= _WIDTH else f"{head}(\n" + ",\n".join(f"    {p}" for p in params) + "\n)"

    def finish(self, body: Any) -> Emitted:
        """Print the function with a body that was prepared."""
        *first, last = self._head.splitlines()
        for line in first:
            self.writer.line(line)
        for var, _ in self.prepared.numbers:
            self.writer.name(var)
        with self.writer.block(last):
            if self._slab:
                self.writer.line("extern __shared__ __align__(1024) unsigned char smem[];")
            for var, builtin in self.prepared.numbers:
                self.writer.line(f"const int {self.writer.name(var)} = {builtin};")
            self.stmt(body)
        return Emitted(self.writer.text(), tuple(self.writer.origins))

    def parameter(self, p: Any) -> str:
        """Print one parameter: read-only arrays are constant, and arrays that share no memory say so."""
        name = self.writer.name(p)
        if not tirx.is_buffer_var(p):
            return f"{self.type(nodes.dtype_of(p))} {name}"
        restrict = "" if str(p.name) in self.aliased else "__restrict__ "
        return f"{'const ' if p in self.readonly else ''}{self.type(nodes.element_type(p))}* {restrict}{name}"

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
        """Write how often a loop should be written out."""
        factor = annotation(s, "tile.unroll_factor")
        self.writer.line("#pragma unroll" if factor is None else f"#pragma unroll {int(factor)}")

    def write_For(self, s: Any) -> None:
        """Write a counted loop; variables of those that are written out are constants where they occur."""
        if s.kind == tirx.ForKind.UNROLLED:
            self._constants.add(s.loop_var)
        partly = s.kind != tirx.ForKind.UNROLLED and annotation(s, "tile.unroll_factor") is not None
        if partly or s.kind == tirx.ForKind.VECTORIZED:
            self.unroll(s)
        self._loops += s.kind == tirx.ForKind.SERIAL
        super().write_For(s)
        self._loops -= s.kind == tirx.ForKind.SERIAL

    def write_Bind(self, s: Any) -> None:
        """Write a constant."""
        if self._loops:
            self._changing.add(s.var)
        super().write_Bind(s)

    def write_AllocBuffer(self, s: Any) -> None:
        """Declare a variable, an array in registers, or a part of the block's shared memory."""
        buffer, scope = s.buffer, nodes.scope_of(s.buffer)
        element = self.type(nodes.element_type(buffer))
        if scope in _SHARED:
            offset = (dict(s.annotations) if s.annotations else {}).get("tile.offset")
            if offset is None or not self._slab:
                raise InternalError(stage="cuda text", detail=f"{buffer.name} has no place in shared memory")
            at = nodes.as_int(offset)
            place = f"smem + {at}" if at else "smem"
            name = self.writer.name(buffer)
            self.writer.line(
                f"{element}* const {name} = ({element}*){wrapped(Text(place, COMPARE), UNARY) if at else place};"
            )
            return
        if not scope.startswith("local"):
            raise NotExpressible(what=f"storage of scope {scope}", dialect=self.dialect)
        size = math.prod(nodes.shape_of(buffer))
        if size == 1:
            self._single.add(buffer)
            self.writer.line(f"{element} {self.writer.name(buffer)};")
            return
        align = "__align__(16) " if buffer in self.prepared.aligned else ""
        # NVRTC 13.0 gets sums wrong in arrays of 16-bit elements that an unrolled loop updates at one variable index,
        # whatever the assembler's level (seen on an H200, 13.0.88); 13.5 does not. As volatile they are right in both.
        updated = bool(s.annotations) and "tile.updated" in s.annotations and nodes.element_type(buffer) in _HALVES
        self.writer.line(f"{'volatile ' if updated else ''}{align}{element} {self.writer.name(buffer)}[{size}];")

    def write_DeclBuffer(self, s: Any) -> None:
        """Declare a view: another name and element type of an array's memory."""
        base = s.data.args[0] if isinstance(s.data, ir.Call) else s.data
        if base in self.readonly:
            self.readonly.add(s.buffer)
        element = ("const " if base in self.readonly else "") + self.type(nodes.element_type(s.buffer))
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
        same = self.type(nodes.element_type(to.source)) == self.type(nodes.element_type(source.source))
        if same and size * 8 == _bits(nodes.element_type(to.source)):
            self.writer.line(f"{self.bare(to)} = {self.bare(source)};")
            return
        kind = _VECTORS[size]
        pair = [wrapped(self.place(x), UNARY) for x in (to, source)]
        self.writer.line(f"*({kind}*){pair[0]} = *(const {kind}*){pair[1]};")

    def write_sync_threads(self, s: Any) -> None:
        """Write a barrier of the block."""
        del s
        self.writer.line("__syncthreads();")

    def write_sync_warp(self, s: Any) -> None:
        """Write a barrier of the warp."""
        del s
        self.writer.line("__syncwarp();")

    # Expressions

    def element(self, buffer: Any, indices: Any) -> str:
        """Print an element of a buffer; one of a single element is a variable."""
        return self.writer.name(buffer) if buffer in self._single else super().element(buffer, indices)

    def call_tile_address(self, e: Any) -> str:
        """Print the address of an element."""
        return self.place(e.args[0])

    def place(self, load: Any) -> str:
        """Print the address of an element: of memory a pointer and what loops that are written out add to it.

        Added to the pointer, not to the index, the constants become offsets in the instructions.
        """
        buffer = load.source
        if nodes.scope_of(buffer) == "global":
            split = self._split(buffer, list(load.indices))
            if split is not None:
                indices, added = split
                return infix("+", Text(f"&{self.element(buffer, indices)}", UNARY), self.bare(added))
        return self._shared_place(load) or Text(f"&{self.bare(load)}", UNARY)

    def print_TensorLoad(self, e: Any) -> str:
        """Print a load of one element."""
        place = self._shared_place(e)
        return super().print_TensorLoad(e) if place is None else Text(f"*{place}", UNARY)

    def _shared_place(self, load: Any) -> str | None:
        """Print a place in shared memory by bytes, if its index changes in a loop in part (see ``places``)."""
        size, rest = divmod(_bits(nodes.element_type(load.source)), 8)
        if nodes.scope_of(load.source) not in _SHARED or rest:
            return None
        parts = places.apart(self.offset(load.source, load.indices), self._changing)
        if parts is None:
            return None
        moved, stays = self.analyzer.simplify(parts[0] * size), wrapped(self.bare(parts[1]), UNARY)
        added = f"(unsigned){wrapped(self.bare(moved), UNARY)} + (unsigned){stays} * {size}u"
        element = self.type(nodes.element_type(load.source))
        return Text(f"({element}*)((char*){self.writer.name(load.source)} + ({added}))", UNARY)

    def _split(self, buffer: Any, indices: list[Any]) -> tuple[list[Any], Any] | None:
        """Return indices without the variables of written out loops, and what these add in elements."""
        added: Any = None
        for d, (index, stride) in enumerate(zip(indices, strides_of(buffer), strict=True)):
            used = [v for v in set(collect(index, tirx.Var)) if v in self._constants]
            if not used or not isinstance(stride, int):
                continue
            parts = linear_parts(index, used)
            factors = [nodes.as_int(p) for p in parts[:-1]]
            if not parts or not all(isinstance(f, int) for f in factors):
                continue
            indices[d] = parts[-1]
            for v, f in zip(used, factors, strict=True):
                term = v * (f * stride)
                added = term if added is None else added + term
        return None if added is None else (indices, self.analyzer.simplify(added))

    def call_tile_instruction(self, e: Any) -> str:
        """Print a call of a function of the instruction table."""
        name = str(e.attrs["name"])
        parameters = instruction(name, self.arch).parameters
        if len(parameters) != len(e.args):
            detail = f"{name} takes {len(parameters)} operands, not {len(e.args)}"
            raise InternalError(stage="cuda text", detail=detail)
        args = [self._operand(p.parameter, a) for p, a in zip(parameters, e.args, strict=True)]
        text = f"{self.helper(name)}({', '.join(args)})"
        result, wanted = TABLE[name].result, nodes.dtype_of(e)
        return text if wanted in ("", "void", "handle") or self.type(wanted) == result else self._as(wanted, text)

    def _operand(self, parameter: str, arg: Any) -> str:
        """Print an operand of an instruction; an address as that of the registers or memory that it takes."""
        if not parameter.endswith("*") or not nodes.is_tile_call(arg, "address"):
            return self.bare(arg)
        wanted = parameter.removeprefix("const ").removesuffix("*")
        found = self.type(nodes.element_type(arg.args[0].source))
        text = self.bare(arg)
        return text if wanted in ("void", found) else f"({wanted}*){text}"

    def _as(self, dtype: str, text: str) -> str:
        return Text(f"({self.type(dtype)}){wrapped(text, UNARY)}", UNARY)

    def call_likely(self, e: Any) -> str:
        """Print the condition itself."""
        return self.bare(e.args[0])

    def call_popcount(self, e: Any) -> str:
        """Print the number of bits that are set."""
        dtype, bits = nodes.dtype_of(e.args[0]), _bits(nodes.dtype_of(e.args[0]))
        text = self.bare(e.args[0])
        if bits == 64:
            text = f"__popcll({text})"
        else:
            text = f"__popc({self._as(f'uint{bits}', text) if bits < 32 and dtype.startswith('int') else text})"
        return text if nodes.dtype_of(e) == "int32" else self._as(nodes.dtype_of(e), text)

    def call_reinterpret(self, e: Any) -> str:
        """Print the bits of a value as another type."""
        source, target = nodes.dtype_of(e.args[0]), nodes.dtype_of(e)
        text = self.bare(e.args[0])
        if source == target:
            return text
        through = {
            ("float32", "uint32"): "__float_as_uint", ("float32", "int32"): "__float_as_int",
            ("uint32", "float32"): "__uint_as_float", ("int32", "float32"): "__int_as_float",
            ("float64", "int64"): "__double_as_longlong", ("int64", "float64"): "__longlong_as_double",
        }  # fmt: skip
        if (source, target) in through:
            return f"{through[source, target]}({text})"
        if (source, target) == ("float64", "uint64"):
            return self._as("uint64", f"__double_as_longlong({text})")
        if (source, target) == ("uint64", "float64"):
            return f"__longlong_as_double({self._as('int64', text)})"
        stored = {"float16": "uint16", "bfloat16": "uint16"}
        if stored.get(source, source) == stored.get(target, target):
            return text
        return self._as(target, text)

    def print_FloatImm(self, e: Any) -> str:
        """Print a float constant; those of 16 bits are codes."""
        dtype = nodes.dtype_of(e)
        if dtype not in _HALVES:
            return super().print_FloatImm(e)
        code = int(encode(np.asarray(float(e.value)), dtype))
        return Text(f"({self.type(dtype)})0x{code:04x}", UNARY, inner=f"0x{code:04x}")

    def special(self, dtype: str, value: float) -> str:
        """Print NaN or an infinity."""
        function, codes = _INFINITE[dtype]
        return f"{function}({codes['nan' if math.isnan(value) else str(value)]})"

    def convert(self, text: str, source: str, target: str) -> str:
        """Print the conversion of a value between element types."""
        if source in _HALVES:
            return self._from_half(text, source, target)
        if target in _HALVES:
            return self._to_half(text, source, target)
        if target == "bool" and source.startswith("float"):
            return infix("!=", text, "0.0f" if source == "float32" else "0.0")
        return super().convert(text, source, target)

    def _from_half(self, text: str, source: str, target: str) -> str:
        if (source, target) == ("float16", "float64"):
            return f"{self.helper('cvt_f64_f16')}({text})"
        wide = f"{self.helper(f'cvt_f32_{_HALVES[source]}')}({text})"
        return wide if target == "float32" else self.convert(wide, "float32", target)

    def _to_half(self, text: str, source: str, target: str) -> str:
        """Print a conversion of one rounding: integers that float32 cannot hold overflow float16 anyway."""
        if source == "float64":
            return f"{self.helper(f'cvt_rn_{_HALVES[target]}_f64')}({text})"
        if target == "bfloat16" and source in ("int32", "uint32", "int64", "uint64"):
            return self._to_half(self._as("float64", text), "float64", target)
        wide = text if source == "float32" else self._as("float32", text)
        return f"{self.helper(f'cvt_rn_{_HALVES[target]}_f32')}({wide})"


def words(text: str) -> set[str]:
    """Return the words of a type's name."""
    return set(re.findall(r"\w+", text))


def _bits(dtype: str) -> int:
    return 8 if dtype == "bool" else int(re.findall(r"\d+", dtype)[0])
