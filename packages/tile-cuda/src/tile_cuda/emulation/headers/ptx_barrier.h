// mbarrier: objects in shared memory with phases, which count arrivals and bytes.
//
// PTX ISA, "Asynchronous Barrier": a phase ends when no arrival and no byte of it is pending. Up to 2^20 - 1 of each.
// Addresses of `shared::cluster` may be those of another block (ptx_cluster.h).
#pragma once
#include "ptx_cluster.h"

namespace ptx {

enum : unsigned { MOST_ARRIVALS = (1u << 20) - 1, MOST_BYTES = (1u << 20) - 1 };

SIMT_MODEL inline void mbarrier_init(int, reg_r address, long long arrivals) {
  if (arrivals < 1 || arrivals > MOST_ARRIVALS)
    simt::fail("phase", "mbarrier.init for %lld arrivals: 1 to %u are legal", arrivals, (unsigned)MOST_ARRIVALS);
  simt::phase_init(shared(address), (unsigned)arrivals);
}
SIMT_MODEL inline void mbarrier_inval(int, reg_r address) { simt::phase_destroy(shared(address)); }

SIMT_MODEL inline unsigned bytes_of_phase(long long bytes) {
  if (bytes < 0 || bytes > MOST_BYTES)
    simt::fail("phase", "a phase of %lld bytes: at most %u are legal", bytes, (unsigned)MOST_BYTES);
  return (unsigned)bytes;
}
SIMT_MODEL inline unsigned count_of_arrivals(long long arrivals) {
  if (arrivals < 1 || arrivals > MOST_ARRIVALS) simt::fail("phase", "mbarrier.arrive of %lld arrivals", arrivals);
  return (unsigned)arrivals;
}

SIMT_MODEL inline void mbarrier_arrive(int, reg_l& state, reg_r address, long long arrivals = 1) {
  state = simt::phase_arrive(shared(address), count_of_arrivals(arrivals), 0);
}
SIMT_MODEL inline void mbarrier_arrive_cluster(int, const Sink&, reg_r address, long long arrivals = 1) {
  simt::phase_arrive(in_cluster(address), count_of_arrivals(arrivals), 0);
}
SIMT_MODEL inline void mbarrier_arrive_expect_tx(int, reg_l& state, reg_r address, long long bytes) {
  state = simt::phase_arrive(shared(address), 1, bytes_of_phase(bytes));
}
SIMT_MODEL inline void mbarrier_arrive_expect_tx_cluster(int, const Sink&, reg_r address, long long bytes) {
  simt::phase_arrive(in_cluster(address), 1, bytes_of_phase(bytes));
}
SIMT_MODEL inline void mbarrier_expect_tx(int, reg_r address, long long bytes) {
  simt::phase_arrive(shared(address), 0, bytes_of_phase(bytes));
}
SIMT_MODEL inline void mbarrier_expect_tx_cluster(int, reg_r address, long long bytes) {
  simt::phase_arrive(in_cluster(address), 0, bytes_of_phase(bytes));
}

// `state` is the number of the phase in which the arrival was.
SIMT_MODEL inline void mbarrier_test(int, bool& ended, reg_r address, reg_l state) {
  ended = simt::phase_test(shared(address), (unsigned)(state & 1));
}
// A device may wait for a while in try_wait and still answer no; a text has to ask again in either case.
SIMT_MODEL inline void mbarrier_test_parity(int, bool& ended, reg_r address, reg_r parity) {
  if (parity > 1) simt::fail("phase", "the parity of a phase is 0 or 1, not %u", parity);
  ended = simt::phase_test(shared(address), parity);
}
SIMT_MODEL inline void mbarrier_test_parity(int line, bool& ended, reg_r address, reg_r parity, long long) {
  mbarrier_test_parity(line, ended, address, parity);  // the last operand is the longest wait of a device
}

// Arrives when the copies of cp.async that the thread has issued so far are complete.
SIMT_MODEL inline void mbarrier_arrive_after_copies(int, reg_r address) { simt::async_arrive(0, shared(address)); }

// What objects need that the thread has initialised, before the asynchronous proxy or other blocks use them.
SIMT_MODEL inline void fence_mbarrier_init(int) {
  simt::fence(false);
  simt::phases_publish();
}
SIMT_MODEL inline void fence_proxy_async(int) { simt::fence_proxy(); }

}  // namespace ptx
