// Formats of floats: codes to values and back. Every value of a small format is a double.
#pragma once
#include <stdint.h>

namespace rocm {

template <class To, class From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits of another size");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

// 1 sign bit, EXP exponent bits and MAN mantissa bits. Codes that are no numbers: IEEE keeps the largest exponent for
// infinities and NaN, ONES only the code of all ones for NaN, and UNSIGNED (fnuz) the code of negative zero for NaN.
enum Special { IEEE, ONES, UNSIGNED };

template <int EXP, int MAN, int BIAS, Special KIND>
struct Format {
  static double decode(unsigned code) {
    unsigned sign = code >> (EXP + MAN) & 1, exponent = code >> MAN & ((1u << EXP) - 1), mantissa = code & ((1u << MAN) - 1);
    bool top = exponent == (1u << EXP) - 1, all = mantissa == (1u << MAN) - 1;
    if (KIND == IEEE && top) return mantissa ? __builtin_nan("") : sign ? -__builtin_inf() : __builtin_inf();
    if (KIND == ONES && top && all) return __builtin_nan("");
    if (KIND == UNSIGNED && sign && !exponent && !mantissa) return __builtin_nan("");
    double value = exponent ? (double)(mantissa | 1u << MAN) : (double)mantissa;
    value *= bits_as<double>((uint64_t)(1023 + (exponent ? (int)exponent : 1) - BIAS - MAN) << 52);
    return sign ? -value : value;
  }
};

typedef Format<5, 10, 15, IEEE> F16;
typedef Format<8, 7, 127, IEEE> Bf16;
#if ROCM_FNUZ
typedef Format<4, 3, 8, UNSIGNED> Fp8;
typedef Format<5, 2, 16, UNSIGNED> Bf8;
#else
typedef Format<4, 3, 7, ONES> Fp8;
typedef Format<5, 2, 15, IEEE> Bf8;
#endif
struct I8 {
  static double decode(unsigned code) { return (signed char)code; }
};

// The nearest code of F16, ties to even; NaN is quiet and keeps its sign and the upper bits of its payload.
inline unsigned short f16_code(float x) {
  uint32_t bits = bits_as<uint32_t>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (unsigned short)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return (unsigned short)(sign | 0x7c00);  // what rounds to 65536 or more
  if (magnitude < 0x38800000) {  // subnormal: a whole number of 2^-24
    float units = __builtin_rintf(bits_as<float>(magnitude) * 16777216.0f);
    return (unsigned short)(sign | (unsigned)units);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return (unsigned short)(sign | ((rounded - 0x38000000) >> 13));
}

// a * b + c rounded to odd: rounding that again is rounding once. The product of two of F16 is exact.
inline float fused(double a, double b, double c) {
  double product = a * b, sum = product + c, back = sum - product;
  if (sum - sum != 0) return (float)sum;  // infinite or NaN
  double rest = (product - (sum - back)) + (c - back);
  float near = (float)sum;
  double over = (near - sum) - rest;  // what the rounding added
  if (over == 0) return near;
  uint32_t bits = bits_as<uint32_t>(near);
  if ((over > 0) == (near > 0)) bits -= 1;  // towards zero
  return bits_as<float>(bits | 1);
}

template <class Operation>
inline unsigned on_halves(unsigned a, unsigned b, unsigned c, Operation operation) {
  unsigned words[2];
  for (int n = 0; n < 2; ++n, a >>= 16, b >>= 16, c >>= 16)
    words[n] = f16_code(operation(F16::decode(a & 0xffff), F16::decode(b & 0xffff), F16::decode(c & 0xffff)));
  return words[0] | words[1] << 16;
}

// The nearest code of Bf16, ties to even: the upper half of a float32.
inline unsigned short bf16_code(float x) {
  uint32_t bits = bits_as<uint32_t>(x);
  return (unsigned short)(x != x ? bits >> 16 | 64 : (bits + 32767 + (bits >> 16 & 1)) >> 16);
}

}  // namespace rocm

// The 16-bit floats as classes: not every host compiler has them.
struct RocmHalf {
  unsigned short code;
  RocmHalf() = default;
  explicit RocmHalf(float x) : code(rocm::f16_code(x)) {}
  explicit operator float() const { return (float)rocm::F16::decode(code); }
};
#define _Float16 RocmHalf
struct RocmBfloat {
  unsigned short code;
  RocmBfloat() = default;
  explicit RocmBfloat(float x) : code(rocm::bf16_code(x)) {}
};
#define __bf16 RocmBfloat

inline float __builtin_amdgcn_cvt_f32_fp8(int codes, int byte) { return (float)rocm::Fp8::decode((unsigned)codes >> 8 * byte & 255); }
inline float __builtin_amdgcn_cvt_f32_bf8(int codes, int byte) { return (float)rocm::Bf8::decode((unsigned)codes >> 8 * byte & 255); }

// Two 16-bit floats in a word, each rounded once: float32 has more than twice their digits.
inline unsigned join_f16x2(float a, float b) { return rocm::f16_code(a) | (unsigned)rocm::f16_code(b) << 16; }
inline unsigned neg_f16x2(unsigned a) { return a ^ 0x80008000u; }
inline unsigned add_f16x2(unsigned a, unsigned b) {
  return rocm::on_halves(a, b, 0, [](double x, double y, double) { return (float)(x + y); });
}
inline unsigned sub_f16x2(unsigned a, unsigned b) {
  return rocm::on_halves(a, b, 0, [](double x, double y, double) { return (float)(x - y); });
}
inline unsigned mul_f16x2(unsigned a, unsigned b) {
  return rocm::on_halves(a, b, 0, [](double x, double y, double) { return (float)(x * y); });
}
inline unsigned fma_f16x2(unsigned a, unsigned b, unsigned c) { return rocm::on_halves(a, b, c, rocm::fused); }
