"""HIP as a device language of the C family: what differs from plain C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tile_core.compat.types import BufferVar, Call, Var
from tile_core.emit.c_family import CPP_WORDS
from tile_core.emit.kernel import Launch
from tile_core.emit.kernel_printer import KernelPrinter
from tile_core.emit.text import UNARY, Text, infix, wrapped
from tile_core.ir import attributes, nodes
from tile_core.numerics.levels import STANDARD, STRICT
from tile_rocm_stub.emit import atomics
from tile_rocm_stub.emit.functions import ALONE, BYTES, FUSED, RESERVED, VIEW, declaration, of_library, prelude
from tile_rocm_stub.instructions import INSTRUCTIONS, Instruction

_INDICES = {"thread_index": "workitem", "block_index": "workgroup"}
_SPECIAL = {"float32": ("nanf", "inff"), "float64": ("nan", "inf")}


class HipPrinter(KernelPrinter):
    """Prints kernels.

    Parameters
    ----------
    launch, numerics
        See ``KernelPrinter``.

    Attributes
    ----------
    used_types, used_functions
        Names of vector types and of functions that the text has.
    views
        Arrays that are another name of an array's memory, whose type aliases others.
    """

    dialect: ClassVar[str] = "HIP"
    reserved: ClassVar[frozenset[str]] = KernelPrinter.reserved | CPP_WORDS | RESERVED | atomics.NAMES
    slab: ClassVar[str] = "extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];"
    aligned: ClassVar[str] = "alignas(16)"
    restrict: ClassVar[str] = "__restrict__"
    vectors: ClassVar[dict[int, str]] = {1: "unsigned char", 2: "v2", 4: "v4", 8: "v8", 16: "v16"}
    calls: ClassVar[dict[str, str]] = {
        **{name: f"__builtin_elementwise_{name}" for name in ("sqrt", "floor", "ceil", "trunc", "fma")},
        "round": "__builtin_elementwise_rint", "nearbyint": "__builtin_elementwise_rint",
        "fabs": "__builtin_elementwise_abs", "isnan": "__builtin_isnan", "isinf": "__builtin_isinf",
        "isfinite": "__builtin_isfinite",
    }  # fmt: skip

    def __init__(self, launch: Launch, *, numerics: str = STANDARD) -> None:
        super().__init__(launch, numerics=numerics)
        self.used_types: set[str] = set()
        self.used_functions: set[str] = set()
        self.views: set[BufferVar] = set()

    @property
    def barrier(self) -> str:  # type: ignore[override]
        """The statement at which threads of a block wait for each other."""
        return f"{self.helper('block_barrier')}();"

    @property
    def warp_barrier(self) -> str:  # type: ignore[override]
        """The statement at which lanes of a wavefront wait for each other."""
        return f"{self.helper('wave_barrier')}();"

    def helper(self, name: str) -> str:
        """Return the name of a function, which the text then has."""
        self.used_functions.add(name)
        if name.endswith("_f16x2"):
            self.used_types.add("f16x2")
        return name

    def vector(self, name: str) -> str:
        """Return the name of a vector type, which the text then has."""
        self.used_types.add(name)
        return name

    # The kernel

    def entry_of(self, name: str) -> str:
        """Return the function's name: none of C's library."""
        return f"{name}_kernel"

    def before(self, params: Sequence[Var]) -> list[str]:
        """Return the types and functions that the text uses, and an empty line after them."""
        known = ((name, declaration(name) or atomics.function(name)) for name in self.used_functions)
        more = {name: found for name, found in known if found is not None}
        return [*prelude(self.used_types, self.used_functions, more), ""]

    def head(self, name: str, params: Sequence[Var]) -> str:
        """Print the kernel's head."""
        return super().head(f'extern "C" __global__ void __launch_bounds__({self.launch.threads}) {name}', params)

    def number(self, kind: str, axis: int) -> str:
        """Print a coordinate."""
        return f"(int)__builtin_amdgcn_{_INDICES[kind]}_id_{'xyz'[axis]}()"

    def accessed_buffers(self, call: Call) -> list[tuple[Any, int]]:
        """Return the buffers that a call accesses, with the bytes per access."""
        found = super().accessed_buffers(call)
        instruction = _instruction(call)
        if instruction is not None:
            types = (instruction.d, instruction.a, instruction.b)
            found += [(a.args[0].source, min(16, BYTES[t])) for t, a in zip(types, call.args, strict=False)]
        return found

    def write_DeclBuffer(self, s: Any) -> None:
        """Declare a view, by a type that C allows to alias others."""
        self.views.add(s.buffer)
        super().write_DeclBuffer(s)

    def pointer(self, buffer: BufferVar) -> str:
        """Return the type of a pointer to the elements of a buffer."""
        if buffer not in self.views:
            return super().pointer(buffer)
        const = "const " if buffer in self.readonly else ""
        return f"{const}{self.vector(VIEW.format(self.type(nodes.element_type(buffer)).replace(' ', '_')))}*"

    def write_move(self, s: Any) -> None:
        """Write one access that moves several elements."""
        self.vector(self.vectors[int(nodes.as_int(s.value.attrs[attributes.BYTES]))])
        super().write_move(s)

    def first(self, params: Sequence[Var]) -> list[str]:
        """Print the body's first lines: fusing is allowed in the kernel, not in its functions."""
        return [*([] if self.numerics == STRICT else [FUSED]), *super().first(params)]

    # Expressions

    def rounded(self, name: str, e: Any) -> str:
        """Print an operation rounded to nearest, never fused with another one."""
        op, mode, dtype = name.split("_")[1:]
        if self.numerics == STRICT or mode != "rn" or op not in ALONE:
            return super().rounded(name, e)
        return f"{self.helper(f'ieee_{op}_f{dtype[5:]}')}({', '.join(self.bare(a) for a in e.args)})"

    def print_Call(self, e: Call) -> str:
        """Print a call of an operator; of float64, functions are those of AMD's library."""
        name, args = nodes.operator_name(e), list(e.args)
        if name == "call_pure_extern":
            name, args = str(args[0].value), args[1:]
        if name == "fmod":
            wide = nodes.dtype_of(e) == "float64"
            text = f"{self.helper('fmod_f64')}({', '.join(self.bare(a) for a in args)})"
            return text if wide else Text(f"({self.type(nodes.dtype_of(e))}){text}", UNARY)
        function = of_library(name) if nodes.dtype_of(e) == "float64" else None
        if function is None:
            return super().print_Call(e)
        return f"{self.helper(function)}({', '.join(self.bare(a) for a in args)})"

    def call_sigmoid(self, e: Call) -> str:
        """Print 1 / (1 + exp(-x)) of float64; others are written out."""
        power = f"{self.helper('__ocml_exp_f64')}(-{self.at(e.args[0], UNARY)})"
        return infix("/", "1.0", f"(1.0 + {power})")

    def call_tile_instruction(self, e: Call) -> str:
        """Print a matrix instruction, or a call of a function of the text."""
        name, instruction = str(e.attrs[attributes.NAME]), _instruction(e)
        if instruction is None:
            return f"{self.helper(name)}({', '.join(self.bare(a) for a in e.args)})"
        d, a, b = (
            f"*({'const ' * (n > 0)}{self._operand(t)}*){wrapped(self.bare(x), UNARY)}"
            for n, (t, x) in enumerate(zip((instruction.d, instruction.a, instruction.b), e.args, strict=False))
        )
        flags = ["0", "0", "0"]
        if instruction.sparse:  # the index register; with CBSZ 0, ABID chooses a part of it
            flags = [self.bare(e.args[3]), "0", str(e.attrs[attributes.NAME]).rpartition("_set")[2]]
        return f"{d} = {instruction.builtin}({a}, {b}, {d}, {', '.join(flags)})"

    def _operand(self, name: str) -> str:
        return name if name in ("float", "double") else self.vector(name)

    def call_tile_shuffle(self, e: Call) -> str:
        """Print an exchange of a word between lanes."""
        _, value, by = e.args
        helper = self.helper("lane_" + str(e.attrs[attributes.MODE]))
        lane = f"{helper}({self.bare(by)}, {e.attrs[attributes.WIDTH]})"
        return Text(f"(unsigned)__builtin_amdgcn_ds_bpermute({lane}, (int){self.at(value, UNARY)})", UNARY)

    def call_tile_vote(self, e: Call) -> str:
        """Print a vote of lanes: lanes that do not take part count for nothing."""
        mode, condition = str(e.attrs[attributes.MODE]), e.args[1]
        if mode == "all":
            return infix("==", f"__builtin_amdgcn_ballot_w64(!{self.at(condition, UNARY)})", "0")
        ballot = f"__builtin_amdgcn_ballot_w64({self.bare(condition)})"
        return infix("!=", ballot, "0") if mode == "any" else ballot

    def call_reinterpret(self, e: Call) -> str:
        """Print the bits of a value as another type."""
        return f"__builtin_bit_cast({self.type(nodes.dtype_of(e))}, {self.bare(e.args[0])})"

    def call_popcount(self, e: Call) -> str:
        """Print the number of bits that are set."""
        x = e.args[0]
        unsigned = f"u{nodes.dtype_of(x)}".replace("uu", "u")
        text = f"__builtin_popcountll(({self.type(unsigned)}){self.at(x, UNARY)})"
        return Text(f"({self.type(nodes.dtype_of(e))}){text}", UNARY)

    def call_rsqrt(self, e: Call) -> str:
        """Print a reciprocal square root."""
        return infix("/", "1.0", f"__builtin_elementwise_sqrt({self.bare(e.args[0])})")

    def special(self, dtype: str, value: float) -> str:
        """Print NaN or an infinity."""
        nan, inf = _SPECIAL[dtype]
        if math.isnan(value):
            return f'__builtin_{nan}("")'
        return Text(f"{'-' * (value < 0)}__builtin_{inf}()", UNARY)


def _instruction(call: Call) -> Instruction | None:
    """Return the matrix instruction that a call executes."""
    if not nodes.is_tile_call(call, "instruction"):
        return None
    return INSTRUCTIONS.get(str(call.attrs[attributes.NAME]).partition("_set")[0])
