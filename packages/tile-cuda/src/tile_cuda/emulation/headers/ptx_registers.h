// Registers and operands of PTX instructions.
#pragma once
#include "simt.h"

namespace ptx {

// What the letters of asm constraints stand for.
typedef unsigned short reg_h;
typedef unsigned reg_r;
typedef unsigned long long reg_l;
typedef float reg_f;
typedef double reg_d;

typedef signed char s8;
typedef unsigned char u8, b8;
typedef short s16;
typedef unsigned short u16, b16;
typedef int s32;
typedef unsigned u32, b32;
typedef long long s64;
typedef unsigned long long u64, b64;

template <class T>
inline constexpr bool is_float = false;
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;

// The value of an operand in a register of its constraint. The device's compiler requires them to agree, so do these.
template <class R, class T>
inline R take(T value) {
  static_assert(sizeof(T) == sizeof(R), "an asm operand does not have the size of its constraint");
  static_assert(is_float<T> == is_float<R>, "an asm operand does not have the type of its constraint");
  return (R)value;
}

// An unwritten register: NaN if it is read as a float.
template <class R>
inline R poison() {
  R value;
  __builtin_memset(&value, sizeof(R) == 1 ? 0 : 0xff, sizeof value);
  return value;
}
template <class R, class T>
inline R fresh(const T&) {
  static_assert(sizeof(T) == sizeof(R), "an asm operand does not have the size of its constraint");
  static_assert(is_float<T> == is_float<R>, "an asm operand does not have the type of its constraint");
  return poison<R>();
}

// {a, b, c, d}
template <class T, unsigned N>
struct V {
  T* p[N];
  T& operator[](unsigned i) const { return *p[i]; }
};
template <class T, class... Rest>
inline V<T, 1 + sizeof...(Rest)> v(T& first, Rest&... rest) {
  return {{&first, &rest...}};
}

// [address, {coordinates}]
template <class A, class C>
struct Memory {
  A address;
  C more;
};
template <class A, class C>
inline Memory<A, C> mem(A address, C more) {
  return {address, more};
}

// value|predicate
template <class T>
struct Both {
  T& value;
  bool& predicate;
};
template <class T>
inline Both<T> both(T& value, bool& predicate) {
  return {value, predicate};
}

// _
struct Sink {
  template <class T>
  void operator=(const T&) {}
  template <class T>
  operator T&() const {
    static T unowned;
    return unowned;
  }
};
static Sink sink;

inline float bits_f(unsigned x) {
  float value;
  __builtin_memcpy(&value, &x, 4);
  return value;
}
inline double bits_d(unsigned long long x) {
  double value;
  __builtin_memcpy(&value, &x, 8);
  return value;
}

inline unsigned special_laneid() { return simt::self->lane; }
inline unsigned special_warpid() { return simt::self->warp; }
inline unsigned special_lanemask_eq() { return 1u << simt::self->lane; }
inline unsigned special_lanemask_lt() { return (1u << simt::self->lane) - 1; }
inline unsigned special_lanemask_le() { return (2u << simt::self->lane) - 1; }
inline unsigned special_lanemask_gt() { return ~special_lanemask_le(); }
inline unsigned special_lanemask_ge() { return ~special_lanemask_lt(); }
#define PTX_SPECIAL(name, value)                              \
  inline unsigned special_##name##_x() { return value.x; }    \
  inline unsigned special_##name##_y() { return value.y; }    \
  inline unsigned special_##name##_z() { return value.z; }
PTX_SPECIAL(tid, simt::self->index)
PTX_SPECIAL(ntid, simt::block->threads)
PTX_SPECIAL(ctaid, simt::block->index)
PTX_SPECIAL(nctaid, simt::block->grid)
#undef PTX_SPECIAL
inline unsigned special_cluster_ctarank() { return simt::block->rank; }
inline unsigned special_cluster_nctarank() { return simt::block->ranks; }

// All lanes of a full warp meet: what `.sync.aligned` demands.
SIMT_MODEL inline void meet_warp(const char* name, void* pack, simt::Meeting fn, int line) {
  unsigned threads = simt::block->threads.x * simt::block->threads.y * simt::block->threads.z;
  if ((simt::self->id | 31) >= threads)
    simt::fail("collective", "%s: the last warp of the block has %u of 32 threads", name, threads % 32);
  simt::meet(name, 1, ~0ull, pack, fn, line);
}

}  // namespace ptx
