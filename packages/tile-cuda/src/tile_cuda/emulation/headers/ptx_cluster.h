// Clusters: addresses of other blocks' shared memory, and the barrier of all threads of a cluster.
#pragma once
#include "ptx_memory.h"

namespace ptx {

SIMT_MODEL inline void mapa_shared_cluster_u32(int, reg_r& d, reg_r address, reg_r rank) {
  if (rank >= simt::block->ranks)
    simt::fail("cluster", "mapa: the cluster has %u block(s), no block %u", simt::block->ranks, rank);
  d = (rank + 1) * WINDOW + address % WINDOW;
}

SIMT_MODEL inline void barrier_cluster_arrive(int line) { simt::arrive_cluster(true, line); }
SIMT_MODEL inline void barrier_cluster_arrive_relaxed(int line) { simt::arrive_cluster(false, line); }
SIMT_MODEL inline void barrier_cluster_wait(int line) { simt::wait_cluster(line); }
inline void fence_cluster(int) { simt::fence(false); }

// One lane of those that the mask names is chosen: the lowest.
struct Elected {
  unsigned mask;
};
SIMT_MODEL inline void elect(int line, unsigned mask, reg_r& lane, bool& mine) {
  simt::meet("elect", 1, mask, nullptr, nullptr, line);
  lane = (reg_r)__builtin_ctz(mask), mine = simt::self->lane == lane;
}
SIMT_MODEL inline void elect_sync(int line, Both<reg_r> d, reg_r mask) { elect(line, mask, d.value, d.predicate); }
SIMT_MODEL inline void elect_sync(int line, Both<Sink> d, reg_r mask) {
  reg_r lane;
  elect(line, mask, lane, d.predicate);
}

// Registers that a warpgroup gives back or takes: only the count is checked.
SIMT_MODEL inline void setmaxnreg(int line, long long registers) {
  if (registers < 24 || registers > 256 || registers % 8)
    simt::fail("collective", "setmaxnreg to %lld: legal are the multiples of 8 from 24 to 256", registers);
  simt::meet("setmaxnreg", 1, ~0ull, nullptr, nullptr, line);
}

// Dependent launches: kernels run one after the other here.
inline void griddepcontrol(int) {}

}  // namespace ptx
