// Toy C on the emulator's engine: everything that a text may use.
#pragma once
#include "simt.h"

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef u8 v1 __attribute__((may_alias));
typedef u8 v2 __attribute__((vector_size(2), may_alias));
typedef u8 v4 __attribute__((vector_size(4), may_alias));
typedef u8 v8 __attribute__((vector_size(8), may_alias));
typedef u8 v16 __attribute__((vector_size(16), may_alias));

#define kernel extern "C"
#define device
#define group
#define restrict __restrict__
#define aligned16 alignas(16)
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define shared_memory() simt::block->shared
#define barrier() simt::sync(0, 0, __LINE__)
#define warp_barrier() simt::sync_warp(~0ull, __LINE__)
#define isnan __builtin_isnan
#define isinf __builtin_isinf
#define isfinite __builtin_isfinite
#define TOY_FUNCTION(name)                                \
  inline f32 name(f32 x) { return __builtin_##name##f(x); } \
  inline f64 name(f64 x) { return __builtin_##name(x); }
TOY_FUNCTION(fabs)
TOY_FUNCTION(floor)
TOY_FUNCTION(ceil)
TOY_FUNCTION(trunc)
TOY_FUNCTION(rint)
TOY_FUNCTION(sqrt)
inline f32 fma(f32 x, f32 y, f32 z) { return __builtin_fmaf(x, y, z); }
inline f64 fma(f64 x, f64 y, f64 z) { return __builtin_fma(x, y, z); }
inline f32 rsqrt(f32 x) { return (f32)(1.0 / __builtin_sqrt((f64)x)); }
inline f64 rsqrt(f64 x) { return 1.0 / __builtin_sqrt(x); }

namespace toy {
SIMT_MODEL inline int axis(const simt::Dim3& at, int d) { return (int)(d == 0 ? at.x : d == 1 ? at.y : at.z); }

// What lanes exchange: a word, and the lane that it comes from.
struct Pack {
  u32 word, from, theirs;
};
SIMT_MODEL inline void exchange(void** packs, simt::Thread**, unsigned lanes) {
  for (unsigned i = 0; i < lanes; i++) {
    if (!packs[i]) continue;
    Pack& own = *(Pack*)packs[i];
    if (own.from >= lanes || !packs[own.from])
      simt::fail("collective", "lane %u reads lane %u, which is not there", i, own.from);
    own.theirs = ((Pack*)packs[own.from])->word;
  }
}
// A lane outside of the segment of `width` lanes gives the own value.
SIMT_MODEL inline u32 shuffle(u64 mask, u32 word, int from, int width, int line) {
  int lane = (int)simt::self->lane;
  Pack pack{word, (u32)((from & -width) == (lane & -width) ? from : lane), 0};
  simt::meet("shuffle", 1, mask, &pack, exchange, line);
  return pack.theirs;
}
template <class T> inline bool before(T a, T b) { return a < b; }
inline bool before(f64 a, f64 b) { return a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b)); }
inline bool before(f32 a, f32 b) { return before((f64)a, (f64)b); }
}  // namespace toy

SIMT_MODEL inline int thread_index(int d) { return toy::axis(simt::self->index, d); }
SIMT_MODEL inline int block_index(int d) { return toy::axis(simt::block->index, d); }

#define TOY_SHUFFLE(mode, from)                                                                      \
  SIMT_MODEL inline u32 shuffle_##mode(u64 mask, u32 word, int by, int width, int line = __builtin_LINE()) { \
    int lane = (int)simt::self->lane;                                                                \
    return toy::shuffle(mask, word, from, width, line);                                              \
  }
TOY_SHUFFLE(idx, (lane & -width) + (by & (width - 1)))
TOY_SHUFFLE(up, lane - by)
TOY_SHUFFLE(down, lane + by)
TOY_SHUFFLE(bfly, lane ^ by)

#define TOY_VOTE(name, result)                                                            \
  SIMT_MODEL inline auto name(u64 mask, bool holds, int line = __builtin_LINE()) {        \
    simt::Votes votes = simt::vote(#name, holds, mask, line);                             \
    return result;                                                                        \
  }
TOY_VOTE(vote_ballot, (u32)votes.yes)
TOY_VOTE(vote_any, votes.yes != 0)
TOY_VOTE(vote_all, votes.yes == votes.all)

template <class To, class From>
SIMT_MODEL inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits of another size");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
template <class T>
inline int popcount(T x) {
  return __builtin_popcountll((u64)x & (~0ull >> (64 - 8 * sizeof(T))));
}

#define TOY_ATOMIC(name, result)                                                          \
  template <class T>                                                                      \
  SIMT_MODEL inline T name(T* p, T by) {                                                  \
    return simt::atomic(p, [by](T old) { return (T)(result); });                          \
  }
TOY_ATOMIC(atomic_add, old + by)
TOY_ATOMIC(atomic_max, by != by || toy::before(by, old) ? old : by)
TOY_ATOMIC(atomic_min, by != by || toy::before(old, by) ? old : by)
TOY_ATOMIC(atomic_and, old & by)
TOY_ATOMIC(atomic_or, old | by)
TOY_ATOMIC(atomic_xor, old ^ by)
TOY_ATOMIC(atomic_low_half, (old & 0xf0) | by)
TOY_ATOMIC(atomic_high_half, (old & 0x0f) | (by << 4))
template <class T>
SIMT_MODEL inline void atomic_store(T* p, T value) {
  simt::access_atomic(p, sizeof(T), simt::WRITES);
  __builtin_memcpy(p, &value, sizeof(T));
}
template <class T>
SIMT_MODEL inline T atomic_load(const T* p) {
  T value;
  simt::access_atomic((void*)p, sizeof(T), simt::READS);
  __builtin_memcpy(&value, p, sizeof(T));
  simt::yield();  // it may be polled
  return value;
}
