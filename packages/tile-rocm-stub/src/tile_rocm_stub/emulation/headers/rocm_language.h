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

#define ROCM_INDEX(name, place)                                                                       \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_x() { return simt::place->index.x; }        \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_y() { return simt::place->index.y; }        \
  SIMT_MODEL inline unsigned __builtin_amdgcn_##name##_id_z() { return simt::place->index.z; }
ROCM_INDEX(workitem, self)
ROCM_INDEX(workgroup, block)
#undef ROCM_INDEX
