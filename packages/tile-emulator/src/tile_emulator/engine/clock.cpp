// Vector clocks: which accesses of which thread every other thread has seen.
#include "core.h"

namespace simt {

// Accesses are stamped with the number of full barriers so far: everything before `floor_epoch` is ordered before
// everything now, and everything before `block_floor` was done by blocks that ended before.
unsigned clock_size, epoch, block_floor, floor_epoch;

static Vector* unused;  // a list through `uses`-sized storage: the vectors of one launch all have the same size

static Vector* make_vector() {
  if (unused) {
    Vector* v = unused;
    memcpy((void*)&unused, v->v, sizeof unused);
    v->uses = 1;
    return v;
  }
  Vector* v = (Vector*)allocate(sizeof(Vector) + clock_size * sizeof(Clk) + sizeof(void*));
  v->uses = 1;
  return v;
}

static Vector* keep(Vector* v) {
  if (v) v->uses++;
  return v;
}

static void drop(Vector*& v) {
  if (v && !--v->uses) {
    memcpy(v->v, (void*)&unused, sizeof unused);
    unused = v;
  }
  v = nullptr;
}

static void replace(Vector*& to, Vector* from) {
  Vector* kept = keep(from);
  drop(to);
  to = kept;
}

static void join(Vector* to, const Vector* from) {
  Clk* a = to->v;
  const Clk* b = from->v;
  for (size_t i = 0, n = clock_size; i < n; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
}

static unsigned kinds() { return option(PROXIES) ? 2 : 1; }

void clocks_start() {
  for (Fiber* f : fibers)
    for (Clock& c : f->clock) drop(c.base);
  clock_size = (unsigned)fibers.size * (1 + STREAMS) + PHASES;
  block_floor = floor_epoch = ++epoch;
  Vector* zero = make_vector();
  memset(zero->v, 0, clock_size * sizeof(Clk));
  for (Fiber* f : fibers)
    for (unsigned k = 0; k < KINDS; k++) {
      f->clock[k] = Clock{keep(zero), {}};
      f->clock[k].own[0] = k == GENERIC;
    }
  drop(zero);
  memory_barrier();
}

void clock_copy(Clock& to, const Clock& from) {
  to = from;
  keep(to.base);
}

void clock_drop(Clock& c) { drop(c.base); }

Clk clock_seen(const Clock& c, unsigned slot, unsigned component) {
  if (component == slot) return c.own[0];
  unsigned stream = component - stream_component(slot, 0);
  return stream < STREAMS ? c.own[1 + stream] : c.base->v[component];
}

void released_clear(Released (&r)[KINDS]) {
  for (Released& x : r) drop(x.joined), drop(x.last_in), drop(x.seen_in), drop(x.seen_out);
}

static Vector* joined_of(Released& r) {
  drop(r.seen_in), drop(r.seen_out);
  if (!r.joined) {
    r.joined = make_vector();
    memset(r.joined->v, 0, clock_size * sizeof(Clk));
  } else if (r.joined->uses > 1) {
    Vector* copy = make_vector();
    memcpy(copy->v, r.joined->v, clock_size * sizeof(Clk));
    drop(r.joined);
    r.joined = copy;
  }
  return r.joined;
}

void released_add(Released (&r)[KINDS], const Clock* clocks, unsigned slot) {
  for (unsigned k = 0; k < kinds(); k++) {
    Vector* to = joined_of(r[k]);
    if (r[k].last_in != clocks[k].base) {
      join(to, clocks[k].base);
      replace(r[k].last_in, clocks[k].base);
    }
    for (unsigned i = 0; i <= STREAMS; i++) {
      Clk& x = to->v[i ? stream_component(slot, i - 1) : slot];
      if (x < clocks[k].own[i]) x = clocks[k].own[i];
    }
  }
}

void released_raise(Released (&r)[KINDS], unsigned component, Clk value) {
  for (unsigned k = 0; k < kinds(); k++) {
    Vector* to = joined_of(r[k]);
    if (to->v[component] < value) to->v[component] = value;
  }
}

void release(Released (&r)[KINDS], Fiber* f) {
  if (!option(RACE)) return;
  released_add(r, f->clock, f->slot);
  f->clock[GENERIC].own[0]++;
}

void acquire(Fiber* f, Released (&r)[KINDS]) {
  if (!option(RACE)) return;
  for (unsigned k = 0; k < kinds(); k++) {
    if (!r[k].joined) continue;
    Vector*& base = f->clock[k].base;
    if (r[k].seen_in != base) {
      Vector* fresh = make_vector();
      memcpy(fresh->v, base->v, clock_size * sizeof(Clk));
      join(fresh, r[k].joined);
      replace(r[k].seen_in, base);
      drop(r[k].seen_out);
      r[k].seen_out = fresh;
    }
    replace(base, r[k].seen_out);
    // A barrier may complete operations of the thread itself.
    for (unsigned i = 0; i < STREAMS; i++) {
      Clk joined = r[k].joined->v[stream_component(f->slot, i)];
      if (f->clock[k].own[1 + i] < joined) f->clock[k].own[1 + i] = joined;
    }
  }
}

// All of `who` have released to `r`, so what is joined there covers what each had seen: they share it.
void synchronise(Fiber** who, unsigned n, Released (&r)[KINDS], bool everybody) {
  if (!option(RACE)) return;
  for (unsigned k = 0; k < kinds(); k++)
    for (unsigned i = 0; i < n; i++) replace(who[i]->clock[k].base, r[k].joined);
  released_clear(r);
  if (!everybody) return;
  floor_epoch = ++epoch;
  memory_barrier();
}

void fence_proxy() {
  if (!option(RACE) || !option(PROXIES)) return;
  Fiber* f = current;
  Vector* fresh = make_vector();
  memcpy(fresh->v, f->clock[PUBLISHED].base->v, clock_size * sizeof(Clk));
  join(fresh, f->clock[GENERIC].base);
  drop(f->clock[PUBLISHED].base);
  f->clock[PUBLISHED].base = fresh;
  for (unsigned s = 0; s < STREAMS; s++) f->clock[PUBLISHED].own[1 + s] = f->clock[GENERIC].own[1 + s];
  f->clock[PUBLISHED].own[0] = f->clock[GENERIC].own[0]++;
}

}  // namespace simt
