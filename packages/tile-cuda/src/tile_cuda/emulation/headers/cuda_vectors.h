// Vector types: their sizes and alignments are those of the device.
#pragma once

#define VECTOR_STRUCT(name, T, bytes)                          \
  struct name##1 {                                             \
    T x;                                                       \
  };                                                           \
  struct name##3 {                                             \
    T x, y, z;                                                 \
  };                                                           \
  inline name##1 make_##name##1(T x) { return name##1{x}; }    \
  inline name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; }

#if defined(__clang__)  // which does not check the alignment of structures that are copied as a whole
#define VECTOR_TYPES(name, T, bytes)                                                       \
  typedef T name##2 __attribute__((ext_vector_type(2)));                                   \
  typedef T name##4 __attribute__((ext_vector_type(4), aligned(bytes < 4 ? 4 * bytes : 16))); \
  VECTOR_STRUCT(name, T, bytes)                                                            \
  inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; }                        \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
#else
#define VECTOR_TYPES(name, T, bytes)                                \
  struct alignas(2 * bytes) name##2 {                               \
    T x, y;                                                         \
  };                                                                \
  struct alignas(bytes < 4 ? 4 * bytes : 16) name##4 {              \
    T x, y, z, w;                                                   \
  };                                                                \
  VECTOR_STRUCT(name, T, bytes)                                     \
  inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
#endif

VECTOR_TYPES(char, signed char, 1)
VECTOR_TYPES(uchar, unsigned char, 1)
VECTOR_TYPES(short, short, 2)
VECTOR_TYPES(ushort, unsigned short, 2)
VECTOR_TYPES(int, int, 4)
VECTOR_TYPES(uint, unsigned, 4)
VECTOR_TYPES(long, long, 8)
VECTOR_TYPES(ulong, unsigned long, 8)
VECTOR_TYPES(longlong, long long, 8)
VECTOR_TYPES(ulonglong, unsigned long long, 8)
VECTOR_TYPES(float, float, 4)
VECTOR_TYPES(double, double, 8)
#undef VECTOR_TYPES
#undef VECTOR_STRUCT

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
