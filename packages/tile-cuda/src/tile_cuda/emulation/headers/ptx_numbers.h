// Floating-point formats: codes to values and back. No host arithmetic on small formats is needed.
//
// Every value of a small format is a double. Rounding is to nearest, ties to even, from the exact value. NaN becomes
// the one NaN of PTX: all bits but the sign.
#pragma once
#include <stdint.h>
#include "ptx_registers.h"

namespace ptx {

inline double power_of_two(int e) { return bits_d((uint64_t)(e + 1023) << 52); }  // of a normal double

// A format of 1 sign bit, EXP exponent bits and MAN mantissa bits. INF: its largest exponent is kept for Inf and NaN;
// without, only the code of all ones is NaN.
template <int EXP, int MAN, bool INF>
struct Format {
  enum : int { BITS = 1 + EXP + MAN, WHOLE = 0, BIAS = (1 << (EXP - 1)) - 1, TOP = (1 << EXP) - 1 };
  enum : int { LEAST = 1 - (BITS == 8 ? 15 : BIAS) };  // exponent of subnormal numbers in products: those of 8 bits become f16
  enum : unsigned { ONES = (1u << (BITS - 1)) - 1, INFINITE = (unsigned)TOP << MAN, MAX = INF ? INFINITE - 1 : ONES - 1 };

  static double decode(unsigned code) {
    unsigned magnitude = code & ONES, mantissa = magnitude & ((1u << MAN) - 1);
    int exponent = (int)(magnitude >> MAN);
    double value;
    if (INF ? magnitude > INFINITE : magnitude == ONES)
      return bits_d(0x7fffffffffffffffull);
    else if (INF && magnitude == INFINITE)
      value = __builtin_inf();
    else if (exponent)
      value = (double)(mantissa | 1u << MAN) * power_of_two(exponent - BIAS - MAN);
    else
      value = (double)mantissa * power_of_two(1 - BIAS - MAN);
    return code >> (BITS - 1) & 1 ? -value : value;
  }

  // SATURATE: what is too large becomes the largest number, also Inf.
  template <bool SATURATE = false>
  static unsigned encode(double value) {
    uint64_t bits;
    __builtin_memcpy(&bits, &value, 8);
    unsigned sign = (unsigned)(bits >> 63) << (BITS - 1);
    if (value != value) return ONES;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024) return sign | (SATURATE ? MAX : INF ? INFINITE : ONES);
    if (exponent < -1022) return sign;  // a double below all formats here
    uint64_t mantissa = (bits & 0xfffffffffffffull) | 1ull << 52;
    int shift = 52 - MAN + (exponent < 1 - BIAS ? 1 - BIAS - exponent : 0);
    if (shift > 54) return sign;
    uint64_t kept = mantissa >> shift, rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    kept += rest > half || (rest == half && kept & 1);
    // The mantissa's leading bit counts as one step of the exponent.
    uint64_t code = kept + (exponent < 1 - BIAS ? 0 : (uint64_t)(exponent + BIAS - 1) << MAN);
    if (code > MAX) return sign | (SATURATE ? MAX : INF ? INFINITE : ONES);
    return sign | (unsigned)code;
  }
};

typedef Format<5, 10, true> F16;
typedef Format<8, 7, true> Bf16;
typedef Format<4, 3, false> E4m3;
typedef Format<5, 2, true> E5m2;

// Lies in a 32-bit register with the bits of a float, of which the last 13 are not looked at.
struct Tf32 {
  enum : int { BITS = 32, WHOLE = 0, LEAST = -126 };
  static double decode(unsigned code) { return bits_f(code & 0xffffe000u); }
};
struct S8 {
  enum : int { BITS = 8, WHOLE = 1 };
  static double decode(unsigned code) { return (signed char)code; }
};
struct U8 {
  enum : int { BITS = 8, WHOLE = 1 };
  static double decode(unsigned code) { return (unsigned char)code; }
};

inline float canonical(float x) { return x == x ? x : bits_f(0x7fffffffu); }
inline double canonical(double x) { return x == x ? x : bits_d(0x7fffffffffffffffull); }

// NaN through a conversion from or to double is quiet, and keeps its sign and as much of its payload as fits.
template <int EXP, int MAN>
inline double nan_from(unsigned code) {
  uint64_t sign = code >> (EXP + MAN), payload = code & ((1u << MAN) - 1);
  return bits_d(sign << 63 | 0x7ff8000000000000ull | payload << (52 - MAN));
}
template <int EXP, int MAN>
inline unsigned nan_to(double nan) {
  uint64_t bits;
  __builtin_memcpy(&bits, &nan, 8);
  unsigned ones = (1u << EXP) - 1, payload = (unsigned)((bits & 0xfffffffffffffull) >> (52 - MAN)) | 1u << (MAN - 1);
  return (unsigned)(bits >> 63) << (EXP + MAN) | ones << MAN | payload;
}

}  // namespace ptx
