// Vectors of 2 to 4 elements, of the sizes and alignments of the device. One of 3 has the size of one of 4. Copies are
// written out, so that each is one access whose alignment is checked.
#pragma once
#include "metal_types.h"

namespace metal {

template <class T, int N>
struct vec;

}  // namespace metal

namespace metal_model {

// Puts a number or the elements of a vector at `to`; returns how many that were.
template <class T, class A>
inline int put(T* to, const A& x) {
  *to = (T)x;
  return 1;
}
template <class T, class A, int N>
inline int put(T* to, const metal::vec<A, N>& x) {
  for (int i = 0; i < N; i++) to[i] = (T)x[i];
  return N;
}
template <class A>
inline constexpr int width = 1;
template <class A, int N>
inline constexpr int width<metal::vec<A, N>> = N;

}  // namespace metal_model

#define METAL_VECTOR(N, ...)                                                                               \
  template <class T>                                                                                       \
  struct alignas(sizeof(T) * (N == 3 ? 4 : N)) vec<T, N> {                                                 \
    T __VA_ARGS__;                                                                                         \
    vec() = default;                                                                                       \
    vec(const vec& v) { __builtin_memcpy((void*)this, (const void*)&v, N * sizeof(T)); }                   \
    vec& operator=(const vec& v) {                                                                         \
      __builtin_memcpy((void*)this, (const void*)&v, N * sizeof(T));                                       \
      return *this;                                                                                        \
    }                                                                                                      \
    template <class A, metal_model::if_t<metal_model::width<A> == 1> = 0>                                  \
    explicit vec(const A& x) {                                                                             \
      for (int i = 0; i < N; i++) (*this)[i] = (T)x;                                                       \
    }                                                                                                      \
    template <class A>                                                                                     \
    explicit vec(const vec<A, N>& v) {                                                                     \
      metal_model::put(&x, v);                                                                             \
    }                                                                                                      \
    template <class A, class B, class... C>                                                                \
    vec(const A& a, const B& b, const C&... c) {                                                           \
      static_assert(((metal_model::width<A> + metal_model::width<B>) + ... + metal_model::width<C>) == N,  \
                    "one value for each element");                                                         \
      int k = metal_model::put(&x, a);                                                                     \
      k += metal_model::put(&x + k, b);                                                                    \
      ((k += metal_model::put(&x + k, c)), ...);                                                           \
    }                                                                                                      \
    T& operator[](int i) { return ((T*)this)[i]; }                                                         \
    const T& operator[](int i) const { return ((const T*)this)[i]; }                                       \
  };

namespace metal {

METAL_VECTOR(2, x, y)
METAL_VECTOR(3, x, y, z)
METAL_VECTOR(4, x, y, z, w)
#undef METAL_VECTOR

template <class T>
struct Element {
  typedef T type;  // not deduced
};

#define METAL_VECTOR_OPERATOR(op)                                                                \
  template <class T, int N>                                                                      \
  inline vec<T, N> operator op(const vec<T, N>& a, const vec<T, N>& b) {                         \
    vec<T, N> r;                                                                                 \
    for (int i = 0; i < N; i++) r[i] = (T)(a[i] op b[i]);                                        \
    return r;                                                                                    \
  }                                                                                              \
  template <class T, int N>                                                                      \
  inline vec<T, N> operator op(const vec<T, N>& a, const typename Element<T>::type& b) {         \
    return a op vec<T, N>(b);                                                                    \
  }                                                                                              \
  template <class T, int N>                                                                      \
  inline vec<T, N> operator op(const typename Element<T>::type& a, const vec<T, N>& b) {         \
    return vec<T, N>(a) op b;                                                                    \
  }                                                                                              \
  template <class T, int N, class B>                                                             \
  inline vec<T, N>& operator op##=(vec<T, N>& a, const B& b) {                                   \
    return a = a op b;                                                                           \
  }
METAL_VECTOR_OPERATOR(+)
METAL_VECTOR_OPERATOR(-)
METAL_VECTOR_OPERATOR(*)
METAL_VECTOR_OPERATOR(/)
METAL_VECTOR_OPERATOR(%)
METAL_VECTOR_OPERATOR(&)
METAL_VECTOR_OPERATOR(|)
METAL_VECTOR_OPERATOR(^)
METAL_VECTOR_OPERATOR(<<)
METAL_VECTOR_OPERATOR(>>)
#undef METAL_VECTOR_OPERATOR

#define METAL_VECTOR_UNARY(op)                               \
  template <class T, int N>                                  \
  inline vec<T, N> operator op(const vec<T, N>& a) {         \
    vec<T, N> r;                                             \
    for (int i = 0; i < N; i++) r[i] = (T)(op a[i]);         \
    return r;                                                \
  }
METAL_VECTOR_UNARY(-)
METAL_VECTOR_UNARY(~)
#undef METAL_VECTOR_UNARY

#define METAL_VECTOR_COMPARISON(op)                                                 \
  template <class T, int N>                                                         \
  inline vec<bool, N> operator op(const vec<T, N>& a, const vec<T, N>& b) {         \
    vec<bool, N> r;                                                                 \
    for (int i = 0; i < N; i++) r[i] = a[i] op b[i];                                \
    return r;                                                                       \
  }
METAL_VECTOR_COMPARISON(==)
METAL_VECTOR_COMPARISON(!=)
METAL_VECTOR_COMPARISON(<)
METAL_VECTOR_COMPARISON(>)
METAL_VECTOR_COMPARISON(<=)
METAL_VECTOR_COMPARISON(>=)
#undef METAL_VECTOR_COMPARISON

template <int N>
inline bool all(const vec<bool, N>& v) {
  for (int i = 0; i < N; i++)
    if (!v[i]) return false;
  return true;
}
template <int N>
inline bool any(const vec<bool, N>& v) {
  for (int i = 0; i < N; i++)
    if (v[i]) return true;
  return false;
}

}  // namespace metal

#define METAL_VECTOR_NAMES(T)      \
  typedef metal::vec<T, 2> T##2;   \
  typedef metal::vec<T, 3> T##3;   \
  typedef metal::vec<T, 4> T##4;
METAL_VECTOR_NAMES(bool)
METAL_VECTOR_NAMES(char)
METAL_VECTOR_NAMES(uchar)
METAL_VECTOR_NAMES(short)
METAL_VECTOR_NAMES(ushort)
METAL_VECTOR_NAMES(int)
METAL_VECTOR_NAMES(uint)
METAL_VECTOR_NAMES(long)
METAL_VECTOR_NAMES(ulong)
METAL_VECTOR_NAMES(half)
METAL_VECTOR_NAMES(bfloat)
METAL_VECTOR_NAMES(float)
#undef METAL_VECTOR_NAMES
