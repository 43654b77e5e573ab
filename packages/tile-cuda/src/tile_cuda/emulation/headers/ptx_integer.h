// Integer instructions, max and min of floats, approximations, moves, and predicates.
#pragma once
#include "cuda_math.h"
#include "ptx_numbers.h"
#include "ptx_registers.h"

namespace ptx {

template <class A, class B>
inline void dot_of_bytes(reg_r& d, reg_r a, reg_r b, reg_r c) {
  for (unsigned i = 0; i < 4; i++) c += (reg_r)((int)(A)(a >> 8 * i) * (int)(B)(b >> 8 * i));
  d = c;
}
inline void dp4a_s32_s32(int, reg_r& d, reg_r a, reg_r b, reg_r c) { dot_of_bytes<s8, s8>(d, a, b, c); }
inline void dp4a_s32_u32(int, reg_r& d, reg_r a, reg_r b, reg_r c) { dot_of_bytes<s8, u8>(d, a, b, c); }
inline void dp4a_u32_s32(int, reg_r& d, reg_r a, reg_r b, reg_r c) { dot_of_bytes<u8, s8>(d, a, b, c); }
inline void dp4a_u32_u32(int, reg_r& d, reg_r a, reg_r b, reg_r c) { dot_of_bytes<u8, u8>(d, a, b, c); }

// Each nibble of c picks a byte of b:a; its top bit picks the byte's sign instead.
inline reg_r permute_bytes(reg_r a, reg_r b, reg_r c) {
  reg_l from = (reg_l)b << 32 | a;
  reg_r result = 0;
  for (unsigned i = 0; i < 4; i++) {
    unsigned pick = c >> 4 * i & 15, byte = (unsigned)(from >> (pick & 7) * 8) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
inline void prmt_b32(int, reg_r& d, reg_r a, reg_r b, reg_r c) { d = permute_bytes(a, b, c); }

// A number before NaN, or NaN before numbers, and -0 below +0.
inline void max_f32(int, reg_f& d, reg_f a, reg_f b) { d = fmaxf(a, b); }
inline void min_f32(int, reg_f& d, reg_f a, reg_f b) { d = fminf(a, b); }
inline void max_f64(int, reg_d& d, reg_d a, reg_d b) { d = fmax(a, b); }
inline void min_f64(int, reg_d& d, reg_d a, reg_d b) { d = fmin(a, b); }
inline void max_NaN_f32(int, reg_f& d, reg_f a, reg_f b) { d = a == a && b == b ? fmaxf(a, b) : bits_f(0x7fffffffu); }
inline void min_NaN_f32(int, reg_f& d, reg_f a, reg_f b) { d = a == a && b == b ? fminf(a, b) : bits_f(0x7fffffffu); }

// A quotient by the divisor's reciprocal, both scaled where that would be subnormal or infinite: up to 2 units in the last
// place from the exact one, as the instruction. Its errors are not modelled bit by bit.
inline void div_full_f32(int, reg_f& d, reg_f a, reg_f b) {
  const float scale = fabsf(b) > 0x1p126f ? 0.25f : fabsf(b) < 0x1p-126f ? 0x1p24f : 1.0f;
  d = isinf(b) || isinf(a) || b == 0.0f || isnan(b) ? a / b : a * scale * (1.0f / (b * scale));
}
inline void rcp_approx_ftz_f32(int, reg_f& d, reg_f a) { d = flushed(1.0f / flushed(a)); }
inline void sqrt_approx_f32(int, reg_f& d, reg_f a) { d = sqrtf(a); }
inline void ex2_approx_ftz_f32(int, reg_f& d, reg_f a) { d = flushed(exp2f(flushed(a))); }

inline void lop3_b32(int, reg_r& d, reg_r a, reg_r b, reg_r c, long long table) {
  reg_r result = 0;
  for (unsigned i = 0; i < 8; i++)
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  d = result;
}

inline void selp_b32(int, reg_r& d, reg_r a, reg_r b, bool p) { d = p ? a : b; }
inline void selp_u32(int, reg_r& d, reg_r a, reg_r b, bool p) { d = p ? a : b; }
inline void selp_s32(int, reg_r& d, reg_r a, reg_r b, bool p) { d = p ? a : b; }

#define PTX_SETP(type, T)                                                           \
  inline void setp_eq_##type(int, bool& p, T a, T b) { p = a == b; }                \
  inline void setp_ne_##type(int, bool& p, T a, T b) { p = a != b; }
#define PTX_SETP_ORDER(type, T)                                                     \
  PTX_SETP(type, T)                                                                 \
  inline void setp_lt_##type(int, bool& p, T a, T b) { p = a < b; }                 \
  inline void setp_le_##type(int, bool& p, T a, T b) { p = a <= b; }                \
  inline void setp_gt_##type(int, bool& p, T a, T b) { p = a > b; }                 \
  inline void setp_ge_##type(int, bool& p, T a, T b) { p = a >= b; }
PTX_SETP(b32, u32)
PTX_SETP(b64, u64)
PTX_SETP_ORDER(u32, u32)
PTX_SETP_ORDER(s32, s32)
PTX_SETP_ORDER(u64, u64)
PTX_SETP_ORDER(s64, s64)
#undef PTX_SETP
#undef PTX_SETP_ORDER

// Moves; of 32 and 64 bits also between a register and a vector of its parts, the first one lowest.
#define PTX_MOVE(type, R) \
  inline void mov_##type(int, R& d, R a) { d = a; }
PTX_MOVE(b16, reg_h)
PTX_MOVE(u16, reg_h)
PTX_MOVE(s16, reg_h)
PTX_MOVE(b32, reg_r)
PTX_MOVE(u32, reg_r)
PTX_MOVE(s32, reg_r)
PTX_MOVE(b64, reg_l)
PTX_MOVE(u64, reg_l)
PTX_MOVE(s64, reg_l)
PTX_MOVE(f32, reg_f)
PTX_MOVE(f64, reg_d)
PTX_MOVE(pred, bool)
#undef PTX_MOVE
inline void mov_b32(int, reg_r& d, int a) { d = (reg_r)a; }  // a number in the text
inline void mov_b32(int, reg_r& d, long long a) { d = (reg_r)a; }
inline void mov_b32(int, reg_f& d, reg_f a) { d = a; }
inline void mov_b32(int, reg_r& d, reg_f a) { __builtin_memcpy(&d, &a, 4); }
inline void mov_b32(int, reg_f& d, reg_r a) { d = bits_f(a); }

template <class T>
inline void mov_b32(int, reg_r& d, V<T, 2> a) {
  static_assert(sizeof(T) == 2, "two halves");
  d = (reg_r)a[1] << 16 | a[0];
}
inline void mov_b32(int, V<reg_h, 2> d, reg_r a) { d[0] = (reg_h)a, d[1] = (reg_h)(a >> 16); }
template <class T>
inline void mov_b64(int, reg_l& d, V<T, 2> a) {
  static_assert(sizeof(T) == 4, "two halves");
  reg_r low, high;
  __builtin_memcpy(&low, a.p[0], 4);
  __builtin_memcpy(&high, a.p[1], 4);
  d = (reg_l)high << 32 | low;
}
inline void mov_b64(int, V<reg_r, 2> d, reg_l a) { d[0] = (reg_r)a, d[1] = (reg_r)(a >> 32); }

inline void min_u32(int, reg_r& d, reg_r a, reg_r b) { d = a < b ? a : b; }
inline void max_u32(int, reg_r& d, reg_r a, reg_r b) { d = a < b ? b : a; }
inline void pmevent(int, int) {}
SIMT_MODEL inline void trap(int) { simt::trap(); }

}  // namespace ptx

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned c) { return ptx::permute_bytes(a, b, c & 0x7777); }
inline int __dp4a(int a, int b, int c) {
  unsigned d;
  ptx::dp4a_s32_s32(0, d, (unsigned)a, (unsigned)b, (unsigned)c);
  return (int)d;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  ptx::dp4a_u32_u32(0, c, a, b, c);
  return c;
}
