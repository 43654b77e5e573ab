"""CUDA C++ as a device language of the C family: what differs from plain C."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tile_core.abi.kernel_text import ParamFact
from tile_core.analysis.affine import linear_form
from tile_core.compat.structural import attribute, item, items
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.emit.kernel import Launch
from tile_core.emit.kernel_printer import KernelPrinter, bits_of
from tile_core.emit.text import UNARY, Text, infix, wrapped
from tile_core.errors.base import InternalError
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import BYTES, NAME, UNROLL_FACTOR, UPDATED
from tile_core.ir.visit import annotation, collect
from tile_core.numerics.codecs import encode
from tile_core.numerics.levels import STANDARD
from tile_core.simt.memory.alignment import strides_of
from tile_cuda.emit import shared_addresses
from tile_cuda.emit.debug import DebugStatements
from tile_cuda.emit.exact_factors import integral_quotients
from tile_cuda.emit.functions import LINKED, RESERVED
from tile_cuda.emit.masked_shifts import MaskedShifts
from tile_cuda.emit.mathematics import MathCalls
from tile_cuda.emit.phase_barriers import PhaseBarriers
from tile_cuda.emit.warp import WarpCalls
from tile_cuda.ptx import TABLE, instruction, prelude
from tile_cuda.ptx.bulk import SEND_BYTES
from tile_cuda.ptx.instruction import CHUNKS
from tile_cuda.ptx.memory import MOST_OPEN
from tile_cuda.ptx.registers import is_set_name

_HALVES = {"float16": "f16", "bfloat16": "bf16"}
_SHARED = ("shared", "shared.dyn")
_TENSOR_MAP = "struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };"
_INDICES = {"thread_index": "threadIdx", "block_index": "blockIdx"}
#: Bytes of what an instruction's addresses point to.
_SIZES = {"unsigned": 4, "int": 4, "float": 4, "double": 8, "unsigned long long": 8, "unsigned short": 2}
_INFINITE = {
    "float32": ("__int_as_float", {"nan": "0x7fc00000", "inf": "0x7f800000", "-inf": "0xff800000"}),
    "float64": ("__longlong_as_double",
                {"nan": "0x7ff8000000000000", "inf": "0x7ff0000000000000", "-inf": "0xfff0000000000000"}),
}  # fmt: skip


class CudaPrinter(MaskedShifts, WarpCalls, MathCalls, DebugStatements, PhaseBarriers, KernelPrinter):
    """Prints kernels.

    Parameters
    ----------
    launch, numerics, line_info, approximate
        See ``KernelPrinter``.
    arch
        The architecture: ``"sm_80"``, ``"sm_90a"``.
    limited
        Whether the text limits the registers of a thread: the compiler ignores the limit if the text also has the
        bounds of the launch.

    Attributes
    ----------
    functions
        Names of the functions of the instruction table that the text calls.
    storage
        Names of the types of 16-bit floats that it mentions.
    """

    reserved: ClassVar[frozenset[str]] = KernelPrinter.reserved | RESERVED | frozenset(TABLE)
    types: ClassVar[dict[str, str]] = {**KernelPrinter.types, "uint32": "unsigned", **_HALVES}
    slab: ClassVar[str] = "extern __shared__ __align__(1024) unsigned char smem[];"
    aligned: ClassVar[str] = "__align__(16)"
    restrict: ClassVar[str] = "__restrict__"
    vectors: ClassVar[Mapping[int, str]] = {
        1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4",
    }  # fmt: skip
    barrier: ClassVar[str] = "__syncthreads();"
    warp_barrier: ClassVar[str] = "__syncwarp();"
    orders_indices: ClassVar[bool] = False  # `place` adds what unrolled loops change to the pointer
    dialect: ClassVar[str] = "CUDA C++"

    def __init__(
        self, launch: Launch, arch: str = "sm_80", *, numerics: str = STANDARD, line_info: bool = False,
        limited: bool = False, approximate: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(launch, numerics=numerics, line_info=line_info, approximate=approximate)
        self.arch, self.limited = arch, limited
        self.functions: set[str] = set()
        self.storage: set[str] = set()
        #: Variables of unrolled loops.
        self._constants: set[Any] = set()
        #: The bindings of each iteration of a loop, and the depth of the loop nest.
        self._changing: set[Any] = set()
        self._loops = 0

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

    # The kernel

    def prepared(self, params: Sequence[Var], body: Stmt) -> Stmt:
        """Record also the quotients that become integers."""
        body = super().prepared(params, body)
        self.integral = integral_quotients(body)
        return body

    def entry_of(self, name: str) -> str:
        """Return the function's name: not one that the compiler declares with C linkage."""
        return f"{name}_kernel" if name.lstrip("_") in LINKED else name

    def before(self, params: Sequence[Var]) -> list[str]:
        """Return the types and functions that the text uses, and an empty line after them."""
        mentioned = self.storage.union(*map(_storage_of, self.functions))
        types = [f"typedef unsigned short {name};" for name in _HALVES.values() if name in mentioned]
        maps = [_TENSOR_MAP] if self.launch.constants else []
        lines = [*types, *maps, *prelude(self.functions, self.arch)]
        return [*lines, ""] if lines else []

    def head(self, name: str, params: Sequence[Var]) -> str:
        """Print the kernel's head."""
        # The assembler needs the initial register count of a thread if it gives some back or takes more.
        alone = ", 1" if any(map(is_set_name, self.functions)) else ""
        bounds = "" if self.limited else f"__launch_bounds__({self.launch.threads}{alone}) "
        # An H100 calls a copy from shared memory to that of a cluster an illegal instruction in a launch without
        # clusters (tests/vectors/matrix.py). With clusters of one block there are some.
        if self.launch.cluster != (1, 1, 1) or SEND_BYTES in self.functions:
            bounds += "__cluster_dims__({}, {}, {}) ".format(*self.launch.cluster)
        return super().head(f'extern "C" __global__ void {bounds}{name}', params)

    def constant(self, p: ParamFact, name: str) -> str:
        """Print the declaration of a tensor map, which instructions address where the launch put it."""
        return f"const __grid_constant__ CUtensorMap {name}"

    def number(self, kind: str, axis: int) -> str:
        """Print a coordinate."""
        return f"{_INDICES[kind]}.{'xyz'[axis]}"

    def accessed_buffers(self, call: Call) -> list[tuple[Any, int]]:
        """Return buffers that a call accesses, with the bytes that it accesses at a time."""
        found = super().accessed_buffers(call)
        name = str(attribute(call, NAME)) if nodes.is_tile_call(call, "instruction") else ""
        if name in TABLE:
            for operand, arg in zip(TABLE[name].parameters, items(call.args), strict=False):
                if nodes.is_tile_call(arg, "address"):
                    found.append((item(arg.args, 0).source, _SIZES.get(operand.element, 0)))
        return found

    # Statements

    def unroll(self, s: Stmt) -> None:
        """Write the unroll factor of a loop."""
        factor = annotation(s, UNROLL_FACTOR)
        self.writer.line("#pragma unroll" if factor is None else f"#pragma unroll {int(factor)}")

    def write_For(self, s: Stmt) -> None:
        """Write a counted loop; variables of unrolled loops are constants where they occur."""
        if s.kind == tirx.ForKind.UNROLLED:
            self._constants.add(s.loop_var)
        self._loops += s.kind == tirx.ForKind.SERIAL
        super().write_For(s)
        self._loops -= s.kind == tirx.ForKind.SERIAL

    def write_Bind(self, s: Stmt) -> None:
        """Write a constant."""
        if self._loops:
            self._changing.add(s.var)
        super().write_Bind(s)

    def registers(self, s: Stmt) -> str:
        """Return the first words of the declaration of an array in registers."""
        # NVRTC 13.0 miscompiles arrays of 16-bit elements that an unrolled loop updates at one variable index,
        # whatever the assembler's level (seen on an H200, 13.0.88); 13.5 does not. As volatile they are right in both.
        updated = bool(s.annotations) and UPDATED in s.annotations and nodes.element_type(s.buffer) in _HALVES
        return ("volatile " if updated else "") + super().registers(s)

    def write_move(self, s: Stmt) -> None:
        """Write one access that moves several elements."""
        to, source = s.value.args
        kinds = [nodes.element_type(x.source) for x in (to, source)]
        if self.type(kinds[0]) == self.type(kinds[1]) and int(nodes.as_int(s.value.attrs[BYTES])) * 8 == bits_of(
            kinds[0]
        ):
            self.writer.line(f"{self.bare(to)} = {self.bare(source)};")
        else:
            super().write_move(s)

    def write_sync_part(self, s: Stmt) -> None:
        """Write a barrier of a part of the block's threads."""
        self.stmt(calls.execute("bar_sync", list(s.value.args), s.span))

    def write_async_commit(self, s: Stmt) -> None:
        """End a group of asynchronous copies."""
        self.stmt(calls.execute("cp_async_commit_group", [], s.span))

    def write_async_wait(self, s: Stmt) -> None:
        """Wait for groups of asynchronous copies; waiting for more than requested is also correct."""
        still_open = min(int(nodes.as_int(s.value.args[0])), MOST_OPEN)
        self.stmt(calls.execute(f"cp_async_wait_group_{still_open}", [], s.span))

    # Expressions

    def address(self, load: Expr) -> str:
        """Print the address of an element: a pointer plus the offsets that unrolled loops add.

        Added to the pointer, not to the index, the constants become offsets in the instructions.
        """
        buffer = load.source
        if nodes.scope_of(buffer) == "global":
            split = self._split(buffer, list(load.indices))
            if split is not None:
                indices, added = split
                return infix("+", Text(f"&{self.element(buffer, indices)}", UNARY), self.bare(added))
        return self._shared_address(load) or Text(f"&{super().print_TensorLoad(load)}", UNARY)

    def print_TensorLoad(self, e: Expr) -> str:
        """Print a load of one element."""
        address = self._shared_address(e)
        return super().print_TensorLoad(e) if address is None else Text(f"*{address}", UNARY)

    def _shared_address(self, load: Expr) -> str | None:
        """Print an address in shared memory in bytes if its index changes in a loop."""
        size, rest = divmod(bits_of(nodes.element_type(load.source)), 8)
        if nodes.scope_of(load.source) not in _SHARED or rest or self._changing.isdisjoint(collect(load, tirx.Var)):
            return None
        parts = shared_addresses.apart(self.offset(load.source, load.indices), self._changing)
        if parts is None:
            return None
        moved, stays = self.analyzer.simplify(parts[0] * size), wrapped(self.bare(parts[1]), UNARY)
        added = f"(unsigned){wrapped(self.bare(moved), UNARY)} + (unsigned){stays} * {size}u"
        element = self.type(nodes.element_type(load.source))
        return Text(f"({element}*)((char*){self.writer.name(load.source)} + ({added}))", UNARY)

    def _split(self, buffer: BufferVar, indices: list[Expr]) -> tuple[list[Any], Any] | None:
        """Return indices without the variables of unrolled loops, and the offset of these in elements."""
        added: Any = None
        for d, (index, stride) in enumerate(zip(indices, strides_of(buffer), strict=True)):
            used = [v for v in set(collect(index, tirx.Var)) if v in self._constants]
            if not used or not isinstance(stride, int):
                continue
            form = linear_form(index, used)
            if form is None or not self._is_near([(v, f * stride) for v, f in zip(used, form.steps, strict=True)]):
                continue
            indices[d] = form.rest
            for v, f in zip(used, form.steps, strict=True):
                term = v * (f * stride)
                added = term if added is None else added + term
        return None if added is None else (indices, self.analyzer.simplify(added))

    def _is_near(self, terms: list[tuple[Var, int]]) -> bool:
        """Whether a sum of multiples of variables that are not negative fits into 32 bits."""
        return sum(abs(by) * self.analyzer.const_int_bound(v).max_value for v, by in terms) < 2**31

    def call_tile_instruction(self, e: Call) -> str:
        """Print a call of a function of the instruction table."""
        name, operands = str(attribute(e, NAME)), items(e.args)
        parameters = instruction(name, self.arch).parameters
        if len(parameters) != len(operands):
            detail = f"{name} takes {len(parameters)} operands, not {len(operands)}"
            raise InternalError(stage="cuda text", detail=detail)
        args: list[str] = []
        chunks = 0
        for p, a in zip(parameters, operands, strict=True):
            if p.role in ("matrix", "tensor"):
                a, chunks = shared_addresses.without_chunks(a)
            args.append(str(chunks) if p.name.endswith(f"_{CHUNKS}") else self._operand(p.parameter, a))
        text = f"{self.helper(name)}({', '.join(args)})"
        result, wanted = TABLE[name].result, nodes.dtype_of(e)
        return text if wanted in ("", "void", "handle") or self.type(wanted) == result else self._as(wanted, text)

    def _operand(self, parameter: str, arg: Expr) -> str:
        """Print an operand of an instruction; an address in the form that the instruction takes."""
        if not parameter.endswith("*") or not nodes.is_tile_call(arg, "address"):
            return self.bare(arg)
        wanted = parameter.removeprefix("const ").removesuffix("*")
        found = self.type(nodes.element_type(item(arg.args, 0).source))
        text = self.bare(arg)
        return text if wanted in ("void", found) else f"({wanted}*){text}"

    def _as(self, dtype: str, text: str) -> str:
        return Text(f"({self.type(dtype)}){wrapped(text, UNARY)}", UNARY)

    def call_popcount(self, e: Expr) -> str:
        """Print the number of bits that are set."""
        dtype, bits = nodes.dtype_of(e.args[0]), bits_of(nodes.dtype_of(e.args[0]))
        text = self.bare(e.args[0])
        if bits == 64:
            text = f"__popcll({text})"
        else:
            text = f"__popc({self._as(f'uint{bits}', text) if bits < 32 and dtype.startswith('int') else text})"
        return text if nodes.dtype_of(e) == "int32" else self._as(nodes.dtype_of(e), text)

    def call_reinterpret(self, e: Call) -> str:
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

    def print_FloatImm(self, e: Expr) -> str:
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


def _storage_of(name: str) -> set[str]:
    """Return the types of 16-bit floats that a function and those that it calls mention."""
    found = TABLE[name]
    own = {word for o in found.operands for word in re.findall(r"\w+", o.element) if word in _HALVES.values()}
    return own.union(*map(_storage_of, found.needs))
