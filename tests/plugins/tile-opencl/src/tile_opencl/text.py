"""OpenCL C: what differs from other languages of the C family."""

from __future__ import annotations

from typing import ClassVar

from tile_core.emit.kernel import launch_of, parameters_of
from tile_core.emit.kernel_printer import KernelPrinter
from tile_core.emit.tail import TextTarget
from tile_core.emit.text import UNARY, Text
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import attributes, nodes
from tile_core.passes.legalize_floats import Conversions
from tile_opencl.atomics import helper, split_byte
from tile_opencl.target import CAPABILITIES, EXTENSIONS
from tile_opencl.words import WORDS

_INTEGERS = {"int8": "char", "int16": "short", "int32": "int", "int64": "long"}
#: Elementary functions among these are of double: those of float are written out.
FUNCTIONS = "sqrt rsqrt floor ceil trunc fabs fma isnan isinf isfinite exp exp2 log log2 log10 sin cos pow erf".split()
#: A product and a sum are rounded one after the other.
CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"
_COORDINATES = {"thread_index": "get_local_id", "block_index": "get_group_id"}


class OpenClPrinter(KernelPrinter):
    """Print kernels in OpenCL C 1.2: the differences from C.

    Constructs that it lacks are refused."""

    dialect = "OpenCL C"
    prelude = "\n".join([f"#pragma OPENCL EXTENSION {name} : enable" for name in EXTENSIONS] + [CONTRACTION])
    types: ClassVar = {
        # Arrays of bool are no parameters in OpenCL C.
        "bool": "uchar", "float32": "float", "float64": "double", **_INTEGERS,
        **{f"u{name}": f"u{word}" for name, word in _INTEGERS.items()},
    }  # fmt: skip
    suffixes: ClassVar = {"int64": "L", "uint64": "UL", "uint32": "u"}
    calls: ClassVar = {"round": "rint", "nearbyint": "rint", **dict(zip(FUNCTIONS, FUNCTIONS, strict=True))}
    spaces: ClassVar = {"global": "global", "shared": "local", "local": ""}
    slab = "local uchar smem[{bytes}] __attribute__((aligned(16)));"
    aligned, restrict = "__attribute__((aligned(16)))", "restrict"
    vectors: ClassVar = {1: "uchar", **{n: f"uchar{n}" for n in (2, 4, 8, 16)}}
    barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    reserved = KernelPrinter.reserved | WORDS | {"smem"}

    def __init__(self, launch):
        super().__init__(launch)
        self.helpers = {}

    def entry_of(self, name):
        """Return the function's name, distinct from names of the library."""
        return f"{name}_kernel"

    def before(self, params):
        """Return the lines before the kernel: the functions that it calls."""
        return [*super().before(params), *"".join(self.helpers.values()).splitlines()]

    def head(self, name, params):
        """Print the kernel's head."""
        size = ", ".join(map(str, self.launch.block))
        return super().head(f"kernel __attribute__((reqd_work_group_size({size}))) void {name}", params)

    def number(self, kind, axis):
        """Print a coordinate."""
        return Text(f"(int){_COORDINATES[kind]}({axis})", UNARY)

    def unroll(self, s):
        """Write nothing: version 1.2 has no hint for unrolling."""

    def call_tile_instruction(self, e):
        """Print a call of a function that a variant named; the text then has it."""
        name, args = str(e.attrs[attributes.NAME]), [self.bare(a) for a in e.args]
        if name == "volatile_load":
            load = e.args[0].args[0]
            return f"*(volatile {self.pointer(load.source)}){args[0]}"
        self.helpers.setdefault(name, helper(name, self.types))
        return f"{name}({', '.join(args)})"

    def call_reinterpret(self, e):
        """Print the bits of a value as another type."""
        return f"as_{self.type(nodes.dtype_of(e))}({self.exactly(e.args[0])})"

    def call_popcount(self, e):
        """Print the number of bits that are set."""
        return f"({self.type(nodes.dtype_of(e))})popcount({self.exactly(e.args[0])})"

    def exactly(self, x):
        """Print a value with a cast to its type: C promotes small integers."""
        return f"({self.type(nodes.dtype_of(x))})({self.bare(x)})"


def emit(plan, ctx):
    """Return the text of a plan whose passes have all run."""
    launch = launch_of(plan)
    if launch.aliased:
        # A buffer has a size, and only the address of a pointer is known.
        raise NotExpressible(what="a parameter that is a raw pointer", dialect="OpenCL C", where=plan.program.where)
    return OpenClPrinter(launch).kernel(plan.program.name, parameters_of(plan), plan.body)


#: Floats without a type are stored as codes and computed with in float32; elementary functions are written out.
TEXT = TextTarget(emit, native=CAPABILITIES.native_dtypes, conversions=Conversions(split=split_byte), elementary=False)
