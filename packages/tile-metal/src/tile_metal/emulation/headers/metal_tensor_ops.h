// Products of matrices by the tensor operations of Metal 4, of the one shape that is used: 16 x 32 x 16 by one
// simdgroup, operands in cooperative tensors that the lanes fill themselves. Apple leaves the map of elements open; it
// is the one of MLX: a tensor is made of fragments of 16 x 16, one or two, of which lane T holds 8 elements each, e = 0
// to 7: row (q & 4 | T / 2 & 3) + 8 (e / 4), column 4 (q & 2 | T & 1) + e % 4, q = T / 4. Operands lie as they are
// stored: one that is transposed has the rows of its transpose. Sums are float (int for char), in the order of k.
// With METAL_OTHER_LANES the lanes hold other elements, as they do on GPUs before generation 17: all lanes (1), two of
// them (2), or all in another order (3).
#pragma once
#include "metal_matrix.h"
#include "metal_types.h"
#include "simt.h"

namespace metal {

struct execution_simdgroup {};
template <class T>
using remove_addrspace_t = T;

}  // namespace metal

namespace mpp {
namespace tensor_ops {

struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool transpose_left, transpose_right, relaxed_precision;
  mode matmul_mode;

  constexpr matmul2d_descriptor(int m, int n, int k, bool transpose_left = false, bool transpose_right = false,
                                bool relaxed_precision = false, mode matmul_mode = mode::multiply)
      : m(m), n(n), k(k), transpose_left(transpose_left), transpose_right(transpose_right),
        relaxed_precision(relaxed_precision), matmul_mode(matmul_mode) {}
};

}  // namespace tensor_ops
}  // namespace mpp

namespace metal_model {

enum Operand { LEFT, RIGHT, DESTINATION };

// Where an element is: the column first, as extents of tensors are.
struct TensorIndex {
  int places[2];
  int operator[](unsigned i) const { return places[i]; }
};

// ROWS x COLUMNS as they are stored, fragment by fragment.
template <class T, int ROWS, int COLUMNS, Operand WHICH>
struct CooperativeTensor {
  enum : unsigned short { CAPACITY = ROWS * COLUMNS / LANES };
  T elements[CAPACITY];

  T& operator[](unsigned i) {
    if (i >= CAPACITY)
      simt::fail("tensor", "element %u of a cooperative tensor of %u in each lane", i, (unsigned)CAPACITY);
    return elements[i];
  }
  const T& operator[](unsigned i) const { return const_cast<CooperativeTensor&>(*this)[i]; }
  unsigned short get_capacity() const { return CAPACITY; }
  bool is_valid_element(unsigned short i) const { return i < CAPACITY; }
  TensorIndex get_multidimensional_index(unsigned short i) const {
    return {{(int)column(simt::self->lane, i), (int)row(simt::self->lane, i)}};
  }

  SIMT_MODEL static unsigned row(unsigned lane, unsigned i) {
    lane = holder(lane), i = place(i);
    unsigned q = lane >> 2, fragment = i / 8, e = i % 8;
    return ((q & 4) | (lane >> 1 & 3)) + 8 * (e >> 2) + (COLUMNS == 16 ? 16 * fragment : 0);
  }
  // The lane that holds these elements on GPUs of generation 17.
  SIMT_MODEL static unsigned holder(unsigned lane) {
#if METAL_OTHER_LANES == 1
    return (lane * 5 + 3) % LANES;
#elif METAL_OTHER_LANES == 2
    return lane < 2 ? 1 - lane : lane;
#else
    return lane;
#endif
  }
  SIMT_MODEL static unsigned place(unsigned i) {
#if METAL_OTHER_LANES == 3
    return CAPACITY - 1 - i;
#else
    return i;
#endif
  }
  SIMT_MODEL static unsigned column(unsigned lane, unsigned i) {
    lane = holder(lane), i = place(i);
    unsigned q = lane >> 2, fragment = i / 8, e = i % 8;
    return 4 * ((q & 2) | (lane & 1)) + (e & 3) + (COLUMNS == 16 ? 0 : 16 * fragment);
  }
};

template <class L, class R, class D>
inline constexpr bool is_tensor_product =
    same<L, R> && ((same<L, float> && same<D, float>) || (same<L, half> && (same<D, float> || same<D, half>)) ||
                   (same<L, bfloat> && (same<D, float> || same<D, bfloat>)) || (same<L, char> && same<D, int>));

template <class A, class B, class D>
struct TensorProduct {
  const A* a;
  const B* b;
  D* d;
};

template <class T>
struct Sums {
  typedef float type;
  SIMT_MODEL static float add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};
template <>
struct Sums<int> {
  typedef int type;
  SIMT_MODEL static int add(int a, int b, int c) { return a * b + c; }
};

template <class A, class B, class D, class T, bool TL, bool TR, bool ADDS>
SIMT_MODEL void multiply_tensors(void** packs, simt::Thread**, unsigned lanes) {
  typedef typename Sums<T>::type S;
  need_all_lanes("matmul2d", packs, lanes);
  S a[16][16], b[16][32], sum[16][32];
  for (unsigned lane = 0; lane < LANES; lane++) {
    const TensorProduct<A, B, D>& mine = *(TensorProduct<A, B, D>*)packs[lane];
    for (unsigned i = 0; i < A::CAPACITY; i++) {
      unsigned row = A::row(lane, i), column = A::column(lane, i);
      (TL ? a[column][row] : a[row][column]) = (S)mine.a->elements[i];
    }
    for (unsigned i = 0; i < B::CAPACITY; i++) {
      unsigned row = B::row(lane, i), column = B::column(lane, i);
      (TR ? b[column][row] : b[row][column]) = (S)mine.b->elements[i];
    }
    for (unsigned i = 0; i < D::CAPACITY; i++)
      sum[D::row(lane, i)][D::column(lane, i)] = ADDS ? (S)mine.d->elements[i] : (S)0;
  }
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++)
      for (int column = 0; column < 32; column++)
        sum[row][column] = Sums<T>::add(a[row][k], b[k][column], sum[row][column]);
  for (unsigned lane = 0; lane < LANES; lane++) {
    const TensorProduct<A, B, D>& mine = *(TensorProduct<A, B, D>*)packs[lane];
    for (unsigned i = 0; i < D::CAPACITY; i++) mine.d->elements[i] = (T)sum[D::row(lane, i)][D::column(lane, i)];
  }
}

}  // namespace metal_model

namespace mpp {
namespace tensor_ops {

template <matmul2d_descriptor Descriptor, class Scope>
class matmul2d {
  static_assert(metal_model::same<Scope, metal::execution_simdgroup>,
                "a product by other than one simdgroup has no model");
  static_assert(Descriptor.m == 16 && Descriptor.n == 32 && Descriptor.k == 16,
                "a product of another shape has no model");
  static constexpr bool TL = Descriptor.transpose_left, TR = Descriptor.transpose_right;
  static constexpr bool ADDS = Descriptor.matmul_mode == matmul2d_descriptor::mode::multiply_accumulate;

  template <class L>
  using Left = metal_model::CooperativeTensor<L, 16, 16, metal_model::LEFT>;
  template <class R>
  using Right = metal_model::CooperativeTensor<R, TR ? 32 : 16, TR ? 16 : 32, metal_model::RIGHT>;
  template <class D>
  using Destination = metal_model::CooperativeTensor<D, 16, 32, metal_model::DESTINATION>;

 public:
  template <class L, class R, class D>
  Left<L> get_left_input_cooperative_tensor() const {
    static_assert(metal_model::is_tensor_product<L, R, D>, "a product of tensors of these types has no model");
    Left<L> unfilled;
    return unfilled;
  }
  template <class L, class R, class D>
  Right<R> get_right_input_cooperative_tensor() const {
    static_assert(metal_model::is_tensor_product<L, R, D>, "a product of tensors of these types has no model");
    Right<R> unfilled;
    return unfilled;
  }
  // Of the types of both operands' cooperative tensors and the type of an element.
  template <class L, class R, class D>
  Destination<D> get_destination_cooperative_tensor() const {
    Destination<D> unfilled;
    return unfilled;
  }

  template <class L, class R, class D>
  void run(const Left<L>& left, const Right<R>& right, Destination<D>& destination, int line = __builtin_LINE()) const {
    static_assert(metal_model::is_tensor_product<L, R, D>, "a product of tensors of these types has no model");
    metal_model::TensorProduct<Left<L>, Right<R>, Destination<D>> pack{&left, &right, &destination};
    simt::meet("matmul2d", 1, ~0ull, &pack,
               metal_model::multiply_tensors<Left<L>, Right<R>, Destination<D>, D, TL, TR, ADDS>, line);
  }
};

}  // namespace tensor_ops
}  // namespace mpp
