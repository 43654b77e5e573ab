// Words and built-in variables of the language.
#pragma once
#include "simt.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __cluster_dims__(...)  // `ptx::cluster_dims` has them
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

namespace ptx {
// The blocks of a cluster along x, y and z as the head of the kernel gives them (it is what a launch goes by); zeros if
// it does not. Such blocks are clusters of one as well, implicit ones (PTX ISA, "%is_explicit_cluster"). Of what names
// blocks of a cluster, an H100 was seen to run `mapa`, `st.shared::cluster` and `barrier.cluster` there, and copies from
// global memory to `shared::cluster` (tests/vectors/matrix.py), but to call copies of bytes from block to block illegal
// instructions. No device was asked about copies to several blocks and arrivals in other blocks: they are taken for legal.
extern const simt::Dim3 cluster_dims;
inline simt::Dim3 cluster_of(unsigned x = 1, unsigned y = 1, unsigned z = 1) { return simt::Dim3{x, y, z}; }

SIMT_MODEL inline void require_clusters(unsigned x, unsigned y, unsigned z) {
  unsigned none = !cluster_dims.x;
  unsigned given[3] = {cluster_dims.x + none, cluster_dims.y + none, cluster_dims.z + none};
  if (given[0] != x || given[1] != y || given[2] != z)
    simt::fail("cluster", "a launch of clusters of %u x %u x %u blocks, but the kernel's head makes them %u x %u x %u", x, y, z, given[0], given[1], given[2]);
}
}  // namespace ptx

#define warpSize 32
#define threadIdx (simt::self->index)
#define blockIdx (simt::block->index)
#define blockDim (simt::block->threads)
#define gridDim (simt::block->grid)

#define printf simt::print
#define assert(condition) ((condition) ? (void)0 : simt::fail("assert", "the assertion '%s' does not hold", #condition))
#define __trap() simt::trap()
#define __brkpt() simt::fail("trap", "the kernel stops at a breakpoint")
#define __nanosleep(n) simt::yield()

// Addresses of shared memory have 32 bits. They begin above 0, so that 0 is no address; what is not in shared memory
// but near it (an address behind its end that a lane computes and does not use) has one too, and an access there is
// out of bounds.
namespace ptx {
enum : unsigned { SHARED_BASE = 1024 };

SIMT_MODEL inline unsigned shared_address(const void* p) {
  int64_t offset = (const unsigned char*)p - simt::block->shared;
  if (offset != (int32_t)offset) simt::fail("shared", "the address of something that is not in shared memory is used as such");
  return (unsigned)offset + SHARED_BASE;
}
SIMT_MODEL inline unsigned char* shared(unsigned address) {
  return simt::block->shared + (int32_t)(address - SHARED_BASE);
}

// In the space of a cluster, the addresses of block `rank` have a window of their own, behind that of the block itself.
enum : unsigned { WINDOW = 1u << 24 };

SIMT_MODEL inline unsigned rank_of(unsigned address) {
  unsigned window = address / WINDOW;
  return window ? window - 1 : simt::block->rank;
}
SIMT_MODEL inline unsigned of_block(unsigned address, unsigned rank) { return (rank + 1) * WINDOW + address % WINDOW; }
SIMT_MODEL inline unsigned char* in_cluster(unsigned address) {
  if (address / WINDOW == 0) return shared(address);
  simt::require_running(rank_of(address));
  return (unsigned char*)simt::shared_of(rank_of(address), shared(address % WINDOW));
}
SIMT_MODEL inline void require_multicast(unsigned to, unsigned barrier, unsigned blocks) {
  if (rank_of(to) != simt::block->rank || rank_of(barrier) != simt::block->rank)
    simt::fail("async", "a multicast copy needs addresses of its own block for destination and barrier");
  if (!blocks || blocks >> simt::block->ranks)
    simt::fail("async", "a multicast copy to the blocks %x of a cluster of %u", blocks, simt::block->ranks);
}
}  // namespace ptx

inline size_t __cvta_generic_to_shared(const void* p) { return ptx::shared_address(p); }
inline void* __cvta_shared_to_generic(size_t address) { return ptx::shared((unsigned)address); }
inline size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
inline void* __cvta_global_to_generic(size_t address) { return (void*)address; }

template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stcg(T* p, T value) {
  *p = value;
}
