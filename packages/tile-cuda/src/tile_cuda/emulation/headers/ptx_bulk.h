// cp.async.bulk: copies of contiguous bytes by the asynchronous proxy, and the groups of copies that threads wait for.
//
// PTX ISA, "cp.async.bulk": addresses and sizes are multiples of 16 bytes. A copy into shared memory completes on an
// mbarrier of the block that receives it; one out of it belongs to the bulk groups of the thread. `wait_group.read`
// waits until the sources were read, `wait_group` also until the destinations are written.
#pragma once
#include "ptx_barrier.h"

namespace ptx {

// Streams of the engine: what threads commit and wait for.
enum : unsigned { BULK_READS = 1, BULK_WRITES = 2 };

SIMT_MODEL inline void require_bulk(const char* name, const void* a, const void* b, unsigned bytes) {
  if (bytes % 16) simt::fail("async", "%s of %u bytes: multiples of 16 are legal", name, bytes);
  simt::require_aligned(a, 16);
  simt::require_aligned(b, 16);
}

SIMT_MODEL inline void copy_bytes(void* to, const void* from, unsigned bytes) {
  simt::access(from, bytes, false);
  simt::access(to, bytes, true);
  __builtin_memcpy(to, from, bytes);
}

// Copies are not ordered with each other: each is a queue of its own.
SIMT_MODEL inline unsigned fresh_queue() {
  static unsigned issued;
  return issued++ & 0x7fffffffu;
}

// ------------------------------------------------------------------------------------------------- into shared memory

struct BulkLoad {
  unsigned char* to;
  const unsigned char* from;
  unsigned bytes, rank;  // of the block that receives it
  unsigned source;       // the block whose shared memory it comes from, or that again
};
SIMT_MODEL inline void load_bulk(void* payload) {
  const BulkLoad& it = *(BulkLoad*)payload;
  simt::require_running(it.rank);
  simt::require_running(it.source);
  copy_bytes(it.to, it.from, it.bytes);
}

SIMT_MODEL inline void bulk_to_shared(unsigned to, const void* from, unsigned bytes, unsigned barrier, bool shares = false) {
  require_bulk("cp.async.bulk", in_cluster(to), from, bytes);
  if (rank_of(to) != rank_of(barrier)) simt::fail("async", "a copy into shared memory of one block completes on a barrier of another");
  BulkLoad load{in_cluster(to), (const unsigned char*)from, bytes, rank_of(to), shares ? simt::block->rank : rank_of(to)};
  if (bytes) simt::async_signal(fresh_queue(), simt::OTHER_PROXY, load_bulk, &load, sizeof load, in_cluster(barrier), bytes);
}

SIMT_MODEL inline void bulk_load(int, reg_r to, reg_l from, reg_r bytes, reg_r barrier) {
  bulk_to_shared(to, (const void*)from, bytes, barrier);
}
SIMT_MODEL inline void bulk_load_hint(int line, reg_r to, reg_l from, reg_r bytes, reg_r barrier, reg_l) {
  bulk_load(line, to, from, bytes, barrier);
}
SIMT_MODEL inline void bulk_load_multicast(int, reg_r to, reg_l from, reg_r bytes, reg_r barrier, reg_h blocks) {
  require_multicast(to, barrier, blocks);
  for (unsigned rank = 0; rank < 16; rank++)
    if (blocks >> rank & 1) bulk_to_shared(of_block(to, rank), (const void*)from, bytes, of_block(barrier, rank));
}
SIMT_MODEL inline void bulk_load_multicast_hint(int line, reg_r to, reg_l from, reg_r bytes, reg_r barrier, reg_h blocks, reg_l) {
  bulk_load_multicast(line, to, from, bytes, barrier, blocks);
}
// From shared memory of this block to that of another one.
SIMT_MODEL inline void bulk_to_block(int, reg_r to, reg_r from, reg_r bytes, reg_r barrier) {
  if (!cluster_dims.x)
    simt::fail("cluster", "a copy from shared memory to that of a block of the cluster, in a launch without clusters: an illegal instruction; __cluster_dims__(1, 1, 1) makes it legal");
  bulk_to_shared(to, shared(from), bytes, barrier, true);
}

// ----------------------------------------------------------------------------------------------- out of shared memory

// Two operations share the bytes between them: one reads, the other writes.
struct BulkStore {
  unsigned char* held;
  unsigned char* to;
  const unsigned char* from;
  unsigned bytes;
};
SIMT_MODEL inline void read_bulk(void* payload) {
  const BulkStore& it = *(BulkStore*)payload;
  simt::access(it.from, it.bytes, false);
  __builtin_memcpy(it.held, it.from, it.bytes);
}
SIMT_MODEL inline void write_bulk(void* payload) {
  const BulkStore& it = *(BulkStore*)payload;
  simt::access(it.to, it.bytes, true);
  __builtin_memcpy(it.to, it.held, it.bytes);
  __builtin_free(it.held);
}
SIMT_MODEL inline void bulk_store(int, reg_l to, reg_r from, reg_r bytes) {
  require_bulk("cp.async.bulk", (const void*)to, shared(from), bytes);
  BulkStore store{(unsigned char*)__builtin_malloc(bytes + 1), (unsigned char*)to, shared(from), bytes};
  simt::async_run(BULK_READS, simt::OTHER_PROXY, read_bulk, &store, sizeof store);
  simt::async_run(BULK_WRITES, simt::OTHER_PROXY, write_bulk, &store, sizeof store);
}
SIMT_MODEL inline void bulk_store_hint(int line, reg_l to, reg_r from, reg_r bytes, reg_l) { bulk_store(line, to, from, bytes); }

template <class Operation, class T>
SIMT_MODEL void reduce_bulk(void* payload) {
  const BulkStore& it = *(BulkStore*)payload;
  typedef typename Stored<T>::type S;
  for (unsigned i = 0; i < it.bytes; i += sizeof(S)) {
    S by;
    __builtin_memcpy(&by, it.held + i, sizeof by);
    atomic<Operation, T>(it.to + i, by);
  }
  __builtin_free(it.held);
}
template <class Operation, class T>
SIMT_MODEL void bulk_reduce(int, reg_l to, reg_r from, reg_r bytes) {
  require_bulk("cp.reduce.async.bulk", (const void*)to, shared(from), bytes);
  BulkStore store{(unsigned char*)__builtin_malloc(bytes + 1), (unsigned char*)to, shared(from), bytes};
  simt::async_run(BULK_READS, simt::OTHER_PROXY, read_bulk, &store, sizeof store);
  simt::async_run(BULK_WRITES, simt::OTHER_PROXY, reduce_bulk<Operation, T>, &store, sizeof store);
}

SIMT_MODEL inline void bulk_commit(int) {
  simt::async_commit(BULK_READS);
  simt::async_commit(BULK_WRITES);
}
SIMT_MODEL inline void bulk_wait_read(int, long long pending) {
  if (pending < 0) simt::fail("async", "cp.async.bulk.wait_group %lld", pending);
  simt::async_wait(BULK_READS, (unsigned)pending);
}
SIMT_MODEL inline void bulk_wait(int line, long long pending) {
  bulk_wait_read(line, pending);
  simt::async_wait(BULK_WRITES, (unsigned)pending);
}

// Hints move no data that a kernel can see.
SIMT_MODEL inline void prefetch_bulk(int, reg_l from, reg_r bytes) { require_bulk("cp.async.bulk.prefetch", (const void*)from, (const void*)from, bytes); }

}  // namespace ptx
