// A launch: the blocks of the grid one after the other, or those of a cluster together.
#include <link.h>
#include <unistd.h>

#include "core.h"

namespace simt {

Launch* launch;
unsigned char undefined_byte, undefined_bool;
unsigned char *image_low, *image_high;  // of the kernel

static unsigned char *engine_low, *engine_high;
static unsigned char *arena_low, *arena_high;  // of fibers and blocks

static void find_image(const void* inside, unsigned char** low, unsigned char** high) {
  struct Search {
    unsigned char *inside, *low, *high;
  } search{(unsigned char*)inside, nullptr, nullptr};
  dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t, void* data) {
        Search& found = *(Search*)data;
        unsigned char* base = (unsigned char*)info->dlpi_addr;
        uintptr_t end = 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end) end = part.p_vaddr + part.p_memsz;
        }
        if (found.inside < base || found.inside >= base + end) return 0;
        found.low = base, found.high = base + end;
        return 1;
      },
      &search);
  *low = search.low, *high = search.high;
}

// What kernels read of the engine: `self`, `block`, and what they point to.
bool of_engine(const void* p) {
  const unsigned char* c = (const unsigned char*)p;
  return (c >= engine_low && c < engine_high) || (c >= arena_low && c < arena_high);
}

static void make_threads() {
  unsigned each = launch->threads.x * launch->threads.y * launch->threads.z;
  size_t bytes = launch->cluster * (sizeof(Cta) + each * sizeof(Fiber));
  arena_low = (unsigned char*)allocate(bytes), arena_high = arena_low + bytes;
  memset((void*)arena_low, 0, bytes);
  Cta* cta = (Cta*)arena_low;
  Fiber* f = (Fiber*)(arena_low + launch->cluster * sizeof(Cta));
  for (unsigned r = 0; r < launch->cluster; r++, cta++) {
    cta->grid = launch->grid, cta->threads = launch->threads;
    cta->rank = r, cta->ranks = launch->cluster, cta->shared_bytes = launch->shared_bytes;
    ctas.push(cta);
    for (unsigned t = 0; t < each; t++, f++) {
      f->id = t, f->lane = t % launch->warp, f->warp = t / launch->warp;
      f->index = Dim3{t % launch->threads.x, t / launch->threads.x % launch->threads.y,
                      t / (launch->threads.x * launch->threads.y)};
      f->cta = cta, f->slot = (unsigned)fibers.size;
      cta->members.push(f);
      fibers.push(f);
    }
  }
  make_stacks((unsigned)fibers.size);
}

static void run_cluster(unsigned x, unsigned y, unsigned z) {
  Dim3 c = launch->clusters;
  for (unsigned r = 0; r < ctas.size; r++)
    ctas[r]->index = Dim3{x * c.x + r % c.x, y * c.y + r / c.x % c.y, z * c.z + r / (c.x * c.y)};
  async_start();
  registers_start();
  sync_start();
  clocks_start();
  order_start();
  memory_block_start();
  start_fibers();
  current = nullptr;
  async_end();
  counters.blocks += ctas.size;
}

}  // namespace simt

using namespace simt;

extern "C" unsigned simt_api() { return SIMT_API; }

// Does not return: the process ends with its last report.
extern "C" void simt_launch(Launch* l) {
  launch = l;
  // Far apart in every type: 0x7b7b7b7b is 1.3e36 and 0xc4c4c4c4 is -1574; no NaN, which minima would hide.
  undefined_byte = option(OTHER) ? 0xc4 : 0x7b;
  undefined_bool = option(OTHER) ? 0 : 1;
  find_image((const void*)l->entry, &image_low, &image_high);
  find_image((const void*)&launch, &engine_low, &engine_high);
  make_threads();
  map_memory();
  catch_signals();
  Dim3 n{l->grid.x / l->clusters.x, l->grid.y / l->clusters.y, l->grid.z / l->clusters.z};
  unsigned long long total = (unsigned long long)n.x * n.y * n.z;
  for (unsigned long long i = 0; i < total; i++) {
    unsigned long long k = option(REVERSE) ? total - 1 - i : i;
    run_cluster((unsigned)(k % n.x), (unsigned)(k / n.x % n.y), (unsigned)(k / n.x / n.y));
  }
  report_watches();
  finish("done");
}
