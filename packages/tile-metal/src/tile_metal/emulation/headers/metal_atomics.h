// Atomic functions: of 32 bits, and relaxed: what one thread tells another through them is ordered by fences.
#pragma once
#include "metal_barriers.h"
#include "metal_types.h"
#include "simt.h"

namespace metal_model {

template <class T>
inline constexpr bool is_atomic = same<T, int> || same<T, uint> || same<T, float>;

}  // namespace metal_model

namespace metal {

template <class T>
struct atomic {
  static_assert(metal_model::is_atomic<T>, "atomic objects are of int, uint or float");
  T metal_value;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;

// A type of its own, so that an atomic function of another order does not compile.
enum metal_relaxed { memory_order_relaxed };
enum memory_order { memory_order_acquire = 2, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

}  // namespace metal

namespace metal_model {

template <class T>
struct Same {
  typedef T type;  // not deduced
};
template <class T>
using same_t = typename Same<T>::type;

template <class T>
SIMT_MODEL inline T* value_of(const volatile metal::atomic<T>* object) {
  T* p = (T*)object;
  simt::require_aligned(p, sizeof(T));
  const unsigned char *c = (const unsigned char*)p, *slab = simt::block->shared;
  if (same<T, float> && slab && c >= slab && c < slab + simt::block->shared_bytes)
    simt::fail("atomic", "floats in threadgroup memory have no atomic functions");
  return p;
}

template <class T, class F>
SIMT_MODEL inline T update(volatile metal::atomic<T>* object, F fn) {
  return simt::atomic(value_of(object), fn);
}

// A comparison may fail without reason, and here each fifth one does: code that does not try again is found out.
SIMT_MODEL inline bool fails_without_reason() {
  static unsigned tries;
  return ++tries % 5 == 0;
}

template <class T>
SIMT_MODEL inline bool exchange_if(volatile metal::atomic<T>* object, T* expected, T desired) {
  T known = *expected;
  bool never = fails_without_reason();
  T found = update(object, [known, desired, never](T old) { return old == known && !never ? desired : old; });
  *expected = found;
  if (found == known && !never) {
    simt::progress();  // loads before it were no mere polling
    return true;
  }
  simt::yield();  // it may be a lock
  return false;
}

}  // namespace metal_model

namespace metal {

#define METAL_ATOMIC(name, T, expression)                                                     \
  inline T name(volatile atomic<T>* object, T by, metal_relaxed) {                            \
    return metal_model::update(object, [by](T old) { return (T)(expression); });              \
  }
#define METAL_ATOMIC_INTEGERS(name, expression) \
  METAL_ATOMIC(name, int, expression)           \
  METAL_ATOMIC(name, uint, expression)
METAL_ATOMIC_INTEGERS(atomic_fetch_add_explicit, old + by)
METAL_ATOMIC_INTEGERS(atomic_fetch_sub_explicit, old - by)
METAL_ATOMIC_INTEGERS(atomic_fetch_min_explicit, by < old ? by : old)
METAL_ATOMIC_INTEGERS(atomic_fetch_max_explicit, by > old ? by : old)
METAL_ATOMIC_INTEGERS(atomic_fetch_and_explicit, old & by)
METAL_ATOMIC_INTEGERS(atomic_fetch_or_explicit, old | by)
METAL_ATOMIC_INTEGERS(atomic_fetch_xor_explicit, old ^ by)
METAL_ATOMIC(atomic_fetch_add_explicit, float, old + by)
METAL_ATOMIC(atomic_fetch_sub_explicit, float, old - by)
METAL_ATOMIC_INTEGERS(atomic_exchange_explicit, by)
METAL_ATOMIC(atomic_exchange_explicit, float, by)
#undef METAL_ATOMIC
#undef METAL_ATOMIC_INTEGERS

template <class T>
SIMT_MODEL inline void atomic_store_explicit(volatile atomic<T>* object, metal_model::same_t<T> value, metal_relaxed) {
  T* p = metal_model::value_of(object);
  simt::access_atomic(p, sizeof(T), simt::WRITES);
  __builtin_memcpy(p, &value, sizeof(T));
}
template <class T>
SIMT_MODEL inline T atomic_load_explicit(const volatile atomic<T>* object, metal_relaxed) {
  T value, *p = metal_model::value_of(object);
  simt::access_atomic(p, sizeof(T), simt::READS);
  __builtin_memcpy(&value, p, sizeof(T));
  simt::yield();  // it may be polled
  return value;
}

inline bool atomic_compare_exchange_weak_explicit(volatile atomic_int* object, int* expected, int desired,
                                                  metal_relaxed, metal_relaxed) {
  return metal_model::exchange_if<int>(object, expected, desired);
}
inline bool atomic_compare_exchange_weak_explicit(volatile atomic_uint* object, uint* expected, uint desired,
                                                  metal_relaxed, metal_relaxed) {
  return metal_model::exchange_if<uint>(object, expected, desired);
}

inline void atomic_thread_fence(mem_flags, metal_relaxed, thread_scope = thread_scope_device) {}  // orders nothing
SIMT_MODEL inline void atomic_thread_fence(mem_flags flags, memory_order order,
                                           thread_scope scope = thread_scope_device) {
  if (order != memory_order_acq_rel && order != memory_order_seq_cst)
    simt::fail("fence", "a fence that only acquires or only releases has no model");
  if (flags == mem_flags::mem_none || scope == thread_scope_thread) return;
  if (flags == mem_flags::mem_threadgroup && scope == thread_scope_device)
    scope = thread_scope_threadgroup;  // no other threadgroup sees that memory
  simt::fence(scope != thread_scope_device);
}

}  // namespace metal
