// Asynchronous operations: their effects and their completion.
#include "core.h"

namespace simt {

Operation* running;

static const char* (*ending)();

void at_end(const char* (*check)()) { ending = check; }

static Vec<Operation*> signalled;  // pending, those that complete on a phase barrier, in the order of their issue

static void free_operation(Operation* op) {
  if (option(RACE))
    for (Clock& c : op->seen) clock_drop(c);
  free(op->payload);
  free(op);
}

void async_start() {
  ending = nullptr;
  for (Operation* op : signalled) free_operation(op);
  signalled.clear();
  for (Fiber* f : fibers) {
    if (!f->streaming) continue;
    f->streaming = false;
    for (Stream& s : f->streams) {
      for (Operation* op : s.open) free_operation(op);
      for (Group& g : s.groups) {
        for (Operation* op : g.ops) free_operation(op);
        free(g.ops.data);
      }
      s.open.clear(), s.groups.clear();
      s.issued = 0;
    }
  }
}

static Operation* issue(Effect fn, const void* payload, size_t n, Proxy proxy) {
  Operation* op = (Operation*)allocate(sizeof(Operation));
  memset((void*)op, 0, sizeof(Operation));
  op->fn = fn, op->thread = current, op->proxy = proxy;
  op->sequence = ~0u;  // nobody ever waits for it, unless it joins a stream
  if (n) {
    op->payload = allocate(n);
    memcpy(op->payload, payload, n);
  }
  if (option(RACE)) {
    for (unsigned k = 0; k < KINDS; k++) clock_copy(op->seen[k], current->clock[k]);
    current->clock[GENERIC].own[0]++;  // what the thread does from now on is not ordered with the operation
  }
  collect_frames(op->frames, __builtin_frame_address(0), nullptr);
  counters.operations++;
  return op;
}

SIMT_MODEL static void copy(Operation* op) {
  access(op->to, op->bytes, true);
  if (op->valid) {
    access(op->from, op->valid, false);
    memcpy(op->to, op->from, op->valid);
  }
  memset((char*)op->to + op->valid, 0, op->bytes - op->valid);
}

static void take_effect(Operation* op) {
  if (op->done) return;
  op->done = true;
  Operation* outer = running;
  bool outer_model = in_model;
  Thread* thread = self;
  Block* of = block;
  running = op, in_model = true;
  self = op->thread, block = op->thread->cta;
  if (op->fn)
    op->fn(op->payload);
  else if (!op->flush)
    copy(op);
  running = outer, in_model = outer_model, self = thread, block = of;
}

// ------------------------------------------------------------------------------------------------------------ streams

static Stream& stream_of(unsigned s) {
  if (s >= STREAMS) fail("async", "there is no stream %u", s);
  current->streaming = true;
  return current->streams[s];
}

static void enqueue(unsigned s, Operation* op) {
  Stream& stream = stream_of(s);
  op->stream = s, op->sequence = ++stream.issued;
  stream.open.push(op);
  if (!option(LATE)) take_effect(op);
}

void async_copy(unsigned stream, void* to, const void* from, unsigned bytes, unsigned valid) {
  if (valid > bytes) fail("async", "an asynchronous copy of %u bytes takes %u from its source", bytes, valid);
  Operation* op = issue(nullptr, nullptr, 0, SAME_PROXY);
  op->to = to, op->from = from, op->bytes = bytes, op->valid = valid;
  enqueue(stream, op);
}

void async_run(unsigned stream, Proxy proxy, Effect fn, const void* payload, size_t bytes) {
  enqueue(stream, issue(fn, payload, bytes, proxy));
}

void async_run_behind(unsigned s, Proxy proxy, Effect fn, const void* payload, size_t bytes) {
  Operation* op = issue(fn, payload, bytes, proxy);
  if (option(RACE))
    for (unsigned k = 0; k < KINDS; k++) op->seen[k].own[1 + s] = stream_of(s).issued;
  enqueue(s, op);
}

void async_commit(unsigned s) {
  Stream& stream = stream_of(s);
  Group group{};
  group.ops = stream.open, group.last = stream.issued;
  stream.open = Vec<Operation*>();
  stream.groups.push(group);
}

void async_wait(unsigned s, unsigned pending) {
  Stream& stream = stream_of(s);
  while (stream.groups.size > pending) {
    Group group = stream.groups[0];
    for (Operation* op : group.ops) {
      take_effect(op);
      free_operation(op);
    }
    free(group.ops.data);
    stream.groups.erase(0);
    current->clock[GENERIC].own[1 + s] = group.last;
  }
}

// Releases the streams' operations to all of them; each has run what it issued itself.
void async_wait_all(unsigned s, unsigned pending, Thread** threads, unsigned n) {
  Released together[KINDS];
  bool any = false;
  Fiber* me = current;
  for (unsigned i = 0; i < n; i++) {
    Fiber* f = (Fiber*)threads[i];
    if (f->streams[s].groups.size <= pending) continue;
    current = f;
    async_wait(s, pending);
    current = me;
    any = true;
    if (option(RACE)) released_raise(together, stream_component(f->slot, s), f->clock[GENERIC].own[1 + s]);
  }
  if (!any || !option(RACE)) return;
  for (unsigned i = 0; i < n; i++) acquire((Fiber*)threads[i], together);
  released_clear(together);
}

static void complete_stream(Fiber* f, unsigned s) {
  for (Group& g : f->streams[s].groups)
    for (Operation* op : g.ops) take_effect(op);
  for (Operation* op : f->streams[s].open) take_effect(op);
}

static Operation* untold(Vec<Operation*>& ops) {
  for (Operation* op : ops)
    if (!op->signalled) return op;
  return nullptr;
}

void async_thread_exit(Fiber* f) {
  if (!f->streaming) return;
  size_t groups = 0, open = 0;
  Operation* first = nullptr;
  for (Stream& s : f->streams) {
    if (&s == &f->streams[LASTING]) continue;
    for (Group& g : s.groups) {
      Operation* op = untold(g.ops);
      groups += op != nullptr;
      if (!first) first = op;
    }
    for (Operation* op : s.open) open += !op->signalled;
    if (!first && open) first = untold(s.open);
  }
  if (first)
    report(Finding{"async", false, f, nullptr, 0, false, first->frames, 0, nullptr, false, nullptr},
           "the thread ends with %zu group(s) and %zu uncommitted operation(s) in flight", groups, open);
  for (unsigned s = 0; s < STREAMS; s++) complete_stream(f, s);
}

// ----------------------------------------------------------------------------------------------------- phase barriers

static void effect_and_signal(Operation* op) {
  if (op->flush)
    complete_stream(op->thread, op->stream);
  else
    take_effect(op);
  if (op->barrier) {
    Phase* p = find_phase(op->barrier);
    if (!p) fail("phase", "an asynchronous operation completes on a phase barrier that has ended");
    if (option(RACE)) {
      if (op->flush) op->seen[GENERIC].own[1 + op->stream] = op->sequence;
      released_add(p->released, op->seen, op->thread->slot);
    }
    if (op->signal < 0) {
      if (!p->pending) fail("phase", "too many arrivals in a phase, by an asynchronous operation");
      p->pending--;
    } else {
      p->bytes -= op->signal;
    }
    phase_progress(*p);
  }
  free_operation(op);
}

static void signal(Operation* op) {
  signalled.push(op);
  if (!option(LATE))
    while (run_one_operation()) {
    }
}

// Whether the asynchronous proxy sees a phase barrier: a fence of the proxies stands behind its initialisation, or its
// creator's fence of initialisations, and the operation behind that.
static bool is_published(const Phase& phase, const Operation& op) {
  if (clock_seen(op.seen[PUBLISHED], current->slot, phase.creator) >= phase.created) return true;
  return phase.published && clock_seen(op.seen[GENERIC], current->slot, phase.creator) >= phase.published;
}

void async_signal(unsigned queue, Proxy proxy, Effect fn, const void* payload, size_t n, void* barrier, int64_t bytes) {
  if (barrier && !find_phase(barrier)) fail("phase", "an asynchronous operation on a phase barrier that was never initialised");
  Operation* op = issue(fn, payload, n, proxy);
  const Phase* phase = barrier ? find_phase(barrier) : nullptr;
  if (phase && proxy == OTHER_PROXY && option(RACE) && option(PROXIES) && !is_published(*phase, *op))
    fail("phase", "an operation of the asynchronous proxy on a phase barrier whose initialisation no fence has made visible to it");
  op->queue = queue, op->barrier = barrier, op->signal = bytes;
  signal(op);
}

void async_arrive(unsigned s, void* barrier) {
  if (!find_phase(barrier)) fail("phase", "an arrival at a phase barrier that was never initialised");
  Stream& stream = stream_of(s);
  unsigned issued = stream.issued;
  for (Group& g : stream.groups)
    for (Operation* earlier : g.ops) earlier->signalled = true;
  for (Operation* earlier : stream.open) earlier->signalled = true;
  Operation* op = issue(nullptr, nullptr, 0, SAME_PROXY);
  op->flush = true, op->stream = s, op->sequence = issued, op->queue = ~0u, op->barrier = barrier, op->signal = -1;
  signal(op);
}

bool run_one_operation() {
  if (signalled.empty()) return false;
  size_t i = 0;
  if (option(RANDOM)) {
    i = random_number() % signalled.size;
    for (size_t j = 0; j < i; j++)
      if (signalled[j]->queue == signalled[i]->queue) i = j;  // the first of its queue
  }
  Operation* op = signalled[i];
  signalled.erase(i);
  effect_and_signal(op);
  return true;
}

// All threads of the cluster have ended.
void async_end() {
  if (const char* wrong = ending ? ending() : nullptr) {
    void* nowhere[8] = {};
    report(Finding{"tensor", false, fibers[0], nullptr, 0, false, nowhere, 0, nullptr, false, nullptr}, "%s", wrong);
  }
  if (signalled.empty()) return;
  Operation* op = signalled[0];
  report(Finding{"async", false, op->thread, nullptr, 0, false, op->frames, 0, nullptr, false, nullptr},
         "the block ends with %zu asynchronous operation(s) in flight", signalled.size);
  while (run_one_operation()) {
  }
}

}  // namespace simt
