// The engine's own view: fibers, clocks, asynchronous operations, and who defines what.
#pragma once
#include "containers.h"
#include "simt.h"

namespace simt {

enum Option : unsigned {  // numbers known to launch.py
  LATE = 1,               // asynchronous operations complete at the last legal moment, else at issue
  REVERSE = 2,            // the last thread runs first
  RANDOM = 4,             // any ready thread may run
  BOUNDS = 8,
  RACE = 16,
  UNINIT = 32,
  ALIGN = 64,
  PROXIES = 128,  // operations of the other proxy need fence_proxy
  OTHER = 256,    // other bytes in unwritten registers
};

enum State : unsigned char { READY, BLOCKED, DONE };

// ------------------------------------------------------------------------------------------------------------- clocks
// Vector clocks. Component t < n is thread t of the cluster, n + t * STREAMS + s its stream s, and those above are the
// phase barriers. A thread's own components live outside the vector, so that threads can share one vector between two
// barriers: a barrier of n threads then costs n steps and not n * n.
typedef unsigned Clk;

struct Vector {
  unsigned uses;
  Clk v[1];  // clock_size of them
};

struct Clock {
  Vector* base;
  Clk own[1 + STREAMS];
};

// What a set of threads released together.
struct Released {
  Vector* joined = nullptr;     // owned by this alone
  Vector* last_in = nullptr;    // the base that was joined last
  Vector* seen_in = nullptr;    // memo of acquire: this base ...
  Vector* seen_out = nullptr;   // ... became that one
};

enum { GENERIC = 0, PUBLISHED = 1, KINDS = 2 };  // what a thread has seen; what of it the other proxy sees

// ------------------------------------------------------------------------------------------------------------- fibers
struct Cta;

struct Operation {
  Effect fn;  // null: a copy
  void* payload;
  void* to;
  const void* from;
  unsigned bytes, valid, stream, sequence, queue;
  Proxy proxy;
  void* barrier;     // completes on it; null: belongs to a stream
  long long signal;  // bytes, or -1
  bool flush;        // completes the thread's stream and arrives
  bool done;
  bool signalled;    // a phase barrier counts its completion
  struct Fiber* thread;
  Clock seen[KINDS];
  void* frames[8];  // of its issue
};

struct Group {
  Vec<Operation*> ops;
  unsigned last;  // sequence number of its last operation
};

struct Stream {
  Vec<Operation*> open;
  Vec<Group> groups;
  unsigned issued;  // operations so far
};

struct Fence {
  Clock clocks[KINDS];
  unsigned epoch;
  bool set;
};

struct Held {  // registers of an asynchronous instruction
  char* low;
  unsigned bytes;
  bool write;
  unsigned shape, group;
  void* frames[8];  // of its issue
};

struct Unfenced {  // what a thread read at a location of order.cpp
  Vector* released;
  struct List* list;
  unsigned n;
};

struct Fiber : Thread {
  void* sp;
  char *stack_low, *stack_high;
  State state;
  Fiber* next;  // in the ready queue
  Cta* cta;
  unsigned slot;     // among all threads of the cluster
  const char* why;   // it is blocked: what it waits for, where
  const void* what;
  unsigned long long about[2];
  int line;
  void* frame;
  Stream streams[STREAMS];
  bool streaming;  // it has used one of them
  Clock clock[KINDS];
  Fence fences[2];  // of the device, of the block
  Vec<Unfenced> unfenced;
  Vec<Held> held;
  unsigned held_groups, register_fence;  // groups it has committed; number of its last fence of registers
  bool register_fenced;
  unsigned cluster_phase;  // phases of the cluster's barrier that the thread has arrived at
  bool cluster_arrived;    // and has not waited for yet
};

struct Barrier {
  unsigned id = 0, arrived = 0, count = 0;
  int line = 0;
  bool used = false;
  Vec<Fiber*> waiting;
  Released released[KINDS];
};

struct Phase {
  void* address;
  unsigned expected, pending, number, component;
  unsigned creator;  // slot of the thread that initialised it, and its clock then
  Clk created, published;  // and at its fence of initialisations, or 0
  long long bytes;
  Vec<Fiber*> waiting;
  Released released[KINDS];
};

struct Meet {
  const char* name;
  unsigned warps, group, arrived, need, members;
  unsigned long long mask;
  int line;
  bool used;
  void** packs;
  Fiber** who;
};

enum { BARRIERS = 64, PHASES = 256 };

struct Cta : Block {
  Vec<Fiber*> members;
  Barrier barriers[BARRIERS];
  Vec<Meet> meets;
};

// ------------------------------------------------------------------------------------------------------------- launch
// The structures that launch.py fills.
struct Buffer {
  unsigned long long file_offset, mapped, start, bytes;  // pages of the data file; where in them the array lies
  unsigned flags;
  unsigned pad;
  unsigned char* address;  // set by the engine
};

enum BufferFlag : unsigned { READ_ONLY = 1, UNWRITTEN = 2, VALUES = 4 };

struct Argument {
  unsigned buffer, pad;
  unsigned long long offset;
};

struct Patch {  // the address of a buffer, added to a number in another one
  unsigned buffer, target;
  unsigned long long offset;
};

struct Watch {  // a byte of an array that depends on unwritten memory
  unsigned buffer, pad;
  unsigned long long offset;
};

struct Launch {
  void (*entry)(void**);
  Dim3 grid, threads, clusters;  // the last one: blocks of a cluster
  unsigned cluster, warp, shared_bytes, options, max_reports, stack_bytes, milliseconds;
  int data, reports, output;
  unsigned long long seed, output_bytes;
  unsigned buffers_n, args_n, patches_n, watches_n;
  Buffer* buffers;
  const Argument* args;
  const Patch* patches;
  const Watch* watches;
  unsigned char *static_low, *static_high;  // shared arrays of the kernel's image
};

enum { ARRAYS = 0, SHARED = 1, WHERES = 2 };

struct Counters {
  unsigned long long switches, meetings, barriers, accesses, operations, blocks;
  unsigned long long bytes[WHERES][2];  // of accesses to arrays and to shared memory: read, written
};

struct Met {  // a collective that ended, by its name
  const char* name;
  unsigned long long count;
};

extern Launch* launch;
extern Counters counters;
extern Vec<Cta*> ctas;       // of the cluster that runs
extern Vec<Fiber*> fibers;   // all its threads
extern Fiber* current;       // self, or null outside of fibers
extern bool in_model;        // instrumentation is off
extern Operation* running;   // the operation whose effect runs

inline bool option(unsigned o) { return (launch->options & o) != 0; }
inline unsigned slot_of(const Thread* t) { return ((const Fiber*)t)->slot; }

// fiber.cpp
void start_fibers();  // runs the cluster's threads to their end
void make_ready(Fiber* f);
void make_ready_last(Fiber* f);
void block_here(const char* why, const void* what, unsigned long long a, unsigned long long b, int line);
void poll(const char* why, const void* what, unsigned long long about);  // lets others run, then goes on
unsigned long long random_number();
void make_stacks(unsigned n);
bool on_stack(const void* p);

// clock.cpp
extern unsigned clock_size, epoch, block_floor, floor_epoch;
void clocks_start();
void clock_copy(Clock& to, const Clock& from);
void clock_drop(Clock& c);
Clk clock_seen(const Clock& c, unsigned slot, unsigned component);
void released_clear(Released (&r)[KINDS]);
void released_add(Released (&r)[KINDS], const Clock* clocks, unsigned slot);
void released_raise(Released (&r)[KINDS], unsigned component, Clk value);
void release(Released (&r)[KINDS], Fiber* f);        // f's accesses so far are ordered before what acquires r
void acquire(Fiber* f, Released (&r)[KINDS]);
void synchronise(Fiber** who, unsigned n, Released (&r)[KINDS], bool everybody);
inline unsigned stream_component(unsigned slot, unsigned s) { return (unsigned)fibers.size * 1 + slot * STREAMS + s; }
inline unsigned phase_component(unsigned k) { return (unsigned)fibers.size * (1 + STREAMS) + k; }

// order.cpp
enum : unsigned { NO_COMPONENT = 0xffff };
void order_start();
void order_access(void* p, unsigned how);
bool order_known(const Clock& seen, unsigned slot, unsigned when, unsigned component, Clk clock, bool strictly);
bool order_observed(const Clock& seen, unsigned slot, const void* p);

// sync.cpp
extern Vec<Met> met;
void sync_start();
Phase* find_phase(const void* p);
void phase_progress(Phase& p);

// async.cpp
void async_start();
bool run_one_operation();  // at the last legal moment: nobody else can run
void async_thread_exit(Fiber* f);
void async_end();

// registers.cpp
void registers_start();
void registers_touched(Fiber* f, char* p, unsigned n, bool write, void* pc, void* frame);

// memory.cpp
struct Place {        // where an address lies
  int buffer;         // index, or one of the below
  long long offset;   // from its first byte
  unsigned long long bytes;
};
enum { SHARED_SLAB = -1, SHARED_STATIC = -2, NOWHERE = -3 };
void map_memory();
void memory_block_start();
void report_watches();  // at the end: who wrote the bytes that are watched
void memory_barrier();  // everything before is ordered before everything after
void check(const void* p, unsigned bytes, bool write, bool atomic, const Fiber* thread, void* frame, void* pc);
Place place_of(const void* p);

// report.cpp
enum { FRAMES = 8 };
struct Finding {
  const char* kind;
  bool fatal;
  const Fiber* thread;
  const void* address;
  unsigned bytes;
  bool write;
  void** frames;  // FRAMES of them, the innermost first
  int line;       // of the text, where a dialect has it; 0
  const Fiber* other;
  bool other_write;
  void** other_frames;
};
void collect_frames(void** frames, void* frame, void* pc);
void report(const Finding& f, const char* format, ...) __attribute__((format(printf, 2, 3)));
[[noreturn]] void report_deadlock();
[[noreturn]] void finish(const char* end);
void catch_signals();
bool in_image(const void* p);

// launch.cpp
bool of_engine(const void* p);

}  // namespace simt
