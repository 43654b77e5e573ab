// cp.async.bulk.tensor: copies of boxes of a tensor that a map describes.
//
// On a device a map is 128 opaque bytes, which the driver makes. Here they are a `Map`, which emulation/tensor_map.py
// makes. PTX ISA, "Tensor Map": elements outside of the tensor are read as zeros and never written; their bytes count
// as transferred. A device writes whole chunks of 16 bytes of a row all the same, also those that its end is in
// (recorded: edge_store_*, edge_reduce_*). "Swizzling Modes": in shared memory, chunks of 16 bytes are exchanged by bits of their address.
// "Tiled mode", tile::gather4 and tile::scatter4: a column, then four rows in any order; the map's box is one row, and
// the four lie one after the other in shared memory. No device has recorded these two modes: they are uncalibrated.
#pragma once
#include "ptx_bulk.h"

namespace ptx {

enum : unsigned { MOST_DIMENSIONS = 5, MAP_MARK = 0x7a };

struct Map {
  unsigned char* address;
  uint64_t extents[MOST_DIMENSIONS];      // the innermost first
  uint64_t strides[MOST_DIMENSIONS - 1];  // bytes from element to element of all but the innermost
  uint16_t box[MOST_DIMENSIONS];
  uint8_t mark, dimensions, element_bytes, type, swizzle;  // swizzle: log2 of the chunks of 16 bytes that are exchanged
  uint8_t nan;  // elements outside of the tensor are NaN: 0x7ff7 in each of their halves
  uint8_t spare[32];
};
static_assert(sizeof(Map) == 128, "a tensor map has 128 bytes");

enum MapType : uint8_t {
  MAP_U8, MAP_U16, MAP_U32, MAP_S32, MAP_U64, MAP_S64, MAP_F16, MAP_F32, MAP_F64, MAP_BF16
};

// Where a copy is: everything is known at its issue but for the data.
struct TensorCopy {
  Map map;
  int at[MOST_DIMENSIONS];
  unsigned char* shared;
  unsigned char* held;  // of stores: bytes between reading and writing
  unsigned rank, inner, rows, bytes;
  bool picked;  // rows are at[1], at[2], ...; otherwise they begin at at[1]
};

SIMT_MODEL inline void exchange_chunk(uintptr_t& address, unsigned swizzle) {
  address ^= (address >> 7 & ((1u << swizzle) - 1)) << 4;
}
SIMT_MODEL inline unsigned char* swizzled(unsigned char* base, unsigned offset, unsigned swizzle) {
  uintptr_t address = (uintptr_t)(base + offset);
  exchange_chunk(address, swizzle);
  return (unsigned char*)address;
}

// Address of the first element of a row of the box, or null if the row is outside of the tensor.
SIMT_MODEL inline unsigned char* row_of(const TensorCopy& it, unsigned row) {
  const Map& map = it.map;
  unsigned char* address = map.address;
  if (it.picked) {
    int64_t index = it.at[1 + row];
    return index < 0 || index >= (int64_t)map.extents[1] ? nullptr : address + (uint64_t)index * map.strides[0];
  }
  for (unsigned d = 1; d < map.dimensions; d++) {
    unsigned n = map.box[d];
    int64_t index = (int64_t)it.at[d] + (int64_t)(row % n);
    if (index < 0 || index >= (int64_t)map.extents[d]) return nullptr;
    address += (uint64_t)index * map.strides[d - 1];
    row /= n;
  }
  return address;
}

SIMT_MODEL inline void load_tensor(void* payload) {
  const TensorCopy& it = *(TensorCopy*)payload;
  const Map& map = it.map;
  simt::require_running(it.rank);
  unsigned n = map.box[0], size = map.element_bytes;
  unsigned char chunk[16];
  for (unsigned row = 0; row < it.rows; row++) {
    const unsigned char* from = row_of(it, row);
    for (unsigned first = 0; first < it.inner; first += 16) {
      for (unsigned i = 0; i < sizeof chunk; i++) chunk[i] = map.nan ? (i & 1 ? 0x7f : 0xf7) : 0;
      for (unsigned i = 0; from && i < 16 / size && first / size + i < n; i++) {
        int64_t index = (int64_t)it.at[0] + (int64_t)(first / size + i);
        if (index < 0 || index >= (int64_t)map.extents[0]) continue;
        simt::access(from + index * size, size, false);
        __builtin_memcpy(chunk + i * size, from + index * size, size);
      }
      unsigned char* to = swizzled(it.shared, row * it.inner + first, map.swizzle);
      simt::access(to, 16, true);
      __builtin_memcpy(to, chunk, 16);
    }
  }
}

SIMT_MODEL inline void read_tensor(void* payload) {
  const TensorCopy& it = *(TensorCopy*)payload;
  for (unsigned offset = 0; offset < it.bytes; offset += 16) {
    const unsigned char* from = swizzled(it.shared, offset, it.map.swizzle);
    simt::access(from, 16, false);
    __builtin_memcpy(it.held + offset, from, 16);
  }
}

struct Store {
  template <class T>
  SIMT_MODEL static void apply(unsigned char* to, const unsigned char* from) {
    typedef typename Stored<T>::type S;
    simt::access(to, sizeof(S), true);
    __builtin_memcpy(to, from, sizeof(S));
  }
};
template <class Operation>
struct Reduce {
  template <class T>
  SIMT_MODEL static void apply(unsigned char* to, const unsigned char* from) {
    typename Stored<T>::type by;
    __builtin_memcpy(&by, from, sizeof by);
    atomic<Operation, T>(to, by);
  }
};

template <class Action, class T>
SIMT_MODEL inline void write_elements(const TensorCopy& it) {
  const Map& map = it.map;
  int64_t chunk = 16 / map.element_bytes, end = ((int64_t)map.extents[0] + chunk - 1) / chunk * chunk;
  for (unsigned row = 0; row < it.rows; row++) {
    unsigned char* to = row_of(it, row);
    for (unsigned i = 0; to && i < map.box[0]; i++) {
      int64_t index = (int64_t)it.at[0] + (int64_t)i;
      if (index < 0 || index >= end) continue;
      Action::template apply<T>(to + index * map.element_bytes, it.held + row * it.inner + i * map.element_bytes);
    }
  }
  __builtin_free(it.held);
}

SIMT_MODEL inline void write_tensor(void* payload) {
  const TensorCopy& it = *(TensorCopy*)payload;
  switch (it.map.element_bytes) {
    case 1: return write_elements<Store, u8>(it);
    case 2: return write_elements<Store, u16>(it);
    case 4: return write_elements<Store, u32>(it);
    default: return write_elements<Store, u64>(it);
  }
}
SIMT_MODEL inline void no_reduction(const Map& map) {
  simt::fail("async", "cp.reduce.async.bulk.tensor has no such operation for the elements of the map (type %u)", map.type);
}
SIMT_MODEL inline void add_tensor(void* payload) {
  const TensorCopy& it = *(TensorCopy*)payload;
  switch (it.map.type) {
    case MAP_U32: return write_elements<Reduce<Add>, u32>(it);
    case MAP_S32: return write_elements<Reduce<Add>, s32>(it);
    case MAP_U64: return write_elements<Reduce<Add>, u64>(it);
    case MAP_F32: return write_elements<Reduce<Add>, float>(it);
    case MAP_F16: return write_elements<Reduce<Add>, F16>(it);
    case MAP_BF16: return write_elements<Reduce<Add>, Bf16>(it);
    default: no_reduction(it.map);
  }
}
template <class Operation>
SIMT_MODEL void order_tensor(void* payload) {  // minima and maxima
  const TensorCopy& it = *(TensorCopy*)payload;
  switch (it.map.type) {
    case MAP_U32: return write_elements<Reduce<Operation>, u32>(it);
    case MAP_S32: return write_elements<Reduce<Operation>, s32>(it);
    case MAP_U64: return write_elements<Reduce<Operation>, u64>(it);
    case MAP_S64: return write_elements<Reduce<Operation>, s64>(it);
    case MAP_F16: return write_elements<Reduce<Operation>, F16>(it);
    case MAP_BF16: return write_elements<Reduce<Operation>, Bf16>(it);
    default: no_reduction(it.map);
  }
}
template <class Operation>
SIMT_MODEL void bits_of_tensor(void* payload) {
  const TensorCopy& it = *(TensorCopy*)payload;
  switch (it.map.type) {
    case MAP_U32: case MAP_S32: return write_elements<Reduce<Operation>, u32>(it);
    case MAP_U64: return write_elements<Reduce<Operation>, u64>(it);
    default: no_reduction(it.map);  // of MAP_S64 too: an H200 ends the kernel with an illegal instruction
  }
}

// --------------------------------------------------------------------------------------------------------- issuing

template <class R, unsigned N>
SIMT_MODEL inline TensorCopy started(reg_l map, unsigned dimensions, const V<R, N>& at, unsigned char* shared) {
  TensorCopy it{};
  simt::require_aligned((const void*)map, 64);
  __builtin_memcpy(&it.map, (const void*)map, sizeof it.map);
  if (it.map.mark != MAP_MARK) simt::fail("async", "the address of a tensor map is that of something else");
  if (it.map.dimensions != dimensions) simt::fail("async", "a copy of %u dimensions by a map of %u", dimensions, it.map.dimensions);
  for (unsigned d = 0; d < N; d++) it.at[d] = (int)at[d];
  if (it.at[0] * (long long)it.map.element_bytes % 16)
    simt::fail("async", "a box begins at element %d of its rows, which is no multiple of 16 bytes: an illegal instruction", it.at[0]);
  it.inner = (it.map.box[0] * it.map.element_bytes + 15) / 16 * 16;
  it.shared = shared;
  simt::require_aligned(shared, 128);
  return it;
}

// A box that begins at N coordinates.
struct Box {
  template <class R, unsigned N>
  SIMT_MODEL static TensorCopy of(reg_l map, const V<R, N>& at, unsigned char* shared) {
    TensorCopy it = started(map, N, at, shared);
    it.rows = 1;
    for (unsigned d = 1; d < N; d++) it.rows *= it.map.box[d];
    it.bytes = it.inner * it.rows;
    return it;
  }
};

// Four rows of a matrix, from one column on.
struct FourRows {
  template <class R>
  SIMT_MODEL static TensorCopy of(reg_l map, const V<R, 5>& at, unsigned char* shared) {
    TensorCopy it = started(map, 2, at, shared);
    if (it.map.box[1] != 1) simt::fail("async", "a copy of four rows by a map whose box has %u rows: an illegal instruction", it.map.box[1]);
    it.picked = true;
    it.rows = 4;
    it.bytes = it.inner * it.rows;
    return it;
  }
};

template <class Kind, class R, unsigned N>
SIMT_MODEL inline void tensor_to_shared(unsigned to, reg_l map, const V<R, N>& at, unsigned barrier) {
  TensorCopy it = Kind::of(map, at, in_cluster(to));
  if (rank_of(to) != rank_of(barrier)) simt::fail("async", "a copy into shared memory of one block completes on a barrier of another");
  it.rank = rank_of(to);
  simt::async_signal(fresh_queue(), simt::OTHER_PROXY, load_tensor, &it, sizeof it, in_cluster(barrier), it.bytes);
}

template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_load(int, reg_r to, const Memory<reg_l, C>& from, reg_r barrier) {
  tensor_to_shared<Kind>(to, from.address, from.more, barrier);
}
template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_load_hint(int line, reg_r to, const Memory<reg_l, C>& from, reg_r barrier, reg_l) {
  tensor_load<Kind>(line, to, from, barrier);
}
template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_load_multicast(int, reg_r to, const Memory<reg_l, C>& from, reg_r barrier, reg_h blocks) {
  require_multicast(to, barrier, blocks);
  for (unsigned rank = 0; rank < 16; rank++)
    if (blocks >> rank & 1) tensor_to_shared<Kind>(of_block(to, rank), from.address, from.more, of_block(barrier, rank));
}
template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_load_multicast_hint(int line, reg_r to, const Memory<reg_l, C>& from, reg_r barrier, reg_h blocks, reg_l) {
  tensor_load_multicast<Kind>(line, to, from, barrier, blocks);
}

// Which of equal rows is stored is open; those outside of the matrix are dropped.
SIMT_MODEL inline void require_distinct(const TensorCopy& it) {
  for (int i = 1; i < 5; i++)
    for (int j = i + 1; j < 5; j++)
      if (it.at[i] == it.at[j] && (unsigned long long)it.at[i] < it.map.extents[1])
        simt::fail("async", "row %d is stored twice by one copy of four rows: which comes last is open", it.at[i]);
}

template <class Kind, class C>
SIMT_MODEL inline void tensor_out(const Memory<reg_l, C>& to, reg_r from, simt::Effect write) {
  TensorCopy it = Kind::of(to.address, to.more, shared(from));
  for (int at : it.at)  // recorded for boxes: fault_store_*
    if (at < 0) simt::fail("async", "a box is stored at the negative coordinate %d: an illegal instruction", at);
  if (it.picked) require_distinct(it);
  it.held = (unsigned char*)__builtin_malloc(it.bytes);
  simt::async_run(BULK_READS, simt::OTHER_PROXY, read_tensor, &it, sizeof it);
  simt::async_run(BULK_WRITES, simt::OTHER_PROXY, write, &it, sizeof it);
}
template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_store(int, const Memory<reg_l, C>& to, reg_r from) { tensor_out<Kind>(to, from, write_tensor); }
template <class Kind = Box, class C>
SIMT_MODEL inline void tensor_store_hint(int line, const Memory<reg_l, C>& to, reg_r from, reg_l) { tensor_store<Kind>(line, to, from); }
#define PTX_TENSOR_REDUCTION(name, write) \
  template <class C>                      \
  SIMT_MODEL inline void tensor_##name(int, const Memory<reg_l, C>& to, reg_r from) { tensor_out<Box>(to, from, write); }
PTX_TENSOR_REDUCTION(add, add_tensor)
PTX_TENSOR_REDUCTION(min, order_tensor<Min>)
PTX_TENSOR_REDUCTION(max, order_tensor<Max>)
PTX_TENSOR_REDUCTION(and, bits_of_tensor<And>)
PTX_TENSOR_REDUCTION(or, bits_of_tensor<Or>)
PTX_TENSOR_REDUCTION(xor, bits_of_tensor<Xor>)
#undef PTX_TENSOR_REDUCTION

SIMT_MODEL inline void prefetch_map(int, reg_l map) { simt::require_aligned((const void*)map, 64); }
template <class C>
SIMT_MODEL inline void prefetch_tensor(int, const Memory<reg_l, C>&) {}

}  // namespace ptx
