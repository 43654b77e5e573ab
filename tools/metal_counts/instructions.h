// Bodies for the declarations of metal_prelude.h, with which clang makes code of a text for a GPU whose registers it
// allocates itself: each function of a simdgroup, and each mathematical one, is one instruction that nothing looks into.
// Only the number of registers is of interest; the code never runs.
#pragma once
#define METAL_BFLOAT __bf16
#include "metal_prelude.h"

#define TILE_INLINE __attribute__((always_inline)) inline

template <class To, class From>
TILE_INLINE To as_type(From from) {
  return __builtin_bit_cast(To, from);
}

namespace metal {

template <class T>
TILE_INLINE T tile_unary(T a) {
  T result;
  __asm("; unary" : "=v"(result) : "v"(a));
  return result;
}
template <class T>
TILE_INLINE T tile_binary(T a, T b) {
  T result;
  __asm("; binary" : "=v"(result) : "v"(a), "v"(b));
  return result;
}
template <class T>
TILE_INLINE T tile_exchanged(T a, uint lane) {
  T result;
  __asm volatile("; exchange" : "=v"(result) : "v"(a), "v"(lane));
  return result;
}

#define FLOAT_1(name)                                                \
  namespace precise {                                                \
  TILE_INLINE float name(float a) { return tile_unary(a); }          \
  }                                                                  \
  namespace fast {                                                   \
  TILE_INLINE float name(float a) { return tile_unary(a); }          \
  }                                                                  \
  TILE_INLINE float name(float a) { return tile_unary(a); }          \
  TILE_INLINE half name(half a) { return tile_unary(a); }
#define FLOAT_2(name)                                                \
  namespace precise {                                                \
  TILE_INLINE float name(float a, float b) { return tile_binary(a, b); } \
  }                                                                  \
  namespace fast {                                                   \
  TILE_INLINE float name(float a, float b) { return tile_binary(a, b); } \
  }                                                                  \
  TILE_INLINE float name(float a, float b) { return tile_binary(a, b); } \
  TILE_INLINE half name(half a, half b) { return tile_binary(a, b); }
FLOAT_1(acos) FLOAT_1(acosh) FLOAT_1(asin) FLOAT_1(asinh) FLOAT_1(atan) FLOAT_1(atanh) FLOAT_1(ceil) FLOAT_1(cos)
FLOAT_1(cosh) FLOAT_1(cospi) FLOAT_1(exp) FLOAT_1(exp10) FLOAT_1(exp2) FLOAT_1(fabs) FLOAT_1(floor) FLOAT_1(fract)
FLOAT_1(log) FLOAT_1(log10) FLOAT_1(log2) FLOAT_1(rint) FLOAT_1(round) FLOAT_1(rsqrt) FLOAT_1(sign) FLOAT_1(sin)
FLOAT_1(sinh) FLOAT_1(sinpi) FLOAT_1(sqrt) FLOAT_1(tan) FLOAT_1(tanh) FLOAT_1(tanpi) FLOAT_1(trunc) FLOAT_1(saturate)
FLOAT_2(atan2) FLOAT_2(copysign) FLOAT_2(divide) FLOAT_2(fdim) FLOAT_2(fmax) FLOAT_2(fmin) FLOAT_2(fmod)
FLOAT_2(nextafter) FLOAT_2(pow) FLOAT_2(powr) FLOAT_2(max) FLOAT_2(min) FLOAT_2(step)
#undef FLOAT_1
#undef FLOAT_2
TILE_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TILE_INLINE half fma(half a, half b, half c) { return __builtin_fmaf16(a, b, c); }
TILE_INLINE float ldexp(float a, int b) { return tile_binary(a, as_type<float>(b)); }
TILE_INLINE bool isnan(float a) { return a != a; }
TILE_INLINE bool isinf(float a) { return (as_type<uint>(a) & 0x7fffffffu) == 0x7f800000u; }
TILE_INLINE bool isfinite(float a) { return (as_type<uint>(a) & 0x7f800000u) != 0x7f800000u; }
TILE_INLINE bool signbit(float a) { return as_type<int>(a) < 0; }
template <class T>
TILE_INLINE T select(T a, T b, bool c) {
  return c ? b : a;
}
template <class T>
TILE_INLINE T abs(T a) {
  return a < 0 ? -a : a;
}
template <class T>
TILE_INLINE T clamp(T a, T low, T high) {
  return a < low ? low : a > high ? high : a;
}
#define UNARY(name)              \
  template <class T>             \
  TILE_INLINE T name(T a) {      \
    return tile_unary(a);        \
  }
UNARY(popcount) UNARY(clz) UNARY(ctz) UNARY(reverse_bits)
#undef UNARY
#define INTEGERS(T)                                                   \
  TILE_INLINE T min(T a, T b) { return a < b ? a : b; }               \
  TILE_INLINE T max(T a, T b) { return a > b ? a : b; }
INTEGERS(char) INTEGERS(uchar) INTEGERS(short) INTEGERS(ushort) INTEGERS(int) INTEGERS(uint) INTEGERS(long)
INTEGERS(ulong)
#undef INTEGERS
TILE_INLINE int mulhi(int a, int b) { return tile_binary(a, b); }
TILE_INLINE uint mulhi(uint a, uint b) { return tile_binary(a, b); }

TILE_INLINE void threadgroup_barrier(mem_flags) { __asm volatile("; barrier" ::: "memory"); }
TILE_INLINE void simdgroup_barrier(mem_flags) { __asm volatile("; barrier" ::: "memory"); }
TILE_INLINE bool simd_all(bool a) { return tile_exchanged((int)a, 0u) != 0; }
TILE_INLINE bool simd_any(bool a) { return tile_exchanged((int)a, 0u) != 0; }
#define SHUFFLE(name)                        \
  template <class T>                         \
  TILE_INLINE T name(T a, ushort lane) {     \
    return tile_exchanged(a, (uint)lane);    \
  }
#define REDUCE(name)                         \
  template <class T>                         \
  TILE_INLINE T name(T a) {                  \
    return tile_exchanged(a, 0u);            \
  }
SHUFFLE(simd_shuffle) SHUFFLE(simd_shuffle_xor) SHUFFLE(simd_shuffle_up) SHUFFLE(simd_shuffle_down)
SHUFFLE(simd_broadcast) REDUCE(simd_sum) REDUCE(simd_product) REDUCE(simd_max) REDUCE(simd_min) REDUCE(simd_and)
REDUCE(simd_or) REDUCE(simd_xor) REDUCE(simd_prefix_inclusive_sum) REDUCE(simd_prefix_exclusive_sum)
REDUCE(simd_broadcast_first)
#undef SHUFFLE
#undef REDUCE

template <class T>
TILE_INLINE thread T& Pair<T>::operator[](int i) const {
  return ((thread T*)this)[i];
}
template <class T, int C, int R>
TILE_INLINE thread Pair<T>& simdgroup_matrix<T, C, R>::thread_elements() const {
  return *(thread Pair<T>*)this;
}
template <class T, int C, int R>
TILE_INLINE simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> filled;
  filled.a = filled.b = value;
  return filled;
}
// What an instruction has in a register for an element.
template <class T>
struct Held {
  typedef T type;
};
template <>
struct Held<bfloat> {
  typedef ushort type;
};
TILE_INLINE float tile_bits(float a) { return a; }
TILE_INLINE half tile_bits(half a) { return a; }
TILE_INLINE ushort tile_bits(bfloat a) { return as_type<ushort>(a); }
#define MOVES(space)                                                                                               \
  template <class T>                                                                                               \
  TILE_INLINE void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& m, space const T* from, ulong pitch, ulong2,    \
                                  bool) {                                                                          \
    typename Held<T>::type a, b;                                                                                   \
    __asm volatile("; fragment load" : "=&v"(a), "=&v"(b) : "v"(from), "s"((uint)pitch) : "memory");              \
    m.a = __builtin_bit_cast(T, a);                                                                                \
    m.b = __builtin_bit_cast(T, b);                                                                                \
  }                                                                                                                \
  template <class T>                                                                                               \
  TILE_INLINE void simdgroup_store(const thread simdgroup_matrix<T, 8, 8>& m, space T* to, ulong pitch, ulong2,     \
                                   bool) {                                                                         \
    __asm volatile("; fragment store"                                                                              \
                   :: "v"(__builtin_bit_cast(typename Held<T>::type, m.a)),                                        \
                      "v"(__builtin_bit_cast(typename Held<T>::type, m.b)), "v"(to), "s"((uint)pitch) : "memory"); \
  }
MOVES(device)
MOVES(threadgroup)
#undef MOVES
template <class D, class A, class B, class C>
TILE_INLINE void simdgroup_multiply_accumulate(thread D& d, const thread A& a, const thread B& b, const thread C& c) {
  __asm volatile("; product" : "=v"(d.a), "=v"(d.b)
                 : "v"(tile_bits(a.a)), "v"(tile_bits(a.b)), "v"(tile_bits(b.a)), "v"(tile_bits(b.b)), "0"(c.a), "1"(c.b));
}

}  // namespace metal

namespace metal {

// The position of a thread: different in each lane, so that it lies in registers of lanes.
template <class T>
struct Position {
  static TILE_INLINE T get() {
    T at;
    __asm volatile("; position" : "=v"(at));
    return at;
  }
};
template <>
struct Position<uint3> {
  static TILE_INLINE uint3 get() { return (uint3)(Position<uint>::get(), Position<uint>::get(), Position<uint>::get()); }
};
template <class T>
TILE_INLINE T tile_of_thread() {
  return Position<T>::get();
}

struct execution_simdgroup {};
template <class T>
struct tile_plain {
  typedef T type;
};
template <class T>
struct tile_plain<thread T> {
  typedef T type;
};
template <class T>
using remove_addrspace_t = typename tile_plain<T>::type;

}  // namespace metal

namespace mpp {
namespace tensor_ops {

template <int BYTES>
struct Words;
template <>
struct Words<16> {
  typedef uint type __attribute__((ext_vector_type(4)));
};
template <>
struct Words<32> {
  typedef uint type __attribute__((ext_vector_type(8)));
};
template <>
struct Words<64> {
  typedef uint type __attribute__((ext_vector_type(16)));
};

template <class T, int N>
struct Cooperative {
  T elements[N];
  TILE_INLINE thread T& operator[](int i) { return elements[i]; }
  TILE_INLINE ushort get_capacity() const { return N; }
  TILE_INLINE int2 get_multidimensional_index(ushort) const {
    return (int2)((int)metal::Position<uint>::get(), (int)metal::Position<uint>::get());
  }
  TILE_INLINE typename Words<sizeof(T) * N>::type words() const {
    return __builtin_bit_cast(typename Words<sizeof(T) * N>::type, elements);
  }
};

// 16 x 32 x 16 by one simdgroup.
template <class, class>
struct matmul2d {
  template <class L, class R, class D>
  TILE_INLINE Cooperative<L, 8> get_left_input_cooperative_tensor() const {
    return Cooperative<L, 8>();
  }
  template <class L, class R, class D>
  TILE_INLINE Cooperative<R, 16> get_right_input_cooperative_tensor() const {
    return Cooperative<R, 16>();
  }
  template <class L, class R, class D>
  TILE_INLINE Cooperative<D, 16> get_destination_cooperative_tensor() const {
    return Cooperative<D, 16>();
  }
  template <class L, class R, class D>
  TILE_INLINE void run(const thread L& left, const thread R& right, thread D& sum) const {
    typedef Words<64>::type Sum;
    Sum words = sum.words();
    __asm volatile("; tensor product" : "+v"(words) : "v"(left.words()), "v"(right.words()));
    for (int i = 0; i < 16; ++i) sum.elements[i] = as_type<float>(words[i]);
  }
};

}  // namespace tensor_ops
}  // namespace mpp
