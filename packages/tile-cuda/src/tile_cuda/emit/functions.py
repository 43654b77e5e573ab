"""Names of the device's mathematical functions."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.emit.c_family import CPP_WORDS
from tile_core.records import dataclass


@dataclass(frozen=True)
class CudaFunction:
    """A function of floats.

    Attributes
    ----------
    double
        Its name for float64; for float32 with ``f`` behind it.
    fast
        Its approximation for float32, if there is one.
    wide
        Whether float32 goes through float64: the device's own function is less precise than required.
    """

    double: str
    fast: str = ""
    wide: bool = False

    def name(self, dtype: str, fast_math: bool) -> str:
        """Return the name for an element type."""
        if dtype == "float64":
            return self.double
        return self.fast if fast_math and self.fast else f"{self.double}f"


FUNCTIONS: Mapping[str, CudaFunction] = {
    "exp": CudaFunction("exp", "__expf"),
    "exp2": CudaFunction("exp2"),
    "exp10": CudaFunction("exp10", "__exp10f", wide=True),
    "log": CudaFunction("log", "__logf"),
    "log2": CudaFunction("log2", "__log2f"),
    "log10": CudaFunction("log10", "__log10f"),
    "log1p": CudaFunction("log1p"),
    "sqrt": CudaFunction("sqrt"),
    "rsqrt": CudaFunction("rsqrt"),
    "sin": CudaFunction("sin", "__sinf"),
    "cos": CudaFunction("cos", "__cosf"),
    "tan": CudaFunction("tan", "__tanf", wide=True),
    "tanh": CudaFunction("tanh"),
    "erf": CudaFunction("erf"),
    "pow": CudaFunction("pow", "__powf", wide=True),
    **{
        name: CudaFunction(name)
        for name in (
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "asinh",
            "acosh",
            "atanh",
            "expm1",
            "cbrt",
            "hypot",
            "fmod",
        )
    },
    "floor": CudaFunction("floor"),
    "ceil": CudaFunction("ceil"),
    "trunc": CudaFunction("trunc"),
    "round": CudaFunction("rint"),
    "nearbyint": CudaFunction("rint"),
    "fabs": CudaFunction("fabs"),
    "fma": CudaFunction("fma"),
}
"""By the operator's name. ``round`` of the IR rounds ties to even."""

_SINGLE = {"fma": "fmaf", "fdiv": "fdiv", "frcp": "frcp", "fsqrt": "fsqrt", "frsqrt": "frsqrt"}
_DOUBLE = {"fma": "fma", "fdiv": "ddiv", "frcp": "drcp", "fsqrt": "dsqrt"}


def rounded(name: str) -> str:
    """Return the intrinsic of an operation that names its rounding: ``ieee_add_rz_float32`` is ``__fadd_rz``."""
    op, mode, dtype = name.removeprefix("ieee_").split("_")
    names, letter = (_SINGLE, "f") if dtype == "float32" else (_DOUBLE, "d")
    return f"__{names.get(op, letter + op)}_{mode}"


#: Names of ``max`` and ``min`` of floats, which order the zeros; the first two leave NaN out (PTX ISA, "max").
EXTREMES: Mapping[tuple[str, str], str] = {
    **{("float32", kind): f"{kind}_f32" for kind in ("max", "min")},
    **{("float64", kind): f"{kind}_f64" for kind in ("max", "min")},
    **{("float32", f"{kind}_nan"): f"{kind}_NaN_f32" for kind in ("max", "min")},
    **{("float64", f"{kind}_nan"): f"{kind}_nan_f64" for kind in ("max", "min")},
}

#: Words of the device's language, and of what texts call, that no variable may have as its name.
RESERVED = CPP_WORDS | frozenset(
    """
    concept printf assert smem f16 bf16 min max abs isnan isinf isfinite signbit NAN INFINITY warpSize threadIdx
    blockIdx blockDim gridDim dim3 half half2 clock
    """.split()
).union(
    (f.double for f in FUNCTIONS.values()), (f"{f.double}f" for f in FUNCTIONS.values()),
    ("fmax", "fmaxf", "fmin", "fminf"),
    (f"{kind}{n}" for kind in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong",
                               "ulonglong", "float", "double") for n in (1, 2, 3, 4)),
)  # fmt: skip

_MATH = """
    copysign cospi cyl_bessel_i0 cyl_bessel_i1 erfc erfcinv erfcx erfinv fdim fdivide frexp ilogb j0 j1 jn ldexp lgamma
    llrint llround logb lrint lround modf nan nearbyint nextafter norm norm3d norm4d normcdf normcdfinv rcbrt remainder
    remquo rhypot rnorm rnorm3d rnorm4d round scalbln scalbn sincos sincospi sinpi tgamma y0 y1 yn
""".split()

#: Functions that the device's compiler declares with C linkage, as it does kernels: no kernel may have their names.
LINKED = frozenset("clock64 free labs llabs llmax llmin malloc ullmax ullmin umax umin".split()).union(
    _MATH, (f"{name}f" for name in _MATH)
)  # fmt: skip
