// ld, st, atom, red, with an order and a part of memory.
//
// Accesses with an order are atomic: they race with no other atomic access. All memory is sequentially consistent here,
// so an order changes no values; it orders accesses for the race detector by an acquire and a release, or by fences.
// Volatile accesses are taken for plain ones.
#pragma once
#include "cuda_language.h"
#include "ptx_numbers.h"
#include "ptx_registers.h"

namespace ptx {

enum Order : unsigned {
  WEAK, VOLATILE, RELAXED, ACQUIRE, RELEASE, ACQ_REL,
  RELAXED_CTA, ACQUIRE_CTA, RELEASE_CTA, ACQ_REL_CTA  // for threads of the block
};
enum Space { GENERIC, GLOBAL, SHARED, CLUSTER };

template <Space S>
SIMT_MODEL inline char* pointer(reg_l address) {
  return S == SHARED    ? (char*)shared((unsigned)address)
         : S == CLUSTER ? (char*)in_cluster((unsigned)address)
                        : (char*)address;
}

constexpr unsigned order_of(Order o) {
  return (o == ACQUIRE || o == ACQ_REL || o == ACQUIRE_CTA || o == ACQ_REL_CTA ? simt::ACQUIRES : 0u) |
         (o == RELEASE || o == ACQ_REL || o == RELEASE_CTA || o == ACQ_REL_CTA ? simt::RELEASES : 0u) |
         (o >= RELAXED_CTA ? simt::OF_BLOCK : 0u);
}

SIMT_MODEL inline void access_ordered(Order order, void* p, unsigned bytes, bool write) {
  simt::require_aligned(p, bytes);
  if (order == WEAK || order == VOLATILE)
    simt::access(p, bytes, write);
  else
    simt::access_atomic(p, bytes, (write ? simt::WRITES : simt::READS) | order_of(order));
}

// A loaded value in a register that may be wider.
template <class R, class T>
inline void widen(R& to, T value) {
  static_assert(sizeof(R) >= sizeof(T) && (sizeof(R) == sizeof(T) || !is_float<R>), "a register that holds the value");
  if constexpr (sizeof(R) == sizeof(T))
    __builtin_memcpy(&to, &value, sizeof to);
  else
    to = (R)value;
}
template <class T, class R>
inline T narrow(R from) {
  static_assert(sizeof(R) >= sizeof(T) && (sizeof(R) == sizeof(T) || !is_float<R>), "a register that holds the value");
  T value;
  __builtin_memcpy(&value, &from, sizeof value);  // little-endian
  return value;
}

template <Order O, Space S, class T, class R, unsigned N>
SIMT_MODEL void ld(int, V<R, N> d, reg_l address) {
  char* p = pointer<S>(address);
  access_ordered(O, p, N * sizeof(T), false);
  for (unsigned i = 0; i < N; i++) {
    T value;
    __builtin_memcpy(&value, p + i * sizeof value, sizeof value);
    widen(d[i], value);
  }
  if (O != WEAK) simt::yield();  // it may be polled
}
template <Order O, Space S, class T, class R>
inline void ld(int line, R& d, reg_l address) {
  ld<O, S, T>(line, v(d), address);
}

template <Order O, Space S, class T, class R, unsigned N>
SIMT_MODEL void st(int, reg_l address, V<R, N> values) {
  char* p = pointer<S>(address);
  access_ordered(O, p, N * sizeof(T), true);
  for (unsigned i = 0; i < N; i++) {
    T value = narrow<T>((__typeof__(+values[i]))values[i]);
    __builtin_memcpy(p + i * sizeof value, &value, sizeof value);
  }
}
template <Order O, Space S, class T, class R>
inline void st(int line, reg_l address, const R& value) {
  st<O, S, T>(line, address, v(value));
}

// ------------------------------------------------------------------------------------------------------------ atomics

// Sums of 16-bit floats, one or two in a register.
template <class F, unsigned N>
struct Halves {};
typedef Halves<ptx::F16, 2> F16X2;
typedef Halves<ptx::Bf16, 2> Bf16X2;

template <class T>
struct Stored {
  typedef T type;
};
template <>
struct Stored<F16> {
  typedef reg_h type;
};
template <>
struct Stored<Bf16> {
  typedef reg_h type;
};
template <class F, unsigned N>
struct Stored<Halves<F, N>> {
  typedef reg_r type;
};

struct Add {
  template <class T>
  struct On {
    SIMT_MODEL static T apply(T old, T by) { return (T)(old + by); }
  };
};
template <class F>
SIMT_MODEL inline unsigned add_codes(unsigned a, unsigned b) {  // the double sum is exact, or far from a tie
  return F::encode(F::decode(a & 0xffff) + F::decode(b & 0xffff));
}
template <>
struct Add::On<F16> {
  SIMT_MODEL static reg_h apply(reg_h old, reg_h by) { return (reg_h)add_codes<F16>(old, by); }
};
template <>
struct Add::On<Bf16> {
  SIMT_MODEL static reg_h apply(reg_h old, reg_h by) { return (reg_h)add_codes<Bf16>(old, by); }
};
template <class F>
struct Add::On<Halves<F, 2>> {
  SIMT_MODEL static reg_r apply(reg_r old, reg_r by) {
    return add_codes<F>(old, by) | add_codes<F>(old >> 16, by >> 16) << 16;
  }
};
#define PTX_OPERATION(name, expression)                                  \
  struct name {                                                          \
    template <class T>                                                   \
    struct On {                                                          \
      SIMT_MODEL static T apply(T old, T by) { return expression; }      \
    };                                                                   \
  };
PTX_OPERATION(Min, by < old ? by : old)
PTX_OPERATION(Max, by > old ? by : old)
PTX_OPERATION(And, old & by)
PTX_OPERATION(Or, old | by)
PTX_OPERATION(Xor, old ^ by)
PTX_OPERATION(Exch, by)
PTX_OPERATION(Inc, old >= by ? 0 : old + 1)
PTX_OPERATION(Dec, old == 0 || old > by ? by : old - 1)
#undef PTX_OPERATION

// Minima and maxima of 16-bit floats: a NaN loses, and -0 is less than 0.
template <class F>
SIMT_MODEL inline reg_h extreme(reg_h old, reg_h by, bool least) {
  double a = F::decode(old), b = F::decode(by);
  if (a != a && b != b) return 0x7fff;
  if (a != a || b != b) return a != a ? by : old;
  bool less = a < b || (a == b && old & 0x8000);
  return less == least ? old : by;
}
#define PTX_EXTREME(Name, Format, least)                                                          \
  template <>                                                                                     \
  struct Name::On<Format> {                                                                       \
    SIMT_MODEL static reg_h apply(reg_h old, reg_h by) { return extreme<Format>(old, by, least); } \
  };
PTX_EXTREME(Min, F16, true)
PTX_EXTREME(Min, Bf16, true)
PTX_EXTREME(Max, F16, false)
PTX_EXTREME(Max, Bf16, false)
#undef PTX_EXTREME

// Sums of float in global memory take and leave no subnormal numbers; in shared memory they do.
struct AddFlushed {
  template <class T>
  struct On {
    SIMT_MODEL static float flush(float x) {
      return __builtin_fabsf(x) < 1.1754943508222875e-38f ? __builtin_copysignf(0, x) : canonical(x);
    }
    SIMT_MODEL static float apply(float old, float by) { return flush(flush(old) + flush(by)); }
  };
};
template <class Operation, class T>
inline constexpr bool is_float_sum = false;
template <>
inline constexpr bool is_float_sum<Add, float> = true;

SIMT_MODEL inline bool is_shared(const void* p) {
  const unsigned char* c = (const unsigned char*)p;
  return c >= simt::block->shared && c < simt::block->shared + simt::block->shared_bytes;
}

template <class Operation, class T, class P>
SIMT_MODEL inline typename Stored<T>::type atomic(P* p, typename Stored<T>::type by, unsigned order = 0) {
  typedef typename Stored<T>::type S;
  simt::require_aligned(p, sizeof(S));
  if constexpr (is_float_sum<Operation, T>)
    if (!is_shared(p)) return simt::atomic((S*)p, [by](S old) { return AddFlushed::On<T>::apply(old, by); }, order);
  return simt::atomic((S*)p, [by](S old) { return Operation::template On<T>::apply(old, by); }, order);
}

template <Order O, Space S, class Operation, class T, class R, class B>
SIMT_MODEL void atom(int, R& d, reg_l address, B by) {
  typename Stored<T>::type old =
      atomic<Operation, T>(pointer<S>(address), narrow<typename Stored<T>::type>(by), order_of(O));
  widen(d, old);
}
template <Order O, Space S, class Operation, class T, class B>
SIMT_MODEL void red(int, reg_l address, B by) {
  atomic<Operation, T>(pointer<S>(address), narrow<typename Stored<T>::type>(by), order_of(O));
}

template <class T>
SIMT_MODEL inline T compare_and_swap(void* p, T expected, T fresh, unsigned order = 0) {
  simt::require_aligned(p, sizeof(T));
  T found = simt::atomic((T*)p, [expected, fresh](T old) { return old == expected ? fresh : old; }, order);
  if (found != expected)
    simt::yield();  // it may be a lock
  else
    simt::progress();  // loads before it were no mere polling
  return found;
}
template <Order O, Space S, class T, class R, class B, class C>
SIMT_MODEL void atom_cas(int, R& d, reg_l address, B expected, C fresh) {
  widen(d, compare_and_swap<T>(pointer<S>(address), narrow<T>(expected), narrow<T>(fresh), order_of(O)));
}

}  // namespace ptx
