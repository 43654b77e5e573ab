// Registers of asynchronous instructions: variables of a thread that an instruction reads or writes until it has been
// waited for.
//
// An access by the thread, or by an instruction that is no continuation of it, is a race: the line of the access and that
// of the instruction are reported. What a thread accesses is also noted with the number of its fences, since such an
// instruction may only take registers that the thread has fenced since.
#include <sys/mman.h>

#include "core.h"

namespace simt {

static unsigned fences;        // of all threads, so that numbers of earlier blocks are never current
static unsigned* touched;      // by word of the stacks: the number of the thread's fence before its last access
static char* touched_low;
static size_t touched_bytes;

void registers_start() {
  for (Fiber* f : fibers) {
    f->held.clear();
    f->held_groups = 0;
    f->register_fence = ++fences;
    f->register_fenced = false;
  }
}

static unsigned* touched_at(const Fiber* f, const char* p) {
  size_t bytes = fibers.size * launch->stack_bytes;
  if (!touched) {
    touched = (unsigned*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (touched == (unsigned*)MAP_FAILED) out_of_memory();
    touched_low = fibers[0]->stack_low, touched_bytes = bytes;
  }
  size_t at = (size_t)(p - touched_low);
  return at < touched_bytes && f ? touched + at / 4 : nullptr;
}

static void report_held(const Held& h, const char* p, unsigned bytes, bool write, void** frames, const char* what) {
  Finding f{"race", false, current, p, bytes, write, frames, 0, current, h.write, (void**)h.frames};
  report(f, "%s of a register that an asynchronous instruction %s until it is waited for", what,
         h.write ? "writes" : "reads");
}

// An access by the thread itself, seen by the compiler's instrumentation.
void registers_touched(Fiber* f, char* p, unsigned n, bool write, void* pc, void* frame) {
  unsigned* at = touched_at(f, p);
  for (unsigned i = 0; at && i < (n + 3) / 4; i++) at[i] = f->register_fence;
  for (const Held& h : f->held) {
    if (p + n <= h.low || p >= h.low + h.bytes || !(write || h.write)) continue;
    void* frames[FRAMES];
    collect_frames(frames, frame, pc);
    return report_held(h, p, n, write, frames, write ? "write" : "read");
  }
}

void hold_registers(const void* at, unsigned bytes, bool write, unsigned shape) {
  Fiber* f = current;
  char* low = (char*)at;
  void* frames[FRAMES];
  collect_frames(frames, __builtin_frame_address(0), nullptr);
  if (option(RACE)) {
    const unsigned* word = touched_at(f, low);
    bool touched_since = !f->register_fenced;
    for (unsigned i = 0; word && i < bytes / 4; i++) touched_since |= word[i] == f->register_fence;
    if (shape && touched_since && low >= f->stack_low && low < f->stack_low + launch->stack_bytes) {
      Finding none{"race", false, f, at, bytes, write, frames, 0, nullptr, false, nullptr};
      report(none, "an asynchronous instruction uses registers that were accessed since the last fence of registers");
    }
    for (const Held& h : f->held) {
      if (low + bytes <= h.low || low >= h.low + h.bytes || !(write || h.write)) continue;
      if (write && h.write && h.shape == shape && h.low == low && h.bytes == bytes) continue;  // it adds to the same sums
      report_held(h, low, bytes, write, frames, write ? "asynchronous write" : "asynchronous read");
      break;
    }
  }
  for (Held& h : f->held)
    if (h.low == low && h.bytes == bytes && h.write == write) {
      h.group = f->held_groups;
      memcpy(h.frames, frames, sizeof frames);
      return;
    }
  Held mine{low, bytes, write, shape, f->held_groups, {}};
  memcpy(mine.frames, frames, sizeof frames);
  f->held.push(mine);
}

void fence_registers() {
  current->register_fence = ++fences;
  current->register_fenced = true;
}

void commit_registers() { current->held_groups++; }

void release_registers(Thread* thread, unsigned pending) {
  Fiber* f = (Fiber*)thread;
  size_t kept = 0;
  for (const Held& h : f->held)
    if (h.group + pending >= f->held_groups) f->held[kept++] = h;
  f->held.size = kept;
}

}  // namespace simt
