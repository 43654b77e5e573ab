// Memory: the state of every byte: written or not, by whom, read by whom.
//
// A byte's accesses are compared with what the accessing thread has seen (clock.cpp), so a race is found whatever order
// the threads ran in. Two facts keep that cheap: after a barrier of all threads nothing before it needs comparing, and
// the bytes of one access usually are in the same state, so the first one answers for all.
#include "core.h"

namespace simt {

static void settle();
void memory_block_start() {
  settle();
  for (Region& r : regions)
    if (r.buffer == SHARED_SLAB || r.buffer == SHARED_STATIC)
      memset(r.low, 0xff, (size_t)(r.high - r.low));  // NaN in every format of floats
}

// --------------------------------------------------------------------------------------------------------------- sites
// Where accesses come from: chains of return addresses, numbered.

struct Site {
  void* frames[FRAMES];
};
static Vec<Site> sites;
static Vec<unsigned> site_table;
static const unsigned SITES = 1u << 14;

static unsigned site_of(void* frame, void* pc) {
  if (running) frame = nullptr;
  Site s{};
  if (running)
    memcpy((void*)&s, running->frames, sizeof s);
  else
    collect_frames(s.frames, frame, pc);
  if (site_table.empty()) {
    site_table.assign(SITES, 0);
    sites.push(Site{});
  }
  unsigned long long h = 0;
  for (void* f : s.frames)
    if (f) h = (h ^ (uintptr_t)f) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  for (unsigned i = (unsigned)h & (SITES - 1);; i = (i + 1) & (SITES - 1)) {
    unsigned found = site_table[i];
    if (found && !memcmp((void*)&sites[found], (void*)&s, sizeof s)) return found;
    if (found) continue;
    if (sites.size >= SITES / 2) return 0;
    site_table[i] = (unsigned)sites.size;
    sites.push(s);
    return site_table[i];
  }
}

// ------------------------------------------------------------------------------------------------------ sets of readers
// Sets are immutable and numbered; 0 is the empty one. Adding a reader to a set is remembered, since neighbouring bytes
// are read by the same threads in the same order.

struct Reader {
  unsigned component;
  Clk clock;
  unsigned site, atomic;
};

struct Sets {
  Vec<Reader> readers;
  Vec<unsigned> first;  // of set i in `readers`; set i ends where i + 1 begins

  struct Step {
    unsigned set;
    Reader added;
    unsigned result, age;
  };
  Vec<Step> steps;
  unsigned age = 0;  // of sets: steps of earlier ones are gone
  enum : unsigned { STEPS = 1u << 14 };

  void clear() {
    readers.clear();
    first.assign(2, 0);
    if (steps.empty() || !++age) steps.assign(STEPS, Step{}), age = 1;
  }
  const Reader* begin_of(unsigned set) { return readers.data + first[set]; }
  const Reader* end_of(unsigned set) { return readers.data + first[set + 1]; }

  unsigned add(unsigned set, const Reader& r) {
    unsigned long long h = (set * 0x9E3779B97F4A7C15ull ^ r.component) * 0xD6E8FEB86659FD93ull ^ r.clock;
    h = (h ^ r.site ^ r.atomic << 31) * 0x9E3779B97F4A7C15ull;
    Step& s = steps[(h >> 40) & (STEPS - 1)];
    if (s.age == age && s.set == set && !memcmp((void*)&s.added, (void*)&r, sizeof r)) return s.result;
    for (unsigned i = first[set]; i < first[set + 1]; i++)
      if (!memcmp((void*)&readers[i], (void*)&r, sizeof r)) {
        s = Step{set, r, set, age};
        return set;
      }
    bool known = false;
    for (unsigned i = first[set]; i < first[set + 1]; i++) {
      bool same = readers[i].component == r.component && readers[i].atomic == r.atomic;
      known |= same;
      readers.push(same ? r : readers[i]);
    }
    if (!known) readers.push(r);
    first.push((unsigned)readers.size);
    s = Step{set, r, (unsigned)first.size - 2, age};
    return s.result;
  }
};

static Sets generic_sets, async_sets;
static unsigned sets_epoch;  // sets of threads' reads of earlier epochs are gone
static const size_t MANY_READERS = 1u << 22;

// ------------------------------------------------------------------------------------------------------------- checking

struct Accessor {
  unsigned component;
  Clk clock;
  const Clock* seen;
  const Clock* published;  // null: it sees all that its thread has seen
  unsigned slot;
  bool async, write, atomic;
  Region* region;
  const char* at;
  unsigned bytes;
  const Fiber* thread;
  unsigned site;
};

static bool ordered(const Accessor& a, unsigned component, Clk clock) {
  if (component == a.component && (!a.async || clock == a.clock)) return true;
  return clock_seen(*a.seen, a.slot, component) >= clock;
}

static const Fiber* owner(unsigned component) {
  unsigned n = (unsigned)fibers.size;
  if (component < n) return fibers[component];
  return component < n * (1 + STREAMS) && component != NO_WRITER ? fibers[(component - n) / STREAMS] : nullptr;
}

static Finding finding(const Accessor& a, const char* kind, bool fatal) {
  return Finding{kind, fatal, a.thread, a.at, a.bytes, a.write, sites[a.site].frames, 0, nullptr, false, nullptr};
}

static void report_race(const Accessor& a, unsigned component, bool other_write, unsigned site, const char* reason) {
  Finding f = finding(a, "race", false);
  f.other = owner(component), f.other_write = other_write, f.other_frames = sites[site].frames;
  report(f, "%s%s of %u byte(s) and %s%s%s", a.async ? "asynchronous " : "", a.write ? "write" : "read", a.bytes,
         component >= fibers.size && component != NO_WRITER ? "an asynchronous " : "a ", other_write ? "write" : "read",
         reason);
}

// Stores of one block to bytes that another one wrote: they race unless they leave the bytes as they are.
static const char* const BY_ANOTHER = " by another block are not ordered";
struct Overwrite {
  Accessor by;
  unsigned component, site, old, n;  // n bytes of `old_bytes` from `old` on
  const char* reason;
};
static Vec<Overwrite> overwrites;
static Vec<char> old_bytes;

static void report_overwrite(const Accessor& a, unsigned component, unsigned site, const char* reason) {
  if (!a.write || a.atomic) return report_race(a, component, true, site, reason);
  overwrites.push(Overwrite{a, component, site, (unsigned)old_bytes.size, 1, reason});
  old_bytes.push(*a.at);
}

static void settle() {  // each store has happened by the next access
  for (const Overwrite& o : overwrites)
    if (memcmp(o.by.at, &old_bytes[o.old], o.n)) report_race(o.by, o.component, true, o.site, o.reason);
  overwrites.size = old_bytes.size = 0;
}

static void check_readers(const Accessor& a, Sets& sets, unsigned set) {
  for (const Reader *r = sets.begin_of(set), *end = sets.end_of(set); r < end; r++)
    if (!(a.atomic && r->atomic) && !ordered(a, r->component, r->clock)) return report_race(a, r->component, false, r->site, " are not ordered");
}

// Writes of earlier blocks to bytes that a later block has read.
struct Origin {
  unsigned epoch, writer;
  Clk clock;
};
static Vec<Origin> origins;

static unsigned origin_of(const Cell& c) {
  Origin o{c.epoch, c.writer, c.write_clock};
  if (origins.empty() || memcmp((void*)&origins.last(), (void*)&o, sizeof o)) origins.push(o);
  return (unsigned)origins.size - 1;
}

static bool after_origin(const Accessor& a, const Origin& o) {
  return order_known(*a.seen, a.slot, o.epoch, o.writer, o.clock, false);
}

static bool after_readers(const Accessor& a, const Cell& c) {
  return order_known(*a.seen, a.slot, origins[c.write_clock].epoch, NO_COMPONENT, 0, true);
}

// The first access by this block to a byte that earlier ones accessed.
static void enter_block(const Accessor& a, Cell& c) {
  bool arrays = a.region->buffer >= 0, together = a.atomic && c.flags & ATOMIC;
  unsigned short read = a.atomic ? READ : READ | READ_ATOMICALLY;
  bool written = c.flags & (WRITTEN | FOREIGN), conflict = written || (a.write && c.flags & (read | BEFORE));
  Cell fresh{};
  fresh.writer = NO_WRITER, fresh.flags = arrays ? c.flags & INITIALISED : 0;
  if (arrays && conflict && option(RACE) && !together) {
    Origin own{c.epoch, c.writer, c.write_clock};
    const Origin& o = c.flags & FOREIGN ? origins[c.write_clock] : own;
    bool writes = !written || after_origin(a, o) || (c.flags & ATOMIC && order_observed(*a.seen, a.slot, a.at));
    bool reads = !a.write || ((!(c.flags & read) || order_known(*a.seen, a.slot, c.epoch, NO_COMPONENT, 0, true)) &&
                              (!(c.flags & BEFORE) || after_readers(a, c)));
    bool ordered = writes && reads;
    // What a block wrote and read itself may be stored again.
    if (!ordered && (c.flags & ATOMIC || (!reads && !(c.flags & WRITTEN))))
      report_race(a, NO_WRITER, reads, 0, BY_ANOTHER);
    else if (!ordered)
      report_overwrite(a, NO_WRITER, 0, BY_ANOTHER);
    // Other readers of this block are checked, too.
    if (ordered && !a.write && !(c.flags & ATOMIC)) {
      fresh.write_clock = c.flags & FOREIGN ? c.write_clock : origin_of(c);
      fresh.flags |= FOREIGN;
    }
  }
  if (arrays && together && !a.write && option(RACE)) {  // plain reads of this block are checked
    fresh.write_clock = c.flags & FOREIGN ? c.write_clock : origin_of(c);
    fresh.flags |= FOREIGN | ATOMIC;
  } else if (arrays && option(RACE) && !a.write && !written && c.flags & (READ | BEFORE)) {
    fresh.write_clock = c.flags & BEFORE ? c.write_clock : origin_of(c);
    fresh.flags |= BEFORE;
  }
  c = fresh;
}

static void enter_epoch(const Accessor& a, Cell& c) {
  if (c.epoch < block_floor) {
    enter_block(a, c);
  } else if (!a.async && c.epoch < floor_epoch) {
    c.readers = 0;
    if (c.writer < fibers.size) c.writer = NO_WRITER;
    if (!c.async_readers) c.flags &= (unsigned short)~(READ | READ_ATOMICALLY);
  }
  if (c.epoch < sets_epoch) c.readers = 0;
  c.epoch = epoch;
}

static void check_cell(const Accessor& a, Cell& c) {
  enter_epoch(a, c);
  if (option(RACE)) {
    if (c.writer != NO_WRITER && c.flags & WRITTEN && !(a.atomic && c.flags & ATOMIC)) {
      if (!ordered(a, c.writer, c.write_clock)) {
        const Fiber* other = owner(c.writer);
        bool elsewhere = other && other->cta != a.thread->cta && a.region->buffer >= 0 && !(c.flags & ATOMIC);
        if (elsewhere)
          report_overwrite(a, c.writer, c.write_site, " are not ordered");
        else if (!(c.flags & ATOMIC && order_observed(*a.seen, a.slot, a.at)))
          report_race(a, c.writer, true, c.write_site, " are not ordered");
      } else if (a.published && !(c.flags & BY_OTHER_PROXY) && clock_seen(*a.published, a.slot, c.writer) < c.write_clock)
        report_race(a, c.writer, true, c.write_site, " need a fence between the proxies");
    }
    bool apart = c.flags & FOREIGN && !(a.atomic && c.flags & ATOMIC);
    if (apart && !after_origin(a, origins[c.write_clock]) &&
        !(c.flags & ATOMIC && order_observed(*a.seen, a.slot, a.at))) {
      report_race(a, NO_WRITER, true, 0, BY_ANOTHER);
      c.flags &= (unsigned short)~(FOREIGN | ATOMIC);
    }
    if (a.write) {
      if (c.flags & BEFORE && !after_readers(a, c)) report_race(a, NO_WRITER, false, 0, BY_ANOTHER);
      check_readers(a, generic_sets, c.readers);
      check_readers(a, async_sets, c.async_readers);
    }
  }
  // Not by atomics: a loop of compare and exchange reads the bytes around a small element, too.
  bool must_be_written = !a.atomic && (a.region->buffer < 0 || a.region->flags & UNWRITTEN);
  if (option(UNINIT) && !a.write && must_be_written && !(c.flags & INITIALISED)) {
    report(finding(a, "uninitialised", false), "read of %u unwritten byte(s)", a.bytes);
    c.flags |= INITIALISED;
  }
  if (a.write) {
    c.writer = (unsigned short)a.component, c.write_clock = a.clock, c.write_site = a.site;
    c.readers = c.async_readers = 0;
    c.flags = (unsigned short)(WRITTEN | INITIALISED | (a.atomic ? ATOMIC : 0) | (a.published ? BY_OTHER_PROXY : 0));
  } else {
    Sets& sets = a.async ? async_sets : generic_sets;
    unsigned& set = a.async ? c.async_readers : c.readers;
    if (option(RACE)) set = sets.add(set, Reader{a.component, a.clock, a.site, a.atomic});
    c.flags |= a.atomic ? READ_ATOMICALLY : READ;
  }
}

static Accessor accessor(Region* r, const void* p, unsigned bytes, bool write, bool atomic, const Fiber* thread,
                         unsigned site) {
  Accessor a{};
  a.region = r, a.at = (const char*)p, a.bytes = bytes, a.write = write, a.atomic = atomic, a.site = site;
  if (running && !thread) {
    Phase* phase = running->barrier ? find_phase(running->barrier) : nullptr;
    a.async = true, a.thread = running->thread, a.slot = running->thread->slot;
    a.component = phase ? phase->component : stream_component(a.slot, running->stream);
    a.clock = phase ? phase->number + 1 : running->sequence;
    a.seen = &running->seen[GENERIC];
    if (option(PROXIES) && running->proxy == OTHER_PROXY) a.published = &running->seen[PUBLISHED];
  } else {
    a.thread = thread ? thread : current;
    a.slot = a.component = a.thread->slot;
    a.seen = &a.thread->clock[GENERIC], a.clock = a.seen->own[0];
  }
  return a;
}

void check(const void* p, unsigned bytes, bool write, bool atomic, const Fiber* thread, void* frame, void* pc) {
  counters.accesses++;
  if (overwrites.size) settle();
  Region* r = find(p);
  bool whole = r && (const char*)p + bytes <= r->high;
  if (!whole && atomic && bytes == 2) {
    // Elements of a byte are exchanged with the one beside them, in the word that holds both. Allocations are multiples
    // of words, but arrays need not be: the byte outside is put back as it was.
    const char* inside = (const char*)p + (r ? 0 : 1);
    if (r || find(inside)) return check(inside, 1, write, atomic, thread, frame, pc);
  }
  if (!whole) {
    if (!option(BOUNDS) || (!r && (on_stack(p) || in_image(p) || of_engine(p)))) return;
    Accessor a = accessor(r, p, bytes, write, atomic, thread, site_of(frame, pc));
    bool near = r || place_of(p).buffer != NOWHERE;
    return report(finding(a, "bounds", true), "%s of %u byte(s)%s", write ? "write" : "read", bytes,
                  near ? "" : " where no array is");
  }
  if (!(r->flags & VALUES)) counters.bytes[r->buffer < 0 ? SHARED : ARRAYS][write] += bytes;
  if (write && r->flags & (READ_ONLY | VALUES) && option(BOUNDS))
    report(finding(accessor(r, p, bytes, write, atomic, thread, site_of(frame, pc)), "read-only", false),
           "write of %u byte(s) to an array that the kernel only reads", bytes);
  if (!option(RACE | UNINIT) || r->flags & (READ_ONLY | VALUES)) return;
  size_t first = (size_t)((const char*)p - r->low), within = ((size_t)1 << r->shift) - 1;
  Accessor a = accessor(r, p, bytes, write, atomic, thread, site_of(frame, pc));
  Cell* cells = cell_of(*r, first);
  // A run of bytes in one state takes one comparison.
  Cell before{}, after{};
  bool overwrites_run = false;
  for (unsigned i = 0; i < bytes; i++) {
    if (!((first + i) & within)) cells = cell_of(*r, first + i) - i;
    if (i && !memcmp((void*)&cells[i], (void*)&before, sizeof before)) {
      cells[i] = after;
      if (overwrites_run) overwrites.last().n++, old_bytes.push(((const char*)p)[i]);
      continue;
    }
    before = cells[i];
    a.at = (const char*)p + i;
    size_t known = overwrites.size;
    check_cell(a, cells[i]);
    overwrites_run = overwrites.size > known;
    after = cells[i];
  }
}

void report_watches() {
  settle();
  for (unsigned i = 0; i < launch->watches_n; i++) {
    const Watch& w = launch->watches[i];
    const char* at = (const char*)launch->buffers[w.buffer].address + w.offset;
    Region* r = find(at);
    unsigned site = r ? cell_of(*r, (size_t)(at - r->low))->write_site : 0;
    report(Finding{"uninitialised", false, nullptr, at, 0, true, site ? sites[site].frames : nullptr, 0, nullptr, false, nullptr},
           "a result that depends on unwritten registers or private arrays");
  }
}

void memory_barrier() {
  if (block_floor == epoch) {
    generic_sets.clear();
    async_sets.clear();
    sets_epoch = epoch;
  } else if (generic_sets.readers.size > MANY_READERS) {
    generic_sets.clear();
    sets_epoch = epoch;
  }
}

// ----------------------------------------------------------------------------------------------------------- interface

void access(const void* p, unsigned bytes, bool write, const Thread* thread) {
  check(p, bytes, write, false, (const Fiber*)thread, __builtin_frame_address(0), nullptr);
}

void access_atomic(void* p, unsigned bytes, unsigned how) {
  check(p, bytes, how & WRITES, true, nullptr, __builtin_frame_address(0), nullptr);
  if (option(RACE) && current && !running) order_access(p, how);
}

unsigned shared_offset(const void* p) { return (unsigned)((const unsigned char*)p - block->shared); }

Block* block_of(unsigned rank) {
  if (rank >= ctas.size) fail("collective", "the cluster has no block %u", rank);
  return ctas[rank];
}
void* shared_of(unsigned rank, const void* p) {
  return block_of(rank)->shared + ((const unsigned char*)p - block->shared);
}

}  // namespace simt
