// Threads as fibers: switching between them, the ready queue, and who runs next.
#include <sys/mman.h>

#include "core.h"

namespace simt {

extern "C" void simt_switch(void** save, void* to);
extern "C" void simt_start();

#if defined(__x86_64__)
asm(R"(
.text
.globl simt_switch
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.globl simt_start
simt_start:
  callq simt_fiber_main
  ud2
)");
static void* first_frame(char* top) {
  void** sp = (void**)((uintptr_t)top & ~(uintptr_t)63);
  *--sp = nullptr;
  *--sp = nullptr;
  *--sp = (void*)simt_start;
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  return sp;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl simt_switch
simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.globl simt_start
simt_start:
  bl simt_fiber_main
  brk #1
)");
static void* first_frame(char* top) {
  void** sp = (void**)(((uintptr_t)top & ~(uintptr_t)63) - 160);
  memset(sp, 0, 160);
  sp[11] = (void*)simt_start;  // x30
  return sp;
}
#else
#error "the emulator supports x86-64 and arm64"
#endif

Thread* self;
Block* block;
Fiber* current;
Vec<Fiber*> fibers;
Vec<Cta*> ctas;
Counters counters;
bool in_model;

static Fiber *queue_head, *queue_tail;
static size_t queue_size, live, idle;
static void* main_sp;
static unsigned long long random_state;
static char* stacks;
static size_t stacks_bytes;

// After so many turns of all threads in which none did anything but poll, none ever will.
static const size_t IDLE_TURNS = 1000;

unsigned long long random_number() {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state;
}

void make_stacks(unsigned n) {
  random_state = launch->seed * 0x9E3779B97F4A7C15ull + 88172645463325252ull;
  stacks_bytes = (size_t)n * launch->stack_bytes;
  stacks = (char*)mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == (char*)MAP_FAILED) out_of_memory();
  for (unsigned i = 0; i < n; i++) {
    char* low = stacks + (size_t)i * launch->stack_bytes;
    mprotect(low, 4096, PROT_NONE);  // the end of each stack
    fibers[i]->stack_low = low;
    // Staggered, so that the tops of all stacks do not share a cache set.
    fibers[i]->stack_high = low + launch->stack_bytes - (i * 192 & 4095);
  }
}

bool on_stack(const void* p) { return (const char*)p >= stacks && (const char*)p < stacks + stacks_bytes; }

void make_ready_last(Fiber* f) {
  f->state = READY, f->next = nullptr;
  (queue_tail ? queue_tail->next : queue_head) = f;
  queue_tail = f, queue_size++;
}

void make_ready(Fiber* f) {
  idle = 0;
  if (!option(REVERSE)) return make_ready_last(f);
  f->state = READY, f->next = queue_head, queue_head = f;
  if (!queue_tail) queue_tail = f;
  queue_size++;
}

static Fiber* take_ready() {
  if (!queue_head) return nullptr;
  Fiber *before = nullptr, *f = queue_head;
  if (option(RANDOM))
    for (unsigned k = random_number() % (queue_size < 64 ? queue_size : 64); k; k--) before = f, f = f->next;
  (before ? before->next : queue_head) = f->next;
  if (queue_tail == f) queue_tail = before;
  queue_size--;
  return f;
}

// The next fiber to run; null when all have ended.
static Fiber* next_fiber() {
  for (;;) {
    if (idle > live + 1) {  // everybody polls
      if (run_one_operation())
        idle = 0;
      else if (idle > IDLE_TURNS * (live + 1))
        report_deadlock();
    }
    if (Fiber* f = take_ready()) return f;
    if (!live) return nullptr;
    if (!run_one_operation()) report_deadlock();
  }
}

static void switch_from(void** save, Fiber* to) {
  counters.switches++;
  self = current = to;
  block = to ? to->cta : nullptr;
  simt_switch(save, to ? to->sp : main_sp);
}

void block_here(const char* why, const void* what, unsigned long long a, unsigned long long b, int line) {
  Fiber* me = current;
  me->state = BLOCKED, me->why = why, me->what = what, me->about[0] = a, me->about[1] = b, me->line = line_of(line);
  me->frame = __builtin_frame_address(0);
  Fiber* to = next_fiber();
  if (to != me) switch_from(&me->sp, to);
}

void poll(const char* why, const void* what, unsigned long long about) {
  Fiber* me = current;
  me->why = why, me->what = what, me->about[0] = about, me->line = 0, me->frame = __builtin_frame_address(0);
  idle++;
  make_ready_last(me);
  Fiber* to = next_fiber();
  if (to != me) switch_from(&me->sp, to);
}

void yield() { poll("poll", nullptr, 0); }
void progress() { idle = 0; }

static void** kernel_args;

extern "C" void simt_fiber_main() {
  launch->entry(kernel_args);
  Fiber* me = current;
  async_thread_exit(me);
  me->state = DONE, live--, idle = 0;
  switch_from(&me->sp, next_fiber());
  __builtin_trap();
}

void start_fibers() {
  static Vec<void*> args;
  args.clear();
  for (unsigned i = 0; i < launch->args_n; i++)
    args.push(launch->buffers[launch->args[i].buffer].address + launch->args[i].offset);
  kernel_args = args.data;
  queue_head = queue_tail = nullptr, queue_size = 0, live = fibers.size, idle = 0;
  for (Fiber* f : fibers) {
    f->sp = first_frame(f->stack_high);
    make_ready(f);
  }
  switch_from(&main_sp, next_fiber());
}

}  // namespace simt
