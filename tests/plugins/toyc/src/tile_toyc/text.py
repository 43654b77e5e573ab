"""Toy C: what differs from other languages of the C family."""

from __future__ import annotations

from typing import ClassVar

from tile_core.emit.c_family import CPP_WORDS
from tile_core.emit.kernel import launch_of, parameters_of
from tile_core.emit.kernel_printer import KernelPrinter
from tile_core.emit.tail import TextTarget
from tile_core.ir import nodes
from tile_core.passes.legalize_floats import Conversions
from tile_toyc.atomics import split_byte
from tile_toyc.target import CAPABILITIES, FLOATS, INTEGERS

#: Words and functions of the language, which no variable may be called.
WORDS = frozenset(
    """
    kernel device group restrict aligned16 smem shared_memory thread_index block_index barrier warp_barrier bits_as
    popcount shuffle_idx shuffle_up shuffle_down shuffle_bfly vote_ballot vote_any vote_all atomic_add atomic_max
    atomic_min atomic_and atomic_or atomic_xor atomic_load atomic_store atomic_low_half atomic_high_half simt toy
    """.split()
)


class ToyPrinter(KernelPrinter):
    """Print kernels in toy C: the differences from C.

    Constructs that toy C lacks are refused."""

    dialect = "toy C"
    types: ClassVar = {"bool": "bool", **{name: name[0] + name.strip("uintfloa") for name in (*INTEGERS, *FLOATS)}}
    calls: ClassVar = {name: name for name in (
        "sqrt", "rsqrt", "floor", "ceil", "trunc", "fabs", "fma", "isnan", "isinf", "isfinite",
    )} | {"round": "rint", "nearbyint": "rint"}  # fmt: skip
    spaces: ClassVar = {"global": "device", "shared": "group", "local": ""}
    slab = "group u8* const smem = shared_memory();"
    aligned, restrict = "aligned16", "restrict"
    vectors: ClassVar = {n: f"v{n}" for n in (1, 2, 4, 8, 16)}
    barrier, warp_barrier = "barrier();", "warp_barrier();"
    reserved = KernelPrinter.reserved | CPP_WORDS | WORDS | {*types.values(), *vectors.values(), *calls.values()}

    def entry_of(self, name):
        """Return the function's name, distinct from names of C's library."""
        return f"{name}_kernel"

    def head(self, name, params):
        """Print the kernel's head."""
        return super().head(f"kernel void {name}", params)

    def number(self, kind, axis):
        """Print a coordinate: ``thread_index(0)`` or ``block_index(1)``."""
        return f"{kind}({axis})"

    def call_tile_instruction(self, e):
        """Print a call of a function that a variant named."""
        return f"{e.attrs['name']}({', '.join(self.bare(a) for a in e.args)})"

    def call_tile_shuffle(self, e):
        """Print an exchange of a word between lanes."""
        args = [self.bare(a) for a in e.args]
        return f"shuffle_{e.attrs['mode']}({', '.join(args)}, {e.attrs['width']})"

    def call_tile_vote(self, e):
        """Print a vote of lanes."""
        return f"vote_{e.attrs['mode']}({', '.join(self.bare(a) for a in e.args)})"

    def call_reinterpret(self, e):
        """Print the bits of a value as another type."""
        return f"bits_as<{self.type(nodes.dtype_of(e))}>({self.exactly(e.args[0])})"

    def call_popcount(self, e):
        """Print the number of bits that are set."""
        return f"({self.type(nodes.dtype_of(e))})popcount({self.exactly(e.args[0])})"

    def exactly(self, x):
        """Print a value with a cast to its type: C promotes small integers."""
        return f"({self.type(nodes.dtype_of(x))})({self.bare(x)})"


def emit(plan, ctx):
    """Return the text of a plan whose passes have all run."""
    return ToyPrinter(launch_of(plan)).kernel(plan.program.name, parameters_of(plan), plan.body)


#: Floats that toy C has no type for are stored as codes and computed with in float32; elementary functions are
#: written out.
TEXT = TextTarget(emit, native=CAPABILITIES.native_dtypes, conversions=Conversions(split=split_byte), elementary=False)
