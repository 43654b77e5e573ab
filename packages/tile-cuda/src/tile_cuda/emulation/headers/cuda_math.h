// Mathematics by its CUDA names. Functions that the device approximates are computed exactly here, so results agree
// within the device's documented error, not bit by bit.
#pragma once
#include <fenv.h>
#include <stdint.h>

#define MATH_1(name) float name##f(float); double name(double);
#define MATH_2(name) float name##f(float, float); double name(double, double);
extern "C" {
MATH_1(acos) MATH_1(acosh) MATH_1(asin) MATH_1(asinh) MATH_1(atan) MATH_1(atanh) MATH_1(cbrt) MATH_1(ceil) MATH_1(cos)
MATH_1(cosh) MATH_1(erf) MATH_1(erfc) MATH_1(exp) MATH_1(exp2) MATH_1(exp10) MATH_1(expm1) MATH_1(fabs) MATH_1(floor)
MATH_1(lgamma) MATH_1(log) MATH_1(log10) MATH_1(log1p) MATH_1(log2) MATH_1(logb) MATH_1(nearbyint) MATH_1(rint)
MATH_1(round) MATH_1(sin) MATH_1(sinh) MATH_1(sqrt) MATH_1(tan) MATH_1(tanh) MATH_1(tgamma) MATH_1(trunc)
MATH_2(atan2) MATH_2(copysign) MATH_2(fdim) MATH_2(fmod) MATH_2(hypot) MATH_2(nextafter)
MATH_2(pow) MATH_2(remainder)
float fmaf(float, float, float);
double fma(double, double, double);
float ldexpf(float, int);
double ldexp(double, int);
int abs(int) noexcept;
}
#undef MATH_1
#undef MATH_2

// The names of the functions on double also take float.
#define FLOAT_1(name) inline float name(float x) { return name##f(x); }
#define FLOAT_2(name) inline float name(float x, float y) { return name##f(x, y); }
FLOAT_1(acos) FLOAT_1(acosh) FLOAT_1(asin) FLOAT_1(asinh) FLOAT_1(atan) FLOAT_1(atanh) FLOAT_1(cbrt) FLOAT_1(ceil)
FLOAT_1(cos) FLOAT_1(cosh) FLOAT_1(erf) FLOAT_1(erfc) FLOAT_1(exp) FLOAT_1(exp2) FLOAT_1(exp10) FLOAT_1(expm1)
FLOAT_1(fabs) FLOAT_1(floor) FLOAT_1(log) FLOAT_1(log10) FLOAT_1(log1p) FLOAT_1(log2) FLOAT_1(nearbyint) FLOAT_1(rint)
FLOAT_1(round) FLOAT_1(sin) FLOAT_1(sinh) FLOAT_1(sqrt) FLOAT_1(tan) FLOAT_1(tanh) FLOAT_1(trunc)
FLOAT_2(atan2) FLOAT_2(copysign) FLOAT_2(fdim) FLOAT_2(fmod) FLOAT_2(hypot) FLOAT_2(pow)
#undef FLOAT_1
#undef FLOAT_2
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return x < 0 ? -x : x; }

// max and min as the device has them: a number before NaN, and -0 below +0 (a library may choose either zero).
#define EXTREME(name, T, sign)                                                     \
  inline T name(T a, T b) {                                                        \
    if (a != a || b != b) return a == a ? a : b == b ? b : a + b;                  \
    if (a == b) return (__builtin_signbit(a) != 0) == (1 sign 0) ? b : a;          \
    return a sign b ? a : b;                                                       \
  }
EXTREME(fmaxf, float, >) EXTREME(fminf, float, <) EXTREME(fmax, double, >) EXTREME(fmin, double, <)
#undef EXTREME
inline float fmax(float a, float b) { return fmaxf(a, b); }
inline float fmin(float a, float b) { return fminf(a, b); }

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * fmod((double)x, 2.0)); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * fmod((double)x, 2.0)); }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float normcdff(float x) { return (float)(0.5 * erfc(-(double)x * 0.70710678118654752440)); }
inline float fdividef(float x, float y) { return x / y; }

// Fast ones, which flush subnormal numbers. Quotients by divisors above 2^126 are zero (CUDA C++ Programming Guide,
// "Intrinsic Functions").
inline float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x; }
#define FAST_1(name, function) inline float name(float x) { return flushed(function(flushed(x))); }
FAST_1(__expf, expf) FAST_1(__exp10f, exp10f) FAST_1(__logf, logf) FAST_1(__log2f, log2f) FAST_1(__log10f, log10f)
FAST_1(__sinf, sinf) FAST_1(__cosf, cosf) FAST_1(__tanf, tanf)
#undef FAST_1
inline float __powf(float x, float y) { return flushed(powf(flushed(x), flushed(y))); }
inline float __fdividef(float x, float y) {
  x = flushed(x), y = flushed(y);
  if (fabsf(y) > 0x1p126f && !isinf(y)) return isinf(x) ? NAN : 0.0f;
  return flushed(x / y);
}
inline float __tanhf(float x) { return tanhf(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

// One rounding, as named: the processor's own mode, around operands that the compiler must not look at before.
template <int mode, class F>
inline auto with_rounding(F operation) {
  fesetround(mode);
  volatile auto result = operation();
  fesetround(FE_TONEAREST);
  return (decltype(operation()))result;
}
#define ROUNDED(suffix, mode, T, add, sub, mul, div, fma_, rcp, sqrt_, fused, root)                                   \
  inline T add##suffix(T x, T y) { volatile T a = x, b = y; return with_rounding<mode>([&]() -> T { return a + b; }); } \
  inline T sub##suffix(T x, T y) { volatile T a = x, b = y; return with_rounding<mode>([&]() -> T { return a - b; }); } \
  inline T mul##suffix(T x, T y) { volatile T a = x, b = y; return with_rounding<mode>([&]() -> T { return a * b; }); } \
  inline T div##suffix(T x, T y) { volatile T a = x, b = y; return with_rounding<mode>([&]() -> T { return a / b; }); } \
  inline T rcp##suffix(T x) { volatile T a = x; return with_rounding<mode>([&]() -> T { return (T)1 / a; }); }          \
  inline T sqrt_##suffix(T x) { volatile T a = x; return with_rounding<mode>([&]() -> T { return root(a); }); }         \
  inline T fma_##suffix(T x, T y, T z) {                                                                                \
    volatile T a = x, b = y, c = z;                                                                                     \
    return with_rounding<mode>([&]() -> T { return fused(a, b, c); });                                                  \
  }
#define ROUNDINGS(suffix, mode)                                                                                  \
  ROUNDED(suffix, mode, float, __fadd, __fsub, __fmul, __fdiv, __fmaf, __frcp, __fsqrt, fmaf, sqrtf)             \
  ROUNDED(suffix, mode, double, __dadd, __dsub, __dmul, __ddiv, __fma, __drcp, __dsqrt, fma, sqrt)
ROUNDINGS(_rn, FE_TONEAREST) ROUNDINGS(_rz, FE_TOWARDZERO) ROUNDINGS(_ru, FE_UPWARD) ROUNDINGS(_rd, FE_DOWNWARD)
#undef ROUNDINGS
#undef ROUNDED
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

template <class To, class From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To to;
  __builtin_memcpy(&to, &x, sizeof to);
  return to;
}
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }

// Floats to integers: beyond the range the nearest integer of the type. NaN becomes 0, but where either side has 64 bits
// the highest bit alone (PTX ISA, "cvt").
template <class To, class From>
inline To saturated(double x, From) {
  constexpr bool is_signed = (To)-1 < (To)0;
  constexpr int bits = 8 * sizeof(To);
  const To low = is_signed ? (To)((uint64_t)1 << (bits - 1)) : (To)0, high = (To)~low;
  const double limit = (is_signed ? 1.0 : 2.0) * (double)((uint64_t)1 << (bits - 1));
  if (x != x) return sizeof(From) == 8 || bits == 64 ? (To)((uint64_t)1 << (bits - 1)) : (To)0;
  return x <= (double)low ? low : x >= limit ? high : (To)x;
}
#define TO_INTEGER(name, To)                                                                      \
  inline To __float2##name##_rn(float x) { return saturated<To>(rint((double)x), x); }            \
  inline To __float2##name##_rz(float x) { return saturated<To>(trunc((double)x), x); }           \
  inline To __float2##name##_rd(float x) { return saturated<To>(floor((double)x), x); }           \
  inline To __float2##name##_ru(float x) { return saturated<To>(ceil((double)x), x); }            \
  inline To __double2##name##_rn(double x) { return saturated<To>(rint(x), x); }                  \
  inline To __double2##name##_rz(double x) { return saturated<To>(trunc(x), x); }                 \
  inline To __double2##name##_rd(double x) { return saturated<To>(floor(x), x); }                 \
  inline To __double2##name##_ru(double x) { return saturated<To>(ceil(x), x); }
TO_INTEGER(int, int) TO_INTEGER(uint, unsigned) TO_INTEGER(ll, long long) TO_INTEGER(ull, unsigned long long)
#undef TO_INTEGER
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (n & 31));
}

template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
