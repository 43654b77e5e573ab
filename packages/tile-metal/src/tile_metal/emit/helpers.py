"""Helper functions beyond MSL's library: each is printed into the kernels that call it.

None is overloaded, and each names the address spaces of its pointers. They come from tables of this package
(``emit/matrices.py``, ``emit/atomics.py``), or are printed from expressions of ``tile_core.numerics``, so that a
conversion means the same on all targets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.emit.writer import Writer
from tile_core.errors.base import InternalError
from tile_core.ir import nodes
from tile_core.numerics import math, standard_math
from tile_core.numerics.exprs import decode_expr, encode_expr
from tile_core.numerics.levels import STRICT
from tile_core.numerics.truncation import truncate_expr
from tile_core.records import dataclass
from tile_metal.emit import atomics, matrices
from tile_metal.emit.expressions import ALONE, MslExpressions
from tile_metal.emit.helper import Helper
from tile_metal.emit.names import RESERVED

NARROW = tuple(name for name, d in DTYPES.items() if d.is_narrow)
PAIRS = ("float8_e4m3fn", "float4_e2m1fn")
"""Types whose codes are decoded two at a time, to ``half``, in which none of their numbers is subnormal."""
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


@dataclass(frozen=True)
class _Printed:
    """A function that an expression of the core defines.

    It is branch-free if both sides of a choice are cheap.
    """

    params: tuple[tuple[str, str], ...]
    result: str
    build: Callable[..., Any]
    branches: bool = True


def helper(name: str) -> Helper:
    """Return a helper function.

    Raises
    ------
    InternalError
        If no helper has the name.
    """
    found = _WRITTEN.get(name)
    if found is not None:
        return found
    if name in _PRINTED:
        return _printed(name)
    raise InternalError(stage="metal text", detail=f"there is no function {name}")


def needed(names: Iterable[str]) -> list[Helper]:
    """Return the named helper functions and their dependencies, in definition order."""
    found: dict[str, Helper] = {}

    def visit(name: str) -> None:
        if name not in found:
            one = helper(name)
            for other in one.needs:
                visit(other)
            found[name] = one

    for name in sorted(names):
        visit(name)
    return list(found.values())


@functools.cache
def _printed(name: str) -> Helper:
    own = _PRINTED[name]
    printer = _FunctionPrinter(own.branches)
    params = [tirx.Var(n, dtype) for n, dtype in own.params]
    heads = [f"{printer.type(nodes.dtype_of(p))} {printer.writer.name(p)}" for p in params]
    value = own.build(*params)
    with printer.writer.block(f"static inline {printer.type(own.result)} {name}({', '.join(heads)})"):
        printer.writer.line(f"return {printer.assigned(value)};")
    return Helper(name, printer.writer.text().rstrip("\n"), tuple(sorted(printer.helpers)), exact=True)


class _FunctionPrinter(MslExpressions):
    def __init__(self, branches: bool) -> None:
        super().__init__(Writer(RESERVED))
        self.numerics = STRICT
        self.helpers, self.branches = set(), branches

    def print_Select(self, e: Expr) -> str:
        """Print a choice; between names where compilers must not branch per converted element."""
        if self.branches:
            return super().print_Select(e)
        yes, no = self.named(e.true_value), self.named(e.false_value)
        return self.choice(self.bare(e.condition), yes, no)


def _log1p(x: Expr) -> Any:
    """log(1 + x), with the addition's exact error corrected by a quotient (Kahan)."""
    one = nodes.const(1.0, "float32")
    total = tirx.Var("total", "float32")
    log = tirx.call_intrin("float32", "tirx.log", total)
    small = tirx.Select(tirx.EQ(total, one), x, log * (x / (total - one)))
    # At infinity the quotient is none, and below -1 the logarithm is NaN.
    value = tirx.Select(tirx.EQ(total, nodes.const(float("inf"), "float32")), total, small)
    return tirx.Let(total, one + x, value)


def _extreme(kind: str) -> Helper:
    """The extreme of two floats: a number beats NaN, bits order zeros and subnormals.

    A device may flush subnormals.
    """
    sign = ">" if kind == "max" else "<"
    text = f"""static inline float {kind}_f32(float a, float b) {{
  const int x = as_type<int>(a), y = as_type<int>(b);
  return b != b || (a == a && (x {sign} y) != ((x & y) < 0)) ? a : b;
}}"""
    return Helper(f"{kind}_f32", text, exact=True)


def _extreme_nan(kind: str) -> Helper:
    text = f"""static inline float {kind}_nan_f32(float a, float b) {{
  return a != a || b != b ? as_type<float>(0x7fc00000u) : {kind}_f32(a, b);
}}"""
    return Helper(f"{kind}_nan_f32", text, (f"{kind}_f32",), exact=True)


def _unary(
    build: Callable[[Any], Any], source: str = "float32", result: str = "float32", branches: bool = True
) -> _Printed:
    return _Printed((("x", source),), result, build, branches)


def _truncation(name: str) -> Callable[[Any], Any]:
    return lambda value: truncate_expr(value, name)


def _decoder(name: str) -> Callable[[Any], Any]:
    return lambda code: decode_expr(code, name, "float32")


def _encoder(name: str) -> Callable[[Any], Any]:
    return lambda value: encode_expr(value, name)


_PRINTED: Mapping[str, _Printed] = {
    **{f"{name}_f32": _unary(getattr(standard_math, name)) for name in ("erf", "tanh", "sigmoid")},
    **{f"strict_{name}_f32": _unary(getattr(math, name)) for name in ("erf", "tanh", "sigmoid")},
    "log1p_f32": _unary(_log1p),
    **{f"{name}_of_f32": _unary(_truncation(name), "float32", name) for name in INTEGERS},
    **{f"decode_{name}": _unary(_decoder(name), "uint8", branches=False) for name in NARROW if name != "float8_e4m3fn"},
    **{f"encode_{name}": _unary(_encoder(name), "float32", "uint8", False) for name in NARROW},
}  # fmt: skip


def _bfloat_of(dtype: str, name: str) -> Helper:
    """Convert with one rounding: float32's excess bits become a sticky last bit."""
    wide, signed = dtype.endswith("64"), not dtype.startswith("u")
    word, bits = ("ulong", 64) if wide else ("uint", 32)
    size = f"x < 0 ? 0 - ({word})x : ({word})x" if signed else "x"
    negate = "x < 0 ? -rounded : rounded" if signed else "rounded"
    text = f"""static inline bfloat bfloat_of_{dtype}({name} x) {{
  const {word} size = {size};
  const int extra = max({bits} - 24 - (int)clz(size), 0);
  const {word} rest = size & ((({word})1 << extra) - 1);
  const {word} kept = ((size >> extra) | ({word})(rest != 0)) << extra;
  const float rounded = (float)kept;
  return (bfloat)({negate});
}}"""
    return Helper(f"bfloat_of_{dtype}", text, exact=True)


_ROOTS = (
    Helper(
        "expm1_f32",
        """static inline float expm1_f32(float x) {
  if (fabs(x) < 2.9802322e-8f) return x;
  if (fabs(x) < 0.5f) {
    const float tail = 1.9841270e-4f + x * (2.4801587e-5f + x * (2.7557319e-6f + x * 2.7557319e-7f));
    const float last = 8.3333334e-3f + x * (1.3888889e-3f + x * tail);
    const float rest = 0.5f + x * (0.16666667f + x * (4.1666668e-2f + x * last));
    return x + x * x * rest;
  }
  return precise::exp(x) - 1.0f;
}""",
        exact=True,
    ),
    Helper(
        "cbrt_f32",
        """static inline float cbrt_f32(float x) {
  const float a = fabs(x);
  if (a == 0.0f || !(a < as_type<float>(0x7f800000u))) return x;
  const bool small = a < 1.1754944e-38f;
  const float b = small ? a * 16777216.0f : a;
  float r = as_type<float>(as_type<uint>(b) / 3u + 0x2a514067u);
  for (int i = 0; i < 3; ++i) r = r - (r - b / (r * r)) * 0.33333334f;
  return copysign(small ? r * 0.00390625f : r, x);
}""",
        exact=True,
    ),
    Helper(
        "hypot_f32",
        """static inline float hypot_f32(float x, float y) {
  const float a = fabs(x), b = fabs(y), infinite = as_type<float>(0x7f800000u);
  if (a == infinite || b == infinite) return infinite;
  const float high = a > b ? a : b, low = a > b ? b : a;
  if (x != x || y != y) return as_type<float>(0x7fc00000u);
  if (low == 0.0f) return high;
  const int shift = high > 1e18f ? -80 : high < 1e-18f ? 100 : 0;
  const float h = ldexp(high, shift), l = ldexp(low, shift);
  return ldexp(precise::sqrt(fma(h, h, l * l)), -shift);
}""",
        exact=True,
    ),
)
"""Functions of C that MSL's library lacks."""

_CODES = (
    # With 8 (in float32: 120) more in the exponent a normal number x is right, and one that is subnormal in its type is
    # 2x - 1/64, which is smaller. No half is subnormal, so that none is flushed. NaN is 480 with another bit.
    Helper(
        "decode_float8_e4m3fn",
        """static inline float decode_float8_e4m3fn(uchar x) {
  const uint code = x;
  const uint size = code & 127u;
  const float wide = as_type<float>((size << 20) + 0x3c000000u);
  const uint number = as_type<uint>(fmin(wide, fma(wide, 2.0f, -0.015625f)));
  return as_type<float>((size > 126u ? 0x7fc00000u : number) | ((code & 128u) << 24));
}""",
        exact=True,
    ),
    Helper(
        "half_pair",
        """static inline uint half_pair(float low, float high) {
  return as_type<uint>(half2((half)low, (half)high));
}""",
    ),
    Helper(
        "half_pair_difference",
        """static inline uint half_pair_difference(uint a, uint b) {
  return as_type<uint>(as_type<half2>(a) - as_type<half2>(b));
}""",
        exact=True,
    ),
    Helper(
        "decode_pair_float8_e4m3fn",
        """static inline uint decode_pair_float8_e4m3fn(ushort x) {
  const uint codes = (((uint)x << 8) | ((uint)x << 16)) & 0xff00ff00u;
  const uint size = (codes & 0x7f007f00u) >> 1;
  const uint nan = ((size + 0x00800080u) & 0x40004000u) >> 1;
  const half2 wide = as_type<half2>(size + 0x20002000u);
  const half low = fmin(wide.x, fma(wide.x, (half)2.0f, (half)-0.015625f));
  const half high = fmin(wide.y, fma(wide.y, (half)2.0f, (half)-0.015625f));
  return as_type<uint>(half2(low, high)) | (codes & 0x80008000u) | nan;
}""",
        exact=True,
    ),
    # With 14 more in the exponent a normal number is right, and 1/2 (1 + m/2) for the zero and the subnormal one.
    Helper(
        "decode_pair_float4_e2m1fn",
        """static inline uint decode_pair_float4_e2m1fn(uchar x) {
  const uint codes = ((uint)x * 4097u) & 0x000f000fu;
  const half2 wide = as_type<half2>(((codes & 0x00070007u) << 9) + 0x38003800u);
  const half low = fmin(wide.x, fma(wide.x, (half)2.0f, (half)-1.0f));
  const half high = fmin(wide.y, fma(wide.y, (half)2.0f, (half)-1.0f));
  return as_type<uint>(half2(low, high)) | ((codes & 0x00080008u) << 12);
}""",
        exact=True,
    ),
)
"""Functions that decode small floats, of one code or of two in a word."""

_LANES = {
    "idx": "(lane & -width) + (amount & (width - 1))",
    "up": "(lane & (width - 1)) >= amount ? lane - amount : lane",
    "down": "(lane & (width - 1)) + amount < width ? lane + amount : lane",
}


def _lane(mode: str) -> Helper:
    """The source lane of a shuffle within segments of the simdgroup.

    Without one it is the lane itself.
    """
    name = f"lane_{mode}"
    return Helper(name, f"static inline int {name}(int lane, int amount, int width) {{\n  return {_LANES[mode]};\n}}")


def _alone(op: str, sign: str) -> Helper:
    """An operation that is not fused with another one, see ``AS_WRITTEN``."""
    name = f"ieee_{op}_f32"
    return Helper(name, f"static inline float {name}(float a, float b) {{\n  return a {sign} b;\n}}", exact=True)


_OWN = (
    *(_alone(op, sign) for op, sign in ALONE.items()),
    *(make(kind) for make in (_extreme, _extreme_nan) for kind in ("max", "min")),
    *(_bfloat_of(d, n) for d, n in (("int32", "int"), ("uint32", "uint"), ("int64", "long"), ("uint64", "ulong"))),
    *(_lane(mode) for mode in _LANES),
    *_ROOTS,
    *_CODES,
)  # fmt: skip

_WRITTEN: Mapping[str, Helper] = {h.name: h for h in (*_OWN, *matrices.HELPERS, *atomics.HELPERS)}

HELPER_NAMES = frozenset((*_WRITTEN, *_PRINTED))
"""Names of all helper functions: a variable of one would hide it."""
