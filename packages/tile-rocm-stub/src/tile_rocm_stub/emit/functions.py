"""Functions that a text may have: each is written above the kernel that calls it.

Texts need no header, so ``clang -nogpuinc`` compiles them as ``hipcc`` does. Instructions are clang's builtins for
AMDGPU (``clang/include/clang/Basic/BuiltinsAMDGPU.def``) and its ``__hip_atomic_*`` functions, whose scope is the
device.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.emit.expressions import ExpressionPrinter

HEAD = """\
#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif"""
"""Head of every text: no contraction of products and additions, and keywords that no header defines."""

FUSED = "#pragma clang fp contract(fast)"
"""First line of a kernel's body, which allows fusing of products and additions (Clang, "Language Extensions")."""

ALONE = {"add": "+", "sub": "-", "mul": "*"}
"""Operations with a named rounding that clang may fuse with another one."""

VIEW = "{}_view"
"""Name of the type of a view's elements, which may have the memory of another type."""

VECTORS = {
    "v2": "typedef unsigned short v2 __attribute__((may_alias));",
    "v4": "typedef unsigned v4 __attribute__((may_alias));",
    "v8": "typedef unsigned v8 __attribute__((vector_size(8), may_alias));",
    "v16": "typedef unsigned v16 __attribute__((vector_size(16), may_alias));",
    "f16x2": "typedef _Float16 f16x2 __attribute__((ext_vector_type(2)));",
    "f16x4": "typedef _Float16 f16x4 __attribute__((vector_size(8), may_alias));",
    "f16x8": "typedef _Float16 f16x8 __attribute__((vector_size(16), may_alias));",
    "bf16x4": "typedef short bf16x4 __attribute__((vector_size(8), may_alias));",
    "bf16x8": "typedef short bf16x8 __attribute__((vector_size(16), may_alias));",
    "i32x2": "typedef int i32x2 __attribute__((vector_size(8), may_alias));",
    "i32x4": "typedef int i32x4 __attribute__((vector_size(16), may_alias));",
    "i64": "typedef long i64 __attribute__((may_alias));",
    "f32x2": "typedef float f32x2 __attribute__((vector_size(8), may_alias));",
    "f32x4": "typedef float f32x4 __attribute__((vector_size(16), may_alias));",
    "f32x16": "typedef float f32x16 __attribute__((vector_size(64), aligned(16), may_alias));",
    "i32x16": "typedef int i32x16 __attribute__((vector_size(64), aligned(16), may_alias));",
    "f64x4": "typedef double f64x4 __attribute__((vector_size(32), aligned(16), may_alias));",
} | {
    (name := VIEW.format(kind.replace(" ", "_"))): f"typedef {kind} {name} __attribute__((may_alias));"
    for kind in dict.fromkeys(ExpressionPrinter.types.values()) if "*" not in kind
}  # fmt: skip
"""Types that move several elements, those of operands of matrix instructions, and those of views."""

BYTES = {"v2": 2, "v4": 4, "i64": 8, "float": 4, "double": 8} | {
    name: int(text.partition("vector_size(")[2].partition(")")[0])
    for name, text in VECTORS.items() if "vector_size" in text
}  # fmt: skip
"""Sizes of these types, and of the scalar operands of matrix instructions."""

_LANE = "__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u))"
_SAME_SEGMENT = "((from & -width) == (lane & -width) ? from : lane) * 4"


def _packed(name: str, params: str, value: str) -> tuple[str, str]:
    """Return a function of words of two float16, on one line."""
    head = f"static __device__ inline unsigned {name}_f16x2({params})"
    return f"{name}_f16x2", f"{head} {{ return __builtin_bit_cast(unsigned, {value}); }}"


_WORDS = [f"__builtin_bit_cast(f16x2, {x})" for x in "abc"]

_TEXTS = {
    **dict((
        _packed("join", "float a, float b", "(f16x2{(_Float16)a, (_Float16)b})"),
        _packed("neg", "unsigned a", f"-{_WORDS[0]}"),
        _packed("fma", "unsigned a, unsigned b, unsigned c", f"__builtin_elementwise_fma({', '.join(_WORDS)})"),
        *(_packed(op, "unsigned a, unsigned b", f"{_WORDS[0]} {sign} {_WORDS[1]}") for op, sign in ALONE.items()),
    )),
    # The barrier of a block orders its accesses of memory; lanes of a wavefront execute together.
    "block_barrier": """\
#define block_barrier() \\
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \\
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))""",
    "wave_barrier": """\
#define wave_barrier() \\
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront"), __builtin_amdgcn_wave_barrier(), \\
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront"))""",
    "lane_id": f"static __device__ inline int lane_id() {{ return (int){_LANE}; }}",
    # Addresses for ds_bpermute: 4 bytes times the lane that is read; outside of its segment a lane reads itself.
    **{
        f"lane_{mode}": f"static __device__ inline int lane_{mode}(int by, int width) {{\n"
        f"  const int lane = lane_id(), from = {source};\n  return {_SAME_SEGMENT};\n}}"
        for mode, source in (
            ("idx", "(lane & -width) + (by & (width - 1))"), ("up", "lane - by"), ("down", "lane + by"),
            ("bfly", "lane ^ by"),
        )
    },
    "f32_of_f16": "static __device__ inline float f32_of_f16(unsigned short x) "
    "{ return (float)__builtin_bit_cast(_Float16, x); }",
    "f16_of_f32": "static __device__ inline unsigned short f16_of_f32(float x) "
    "{ return __builtin_bit_cast(unsigned short, (_Float16)x); }",
    "f32_of_bf16": "static __device__ inline float f32_of_bf16(unsigned short x) "
    "{ return __builtin_bit_cast(float, (unsigned)x << 16); }",
    "bf16_of_f32": "static __device__ inline unsigned short bf16_of_f32(float x) "
    "{ return __builtin_bit_cast(unsigned short, (__bf16)x); }",
    "f32_of_fp8": "static __device__ inline float f32_of_fp8(unsigned char x) "
    "{ return __builtin_amdgcn_cvt_f32_fp8((int)x, 0); }",
    "f32_of_bf8": "static __device__ inline float f32_of_bf8(unsigned char x) "
    "{ return __builtin_amdgcn_cvt_f32_bf8((int)x, 0); }",
    # Exact: the remainder of the mantissas, bit by bit.
    "fmod_f64": """\
static __device__ inline double fmod_f64(double x, double y) {
  const unsigned long one = 1ul << 52, inf = 0x7fful << 52;
  unsigned long m = __builtin_bit_cast(unsigned long, x), n = __builtin_bit_cast(unsigned long, y) << 1 >> 1;
  const unsigned long sign = m >> 63 << 63;
  m ^= sign;
  if (n == 0 || n > inf || m >= inf) return __builtin_nan("");
  if (m < n) return x;
  int a = (int)(m >> 52), b = (int)(n >> 52);
  m = a ? (m & (one - 1)) | one : m, n = b ? (n & (one - 1)) | one : n;
  for (a += !a; m < one; --a) m <<= 1;
  for (b += !b; n < one; --b) n <<= 1;
  for (; a > b; --a) m = (m >= n ? m - n : m) << 1;
  if (m >= n) m -= n;
  if (m == 0) return __builtin_bit_cast(double, sign);
  for (; m < one; --b) m <<= 1;
  return __builtin_bit_cast(double, sign | (b > 0 ? (m - one) | (unsigned long)b << 52 : m >> (1 - b)));
}""",
    **{
        f"ieee_{op}_f{bits}": f"static __device__ inline {kind} ieee_{op}_f{bits}({kind} a, {kind} b) "
        f"{{ return a {sign} b; }}"
        for op, sign in ALONE.items() for bits, kind in ((32, "float"), (64, "double"))
    },
    # Negative zero is below zero.
    "before": """\
template <class T>
static __device__ inline bool before(T a, T b) {
  return a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b));
}""",
}  # fmt: skip
_NEEDS = {f"lane_{mode}": ("lane_id",) for mode in ("idx", "up", "down", "bfly")}

_LIBRARY = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf exp exp10 exp2 expm1 hypot log log10 log1p log2 pow sin "
    "sinh tan tanh".split()
)
_BINARY = ("atan2", "hypot", "pow")


def of_library(name: str) -> str | None:
    """Return AMD's float64 function of an operator, if one; ROCm's compiler links its library."""
    return f"__ocml_{name}_f64" if name in _LIBRARY else None


def declaration(function: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the declaration of a function of AMD's library, and no functions that it needs."""
    name = function.removeprefix("__ocml_").removesuffix("_f64")
    if of_library(name) != function:
        return None
    given = "double, double" if name in _BINARY else "double"
    return f'extern "C" __device__ __attribute__((const)) double {function}({given});', ()


RESERVED = frozenset({*_TEXTS, *VECTORS}) | frozenset(
    "__global__ __device__ __shared__ __launch_bounds__ threadIdx blockIdx blockDim gridDim warpSize "
    "smem simt rocm ROCM_FNUZ ROCM_OWN_FMA".split()
)
"""Names that no variable may have, of the text and of the emulator's model."""


def prelude(types: Iterable[str], functions: Iterable[str], more: dict[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the lines above a kernel.

    Parameters
    ----------
    types, functions
        Names of what the kernel uses.
    more
        Further functions by name: their texts, and names of the functions that they call.
    """
    used: dict[str, str] = {}

    def add(name: str) -> None:
        text, needs = more[name] if name in more else (_TEXTS[name], _NEEDS.get(name, ()))
        for other in needs:
            add(other)
        used.setdefault(name, text)

    for name in sorted(functions):
        add(name)
    chosen = [VECTORS[name] for name in VECTORS if name in set(types)]
    return [line for text in (HEAD, *chosen, *used.values()) for line in text.splitlines()]
