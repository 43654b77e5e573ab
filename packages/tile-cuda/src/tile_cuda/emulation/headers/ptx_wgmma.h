// wgmma: matrix products of a warpgroup, dense and with 2:4 sparse A. They run asynchronously.
//
// Between its issue and the wait for its group, an instruction reads its operands in shared memory through the
// asynchronous proxy, and its registers: fragments of A, metadata and accumulators. Each warp's part is an operation of
// its own: a wait by one warp does not tell that another one's part has ended.
//
// Matrix descriptor (PTX ISA, "Matrix Descriptor Format"): bits 13:0 start address, 29:16 leading dimension byte offset,
// 45:32 stride dimension byte offset, all divided by 16; 51:49 base offset; 63:62 swizzle. Others are zero. Base offsets
// other than 0 have no model. A swizzle exchanges bits 4 to 6 of an address with bits 7 to 9, of the absolute address.
//
// Fragments: warp w of the four has rows 16 w to 16 w + 15 of A and D, as mma has (ptx_mma.h): D is a row of tiles of 16 x 8.
// The numbers are those of ptx_mma.h, but for 8-bit floats, which this unit multiplies itself: products and addend are cut off
// 13 bits below the largest exponent among them, and an f32 sum keeps 14 bits (towards zero). An H200 gives the same bits.
#pragma once
#include "ptx_mma.h"
#include "ptx_memory.h"

namespace ptx {

enum : unsigned { WARPGROUP_STREAM = 3, MOST_SUMS = 128 };  // registers of a thread for D

struct Matrix {
  unsigned start, leading, stride, swizzle;  // bytes; of a row whose chunks are exchanged, 0 for none
  bool across;                               // elements along M or N are adjacent, not those along K

  SIMT_MODEL static Matrix decode(const char* name, reg_l bits, long long across) {
    static const unsigned swizzles[] = {0, 128, 64, 32};
    if (bits & 0x3ff1c000c000c000ull)
      simt::fail("descriptor", "%s: the matrix descriptor %llx has bits that must be zero", name, bits);
    if (bits >> 49 & 7)
      simt::fail("descriptor", "%s: the matrix descriptor %llx has a base offset, which has no model", name, bits);
    return {(unsigned)(bits & 0x3fff) << 4, (unsigned)(bits >> 16 & 0x3fff) << 4, (unsigned)(bits >> 32 & 0x3fff) << 4,
            swizzles[bits >> 62], across != 0};
  }

  // Rows of a swizzle hold what one instruction takes: it does not go on in the next atom along K.
  SIMT_MODEL void require_fit(const char* name, unsigned bytes_k, unsigned bytes_mn) const {
    unsigned begin = swizzle ? start % swizzle : 0, bytes = across ? bytes_mn : bytes_k;
    if (swizzle && begin + bytes > swizzle && (!across || begin))
      simt::fail("descriptor", "%s: %u bytes from byte %u of a row of %u bytes", name, bytes, begin, swizzle);
  }

  // Chunk `c` of 16 bytes: of line (row of A, column of B) `i` along K; or, if lines are adjacent, of k = `i`.
  SIMT_MODEL unsigned char* chunk(unsigned i, unsigned c) const {
    unsigned at;
    if (!swizzle)
      at = across ? c * stride + i / 8 * leading + i % 8 * 16 : i / 8 * stride + i % 8 * 16 + c * leading;
    else if (across)
      at = c * 16 / swizzle * leading + i / 8 * stride + i % 8 * swizzle + c * 16 % swizzle;
    else
      at = i / 8 * stride + i % 8 * swizzle + c * 16;
    at = (start + at) & 0x3ffff;
    if (swizzle) at ^= (at >> 7 & (swizzle / 16 - 1)) << 4;
    return shared(at);
  }
};

struct LaneRegisters {
  void* d[MOST_SUMS];
  const void* a[4];
  const void* metadata;
};

// What a warp does when its part takes effect.
struct WarpPart {
  LaneRegisters lanes[32];
  Matrix a, b;
  unsigned warp, selector;
  bool adds;
  double sign;
};

struct Issue {
  reg_l a, b;
  bool adds;
  long long signs, trans_a, trans_b, selector;
  bool a_in_registers;
  LaneRegisters mine;
  WarpPart* part;  // of the warp, for its first lane
};

SIMT_MODEL inline unsigned word_at(const void* p) {
  unsigned value;
  __builtin_memcpy(&value, p, 4);
  return value;
}

// What an instruction adds to: 4 elements of a tile of 16 x 8 per thread.
SIMT_MODEL inline double sum_at(const LaneRegisters& lane, unsigned tile, unsigned i, SumF32*) { return bits_f(word_at(lane.d[4 * tile + i])); }
SIMT_MODEL inline double sum_at(const LaneRegisters& lane, unsigned tile, unsigned i, SumF16*) {
  return F16::decode(word_at(lane.d[2 * tile + i / 2]) >> i % 2 * 16 & 0xffff);
}
template <bool SATURATE>
SIMT_MODEL inline double sum_at(const LaneRegisters& lane, unsigned tile, unsigned i, SumS32<SATURATE>*) { return (int)word_at(lane.d[4 * tile + i]); }

SIMT_MODEL inline void set_sum(const LaneRegisters& lane, unsigned tile, unsigned i, double x, SumF32*) {
  float value = canonical((float)x);
  __builtin_memcpy(lane.d[4 * tile + i], &value, 4);
}
SIMT_MODEL inline void set_sum(const LaneRegisters& lane, unsigned tile, unsigned i, double x, SumF16*) {
  unsigned short code = (unsigned short)F16::encode(x);
  __builtin_memcpy((char*)lane.d[2 * tile + i / 2] + i % 2 * 2, &code, 2);
}
template <bool SATURATE>
SIMT_MODEL inline void set_sum(const LaneRegisters& lane, unsigned tile, unsigned i, double x, SumS32<SATURATE>*) {
  int64_t sum = (int64_t)x;
  if (SATURATE) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  unsigned word = (unsigned)sum;
  __builtin_memcpy(lane.d[4 * tile + i], &word, 4);
}

// Lines `first` to `first + lines - 1` of an operand, as codes by line and k.
template <class F, int K>
SIMT_MODEL void read_matrix(const Matrix& from, unsigned first, unsigned lines, unsigned (*to)[K]) {
  enum : int { EACH = 128 / F::BITS };
  unsigned outer = from.across ? K : lines, inner = (from.across ? lines : K) / EACH, begin = from.across ? 0 : first;
  for (unsigned i = 0; i < outer; i++)
    for (unsigned c = 0; c < inner; c++) {
      const unsigned char* at = from.chunk(begin + i, c + (from.across ? first / EACH : 0));
      simt::access(at, 16, false);
      for (unsigned e = 0; e < EACH; e++) {
        unsigned code = 0;
        __builtin_memcpy(&code, at + e * F::BITS / 8, F::BITS / 8);
        (from.across ? to[c * EACH + e][i] : to[i][c * EACH + e]) = code;
      }
    }
}

template <class A, class Sum, int N>
SIMT_MODEL void multiply_at_once(const Row<N>& row, double (&sums)[8]) {
  if constexpr (A::WHOLE) {
    multiply_row<A, Sum>(row, sums);
  } else if constexpr (A::BITS == 8) {
    add_products<13>(row, 15, sums);
    for (unsigned c = 0; c < 8; c++) sums[c] = Sum::of_bytes(sums[c]);
  } else {
    add_products(row, 15, sums);
    for (unsigned c = 0; c < 8; c++) sums[c] = Sum::round(sums[c]);
  }
}

template <int N, int K, class A, class B, class Sum, bool SPARSE, bool A_IN_REGISTERS>
SIMT_MODEL void multiply_part(void* payload) {
  enum : int { STORED = SPARSE ? K / 2 : K, E = 32 / A::BITS };
  static unsigned a[16][STORED], codes[N][K];
  static double b[N / 8][K][8];
  static int b_exponent[N / 8][K][8];
  WarpPart& part = **(WarpPart**)payload;
  read_matrix<B, K>(part.b, 0, N, codes);
  for (unsigned n = 0; n < N; n++)
    for (unsigned k = 0; k < K; k++) {
      b[n / 8][k][n % 8] = B::decode(codes[n][k]);
      if constexpr (!B::WHOLE) b_exponent[n / 8][k][n % 8] = exponent_of(b[n / 8][k][n % 8], B::LEAST);
    }
  if (!A_IN_REGISTERS) read_matrix<A, STORED>(part.a, 16 * part.warp, 16, a);
  Product metadata[32];
  void* packs[32];
  for (unsigned lane = 0; lane < 32; lane++) {
    packs[lane] = &metadata[lane];
    if (SPARSE) metadata[lane].metadata = word_at(part.lanes[lane].metadata);
  }
  for (unsigned row = 0; row < 16; row++) {
    unsigned char places[STORED];
    Places<A::BITS, K, SPARSE>::find("wgmma.sp", packs, part.selector, row, places);
    Row<STORED> mine;
    for (unsigned i = 0; i < STORED; i++) {
      unsigned word = i / E;
      unsigned code = a[row][i];
      if constexpr (A_IN_REGISTERS) {
        reg_r held = word_at(part.lanes[row % 8 * 4 + word % 4].a[word / 4 * 2 + row / 8]);
        code = A::BITS == 32 ? held : held >> (i * A::BITS & 31) & (unsigned)((1ull << A::BITS) - 1);
      }
      mine.a[i] = part.sign * A::decode(code);
      if constexpr (!A::WHOLE) mine.a_exponent[i] = exponent_of(mine.a[i], A::LEAST);
    }
    for (unsigned tile = 0; tile < N / 8; tile++) {
      double sums[8];
      for (unsigned i = 0; i < STORED; i++)
        mine.b[i] = b[tile][places[i]], mine.b_exponent[i] = b_exponent[tile][places[i]];
      for (unsigned c = 0; c < 8; c++)
        sums[c] = part.adds ? sum_at(part.lanes[row % 8 * 4 + c / 2], tile, row / 8 * 2 + c % 2, (Sum*)0) : 0;
      multiply_at_once<A, Sum>(mine, sums);
      for (unsigned c = 0; c < 8; c++)
        set_sum(part.lanes[row % 8 * 4 + c / 2], tile, row / 8 * 2 + c % 2, sums[c], (Sum*)0);
    }
  }
  __builtin_free(&part);
}

// All threads of the warpgroup issue one instruction, with the same descriptors.
SIMT_MODEL inline void gather_parts(void** packs, simt::Thread**, unsigned) {
  const Issue& first = *(Issue*)packs[0];
  for (unsigned i = 1; i < 128; i++) {
    const Issue& other = *(Issue*)packs[i];
    if (other.b != first.b || (!first.a_in_registers && other.a != first.a))
      simt::fail("descriptor", "wgmma: threads 0 and %u of a warpgroup have different matrix descriptors", i);
    if (other.adds != first.adds)
      simt::fail("descriptor", "wgmma: threads 0 and %u of a warpgroup have different predicates", i);
  }
  for (unsigned w = 0; w < 4; w++) {
    WarpPart* part = (WarpPart*)__builtin_malloc(sizeof(WarpPart));
    for (unsigned lane = 0; lane < 32; lane++) part->lanes[lane] = ((Issue*)packs[32 * w + lane])->mine;
    part->warp = w, part->adds = first.adds, part->sign = (double)first.signs, part->selector = (unsigned)first.selector;
    part->b = Matrix::decode("wgmma", first.b, first.trans_b);
    if (!first.a_in_registers) part->a = Matrix::decode("wgmma", first.a, first.trans_a);
    ((Issue*)packs[32 * w])->part = part;
  }
}

SIMT_MODEL inline void hold_all(void* const* registers, unsigned n, bool write, unsigned shape) {
  for (unsigned begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && (char*)registers[end] == (char*)registers[begin] + 4 * (end - begin);) end++;
    simt::hold_registers(registers[begin], 4 * (end - begin), write, shape);
  }
}

template <int N, int K, class A, class B, class Sum, bool SPARSE, bool A_IN_REGISTERS>
SIMT_MODEL void issue_product(int line, Issue& it) {
  enum : int { SUMS = Sum::REGISTERS == 2 ? N / 4 : N / 2, STORED = SPARSE ? K / 2 : K };
  const char* name = SPARSE ? "wgmma.sp" : "wgmma";
  unsigned threads = simt::block->threads.x * simt::block->threads.y * simt::block->threads.z;
  if ((simt::self->id | 127) >= threads)
    simt::fail("collective", "%s: the last warpgroup of the block has %u of 128 threads", name, threads % 128);
  if (it.signs != 1 && it.signs != -1) simt::fail("descriptor", "%s: operands are scaled by 1 or -1", name);
  if ((it.trans_a || it.trans_b) && A::BITS != 16)
    simt::fail("descriptor", "%s: elements of %d bits are adjacent along K", name, (int)A::BITS);
  if (SPARSE && (it.selector < 0 || it.selector > (A::BITS == 8 ? 0 : 1)))
    simt::fail("selector", "%s: the selector is %lld", name, it.selector);
  Matrix::decode(name, it.b, it.trans_b).require_fit(name, K * B::BITS / 8, N * B::BITS / 8);
  if (!A_IN_REGISTERS) Matrix::decode(name, it.a, it.trans_a).require_fit(name, STORED * A::BITS / 8, 64 * A::BITS / 8);
  hold_all(it.mine.d, SUMS, true, N << 8 | K);
  if (A_IN_REGISTERS) hold_all((void* const*)it.mine.a, 4, false, N << 8 | K);
  if (SPARSE) simt::hold_registers(it.mine.metadata, 4, false, 0);
  simt::meet(name, 4, 0, &it, gather_parts, line);
  if (simt::self->lane == 0)
    simt::async_run(WARPGROUP_STREAM, simt::OTHER_PROXY, multiply_part<N, K, A, B, Sum, SPARSE, A_IN_REGISTERS>, &it.part,
                    sizeof it.part);
}

template <class T, unsigned R>
SIMT_MODEL void take_registers(void** to, const V<T, R>& from) {
  static_assert(sizeof(T) == 4, "an asynchronous instruction takes registers of 32 bits");
  for (unsigned i = 0; i < R; i++) to[i] = (void*)from.p[i];
}

// D, A, B, whether it adds, the signs of A and B, and which operands are transposed.
template <int N, int K, class A, class B, class Sum, class TD, unsigned R>
SIMT_MODEL void wgmma(int line, V<TD, R> d, reg_l a, reg_l b, bool adds, long long sign_a = 1, long long sign_b = 1,
                      long long trans_a = 0, long long trans_b = 0) {
  static_assert(R == (Sum::REGISTERS == 2 ? N / 4 : N / 2), "the registers of D");
  Issue it{a, b, adds, sign_a * sign_b, trans_a, trans_b, 0, false, {}, nullptr};
  take_registers(it.mine.d, d);
  issue_product<N, K, A, B, Sum, false, false>(line, it);
}
template <int N, int K, class A, class B, class Sum, class TD, unsigned R, class TA>
SIMT_MODEL void wgmma(int line, V<TD, R> d, V<TA, 4> a, reg_l b, bool adds, long long sign_a = 1, long long sign_b = 1,
                      long long trans_b = 0) {
  static_assert(R == (Sum::REGISTERS == 2 ? N / 4 : N / 2), "the registers of D");
  Issue it{0, b, adds, sign_a * sign_b, 0, trans_b, 0, true, {}, nullptr};
  take_registers(it.mine.d, d);
  take_registers((void**)it.mine.a, a);
  issue_product<N, K, A, B, Sum, false, true>(line, it);
}
// The same with the metadata of A and their selector.
template <int N, int K, class A, class B, class Sum, class TD, unsigned R, class TE>
SIMT_MODEL void wgmma_sp(int line, V<TD, R> d, reg_l a, reg_l b, TE& metadata, long long selector, bool adds,
                         long long sign_a = 1, long long sign_b = 1, long long trans_a = 0, long long trans_b = 0) {
  static_assert(R == (Sum::REGISTERS == 2 ? N / 4 : N / 2) && sizeof(TE) == 4, "the registers of D and the metadata");
  Issue it{a, b, adds, sign_a * sign_b, trans_a, trans_b, selector, false, {}, nullptr};
  take_registers(it.mine.d, d);
  it.mine.metadata = &metadata;
  issue_product<N, K, A, B, Sum, true, false>(line, it);
}
template <int N, int K, class A, class B, class Sum, class TD, unsigned R, class TA, class TE>
SIMT_MODEL void wgmma_sp(int line, V<TD, R> d, V<TA, 4> a, reg_l b, TE& metadata, long long selector, bool adds,
                         long long sign_a = 1, long long sign_b = 1, long long trans_b = 0) {
  static_assert(R == (Sum::REGISTERS == 2 ? N / 4 : N / 2) && sizeof(TE) == 4, "the registers of D and the metadata");
  Issue it{0, b, adds, sign_a * sign_b, 0, trans_b, selector, true, {}, nullptr};
  take_registers(it.mine.d, d);
  take_registers((void**)it.mine.a, a);
  it.mine.metadata = &metadata;
  issue_product<N, K, A, B, Sum, true, true>(line, it);
}

SIMT_MODEL inline void wgmma_fence(int line) {
  meet_warp("wgmma.fence", nullptr, nullptr, line);
  simt::fence_registers();
}
SIMT_MODEL inline void wgmma_commit(int line) {
  meet_warp("wgmma.commit_group", nullptr, nullptr, line);
  if (simt::self->lane == 0) simt::async_commit(WARPGROUP_STREAM);
  simt::commit_registers();
}
SIMT_MODEL inline void wait_for_parts(void** packs, simt::Thread** threads, unsigned lanes) {
  long long pending = *(long long*)packs[0];
  for (unsigned i = 1; i < lanes; i++)
    if (*(long long*)packs[i] != pending) simt::fail("collective", "wgmma.wait_group: lanes wait for different groups");
  simt::async_wait_all(WARPGROUP_STREAM, (unsigned)pending, threads, lanes);
  for (unsigned i = 0; i < lanes; i++) simt::release_registers(threads[i], (unsigned)pending);
}
SIMT_MODEL inline void wgmma_wait(int line, long long pending) {
  if (pending < 0 || pending > 7) simt::fail("async", "wgmma.wait_group %lld: 0 to 7 are legal", pending);
  meet_warp("wgmma.wait_group", &pending, wait_for_parts, line);
}

}  // namespace ptx
