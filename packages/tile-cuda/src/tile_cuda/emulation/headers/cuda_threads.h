// Barriers, shuffles and votes by their CUDA names. Macros where the line of the call is needed.
#pragma once
#include "cuda_math.h"
#include "ptx_threads.h"

#define __syncthreads() simt::sync(0, 0, SIMT_PLACE)
#define __threadfence() simt::fence(false)
#define __threadfence_block() simt::fence(true)
#define __threadfence_system() simt::fence(false)
#define __activemask() ptx::active_lanes()

inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) { simt::sync_warp(mask, line); }

inline int __syncthreads_count(int mine, int line = __builtin_LINE());
inline int __syncthreads_and(int mine, int line = __builtin_LINE());
inline int __syncthreads_or(int mine, int line = __builtin_LINE());

namespace ptx {
template <class T>
SIMT_MODEL T shuffle_value(Shuffle mode, unsigned mask, T value, int by, int width, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take values of 4 or 8 bytes");
  if (width < 1 || width > 32 || (width & (width - 1))) simt::fail("collective", "a shuffle of width %d", width);
  reg_l bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bool inside;
  unsigned control = (32u - (unsigned)width) << 8 | (mode == UP ? 0 : 31);
  bits = shuffle(mode, bits, (unsigned)by, control, mask, inside, line);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
SIMT_MODEL inline void add_up(void** packs, simt::Thread**, unsigned members) {
  int sum = 0;
  for (unsigned i = 0; i < members; i++) sum += *(int*)packs[i];
  for (unsigned i = 0; i < members; i++) *(int*)packs[i] = sum;
}
SIMT_MODEL inline int block_count(int mine, int line) {
  int pack = mine != 0;
  simt::sync(0, 0, line);
  simt::meet("__syncthreads", 0, 0, &pack, add_up, line);
  return pack;
}
}  // namespace ptx

#define CUDA_SHUFFLE(name, mode)                                                                     \
  template <class T>                                                                                 \
  inline T name(unsigned mask, T value, int by, int width = 32, int line = __builtin_LINE()) {       \
    return ptx::shuffle_value(mode, mask, value, by, width, line);                                   \
  }
CUDA_SHUFFLE(__shfl_sync, ptx::IDX)
CUDA_SHUFFLE(__shfl_up_sync, ptx::UP)
CUDA_SHUFFLE(__shfl_down_sync, ptx::DOWN)
CUDA_SHUFFLE(__shfl_xor_sync, ptx::BFLY)
#undef CUDA_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) { return (unsigned)ptx::vote(p != 0, mask, line).yes; }
inline int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) { return ptx::vote(p != 0, mask, line).yes != 0; }
inline int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) {
  simt::Votes v = ptx::vote(p != 0, mask, line);
  return v.yes == v.all;
}
inline int __syncthreads_count(int mine, int line) { return ptx::block_count(mine, line); }
inline int __syncthreads_or(int mine, int line) { return ptx::block_count(mine, line) != 0; }
inline int __syncthreads_and(int mine, int line) { return ptx::block_count(!mine, line) == 0; }
