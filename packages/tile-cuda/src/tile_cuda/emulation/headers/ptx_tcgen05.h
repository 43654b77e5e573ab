// tcgen05: tensor memory, and matrix products whose sums are there. They run asynchronously.
//
// PTX ISA, "TensorCore 5th Generation". Tensor memory has 128 lanes of 512 columns of 32 bits; an address is
// lane << 16 | column. Columns are allocated by warps, a power of two from 32 on, and freed before the block ends. Warp w
// accesses lanes 32 (w % 4) to 32 (w % 4) + 31. Products of a block of its own (cta_group::1) with 128 rows have row i in lane i.
// One thread issues products; `commit` lets them arrive at an mbarrier when all that it has issued are done.
//
// Instruction descriptor, Table 42: 1:0 sparsity selector, 2 sparse, 3 saturate, 5:4 type of D, 9:7 of A, 12:10 of B, 13 and 14
// negate A and B, 15 and 16 transpose A and B, 22:17 N / 8, 28:24 M / 16, others 0. Matrix descriptor, Table 40: 13:0
// address, 29:16 leading dimension, 45:32 stride dimension, divided by 16; 48:46 are 001; 51:49 base offset; 52 mode of
// the leading dimension; 63:61 swizzle: 0 none, 2 128 bytes, 4 64 bytes, 6 32 bytes.
//
// Uncalibrated: no device has recorded these models. Sums are exact before one rounding, where a device drops bits. Without a model:
// other shapes than M = 128, cta_group::2, sparse and block-scaled products, A in tensor memory, sums of 16 bits.
#pragma once
#include "ptx_wgmma.h"
#include "ptx_barrier.h"

namespace ptx {

enum : unsigned { TENSOR_LANES = 128, TENSOR_COLUMNS = 512, TENSOR_GRAIN = 32, PRODUCT_STREAM = 3, LOAD_STREAM = 4, STORE_STREAM = 5 };

SIMT_SHARED unsigned tensor_cells[TENSOR_LANES][TENSOR_COLUMNS];

// Which columns are allocated: refilled with poison before each block, so that the mark is missing then.
struct TensorColumns {
  unsigned long long mark;
  unsigned size[TENSOR_COLUMNS / TENSOR_GRAIN];  // columns of the allocation that begins there
  bool held[TENSOR_COLUMNS / TENSOR_GRAIN], relinquished;
  unsigned latest;
};
SIMT_SHARED TensorColumns tensor_columns;
enum : unsigned long long { TENSOR_MARK = 0x7e5047a10ca7edull };

SIMT_MODEL inline const char* tensor_end() {
  for (bool held : tensor_columns.held)
    if (held) return "the block ends with columns of tensor memory that it has not freed";
  return nullptr;
}
SIMT_MODEL inline TensorColumns& columns_of_block() {
  if (simt::block->ranks > 1) simt::fail("tensor", "tensor memory of a cluster has no model");
  if (tensor_columns.mark != TENSOR_MARK) {
    __builtin_memset((void*)&tensor_columns, 0, sizeof tensor_columns);
    tensor_columns.mark = TENSOR_MARK, tensor_columns.latest = TENSOR_COLUMNS;
    simt::at_end(tensor_end);
  }
  return tensor_columns;
}
SIMT_MODEL inline void require_columns(const char* name, unsigned first, unsigned count) {
  TensorColumns& it = columns_of_block();
  for (unsigned c = first; c < first + count; c++)
    if (c >= TENSOR_COLUMNS || !it.held[c / TENSOR_GRAIN])
      simt::fail("tensor", "%s: column %u of tensor memory is not allocated", name, c);
}

// ---------------------------------------------------------------------------------------------------------- allocation

struct Allocation {
  reg_r at;
  long long count;
};
SIMT_MODEL inline void require_count(const char* name, long long count) {
  if (count < TENSOR_GRAIN || count > TENSOR_COLUMNS || (count & (count - 1)))
    simt::fail("tensor", "%s of %lld columns: powers of two from 32 to 512 are legal", name, count);
}
SIMT_MODEL inline void allocate_columns(void** packs, simt::Thread**, unsigned lanes) {
  const Allocation& it = *(Allocation*)packs[0];
  for (unsigned i = 1; i < lanes; i++)
    if (((Allocation*)packs[i])->at != it.at || ((Allocation*)packs[i])->count != it.count)
      simt::fail("collective", "tcgen05.alloc: lanes 0 and %u have different operands", i);
  require_count("tcgen05.alloc", it.count);
  TensorColumns& all = columns_of_block();
  unsigned wanted = (unsigned)it.count / TENSOR_GRAIN;
  if (all.relinquished) simt::fail("tensor", "tcgen05.alloc after the permit to allocate was given up");
  if (it.count > all.latest) simt::fail("tensor", "tcgen05.alloc of %lld columns after one of %u: allocations must not grow", it.count, all.latest);
  all.latest = (unsigned)it.count;
  for (unsigned first = 0; first + wanted <= TENSOR_COLUMNS / TENSOR_GRAIN; first += wanted) {
    bool free = true;
    for (unsigned g = first; g < first + wanted; g++) free = free && !all.held[g];
    if (!free) continue;
    for (unsigned g = first; g < first + wanted; g++) all.held[g] = true;
    all.size[first] = (unsigned)it.count;
    simt::store<unsigned>(shared(it.at), first * TENSOR_GRAIN);
    return;
  }
  simt::fail("tensor", "tcgen05.alloc: no %lld columns are free; a device would wait forever", it.count);
}
SIMT_MODEL inline void tcgen05_alloc(int line, reg_r at, reg_r count) {
  Allocation it{at, (long long)count};
  meet_warp("tcgen05.alloc", &it, allocate_columns, line);
}
SIMT_MODEL inline void free_columns(void** packs, simt::Thread**, unsigned lanes) {
  const Allocation& it = *(Allocation*)packs[0];
  for (unsigned i = 1; i < lanes; i++)
    if (((Allocation*)packs[i])->at != it.at) simt::fail("collective", "tcgen05.dealloc: lanes 0 and %u have different operands", i);
  require_count("tcgen05.dealloc", it.count);
  TensorColumns& all = columns_of_block();
  unsigned first = it.at / TENSOR_GRAIN;
  if (it.at % TENSOR_GRAIN || it.at >= TENSOR_COLUMNS || !all.held[first] || all.size[first] != it.count)
    simt::fail("tensor", "tcgen05.dealloc of %lld columns from %x on: that is no allocation", it.count, it.at);
  for (unsigned g = first; g < first + it.count / TENSOR_GRAIN; g++) {
    // What is still in flight races with this.
    for (unsigned lane = 0; lane < TENSOR_LANES; lane++) simt::access(&tensor_cells[lane][g * TENSOR_GRAIN], 4 * TENSOR_GRAIN, true);
    all.held[g] = false;
  }
  all.size[first] = 0;
}
SIMT_MODEL inline void tcgen05_dealloc(int line, reg_r at, reg_r count) {
  Allocation it{at, (long long)count};
  meet_warp("tcgen05.dealloc", &it, free_columns, line);
}
SIMT_MODEL inline void relinquish(void**, simt::Thread**, unsigned) { columns_of_block().relinquished = true; }
SIMT_MODEL inline void tcgen05_relinquish(int line) { meet_warp("tcgen05.relinquish_alloc_permit", nullptr, relinquish, line); }

// ------------------------------------------------------------------------------------------------- registers and columns

struct TensorRow {
  unsigned lane, column, count;
  void* registers[128];
  unsigned values[128];
};
SIMT_MODEL inline void read_row(void* payload) {
  const TensorRow& it = *(TensorRow*)payload;
  const unsigned* from = &tensor_cells[it.lane][it.column];
  simt::access(from, 4 * it.count, false);
  for (unsigned i = 0; i < it.count; i++) __builtin_memcpy(it.registers[i], from + i, 4);
}
SIMT_MODEL inline void write_row(void* payload) {
  const TensorRow& it = *(TensorRow*)payload;
  unsigned* to = &tensor_cells[it.lane][it.column];
  simt::access(to, 4 * it.count, true);
  __builtin_memcpy(to, it.values, 4 * it.count);
}
SIMT_MODEL inline void same_address(void** packs, simt::Thread**, unsigned lanes) {
  for (unsigned i = 1; i < lanes; i++)
    if (*(reg_r*)packs[i] != *(reg_r*)packs[0])
      simt::fail("collective", "tcgen05.ld or st: lanes 0 and %u have different addresses", i);
}
SIMT_MODEL inline TensorRow row_of_lane(const char* name, reg_r address, unsigned count, int line) {
  meet_warp(name, &address, same_address, line);
  TensorRow it;
  unsigned first = address >> 16;
  if (first != simt::self->warp % 4 * 32)
    simt::fail("tensor", "%s: warp %u accesses lanes from %u on; its own begin at %u", name, simt::self->warp, first, simt::self->warp % 4 * 32);
  it.lane = first + simt::self->lane, it.column = address & 0xffff, it.count = count;
  require_columns(name, it.column, count);
  return it;
}
template <class T, unsigned N>
SIMT_MODEL void tcgen05_ld(int line, V<T, N> to, reg_r address) {
  static_assert(sizeof(T) == 4, "tcgen05.ld fills registers of 32 bits");
  TensorRow it = row_of_lane("tcgen05.ld", address, N, line);
  for (unsigned i = 0; i < N; i++) it.registers[i] = (void*)to.p[i];
  simt::async_run(LOAD_STREAM, simt::OTHER_PROXY, read_row, &it, sizeof it);
}
template <class T, unsigned N>
SIMT_MODEL void tcgen05_st(int line, reg_r address, V<T, N> from) {
  static_assert(sizeof(T) == 4, "tcgen05.st takes registers of 32 bits");
  TensorRow it = row_of_lane("tcgen05.st", address, N, line);
  for (unsigned i = 0; i < N; i++) __builtin_memcpy(&it.values[i], from.p[i], 4);
  simt::async_run(STORE_STREAM, simt::OTHER_PROXY, write_row, &it, sizeof it);
}
SIMT_MODEL inline void tcgen05_wait_ld(int line) {
  meet_warp("tcgen05.wait::ld", nullptr, nullptr, line);
  simt::async_commit(LOAD_STREAM);
  simt::async_wait(LOAD_STREAM, 0);
}
SIMT_MODEL inline void tcgen05_wait_st(int line) {
  meet_warp("tcgen05.wait::st", nullptr, nullptr, line);
  simt::async_commit(STORE_STREAM);
  simt::async_wait(STORE_STREAM, 0);
}
// Order tcgen05 operations against synchronisation of threads, which alone orders them in this model.
SIMT_MODEL inline void tcgen05_fence_before(int) {}
SIMT_MODEL inline void tcgen05_fence_after(int) {}

// ------------------------------------------------------------------------------------------------------------ products

enum TensorKind : unsigned { KIND_F16, KIND_TF32, KIND_F8, KIND_I8 };

struct TensorProduct {
  Matrix a, b;
  unsigned column, n, a_type, b_type;
  bool adds, saturates;
  double sign;
};

SIMT_MODEL inline Matrix decode_tensor_matrix(const char* name, reg_l bits, bool across) {
  static const unsigned swizzles[] = {0, ~0u, 128, ~0u, 64, ~0u, 32, ~0u};
  if (bits & 0x1fe00000c000c000ull) simt::fail("descriptor", "%s: the matrix descriptor %llx has bits that must be zero", name, bits);
  if ((bits >> 46 & 7) != 1) simt::fail("descriptor", "%s: bits 48:46 of the matrix descriptor %llx are not 001", name, bits);
  if (bits >> 49 & 15)
    simt::fail("descriptor", "%s: the matrix descriptor %llx has a base offset, or an absolute leading dimension, which have no model", name, bits);
  unsigned swizzle = swizzles[bits >> 61];
  if (swizzle == ~0u) simt::fail("descriptor", "%s: the matrix descriptor %llx has a swizzle without a model", name, bits);
  return {(unsigned)(bits & 0x3fff) << 4, (unsigned)(bits >> 16 & 0x3fff) << 4, (unsigned)(bits >> 32 & 0x3fff) << 4, swizzle, across};
}

template <class A, class B, bool INTEGERS>
SIMT_MODEL void multiply_tensor(const TensorProduct& it) {
  enum : int { K = 256 / A::BITS };
  static unsigned a[TENSOR_LANES][K], codes[256][K];
  static double b[256][K];
  read_matrix<A, K>(it.a, 0, TENSOR_LANES, a);
  read_matrix<B, K>(it.b, 0, it.n, codes);
  for (unsigned n = 0; n < it.n; n++)
    for (unsigned k = 0; k < K; k++) b[n][k] = B::decode(codes[n][k]);
  for (unsigned lane = 0; lane < TENSOR_LANES; lane++) {
    unsigned* sums = &tensor_cells[lane][it.column];
    if (it.adds) simt::access(sums, 4 * it.n, false);
    simt::access(sums, 4 * it.n, true);
    double row[K];
    for (unsigned k = 0; k < K; k++) row[k] = it.sign * A::decode(a[lane][k]);
    for (unsigned n = 0; n < it.n; n++) {
      double sum = 0;
      if (it.adds) sum = INTEGERS ? (double)(int)sums[n] : (double)bits_f(sums[n]);
      for (unsigned k = 0; k < K; k++) sum += row[k] * b[n][k];
      if (INTEGERS) {
        int64_t whole = (int64_t)sum;
        if (it.saturates) whole = whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : whole;
        sums[n] = (unsigned)whole;
      } else {
        float value = canonical((float)sum);
        __builtin_memcpy(&sums[n], &value, 4);
      }
    }
  }
}

template <TensorKind KIND>
SIMT_MODEL void run_tensor(void* payload) {
  const TensorProduct& it = *(TensorProduct*)payload;
  unsigned types = it.a_type << 3 | it.b_type;
  if (KIND == KIND_F16) {
    if (types == 0) return multiply_tensor<F16, F16, false>(it);
    if (types == 011) return multiply_tensor<Bf16, Bf16, false>(it);
  } else if (KIND == KIND_TF32) {
    if (types == 022) return multiply_tensor<Tf32, Tf32, false>(it);
  } else if (KIND == KIND_F8) {
    if (types == 000) return multiply_tensor<E4m3, E4m3, false>(it);
    if (types == 001) return multiply_tensor<E4m3, E5m2, false>(it);
    if (types == 010) return multiply_tensor<E5m2, E4m3, false>(it);
    if (types == 011) return multiply_tensor<E5m2, E5m2, false>(it);
  } else {
    if (types == 000) return multiply_tensor<U8, U8, true>(it);
    if (types == 001) return multiply_tensor<U8, S8, true>(it);
    if (types == 010) return multiply_tensor<S8, U8, true>(it);
    if (types == 011) return multiply_tensor<S8, S8, true>(it);
  }
  simt::fail("descriptor", "tcgen05.mma: types %u and %u of A and B have no model", it.a_type, it.b_type);
}

template <TensorKind KIND>
SIMT_MODEL void tcgen05_mma(int, reg_r d, reg_l a, reg_l b, reg_r bits, bool adds) {
  const char* name = "tcgen05.mma";
  const unsigned wanted = KIND == KIND_I8 ? 2 : 1;
  unsigned n = (bits >> 17 & 63) << 3, m = (bits >> 24 & 31) << 4;
  if (bits & 1u << 6 || bits & 1u << 23 || bits >> 29) simt::fail("descriptor", "%s: the instruction descriptor %x has bits that must be zero", name, bits);
  if (bits & 7) simt::fail("descriptor", "%s: the instruction descriptor %x is one of a sparse product", name, bits);
  if (KIND != KIND_I8 && bits >> 3 & 1) simt::fail("descriptor", "%s: the instruction descriptor %x saturates floats", name, bits);
  if (KIND == KIND_I8 && bits >> 13 & 3) simt::fail("descriptor", "%s: the instruction descriptor %x negates integers", name, bits);
  if ((bits >> 4 & 3) != wanted) simt::fail("descriptor", "%s: sums of type %u have no model", name, bits >> 4 & 3);
  if (m != 128) simt::fail("descriptor", "%s: %u rows have no model; 128 have", name, m);
  if (n < 16 || n > 256 || n % 16)
    simt::fail("descriptor", "%s: %u columns for 128 rows: multiples of 16 from 16 to 256 are legal", name, n);
  bool across_a = bits >> 15 & 1, across_b = bits >> 16 & 1;
  if ((across_a || across_b) && KIND != KIND_F16) simt::fail("descriptor", "%s: only elements of 16 bits may be adjacent along M or N in this model", name);
  if (d >> 16) simt::fail("tensor", "%s: the sums begin in lane %u, not 0", name, d >> 16);
  require_columns(name, d & 0xffff, n);
  TensorProduct it{decode_tensor_matrix(name, a, across_a), decode_tensor_matrix(name, b, across_b), d & 0xffff, n, bits >> 7 & 7,
                   bits >> 10 & 7, adds, (bits >> 3 & 1) != 0, (bits >> 13 & 1) == (bits >> 14 & 1) ? 1.0 : -1.0};
  it.a.require_fit(name, 32, 128 * 2), it.b.require_fit(name, 32, n * 2);
  // Products of one shape are ordered; others need a commit and a wait between them ("Pipelined tcgen05 instructions").
  static unsigned thread, shape;
  const unsigned mine = KIND << 16 | n;
  const bool behind = thread == simt::self->id && shape == mine;
  thread = simt::self->id, shape = mine;
  (behind ? simt::async_run_behind : simt::async_run)(PRODUCT_STREAM, simt::OTHER_PROXY, run_tensor<KIND>, &it, sizeof it);
}
SIMT_MODEL inline void tcgen05_commit(int, reg_r barrier) { simt::async_arrive(PRODUCT_STREAM, in_cluster(barrier)); }

}  // namespace ptx
