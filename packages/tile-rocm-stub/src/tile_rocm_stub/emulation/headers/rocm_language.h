// Words of the language, and builtins that clang has for every target.
#pragma once
#include "simt.h"

#define __global__
#define __device__
#define __launch_bounds__(threads)

// As templates: g++ allows no overloads of names like these.
#if !defined(__clang__)
#define ROCM_ELEMENTWISE(name, function) \
  template <class T>                     \
  inline T __builtin_elementwise_##name(T x) { return sizeof x == 4 ? (T)function##f((float)x) : (T)function(x); }
ROCM_ELEMENTWISE(abs, __builtin_fabs)
ROCM_ELEMENTWISE(ceil, __builtin_ceil)
ROCM_ELEMENTWISE(floor, __builtin_floor)
ROCM_ELEMENTWISE(rint, __builtin_rint)
ROCM_ELEMENTWISE(sqrt, __builtin_sqrt)
ROCM_ELEMENTWISE(trunc, __builtin_trunc)
#undef ROCM_ELEMENTWISE
#define ROCM_OWN_FMA
#elif !__has_builtin(__builtin_elementwise_fma)
#define ROCM_OWN_FMA
#endif
#ifdef ROCM_OWN_FMA
template <class T>
inline T __builtin_elementwise_fma(T x, T y, T z) {
  return sizeof x == 4 ? (T)__builtin_fmaf((float)x, (float)y, (float)z) : (T)__builtin_fma(x, y, z);
}
#endif

// AMD's library of functions of float64: the host's, which are as precise.
#define ROCM_UNARY(name) \
  extern "C" inline double __ocml_##name##_f64(double x) { return __builtin_##name(x); }
#define ROCM_BINARY(name) \
  extern "C" inline double __ocml_##name##_f64(double x, double y) { return __builtin_##name(x, y); }
ROCM_UNARY(acos) ROCM_UNARY(acosh) ROCM_UNARY(asin) ROCM_UNARY(asinh) ROCM_UNARY(atan) ROCM_UNARY(atanh)
ROCM_UNARY(cbrt) ROCM_UNARY(cos) ROCM_UNARY(cosh) ROCM_UNARY(erf) ROCM_UNARY(exp) ROCM_UNARY(exp2) ROCM_UNARY(expm1)
ROCM_UNARY(log) ROCM_UNARY(log10) ROCM_UNARY(log1p) ROCM_UNARY(log2) ROCM_UNARY(sin) ROCM_UNARY(sinh) ROCM_UNARY(tan)
ROCM_UNARY(tanh) ROCM_BINARY(atan2) ROCM_BINARY(hypot) ROCM_BINARY(pow)
extern "C" inline double __ocml_exp10_f64(double x) { return __builtin_pow(10.0, x); }
#undef ROCM_UNARY
#undef ROCM_BINARY

#define ROCM_INDEX(name, place)                                                                       \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_x() { return simt::place->index.x; }        \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_y() { return simt::place->index.y; }        \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_z() { return simt::place->index.z; }
ROCM_INDEX(workitem, self)
ROCM_INDEX(workgroup, block)
#undef ROCM_INDEX
