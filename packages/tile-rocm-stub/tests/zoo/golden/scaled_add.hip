#pragma clang fp contract(off)
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
typedef unsigned v16 __attribute__((vector_size(16), may_alias));

extern "C" __global__ void __launch_bounds__(128) main_kernel(
    float alpha,
    const float* __restrict__ X,
    const float* __restrict__ Y,
    float* __restrict__ Z,
    int n
) {
  #pragma clang fp contract(fast)
  const int bx = (int)__builtin_amdgcn_workgroup_id_x();
  const int tid = (int)__builtin_amdgcn_workitem_id_x();
  if (bx * 1024 + 1023 < n) {
    const int i = tid * 4;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      alignas(16) float X_v[4];
      alignas(16) float Y_v[4];
      alignas(16) float Z_v[4];
      *(v16*)&X_v[0] = *(const v16*)&X[bx * 1024 + i + r * 512];
      *(v16*)&Y_v[0] = *(const v16*)&Y[bx * 1024 + i + r * 512];
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        Z_v[v] = alpha * X_v[v] + Y_v[v];
      }
      *(v16*)&Z[bx * 1024 + i + r * 512] = *(const v16*)&Z_v[0];
    }
  }
  else {
    const int i_1 = tid * 4;
    #pragma unroll
    for (int r_1 = 0; r_1 < 2; ++r_1) {
      if (bx * 1024 + (r_1 * 512 + i_1 + 3) < n) {
        alignas(16) float X_v_1[4];
        alignas(16) float Y_v_1[4];
        alignas(16) float Z_v_1[4];
        *(v16*)&X_v_1[0] = *(const v16*)&X[bx * 1024 + i_1 + r_1 * 512];
        *(v16*)&Y_v_1[0] = *(const v16*)&Y[bx * 1024 + i_1 + r_1 * 512];
        #pragma unroll
        for (int v_1 = 0; v_1 < 4; ++v_1) {
          Z_v_1[v_1] = alpha * X_v_1[v_1] + Y_v_1[v_1];
        }
        *(v16*)&Z[bx * 1024 + i_1 + r_1 * 512] = *(const v16*)&Z_v_1[0];
      }
      else {
        #pragma unroll
        for (int v_2 = 0; v_2 < 4; ++v_2) {
          if (bx * 1024 + (r_1 * 512 + i_1 + v_2) < n) {
            Z[bx * 1024 + i_1 + r_1 * 512 + v_2] = alpha * (bx * 1024 + (r_1 * 512 + i_1 + v_2) < n ? X[bx * 1024 + i_1 + r_1 * 512 + v_2] : 0.0f) + (bx * 1024 + (r_1 * 512 + i_1 + v_2) < n ? Y[bx * 1024 + i_1 + r_1 * 512 + v_2] : 0.0f);
          }
        }
      }
    }
  }
}
