// Regions: where arrays and shared memory lie, and where the state of their bytes is kept.
#include <sys/mman.h>

#include "core.h"

namespace simt {

// READ: by a plain read, READ_ATOMICALLY: by an atomic one, which no atomic write races with. ATOMIC: the last write was.
// FOREIGN: earlier blocks have written it; BEFORE: they have read it, and no block has written it.
enum CellFlag : unsigned short {
  WRITTEN = 1, READ = 2, INITIALISED = 4, ATOMIC = 8, FOREIGN = 16, BY_OTHER_PROXY = 32, READ_ATOMICALLY = 64, BEFORE = 128
};
enum : unsigned short { NO_WRITER = 0xffff };

struct Cell {
  Clk write_clock;  // FOREIGN, BEFORE: which of `origins`
  unsigned write_site;
  unsigned readers, async_readers;  // sets, see below
  unsigned epoch;                   // of the last access
  unsigned short writer, flags;
};

struct Region {
  char *low, *high;
  int buffer;      // or SHARED_SLAB, SHARED_STATIC
  unsigned flags;
  Cell** cells;    // pages of 2**shift bytes; only of large arrays there are several
  unsigned shift;
};

static Vec<Region> regions;
static Region* last_region;
static unsigned char* slabs;
static size_t slab_stride;

// Arrays lie far apart, so that an index that runs out of one does not come out in another.
static const uintptr_t ARRAYS_AT = 1ull << 37, SLABS = 1ull << 36, APART = 1ull << 33;

static void* map_at(uintptr_t where, size_t bytes, int flags, int file, unsigned long long offset) {
#ifdef MAP_FIXED_NOREPLACE
  flags |= MAP_FIXED_NOREPLACE;
#endif
  for (int tries = 0; tries < 64; tries++, where += APART) {
    void* p = mmap((void*)where, bytes, PROT_READ | PROT_WRITE, flags, file, (long)offset);
    if (p != MAP_FAILED) return p;
  }
  out_of_memory();
}

static void add_region(void* low, size_t bytes, int buffer, unsigned flags) {
  if (bytes) regions.push(Region{(char*)low, (char*)low + bytes, buffer, flags, nullptr, bytes > 1u << 26 ? 12u : 63u});
}

void map_memory() {
  uintptr_t next = ARRAYS_AT;
  for (unsigned i = 0; i < launch->buffers_n; i++) {
    Buffer& b = launch->buffers[i];
    unsigned char* pages = (unsigned char*)map_at(next, b.mapped, MAP_SHARED, launch->data, b.file_offset);
    next = (uintptr_t)pages + (b.mapped + 2 * APART - 1) / APART * APART;
    b.address = pages + b.start;
    add_region(b.address, b.bytes, (int)i, b.flags);
  }
  for (unsigned i = 0; i < launch->patches_n; i++) {
    const Patch& p = launch->patches[i];
    unsigned long long at;  // bytes from the start of the buffer
    memcpy(&at, launch->buffers[p.buffer].address + p.offset, 8);
    at += (unsigned long long)launch->buffers[p.target].address;
    memcpy(launch->buffers[p.buffer].address + p.offset, &at, 8);
  }
  size_t aligned = (launch->shared_bytes + 1023ull) / 1024 * 1024, pages = (aligned + 4095) / 4096 * 4096;
  slab_stride = pages + 4096;
  for (unsigned r = 0; r < launch->cluster && aligned; r++) {
    void* at = map_at(SLABS + r * slab_stride, pages, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char* slab = (unsigned char*)at + pages - aligned;
    if (!r) slabs = slab;
    ctas[r]->shared = slab;
    add_region(slab, launch->shared_bytes, SHARED_SLAB, 0);
  }
  if (launch->static_high > launch->static_low) {
    add_region(launch->static_low, (size_t)(launch->static_high - launch->static_low), SHARED_STATIC, 0);
    if (!aligned) ctas[0]->shared = launch->static_low;
  }
}

static void* map_lazily(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) out_of_memory();
  return p;
}

// The state of a byte; the state of those after it follows up to the end of its page.
static Cell* cell_of(Region& r, size_t at) {
  size_t size = (size_t)(r.high - r.low), page = (size_t)1 << r.shift;
  if (!r.cells) r.cells = (Cell**)map_lazily(((size >> r.shift) + 1) * sizeof(Cell*));
  Cell*& cells = r.cells[at >> r.shift];
  if (!cells) cells = (Cell*)map_lazily((size < page ? size : page) * sizeof(Cell));
  return cells + (at & (page - 1));
}

static Region* find(const void* p) {
  const char* c = (const char*)p;
  if (last_region && c >= last_region->low && c < last_region->high) return last_region;
  for (Region& r : regions)
    if (c >= r.low && c < r.high) return last_region = &r;
  return nullptr;
}

Place place_of(const void* p) {
  const char* c = (const char*)p;
  Place best{NOWHERE, 0, 0};
  unsigned long long distance = APART / 2;
  for (Region& r : regions) {
    unsigned long long d = c < r.low ? (unsigned long long)(r.low - c) : c < r.high ? 0 : (unsigned long long)(c - r.high) + 1;
    if (d >= distance) continue;
    distance = d;
    best = Place{r.buffer, (long long)(c - r.low), (unsigned long long)(r.high - r.low)};
  }
  return best;
}

}  // namespace simt
