// Functions of floats. What the device approximates is computed exactly here and rounded, in all three namespaces; half
// is computed in float and rounded. There are none of bfloat: it converts to float.
#pragma once
#include "metal_types.h"
#include "metal_vectors.h"

#define METAL_FLOAT_1(name, expression)                                            \
  namespace precise {                                                              \
  inline float name(float x) { return expression; }                                \
  }                                                                                \
  namespace fast {                                                                 \
  inline float name(float x) { return expression; }                                \
  }                                                                                \
  inline float name(float x) { return expression; }                                \
  inline half name(const half& x) { return half(precise::name((float)x)); }        \
  template <class T, class = metal_model::if_t<metal_model::is_integer<T>>>        \
  float name(T) = delete; /* ambiguous there */
#define METAL_FLOAT_2(name, expression)                                                          \
  namespace precise {                                                                            \
  inline float name(float x, float y) { return expression; }                                     \
  }                                                                                              \
  namespace fast {                                                                               \
  inline float name(float x, float y) { return expression; }                                     \
  }                                                                                              \
  inline float name(float x, float y) { return expression; }                                     \
  inline half name(const half& x, const half& y) { return half(precise::name((float)x, (float)y)); }
#define METAL_SAME_1(name) METAL_FLOAT_1(name, __builtin_##name##f(x))
#define METAL_SAME_2(name) METAL_FLOAT_2(name, __builtin_##name##f(x, y))

namespace metal_model {

// sin and its kin of pi x: the argument is reduced first, so that whole and half numbers come out exactly.
inline double sin_pi(double x) {
  x = __builtin_fmod(x, 2.0);
  if (__builtin_fabs(x) > 1.0) x -= __builtin_copysign(2.0, x);
  if (__builtin_fabs(x) > 0.5) x = __builtin_copysign(1.0 - __builtin_fabs(x), x);
  return __builtin_sin(x * 3.14159265358979323846);
}
inline double cos_pi(double x) { return sin_pi(__builtin_fabs(__builtin_fmod(x, 2.0)) + 0.5); }

// A number beside a NaN. Subnormals may be flushed and zeros are in no order: of two such numbers the wrong one is given.
inline float extreme(float x, float y, bool largest) {
  if (x != x || y != y) return x != x ? y : x;
  const float least = 1.17549435e-38f;
  const bool first = largest ? x > y || (x == y && !__builtin_signbit(x)) : x < y || (x == y && __builtin_signbit(x));
  const bool open = __builtin_fabsf(x) < least && __builtin_fabsf(y) < least;
  return first != open ? x : y;
}

inline float fract(float x) {
  if (x != x || __builtin_isinf(x)) return x != x ? x : 0.0f;
  float f = x - __builtin_floorf(x);
  return f < 1.0f ? f : 0.99999994f;
}

}  // namespace metal_model

namespace metal {

METAL_SAME_1(acos)
METAL_SAME_1(acosh)
METAL_SAME_1(asin)
METAL_SAME_1(asinh)
METAL_SAME_1(atan)
METAL_SAME_1(atanh)
METAL_SAME_1(ceil)
METAL_SAME_1(cos)
METAL_SAME_1(cosh)
METAL_SAME_1(exp)
METAL_SAME_1(exp2)
METAL_SAME_1(fabs)
METAL_SAME_1(floor)
METAL_SAME_1(log)
METAL_SAME_1(log10)
METAL_SAME_1(log2)
METAL_SAME_1(rint)
METAL_SAME_1(round)
METAL_SAME_1(sin)
METAL_SAME_1(sinh)
METAL_SAME_1(sqrt)
METAL_SAME_1(tan)
METAL_SAME_1(tanh)
METAL_SAME_1(trunc)
METAL_FLOAT_1(exp10, (float)__builtin_pow(10.0, (double)x))
METAL_FLOAT_1(rsqrt, (float)(1.0 / __builtin_sqrt((double)x)))
METAL_FLOAT_1(sinpi, (float)metal_model::sin_pi((double)x))
METAL_FLOAT_1(cospi, (float)metal_model::cos_pi((double)x))
METAL_FLOAT_1(tanpi, (float)(metal_model::sin_pi((double)x) / metal_model::cos_pi((double)x)))
METAL_FLOAT_1(fract, metal_model::fract(x))
METAL_SAME_2(atan2)
METAL_SAME_2(copysign)
METAL_SAME_2(fdim)
METAL_FLOAT_2(fmax, metal_model::extreme(x, y, true))
METAL_FLOAT_2(fmin, metal_model::extreme(x, y, false))
METAL_SAME_2(fmod)
METAL_SAME_2(pow)
METAL_FLOAT_2(powr, x >= 0.0f ? __builtin_powf(x, y) : __builtin_nanf(""))
METAL_FLOAT_2(divide, x / y)

// Without the namespaces of exactness.
inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
inline float min(float x, float y) { return __builtin_fminf(x, y); }
inline half max(const half& x, const half& y) { return fmax(x, y); }
inline half min(const half& x, const half& y) { return fmin(x, y); }
inline float abs(float x) { return fabs(x); }
inline half abs(const half& x) { return fabs(x); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline half fma(const half& x, const half& y, const half& z) {  // exact in double, so rounded once
  return half((double)(float)x * (double)(float)y + (double)(float)z);
}
namespace precise {
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
inline float min(float x, float y) { return __builtin_fminf(x, y); }
}  // namespace precise
namespace fast {
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
inline float min(float x, float y) { return __builtin_fminf(x, y); }
}  // namespace fast
inline float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
inline float ldexp(float x, int k) { return __builtin_ldexpf(x, k); }
inline half ldexp(const half& x, int k) { return half(__builtin_ldexp((double)(float)x, k)); }
inline int ilogb(float x) { return __builtin_ilogbf(x); }
inline float frexp(float x, int& exponent) { return __builtin_frexpf(x, &exponent); }
inline float modf(float x, float& whole) { return __builtin_modff(x, &whole); }
inline float sincos(float x, float& cosine) {
  cosine = cos(x);
  return sin(x);
}

// ------------------------------------------------------------------------------------------------------------ common
inline float clamp(float x, float low, float high) { return min(max(x, low), high); }
inline half clamp(const half& x, const half& low, const half& high) { return min(max(x, low), high); }
inline float mix(float x, float y, float a) { return x + (y - x) * a; }
inline float saturate(float x) { return clamp(x, 0.0f, 1.0f); }
inline half saturate(const half& x) { return clamp(x, half(0), half(1)); }
inline float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? 0.0f : x; }
inline half sign(const half& x) { return half(sign((float)x)); }
inline float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
inline float smoothstep(float low, float high, float x) {
  float t = saturate((x - low) / (high - low));
  return t * t * (3.0f - 2.0f * t);
}

// -------------------------------------------------------------------------------------------------------- relational
#define METAL_TEST(name, expression)                                       \
  inline bool name(float x) { return expression; }                         \
  inline bool name(const half& x) { return name((float)x); }
METAL_TEST(isnan, x != x)
METAL_TEST(isinf, __builtin_fabsf(x) == __builtin_inff())
METAL_TEST(isfinite, __builtin_fabsf(x) < __builtin_inff())
METAL_TEST(signbit, __builtin_signbit(x))
#undef METAL_TEST
inline bool isnormal(float x) { return isfinite(x) && __builtin_fabsf(x) >= 1.1754943508222875e-38f; }
inline bool isnormal(const half& x) { return isfinite(x) && __builtin_fabsf((float)x) >= 6.103515625e-05f; }

// The second where the condition holds.
template <class T>
inline T select(const T& a, const T& b, bool c) {
  return c ? b : a;
}
template <class T, int N>
inline vec<T, N> select(const vec<T, N>& a, const vec<T, N>& b, const vec<bool, N>& c) {
  vec<T, N> r;
  for (int i = 0; i < N; i++) r[i] = c[i] ? b[i] : a[i];
  return r;
}
inline bool all(bool x) { return x; }
inline bool any(bool x) { return x; }

}  // namespace metal

#undef METAL_FLOAT_1
#undef METAL_FLOAT_2
#undef METAL_SAME_1
#undef METAL_SAME_2
