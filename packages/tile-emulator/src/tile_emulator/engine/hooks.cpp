// What the compiler's instrumentation calls. The kernel is compiled with -fsanitize=thread,alignment,bounds where its
// accesses are checked, and always with checks of divisions, shifts and conversions. It is linked with these functions
// instead of the sanitizers' libraries: its text stays as it was emitted.
#include "core.h"

namespace simt {

static inline void hook(void* p, unsigned n, bool write, void* pc, void* frame) {
  Fiber* f = current;
  if (!f || in_model) return;
  char* c = (char*)p;
  if (c >= f->stack_low && c < f->stack_low + launch->stack_bytes) {  // variables of the thread
    if (option(RACE)) registers_touched(f, c, n, write, pc, *(void**)frame);
    return;
  }
  if (of_engine(p)) return;
  check(p, n, write, false, nullptr, *(void**)frame, pc);
}

struct Location {
  const char* file;
  unsigned line, column;
};
struct Type {
  unsigned short kind, info;
  char name[1];
};
struct Mismatch {
  Location at;
  const Type* type;
  unsigned char log_alignment, access;
};
struct OutOfBounds {
  Location at;
  const Type *array, *index;
};

static __attribute__((noinline)) void undefined(void* pc, void* frame, const char* what) {
  if (!current || in_model) return;
  void* frames[FRAMES];
  collect_frames(frames, frame, pc);
  report(Finding{"arithmetic", true, current, nullptr, 0, false, frames, 0, nullptr, false, nullptr}, "%s", what);
}

void require_aligned(const void* p, unsigned alignment) {
  if (!option(ALIGN) || !((uintptr_t)p & (alignment - 1))) return;
  void* frames[FRAMES];
  collect_frames(frames, __builtin_frame_address(0), nullptr);
  report(Finding{"misaligned", false, running ? running->thread : current, p, 0, false, running ? running->frames : frames,
                 0, nullptr, false, nullptr},
         "an access that needs an address that is a multiple of %u", alignment);
}

}  // namespace simt

using namespace simt;

#define PC __builtin_return_address(0), __builtin_frame_address(0)
#define HOOKS(n)                                                                 \
  extern "C" void __tsan_read##n(void* p) { hook(p, n, false, PC); }             \
  extern "C" void __tsan_write##n(void* p) { hook(p, n, true, PC); }             \
  extern "C" void __tsan_unaligned_read##n(void* p) { hook(p, n, false, PC); }   \
  extern "C" void __tsan_unaligned_write##n(void* p) { hook(p, n, true, PC); }   \
  extern "C" void __tsan_read_write##n(void* p) { hook(p, n, true, PC); }        \
  extern "C" void __tsan_unaligned_read_write##n(void* p) { hook(p, n, true, PC); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* p, size_t n) { hook(p, (unsigned)n, false, PC); }
void __tsan_write_range(void* p, size_t n) { hook(p, (unsigned)n, true, PC); }

void* __tsan_memcpy(void* to, const void* from, size_t n) {
  hook((void*)from, (unsigned)n, false, PC);
  hook(to, (unsigned)n, true, PC);
  return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, size_t n) {
  hook((void*)from, (unsigned)n, false, PC);
  hook(to, (unsigned)n, true, PC);
  return memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, size_t n) {
  hook(to, (unsigned)n, true, PC);
  return memset(to, value, n);
}

void __ubsan_handle_type_mismatch_v1(Mismatch* what, uintptr_t address) {
  if (!current || in_model || !option(ALIGN)) return;
  void* frames[FRAMES];
  collect_frames(frames, *(void**)__builtin_frame_address(0), __builtin_return_address(0));
  unsigned needed = 1u << what->log_alignment;
  // Code for wider types may use instructions that fault.
  report(Finding{"misaligned", needed >= 16, current, (void*)address, 0, what->access == 1, frames, 0, nullptr, false, nullptr},
         "an access to %s needs an address that is a multiple of %u", what->type->name, needed);
}

void __ubsan_handle_out_of_bounds(OutOfBounds* what, uintptr_t index) {
  if (!current || in_model || !option(BOUNDS)) return;
  void* frames[FRAMES];
  collect_frames(frames, *(void**)__builtin_frame_address(0), __builtin_return_address(0));
  unsigned bits = 1u << (what->index->info >> 1);
  long long value = bits > 64 ? *(long long*)index : bits == 64 || !(what->index->info & 1) ? (long long)index : (int)index;
  report(Finding{"bounds", true, current, nullptr, 0, false, frames, 0, nullptr, false, nullptr},
         "index %lld of an array of type %s", value, what->array->name);
}

// Compilers assume that these do not happen: they drop the code around them.
void __ubsan_handle_divrem_overflow(void*, uintptr_t, uintptr_t) {
  undefined(__builtin_return_address(0), *(void**)__builtin_frame_address(0), "an integer division by zero");
}
void __ubsan_handle_shift_out_of_bounds(void*, uintptr_t, uintptr_t) {
  undefined(__builtin_return_address(0), *(void**)__builtin_frame_address(0), "a shift by a negative count, or by the width or more");
}
void __ubsan_handle_float_cast_overflow(void*, uintptr_t) {
  undefined(__builtin_return_address(0), *(void**)__builtin_frame_address(0), "a conversion of a float that the integer type does not hold");
}
}
