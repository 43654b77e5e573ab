// Products with a scale for each block along K: of a warp (mma.sync), and those whose sums are in tensor memory (tcgen05.mma).
//
// PTX ISA, "Block Scaling": D = (A * scale_A) * (B * scale_B) + C. A scale multiplies 32 or 16 elements along K: of a row of
// A, or of a column of B. Scales are ue8m0, 2^(c - 127), 255 is NaN; or ue4m3, a float of 4 and 3 bits without a sign, whose
// bit 7 is 0. Elements of 4 bits are e2m1, the first of two in the low half of a byte.
//
// tcgen05.mma, instruction descriptor, Tables 43 and 44: 2 sparse, 5:4 byte of the scales of B, 9:7 and 12:10 (11:10 of 4-bit
// kinds) types of A and B, 13 and 14 negate, 15 and 16 transpose (not of 4-bit kinds), 22:17 N / 8, 23 scales are ue8m0,
// 28:27 M / 128, 30:29 byte of the scales of A, 31 K = 96; others 0. Scales of row r are in column r / 32 from their address
// on, in lane r % 32 of each of the four partitions of 32 lanes, in bytes from the one that the descriptor names on.
//
// mma.sync, "Block Scaling for mma.sync", and CUTLASS (mma_traits_sm120.hpp): row g of A is scaled by what the lane 4 g + 2 t of
// the pair that thread-id-a names holds, row g + 8 by the next lane; column g of B by lane 4 g + thread-id-b; in both
// from byte-id on.
//
// Uncalibrated: no device has recorded these models. Sums are exact before one rounding. Without a model: sparse forms, K = 96,
// other shapes than M = 128, elements of 6 bits, and of 4 bits in bytes.
#pragma once
#include "ptx_mma.h"

namespace ptx {

struct E2m1 {
  static double decode(unsigned code) {
    static const double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -sizes[code & 7] : sizes[code & 7];
  }
};

enum ScaleType : unsigned { UE8M0, UE4M3 };

SIMT_MODEL inline double scale_of(const char* name, unsigned code, ScaleType type) {
  if (type == UE8M0) return code == 255 ? bits_d(0x7fffffffffffffffull) : power_of_two((int)code - 127);
  if (code >> 7) simt::fail("descriptor", "%s: the scale %x has bit 7, which ue4m3 does not have", name, code);
  return E4m3::decode(code);
}

// Scales of a row that an instruction takes, from `byte` of a word on.
SIMT_MODEL inline void require_byte(const char* name, unsigned byte, unsigned count) {
  if (byte % count || byte + count > 4)
    simt::fail("descriptor", "%s: %u scales of a row begin at byte %u of a word: multiples of %u are legal", name, count, byte, count);
}

// ------------------------------------------------------------------------------------------------------ products of a warp

struct ScaledProduct {
  const reg_r *a, *b;
  double c[4];
  reg_r a_scale, b_scale;
  unsigned a_byte, a_pair, b_byte, b_lane;
};

// An element of a fragment: words along K of 32 / BITS elements.
template <class F, int BITS>
SIMT_MODEL inline double element_of(const reg_r* registers, unsigned r, unsigned i) {
  return F::decode(registers[r] >> (i * BITS & 31) & ((1u << BITS) - 1));
}

template <class A, class B, int BITS, ScaleType SCALE, int COUNT>
SIMT_MODEL void multiply_scaled(void** packs, simt::Thread**, unsigned) {
  enum : int { E = 32 / BITS, K = 8 * E, EACH = K / COUNT };
  const char* name = "mma.block_scale";
  ScaledProduct& first = *(ScaledProduct*)packs[0];
  for (unsigned row = 0; row < 16; row++)
    for (unsigned column = 0; column < 8; column++) {
      ScaledProduct& held = *(ScaledProduct*)packs[row % 8 * 4 + column / 2];
      const ScaledProduct& rows = *(ScaledProduct*)packs[row % 8 * 4 + first.a_pair * 2 + row / 8];
      const ScaledProduct& columns = *(ScaledProduct*)packs[column * 4 + first.b_lane];
      double& sum = held.c[row / 8 * 2 + column % 2];
      for (unsigned k = 0; k < K; k++) {
        unsigned word = k / E, at = k / EACH;
        double a = element_of<A, BITS>(((ScaledProduct*)packs[row % 8 * 4 + word % 4])->a, word / 4 * 2 + row / 8, k % E);
        double b = element_of<B, BITS>(((ScaledProduct*)packs[column * 4 + word % 4])->b, word / 4, k % E);
        double left = scale_of(name, rows.a_scale >> (first.a_byte + at) * 8 & 255, SCALE);
        double right = scale_of(name, columns.b_scale >> (first.b_byte + at) * 8 & 255, SCALE);
        sum += a * left * (b * right);
      }
    }
}

template <class A, class B, int BITS, ScaleType SCALE, int COUNT, class TA, class TB, class TC, class TP, class TQ>
SIMT_MODEL void mma_scaled(int line, V<reg_f, 4> d, V<TA, 4> a, V<TB, 2> b, V<TC, 4> c, reg_r a_scale, V<TP, 2> a_from,
                           reg_r b_scale, V<TQ, 2> b_from) {
  const char* name = "mma.block_scale";
  reg_r ra[4], rb[2];
  for (unsigned i = 0; i < 4; i++) ra[i] = a[i];
  for (unsigned i = 0; i < 2; i++) rb[i] = b[i];
  ScaledProduct pack{ra, rb, {}, a_scale, b_scale, (unsigned)a_from[0], (unsigned)a_from[1], (unsigned)b_from[0], (unsigned)b_from[1]};
  for (unsigned i = 0; i < 4; i++) pack.c[i] = c[i];
  require_byte(name, pack.a_byte, COUNT), require_byte(name, pack.b_byte, COUNT);
  if (pack.a_pair > 1 || pack.b_lane > 3)
    simt::fail("descriptor", "%s: the threads %u and %u are to have the scales: 0 or 1, and 0 to 3, are legal", name, pack.a_pair, pack.b_lane);
  meet_warp("mma", &pack, multiply_scaled<A, B, BITS, SCALE, COUNT>, line);
  for (unsigned i = 0; i < 4; i++) d[i] = canonical((float)pack.c[i]);
}

}  // namespace ptx
