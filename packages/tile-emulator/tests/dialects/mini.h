// A small CUDA-like language on the engine, to test it: built-in variables, shared memory, barriers, shuffles,
// asynchronous copies in groups, phase barriers with bytes, a matrix instruction of a warp.
#pragma once
#include "simt.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define threadIdx (simt::self->index)
#define blockIdx (simt::block->index)
#define blockDim (simt::block->threads)
#define gridDim (simt::block->grid)

#if defined(__clang__)  // which does not check the alignment of structures that are copied as a whole
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));
#else
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
#endif

#define __syncthreads() simt::sync(0, 0, SIMT_PLACE)
#define __syncwarp() simt::sync_warp(~0ull, __LINE__)
#define bar_sync(id, count) simt::sync(id, count, __LINE__)
#define bar_arrive(id, count) simt::arrive(id, count, __LINE__)
#define votes(p) (simt::vote("votes", p, ~0ull, __LINE__))
#define cluster_sync() (simt::arrive_cluster(true, __LINE__), simt::wait_cluster(__LINE__))
#define __nanosleep(n) simt::yield()
#define printf simt::print
#define cluster_rank() (simt::block->rank)

template <class T>
SIMT_MODEL inline T* in_block(T* p, unsigned rank) {
  return (T*)simt::shared_of(rank, p);
}

struct Shuffle {
  float value, result;
  unsigned from;
};
SIMT_MODEL inline float shuffle(float value, unsigned from, uint64_t mask, int line) {
  Shuffle pack{value, value, from};
  simt::meet("shfl", 1, mask, &pack, [](void** packs, simt::Thread**, unsigned lanes) {
    for (unsigned i = 0; i < lanes; i++) {
      Shuffle* p = (Shuffle*)packs[i];
      if (p && p->from < lanes && packs[p->from]) p->result = ((Shuffle*)packs[p->from])->value;
    }
  }, line);
  return pack.result;
}
#define __shfl_xor_sync(mask, value, lanes) shuffle(value, simt::self->lane ^ (lanes), mask, __LINE__)
#define __shfl_sync(mask, value, lane) shuffle(value, lane, mask, __LINE__)

// A sum over consecutive warps; over the block if `warps` is 0.
SIMT_MODEL inline float sum_of(unsigned warps, float value, int line) {
  simt::meet("sum", warps, ~0ull, &value, [](void** packs, simt::Thread** threads, unsigned members) {
    float sum = 0;
    for (unsigned i = 0; i < members; i++) sum += threads[i] ? *(float*)packs[i] : 0;
    for (unsigned i = 0; i < members; i++) *(float*)packs[i] = sum;
  }, line);
  return value;
}
#define group_sum(warps, value) sum_of(warps, value, __LINE__)

SIMT_MODEL inline float atomicAdd(float* p, float v) {
  return simt::atomic(p, [v](float old) { return old + v; });
}
SIMT_MODEL inline int atomic_read(const int* p) {
  simt::access_atomic((void*)p, 4, simt::READS);
  return *p;
}
SIMT_MODEL inline void atomic_write(int* p, int v) {
  simt::access_atomic(p, 4, simt::WRITES);
  *p = v;
}
#define __threadfence() simt::fence(false)
SIMT_MODEL inline int atomicAdd(int* p, int v) {
  return simt::atomic(p, [v](int old) { return old + v; });
}

// ------------------------------------------------------------------------------------------- copies in groups
SIMT_MODEL inline void cp_async(void* to, const void* from, unsigned bytes, unsigned valid) {
  simt::require_aligned(to, bytes);
  if (valid) simt::require_aligned(from, bytes);
  simt::async_copy(0, to, from, bytes, valid);
}
#define cp_async4(to, from) cp_async(to, from, 4, 4)
#define cp_async16(to, from) cp_async(to, from, 16, 16)
#define cp_async16_zfill(to, from, valid) cp_async(to, from, 16, valid)
#define cp_async_commit() simt::async_commit(0)
#define cp_async_wait(pending) simt::async_wait(0, pending)
#define cp_async_arrive(bar) simt::async_arrive(0, bar)

// --------------------------------------------------------------------------------------------- phase barriers
#define mbar_init(bar, count) simt::phase_init(bar, count)
#define mbar_inval(bar) simt::phase_destroy(bar)
#define mbar_arrive(bar) simt::phase_arrive(bar, 1, 0)
#define mbar_expect(bar, bytes) simt::phase_arrive(bar, 1, bytes)
#define mbar_wait(bar, parity) simt::phase_wait(bar, parity)
#define mbar_test(bar, parity) simt::phase_test(bar, parity)

struct Bulk {
  void* to;
  const void* from;
  unsigned bytes;
};
SIMT_MODEL inline void bulk_effect(void* payload) {
  Bulk* b = (Bulk*)payload;
  simt::access(b->from, b->bytes, false);
  simt::access(b->to, b->bytes, true);
  memcpy(b->to, b->from, b->bytes);
}
SIMT_MODEL inline void bulk_copy(void* to, const void* from, unsigned bytes, void* bar) {
  Bulk b{to, from, bytes};
  simt::async_signal(0, simt::OTHER_PROXY, bulk_effect, &b, sizeof b, bar, bytes);
}
SIMT_MODEL inline void bulk_store(void* to, const void* from, unsigned bytes) {
  Bulk b{to, from, bytes};
  simt::async_run(1, simt::OTHER_PROXY, bulk_effect, &b, sizeof b);
}
#define bulk_commit() simt::async_commit(1)
#define bulk_wait(pending) simt::async_wait(1, pending)
#define fence_proxy() simt::fence_proxy()

// --------------------------------------------------------- a warp's 16x8x8 product of float, as m16n8k8 lays it out
struct Product {
  float a[4], b[2], *c;
};
SIMT_MODEL inline void product_model(void** packs, simt::Thread**, unsigned) {
  float a[16][8], b[8][8];
  for (unsigned lane = 0; lane < 32; lane++) {
    Product* p = (Product*)packs[lane];
    unsigned row = lane / 4, column = lane % 4;
    for (unsigned i = 0; i < 4; i++) a[row + 8 * (i & 1)][column + 4 * (i >> 1)] = p->a[i];
    for (unsigned i = 0; i < 2; i++) b[column + 4 * i][row] = p->b[i];
  }
  for (unsigned lane = 0; lane < 32; lane++) {
    Product* p = (Product*)packs[lane];
    for (unsigned i = 0; i < 4; i++)
      for (unsigned k = 0; k < 8; k++) p->c[i] += a[lane / 4 + 8 * (i >> 1)][k] * b[k][lane % 4 * 2 + (i & 1)];
  }
}
SIMT_MODEL inline void mma(float (&c)[4], float a0, float a1, float a2, float a3, float b0, float b1, int line) {
  Product pack{{a0, a1, a2, a3}, {b0, b1}, c};
  simt::meet("mma", 1, ~0ull, &pack, product_model, line);
}
#define mma16n8k8(c, a0, a1, a2, a3, b0, b1) mma(c, a0, a1, a2, a3, b0, b1, __LINE__)
