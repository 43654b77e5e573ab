// clang's atomic functions of HIP. Memory is sequentially consistent here; an order tells the search for races.
#pragma once
#include "simt.h"

#define __HIP_MEMORY_SCOPE_AGENT 4

namespace rocm {

constexpr unsigned order_of(int order) {
  return (order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST
              ? simt::ACQUIRES : 0u) |
         (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST ? simt::RELEASES : 0u);
}
template <class T>
struct Same {
  typedef T type;  // not deduced
};
template <class T>
using same_t = typename Same<T>::type;

template <class T, class F>
SIMT_MODEL inline T update(T* p, F step, int order, int scope) {
  if (scope != __HIP_MEMORY_SCOPE_AGENT) simt::fail("atomic", "only the scope of the device has a model");
  simt::require_aligned(p, sizeof(T));
  return simt::atomic(p, step, order_of(order));
}

template <class T>
SIMT_MODEL inline T atomic_fetch_add(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return (T)(old + x); }, order, scope);
}
template <class T>
SIMT_MODEL inline T atomic_fetch_max(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return old < x ? x : old; }, order, scope);
}
template <class T>
SIMT_MODEL inline T atomic_fetch_min(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return x < old ? x : old; }, order, scope);
}
template <class T>
SIMT_MODEL inline T atomic_fetch_and(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return (T)(old & x); }, order, scope);
}
template <class T>
SIMT_MODEL inline T atomic_fetch_or(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return (T)(old | x); }, order, scope);
}
template <class T>
SIMT_MODEL inline T atomic_fetch_xor(T* p, same_t<T> x, int order, int scope) {
  return update(p, [x](T old) { return (T)(old ^ x); }, order, scope);
}
template <class T>
SIMT_MODEL inline bool atomic_compare_exchange_strong(T* p, T* expected, same_t<T> fresh, int order, int, int scope) {
  T known = *expected;
  T found = update(p, [known, fresh](T old) { return old == known ? fresh : old; }, order, scope);
  *expected = found;
  if (found != known) {
    simt::yield();  // it may be a lock
    return false;
  }
  simt::progress();  // loads before it were no mere polling
  return true;
}
template <class T>
SIMT_MODEL inline T atomic_load(const T* p, int order, int) {
  T value;
  simt::require_aligned(p, sizeof(T));
  simt::access_atomic((void*)p, sizeof(T), simt::READS | order_of(order));
  __builtin_memcpy(&value, p, sizeof(T));
  simt::yield();  // it may be polled
  return value;
}
template <class T>
SIMT_MODEL inline void atomic_store(T* p, same_t<T> value, int order, int) {
  simt::require_aligned(p, sizeof(T));
  simt::access_atomic(p, sizeof(T), simt::WRITES | order_of(order));
  __builtin_memcpy(p, &value, sizeof(T));
}

}  // namespace rocm

// Host compilers, too, may have these as builtins, which a program cannot define.
#define __hip_atomic_fetch_add rocm::atomic_fetch_add
#define __hip_atomic_fetch_max rocm::atomic_fetch_max
#define __hip_atomic_fetch_min rocm::atomic_fetch_min
#define __hip_atomic_fetch_and rocm::atomic_fetch_and
#define __hip_atomic_fetch_or rocm::atomic_fetch_or
#define __hip_atomic_fetch_xor rocm::atomic_fetch_xor
#define __hip_atomic_compare_exchange_strong rocm::atomic_compare_exchange_strong
#define __hip_atomic_load rocm::atomic_load
#define __hip_atomic_store rocm::atomic_store
