// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements.
//
// Lane T of a fragment holds row T/4, columns 2*(T%4) and the next one; with .trans of the transposed matrix. The row i
// of matrix m in shared memory is at the address of lane 8*m + i, which is the lane that accesses it.
#pragma once
#include "ptx_registers.h"

namespace ptx {

struct Rows {
  b16 memory[8];   // the row at this lane's address
  reg_r value[4];  // the lane's part of each matrix
};

SIMT_MODEL inline void element_of(unsigned lane, unsigned half, bool trans, unsigned& row, unsigned& column) {
  row = lane / 4, column = lane % 4 * 2 + half;
  if (trans) {
    unsigned other = row;
    row = column, column = other;
  }
}

template <int N, bool TRANS>
SIMT_MODEL void gather_rows(void** packs, simt::Thread**, unsigned) {
  for (unsigned m = 0; m < N; m++)
    for (unsigned lane = 0; lane < 32; lane++) {
      unsigned row, column, value = 0;
      for (unsigned half = 0; half < 2; half++) {
        element_of(lane, half, TRANS, row, column);
        value |= (unsigned)((Rows*)packs[8 * m + row])->memory[column] << 16 * half;
      }
      ((Rows*)packs[lane])->value[m] = value;
    }
}

template <int N, bool TRANS>
SIMT_MODEL void scatter_rows(void** packs, simt::Thread**, unsigned) {
  for (unsigned m = 0; m < N; m++)
    for (unsigned lane = 0; lane < 32; lane++)
      for (unsigned half = 0; half < 2; half++) {
        unsigned row, column;
        element_of(lane, half, TRANS, row, column);
        ((Rows*)packs[8 * m + row])->memory[column] = (b16)(((Rows*)packs[lane])->value[m] >> 16 * half);
      }
}

template <int N, bool TRANS>
SIMT_MODEL void load_matrix(int line, V<reg_r, N> d, unsigned address) {
  Rows rows{};
  if (simt::self->lane < 8 * N) {
    simt::require_aligned(shared(address), 16);
    simt::access(shared(address), 16, false);
    __builtin_memcpy(rows.memory, shared(address), 16);
  }
  meet_warp("ldmatrix", &rows, gather_rows<N, TRANS>, line);
  for (unsigned i = 0; i < N; i++) d[i] = rows.value[i];
}

template <int N, bool TRANS, class T>
SIMT_MODEL void store_matrix(int line, unsigned address, V<T, N> values) {
  Rows rows{};
  for (unsigned i = 0; i < N; i++) rows.value[i] = values[i];
  meet_warp("stmatrix", &rows, scatter_rows<N, TRANS>, line);
  if (simt::self->lane < 8 * N) {
    simt::require_aligned(shared(address), 16);
    simt::access(shared(address), 16, true);
    __builtin_memcpy(shared(address), rows.memory, 16);
  }
}

#define PTX_MATRIX(N)                                                                                            \
  inline void ldmatrix_sync_aligned_m8n8_x##N##_shared_b16(int line, V<reg_r, N> d, unsigned a) {                \
    load_matrix<N, false>(line, d, a);                                                                           \
  }                                                                                                              \
  inline void ldmatrix_sync_aligned_m8n8_x##N##_trans_shared_b16(int line, V<reg_r, N> d, unsigned a) {          \
    load_matrix<N, true>(line, d, a);                                                                            \
  }                                                                                                              \
  template <class T>                                                                                             \
  inline void stmatrix_sync_aligned_m8n8_x##N##_shared_b16(int line, unsigned a, V<T, N> s) {                    \
    store_matrix<N, false>(line, a, s);                                                                          \
  }                                                                                                              \
  template <class T>                                                                                             \
  inline void stmatrix_sync_aligned_m8n8_x##N##_trans_shared_b16(int line, unsigned a, V<T, N> s) {              \
    store_matrix<N, true>(line, a, s);                                                                           \
  }
PTX_MATRIX(1)
PTX_MATRIX(2)
PTX_MATRIX(4)
#undef PTX_MATRIX

SIMT_MODEL inline void transpose_fragment(void** packs, simt::Thread**, unsigned) {
  reg_r values[32];
  for (unsigned lane = 0; lane < 32; lane++) values[lane] = *(reg_r*)packs[lane];
  for (unsigned lane = 0; lane < 32; lane++) {
    unsigned result = 0;
    for (unsigned half = 0; half < 2; half++) {
      unsigned row, column;
      element_of(lane, half, true, row, column);
      result |= (values[row * 4 + column / 2] >> column % 2 * 16 & 0xffff) << 16 * half;
    }
    *(reg_r*)packs[lane] = result;
  }
}

SIMT_MODEL inline void movmatrix_sync_aligned_m8n8_trans_b16(int line, reg_r& d, reg_r a) {
  meet_warp("movmatrix", &a, transpose_fragment, line);
  d = a;
}

}  // namespace ptx
