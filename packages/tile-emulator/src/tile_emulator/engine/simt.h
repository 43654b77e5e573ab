// What a dialect's headers may use of the engine: this file is the whole interface.
//
// A kernel's text is compiled as host C++. Every thread of a block is a fiber on one OS thread; a fiber runs until it
// waits. A dialect maps the device language to this interface: its built-in variables to `self` and `block`, its
// barriers, collectives and asynchronous copies to the functions below.
//
// Memory: plain loads and stores of the kernel are seen by compiler instrumentation. A *model* (the host code that
// stands for a device instruction) is not instrumented: it is marked SIMT_MODEL and accesses memory by `load` and
// `store`, on behalf of the thread that executes the instruction.
//
// Headers must not need the C++ runtime library: no exceptions, no RTTI, no `new`, nothing of <string> or <vector>.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMT_API 1  // raised when a dialect's headers would have to change

#define SIMT_UNCHECKED                                                                                             \
  no_sanitize("thread", "alignment", "bounds", "integer-divide-by-zero", "shift-exponent", "float-cast-overflow")
#if defined(__clang__)
#define SIMT_MODEL __attribute__((SIMT_UNCHECKED, disable_sanitizer_instrumentation))
#else
#define SIMT_MODEL __attribute__((SIMT_UNCHECKED, noinline))
#endif

// Storage class of a shared array in a function: one per process, filled with poison before each block.
#define SIMT_SHARED static __attribute__((section("simt_shared"), used))

namespace simt {

struct Dim3 {
  unsigned x, y, z;
};

struct Thread {
  Dim3 index;     // in the block
  unsigned id;    // linear, x fastest
  unsigned lane;  // in its warp
  unsigned warp;  // in the block
};

struct Block {
  Dim3 index, grid, threads;
  unsigned rank, ranks;   // in its cluster, and how many blocks that has
  unsigned char* shared;  // slab of `shared_bytes`, aligned to 1024
  unsigned shared_bytes;
};

extern Thread* self;   // the thread that runs
extern Block* block;   // its block

// What registers and private arrays hold before anything is written there. A kernel whose results depend on it reads
// unwritten memory, which two runs with different bytes reveal.
extern unsigned char undefined_byte, undefined_bool;

namespace detail {
template <class T> struct Element { enum { is_bool = 0 }; };
template <> struct Element<bool> { enum { is_bool = 1 }; };
template <class T, size_t n> struct Element<T[n]> : Element<T> {};
}  // namespace detail

template <class T>
__attribute__((always_inline)) inline void undefined(T& variable) {
  memset((void*)&variable, detail::Element<T>::is_bool ? undefined_bool : undefined_byte, sizeof variable);
}

// ------------------------------------------------------------------------------------------------------- collectives
// Threads of a group meet; the last one to arrive runs `fn` for all of them, then all go on. `packs[i]` and `threads[i]`
// belong to member i of the group and are null for members that take no part. A meeting orders no memory accesses.
typedef void (*Meeting)(void** packs, Thread** threads, unsigned members);

// A group is `warps` consecutive warps (1: the warp, 0: the block). `mask`: which lanes take part (one warp only).
// `line` identifies sites: threads that meet at different ones diverged, which is reported. 0: not known. A macro of a
// dialect may pass SIMT_PLACE, which distinguishes several sites on a line.
#define SIMT_PLACE (__LINE__ | (__COUNTER__ % 2047 + 1) << 20)
constexpr int line_of(int place) { return place & 0xFFFFF; }
void meet(const char* name, unsigned warps, uint64_t mask, void* pack, Meeting fn, int line);

// A meeting of lanes of a warp that also orders their memory accesses.
void sync_warp(uint64_t mask, int line);

// The votes of participating lanes of a warp: a bit for each yes, and for each lane.
struct Votes {
  uint64_t yes, all;
};

namespace detail {
struct Vote {
  bool mine;
  Votes votes;
};
SIMT_MODEL inline void count_votes(void** packs, Thread**, unsigned lanes) {
  Votes votes = {0, 0};
  for (unsigned i = 0; i < lanes; i++) {
    if (!packs[i]) continue;
    votes.all |= 1ull << i;
    if (((Vote*)packs[i])->mine) votes.yes |= 1ull << i;
  }
  for (unsigned i = 0; i < lanes; i++)
    if (packs[i]) ((Vote*)packs[i])->votes = votes;
}
}  // namespace detail

SIMT_MODEL inline Votes vote(const char* name, bool mine, uint64_t mask, int line) {
  detail::Vote pack = {mine, {0, 0}};
  meet(name, 1, mask, &pack, detail::count_votes, line);
  return pack.votes;
}

// ---------------------------------------------------------------------------------------------------------- barriers
// `count` threads meet at barrier `id` (0 to 63); 0: all threads of the block.
void sync(unsigned id, unsigned count, int line);
// Arrive without waiting.
void arrive(unsigned id, unsigned count, int line);
// All threads of the cluster, in two halves: between them a thread goes on. Not `orders`: what the thread did before is
// not ordered before what others do after their wait.
void arrive_cluster(bool orders, int line);
void wait_cluster(int line);
// A fault unless block `rank` of the cluster has threads that have not ended: then its shared memory is no longer its.
void require_running(unsigned rank);

// ----------------------------------------------------------------------------------------------------- phase barriers
// An object in shared memory with a phase, a number of arrivals that end it, and bytes that are still to come.
void phase_init(void* barrier, unsigned arrivals);
void phase_destroy(void* barrier);
uint64_t phase_arrive(void* barrier, unsigned arrivals, int64_t expected_bytes);  // returns the phase's number
void phase_wait(void* barrier, unsigned parity);      // until the phase of this parity has ended
bool phase_test(void* barrier, unsigned parity);      // whether it has; a false answer lets others run

// Let others run: for loops that poll memory.
void yield();
// What was polled for has come: a thread that changes memory for others is no idle one.
void progress();

// ------------------------------------------------------------------------------------------- asynchronous operations
// An operation takes effect at its issue ("early") or at the last legal moment ("late"). Each thread has STREAMS
// streams of operations, which it groups and waits for; or an operation completes on a phase barrier. Operations of the
// stream LASTING may outlive their thread.
enum { STREAMS = 6, LASTING = 2 };
typedef void (*Effect)(void* payload);  // accesses memory by load and store: they are those of the operation

enum Proxy { SAME_PROXY = 0, OTHER_PROXY = 1 };  // OTHER_PROXY: sees writes of threads only after fence_proxy()

void async_copy(unsigned stream, void* to, const void* from, unsigned bytes, unsigned valid);  // the rest is zeroed
void async_run(unsigned stream, Proxy proxy, Effect fn, const void* payload, size_t bytes);
// The same, behind all operations that the thread has issued in the stream: they are ordered.
void async_run_behind(unsigned stream, Proxy proxy, Effect fn, const void* payload, size_t bytes);
void async_commit(unsigned stream);                  // the operations since the last commit become a group
void async_wait(unsigned stream, unsigned pending);  // until at most so many groups are pending
// Several threads wait, each also for the operations of the others; inside of a meeting.
void async_wait_all(unsigned stream, unsigned pending, Thread** threads, unsigned n);
void async_arrive(unsigned stream, void* barrier);   // arrive when the thread's operations so far have completed
// Called when a block has ended: what is wrong then, or null.
void at_end(const char* (*check)());
// Completes on `barrier`: `bytes` >= 0 of the expected bytes have come; -1: one arrival. Operations of one queue take
// effect in order. `barrier` null: no barrier counts it.
void async_signal(unsigned queue, Proxy proxy, Effect fn, const void* payload, size_t n, void* barrier, int64_t bytes);
void fence_proxy();
void phases_publish();  // the initialisations by this thread become visible to it, and nothing else

// Variables of the running thread that stand for registers of an asynchronous instruction: until the thread has waited
// for the group that it belongs to, no other access may write them, nor read its outputs. `shape`: instructions of
// one shape may add to the same registers one after the other; 0: registers that need no fence before.
void hold_registers(const void* at, unsigned bytes, bool write, unsigned shape);
void fence_registers();   // what the thread did with registers before is ordered before the instructions it issues now
void commit_registers();  // those held since the last commit become a group
void release_registers(Thread* thread, unsigned pending);  // all but those of so many groups

// ------------------------------------------------------------------------------------------------------------ memory
// Check and record an access of a model: on behalf of `thread` (null: the running thread, or the operation whose effect
// is running).
void access(const void* p, unsigned bytes, bool write, const Thread* thread = nullptr);
// Atomic accesses race with no atomic access, and may order others: what a thread did before an atomic write that
// RELEASES, or before a fence and a later atomic write, is ordered before what another one does that has read that write
// (or a read-modify-write that follows it) by an atomic read that ACQUIRES, or by one with a fence after it. OF_BLOCK:
// for threads of its block only.
enum Access : unsigned { READS = 1, WRITES = 2, ACQUIRES = 4, RELEASES = 8, OF_BLOCK = 16 };
void access_atomic(void* p, unsigned bytes, unsigned how = READS | WRITES);
void fence(bool of_block);
void require_aligned(const void* p, unsigned alignment);

// Block `rank` of the cluster. A model that works for several of them makes each the one that runs meanwhile.
Block* block_of(unsigned rank);
// How often the running thread has waited at the barrier of the cluster.
unsigned cluster_waits();

// Offset of an address in the slab of the running thread's block, and the address of an offset in block `rank`.
unsigned shared_offset(const void* p);
void* shared_of(unsigned rank, const void* p);

// A model found the kernel at fault; the run ends with this report.
[[noreturn]] void fail(const char* kind, const char* format, ...) __attribute__((format(printf, 2, 3)));
// The kernel ends itself: a failed assertion, if the thread has just printed that.
[[noreturn]] void trap();
// Text of the kernel, for its print statements.
void print(const char* format, ...) __attribute__((format(printf, 1, 2)));

template <class T>
SIMT_MODEL inline T load(const void* p, const Thread* thread = nullptr) {
  T value;
  access(p, sizeof(T), false, thread);
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

template <class T>
SIMT_MODEL inline void store(void* p, T value, const Thread* thread = nullptr) {
  access(p, sizeof(T), true, thread);
  __builtin_memcpy(p, &value, sizeof(T));
}

// value = fn(value), as one step; returns the old value. Atomics do not race with atomics.
template <class T, class F>
SIMT_MODEL inline T atomic(T* p, F fn, unsigned order = 0) {  // order: ACQUIRES, RELEASES, OF_BLOCK
  T old, fresh;
  access_atomic(p, sizeof(T), READS | WRITES | order);
  __builtin_memcpy(&old, p, sizeof(T));
  fresh = fn(old);
  __builtin_memcpy(p, &fresh, sizeof(T));
  return old;
}

// ------------------------------------------------------------------------------------------------------------- entry
// Calls a kernel with `args`: one address per parameter, of the memory it points to, or of its value. The parameter
// types are those of the function, so no text is parsed.
namespace detail {
template <unsigned... I>
struct Sequence {};
template <unsigned N, unsigned... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <unsigned... I>
struct Count<0, I...> {
  typedef Sequence<I...> type;
};
template <class T>
struct Argument {
  SIMT_MODEL static T get(void* p) { return *(T*)p; }
};
template <class T>
struct Argument<T*> {
  SIMT_MODEL static T* get(void* p) { return (T*)p; }
};
template <class T>
struct Argument<T&> {
  SIMT_MODEL static T& get(void* p) { return *(T*)p; }
};
template <class... A, unsigned... I>
SIMT_MODEL inline void call(void (*kernel)(A...), void** args, Sequence<I...>) {
  kernel(Argument<A>::get(args[I])...);
}
}  // namespace detail

template <class... A>
SIMT_MODEL inline void invoke(void (*kernel)(A...), void** args) {
  asm("" : "+r"(kernel));  // a function of its own: not inlined here, where nothing is instrumented
  detail::call(kernel, args, typename detail::Count<sizeof...(A)>::type());
}

}  // namespace simt
