// Matrix products of a warp, dense and with 2:4 sparse A.
//
// Rule of the numbers, bit by bit what an H200 does (docs/evidence/models-h200.md):
//   Products of 16-bit floats and of tf32 are exact. They and the addend are aligned to the largest exponent among them,
//   that of a product being the sum of its operands' exponents, cut off 25 bits below it, and added exactly. The sum is
//   rounded towards zero to f32 (what is too large becomes infinity), or to the nearest f16.
//   8-bit floats become f16. The products of the lower halves of A's words, then of the upper ones, are such sums that
//   begin at 0; the addend is added last, rounded to nearest.
//   Other architectures cut and group differently: within the same error bound their last bits differ.
//   Integers wrap around, or saturate where the instruction has that modifier. double accumulates by fused multiply-add, k
//   ascending.
//
// Fragments, with g = lane/4, t = lane%4, in 32-bit words of E elements along k:
//   A: register r holds row g + 8*(r%2), word t + 4*(r/2); B: register r holds column g, word t + 4*r;
//   C and D: elements 0, 1 are (g, 2t), (g, 2t+1), elements 2, 3 are (g+8, 2t), (g+8, 2t+1).
// Sparse A is the fragment of half of K.
#pragma once
#include "ptx_numbers.h"
#include "ptx_registers.h"

namespace ptx {

// What a lane brings and takes.
struct Product {
  const reg_r *a, *b;
  double c[4];
  reg_r metadata;
};

SIMT_MODEL inline float toward_zero(double x) {
  if (__builtin_fabs(x) >= 0x1p128) return x > 0 ? __builtin_inff() : -__builtin_inff();
  float near = (float)x;
  unsigned bits;
  __builtin_memcpy(&bits, &near, 4);
  return __builtin_fabs((double)near) > __builtin_fabs(x) ? bits_f(bits - 1) : near;
}

// Registers of the accumulator: what to read of them, what to write to them.
struct SumF32 {
  enum : int { REGISTERS = 4 };
  typedef reg_f reg;
  template <class T>
  SIMT_MODEL static void read(double* c, const V<T, 4>& from) {
    for (unsigned i = 0; i < 4; i++) c[i] = from[i];
  }
  SIMT_MODEL static void write(const V<reg_f, 4>& to, const double* d) {
    for (unsigned i = 0; i < 4; i++) to[i] = canonical((float)d[i]);
  }
  SIMT_MODEL static double round(double x) { return toward_zero(x); }
  SIMT_MODEL static double nearest(double x) { return (float)x; }
  // A sum of products of 8-bit floats by wgmma: 14 bits.
  SIMT_MODEL static double of_bytes(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, 8);
    if ((bits >> 52 & 0x7ff) != 0x7ff) bits &= ~0ull << 39;
    __builtin_memcpy(&x, &bits, 8);
    return toward_zero(x);
  }
};
struct SumF16 {
  enum : int { REGISTERS = 2 };
  typedef reg_r reg;
  template <class T>
  SIMT_MODEL static void read(double* c, const V<T, 2>& from) {
    for (unsigned i = 0; i < 4; i++) c[i] = F16::decode(from[i / 2] >> i % 2 * 16 & 0xffff);
  }
  SIMT_MODEL static void write(const V<reg_r, 2>& to, const double* d) {
    for (unsigned i = 0; i < 2; i++) to[i] = F16::encode(d[2 * i]) | F16::encode(d[2 * i + 1]) << 16;
  }
  SIMT_MODEL static double nearest(double x) { return F16::decode(F16::encode(x)); }
  SIMT_MODEL static double round(double x) { return nearest(x) + 0.0; }  // a zero is positive
  SIMT_MODEL static double of_bytes(double x) { return round(x); }
};
template <bool SATURATE>
struct SumS32 {
  enum : int { REGISTERS = 4 };
  typedef reg_r reg;
  template <class T>
  SIMT_MODEL static void read(double* c, const V<T, 4>& from) {
    for (unsigned i = 0; i < 4; i++) c[i] = (int)from[i];
  }
  SIMT_MODEL static void write(const V<reg_r, 4>& to, const double* d) {  // sums of 8-bit products are exact
    for (unsigned i = 0; i < 4; i++) {
      int64_t sum = (int64_t)d[i];
      if (SATURATE) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      to[i] = (reg_r)sum;
    }
  }
};

// The element of a fragment's register.
template <class F>
SIMT_MODEL inline double element(const reg_r* registers, unsigned r, unsigned i) {
  return F::decode(F::BITS == 32 ? registers[r] : registers[r] >> (i * F::BITS & 31) & ((1ull << F::BITS) - 1));
}

// Where in dense K the stored values of a row lie.
template <int BITS, int K, bool SPARSE>
struct Places {
  enum : int { GROUP = BITS == 32 ? 2 : 4, GROUPS = K / GROUP, PER_GROUP = GROUP / 2 };

  // The lane whose metadata describes a group, and at which bit. A row's nibbles are divided among lanes of its quad.
  SIMT_MODEL static void nibble_of(unsigned row, unsigned group, unsigned selector, unsigned& lane, unsigned& bit) {
    unsigned high = row / 8;
    lane = row % 8 * 4;
    if (BITS == 8) {  // a lane has 8 nibbles of one row
      lane += 2 * selector + high + 2 * (group / 8);
      bit = group % 8 * 4;
    } else {  // a lane has 4 nibbles of rows g and g + 8
      lane += GROUPS == 4 ? selector : 2 * selector + group / 4;
      bit = 16 * high + group % 4 * 4;
    }
  }

  SIMT_MODEL static void find(const char* name, void** packs, unsigned selector, unsigned row, unsigned char* places) {
    if (!SPARSE) {
      for (unsigned k = 0; k < K; k++) places[k] = (unsigned char)k;
      return;
    }
    for (unsigned group = 0; group < GROUPS; group++) {
      unsigned lane, bit;
      nibble_of(row, group, selector, lane, bit);
      unsigned nibble = ((Product*)packs[lane])->metadata >> bit & 15, first = nibble & 3, second = nibble >> 2;
      bool legal = BITS == 32 ? nibble == 4 || nibble == 14 : first < second;
      if (!legal)
        simt::fail("metadata", "%s: the metadata of lane %u describes row %u from k = %u on by %u, %u: %s", name, lane,
                   row, group * GROUP, first, second,
                   BITS == 32 ? "only 0, 1 and 2, 3 are legal" : "the indices must increase");
      for (unsigned i = 0; i < PER_GROUP; i++)
        places[group * PER_GROUP + i] = (unsigned char)(group * GROUP + (BITS == 32 ? first / 2 : i ? second : first));
    }
  }
};

enum : int { NO_EXPONENT = -5000, NOT_FINITE = 20000 };

// The exponent of an operand: `least` for subnormal numbers.
SIMT_MODEL inline int exponent_of(double x, int least) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  return x == 0 ? NO_EXPONENT : exponent == 1024 ? NOT_FINITE : exponent < least ? least : exponent;
}

// A row of A, and those rows of B that it meets.
template <int N>
struct Row {
  double a[N];
  int a_exponent[N];
  const double* b[N];  // 8 columns each
  const int* b_exponent[N];
};

// Adds products of elements to the accumulators of 8 columns. Of every 4, `mine` selects some. CUT: bits that are kept below
// the largest exponent.
template <int CUT = 25, int N>
SIMT_MODEL void add_products(const Row<N>& row, unsigned mine, double (&sums)[8]) {
  int top[8];
  double total[8], scale[8];
  for (unsigned c = 0; c < 8; c++) top[c] = exponent_of(sums[c], -126);
  for (unsigned i = 0; i < N; i++)
    if (mine >> i % 4 & 1)
      for (unsigned c = 0; c < 8; c++) {
        int e = row.a_exponent[i] + row.b_exponent[i][c];
        top[c] = e > top[c] ? e : top[c];
      }
  for (unsigned c = 0; c < 8; c++) {
    bool plain = top[c] > 1000 || top[c] < -1000;  // Inf, NaN, or zeros alone
    scale[c] = plain ? 0 : power_of_two(CUT - top[c]);
    total[c] = scale[c] ? (double)(int)(sums[c] * scale[c]) : 0;
  }
  for (unsigned i = 0; i < N; i++)
    if (mine >> i % 4 & 1)
      for (unsigned c = 0; c < 8; c++)
        if (scale[c]) total[c] += (double)(int)(row.a[i] * row.b[i][c] * scale[c]);
        else total[c] += row.a[i] * row.b[i][c];
  for (unsigned c = 0; c < 8; c++) sums[c] = scale[c] ? total[c] / scale[c] : sums[c] + total[c];
}

// One row of the product: sums[c] += a * b.
template <class A, class Sum, int N>
SIMT_MODEL void multiply_row(const Row<N>& row, double (&sums)[8]) {
  if constexpr (A::WHOLE) {
    for (unsigned i = 0; i < N; i++)
      for (unsigned c = 0; c < 8; c++) sums[c] += row.a[i] * row.b[i][c];
  } else if constexpr (A::BITS == 8) {
    double parts[8] = {};
    for (unsigned mine = 3; mine < 16; mine *= 4) {
      add_products(row, mine, parts);
      for (unsigned c = 0; c < 8; c++) parts[c] = Sum::round(parts[c]);
    }
    for (unsigned c = 0; c < 8; c++) sums[c] = Sum::nearest(sums[c] + parts[c]);
  } else {
    add_products(row, 15, sums);
    for (unsigned c = 0; c < 8; c++) sums[c] = Sum::round(sums[c]);
  }
}

// The product of a warp: M is 16, N is 8.
template <class A, class B, class Sum, int K, bool SPARSE, unsigned SELECTOR>
SIMT_MODEL void multiply(void** packs, simt::Thread**, unsigned) {
  enum : int { STORED = SPARSE ? K / 2 : K, E = 32 / A::BITS, A_REGISTERS = STORED / E / 2 };
  const char* name = SPARSE ? "mma.sp" : "mma";
  double b[K][8];
  int b_exponent[K][8];
  for (unsigned k = 0; k < K; k++)
    for (unsigned column = 0; column < 8; column++) {
      unsigned word = k / E;
      b[k][column] = element<B>(((Product*)packs[column * 4 + word % 4])->b, word / 4, k % E);
      if constexpr (!B::WHOLE) b_exponent[k][column] = exponent_of(b[k][column], B::LEAST);
    }
  for (unsigned row = 0; row < 16; row++) {
    unsigned char places[STORED];
    Places<A::BITS, K, SPARSE>::find(name, packs, SELECTOR, row, places);
    Row<STORED> mine;
    for (unsigned i = 0; i < STORED; i++) {
      unsigned word = i / E;
      mine.a[i] = element<A>(((Product*)packs[row % 8 * 4 + word % 4])->a, word / 4 * 2 + row / 8, i % E);
      if constexpr (!A::WHOLE) mine.a_exponent[i] = exponent_of(mine.a[i], A::LEAST);
      mine.b[i] = b[places[i]], mine.b_exponent[i] = b_exponent[places[i]];
    }
    double sums[8];
    for (unsigned column = 0; column < 8; column++)
      sums[column] = ((Product*)packs[row % 8 * 4 + column / 2])->c[row / 8 * 2 + column % 2];
    multiply_row<A, Sum>(mine, sums);
    for (unsigned column = 0; column < 8; column++)
      ((Product*)packs[row % 8 * 4 + column / 2])->c[row / 8 * 2 + column % 2] = sums[column];
  }
}

template <class A, class B, class Sum, int K, class TA, class TB, class TC>
SIMT_MODEL void mma(int line, V<typename Sum::reg, Sum::REGISTERS> d, V<TA, K * A::BITS / 64> a,
                    V<TB, K * B::BITS / 128> b, V<TC, Sum::REGISTERS> c) {
  reg_r ra[K * A::BITS / 64], rb[K * B::BITS / 128];
  for (unsigned i = 0; i < K * A::BITS / 64; i++) ra[i] = a[i];
  for (unsigned i = 0; i < K * B::BITS / 128; i++) rb[i] = b[i];
  Product pack{ra, rb, {}, 0};
  Sum::read(pack.c, c);
  meet_warp("mma", &pack, multiply<A, B, Sum, K, false, 0>, line);
  Sum::write(d, pack.c);
}

template <class A, class B, class Sum, int K, unsigned SELECTOR>
constexpr simt::Meeting sparse_product() {
  return multiply<A, B, Sum, K, true, SELECTOR>;
}

template <class A, class B, class Sum, int K, class TA, class TB, class TC>
SIMT_MODEL void mma_sp(int line, V<typename Sum::reg, Sum::REGISTERS> d, V<TA, K * A::BITS / 128> a,
                       V<TB, K * B::BITS / 128> b, V<TC, Sum::REGISTERS> c, reg_r metadata, long long selector) {
  // Lanes of a quad that supply the metadata of one product leave room for so many products.
  enum : int { CHOICES = 4 / (A::BITS == 8 ? K / 16 : A::BITS == 16 ? K / 16 : K / 8) };
  reg_r ra[K * A::BITS / 128], rb[K * B::BITS / 128];
  for (unsigned i = 0; i < K * A::BITS / 128; i++) ra[i] = a[i];
  for (unsigned i = 0; i < K * B::BITS / 128; i++) rb[i] = b[i];
  Product pack{ra, rb, {}, metadata};
  Sum::read(pack.c, c);
  if (selector < 0 || selector >= CHOICES)
    simt::fail("selector", "mma.sp: the selector is %lld, it must be less than %d", selector, (int)CHOICES);
  simt::Meeting fn = sparse_product<A, B, Sum, K, 0>();
  if constexpr (CHOICES > 1)
    if (selector == 1) fn = sparse_product<A, B, Sum, K, 1>();
  if constexpr (CHOICES > 2) {
    if (selector == 2) fn = sparse_product<A, B, Sum, K, 2>();
    if (selector == 3) fn = sparse_product<A, B, Sum, K, 3>();
  }
  meet_warp("mma.sp", &pack, fn, line);
  Sum::write(d, pack.c);
}

// ------------------------------------------------------------------------------------------------------------- double

struct ProductF64 {
  double a, b, c[2];
};
SIMT_MODEL inline void multiply_f64(void** packs, simt::Thread**, unsigned) {
  for (unsigned lane = 0; lane < 32; lane++)
    for (unsigned i = 0; i < 2; i++)
      for (unsigned k = 0; k < 4; k++) {
        double a = ((ProductF64*)packs[lane / 4 * 4 + k])->a, b = ((ProductF64*)packs[(lane % 4 * 2 + i) * 4 + k])->b;
        double& c = ((ProductF64*)packs[lane])->c[i];
        c = __builtin_fma(a, b, c);
      }
}
template <class TA, class TB, class TC>
SIMT_MODEL void mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(int line, V<reg_d, 2> d, V<TA, 1> a, V<TB, 1> b,
                                                                V<TC, 2> c) {
  ProductF64 pack{a[0], b[0], {c[0], c[1]}};
  meet_warp("mma", &pack, multiply_f64, line);
  for (unsigned i = 0; i < 2; i++) d[i] = canonical(pack.c[i]);
}

}  // namespace ptx
