// Where threads meet: collectives, barriers, phase barriers.
#include "core.h"

namespace simt {

static Vec<Phase*> phases;
static struct ClusterBarrier {
  unsigned number, arrived;  // of the phase that runs
  Vec<Fiber*> waiting;
  Released released[2][KINDS];  // of phases of either parity: threads that are late still need that of the last one
} cluster_barrier;
Vec<Met> met;

void sync_start() {
  for (Phase* p : phases) {
    released_clear(p->released);
    free(p->waiting.data);
    free(p);
  }
  phases.clear();
  for (auto& released : cluster_barrier.released) released_clear(released);
  cluster_barrier.number = cluster_barrier.arrived = 0;
  cluster_barrier.waiting.clear();
  for (Fiber* f : fibers) f->cluster_phase = 0, f->cluster_arrived = false;
  for (Cta* c : ctas) {
    for (unsigned i = 0; i < BARRIERS; i++) {
      Barrier& b = c->barriers[i];
      if (!b.used) continue;
      b.used = false;
      released_clear(b.released);
      b.arrived = b.count = 0, b.line = 0;
      b.waiting.clear();
    }
    for (Meet& m : c->meets) m.used = false;
  }
}

// -------------------------------------------------------------------------------------------------------- collectives

static Meet& find_meet(Cta* cta, const char* name, unsigned warps, unsigned group, unsigned long long mask,
                       unsigned members) {
  Meet* found = nullptr;
  for (Meet& m : cta->meets) {
    if (m.used && m.warps == warps && m.group == group && m.mask == mask && !strcmp(m.name, name)) return m;
    if (!m.used && m.members >= members) found = &m;
  }
  if (!found) {
    Meet fresh{};
    fresh.members = members;
    fresh.packs = (void**)allocate(members * sizeof(void*));
    fresh.who = (Fiber**)allocate(members * sizeof(void*));
    cta->meets.push(fresh);
    found = &cta->meets.last();
  }
  memset(found->who, 0, members * sizeof(void*));
  memset(found->packs, 0, members * sizeof(void*));
  found->name = name, found->warps = warps, found->group = group, found->mask = mask;
  found->arrived = 0, found->line = 0, found->used = true;
  return *found;
}

static void count_meeting(const char* name) {
  for (Met& m : met)
    if (m.name == name || !strcmp(m.name, name)) {
      m.count++;
      return;
    }
  met.push(Met{name, 1});
}

void meet(const char* name, unsigned warps, uint64_t mask, void* pack, Meeting fn, int line) {
  Fiber* me = current;
  Cta* cta = me->cta;
  unsigned total = (unsigned)cta->members.size, size = warps ? warps * launch->warp : total;
  counters.meetings++;
  unsigned group = me->id / size, member = me->id % size, first = group * size;
  unsigned members = first + size <= total ? size : total - first, need = members;
  if (warps == 1) {
    if (members < 64) mask &= (1ull << members) - 1;
    need = (unsigned)__builtin_popcountll(mask);
    if (!(mask >> member & 1)) fail("collective", "%s: lane %u runs it but is not in its mask %llx", name, member, (unsigned long long)mask);
  } else {
    mask = 0;
  }
  Meet& m = find_meet(cta, name, warps, group, mask, size < total ? size : total);
  if (m.who[member]) fail("collective", "%s: lane %u arrives twice", name, member);
  if (m.arrived && m.line && line && m.line != line)
    fail("divergence", "%s: threads of one group meet at different places of the text, lines %d and %d", name, line_of(m.line), line_of(line));
  m.line = line, m.need = need, m.packs[member] = pack, m.who[member] = me;
  if (++m.arrived < need) {
    size_t at = (size_t)(&m - cta->meets.data);
    block_here(name, nullptr, at, 0, line);
    return;
  }
  count_meeting(name);
  if (fn) {
    static Vec<Thread*> threads;
    threads.clear();
    for (unsigned i = 0; i < members; i++) threads.push(m.who[i]);
    in_model = true;
    fn(m.packs, threads.data, members);
    in_model = false;
  }
  m.used = false;
  for (unsigned i = 0; i < members; i++)
    if (m.who[i] && m.who[i] != me) make_ready(m.who[i]);
}

static void order_lanes(void**, Thread** threads, unsigned n) {
  if (!option(RACE)) return;
  Released together[KINDS];
  Fiber* who[64];
  unsigned k = 0;
  for (unsigned i = 0; i < n; i++)
    if (threads[i]) release(together, who[k++] = (Fiber*)threads[i]);
  synchronise(who, k, together, false);
}

void sync_warp(uint64_t mask, int line) { meet("sync_warp", 1, mask, nullptr, order_lanes, line); }

// ----------------------------------------------------------------------------------------------------------- barriers

static void enter(Barrier& b, unsigned count, int line, bool wait) {
  Fiber* me = current;
  counters.barriers++;
  if (b.arrived && b.count != count)
    fail("barrier", "barrier %u is used for %u and for %u threads at a time", b.id, b.count, count);
  // A barrier with a number may be meant to be met from different places; that of the whole block is not.
  if (wait && !b.waiting.empty() && b.line && line && b.line != line && count == me->cta->members.size)
    fail("divergence", "threads of one block meet barrier %u at different places of the text, lines %d and %d", b.id, line_of(b.line), line_of(line));
  b.count = count, b.arrived++;
  release(b.released, me);
  if (wait) b.line = line, b.waiting.push(me);
  if (b.arrived < count) {
    if (wait) block_here("barrier", &b, 0, 0, line);
    return;
  }
  b.arrived = 0;
  synchronise(b.waiting.data, (unsigned)b.waiting.size, b.released, b.waiting.size == fibers.size);
  for (Fiber* f : b.waiting)
    if (f != me) make_ready(f);
  b.waiting.clear();
}

static Barrier& barrier_of(unsigned id) {
  if (id >= BARRIERS) fail("barrier", "there is no barrier %u", id);
  Barrier& b = current->cta->barriers[id];
  b.id = id, b.used = true;
  return b;
}

static unsigned count_of(unsigned id, unsigned count) {
  unsigned all = (unsigned)current->cta->members.size;
  if (count > all) fail("barrier", "barrier %u waits for %u threads, the block has %u", id, count, all);
  return count ? count : all;
}

void sync(unsigned id, unsigned count, int line) { enter(barrier_of(id), count_of(id, count), line, true); }
void arrive(unsigned id, unsigned count, int line) { enter(barrier_of(id), count_of(id, count), line, false); }

void arrive_cluster(bool orders, int) {
  Fiber* me = current;
  ClusterBarrier& b = cluster_barrier;
  counters.barriers++;
  if (me->cluster_arrived) fail("cluster", "a thread arrives at the barrier of the cluster twice without waiting");
  me->cluster_arrived = true;
  Released(&released)[KINDS] = b.released[b.number & 1];
  if (!b.arrived) released_clear(released);  // all threads have waited for the last phase of this parity
  if (orders) release(released, me);
  if (++b.arrived < fibers.size) return;
  b.arrived = 0, b.number++;
  for (Fiber* f : b.waiting) {
    acquire(f, released);
    make_ready(f);
  }
  b.waiting.clear();
}

void wait_cluster(int line) {
  Fiber* me = current;
  ClusterBarrier& b = cluster_barrier;
  if (!me->cluster_arrived) fail("cluster", "a thread waits at the barrier of the cluster without having arrived");
  me->cluster_arrived = false;
  if (me->cluster_phase++ < b.number) return acquire(me, b.released[(me->cluster_phase - 1) & 1]);
  b.waiting.push(me);
  block_here("cluster", &b.arrived, 0, 0, line);
}

unsigned cluster_waits() { return current->cluster_phase; }

void require_running(unsigned rank) {
  if (rank >= ctas.size) fail("cluster", "the cluster has %zu block(s), no block %u", ctas.size, rank);
  if (!current) return;  // all threads of the cluster have ended: that is reported by async_end
  for (Fiber* f : ctas[rank]->members)
    if (f->state != DONE) return;
  fail("cluster", "the shared memory of block %u is used, and all its threads have ended", rank);
}

// ----------------------------------------------------------------------------------------------------- phase barriers

Phase* find_phase(const void* p) {
  for (Phase* x : phases)
    if (x->address == p) return x;
  return nullptr;
}

static Phase& phase_of(void* p, const char* what) {
  Phase* found = find_phase(p);
  if (!found) fail("phase", "%s of a phase barrier that was never initialised", what);
  if (!running) access(p, 8, false);  // a race with the initialisation is a missing barrier
  return *found;
}

void phase_init(void* p, unsigned arrivals) {
  if ((uintptr_t)p & 7) fail("phase", "a phase barrier must be aligned to 8 bytes");
  if (find_phase(p)) fail("phase", "a phase barrier is initialised twice");
  if (!arrivals) fail("phase", "a phase barrier for no arrivals");
  if (phases.size == PHASES) fail("phase", "more than %d phase barriers", PHASES);
  access(p, 8, true);
  Phase* fresh = (Phase*)allocate(sizeof(Phase));
  memset((void*)fresh, 0, sizeof(Phase));
  fresh->address = p, fresh->expected = fresh->pending = arrivals;
  fresh->component = phase_component((unsigned)phases.size);
  fresh->creator = current->slot, fresh->created = current->clock[GENERIC].own[0];
  phases.push(fresh);
}

void phases_publish() {
  if (!option(RACE)) return;
  Clk now = current->clock[GENERIC].own[0]++;
  for (Phase* x : phases)
    if (x->address && x->creator == current->slot && !x->published) x->published = now;
}

void phase_destroy(void* p) {
  Phase& x = phase_of(p, "the end");
  if (!x.waiting.empty()) fail("phase", "a phase barrier ends while threads wait at it");
  access(p, 8, true);
  x.address = nullptr;  // its clock component stays taken
}

void phase_progress(Phase& p) {
  if (p.pending || p.bytes) return;
  p.number++;
  p.pending = p.expected;
  if (option(RACE)) released_raise(p.released, p.component, p.number);
  for (Fiber* f : p.waiting) {
    acquire(f, p.released);
    make_ready(f);
  }
  p.waiting.clear();
}

uint64_t phase_arrive(void* barrier, unsigned arrivals, int64_t expected_bytes) {
  Phase& p = phase_of(barrier, "an arrival");
  uint64_t number = p.number;
  if (arrivals > p.pending)
    fail("phase", "%u arrivals in a phase that waits for %u of %u: too many", arrivals, p.pending, p.expected);
  release(p.released, current);
  p.bytes += expected_bytes, p.pending -= arrivals;
  phase_progress(p);
  return number;
}

void phase_wait(void* barrier, unsigned parity) {
  Phase& p = phase_of(barrier, "a wait");
  if ((p.number & 1) != (parity & 1)) return acquire(current, p.released);
  p.waiting.push(current);
  block_here("phase", barrier, parity & 1, 0, 0);
}

bool phase_test(void* barrier, unsigned parity) {
  Phase& p = phase_of(barrier, "a test");
  if ((p.number & 1) != (parity & 1)) {
    acquire(current, p.released);
    return true;
  }
  poll("phase", barrier, parity & 1);
  return false;
}

}  // namespace simt
