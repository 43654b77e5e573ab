#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
static __device__ inline int atomic_add_int32_relaxed(int* p, int x) { return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T>
static __device__ inline bool before(T a, T b) {
  return a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b));
}
static __device__ inline float atomic_max_float32_relaxed(float* p, float x) {
  unsigned* const at = (unsigned*)p;
  unsigned old = __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT), next;
  do {
    const float was = __builtin_bit_cast(float, old), by = x;
    next = __builtin_bit_cast(unsigned, by != by || before(by, was) ? was : by);
  } while (!__hip_atomic_compare_exchange_strong(at, &old, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT));
  return __builtin_bit_cast(float, old);
}

extern "C" __global__ void __launch_bounds__(128) histogram_kernel(
    const int* __restrict__ X,
    int* __restrict__ H,
    float* __restrict__ Top
) {
  #pragma clang fp contract(fast)
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  const int i = tid;
  if (bx * 128 + i < 301) {
    if (X[bx * 128 + i] >= 0 && X[bx * 128 + i] < 37) {
      atomic_add_int32_relaxed(&H[X[bx * 128 + i]], 1);
    }
    atomic_max_float32_relaxed(&Top[0], (float)X[bx * 128 + i]);
  }
}
