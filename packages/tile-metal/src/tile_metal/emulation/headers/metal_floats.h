// The 16-bit floats as classes: g++ 12 has no built-in ones. They hold codes; arithmetic is that of float, rounded,
// which for + - * / is the correctly rounded result.
#pragma once
#include <stdint.h>

namespace metal_model {

inline float float_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
inline constexpr bool is_integer = false;
template <class T>
inline constexpr bool is_float = false;
template <class T>
inline constexpr bool is_number = is_integer<T> || is_float<T>;
#define METAL_INTEGER(T) \
  template <>            \
  inline constexpr bool is_integer<T> = true;
METAL_INTEGER(bool)
METAL_INTEGER(char)
METAL_INTEGER(signed char)
METAL_INTEGER(unsigned char)
METAL_INTEGER(short)
METAL_INTEGER(unsigned short)
METAL_INTEGER(int)
METAL_INTEGER(unsigned)
METAL_INTEGER(long)
METAL_INTEGER(unsigned long)
METAL_INTEGER(long long)
METAL_INTEGER(unsigned long long)
#undef METAL_INTEGER
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;  // literals without suffix

template <bool, class T>
struct If {};
template <class T>
struct If<true, T> {
  typedef T type;
};
template <bool B, class T = int>
using if_t = typename If<B, T>::type;
template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;

// The nearest code of 1 + EXP + MAN bits, ties to even. NaN keeps its sign and as much of its payload as fits.
template <int EXP, int MAN>
inline uint16_t code_of(double value) {
  enum : int { BIAS = (1 << (EXP - 1)) - 1 };
  const uint16_t infinite = (uint16_t)(((1u << EXP) - 1) << MAN);
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 63 << 15);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & 0xfffffffffffffull;
  if (exponent == 1024) {
    uint64_t payload = mantissa ? mantissa >> (52 - MAN) | 1ull << (MAN - 1) : 0;
    return (uint16_t)(sign | infinite | payload);
  }
  if (exponent < -1022) return sign;  // a subnormal double is far below all codes
  mantissa |= 1ull << 52;
  bool small = exponent < 1 - BIAS;
  int shift = 52 - MAN + (small ? 1 - BIAS - exponent : 0);
  if (shift > 54) return sign;
  uint64_t kept = mantissa >> shift, rest = mantissa & ((1ull << shift) - 1), tie = 1ull << (shift - 1);
  kept += rest > tie || (rest == tie && kept & 1);
  // The mantissa's leading bit counts as one step of the exponent.
  uint64_t code = kept + (small ? 0 : (uint64_t)(exponent + BIAS - 1) << MAN);
  return (uint16_t)(sign | (code > infinite ? infinite : code));
}

}  // namespace metal_model

struct bfloat;

struct half {
  uint16_t bits;

  half() = default;
  half(const half& x) : bits(x.bits) {}  // written out: copies are checked for their alignment
  half& operator=(const half& x) {
    bits = x.bits;
    return *this;
  }
  template <class T, class = metal_model::if_t<metal_model::is_number<T>>>
  half(T x) : bits(metal_model::code_of<5, 10>((double)x)) {}
  inline explicit half(const bfloat& x);

  operator float() const {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    if (exponent == 31) return metal_model::float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return metal_model::float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 5.9604644775390625e-08f;
    return sign ? -magnitude : magnitude;
  }
};

struct bfloat {
  uint16_t bits;

  bfloat() = default;
  bfloat(const bfloat& x) : bits(x.bits) {}
  bfloat& operator=(const bfloat& x) {
    bits = x.bits;
    return *this;
  }
  template <class T, class = metal_model::if_t<metal_model::is_number<T>>>
  explicit bfloat(T x) : bits(metal_model::code_of<8, 7>((double)x)) {}
  explicit bfloat(const half& x) : bfloat((float)x) {}

  operator float() const { return metal_model::float_of_bits((uint32_t)bits << 16); }
};
inline half::half(const bfloat& x) : half((float)x) {}

static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2, "of 16 bits");

// With a float the result is a float, with an integer it is of the small type. Both small types do not mix.
#define METAL_SMALL_OPERATOR(S, op)                                                                         \
  inline S operator op(const S& a, const S& b) { return S((float)a op(float) b); }                          \
  template <class T, class = metal_model::if_t<metal_model::is_float<T>>>                                   \
  inline float operator op(const S& a, T b) {                                                               \
    return (float)a op(float) b;                                                                            \
  }                                                                                                         \
  template <class T, class = metal_model::if_t<metal_model::is_float<T>>>                                   \
  inline float operator op(T a, const S& b) {                                                               \
    return (float)a op(float) b;                                                                            \
  }                                                                                                         \
  template <class T, metal_model::if_t<metal_model::is_integer<T>> = 0>                                     \
  inline S operator op(const S& a, T b) {                                                                   \
    return a op S(b);                                                                                       \
  }                                                                                                         \
  template <class T, metal_model::if_t<metal_model::is_integer<T>> = 0>                                     \
  inline S operator op(T a, const S& b) {                                                                   \
    return S(a) op b;                                                                                       \
  }                                                                                                         \
  template <class T>                                                                                        \
  inline S& operator op##=(S& a, const T& b) {                                                              \
    return a = S(a op b);                                                                                   \
  }
#define METAL_SMALL_COMPARISON(S, op)                                                     \
  inline bool operator op(const S& a, const S& b) { return (float)a op(float) b; }        \
  template <class T, class = metal_model::if_t<metal_model::is_number<T>>>                \
  inline bool operator op(const S& a, T b) {                                              \
    return (float)a op(float) b;                                                          \
  }                                                                                       \
  template <class T, class = metal_model::if_t<metal_model::is_number<T>>>                \
  inline bool operator op(T a, const S& b) {                                              \
    return (float)a op(float) b;                                                          \
  }
#define METAL_SMALL(S)          \
  METAL_SMALL_OPERATOR(S, +)    \
  METAL_SMALL_OPERATOR(S, -)    \
  METAL_SMALL_OPERATOR(S, *)    \
  METAL_SMALL_OPERATOR(S, /)    \
  METAL_SMALL_COMPARISON(S, <)  \
  METAL_SMALL_COMPARISON(S, >)  \
  METAL_SMALL_COMPARISON(S, <=) \
  METAL_SMALL_COMPARISON(S, >=) \
  METAL_SMALL_COMPARISON(S, ==) \
  METAL_SMALL_COMPARISON(S, !=) \
  inline S operator-(const S& a) { \
    S r = a;                    \
    r.bits ^= 0x8000;           \
    return r;                   \
  }
METAL_SMALL(half)
METAL_SMALL(bfloat)
#undef METAL_SMALL
#undef METAL_SMALL_OPERATOR
#undef METAL_SMALL_COMPARISON

#define METAL_NO_MIXING(op)                                 \
  void operator op(const half&, const bfloat&) = delete;    \
  void operator op(const bfloat&, const half&) = delete;
METAL_NO_MIXING(+)
METAL_NO_MIXING(-)
METAL_NO_MIXING(*)
METAL_NO_MIXING(/)
#undef METAL_NO_MIXING
