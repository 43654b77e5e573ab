typedef unsigned short f16;
__device__ __forceinline__ float cvt_f32_f16(f16 x) { float d; asm("cvt.f32.f16 %0, %1;" : "=f"(d) : "h"(x)); return d; }
__device__ __forceinline__ f16 cvt_rn_f16_f32(float x) { f16 d; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
__device__ __forceinline__ unsigned shfl_sync_bfly_b32(unsigned x, int lane, int clamp, unsigned mask) {
  unsigned d;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;"
      : "=r"(d)
      : "r"(x), "r"(lane), "r"(clamp), "r"(mask));
  return d;
}
__device__ __forceinline__ unsigned shfl_sync_bfly_u32(unsigned x, int lane, int clamp, unsigned mask) { return shfl_sync_bfly_b32(x, lane, clamp, mask); }

extern "C" __global__ void __launch_bounds__(32) main_1(
    const f16* __restrict__ X,
    const f16* __restrict__ W,
    f16* __restrict__ Y
) {
  const int bx = blockIdx.x;
  const int tid = threadIdx.x;
  float x[4];
  float total;
  total = 0.0f;
  const int i0 = tid * 4;
  __align__(16) f16 X_v[4];
  *(uint2*)&X_v[0] = *(const uint2*)&X[bx * 128 + i0];
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    x[r] = cvt_f32_f16(X_v[r]);
  }
  #pragma unroll
  for (int r_1 = 0; r_1 < 4; ++r_1) {
    total = total + x[r_1] * x[r_1];
  }
  float acc;
  acc = total;
  const float mine = acc;
  const float other = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine), 1, 31, 0xffffffffu));
  acc = acc + other;
  const float mine_1 = acc;
  const float other_1 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_1), 2, 31, 0xffffffffu));
  acc = acc + other_1;
  const float mine_2 = acc;
  const float other_2 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_2), 4, 31, 0xffffffffu));
  acc = acc + other_2;
  const float mine_3 = acc;
  const float other_3 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_3), 8, 31, 0xffffffffu));
  acc = acc + other_3;
  const float mine_4 = acc;
  const float other_4 = __uint_as_float(shfl_sync_bfly_u32(__float_as_uint(mine_4), 16, 31, 0xffffffffu));
  acc = acc + other_4;
  total = acc;
  const int j_1 = tid * 4;
  __align__(16) f16 W_v[4];
  *(uint2*)&W_v[0] = *(const uint2*)&W[j_1];
  #pragma unroll
  for (int r_2 = 0; r_2 < 4; ++r_2) {
    x[r_2] = x[r_2] * rsqrtf(total * 0.0078125f + 1e-06f) * cvt_f32_f16(W_v[r_2]);
  }
  const int i0_1 = tid * 4;
  __align__(16) f16 Y_v[4];
  #pragma unroll
  for (int r_3 = 0; r_3 < 4; ++r_3) {
    Y_v[r_3] = cvt_rn_f16_f32(x[r_3]);
  }
  *(uint2*)&Y[bx * 128 + i0_1] = *(const uint2*)&Y_v[0];
}
