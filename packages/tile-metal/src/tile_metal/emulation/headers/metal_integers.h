// Functions of integers, for each type of 8 to 64 bits: arguments of two types are ambiguous, as on the device.
#pragma once
#include "metal_types.h"

namespace metal_model {

template <class T>
inline constexpr int bits_of = 8 * sizeof(T);
template <class T>
inline constexpr bool has_sign = (T)-1 < (T)0;

template <class T>
inline T low_mask(uint n) {
  return n >= (uint)bits_of<T> ? (T)-1 : (T)(((ulong)1 << n) - 1);
}
template <class T>
inline ulong unsigned_of(T x) {
  return (ulong)x & (bits_of<T> == 64 ? ~0ul : ((ulong)1 << (bits_of<T> & 63)) - 1);
}
template <class T>
inline T least() {
  return has_sign<T> ? (T)((ulong)1 << (bits_of<T> - 1)) : (T)0;
}
template <class T>
inline T most() {
  return (T)~least<T>();
}
template <class T>
inline T reversed(T x) {
  ulong v = unsigned_of(x), r = 0;
  for (int i = 0; i < bits_of<T>; i++) r |= (v >> i & 1) << (bits_of<T> - 1 - i);
  return (T)r;
}

}  // namespace metal_model

namespace metal {

#define METAL_INTEGER_FUNCTIONS(T)                                                                              \
  inline T min(T x, T y) { return y < x ? y : x; }                                                              \
  inline T max(T x, T y) { return x < y ? y : x; }                                                              \
  inline T clamp(T x, T low, T high) { return min(max(x, low), high); }                                         \
  inline T abs(T x) { return x < 0 ? (T)(0 - x) : x; }                                                          \
  inline T absdiff(T x, T y) { return x < y ? (T)(y - x) : (T)(x - y); }                                        \
  inline T addsat(T x, T y) {                                                                                   \
    __int128 r = (__int128)x + y;                                                                               \
    return r < metal_model::least<T>() ? metal_model::least<T>()                                                \
           : r > metal_model::most<T>() ? metal_model::most<T>() : (T)r;                                        \
  }                                                                                                             \
  inline T subsat(T x, T y) {                                                                                   \
    __int128 r = (__int128)x - y;                                                                               \
    return r < metal_model::least<T>() ? metal_model::least<T>()                                                \
           : r > metal_model::most<T>() ? metal_model::most<T>() : (T)r;                                        \
  }                                                                                                             \
  inline T hadd(T x, T y) { return (T)(((__int128)x + y) >> 1); }                                               \
  inline T rhadd(T x, T y) { return (T)(((__int128)x + y + 1) >> 1); }                                          \
  inline T mulhi(T x, T y) {                                                                                    \
    return metal_model::has_sign<T> ? (T)((__int128)x * y >> metal_model::bits_of<T>)                           \
                                    : (T)((unsigned __int128)x * y >> metal_model::bits_of<T>);                 \
  }                                                                                                             \
  inline T popcount(T x) { return (T)__builtin_popcountl(metal_model::unsigned_of(x)); }                        \
  inline T clz(T x) {                                                                                           \
    return (T)(x ? __builtin_clzl(metal_model::unsigned_of(x)) - (64 - metal_model::bits_of<T>)                 \
                 : metal_model::bits_of<T>);                                                                    \
  }                                                                                                             \
  inline T ctz(T x) { return (T)(x ? __builtin_ctzl(metal_model::unsigned_of(x)) : metal_model::bits_of<T>); }  \
  inline T reverse_bits(T x) { return metal_model::reversed(x); }                                               \
  inline T rotate(T x, T by) {                                                                                  \
    uint n = (uint)by & (metal_model::bits_of<T> - 1);                                                          \
    ulong v = metal_model::unsigned_of(x);                                                                      \
    return n ? (T)(v << n | v >> (metal_model::bits_of<T> - n)) : x;                                            \
  }                                                                                                             \
  inline T extract_bits(T x, uint offset, uint n) {                                                             \
    if (!n) return 0;                                                                                           \
    T cut = (T)(metal_model::unsigned_of(x) >> offset & metal_model::unsigned_of(metal_model::low_mask<T>(n))); \
    bool negative = metal_model::has_sign<T> && n < (uint)metal_model::bits_of<T> && cut >> (n - 1) & 1;        \
    return negative ? (T)(cut | (T)~metal_model::low_mask<T>(n)) : cut;                                         \
  }                                                                                                             \
  inline T insert_bits(T base, T bits, uint offset, uint n) {                                                   \
    ulong mask = metal_model::unsigned_of(metal_model::low_mask<T>(n)) << offset;                               \
    return (T)((metal_model::unsigned_of(base) & ~mask) | (metal_model::unsigned_of(bits) << offset & mask));   \
  }
METAL_INTEGER_FUNCTIONS(char)
METAL_INTEGER_FUNCTIONS(uchar)
METAL_INTEGER_FUNCTIONS(short)
METAL_INTEGER_FUNCTIONS(ushort)
METAL_INTEGER_FUNCTIONS(int)
METAL_INTEGER_FUNCTIONS(uint)
METAL_INTEGER_FUNCTIONS(long)
METAL_INTEGER_FUNCTIONS(ulong)
#undef METAL_INTEGER_FUNCTIONS

}  // namespace metal
