// Arithmetic of two 16-bit floats in a register, each rounded once; subnormal numbers are kept.
#pragma once
#include "ptx_memory.h"

namespace ptx {

// a * b + c rounded to odd: rounding that again is rounding once. The product of two 16-bit floats is exact.
SIMT_MODEL inline double fused(double a, double b, double c) {
  double product = a * b, sum = product + c;
  if (sum - sum != 0) return sum;  // infinite or NaN
  double back = sum - product, rest = (product - (sum - back)) + (c - back);
  uint64_t bits;
  __builtin_memcpy(&bits, &sum, 8);
  if (rest != 0 && !(bits & 1)) bits += (rest > 0) == (sum > 0) ? 1 : -1;
  return bits_d(bits);
}

template <class F, class Operation>
SIMT_MODEL inline reg_r on_halves(reg_r a, reg_r b, reg_r c, Operation operation) {
  return operation(a & 0xffff, b & 0xffff, c & 0xffff) | operation(a >> 16, b >> 16, c >> 16) << 16;
}
// The sum or product of two in double is exact, or far from a tie.
template <class F, class Operation>
SIMT_MODEL inline reg_r rounded_halves(reg_r a, reg_r b, reg_r c, Operation operation) {
  return on_halves<F>(a, b, c, [&](unsigned x, unsigned y, unsigned z) -> reg_r {
    return F::encode(operation(F::decode(x), F::decode(y), F::decode(z)));
  });
}
template <class F>
SIMT_MODEL inline reg_r extreme_halves(reg_r a, reg_r b, bool least, bool nan) {
  return on_halves<F>(a, b, 0, [&](unsigned x, unsigned y, unsigned) -> reg_r {
    bool is_nan = F::decode(x) != F::decode(x) || F::decode(y) != F::decode(y);
    return nan && is_nan ? 0x7fff : extreme<F>((reg_h)x, (reg_h)y, least);
  });
}

#define PTX_ROUNDED(name, kind, F, expression)                                             \
  inline void name##_rn_##kind(int, reg_r& d, reg_r a, reg_r b, reg_r c = 0) {             \
    d = rounded_halves<F>(a, b, c, [](double x, double y, double z) { return expression; }); \
  }
#define PTX_COMPARED(name, kind, F, sign)                                                       \
  inline void set_##name##_u32_##kind(int, reg_r& d, reg_r a, reg_r b) {                        \
    d = on_halves<F>(a, b, 0, [](unsigned x, unsigned y, unsigned) -> reg_r {                   \
      return F::decode(x) sign F::decode(y) ? 0xffff : 0;                                       \
    });                                                                                         \
  }
#define PTX_PACKED(kind, F)                                                                              \
  PTX_ROUNDED(add, kind, F, ((void)z, x + y))                                                            \
  PTX_ROUNDED(sub, kind, F, ((void)z, x - y))                                                            \
  PTX_ROUNDED(mul, kind, F, ((void)z, x * y))                                                            \
  PTX_ROUNDED(fma, kind, F, fused(x, y, z))                                                              \
  PTX_COMPARED(lt, kind, F, <)                                                                           \
  PTX_COMPARED(le, kind, F, <=)                                                                          \
  PTX_COMPARED(gt, kind, F, >)                                                                           \
  PTX_COMPARED(ge, kind, F, >=)                                                                          \
  PTX_COMPARED(eq, kind, F, ==)                                                                          \
  inline void max_##kind(int, reg_r& d, reg_r a, reg_r b) { d = extreme_halves<F>(a, b, false, false); }    \
  inline void min_##kind(int, reg_r& d, reg_r a, reg_r b) { d = extreme_halves<F>(a, b, true, false); }     \
  inline void max_NaN_##kind(int, reg_r& d, reg_r a, reg_r b) { d = extreme_halves<F>(a, b, false, true); } \
  inline void min_NaN_##kind(int, reg_r& d, reg_r a, reg_r b) { d = extreme_halves<F>(a, b, true, true); }
PTX_PACKED(f16x2, F16)
PTX_PACKED(bf16x2, Bf16)
#undef PTX_PACKED
#undef PTX_COMPARED
#undef PTX_ROUNDED

// The sign of NaN, too, unlike that of results of arithmetic.
inline void neg_f16x2(int, reg_r& d, reg_r a) { d = a ^ 0x80008000u; }
inline void abs_f16x2(int, reg_r& d, reg_r a) { d = a & 0x7fff7fffu; }

}  // namespace ptx
