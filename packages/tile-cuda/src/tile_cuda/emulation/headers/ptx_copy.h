// cp.async: copies from global to shared memory that complete later. The bytes behind the source's size become zero.
#pragma once
#include "cuda_language.h"
#include "ptx_registers.h"

namespace ptx {

SIMT_MODEL inline void copy_async(const char* name, unsigned to, reg_l from, long long bytes, reg_r valid, bool any_size) {
  if (bytes != 16 && !(any_size && (bytes == 4 || bytes == 8)))
    simt::fail("async", "%s of %lld bytes: %s", name, bytes, any_size ? "4, 8 and 16 are legal" : "only 16 are legal");
  if (valid > bytes) simt::fail("async", "%s of %lld bytes takes %u from its source", name, bytes, valid);
  simt::require_aligned(shared(to), (unsigned)bytes);
  simt::require_aligned((const void*)from, (unsigned)bytes);
  simt::async_copy(0, shared(to), (const void*)from, (unsigned)bytes, valid);
}

#define PTX_COPY(name, text, any_size)                                                               \
  SIMT_MODEL inline void name(int, reg_r to, reg_l from, long long bytes) {                          \
    copy_async(text, to, from, bytes, (reg_r)bytes, any_size);                                       \
  }                                                                                                  \
  SIMT_MODEL inline void name(int, reg_r to, reg_l from, long long bytes, reg_r valid) {             \
    copy_async(text, to, from, bytes, valid, any_size);                                              \
  }
PTX_COPY(cp_async_ca_shared_global, "cp.async.ca", true)
PTX_COPY(cp_async_ca_shared_global_L2_128B, "cp.async.ca", true)
PTX_COPY(cp_async_cg_shared_global, "cp.async.cg", false)
PTX_COPY(cp_async_cg_shared_global_L2_128B, "cp.async.cg", false)
#undef PTX_COPY

SIMT_MODEL inline void cp_async_commit_group(int) { simt::async_commit(0); }
SIMT_MODEL inline void cp_async_wait_group(int, long long pending) {
  if (pending < 0) simt::fail("async", "cp.async.wait_group %lld", pending);
  simt::async_wait(0, (unsigned)pending);
}
SIMT_MODEL inline void cp_async_wait_all(int) {
  simt::async_commit(0);
  simt::async_wait(0, 0);
}

}  // namespace ptx
