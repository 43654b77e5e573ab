// Matrix instructions of a wavefront, dense (MFMA) and with a 2:4 sparse A (SMFMAC).
//
// Where elements are, as AMD's Matrix Instruction Calculator says it for CDNA3 ("Matrix element to register mapping"),
// with E = elements of B in a lane, L = rows of C (16 or 32):
//   dense A[i][k]: lane L * floor(k / E) + i, element k % E; B[k][j]: lane L * floor(k / E) + j, element k % E;
//   sparse A: of each group of 4 along K two are stored, in the lane of the group, in order; the lane's nibble of that
//   group says which: bits 1:0 and 3:2 of compression[i][k], in the part of the index register that ABID names;
//   D[i][j] of 16 rows: register i % 4, lane 16 * floor(i / 4) + j; of float64: register floor(i / 4), lane
//   16 * (i % 4) + j; of 32 rows: register 4 * floor(i / 8) + i % 4, lane (32 * floor(i / 4)) % 64 + j.
// Sums are exact and rounded once, for float64 they are fused multiply-adds in the order of K; integers wrap around.
#pragma once
#include "rocm_floats.h"
#include "simt.h"

namespace rocm {

// Element types: how many bits they have, and their values.
template <class F, int BITS>
struct Codes {
  enum : int { bits = BITS };
  SIMT_MODEL static double at(const unsigned char* p, unsigned i) {
    unsigned code = p[i * BITS / 8];
    if (BITS == 16) code |= (unsigned)p[i * 2 + 1] << 8;
    return F::decode(code);
  }
};
struct f16 : Codes<F16, 16> {};
struct bf16 : Codes<Bf16, 16> {};
struct fp8 : Codes<Fp8, 8> {};
struct bf8 : Codes<Bf8, 8> {};
struct i8 : Codes<I8, 8> {};
template <class T, uint32_t MASK = ~0u>
struct Plain {
  enum : int { bits = 8 * sizeof(T) };
  SIMT_MODEL static double at(const unsigned char* p, unsigned i) {
    T value;
    __builtin_memcpy(&value, p + i * sizeof value, sizeof value);
    if (sizeof(T) == 4) value = (T)bits_as<float>(bits_as<uint32_t>((float)value) & MASK);
    return (double)value;
  }
};
struct f32 : Plain<float> {};
struct xf32 : Plain<float, 0xffffe000u> {};  // the last 13 bits of the mantissa are not looked at
struct f64 : Plain<double> {};

// What a lane brings and takes.
struct Product {
  unsigned char a[16], b[16], c[64];
  unsigned index;
};

template <class T>
struct Sum {
  typedef double type;
  SIMT_MODEL static double add(double sum, double x, double y) { return sum + x * y; }
  SIMT_MODEL static T result(double sum) { return (T)sum; }
};
template <>
struct Sum<double> {
  typedef double type;
  SIMT_MODEL static double add(double sum, double x, double y) { return __builtin_fma(x, y, sum); }
  SIMT_MODEL static double result(double sum) { return sum; }
};
template <>
struct Sum<int> {
  typedef long long type;
  SIMT_MODEL static long long add(long long sum, double x, double y) { return sum + (long long)(x * y); }
  SIMT_MODEL static int result(long long sum) { return (int)(unsigned)sum; }
};

// Lane and register of D[i][j].
template <class C, int L>
SIMT_MODEL inline void place(unsigned i, unsigned j, unsigned& lane, unsigned& gpr) {
  if (L == 32)
    gpr = 4 * (i / 8) + i % 4, lane = 32 * (i / 4) % 64 + j;
  else if (sizeof(C) == 8)
    gpr = i / 4, lane = 16 * (i % 4) + j;
  else
    gpr = i % 4, lane = 16 * (i / 4) + j;
}

template <class A, class B, class C, int L, int K, bool SPARSE, int ABID>
SIMT_MODEL void multiply(void** packs, simt::Thread**, unsigned members) {
  enum : int { E = K * L / 64 };
  Product** lanes = (Product**)packs;
  for (unsigned l = 0; l < 64; l++)
    if (l >= members || !lanes[l]) simt::fail("collective", "a matrix instruction without lane %u of its wavefront", l);
  static double a[L][K], b[K][L];
  static unsigned char places[L][K];
  enum : int { STORED = SPARSE ? K / 2 : K };
  for (unsigned i = 0; i < L; i++)
    for (unsigned k = 0; k < STORED; k++) {
      if (!SPARSE) {
        a[i][k] = A::at(lanes[L * (k / E) + i]->a, k % E), places[i][k] = (unsigned char)k;
        continue;
      }
      unsigned group = k / 2, owner = L * (4 * group / E) + i, nth = group % (E / 4);
      unsigned nibble = lanes[owner]->index >> (ABID * E + 4 * nth) & 15, first = nibble & 3, second = nibble >> 2;
      if (first >= second)
        simt::fail("metadata", "lane %u describes row %u from k = %u on by %u, %u: the indices must increase", owner, i,
                   4 * group, first, second);
      a[i][k] = A::at(lanes[owner]->a, k % (E / 2));
      places[i][k] = (unsigned char)(4 * group + (k % 2 ? second : first));
    }
  for (unsigned k = 0; k < K; k++)
    for (unsigned j = 0; j < L; j++) b[k][j] = B::at(lanes[L * (k / E) + j]->b, k % E);
  for (unsigned i = 0; i < L; i++)
    for (unsigned j = 0; j < L; j++) {
      unsigned lane, gpr;
      place<C, L>(i, j, lane, gpr);
      C value;
      __builtin_memcpy(&value, lanes[lane]->c + gpr * sizeof value, sizeof value);
      typename Sum<C>::type sum = value;
      for (unsigned k = 0; k < STORED; k++) sum = Sum<C>::add(sum, a[i][k], b[places[i][k]][j]);
      value = Sum<C>::result(sum);
      __builtin_memcpy(lanes[lane]->c + gpr * sizeof value, &value, sizeof value);
    }
}

template <class A, class B, class C, int L, int K, bool SPARSE, int ABID, class VA, class VB, class VC>
SIMT_MODEL inline VC product(const char* name, VA a, VB b, VC c, int index, int line) {
  static_assert(sizeof(VB) * 8 * 64 == L * K * B::bits, "B has other registers");
  static_assert(sizeof(VA) * 8 * 64 == L * K * A::bits / (SPARSE ? 2 : 1), "A has other registers");
  static_assert(sizeof(VC) * 64 == L * L * sizeof(C), "C has other registers");
  Product pack;
  pack.index = (unsigned)index;
  __builtin_memcpy(pack.a, &a, sizeof a);
  __builtin_memcpy(pack.b, &b, sizeof b);
  __builtin_memcpy(pack.c, &c, sizeof c);
  simt::meet(name, 1, existing_lanes(), &pack, multiply<A, B, C, L, K, SPARSE, ABID>, line);
  __builtin_memcpy(&c, pack.c, sizeof c);
  return c;
}

// ABID is a number in the text; a model has to be chosen for it. CBSZ is 0: ABID counts.
template <class A, class B, class C, int L, int K, class VA, class VB, class VC>
SIMT_MODEL inline VC sparse(const char* name, VA a, VB b, VC c, int index, int cbsz, int abid, int line) {
  if (cbsz || abid * (K * L / 64) >= 32) simt::fail("selector", "%s: CBSZ %d, ABID %d", name, cbsz, abid);
  switch (abid) {
    case 0: return product<A, B, C, L, K, true, 0>(name, a, b, c, index, line);
    case 1: return product<A, B, C, L, K, true, 1>(name, a, b, c, index, line);
    case 2: return product<A, B, C, L, K, true, 2>(name, a, b, c, index, line);
    default: return product<A, B, C, L, K, true, 3>(name, a, b, c, index, line);
  }
}

}  // namespace rocm

#define ROCM_MFMA(end, A, B, C, L, K)                                                                            \
  template <class VA, class VB, class VC>                                                                        \
  inline VC __builtin_amdgcn_mfma_##end(VA a, VB b, VC c, int cbsz, int abid, int blgp, int line = __builtin_LINE()) { \
    if (cbsz || abid || blgp) simt::fail("matrix", "modifiers of a matrix instruction have no model");           \
    return rocm::product<rocm::A, rocm::B, C, L, K, false, 0>(#end, a, b, c, 0, line);                            \
  }
#define ROCM_SMFMAC(end, A, B, C, L, K)                                                                          \
  template <class VA, class VB, class VC>                                                                        \
  inline VC __builtin_amdgcn_smfmac_##end(VA a, VB b, VC c, int index, int cbsz, int abid, int line = __builtin_LINE()) { \
    return rocm::sparse<rocm::A, rocm::B, C, L, K>(#end, a, b, c, index, cbsz, abid, line);                       \
  }
ROCM_MFMA(f32_16x16x16f16, f16, f16, float, 16, 16)
ROCM_MFMA(f32_16x16x16bf16_1k, bf16, bf16, float, 16, 16)
ROCM_MFMA(i32_16x16x32_i8, i8, i8, int, 16, 32)
ROCM_MFMA(f32_16x16x4f32, f32, f32, float, 16, 4)
#if ROCM_FNUZ  // of gfx942 only
ROCM_MFMA(f32_16x16x8_xf32, xf32, xf32, float, 16, 8)
#endif
ROCM_MFMA(f64_16x16x4f64, f64, f64, double, 16, 4)
ROCM_MFMA(f32_32x32x8f16, f16, f16, float, 32, 8)
ROCM_MFMA(f32_32x32x8bf16_1k, bf16, bf16, float, 32, 8)
ROCM_MFMA(i32_32x32x16_i8, i8, i8, int, 32, 16)
ROCM_SMFMAC(f32_16x16x32_f16, f16, f16, float, 16, 32)
ROCM_SMFMAC(f32_16x16x32_bf16, bf16, bf16, float, 16, 32)
ROCM_SMFMAC(i32_16x16x64_i8, i8, i8, int, 16, 64)
#define ROCM_FP8(A, B)                                  \
  ROCM_MFMA(f32_16x16x32_##A##_##B, A, B, float, 16, 32) \
  ROCM_MFMA(f32_32x32x16_##A##_##B, A, B, float, 32, 16) \
  ROCM_SMFMAC(f32_16x16x64_##A##_##B, A, B, float, 16, 64)
ROCM_FP8(fp8, fp8)
ROCM_FP8(fp8, bf8)
ROCM_FP8(bf8, fp8)
ROCM_FP8(bf8, bf8)
