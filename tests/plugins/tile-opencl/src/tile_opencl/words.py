"""Reserved words of OpenCL C: keywords, types, functions, macros (OpenCL C 1.2, section 6)."""

from __future__ import annotations

from itertools import product

_SCALARS = "char uchar short ushort int uint long ulong float double half".split()
_TYPES = [f"{scalar}{n}" for scalar, n in product(_SCALARS, ("", 2, 3, 4, 8, 16))]
_ROUNDINGS = ("", "_rte", "_rtz", "_rtp", "_rtn")

_PLAIN = """
kernel global local constant private generic read_only write_only read_write uniform pipe complex imaginary quad bool
event_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t image3d_t image2d_depth_t
cl_mem_fence_flags queue_t ndrange_t clk_event_t reserve_id_t vec_step wait_group_events prefetch printf
get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id get_global_offset
barrier mem_fence read_mem_fence write_mem_fence async_work_group_copy async_work_group_strided_copy
acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erf erfc exp exp2
exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2 log10 log1p logb
mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos sinh sinpi sqrt
tan tanh tanpi tgamma trunc divide recip abs abs_diff add_sat hadd rhadd clamp clz ctz mad_hi mad_sat max min mul_hi
rotate sub_sat upsample popcount mad24 mul24 degrees mix radians step smoothstep sign cross dot distance length
normalize fast_distance fast_length fast_normalize isequal isnotequal isgreater isgreaterequal isless islessequal
islessgreater isfinite isinf isnan isnormal isordered isunordered signbit any all bitselect select shuffle shuffle2
atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec atomic_cmpxchg atomic_min atomic_max atomic_and atomic_or
atomic_xor atom_add atom_sub atom_xchg atom_inc atom_dec atom_cmpxchg atom_min atom_max atom_and atom_or atom_xor
CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE CLK_IMAGE_MEM_FENCE CLK_ADDRESS_NONE CLK_ADDRESS_CLAMP CLK_ADDRESS_REPEAT
CLK_ADDRESS_CLAMP_TO_EDGE CLK_ADDRESS_MIRRORED_REPEAT CLK_NORMALIZED_COORDS_TRUE CLK_NORMALIZED_COORDS_FALSE
CLK_FILTER_NEAREST CLK_FILTER_LINEAR CLK_SNORM_INT8 CLK_SNORM_INT16 CLK_UNORM_INT8 CLK_UNORM_INT16 CLK_UNORM_INT24
CLK_UNORM_SHORT_565 CLK_UNORM_SHORT_555 CLK_UNORM_INT_101010 CLK_SIGNED_INT8 CLK_SIGNED_INT16 CLK_SIGNED_INT32
CLK_UNSIGNED_INT8 CLK_UNSIGNED_INT16 CLK_UNSIGNED_INT32 CLK_HALF_FLOAT CLK_FLOAT CLK_R CLK_A CLK_RG CLK_RA CLK_RGB
CLK_Rx CLK_RGx CLK_RGBx CLK_RGBA CLK_BGRA CLK_ARGB CLK_ABGR CLK_INTENSITY CLK_LUMINANCE CLK_DEPTH CLK_DEPTH_STENCIL
CLK_sRGB CLK_sRGBx CLK_sRGBA CLK_sBGRA MAX_WORK_DIM kernel_exec FP_ILOGB0 FP_ILOGBNAN FP_FAST_FMA FP_FAST_FMAF
FLT_MAX_10_EXP FLT_MIN_10_EXP FLT_MAX_EXP FLT_MIN_EXP DBL_DIG DBL_MANT_DIG DBL_RADIX DBL_MAX_10_EXP DBL_MIN_10_EXP
DBL_MAX_EXP DBL_MIN_EXP HALF_MANT_DIG HALF_RADIX HALF_MAX_10_EXP HALF_MIN_10_EXP HALF_MAX_EXP HALF_MIN_EXP
cl_khr_fp64 cl_khr_fp16 cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_khr_byte_addressable_store linux unix
"""

WORDS = frozenset(
    [
        *_PLAIN.split(),
        *_TYPES,
        *(f"as_{kind}" for kind in _TYPES),
        *(f"convert_{kind}{sat}{how}" for kind, sat, how in product(_TYPES, ("", "_sat"), _ROUNDINGS)),
        *(f"{way}{n}" for way, n in product(("vload", "vstore"), (2, 3, 4, 8, 16))),
        *(f"{a}_{b}" for a, b in product(("native", "half"), _PLAIN.split()) if len(b) < 7),
    ]
)
