// Forms that host compilers were found to miscompile, on values of run time. `forms` writes one result per form and
// value; sound.py computes the same. Each form is a function that is not inlined, as a kernel has it.
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
#define FORM extern "C" __attribute__((noinline, visibility("default")))

// A quotient beside the quotient of the negation, which wraps for the least value.
template <i32 D> __attribute__((noinline)) static void negated(i32 n, i64* out) {
  const i32 t = 0u - (u32)n;
  out[0] = (i32)((u32)(n / D - (n % D != 0 && (n < 0) != (D < 0))));
  out[1] = (i32)(0u - (u32)(t / D - (t % D != 0 && (t < 0) != (D < 0))));
  out[2] = n % D;
  out[3] = t % D;
}
template <i64 D> __attribute__((noinline)) static void negated_wide(i64 n, i64* out) {
  const i64 t = 0ull - (u64)n;
  out[0] = n / D;
  out[1] = (i64)(0ull - (u64)(t / D));
}
FORM void comparisons(i32 n, i64* out) {
  out[0] = (i32)((u32)n + 1u) > n;
  out[1] = (i32)((u32)n * 2u) / 2 == n;
  out[2] = (i32)(0u - (u32)n) < 0;
}
FORM void shifts(i32 n, i64* out) {
  out[0] = (i32)((u32)n << 3) >> 3;
  out[1] = (n >> 31) & 7;
  out[2] = (signed char)n;
  out[3] = (i32)(unsigned short)((u32)n * 3u);
}
FORM void conversions(i64 n, i64* out) {
  n >>= 2;
  out[0] = (i64)(float)n;
  out[1] = (i64)(double)(u64)(n & 0x3fffffffffffffffll);
  out[2] = (i64)(float)(u64)(n & 0xffffffffffffll);
}
// Loads at a remainder whose lanes wrap, beside a guard.
FORM void lanes(const i32* table, const i32* rows, i32* out) {
  for (i32 i = 0; i < 16; ++i)
    for (i32 j = 0; j < 64; ++j)
      out[i * 64 + j] = table[(i + 1) % 5 * 4 + ((j + 5) & 3)] + (j < 3 ? rows[i * 3] : 0);
}
FORM void floats(double x, i64* out) {
  const float f = (float)x;
  out[0] = f != f;
  out[1] = f * 0.0f == 0.0f;
  out[2] = 1.0f / (f + 0.0f) < 0.0f;
  out[3] = f - f == 0.0f;
}

FORM void forms(const i64* values, i32 count, const double* numbers, i32 much, const i32* table, const i32* rows,
                i64* out, i32* lanes_out) {
  for (i32 k = 0; k < count; ++k) {
    const i32 n = (i32)values[k];
    negated<10>(n, out);
    negated<3>(n, out + 4);
    negated<-7>(n, out + 8);
    negated<8>(n, out + 12);
    negated_wide<10>(values[k], out + 16);
    comparisons(n, out + 18);
    shifts(n, out + 21);
    conversions(values[k], out + 25);
    out += 28;
  }
  for (i32 k = 0; k < much; ++k, out += 4) floats(numbers[k], out);
  lanes(table, rows, lanes_out);
}
