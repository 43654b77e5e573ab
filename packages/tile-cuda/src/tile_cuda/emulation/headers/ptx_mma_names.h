// The matrix products by the names of their opcodes.
#pragma once
#include "ptx_mma.h"

namespace ptx {

#define PTX_MMA(name, K, A, B, SUM)                                                                 \
  template <class D, class TA, class TB, class TC>                                                  \
  inline void mma_sync_aligned_m16n8k##K##_row_col_##name(int line, D d, TA a, TB b, TC c) {        \
    mma<A, B, SUM, K>(line, d, a, b, c);                                                            \
  }
#define PTX_MMA_SP(name, K, A, B, SUM)                                                              \
  template <class D, class TA, class TB, class TC>                                                  \
  inline void mma_sp_ordered_metadata_sync_aligned_m16n8k##K##_row_col_##name(                      \
      int line, D d, TA a, TB b, TC c, reg_r metadata, long long selector) {                        \
    mma_sp<A, B, SUM, K>(line, d, a, b, c, metadata, selector);                                     \
  }

#define PTX_HALVES(DEFINE, K)                    \
  DEFINE(f32_f16_f16_f32, K, F16, F16, SumF32)   \
  DEFINE(f16_f16_f16_f16, K, F16, F16, SumF16)   \
  DEFINE(f32_bf16_bf16_f32, K, Bf16, Bf16, SumF32)
PTX_HALVES(PTX_MMA, 8)
PTX_HALVES(PTX_MMA, 16)
PTX_HALVES(PTX_MMA_SP, 16)
PTX_HALVES(PTX_MMA_SP, 32)

PTX_MMA(f32_tf32_tf32_f32, 4, Tf32, Tf32, SumF32)
PTX_MMA(f32_tf32_tf32_f32, 8, Tf32, Tf32, SumF32)
PTX_MMA_SP(f32_tf32_tf32_f32, 8, Tf32, Tf32, SumF32)
PTX_MMA_SP(f32_tf32_tf32_f32, 16, Tf32, Tf32, SumF32)

#define PTX_INT8(DEFINE, K, A, FA, B, FB)                      \
  DEFINE(s32_##A##_##B##_s32, K, FA, FB, SumS32<false>)        \
  DEFINE(satfinite_s32_##A##_##B##_s32, K, FA, FB, SumS32<true>)
#define PTX_INT8_ALL(DEFINE, K)       \
  PTX_INT8(DEFINE, K, s8, S8, s8, S8) \
  PTX_INT8(DEFINE, K, s8, S8, u8, U8) \
  PTX_INT8(DEFINE, K, u8, U8, s8, S8) \
  PTX_INT8(DEFINE, K, u8, U8, u8, U8)
PTX_INT8_ALL(PTX_MMA, 16)
PTX_INT8_ALL(PTX_MMA, 32)
PTX_INT8_ALL(PTX_MMA_SP, 32)
PTX_INT8_ALL(PTX_MMA_SP, 64)

#define PTX_FP8(DEFINE, K, C, SUM)                          \
  DEFINE(C##_e4m3_e4m3_##C, K, E4m3, E4m3, SUM)             \
  DEFINE(C##_e4m3_e5m2_##C, K, E4m3, E5m2, SUM)             \
  DEFINE(C##_e5m2_e4m3_##C, K, E5m2, E4m3, SUM)             \
  DEFINE(C##_e5m2_e5m2_##C, K, E5m2, E5m2, SUM)
PTX_FP8(PTX_MMA, 16, f32, SumF32)
PTX_FP8(PTX_MMA, 16, f16, SumF16)
PTX_FP8(PTX_MMA, 32, f32, SumF32)
PTX_FP8(PTX_MMA, 32, f16, SumF16)
PTX_FP8(PTX_MMA_SP, 64, f32, SumF32)

#undef PTX_MMA
#undef PTX_MMA_SP
#undef PTX_HALVES
#undef PTX_INT8
#undef PTX_INT8_ALL
#undef PTX_FP8

}  // namespace ptx
