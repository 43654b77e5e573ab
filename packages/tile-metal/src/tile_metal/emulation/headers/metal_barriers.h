// Barriers. The engine orders either all memory or none: a barrier of threadgroup memory orders device memory here,
// too, and one of device memory alone has no model.
#pragma once
#include "simt.h"

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }

}  // namespace metal

namespace metal_model {

enum Scope { SIMDGROUP, THREADGROUP };

SIMT_MODEL inline void barrier(const char* name, Scope scope, metal::mem_flags flags, int line) {
  if (flags == metal::mem_flags::mem_device)
    simt::fail("barrier", "%s that orders device memory alone has no model", name);
  bool orders = flags != metal::mem_flags::mem_none;
  if (!orders)
    simt::meet(name, scope == SIMDGROUP ? 1 : 0, ~0ull, nullptr, nullptr, line);
  else if (scope == SIMDGROUP)
    simt::sync_warp(~0ull, line);
  else
    simt::sync(0, 0, line);
}

}  // namespace metal_model

namespace metal {

inline void threadgroup_barrier_at(mem_flags flags, int place) {
  metal_model::barrier("threadgroup_barrier", metal_model::THREADGROUP, flags, place);
}
inline void simdgroup_barrier_at(mem_flags flags, int place) {
  metal_model::barrier("simdgroup_barrier", metal_model::SIMDGROUP, flags, place);
}

}  // namespace metal

#define threadgroup_barrier(...) threadgroup_barrier_at(__VA_ARGS__, SIMT_PLACE)
#define simdgroup_barrier(...) simdgroup_barrier_at(__VA_ARGS__, SIMT_PLACE)
