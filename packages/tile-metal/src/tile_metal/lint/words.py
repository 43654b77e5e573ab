"""Names of MSL: types, keywords, functions of its library, and functions that it lacks."""

from __future__ import annotations

SIZES = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8, "half": 2,
    "bfloat": 2, "float": 4,
}  # fmt: skip
SCALARS = frozenset(SIZES) | frozenset("""
    void auto unsigned signed size_t ptrdiff_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
""".split())  # fmt: skip
VECTORS = frozenset(f"{kind}{n}" for kind in SIZES for n in (2, 3, 4))
MATRICES = frozenset(f"{kind}{m}x{n}" for kind in ("half", "float") for m in (2, 3, 4) for n in (2, 3, 4))
TEMPLATES = frozenset({"vec", "atomic", "_atomic", "simdgroup_matrix", "array", "tensor", "matmul2d"})
OTHERS = frozenset({
    "atomic_int", "atomic_uint", "atomic_float", "atomic_bool", "atomic_ulong", "simdgroup_half8x8",
    "simdgroup_bfloat8x8", "simdgroup_float8x8", "simd_vote", "mem_flags", "memory_order", "thread_scope",
})  # fmt: skip
WORDS = frozenset("""
    alignas alignof asm break case catch class const const_cast constant constexpr continue decltype default delete
    device do dynamic_cast else enum explicit export extern for fragment friend goto if inline kernel mesh mutable
    namespace new noexcept nullptr object operator private protected public register reinterpret_cast return sampler
    sizeof static static_assert static_cast struct switch template texture this thread thread_local threadgroup
    threadgroup_imageblock throw try typedef typeid typename uniform union using vertex virtual visible volatile while
    patch packed stitchable ray_data object_data intersection restrict and and_eq bitand bitor compl not not_eq or or_eq
    xor xor_eq
""".split())  # fmt: skip
NO_WORDS = frozenset("asm catch dynamic_cast goto new register thread_local throw try typeid virtual".split())
LIBRARY = frozenset("""
    abs absdiff acos acosh addsat all any as_type asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh cospi
    cross ctz determinant distance divide dot exp exp10 exp2 extract_bits fabs fast fdim floor fma fmax fmax3 fmedian3
    fmin fmin3 fmod fract frexp hadd ilogb insert_bits isfinite isinf isnan isnormal ldexp length log log10 log2 mad24
    madhi madsat max max3 median3 metal min min3 mix modf mul24 mulhi nextafter normalize popcount pow powr precise
    quad_broadcast quad_shuffle reverse_bits rhadd rint rotate round rsqrt saturate select sign signbit simd_all
    simd_and simd_any simd_ballot simd_broadcast simd_max simd_min simd_or simd_product simd_shuffle simd_shuffle_down
    simd_shuffle_up simd_shuffle_xor simd_sum simd_xor simdgroup_barrier simdgroup_load simdgroup_multiply
    simdgroup_multiply_accumulate simdgroup_store sin sincos sinh sinpi smoothstep sqrt step subsat tan tanh tanpi
    threadgroup_barrier transpose trunc make_filled_simdgroup_matrix atomic_thread_fence
    atomic_compare_exchange_weak_explicit atomic_exchange_explicit atomic_load_explicit atomic_store_explicit
""".split()) | frozenset(
    f"atomic_fetch_{op}_explicit" for op in ("add", "sub", "min", "max", "and", "or", "xor")
)  # fmt: skip
_FLOATS = """
    acos asin atan atan2 cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin fmod log log10
    log1p log2 pow rint round sin sinh sqrt tan tanh trunc
"""
C_LIBRARY = frozenset(f"{name}f" for name in _FLOATS.split()) | frozenset("""
    abort assert atoi calloc cbrt erf erfc exit expm1 fprintf free hypot labs lgamma llabs log1p lrint lround malloc
    memcmp memcpy memmove memset nan nearbyint printf puts qsort rand realloc remainder remquo scalbn snprintf sprintf
    strcmp strlen tgamma
""".split())  # fmt: skip
ATTRIBUTES = frozenset("""
    dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup dispatch_threads_per_threadgroup grid_origin
    grid_size quadgroup_index_in_threadgroup quadgroups_per_threadgroup simdgroup_index_in_threadgroup
    simdgroups_per_threadgroup thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup
    thread_index_in_threadgroup thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid
    threadgroups_per_grid threads_per_grid threads_per_simdgroup threads_per_threadgroup
""".split())  # fmt: skip
"""Names that MLX declares as parameters of a kernel whose body has them."""

POSITIONS = frozenset({
    "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid",
    "threadgroups_per_grid", "threads_per_grid", "threads_per_threadgroup",
})  # fmt: skip
"""Attributes of values with up to three elements."""
