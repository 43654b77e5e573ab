// Names of scalar types, and values seen as another type.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "metal_floats.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

static_assert((char)-1 < 0, "char has a sign");
static_assert(sizeof(long) == 8, "long has 64 bits");

template <class To, class From>
inline To as_type(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "as_type between types of one size");
  To to;
  __builtin_memcpy((void*)&to, (const void*)&x, sizeof to);
  return to;
}

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT 3.4028234663852886e38f
#define FLT_MAX 3.4028234663852886e38f
#define FLT_MIN 1.1754943508222875e-38f
#define FLT_EPSILON 1.1920928955078125e-07f
#define HALF_MAX half(65504.0f)
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
