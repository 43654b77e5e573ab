// Reports: one line of JSON each, written to the file that launch.py reads. The last line is the end of the run.
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "core.h"

namespace simt {

// ------------------------------------------------------------------------------------------------------------- writing

static Vec<char> text;

static void put(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char* format, ...) {
  char part[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(part, sizeof part, format, args);
  va_end(args);
  for (const char* c = part; *c; c++) text.push(*c);
}

static void put_string(const char* s) {
  text.push('"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') text.push('\\');
    text.push((unsigned char)*s < 32 ? ' ' : *s);
  }
  text.push('"');
}

static void write_all(int file, const char* p, size_t n) {
  while (n) {
    ssize_t done = write(file, p, n);
    if (done <= 0) return;
    p += done, n -= (size_t)done;
  }
}

static void flush() {
  text.push('\n');
  write_all(launch->reports, text.data, text.size);
  text.clear();
}

// -------------------------------------------------------------------------------------------------------------- frames

extern unsigned char *image_low, *image_high;  // launch.cpp

bool in_image(const void* p) { return (unsigned char*)p >= image_low && (unsigned char*)p < image_high; }

// The return addresses that lie in the kernel's image, from a frame outwards.
void collect_frames(void** frames, void* frame, void* pc) {
  unsigned n = 0;
  if (pc && in_image(pc)) frames[n++] = pc;
  void** fp = (void**)frame;
  const Fiber* f = current;
  while (n < FRAMES && f && (char*)fp >= f->stack_low && (char*)(fp + 2) <= f->stack_high) {
    if (in_image(fp[1]) && !(n == 1 && fp[1] == pc)) frames[n++] = fp[1];
    void** up = (void**)fp[0];
    if (up <= fp) break;
    fp = up;
  }
  while (n < FRAMES) frames[n++] = nullptr;
}

static void put_frames(const char* key, void** frames) {
  put(", \"%s\": [", key);
  // One less: a return address may already belong to the next line.
  for (unsigned i = 0; frames && i < FRAMES && frames[i]; i++)
    put("%s%lld", i ? ", " : "", (long long)((unsigned char*)frames[i] - image_low - 1));
  put("]");
}

static void put_thread(const Fiber* f) {
  put(", \"block\": [%u, %u, %u], \"thread\": [%u, %u, %u], \"id\": %u", f->cta->index.x, f->cta->index.y,
      f->cta->index.z, f->index.x, f->index.y, f->index.z, f->id);
}

// ------------------------------------------------------------------------------------------------------------- reports

struct Known {
  const char* kind;
  void *frame, *up, *other;
  int buffer;
  unsigned long long count;
};
static Vec<Known> known;

static Known* find_known(const Finding& f, int buffer) {
  void* frame = f.frames ? f.frames[0] : nullptr;
  void* up = frame ? f.frames[1] : nullptr;
  void* other = f.other_frames ? f.other_frames[0] : nullptr;
  for (Known& k : known)
    if (!strcmp(k.kind, f.kind) && k.frame == frame && k.up == up && k.other == other && k.buffer == buffer) {
      k.count++;
      return &k;
    }
  known.push(Known{f.kind, frame, up, other, buffer, 1});
  return nullptr;
}

static void report_list(const Finding& f, const char* format, va_list args) {
  Place place = f.address ? place_of(f.address) : Place{NOWHERE, 0, 0};
  if (find_known(f, place.buffer)) return;
  char detail[1024];
  vsnprintf(detail, sizeof detail, format, args);
  put("{\"kind\": ");
  put_string(f.kind);
  put(", \"detail\": ");
  put_string(detail);
  put(", \"line\": %d, \"write\": %s, \"bytes\": %u", f.line, f.write ? "true" : "false", f.bytes);
  if (place.buffer != NOWHERE)
    put(", \"buffer\": %d, \"offset\": %lld, \"size\": %llu", place.buffer, place.offset, place.bytes);
  put_frames("frames", f.frames);
  if (f.thread) put_thread(f.thread);
  if (f.other) {
    put(", \"other\": {\"write\": %s", f.other_write ? "true" : "false");
    put_frames("frames", f.other_frames);
    put_thread(f.other);
    put("}");
  }
  put("}");
  flush();
  if (f.fatal) finish("fault");
  if (known.size >= launch->max_reports) finish("reports");
}

void report(const Finding& f, const char* format, ...) {
  va_list args;
  va_start(args, format);
  report_list(f, format, args);
  va_end(args);
}

void fail(const char* kind, const char* format, ...) {
  void* frames[FRAMES];
  collect_frames(frames, __builtin_frame_address(0), nullptr);
  const Fiber* thread = running ? running->thread : current;
  va_list args;
  va_start(args, format);
  report_list(Finding{kind, true, thread, nullptr, 0, false, running ? running->frames : frames, 0, nullptr, false, nullptr},
              format, args);
  va_end(args);
  finish("fault");
}

// ------------------------------------------------------------------------------------------------------------ deadlock

static void describe(const Fiber* f, char* out, size_t n) {
  if (f->state == DONE) {
    snprintf(out, n, "ended");
  } else if (!strcmp(f->why, "barrier")) {
    const Barrier& b = *(const Barrier*)f->what;
    snprintf(out, n, "at barrier %u, where %u of %u threads have arrived", b.id, b.arrived, b.count);
  } else if (!strcmp(f->why, "cluster")) {
    snprintf(out, n, "at the cluster's barrier, where %u of %zu threads have arrived", *(const unsigned*)f->what, fibers.size);
  } else if (!strcmp(f->why, "phase")) {
    const Phase* p = find_phase(f->what);
    int k = snprintf(out, n, "for the phase of parity %llu of the phase barrier at shared + %lld", f->about[0],
                     (long long)((const unsigned char*)f->what - f->cta->shared));
    if (p)
      snprintf(out + k, n - (size_t)k, ", which is in phase %u with %u of %u arrivals and %lld bytes to come", p->number,
               p->pending, p->expected, p->bytes);
  } else if (!strcmp(f->why, "poll")) {
    snprintf(out, n, "polling");
  } else {
    const Meet& m = f->cta->meets[(size_t)f->about[0]];
    snprintf(out, n, "in %s with %u of %u threads of its group", f->why, m.arrived, m.need);
  }
}

void report_deadlock() {
  struct Entry {
    char what[256];
    Vec<const Fiber*> who;
  };
  Vec<Entry> entries;
  for (const Fiber* f : fibers) {
    char what[256];
    describe(f, what, sizeof what);
    Entry* found = nullptr;
    for (Entry& e : entries)
      if (!strcmp(e.what, what) && e.who[0]->cta == f->cta && (f->state == DONE || e.who[0]->line == f->line)) found = &e;
    if (!found) {
      Entry fresh{};
      memcpy(fresh.what, what, sizeof what);
      entries.push(fresh);
      found = &entries.last();
    }
    found->who.push(f);
  }
  put("{\"kind\": \"deadlock\", \"detail\": \"no thread can go on\", \"waiting\": [");
  for (Entry& e : entries) {
    put("%s{\"what\": ", &e == entries.data ? "" : ", ");
    put_string(e.what);
    const Fiber* first = e.who[0];
    put(", \"line\": %d, \"threads\": [", first->state == DONE ? 0 : first->line);
    for (size_t i = 0; i < e.who.size;) {
      size_t j = i;
      while (j + 1 < e.who.size && e.who[j + 1]->id == e.who[j]->id + 1) j++;
      put("%s[%u, %u]", i ? ", " : "", e.who[i]->id, e.who[j]->id);
      i = j + 1;
    }
    put("]");
    void* frames[FRAMES] = {};
    current = (Fiber*)first;  // its stack holds the frames
    if (first->state != DONE) collect_frames(frames, first->frame, nullptr);
    put_frames("frames", frames);
    put_thread(first);
    put("}");
  }
  put("]}");
  flush();
  finish("deadlock");
}

// ----------------------------------------------------------------------------------------------------------------- end

void finish(const char* end) {
  put("{\"end\": ");
  put_string(end);
  const Counters& c = counters;
  put(", \"switches\": %llu, \"meetings\": %llu, \"barriers\": %llu, \"accesses\": %llu, \"operations\": %llu",
      c.switches, c.meetings, c.barriers, c.accesses, c.operations);
  put(", \"array_reads\": %llu, \"array_writes\": %llu, \"shared_reads\": %llu, \"shared_writes\": %llu",
      c.bytes[ARRAYS][0], c.bytes[ARRAYS][1], c.bytes[SHARED][0], c.bytes[SHARED][1]);
  put(", \"blocks\": %llu, \"met\": {", c.blocks);
  for (Met& m : met) {
    put("%s", &m == met.data ? "" : ", ");
    put_string(m.name);
    put(": %llu", m.count);
  }
  put("}, \"counts\": [");
  for (Known& k : known) put("%s%llu", &k == known.data ? "" : ", ", k.count);
  put("]}");
  flush();
  _exit(0);
}

void out_of_memory() {
  put("{\"kind\": \"memory\", \"detail\": \"the emulator has no more memory\", \"frames\": []}");
  flush();
  finish("fault");
}

static unsigned long long printed;
// The last text that was printed, and by whom.
static char part[1024];
static const Fiber* printer;

void print(const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(part, sizeof part, format, args);
  va_end(args);
  printer = n < 0 ? nullptr : current;
  if (n < 0 || printed >= launch->output_bytes) return;
  size_t size = (size_t)n < sizeof part ? (size_t)n : sizeof part - 1;
  if (size > launch->output_bytes - printed) size = launch->output_bytes - printed;
  printed += size;
  write_all(launch->output, part, size);
}

void trap() {
  static const char asserted[] = "device assertion failed: ";
  if (printer != current || strncmp(part, asserted, sizeof asserted - 1))
    fail("trap", "the kernel ends itself by a trap");
  part[strcspn(part, "\n")] = 0;
  fail("assertion", "%s", part + sizeof asserted - 1);
}

// ------------------------------------------------------------------------------------------------------------- signals

static void registers(void* context, void** pc, void** frame) {
  ucontext_t* u = (ucontext_t*)context;
#if defined(__x86_64__)
  *pc = (void*)u->uc_mcontext.gregs[REG_RIP], *frame = (void*)u->uc_mcontext.gregs[REG_RBP];
#else
  *pc = (void*)u->uc_mcontext.pc, *frame = (void*)u->uc_mcontext.regs[29];
#endif
}

static void on_signal(int number, siginfo_t* info, void* context) {
  void *pc, *frame, *frames[FRAMES];
  registers(context, &pc, &frame);
  collect_frames(frames, frame, (char*)pc + 1);
  text.clear();
  Finding f{"crash", true, running ? running->thread : current, nullptr, 0, false, frames, 0, nullptr, false, nullptr};
  if (number == SIGALRM) {
    f.kind = "timeout";
    report(f, "the kernel runs longer than %u ms", launch->milliseconds);
  }
  if (number == SIGFPE) report(f, "an integer division by zero, or one that overflows");
  if (number != SIGSEGV && number != SIGBUS) report(f, "signal %d", number);
  char* at = (char*)info->si_addr;
  if (current && at >= current->stack_low && at < current->stack_low + 4096) {
    f.kind = "stack";
    report(f, "the thread's stack is full: %u KiB", launch->stack_bytes >> 10);
  }
  if (place_of(at).buffer != NOWHERE) f.kind = "bounds", f.address = at;
  report(f, "access to memory that no array owns");
}

void catch_signals() {
  // A handler may interrupt malloc: what it writes must fit what is there.
  text.reserve(1 << 16), known.reserve(launch->max_reports + 1);
  static char stack[65536];
  stack_t alternate{};
  alternate.ss_sp = stack, alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGALRM};
  for (int number : numbers) sigaction(number, &action, nullptr);
  struct itimerval timer{};
  timer.it_value.tv_sec = launch->milliseconds / 1000, timer.it_value.tv_usec = launch->milliseconds % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace simt
