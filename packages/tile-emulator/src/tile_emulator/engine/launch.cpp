// A launch: the blocks of the grid one after the other, or those of a cluster together.
#include <link.h>
#include <unistd.h>

#include "core.h"

namespace simt {

Launch* launch;
unsigned char *image_low, *image_high;  // of the kernel

static void find_image() {
  dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t, void*) {
        unsigned char* base = (unsigned char*)info->dlpi_addr;
        uintptr_t low = ~(uintptr_t)0, high = 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          if (part.p_vaddr < low) low = part.p_vaddr;
          if (part.p_vaddr + part.p_memsz > high) high = part.p_vaddr + part.p_memsz;
        }
        unsigned char* entry = (unsigned char*)launch->entry;
        if (!high || entry < base + low || entry >= base + high) return 0;
        image_low = base, image_high = base + high;
        return 1;
      },
      nullptr);
}

static void make_threads() {
  unsigned each = launch->threads.x * launch->threads.y * launch->threads.z;
  for (unsigned r = 0; r < launch->cluster; r++) {
    Cta* cta = (Cta*)allocate(sizeof(Cta));
    memset((void*)cta, 0, sizeof(Cta));
    cta->grid = launch->grid, cta->threads = launch->threads;
    cta->rank = r, cta->ranks = launch->cluster, cta->shared_bytes = launch->shared_bytes;
    ctas.push(cta);
    for (unsigned t = 0; t < each; t++) {
      Fiber* f = (Fiber*)allocate(sizeof(Fiber));
      memset((void*)f, 0, sizeof(Fiber));
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
  for (unsigned r = 0; r < ctas.size; r++) ctas[r]->index = Dim3{x * launch->cluster + r, y, z};
  async_start();
  sync_start();
  clocks_start();
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
  find_image();
  make_threads();
  map_memory();
  map_fibers();
  catch_signals();
  Dim3 n{l->grid.x / l->cluster, l->grid.y, l->grid.z};
  unsigned long long total = (unsigned long long)n.x * n.y * n.z;
  for (unsigned long long i = 0; i < total; i++) {
    unsigned long long k = option(REVERSE) ? total - 1 - i : i;
    run_cluster((unsigned)(k % n.x), (unsigned)(k / n.x % n.y), (unsigned)(k / n.x / n.y));
  }
  finish("done");
}
