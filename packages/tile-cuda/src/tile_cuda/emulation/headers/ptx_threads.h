// Shuffles, votes, barriers and fences.
#pragma once
#include "ptx_registers.h"

namespace ptx {

enum Shuffle { IDX, UP, DOWN, BFLY };

struct Shuffled {
  reg_l value, result;
  unsigned from;
};

SIMT_MODEL inline void exchange(void** packs, simt::Thread**, unsigned lanes) {
  for (unsigned i = 0; i < lanes; i++) {
    Shuffled* to = (Shuffled*)packs[i];
    if (!to) continue;
    if (to->from >= lanes || !packs[to->from])
      simt::fail("collective", "shfl: lane %u takes the value of lane %u, which takes no part", i, to->from);
    to->result = ((Shuffled*)packs[to->from])->value;
  }
}

// `control` holds a bound of the source lane (bits 4:0) and the lane bits that stay within a segment (bits 12:8).
SIMT_MODEL inline reg_l shuffle(Shuffle mode, reg_l value, unsigned by, unsigned control, unsigned mask, bool& inside, int line) {
  unsigned lane = simt::self->lane, segment = control >> 8 & 31, bound = control & 31;
  unsigned first = lane & segment, last = first | (bound & ~segment), from = lane;
  by &= 31;
  switch (mode) {
    case IDX: from = first | (by & ~segment), inside = from <= last; break;
    case UP: from = lane - by, inside = (int)from >= (int)last; break;
    case DOWN: from = lane + by, inside = from <= last; break;
    case BFLY: from = lane ^ by, inside = from <= last; break;
  }
  Shuffled pack{value, value, inside ? from : lane};
  simt::meet("shfl", 1, mask, &pack, exchange, line);
  return pack.result;
}

#define PTX_SHUFFLE(name, mode)                                                                              \
  SIMT_MODEL inline void shfl_sync_##name##_b32(int line, reg_r& d, reg_r a, reg_r b, reg_r c, reg_r mask) { \
    bool inside;                                                                                             \
    d = (reg_r)shuffle(mode, a, b, c, mask, inside, line);                                                   \
  }                                                                                                          \
  SIMT_MODEL inline void shfl_sync_##name##_b32(int line, Both<reg_r> d, reg_r a, reg_r b, reg_r c, reg_r mask) { \
    bool inside;                                                                                             \
    d.value = (reg_r)shuffle(mode, a, b, c, mask, inside, line);                                             \
    d.predicate = inside;                                                                                    \
  }
PTX_SHUFFLE(idx, IDX)
PTX_SHUFFLE(up, UP)
PTX_SHUFFLE(down, DOWN)
PTX_SHUFFLE(bfly, BFLY)
#undef PTX_SHUFFLE

SIMT_MODEL inline simt::Votes vote(bool mine, unsigned mask, int line) { return simt::vote("vote", mine, mask, line); }
SIMT_MODEL inline void vote_sync_ballot_b32(int line, reg_r& d, bool p, reg_r mask) { d = (reg_r)vote(p, mask, line).yes; }
SIMT_MODEL inline void vote_sync_any_pred(int line, bool& d, bool p, reg_r mask) { d = vote(p, mask, line).yes != 0; }
SIMT_MODEL inline void vote_sync_all_pred(int line, bool& d, bool p, reg_r mask) {
  simt::Votes v = vote(p, mask, line);
  d = v.yes == v.all;
}
SIMT_MODEL inline void vote_sync_uni_pred(int line, bool& d, bool p, reg_r mask) {
  simt::Votes v = vote(p, mask, line);
  d = v.yes == v.all || v.yes == 0;
}

// The lanes of the warp that exist, as if they had not diverged. Where they have, a collective of these lanes is
// reported: a device might run it with fewer.
inline reg_r active_lanes() {
  unsigned threads = simt::block->threads.x * simt::block->threads.y * simt::block->threads.z;
  unsigned left = threads - (simt::self->id & ~31u);
  return left >= 32 ? ~0u : (1u << left) - 1;
}
inline void activemask_b32(int, reg_r& d) { d = active_lanes(); }

// ----------------------------------------------------------------------------------------------------------- barriers

enum : unsigned { NAMED_BARRIERS = 16 };

SIMT_MODEL inline void barrier(bool wait, long long id, long long count, int line) {
  if (id < 0 || id >= NAMED_BARRIERS) simt::fail("barrier", "there is no barrier %lld, they are 0 to 15", id);
  if (count < 0 || count % 32) simt::fail("barrier", "barrier %lld waits for %lld threads, which are no whole warps", id, count);
  if (wait)
    simt::sync((unsigned)id, (unsigned)count, line);
  else
    simt::arrive((unsigned)id, (unsigned)count, line);
}

#define PTX_BARRIER(name)                                                                            \
  SIMT_MODEL inline void name##_sync(int line, long long id) { barrier(true, id, 0, line); }         \
  SIMT_MODEL inline void name##_sync(int line, long long id, long long count) {                      \
    barrier(true, id, count, line);                                                                  \
  }                                                                                                  \
  SIMT_MODEL inline void name##_arrive(int line, long long id, long long count) {                    \
    barrier(false, id, count, line);                                                                 \
  }
PTX_BARRIER(bar)
PTX_BARRIER(barrier)
#undef PTX_BARRIER
SIMT_MODEL inline void barrier_sync_aligned(int line, long long id) { barrier(true, id, 0, line); }
SIMT_MODEL inline void barrier_sync_aligned(int line, long long id, long long count) { barrier(true, id, count, line); }
SIMT_MODEL inline void barrier_arrive_aligned(int line, long long id, long long count) { barrier(false, id, count, line); }
SIMT_MODEL inline void bar_warp_sync(int line, reg_r mask) { simt::sync_warp(mask, line); }

// Memory is sequentially consistent here: a fence only orders accesses for the race detector.
#define PTX_FENCE(name, of_block) \
  inline void name(int) { simt::fence(of_block); }
PTX_FENCE(membar_cta, true)
PTX_FENCE(membar_gl, false)
PTX_FENCE(membar_sys, false)
PTX_FENCE(fence_acq_rel_cta, true)
PTX_FENCE(fence_acq_rel_gpu, false)
PTX_FENCE(fence_acq_rel_sys, false)
PTX_FENCE(fence_sc_cta, true)
PTX_FENCE(fence_sc_gpu, false)
PTX_FENCE(fence_sc_sys, false)
#undef PTX_FENCE

}  // namespace ptx
