// tcgen05: tensor memory, and matrix products whose sums are there. They run asynchronously.
//
// PTX ISA, "TensorCore 5th Generation". Tensor memory has 128 lanes of 512 columns of 32 bits; an address is
// lane << 16 | column. Columns are allocated by warps, a power of two from 32 on, and freed before the block ends. Warp w
// accesses lanes 32 (w % 4) to 32 (w % 4) + 31. Products of a block of its own (cta_group::1) with 128 rows have row i in lane i.
// Those of a pair of blocks (cta_group::2) have 256 rows: 128 of each block, whose A is in its shared memory, and whose sums are in
// its tensor memory; the first block of the pair has the first half of the columns of B, the other one the rest. A thread of the
// first block issues them; both blocks have allocated by then, for pairs, after they have met.
// One thread issues products; `commit` lets them arrive at an mbarrier when all that it has issued are done.
//
// Instruction descriptor, Table 42: 1:0 sparsity selector, 2 sparse, 3 saturate, 5:4 type of D, 9:7 of A, 12:10 of B, 13 and 14
// negate A and B, 15 and 16 transpose A and B, 22:17 N / 8, 28:24 M / 16, others 0. Matrix descriptor, Table 40: 13:0
// address, 29:16 leading dimension, 45:32 stride dimension, divided by 16; 48:46 are 001; 51:49 base offset; 52 mode of
// the leading dimension; 63:61 swizzle: 0 none, 2 128 bytes, 4 64 bytes, 6 32 bytes.
//
// Metadata of a sparse A, for M = 128: of 8-bit types a row's nibbles are a stream of bits along two columns of its lane; of
// others 16 bits describe a piece of 16 elements along K (8 of tf32), and piece j of row m is in lane 16 (m / 16) + 8 (j % 2) + m % 8
// of the column that the selector names of two, in the high half if m / 8 is odd. CUTLASS and JAX arrange metadata in memory so that
// a copy of 16 bytes to each lane has this result (tests/ops/test_gemm_sp_tensor.py compares).
//
// Uncalibrated: no device has recorded these models. Sums are exact before one rounding, where a device drops bits. Without a model:
// other shapes than M = 128 of each block, sparse products of pairs, sums of 16 bits. Products with scales: ptx_tcgen05_scaled.h.
#pragma once
#include "ptx_wgmma.h"
#include "ptx_barrier.h"

namespace ptx {

enum : unsigned { TENSOR_LANES = 128, TENSOR_COLUMNS = 512, TENSOR_GRAIN = 32, PRODUCT_STREAM = 3, LOAD_STREAM = 4, STORE_STREAM = 5 };

enum : unsigned { TENSOR_BLOCKS = 4 };  // of a cluster at most: each has tensor memory of its own
SIMT_SHARED unsigned cells_of_blocks[TENSOR_BLOCKS][TENSOR_LANES][TENSOR_COLUMNS];

// Those of the block that runs.
struct TensorCells {
  SIMT_MODEL unsigned* operator[](unsigned lane) const { return cells_of_blocks[simt::block->rank][lane]; }
};
static const TensorCells tensor_cells{};

// Which columns are allocated: refilled with poison before each block, so that the mark is missing then.
struct TensorColumns {
  unsigned long long mark;
  unsigned size[TENSOR_COLUMNS / TENSOR_GRAIN];  // columns of the allocation that begins there
  bool held[TENSOR_COLUMNS / TENSOR_GRAIN], relinquished;
  unsigned latest, group;  // blocks of a product: all instructions of a kernel agree
};
SIMT_SHARED TensorColumns columns_of_blocks[TENSOR_BLOCKS];
enum : unsigned long long { TENSOR_MARK = 0x7e5047a10ca7edull };

SIMT_MODEL inline const char* tensor_end() {
  for (const TensorColumns& it : columns_of_blocks)
    for (bool held : it.held)
      if (it.mark == TENSOR_MARK && held) return "the block ends with columns of tensor memory that it has not freed";
  return nullptr;
}
SIMT_MODEL inline TensorColumns& columns_of_block() {
  if (simt::block->ranks > TENSOR_BLOCKS) simt::fail("tensor", "tensor memory of a cluster of %u blocks has no model", simt::block->ranks);
  TensorColumns& it = columns_of_blocks[simt::block->rank];
  if (it.mark != TENSOR_MARK) {
    __builtin_memset((void*)&it, 0, sizeof it);
    it.mark = TENSOR_MARK, it.latest = TENSOR_COLUMNS;
    simt::at_end(tensor_end);
  }
  return it;
}
// Makes another block the one that runs, as long as it lives.
struct OfBlock {
  simt::Block* mine;
  SIMT_MODEL explicit OfBlock(unsigned rank) : mine(simt::block) {
    if (rank != mine->rank) simt::require_running(rank);
    simt::block = simt::block_of(rank);
  }
  SIMT_MODEL ~OfBlock() { simt::block = mine; }
};
SIMT_MODEL inline TensorColumns& columns_of_group(const char* name, unsigned group) {
  TensorColumns& it = columns_of_block();
  if (it.group && it.group != group)
    simt::fail("tensor", "%s of cta_group::%u in a kernel whose other instructions are of cta_group::%u", name, group, it.group);
  it.group = group;
  return it;
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
  unsigned group;
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
  TensorColumns& all = columns_of_group("tcgen05.alloc", it.group);
  if (it.group > 1 && simt::block->ranks % 2) simt::fail("tensor", "tcgen05.alloc of cta_group::2 in a cluster of %u blocks", simt::block->ranks);
  if (it.group > 1 && !simt::cluster_waits())
    simt::fail("tensor", "tcgen05.alloc of cta_group::2 before the blocks have met: the other one may not run yet");
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
template <unsigned GROUP>
SIMT_MODEL void tcgen05_alloc(int line, reg_r at, reg_r count) {
  Allocation it{at, (long long)count, GROUP};
  meet_warp("tcgen05.alloc", &it, allocate_columns, line);
}
SIMT_MODEL inline void free_columns(void** packs, simt::Thread**, unsigned lanes) {
  const Allocation& it = *(Allocation*)packs[0];
  for (unsigned i = 1; i < lanes; i++)
    if (((Allocation*)packs[i])->at != it.at) simt::fail("collective", "tcgen05.dealloc: lanes 0 and %u have different operands", i);
  require_count("tcgen05.dealloc", it.count);
  TensorColumns& all = columns_of_group("tcgen05.dealloc", it.group);
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
template <unsigned GROUP>
SIMT_MODEL void tcgen05_dealloc(int line, reg_r at, reg_r count) {
  Allocation it{at, (long long)count, GROUP};
  meet_warp("tcgen05.dealloc", &it, free_columns, line);
}
template <unsigned GROUP>
SIMT_MODEL void relinquish(void**, simt::Thread**, unsigned) {
  columns_of_group("tcgen05.relinquish_alloc_permit", GROUP).relinquished = true;
}
template <unsigned GROUP>
SIMT_MODEL void tcgen05_relinquish(int line) {
  meet_warp("tcgen05.relinquish_alloc_permit", nullptr, relinquish<GROUP>, line);
}

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
  unsigned metadata, selector;  // of a sparse A: first of two columns
  unsigned group;               // blocks that it is for, from the one that issues it on
  bool held;                    // whether A is in tensor memory: row i in lane i, its elements along the columns from `rows` on
  unsigned rows;
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

// The nibble that describes a group of a row, and the place of each stored value in dense K.
template <int BITS>
SIMT_MODEL inline unsigned nibble_of_row(const TensorProduct& it, unsigned row, unsigned group) {
  if (BITS == 8) return tensor_cells[row][it.metadata + group / 8] >> group % 8 * 4 & 15;
  unsigned lane = row / 16 * 16 + group / 4 * 8 + row % 8;
  return tensor_cells[lane][it.metadata + it.selector] >> (row / 8 % 2 * 16 + group % 4 * 4) & 15;
}
template <int BITS, int STORED>
SIMT_MODEL void places_of_row(const TensorProduct& it, unsigned row, unsigned (&places)[STORED]) {
  enum : int { GROUP = BITS == 32 ? 2 : 4, EACH = GROUP / 2 };
  for (unsigned i = 0; i < STORED; i++) {
    unsigned group = i / EACH, nibble = nibble_of_row<BITS>(it, row, group), first = nibble & 3, second = nibble >> 2;
    bool legal = BITS == 32 ? nibble == 4 || nibble == 14 : first < second;
    if (!legal)
      simt::fail("metadata", "tcgen05.mma.sp: the metadata of row %u from k = %u on is %u, %u: %s", row, group * GROUP, first, second,
                 BITS == 32 ? "only 0, 1 and 2, 3 are legal" : "the indices must increase");
    places[i] = group * GROUP + (BITS == 32 ? first / 2 : i % EACH ? second : first);
  }
}

template <class A, class B, bool INTEGERS, bool SPARSE>
SIMT_MODEL void multiply_tensor(const TensorProduct& it) {
  enum : int { STORED = 256 / A::BITS, K = SPARSE ? 2 * STORED : STORED };
  static unsigned a[TENSOR_LANES][STORED], codes[256][K];
  static double b[256][K];
  const unsigned issuer = simt::block->rank;
  for (unsigned r = 0; r < it.group; r++) {
    OfBlock there(issuer + r);
    read_matrix<B, K>(it.b, 0, it.n / it.group, codes + r * (it.n / it.group));
  }
  for (unsigned n = 0; n < it.n; n++)
    for (unsigned k = 0; k < K; k++) b[n][k] = B::decode(codes[n][k]);
  for (unsigned r = 0; r < it.group; r++) {
    OfBlock there(issuer + r);
    if (it.held)
      for (unsigned lane = 0; lane < TENSOR_LANES; lane++) {
        const unsigned* words = &tensor_cells[lane][it.rows];
        simt::access(words, 4 * 8, false);
        for (unsigned i = 0; i < STORED; i++) {
          const unsigned bit = i * A::BITS;
          a[lane][i] = words[bit / 32] >> bit % 32 & (A::BITS == 32 ? ~0u : (1u << A::BITS % 32) - 1);
        }
      }
    else
      read_matrix<A, STORED>(it.a, 0, TENSOR_LANES, a);
    if (SPARSE)
      for (unsigned lane = 0; lane < TENSOR_LANES; lane++) {
        unsigned first = it.metadata + it.selector, count = A::BITS == 8 ? 2 : 1;
        simt::access(&tensor_cells[lane][first], 4 * count, false);
      }
    for (unsigned lane = 0; lane < TENSOR_LANES; lane++) {
      unsigned* sums = &tensor_cells[lane][it.column];
      if (it.adds) simt::access(sums, 4 * it.n, false);
      simt::access(sums, 4 * it.n, true);
      double row[STORED];
      unsigned places[STORED];
      for (unsigned i = 0; i < STORED; i++) row[i] = it.sign * A::decode(a[lane][i]), places[i] = i;
      if constexpr (SPARSE) places_of_row<A::BITS>(it, lane, places);
      for (unsigned n = 0; n < it.n; n++) {
        double sum = 0;
        if (it.adds) sum = INTEGERS ? (double)(int)sums[n] : (double)bits_f(sums[n]);
        for (unsigned i = 0; i < STORED; i++) sum += row[i] * b[n][places[i]];
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
}

template <TensorKind KIND, bool SPARSE>
SIMT_MODEL void run_tensor(void* payload) {
  const TensorProduct& it = *(TensorProduct*)payload;
  unsigned types = it.a_type << 3 | it.b_type;
  if (KIND == KIND_F16) {
    if (types == 0) return multiply_tensor<F16, F16, false, SPARSE>(it);
    if (types == 011) return multiply_tensor<Bf16, Bf16, false, SPARSE>(it);
  } else if (KIND == KIND_TF32) {
    if (types == 022) return multiply_tensor<Tf32, Tf32, false, SPARSE>(it);
  } else if (KIND == KIND_F8) {
    if (types == 000) return multiply_tensor<E4m3, E4m3, false, SPARSE>(it);
    if (types == 001) return multiply_tensor<E4m3, E5m2, false, SPARSE>(it);
    if (types == 010) return multiply_tensor<E5m2, E4m3, false, SPARSE>(it);
    if (types == 011) return multiply_tensor<E5m2, E5m2, false, SPARSE>(it);
  } else {
    if (types == 000) return multiply_tensor<U8, U8, true, SPARSE>(it);
    if (types == 001) return multiply_tensor<U8, S8, true, SPARSE>(it);
    if (types == 010) return multiply_tensor<S8, U8, true, SPARSE>(it);
    if (types == 011) return multiply_tensor<S8, S8, true, SPARSE>(it);
  }
  simt::fail("descriptor", "tcgen05.mma: types %u and %u of A and B have no model", it.a_type, it.b_type);
}

// Whether the last that a block's thread has issued is a copy to tensor memory: a product behind it is ordered.
inline bool copied_before[TENSOR_BLOCKS];
// Products of one shape are ordered; others need a commit and a wait between them ("Pipelined tcgen05 instructions").
SIMT_MODEL inline void begin_product(unsigned mine, simt::Effect run, void* payload, unsigned size) {
  static unsigned threads[TENSOR_BLOCKS], shapes[TENSOR_BLOCKS];
  unsigned &thread = threads[simt::block->rank], &shape = shapes[simt::block->rank];
  bool& copied = copied_before[simt::block->rank];
  const bool behind = thread == simt::self->id && (shape == mine || copied);
  thread = simt::self->id, shape = mine, copied = false;
  (behind ? simt::async_run_behind : simt::async_run)(PRODUCT_STREAM, simt::OTHER_PROXY, run, payload, size);
}

SIMT_MODEL inline void begin_copy() { copied_before[simt::block->rank] = true; }

template <TensorKind KIND, bool SPARSE, unsigned GROUP = 1>
SIMT_MODEL void issue_tensor(reg_r d, reg_l a, reg_l b, reg_r metadata, reg_r bits, bool adds, bool held = false) {
  const char* name = SPARSE ? "tcgen05.mma.sp" : "tcgen05.mma";
  const unsigned wanted = KIND == KIND_I8 ? 2 : 1;
  unsigned n = (bits >> 17 & 63) << 3, m = (bits >> 24 & 31) << 4;
  if (bits & 1u << 6 || bits & 1u << 23 || bits >> 29) simt::fail("descriptor", "%s: the instruction descriptor %x has bits that must be zero", name, bits);
  if ((bits >> 2 & 1) != SPARSE)
    simt::fail("descriptor", "%s: the instruction descriptor %x is one of a %s product", name, bits, SPARSE ? "dense" : "sparse");
  if ((bits & 3) > (SPARSE && KIND < KIND_F8 ? 1u : 0u)) simt::fail("selector", "%s: the selector is %u", name, bits & 3);
  if (KIND != KIND_I8 && bits >> 3 & 1) simt::fail("descriptor", "%s: the instruction descriptor %x saturates floats", name, bits);
  if (KIND == KIND_I8 && bits >> 13 & 3) simt::fail("descriptor", "%s: the instruction descriptor %x negates integers", name, bits);
  if ((bits >> 4 & 3) != wanted) simt::fail("descriptor", "%s: accumulators of type %u have no model", name, bits >> 4 & 3);
  if (m != 128 * GROUP) simt::fail("descriptor", "%s: %u rows have no model; %u have", name, m, 128 * GROUP);
  if (n < 16 || n > 256 || n % (KIND == KIND_I8 ? 16 * GROUP : 16))
    simt::fail("descriptor", "%s: %u columns for 128 rows: multiples of 16 from 16 to 256 are legal", name, n);
  bool across_a = bits >> 15 & 1, across_b = bits >> 16 & 1;
  if ((across_a || across_b) && KIND != KIND_F16) simt::fail("descriptor", "%s: only elements of 16 bits may be adjacent along M or N in this model", name);
  if (d >> 16) simt::fail("tensor", "%s: the accumulator begins in lane %u, not 0", name, d >> 16);
  columns_of_group(name, GROUP);
  if (GROUP > 1 && simt::block->rank % 2) simt::fail("tensor", "%s of cta_group::2 is issued by the second block of a pair", name);
  for (unsigned r = 0; r < GROUP; r++) {
    OfBlock there(simt::block->rank + r);
    require_columns(name, d & 0xffff, n);
  }
  if (SPARSE && (metadata >> 16 || metadata % 2)) simt::fail("tensor", "%s: metadata begins at %x: lane 0 of an even column is legal", name, metadata);
  if (SPARSE) require_columns(name, metadata, 2);
  if (held && across_a) simt::fail("descriptor", "%s: A in tensor memory is not transposed", name);
  if (held && a >> 16) simt::fail("tensor", "%s: A begins in lane %u, not 0", name, (unsigned)(a >> 16));
  if (held) require_columns(name, (unsigned)a, 8);
  TensorProduct it{held ? Matrix{} : decode_tensor_matrix(name, a, across_a), decode_tensor_matrix(name, b, across_b), d & 0xffff, n, bits >> 7 & 7,
                   bits >> 10 & 7, adds, (bits >> 3 & 1) != 0, (bits >> 13 & 1) == (bits >> 14 & 1) ? 1.0 : -1.0, metadata, bits & 3, GROUP};
  it.held = held, it.rows = (unsigned)a;
  if (!held) it.a.require_fit(name, 32, 128 * 2);
  it.b.require_fit(name, SPARSE ? 64 : 32, n / GROUP * 2);
  begin_product((SPARSE ? 1u << 24 : 0) | KIND << 16 | n, run_tensor<KIND, SPARSE>, &it, sizeof it);
}
template <TensorKind KIND, unsigned GROUP = 1>
SIMT_MODEL void tcgen05_mma(int, reg_r d, reg_l a, reg_l b, reg_r bits, bool adds) {
  issue_tensor<KIND, false, GROUP>(d, a, b, 0, bits, adds);
}
template <TensorKind KIND>
SIMT_MODEL void tcgen05_mma(int, reg_r d, reg_r a, reg_l b, reg_r bits, bool adds) {
  issue_tensor<KIND, false>(d, a, b, 0, bits, adds, true);
}
template <TensorKind KIND>
SIMT_MODEL void tcgen05_mma_sp(int, reg_r d, reg_l a, reg_l b, reg_r metadata, reg_r bits, bool adds) {
  issue_tensor<KIND, true>(d, a, b, metadata, bits, adds);
}
SIMT_MODEL inline void tcgen05_commit(int, reg_r barrier) {
  columns_of_group("tcgen05.commit", 1);
  simt::async_arrive(PRODUCT_STREAM, in_cluster(barrier));
}
// Arrives in each block of a mask, at the same place.
template <unsigned GROUP>
SIMT_MODEL void tcgen05_commit_multicast(int, reg_r barrier, unsigned blocks) {
  columns_of_group("tcgen05.commit", GROUP);
  require_multicast(barrier, barrier, blocks);
  for (unsigned r = 0; r < simt::block->ranks; r++) {
    if (!(blocks >> r & 1)) continue;
    simt::require_running(r);
    simt::async_arrive(PRODUCT_STREAM, simt::shared_of(r, shared(barrier % WINDOW)));
  }
}

}  // namespace ptx
