// tcgen05.mma with block scaling: see ptx_block_scale.h for its tables, and ptx_tcgen05.h for tensor memory.
#pragma once
#include "ptx_block_scale.h"
#include "ptx_tcgen05.h"

namespace ptx {

enum ScaledKind : unsigned { KIND_MXF8, KIND_MXF4, KIND_NVF4 };

struct ScaledTensor {
  Matrix a, b;
  unsigned column, n, a_type, b_type, a_scale, b_scale, a_byte, b_byte;
  ScaleType scale;
  bool adds;
  double sign;
};

// The scale of a row, which all four partitions of lanes must have.
SIMT_MODEL inline double scale_of_row(unsigned column, unsigned row, unsigned byte, ScaleType type) {
  unsigned codes[4];
  for (unsigned warp = 0; warp < 4; warp++) codes[warp] = tensor_cells[32 * warp + row % 32][column + row / 32] >> byte * 8 & 255;
  for (unsigned warp = 1; warp < 4; warp++)
    if (codes[warp] != codes[0])
      simt::fail("tensor", "tcgen05.mma: the scale of row or column %u is %x in lane %u, and %x in lane %u: all partitions must have it",
                 row, codes[0], row % 32, codes[warp], 32 * warp + row % 32);
  return scale_of("tcgen05.mma", codes[0], type);
}
SIMT_MODEL inline void read_scales(unsigned column, unsigned lines) {
  for (unsigned row = 0; row < lines; row++)
    for (unsigned warp = 0; warp < 4; warp++) simt::access(&tensor_cells[32 * warp + row % 32][column + row / 32], 4, false);
}

// tcgen05.cp.32x128b.warpx4: 32 rows of 16 bytes, to four columns of lane 0 to 31 of each partition. It runs asynchronously;
// products that the same thread issues behind it are ordered, those before it are not ("Pipelined tcgen05 instructions").
struct TensorCopyOfRows {
  Matrix from;
  unsigned column;
};
SIMT_MODEL inline void copy_rows(void* payload) {
  const TensorCopyOfRows& it = *(TensorCopyOfRows*)payload;
  for (unsigned row = 0; row < 32; row++) {
    const unsigned char* at = it.from.chunk(row, 0);
    simt::access(at, 16, false);
    for (unsigned warp = 0; warp < 4; warp++) {
      unsigned* to = &tensor_cells[32 * warp + row][it.column];
      simt::access(to, 16, true);
      __builtin_memcpy(to, at, 16);
    }
  }
}
SIMT_MODEL inline void tcgen05_cp_warpx4(int, reg_r to, reg_l from) {
  const char* name = "tcgen05.cp";
  if (to >> 16) simt::fail("tensor", "%s: it begins in lane %u, not 0", name, to >> 16);
  require_columns(name, to, 4);
  TensorCopyOfRows it{decode_tensor_matrix(name, from, false), to};
  simt::async_run(PRODUCT_STREAM, simt::OTHER_PROXY, copy_rows, &it, sizeof it);
  begin_copy();
}

template <class A, class B, int BITS, int COUNT>
SIMT_MODEL void multiply_scaled_tensor(const ScaledTensor& it) {
  enum : int { K = 256 / BITS, EACH = K / COUNT, IN_BYTE = 8 / BITS };
  static unsigned a[TENSOR_LANES][32], b[256][32];
  static double columns[256][K];
  read_matrix<U8, 32>(it.a, 0, TENSOR_LANES, a);
  read_matrix<U8, 32>(it.b, 0, it.n, b);
  read_scales(it.a_scale, TENSOR_LANES), read_scales(it.b_scale, it.n);
  for (unsigned n = 0; n < it.n; n++)
    for (unsigned k = 0; k < K; k++) {
      unsigned code = b[n][k / IN_BYTE] >> k % IN_BYTE * BITS & ((1u << BITS) - 1);
      columns[n][k] = B::decode(code) * scale_of_row(it.b_scale, n, it.b_byte + k / EACH, it.scale);
    }
  for (unsigned lane = 0; lane < TENSOR_LANES; lane++) {
    unsigned* sums = &tensor_cells[lane][it.column];
    if (it.adds) simt::access(sums, 4 * it.n, false);
    simt::access(sums, 4 * it.n, true);
    double row[K];
    for (unsigned k = 0; k < K; k++) {
      unsigned code = a[lane][k / IN_BYTE] >> k % IN_BYTE * BITS & ((1u << BITS) - 1);
      row[k] = it.sign * A::decode(code) * scale_of_row(it.a_scale, lane, it.a_byte + k / EACH, it.scale);
    }
    for (unsigned n = 0; n < it.n; n++) {
      double sum = it.adds ? (double)bits_f(sums[n]) : 0;
      for (unsigned k = 0; k < K; k++) sum += row[k] * columns[n][k];
      float value = canonical((float)sum);
      __builtin_memcpy(&sums[n], &value, 4);
    }
  }
}

template <ScaledKind KIND, int COUNT>
SIMT_MODEL void run_scaled_tensor(void* payload) {
  const ScaledTensor& it = *(ScaledTensor*)payload;
  if (KIND != KIND_MXF8) return multiply_scaled_tensor<E2m1, E2m1, 4, COUNT>(it);
  switch (it.a_type << 3 | it.b_type) {
    case 000: return multiply_scaled_tensor<E4m3, E4m3, 8, COUNT>(it);
    case 001: return multiply_scaled_tensor<E4m3, E5m2, 8, COUNT>(it);
    case 010: return multiply_scaled_tensor<E5m2, E4m3, 8, COUNT>(it);
    case 011: return multiply_scaled_tensor<E5m2, E5m2, 8, COUNT>(it);
  }
  simt::fail("descriptor", "tcgen05.mma: types %u and %u of A and B have no model", it.a_type, it.b_type);
}

template <ScaledKind KIND, int COUNT>
SIMT_MODEL void tcgen05_mma_scaled(int, reg_r d, reg_l a, reg_l b, reg_r bits, reg_r a_scale, reg_r b_scale, bool adds) {
  const char* name = "tcgen05.mma.block_scale";
  enum : unsigned { ZERO = KIND == KIND_MXF8 ? 0x8700004bu : 0x8701904bu };  // reserved bits, and forms without a model
  if (bits & ZERO) simt::fail("descriptor", "%s: the instruction descriptor %x has bits that must be zero", name, bits);
  if (bits & 4) simt::fail("descriptor", "%s: the instruction descriptor %x is one of a sparse product", name, bits);
  bool powers = bits >> 23 & 1;
  if (!powers && KIND != KIND_NVF4) simt::fail("descriptor", "%s: scales of this kind are ue8m0: bit 23 of %x must be set", name, bits);
  unsigned m = (bits >> 27 & 3) << 7, n = (bits >> 17 & 63) << 3, a_type = bits >> 7 & 7, b_type = bits >> 10 & (KIND == KIND_MXF8 ? 7 : 3);
  if (m != 128) simt::fail("descriptor", "%s: %u rows have no model; 128 have", name, m);
  if (n < 16 || n > 256 || n % 16) simt::fail("descriptor", "%s: %u columns for 128 rows: multiples of 16 from 16 to 256 are legal", name, n);
  if (KIND != KIND_MXF8 && (a_type != 1 || b_type != 1))
    simt::fail("descriptor", "%s: types %u and %u of A and B: elements of 4 bits are of type 1", name, a_type, b_type);
  if (bits >> 15 & 3) simt::fail("descriptor", "%s: elements that are adjacent along M or N have no model", name);
  unsigned a_byte = bits >> 29 & 3, b_byte = bits >> 4 & 3;
  require_byte(name, a_byte, COUNT), require_byte(name, b_byte, COUNT);
  if (d >> 16 || a_scale >> 16 || b_scale >> 16) simt::fail("tensor", "%s: the accumulator or the scales do not begin in lane 0", name);
  require_columns(name, d & 0xffff, n), require_columns(name, a_scale, 4), require_columns(name, b_scale, (n + 31) / 32);
  ScaledTensor it{decode_tensor_matrix(name, a, false), decode_tensor_matrix(name, b, false), d & 0xffff, n, a_type, b_type, a_scale,
                  b_scale, a_byte, b_byte, powers ? UE8M0 : UE4M3, adds, (bits >> 13 & 1) == (bits >> 14 & 1) ? 1.0 : -1.0};
  it.a.require_fit(name, 32, 128 * 2), it.b.require_fit(name, 32, n * 2);
  begin_product(1u << 25 | KIND << 16 | n, run_scaled_tensor<KIND, COUNT>, &it, sizeof it);
}

}  // namespace ptx
