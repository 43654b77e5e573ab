"""Names of MSL: element types, vectors of bytes, mathematical functions, and words that no variable may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.emit.c_family import CPP_WORDS

TYPES: Mapping[str, str] = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half", "bfloat16": "bfloat", "float32": "float",
}  # fmt: skip
"""By element type (MSL specification, "Scalar Data Types"). There is no type of 64-bit floats."""

VECTORS: Mapping[int, str] = {1: "uchar", 2: "uchar2", 4: "uchar4", 8: "uint2", 16: "uint4"}
"""What moves that many bytes at a time.

Not ``ushort`` and ``uint``: a compiler may take it that a scalar type never overlaps memory of another one, a ``half``
say, and swap the two accesses; clang's type-based analysis lets vectors and characters overlap everything.
"""

HALVES = frozenset({"float16", "bfloat16"})
"""Types that are stored and converted, and computed with in float32."""


@dataclass(frozen=True)
class MetalFunction:
    """A function of float32.

    Attributes
    ----------
    name
        In namespace ``metal``.
    modes
        Whether it has a precise and a fast form; others are exact in both.
    """

    name: str
    modes: bool = True

    def text(self, fast_math: bool) -> str:
        """Return the name to call: without fast math the precise form, whatever the compiler's default is."""
        return f"{'fast' if fast_math else 'precise'}::{self.name}" if self.modes else self.name


FUNCTIONS: Mapping[str, MetalFunction] = {
    **{name: MetalFunction(name) for name in (
        "exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "pow", "asin", "acos",
        "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "fmod",
    )},
    **{name: MetalFunction(name, False) for name in ("floor", "ceil", "trunc", "fabs", "fma")},
    "round": MetalFunction("rint", False),
    "nearbyint": MetalFunction("rint", False),
}  # fmt: skip
"""By the operator's name. ``round`` of the IR rounds ties to even. The others of the language are helper functions."""

LIBRARY = frozenset({"simd_sum"})
"""Functions of the library that passes call by their names."""

RESERVED = CPP_WORDS | frozenset(
    """
    atomic_bool atomic_float atomic_int atomic_uint atomic_ulong bfloat constant device fragment half kernel
    mesh metal object packed patch ptrdiff_t quad ray_data sampler size_t smem stitchable tensor texture thread
    threadgroup threadgroup_imageblock uchar uint ulong uniform ushort vec vertex visible args abs all any
    as_type ceil clamp clz copysign cos ctz exp exp10 exp2 fabs fast floor fma fmax fmin isfinite isinf isnan
    log log10 log2 max min mix mulhi popcount pow precise rint rotate round rsqrt select sign sin sqrt step tan
    trunc asin acos atan atan2 sinh cosh asinh acosh atanh fmod ldexp NAN INFINITY HALF_MAX FLT_MAX M_PI_F
    as_float address simd mpp dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup
    dispatch_threads_per_threadgroup grid_origin grid_size quadgroup_index_in_threadgroup
    quadgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup thread_execution_width
    thread_index_in_quadgroup thread_index_in_simdgroup thread_index_in_threadgroup thread_position_in_grid
    thread_position_in_threadgroup threadgroup_position_in_grid threadgroups_per_grid threads_per_grid
    threads_per_simdgroup threads_per_threadgroup
    """.split()
).union(
    f"{kind}{n}" for kind in ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half",
                              "bfloat", "float") for n in (2, 3, 4)
)  # fmt: skip
"""Words of the language, of its library as far as texts call it, and names of built-in attributes: those that occur in
a kernel's body become parameters where MLX makes the kernel's head."""
