// Declarations of MSL for clang's OpenCL C++ front end, which knows spaces of addresses. Nothing here has a body: texts
// are only looked at.
#pragma once
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define device __global
#define threadgroup __local
#define constant __constant
#define thread __private
#define kernel __kernel

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef ulong size_t;

// A scalar type of its own, as in MSL: in `condition ? A[i] : (bfloat)0.0f`, operands of a class in two spaces of addresses
// would be converted to float, which is not assigned. MSL has no double.
#ifndef METAL_BFLOAT
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define METAL_BFLOAT double
#endif
typedef METAL_BFLOAT bfloat;

#define VECTORS(T)                                          \
  typedef T T##2 __attribute__((ext_vector_type(2)));       \
  typedef T T##3 __attribute__((ext_vector_type(3)));       \
  typedef T T##4 __attribute__((ext_vector_type(4)));
VECTORS(char)
VECTORS(uchar)
VECTORS(short)
VECTORS(ushort)
VECTORS(int)
VECTORS(uint)
VECTORS(long)
VECTORS(ulong)
VECTORS(half)
VECTORS(float)
#undef VECTORS

// Constructors: the names alone stay names of types.
#define uchar2(...) ((uchar2)(__VA_ARGS__))
#define uchar4(...) ((uchar4)(__VA_ARGS__))
#define ushort2(...) ((ushort2)(__VA_ARGS__))
#define ushort4(...) ((ushort4)(__VA_ARGS__))
#define int2(...) ((int2)(__VA_ARGS__))
#define int3(...) ((int3)(__VA_ARGS__))
#define int4(...) ((int4)(__VA_ARGS__))
#define uint2(...) ((uint2)(__VA_ARGS__))
#define uint3(...) ((uint3)(__VA_ARGS__))
#define uint4(...) ((uint4)(__VA_ARGS__))
#define ulong2(...) ((ulong2)(__VA_ARGS__))
#define half2(...) ((half2)(__VA_ARGS__))
#define half4(...) ((half4)(__VA_ARGS__))
#define float2(...) ((float2)(__VA_ARGS__))
#define float4(...) ((float4)(__VA_ARGS__))

template <class To, class From>
To as_type(From);

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace metal {

// ------------------------------------------------------------------------------------------------------------- math
#define FLOAT_1(name)                     \
  namespace precise {                     \
  float name(float);                      \
  }                                       \
  namespace fast {                        \
  float name(float);                      \
  }                                       \
  float name(float);                      \
  half name(half);
#define FLOAT_2(name)                     \
  namespace precise {                     \
  float name(float, float);               \
  }                                       \
  namespace fast {                        \
  float name(float, float);               \
  }                                       \
  float name(float, float);               \
  half name(half, half);
FLOAT_1(acos) FLOAT_1(acosh) FLOAT_1(asin) FLOAT_1(asinh) FLOAT_1(atan) FLOAT_1(atanh) FLOAT_1(ceil) FLOAT_1(cos)
FLOAT_1(cosh) FLOAT_1(cospi) FLOAT_1(exp) FLOAT_1(exp10) FLOAT_1(exp2) FLOAT_1(fabs) FLOAT_1(floor) FLOAT_1(fract)
FLOAT_1(log) FLOAT_1(log10) FLOAT_1(log2) FLOAT_1(rint) FLOAT_1(round) FLOAT_1(rsqrt) FLOAT_1(sign) FLOAT_1(sin)
FLOAT_1(sinh) FLOAT_1(sinpi) FLOAT_1(sqrt) FLOAT_1(tan) FLOAT_1(tanh) FLOAT_1(tanpi) FLOAT_1(trunc) FLOAT_1(saturate)
FLOAT_2(atan2) FLOAT_2(copysign) FLOAT_2(divide) FLOAT_2(fdim) FLOAT_2(fmax) FLOAT_2(fmin) FLOAT_2(fmod)
FLOAT_2(nextafter) FLOAT_2(pow) FLOAT_2(powr) FLOAT_2(max) FLOAT_2(min) FLOAT_2(step)
float fma(float, float, float);
half fma(half, half, half);
float ldexp(float, int);
float mix(float, float, float);
bool isnan(float);
bool isinf(float);
bool isfinite(float);
bool isnormal(float);
bool signbit(float);
template <class T>
T select(T, T, bool);
template <class T>
T abs(T);
template <class T>
T clamp(T, T, T);
template <class T>
T rotate(T, T);
template <class T>
T popcount(T);
template <class T>
T clz(T);
template <class T>
T ctz(T);
template <class T>
T reverse_bits(T);
#define INTEGERS(T)   \
  T min(T, T);        \
  T max(T, T);        \
  T mulhi(T, T);      \
  T addsat(T, T);     \
  T subsat(T, T);     \
  T hadd(T, T);       \
  T rhadd(T, T);      \
  T absdiff(T, T);
INTEGERS(char)
INTEGERS(uchar)
INTEGERS(short)
INTEGERS(ushort)
INTEGERS(int)
INTEGERS(uint)
INTEGERS(long)
INTEGERS(ulong)
#undef FLOAT_1
#undef FLOAT_2
#undef INTEGERS

// ---------------------------------------------------------------------------------------------------------- threads
enum class mem_flags { mem_none, mem_device, mem_threadgroup };
constexpr mem_flags operator|(mem_flags a, mem_flags) { return a; }
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

struct simd_vote {
  typedef ulong vote_t;
  explicit operator vote_t() const;
};
simd_vote simd_ballot(bool);
bool simd_all(bool);
bool simd_any(bool);
#define SHUFFLE(name) \
  template <class T>  \
  T name(T, ushort);
#define REDUCE(name) \
  template <class T> \
  T name(T);
SHUFFLE(simd_shuffle) SHUFFLE(simd_shuffle_xor) SHUFFLE(simd_shuffle_up) SHUFFLE(simd_shuffle_down)
SHUFFLE(simd_broadcast) REDUCE(simd_sum) REDUCE(simd_product) REDUCE(simd_max) REDUCE(simd_min) REDUCE(simd_and)
REDUCE(simd_or) REDUCE(simd_xor) REDUCE(simd_prefix_inclusive_sum) REDUCE(simd_prefix_exclusive_sum)
REDUCE(simd_broadcast_first)
#undef SHUFFLE
#undef REDUCE

// --------------------------------------------------------------------------------------------------------- matrices
template <class T>
struct Pair {
  T a, b;
  thread T& operator[](int) const;
};
template <class T, int C, int R>
struct simdgroup_matrix {
  T a, b;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
  thread Pair<T>& thread_elements() const;
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
template <class T, int C, int R>
simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T);
#define MOVES(space)                                                                                              \
  template <class T>                                                                                              \
  void simdgroup_load(thread simdgroup_matrix<T, 8, 8>&, space const T*, ulong = 8, ulong2 = 0, bool = false);    \
  template <class T>                                                                                              \
  void simdgroup_store(const thread simdgroup_matrix<T, 8, 8>&, space T*, ulong = 8, ulong2 = 0, bool = false);
MOVES(device)
MOVES(threadgroup)
#undef MOVES
template <class D, class A, class B>
void simdgroup_multiply(thread D&, const thread A&, const thread B&);
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(thread D&, const thread A&, const thread B&, const thread C&);

// ---------------------------------------------------------------------------------------------------------- atomics
template <class T>
struct atomic {
  T value;
};
#define atomic_int metal::atomic<int>
#define atomic_uint metal::atomic<uint>
#define atomic_float metal::atomic<float>
enum memory_order { memory_order_relaxed, memory_order_acq_rel = 4, memory_order_seq_cst };
enum thread_scope { thread_scope_threadgroup, thread_scope_device };
void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device);
template <class T>
struct Same {
  typedef T type;
};
#define ATOMIC(name, space)                                                            \
  template <class T>                                                                   \
  T name(volatile space atomic<T>*, typename Same<T>::type, memory_order);
#define ATOMICS(space)                                                                                            \
  ATOMIC(atomic_fetch_add_explicit, space) ATOMIC(atomic_fetch_sub_explicit, space)                               \
  ATOMIC(atomic_fetch_min_explicit, space) ATOMIC(atomic_fetch_max_explicit, space)                               \
  ATOMIC(atomic_fetch_and_explicit, space) ATOMIC(atomic_fetch_or_explicit, space)                                \
  ATOMIC(atomic_fetch_xor_explicit, space) ATOMIC(atomic_exchange_explicit, space)                                \
  ATOMIC(atomic_store_explicit, space)                                                                            \
  template <class T>                                                                                              \
  T atomic_load_explicit(const volatile space atomic<T>*, memory_order);                                          \
  template <class T>                                                                                              \
  bool atomic_compare_exchange_weak_explicit(volatile space atomic<T>*, thread T*, typename Same<T>::type,        \
                                             memory_order, memory_order);
ATOMICS(device)
ATOMICS(threadgroup)
#undef ATOMIC
#undef ATOMICS

}  // namespace metal
