// Matrices of 8 x 8 elements that a simdgroup holds, two in each lane: lane T has row (q & 4) + T / 2 % 4 and columns
// 2 (q & 2) + 2 (T % 2) and the next, q = T / 4, for every type and operand. Apple leaves this open; MLX and others
// rely on it. Sums of a product are float, in the order of k, each step rounded once, and rounded to the type of the
// result: a device may add in another order.
#pragma once
#include "metal_simdgroup.h"
#include "metal_vectors.h"
#include "simt.h"

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix;

}  // namespace metal

namespace metal_model {

SIMT_MODEL inline unsigned matrix_row(unsigned lane) { return (lane >> 2 & 4) + (lane >> 1 & 3); }
SIMT_MODEL inline unsigned matrix_column(unsigned lane) { return (lane >> 2 & 2) * 2 + (lane & 1) * 2; }

SIMT_MODEL inline void need_all_lanes(const char* name, void** packs, unsigned lanes) {
  unsigned found = 0;
  for (unsigned i = 0; i < lanes; i++) found += packs[i] != nullptr;
  if (found != LANES) simt::fail("collective", "%s: run by %u of 32 lanes", name, found);
}

// Column and row of the first element; code also says 0.
struct Origin {
  ulong column, row;
  Origin(int zero = 0) : column((ulong)zero), row((ulong)zero) {}
  Origin(const ulong2& at) : column(at.x), row(at.y) {}
};

template <class T>
struct MatrixMove {
  metal::simdgroup_matrix<T, 8, 8>* matrix;
  const T* memory;
  ulong pitch;
  Origin origin;
  bool transpose;

  SIMT_MODEL const T* at(unsigned row, unsigned column) const {
    if (transpose) return memory + column * pitch + row;
    return memory + (origin.row + row) * pitch + origin.column + column;
  }
};

template <class T, bool STORE>
SIMT_MODEL void move(void** packs, simt::Thread** threads, unsigned lanes) {
  const char* name = STORE ? "simdgroup_store" : "simdgroup_load";
  need_all_lanes(name, packs, lanes);
  const MatrixMove<T>& first = *(MatrixMove<T>*)packs[0];
  for (unsigned lane = 0; lane < LANES; lane++) {
    MatrixMove<T>& mine = *(MatrixMove<T>*)packs[lane];
    if (mine.memory != first.memory || mine.pitch != first.pitch || mine.transpose != first.transpose ||
        mine.origin.row != first.origin.row || mine.origin.column != first.origin.column)
      simt::fail("collective", "%s: the arguments of lanes 0 and %u are different", name, lane);
    for (unsigned i = 0; i < 2; i++) {
      const T* place = mine.at(matrix_row(lane), matrix_column(lane) + i);
      if constexpr (STORE)
        simt::store<T>((void*)place, mine.matrix->elements[i], threads[lane]);
      else
        mine.matrix->elements[i] = simt::load<T>(place, threads[lane]);
    }
  }
}

template <class T, bool STORE>
SIMT_MODEL void start_move(metal::simdgroup_matrix<T, 8, 8>* matrix, const T* memory, ulong pitch, const Origin& origin,
                           bool transpose, int line) {
  const char* name = STORE ? "simdgroup_store" : "simdgroup_load";
  simt::require_aligned(memory, sizeof(T));
  if (transpose && (origin.row || origin.column))
    simt::fail("matrix", "%s: an origin of a transposed matrix has no model", name);
  MatrixMove<T> pack{matrix, memory, pitch, origin, transpose};
  simt::meet(name, 1, ~0ull, &pack, move<T, STORE>, line);
}

// Which types a product is of: those that are known to compile.
template <class D, class A, class B, class C>
inline constexpr bool is_product =
    same<A, B> && same<C, D> && (same<D, float> || same<D, A>) && (same<A, float> || same<A, half> || same<A, bfloat>);

template <class D, class A>
struct MatrixProduct {
  metal::simdgroup_matrix<D, 8, 8>* d;
  const metal::simdgroup_matrix<A, 8, 8>*a, *b;
  const metal::simdgroup_matrix<D, 8, 8>* c;
};

template <class D, class A>
SIMT_MODEL void multiply(void** packs, simt::Thread**, unsigned lanes) {
  need_all_lanes("simdgroup_multiply_accumulate", packs, lanes);
  float a[8][8], b[8][8], sum[8][8];
  for (unsigned lane = 0; lane < LANES; lane++) {
    const MatrixProduct<D, A>& mine = *(MatrixProduct<D, A>*)packs[lane];
    unsigned row = matrix_row(lane), column = matrix_column(lane);
    for (unsigned i = 0; i < 2; i++) {
      a[row][column + i] = (float)mine.a->elements[i];
      b[row][column + i] = (float)mine.b->elements[i];
      sum[row][column + i] = mine.c ? (float)mine.c->elements[i] : 0.0f;
    }
  }
  for (int row = 0; row < 8; row++)
    for (int k = 0; k < 8; k++)
      for (int column = 0; column < 8; column++)
        sum[row][column] = __builtin_fmaf(a[row][k], b[k][column], sum[row][column]);
  for (unsigned lane = 0; lane < LANES; lane++) {
    const MatrixProduct<D, A>& mine = *(MatrixProduct<D, A>*)packs[lane];
    for (unsigned i = 0; i < 2; i++) mine.d->elements[i] = (D)sum[matrix_row(lane)][matrix_column(lane) + i];
  }
}

}  // namespace metal_model

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "matrices of a simdgroup have 8 x 8 elements");
  static_assert(metal_model::same<T, half> || metal_model::same<T, bfloat> || metal_model::same<T, float>,
                "matrices of a simdgroup are of half, bfloat or float");
  vec<T, 2> elements;

  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T diagonal) {
    unsigned lane = simt::self->lane;
    for (unsigned i = 0; i < 2; i++)
      elements[i] = metal_model::matrix_row(lane) == metal_model::matrix_column(lane) + i ? diagonal : T(0);
  }
  vec<T, 2>& thread_elements() { return elements; }
  const vec<T, 2>& thread_elements() const { return elements; }
};
}  // namespace metal

typedef metal::simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef metal::simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef metal::simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

namespace metal {

template <class T, int Columns, int Rows>
inline simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> filled;
  filled.elements = vec<T, 2>(value);
  return filled;
}

template <class T>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, const T* from, ulong elements_per_row = 8,
                           metal_model::Origin origin = 0, bool transpose = false, int line = __builtin_LINE()) {
  metal_model::start_move<T, false>(&matrix, from, elements_per_row, origin, transpose, line);
}
template <class T>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& matrix, T* to, ulong elements_per_row = 8,
                            metal_model::Origin origin = 0, bool transpose = false, int line = __builtin_LINE()) {
  metal_model::start_move<T, true>((simdgroup_matrix<T, 8, 8>*)&matrix, to, elements_per_row, origin, transpose, line);
}

template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                          const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c,
                                          int line = __builtin_LINE()) {
  static_assert(metal_model::is_product<D, A, B, C>, "a product of matrices of these types has no model");
  metal_model::MatrixProduct<D, A> pack{&d, &a, &b, &c};
  simt::meet("simdgroup_multiply_accumulate", 1, ~0ull, &pack, metal_model::multiply<D, A>, line);
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                               const simdgroup_matrix<B, 8, 8>& b, int line = __builtin_LINE()) {
  static_assert(metal_model::is_product<D, A, B, D>, "a product of matrices of these types has no model");
  metal_model::MatrixProduct<D, A> pack{&d, &a, &b, nullptr};
  simt::meet("simdgroup_multiply", 1, ~0ull, &pack, metal_model::multiply<D, A>, line);
}

}  // namespace metal
