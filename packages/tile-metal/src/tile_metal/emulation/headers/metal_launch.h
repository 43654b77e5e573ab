// How a launch calls a kernel: its buffers by number, its built-in values by attribute.
#pragma once
#include "metal_vectors.h"
#include "simt.h"

namespace metal_model {

// What a parameter of the kernel gets: a buffer by its number, or a built-in value. `prepare` writes these from the
// parameter's attribute.
enum Source : int {
  thread_position_in_grid = -100,
  threadgroup_position_in_grid,
  thread_position_in_threadgroup,
  threads_per_threadgroup,
  threadgroups_per_grid,
  threads_per_grid,
  thread_index_in_threadgroup,
  thread_index_in_simdgroup,
  simdgroup_index_in_threadgroup,
  simdgroups_per_threadgroup,
  threads_per_simdgroup,
};

// A parameter of the launch: an array or a scalar, whose place in the structure of all scalars is given.
struct Parameter {
  bool scalar;
  unsigned bytes, offset;
};

SIMT_MODEL inline simt::Dim3 times(simt::Dim3 a, simt::Dim3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
SIMT_MODEL inline simt::Dim3 plus(simt::Dim3 a, simt::Dim3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }

SIMT_MODEL inline simt::Dim3 position(int source) {
  const simt::Thread& t = *simt::self;
  const simt::Block& b = *simt::block;
  switch (source) {
    case thread_position_in_grid: return plus(times(b.index, b.threads), t.index);
    case threadgroup_position_in_grid: return b.index;
    case thread_position_in_threadgroup: return t.index;
    case threads_per_threadgroup: return b.threads;
    case threadgroups_per_grid: return b.grid;
    case threads_per_grid: return times(b.grid, b.threads);
  }
  simt::fail("launch", "an unknown position attribute");
}
SIMT_MODEL inline unsigned number(int source) {
  const simt::Dim3& threads = simt::block->threads;
  switch (source) {
    case thread_index_in_threadgroup: return simt::self->id;
    case thread_index_in_simdgroup: return simt::self->lane;
    case simdgroup_index_in_threadgroup: return simt::self->warp;
    case simdgroups_per_threadgroup: return (threads.x * threads.y * threads.z + 31) / 32;
    case threads_per_simdgroup: return 32;
  }
  return position(source).x;
}

struct Buffers {
  void* at[31];
};

template <class T>
struct Given {
  static_assert(same<T, uint> || same<T, ushort>, "a built-in value is of uint or ushort, alone or in a vector");
  enum { IS_BUFFER = 0, STRUCT_BYTES = 0 };
  SIMT_MODEL static T get(int source, const Buffers&) { return (T)number(source); }
};
template <class T, int N>
struct Given<metal::vec<T, N>> {
  static_assert(same<T, uint> || same<T, ushort>, "a built-in value is of uint or ushort, alone or in a vector");
  static_assert(N == 2 || N == 3, "a position has 2 or 3 elements");
  enum { IS_BUFFER = 0, STRUCT_BYTES = 0 };
  SIMT_MODEL static metal::vec<T, N> get(int source, const Buffers&) {
    if (source >= thread_index_in_threadgroup) simt::fail("launch", "an index or a count is no vector");
    simt::Dim3 found = position(source);
    metal::vec<T, N> v;
    v[0] = (T)found.x, v[1] = (T)found.y;
    if constexpr (N == 3) v[2] = (T)found.z;
    return v;
  }
};
template <class T>
struct Given<T*> {
  enum { IS_BUFFER = 1, STRUCT_BYTES = 0 };
  SIMT_MODEL static T* get(int source, const Buffers& buffers) { return (T*)buffers.at[source]; }
};
template <class T>
struct Given<T&> {
  enum { IS_BUFFER = 1, STRUCT_BYTES = __is_class(T) && !same<T, half> && !same<T, const half> &&
                                               !same<T, bfloat> && !same<T, const bfloat>
                                           ? (int)sizeof(T)
                                           : 0 };
  SIMT_MODEL static T& get(int source, const Buffers& buffers) { return *(T*)buffers.at[source]; }
};

template <class... A, unsigned... I>
SIMT_MODEL inline void call(void (*entry)(A...), const int* sources, const Buffers& buffers,
                            simt::detail::Sequence<I...>) {
  (void)sources;
  entry(Given<A>::get(sources[I], buffers)...);
}

// PARAMETERS of the launch, SCALARS of them, which take BYTES in a structure. The kernel takes either that structure,
// behind all arrays, or every parameter in a buffer of its own.
template <int PARAMETERS, int SCALARS, int BYTES, class... A>
SIMT_MODEL inline void launch(void (*entry)(A...), const int* sources, int threads, const Parameter* parameters,
                              void** args) {
  constexpr int buffers_n = (0 + ... + Given<A>::IS_BUFFER), struct_bytes = (0 + ... + Given<A>::STRUCT_BYTES);
  constexpr bool together = SCALARS && struct_bytes;
  static_assert(buffers_n == (together ? PARAMETERS - SCALARS + 1 : PARAMETERS),
                "the kernel's buffers are not the parameters of the launch");
  static_assert(!together || struct_bytes == BYTES, "the structure of scalars is not that of the launch");
  unsigned all = simt::block->threads.x * simt::block->threads.y * simt::block->threads.z;
  if (threads && all > (unsigned)threads)
    simt::fail("launch", "a threadgroup of %u threads, the kernel declares at most %d", all, threads);
  alignas(16) unsigned char values[BYTES + 16];
  Buffers buffers{};
  int next = 0;
  for (int i = 0; i < PARAMETERS; i++) {
    const Parameter& p = parameters[i];
    if (together && p.scalar)
      __builtin_memcpy(values + p.offset, args[i], p.bytes);
    else
      buffers.at[next++] = args[i];
  }
  if (together) buffers.at[next] = values;
  for (unsigned i = 0; i < sizeof...(A); i++)
    if (sources[i] >= buffers_n) simt::fail("launch", "buffer %d does not exist", sources[i]);
  asm("" : "+r"(entry));  // a function of its own: not inlined here, where nothing is instrumented
  call(entry, sources, buffers, typename simt::detail::Count<sizeof...(A)>::type());
}

// The slab of threadgroup memory that a text declares: what lies in it must be what the launch knows of.
template <unsigned BYTES>
SIMT_MODEL inline unsigned char* slab() {
  if (simt::block->shared_bytes != BYTES)
    simt::fail("shared", "%u bytes of threadgroup memory, the launch has %u", BYTES, simt::block->shared_bytes);
  return simt::block->shared;
}

}  // namespace metal_model
