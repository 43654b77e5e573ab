// Barriers, fences, and what lanes of a wavefront exchange.
#pragma once
#include "simt.h"

namespace rocm {

// The lanes of the wavefront that exist, as if they had not diverged: where they have, a device would exchange values
// among fewer, and the emulator reports that.
SIMT_MODEL inline uint64_t existing_lanes() {
  unsigned threads = simt::block->threads.x * simt::block->threads.y * simt::block->threads.z;
  unsigned left = threads - (simt::self->id & ~63u);
  return left >= 64 ? ~0ull : (1ull << left) - 1;
}

struct Word {
  int value, result;
  unsigned from;
};
SIMT_MODEL inline void permute(void** packs, simt::Thread**, unsigned lanes) {
  for (unsigned i = 0; i < lanes; i++) {
    Word* to = (Word*)packs[i];
    if (!to) continue;
    if (to->from >= lanes || !packs[to->from])
      simt::fail("collective", "ds_bpermute: lane %u reads lane %u, which takes no part", i, to->from);
    to->result = ((Word*)packs[to->from])->value;
  }
}

}  // namespace rocm

SIMT_MODEL inline void __builtin_amdgcn_fence(int, const char* scope) { simt::fence(scope[0] == 'w'); }
inline void __builtin_amdgcn_s_barrier(int line = __builtin_LINE()) { simt::sync(0, 0, line); }
inline void __builtin_amdgcn_wave_barrier(int line = __builtin_LINE()) { simt::sync_warp(rocm::existing_lanes(), line); }

// How many of a wavefront's lower lanes a mask names: all ones give the lane's own number.
SIMT_MODEL inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned add) {
  unsigned lane = simt::self->lane, below = lane >= 32 ? ~0u : (1u << lane) - 1;
  return add + (unsigned)__builtin_popcount(mask & below);
}
SIMT_MODEL inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned add) {
  unsigned lane = simt::self->lane, below = lane <= 32 ? 0 : (1u << (lane - 32)) - 1;
  return add + (unsigned)__builtin_popcount(mask & below);
}

// Each lane reads the value of the lane whose number is a fourth of `address`, which wraps at the wavefront's end.
SIMT_MODEL inline int __builtin_amdgcn_ds_bpermute(int address, int value, int line = __builtin_LINE()) {
  rocm::Word pack{value, 0, (unsigned)address / 4 % 64};
  simt::meet("ds_bpermute", 1, rocm::existing_lanes(), &pack, rocm::permute, line);
  return pack.result;
}
SIMT_MODEL inline unsigned long __builtin_amdgcn_ballot_w64(bool holds, int line = __builtin_LINE()) {
  return simt::vote("ballot", holds, rocm::existing_lanes(), line).yes;
}
