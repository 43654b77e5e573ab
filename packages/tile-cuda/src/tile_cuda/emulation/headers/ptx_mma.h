// Matrix products of a warp, dense and with 2:4 sparse A.
//
// Rule of the numbers: products are exact. They and the addend are summed up in double, with k ascending, and rounded
// once to the accumulator's type. A device adds fewer bits and in an order of its own, so results agree within an error
// bound; they agree exactly where all partial sums are exact, as for small integers. Integers wrap around, or saturate
// where the instruction says so. double accumulates by fused multiply-add, k ascending.
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

// The product of a warp: M is 16, N is 8.
template <class A, class B, int K, bool SPARSE, unsigned SELECTOR>
SIMT_MODEL void multiply(void** packs, simt::Thread**, unsigned) {
  enum : int { STORED = SPARSE ? K / 2 : K, E = 32 / A::BITS, A_REGISTERS = STORED / E / 2 };
  const char* name = SPARSE ? "mma.sp" : "mma";
  double b[K][8];
  for (unsigned k = 0; k < K; k++)
    for (unsigned column = 0; column < 8; column++) {
      unsigned word = k / E;
      b[k][column] = element<B>(((Product*)packs[column * 4 + word % 4])->b, word / 4, k % E);
    }
  for (unsigned row = 0; row < 16; row++) {
    unsigned char places[STORED];
    Places<A::BITS, K, SPARSE>::find(name, packs, SELECTOR, row, places);
    double a[STORED];
    for (unsigned i = 0; i < STORED; i++) {
      unsigned word = i / E;
      a[i] = element<A>(((Product*)packs[row % 8 * 4 + word % 4])->a, word / 4 * 2 + row / 8, i % E);
    }
    for (unsigned column = 0; column < 8; column++) {
      double& c = ((Product*)packs[row % 8 * 4 + column / 2])->c[row / 8 * 2 + column % 2];
      double sum = 0;
      for (unsigned i = 0; i < STORED; i++) sum += a[i] * b[places[i]][column];
      c += sum;
    }
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
  meet_warp("mma", &pack, multiply<A, B, K, false, 0>, line);
  Sum::write(d, pack.c);
}

template <class A, class B, int K, unsigned SELECTOR>
constexpr simt::Meeting sparse_product() {
  return multiply<A, B, K, true, SELECTOR>;
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
    simt::fail("metadata", "mma.sp: the selector is %lld, it must be less than %d", selector, (int)CHOICES);
  simt::Meeting fn = sparse_product<A, B, K, 0>();
  if constexpr (CHOICES > 1)
    if (selector == 1) fn = sparse_product<A, B, K, 1>();
  if constexpr (CHOICES > 2) {
    if (selector == 2) fn = sparse_product<A, B, K, 2>();
    if (selector == 3) fn = sparse_product<A, B, K, 3>();
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
