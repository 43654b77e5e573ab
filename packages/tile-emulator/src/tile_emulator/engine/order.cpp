// Orders of memory: flags, locations by which threads tell others that data is ready.
//
// An atomic write announces what its thread had seen: at the write if it releases, else at the thread's last fence. An
// atomic read takes what was announced there: at once if it acquires, else at the thread's next fence. Read-modify-write
// operations add to what is announced, stores begin anew. Within a block this joins clocks. Blocks run one after the
// other and clocks are those of one block, so what earlier blocks announced is kept in lists; a thread that takes from
// such a list is noted with its clock, and whoever has seen that clock has taken too.
#include "core.h"

namespace simt {

struct List;

struct Source {  // the first n of a list
  List* list;
  unsigned n;
};
struct Announced {
  Clock seen;
  unsigned slot, floor, epoch;  // by whom, in which block, after which barrier
  unsigned sources, sources_n;  // what it had taken from others itself
};
struct List {
  Vec<Announced> all;
  unsigned visit, visited;  // of a search
};
struct Flag {
  void* address;
  List* list;
  Released released[KINDS];  // by threads of the block that runs
  unsigned floor, writes;
};
struct Taken {
  unsigned slot;
  Clk clock;
  Source source;
};
struct Observed {  // a thread read what the last of so many atomic writes left
  unsigned slot;
  Clk clock;
  Flag* flag;
  unsigned writes;
};

static Vec<Flag*> flags;  // a hash table of a power of two
static size_t flags_n;
static Vec<Source> sources;
static Vec<unsigned> floors;  // the first epoch of each block
static Vec<Taken> taken;
static Vec<Observed> observed;

void order_start() {
  floors.push(block_floor);
  taken.clear();
  observed.clear();
  for (Fiber* f : fibers) {
    for (Fence& x : f->fences) {
      if (!x.set) continue;
      for (Clock& c : x.clocks) clock_drop(c);
      x.set = false;
    }
    for (Unfenced& x : f->unfenced) drop(x.released);
    f->unfenced.clear();
  }
}

// --------------------------------------------------------------------------------------------------------------- flags

static size_t place_in_table(const void* p) {
  size_t mask = flags.size - 1, i = (size_t)(((uintptr_t)p * 0x9E3779B97F4A7C15ull) >> 20) & mask;
  while (flags[i] && flags[i]->address != p) i = (i + 1) & mask;
  return i;
}

static Flag* find_flag(const void* p) { return flags_n ? flags[place_in_table(p)] : nullptr; }

static List* make_list() {
  List* list = (List*)allocate(sizeof(List));
  memset((void*)list, 0, sizeof(List));
  return list;
}

static Flag* make_flag(void* p) {
  if (flags_n * 2 >= flags.size) {
    Vec<Flag*> old = flags;
    flags = Vec<Flag*>();
    flags.assign(old.size ? old.size * 2 : 64, nullptr);
    for (Flag* x : old)
      if (x) flags[place_in_table(x->address)] = x;
    free(old.data);
  }
  Flag* fresh = (Flag*)allocate(sizeof(Flag));
  memset((void*)fresh, 0, sizeof(Flag));
  fresh->address = p, fresh->list = make_list(), fresh->floor = block_floor;
  flags[place_in_table(p)] = fresh;
  flags_n++;
  return fresh;
}

// -------------------------------------------------------------------------------------------------- announce and take

static void announce(Flag& x, const Clock (&clocks)[KINDS], unsigned when, bool of_block) {
  unsigned slot = current->slot;
  released_add(x.released, clocks, slot);
  if (of_block) return;
  Announced mine{};
  clock_copy(mine.seen, clocks[GENERIC]);
  mine.slot = slot, mine.floor = block_floor, mine.epoch = when, mine.sources = (unsigned)sources.size;
  for (const Taken& t : taken)
    if (t.source.list != x.list && clock_seen(mine.seen, slot, t.slot) >= t.clock) sources.push(t.source);
  mine.sources_n = (unsigned)sources.size - mine.sources;
  x.list->all.push(mine);
}

static void take(Fiber* f, const Unfenced& what, bool of_block) {
  Clock& mine = f->clock[GENERIC];
  if (what.released) {
    Vector* fresh = make_vector();
    memcpy(fresh->v, mine.base->v, clock_size * sizeof(Clk));
    join(fresh, what.released);
    drop(mine.base);
    mine.base = fresh;
  }
  if (of_block || !what.n) return;
  for (const Taken& t : taken)
    if (t.slot == f->slot && t.source.list == what.list && t.source.n == what.n) return;
  taken.push(Taken{f->slot, mine.own[0], Source{what.list, what.n}});
}

static void observe(Fiber* f, Flag* x) {
  size_t from = observed.size > 64 ? observed.size - 64 : 0;
  for (size_t i = from; i < observed.size; i++)
    if (observed[i].slot == f->slot && observed[i].flag == x && observed[i].writes == x->writes) return;
  observed.push(Observed{f->slot, f->clock[GENERIC].own[0], x, x->writes});
}

static void read_flag(Fiber* f, Flag* x, unsigned how) {
  Unfenced what{keep(x->released[GENERIC].joined), x->list, (unsigned)x->list->all.size};
  if (how & ACQUIRES) take(f, what, how & OF_BLOCK);
  for (Unfenced& old : f->unfenced)
    if (old.list == what.list) {
      drop(old.released);
      old = what;
      return;
    }
  f->unfenced.push(what);
}

void order_access(void* p, unsigned how) {
  Fiber* f = current;
  Flag* x = find_flag(p);
  bool announces = how & WRITES && (how & RELEASES || f->fences[0].set || f->fences[1].set);
  if (!x && !announces) return;
  if (!x) x = make_flag(p);
  if (x->floor != block_floor) {
    released_clear(x->released);
    x->floor = block_floor;
  }
  if (how & READS) read_flag(f, x, how);
  if (how & WRITES) {
    if (!(how & READS)) {
      released_clear(x->released);
      x->list = make_list();
    }
    x->writes++;
    for (unsigned of_block = 0; of_block < 2; of_block++)
      if (f->fences[of_block].set)
        announce(*x, f->fences[of_block].clocks, f->fences[of_block].epoch, of_block || how & OF_BLOCK);
    if (how & RELEASES) {
      announce(*x, f->clock, epoch, how & OF_BLOCK);
      f->clock[GENERIC].own[0]++;
    }
  }
  if (how & READS) observe(f, x);
}

void fence(bool of_block) {
  if (!option(RACE) || !current || running) return;
  Fiber* f = current;
  for (Unfenced& x : f->unfenced) {
    take(f, x, of_block);
    if (!of_block) drop(x.released);
  }
  if (!of_block) f->unfenced.clear();
  Fence& x = f->fences[of_block];
  for (unsigned k = 0; k < KINDS; k++) {
    if (x.set) clock_drop(x.clocks[k]);
    clock_copy(x.clocks[k], f->clock[k]);
  }
  x.epoch = epoch, x.set = true;
  f->clock[GENERIC].own[0]++;
}

// ------------------------------------------------------------------------------------------------------------ questions

static unsigned floor_of(unsigned when) {
  size_t low = 0, high = floors.size;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    (floors[middle] <= when ? low : high) = middle;
  }
  return floors[low];
}

// Whether an access of an earlier block is ordered before one by a thread that has seen `seen`. `component` and `clock`
// identify it; NO_COMPONENT: any access before the barrier `when` (`strictly`: after it, and before the next).
bool order_known(const Clock& seen, unsigned slot, unsigned when, unsigned component, Clk clock, bool strictly) {
  static Vec<Source> left;
  static unsigned visits;
  unsigned floor = floor_of(when);
  visits++;
  left.clear();
  for (const Taken& t : taken)
    if (clock_seen(seen, slot, t.slot) >= t.clock) left.push(t.source);
  while (!left.empty()) {
    Source s = left.last();
    left.size--;
    List& list = *s.list;
    unsigned first = list.visit == visits ? list.visited : 0;
    for (unsigned i = first; i < s.n; i++) {
      const Announced& a = list.all[i];
      if (a.floor == floor && (component != NO_COMPONENT ? clock_seen(a.seen, a.slot, component) >= clock
                                                         : strictly ? a.epoch > when : a.epoch >= when))
        return true;
      for (unsigned k = 0; k < a.sources_n; k++) left.push(sources[a.sources + k]);
    }
    if (s.n > first) list.visit = visits, list.visited = s.n;
  }
  return false;
}

// Whether a thread that has seen `seen` has read the last atomic write to the location in which a byte lies.
bool order_observed(const Clock& seen, unsigned slot, const void* p) {
  for (uintptr_t size = 1; size <= 8; size *= 2) {
    const Flag* x = find_flag((const void*)((uintptr_t)p & ~(size - 1)));
    if (!x) continue;
    for (size_t i = observed.size; i-- > 0;) {
      const Observed& o = observed[i];
      if (o.flag == x && o.writes == x->writes && clock_seen(seen, slot, o.slot) >= o.clock) return true;
    }
  }
  return false;
}

}  // namespace simt
