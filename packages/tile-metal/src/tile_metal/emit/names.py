"""Names of MSL: element types, byte vectors, math functions, and reserved words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tile_core.emit.c_family import CPP_WORDS
from tile_core.records import dataclass

TYPES: Mapping[str, str] = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half", "bfloat16": "bfloat", "float32": "float",
}  # fmt: skip
"""By element type (MSL specification, "Scalar Data Types"). There is no type of 64-bit floats."""

VECTORS: Mapping[int, str] = {1: "uchar", 2: "uchar2", 4: "uchar4", 8: "uint2", 16: "uint4"}
"""Type that moves a number of bytes at a time.

Not ``ushort`` and ``uint``: a compiler may assume that a scalar type never aliases another one, for example ``half``,
and swap the two accesses; in clang's type-based alias analysis vectors and characters alias everything.
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
    exact
        Whether the language requires exact results, so that its fast form is never called.
    """

    name: str
    modes: bool = True
    exact: bool = False

    def text(self, fast_math: bool) -> str:
        """Return the name to call: the precise form unless fast math is on.

        The compiler's default does not matter.
        """
        return f"{'fast' if fast_math and not self.exact else 'precise'}::{self.name}" if self.modes else self.name


FUNCTIONS: Mapping[str, MetalFunction] = {
    **{name: MetalFunction(name) for name in (
        "exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "pow", "asin", "acos",
        "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh",
    )},
    "fmod": MetalFunction("fmod", exact=True),
    **{name: MetalFunction(name, False) for name in ("floor", "ceil", "trunc", "fabs", "fma")},
    "round": MetalFunction("rint", False),
    "nearbyint": MetalFunction("rint", False),
}  # fmt: skip
"""By the operator's name. ``round`` of the IR rounds ties to even. The others of the language are helper functions."""

LIBRARY = frozenset({"simd_sum"})
"""Functions of the library that passes call by their names."""

LIBRARY_NAMES = frozenset(
    word
    for line in (Path(__file__).parent / "library_names.txt").read_text(encoding="ascii").splitlines()
    if not line.startswith("#")
    for word in line.split()
)
"""Names that Metal's headers define, as far as they are known: macros, functions, types, constants; see
``tools/metal_names.py``. A variable of a macro's name does not compile, one of a function's hides it."""

MACROS = frozenset(name for name in LIBRARY_NAMES if name.isupper())
"""Those of them that are macros by their spelling."""

RESERVED = CPP_WORDS | LIBRARY_NAMES | frozenset("address args smem double2 double3 double4".split())
"""Words that no variable of a text may have: those of the language and its library, names of built-in attributes, which
become parameters in a kernel's head where MLX makes it, and the names that every text has."""
