// cvt: conversions between formats of floats, rounded to nearest, ties to even (.rna: ties away from zero).
#pragma once
#include "ptx_numbers.h"

namespace ptx {

inline void cvt_f32_f16(int, reg_f& d, reg_h a) { d = canonical((float)F16::decode(a)); }
inline void cvt_f64_f16(int, reg_d& d, reg_h a) {
  d = F16::decode(a);
  if (d != d) d = nan_from<5, 10>(a);
}
inline void cvt_f32_bf16(int, reg_f& d, reg_h a) { d = canonical((float)Bf16::decode(a)); }
inline void cvt_f64_f32(int, reg_d& d, reg_f a) {
  unsigned bits;
  __builtin_memcpy(&bits, &a, 4);
  d = a == a ? (double)a : nan_from<8, 23>(bits);
}
inline void cvt_rn_f32_f64(int, reg_f& d, reg_d a) { d = a == a ? (float)a : bits_f(nan_to<8, 23>(a)); }
inline void cvt_rn_f16_f32(int, reg_h& d, reg_f a) { d = (reg_h)F16::encode(a); }
inline void cvt_rn_f16_f64(int, reg_h& d, reg_d a) { d = (reg_h)(a == a ? F16::encode(a) : nan_to<5, 10>(a)); }
inline void cvt_rn_bf16_f32(int, reg_h& d, reg_f a) { d = (reg_h)Bf16::encode(a); }
inline void cvt_rn_f16_bf16(int, reg_h& d, reg_h a) { d = (reg_h)F16::encode(Bf16::decode(a)); }
// The first source becomes the upper half.
inline void cvt_rn_f16x2_f32(int, reg_r& d, reg_f a, reg_f b) { d = F16::encode(a) << 16 | F16::encode(b); }
inline void cvt_rn_bf16x2_f32(int, reg_r& d, reg_f a, reg_f b) { d = Bf16::encode(a) << 16 | Bf16::encode(b); }

// A float whose last 13 bits are zero. NaN: .rna cuts it, .rn makes it the one NaN of PTX.
inline reg_r round_tf32(reg_f a, bool ties_away) {
  unsigned bits;
  __builtin_memcpy(&bits, &a, 4);
  if (a != a && (!ties_away || !(bits & 0x7fe000u))) return 0x7fffe000u;
  if ((bits & 0x7f800000u) != 0x7f800000u) bits += ties_away ? 0x1000u : 0xfffu + (bits >> 13 & 1);
  return bits & 0xffffe000u;
}
inline void cvt_rna_tf32_f32(int, reg_r& d, reg_f a) { d = round_tf32(a, true); }
inline void cvt_rn_tf32_f32(int, reg_r& d, reg_f a) { d = round_tf32(a, false); }

#define PTX_FP8(name, F)                                                                     \
  inline void cvt_rn_f16x2_##name##x2(int, reg_r& d, reg_h a) {                              \
    d = F16::encode(F::decode(a >> 8)) << 16 | F16::encode(F::decode(a & 0xff));             \
  }                                                                                          \
  inline void cvt_rn_satfinite_##name##x2_f32(int, reg_h& d, reg_f a, reg_f b) {             \
    d = (reg_h)(F::encode<true>(a) << 8 | F::encode<true>(b));                               \
  }                                                                                          \
  inline void cvt_rn_satfinite_##name##x2_f16x2(int, reg_h& d, reg_r a) {                    \
    d = (reg_h)(F::encode<true>(F16::decode(a >> 16)) << 8 | F::encode<true>(F16::decode(a & 0xffff))); \
  }
PTX_FP8(e4m3, E4m3)
PTX_FP8(e5m2, E5m2)
#undef PTX_FP8

}  // namespace ptx
