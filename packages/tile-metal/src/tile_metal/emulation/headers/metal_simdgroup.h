// Functions of a simdgroup. All its lanes that exist meet; a device would let those meet that are active, and what
// others give is not defined, so that a lane that is missing is reported.
#pragma once
#include "metal_vectors.h"
#include "simt.h"

namespace metal_model {

enum : unsigned { LANES = 32 };

template <class T>
inline constexpr bool in_registers = same<T, float> || same<T, half> || (is_integer<T> && sizeof(T) <= 4);
template <class T, int N>
inline constexpr bool in_registers<metal::vec<T, N>> = in_registers<T>;
template <class T>
inline constexpr bool reducible = in_registers<T> && width<T> == 1 && !same<T, bool>;
template <class T>
inline constexpr bool bitwise = reducible<T> && is_integer<T>;

// ---------------------------------------------------------------------------------------------------------- shuffles

// `from` is the lane whose value a lane takes; `by` must be the same in all lanes, where a function asks for that.
template <class T>
struct Shuffled {
  T value, result;
  unsigned from, by;
  const char* name;
};

template <class T>
SIMT_MODEL void exchange(void** packs, simt::Thread**, unsigned lanes) {
  Shuffled<T>* first = nullptr;
  for (unsigned i = 0; i < lanes; i++) {
    Shuffled<T>* to = (Shuffled<T>*)packs[i];
    if (!to) continue;
    if (!first) first = to;
    if (to->by != first->by)
      simt::fail("collective", "%s: lanes give different numbers, %u and %u", to->name, first->by, to->by);
    if (to->from >= lanes || !packs[to->from])
      simt::fail("collective", "%s: lane %u takes the value of lane %u, which takes no part", to->name, i, to->from);
    to->result = ((Shuffled<T>*)packs[to->from])->value;
  }
}

template <class T>
SIMT_MODEL T shuffle(const char* name, const T& value, unsigned from, unsigned by, int line) {
  static_assert(in_registers<T>, "shuffles take half, float, integers of up to 32 bits and vectors of them");
  Shuffled<T> pack{value, value, from, by, name};
  simt::meet(name, 1, ~0ull, &pack, exchange<T>, line);
  return pack.result;
}

// ---------------------------------------------------------------------------------------------------------- reductions

// A reduction gives all lanes the same, a prefix each lane what the lanes up to it have, itself included or not.
enum Reach { ALL, INCLUSIVE, EXCLUSIVE };

template <class T, class Operation, Reach R>
SIMT_MODEL void combine(void** packs, simt::Thread**, unsigned lanes) {
  bool begun = false;
  T sum = Operation::template of_none<T>();
  for (unsigned i = 0; i < lanes; i++) {
    if (!packs[i]) continue;
    T mine = *(T*)packs[i];
    if (R == EXCLUSIVE) *(T*)packs[i] = sum;
    sum = begun || R == EXCLUSIVE ? Operation::template apply<T>(sum, mine) : mine;
    begun = true;
    if (R == INCLUSIVE) *(T*)packs[i] = sum;
  }
  for (unsigned i = 0; i < lanes && R == ALL; i++)
    if (packs[i]) *(T*)packs[i] = sum;
}

template <class Operation, Reach R, class T>
SIMT_MODEL T reduce(const char* name, const T& value, int line) {
  T pack = value;
  simt::meet(name, 1, ~0ull, &pack, combine<T, Operation, R>, line);
  return pack;
}

#define METAL_OPERATION(Name, none, expression)                    \
  struct Name {                                                    \
    template <class T>                                             \
    SIMT_MODEL static T of_none() {                                \
      return (T)none;                                              \
    }                                                              \
    template <class T>                                             \
    SIMT_MODEL static T apply(const T& a, const T& b) {            \
      return (T)(expression);                                      \
    }                                                              \
  };
METAL_OPERATION(Sum, 0, a + b)
METAL_OPERATION(Product, 1, a * b)
METAL_OPERATION(Max, 0, b != b || a >= b ? a : b)  // of a number and NaN: the number
METAL_OPERATION(Min, 0, b != b || a <= b ? a : b)
METAL_OPERATION(And, 0, a & b)
METAL_OPERATION(Or, 0, a | b)
METAL_OPERATION(Xor, 0, a ^ b)
#undef METAL_OPERATION

// -------------------------------------------------------------------------------------------------------------- votes

SIMT_MODEL inline simt::Votes vote(const char* name, bool mine, int line) { return simt::vote(name, mine, ~0ull, line); }

}  // namespace metal_model

// Values, not references: what is read from memory is read by the caller, where accesses are seen.
namespace metal {

template <class T>
inline T simd_shuffle(T value, ushort lane, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_shuffle", value, lane, 0, line);
}
template <class T>
inline T simd_broadcast(T value, ushort lane, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_broadcast", value, lane, lane, line);
}
template <class T>
inline T simd_broadcast_first(T value, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_broadcast_first", value, 0, 0, line);
}
template <class T>
inline T simd_shuffle_xor(T value, ushort mask, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_shuffle_xor", value, simt::self->lane ^ mask, mask, line);
}
// The lanes that no other lane gives a value keep their own.
template <class T>
inline T simd_shuffle_up(T value, ushort by, int line = __builtin_LINE()) {
  unsigned lane = simt::self->lane;
  return metal_model::shuffle("simd_shuffle_up", value, lane < by ? lane : lane - by, by, line);
}
template <class T>
inline T simd_shuffle_down(T value, ushort by, int line = __builtin_LINE()) {
  unsigned lane = simt::self->lane;
  return metal_model::shuffle("simd_shuffle_down", value, lane + by < metal_model::LANES ? lane + by : lane, by, line);
}
template <class T>
inline T simd_shuffle_rotate_up(T value, ushort by, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_shuffle_rotate_up", value, (simt::self->lane - by) & 31, by, line);
}
template <class T>
inline T simd_shuffle_rotate_down(T value, ushort by, int line = __builtin_LINE()) {
  return metal_model::shuffle("simd_shuffle_rotate_down", value, (simt::self->lane + by) & 31, by, line);
}

#define METAL_REDUCTION(name, Operation, reach, kind)                                                       \
  template <class T>                                                                                        \
  inline T name(T value, int line = __builtin_LINE()) {                                              \
    static_assert(metal_model::kind<T>, #name " has no model for this type");                               \
    return metal_model::reduce<metal_model::Operation, metal_model::reach>(#name, value, line);             \
  }
METAL_REDUCTION(simd_sum, Sum, ALL, reducible)
METAL_REDUCTION(simd_product, Product, ALL, reducible)
METAL_REDUCTION(simd_max, Max, ALL, reducible)
METAL_REDUCTION(simd_min, Min, ALL, reducible)
METAL_REDUCTION(simd_and, And, ALL, bitwise)
METAL_REDUCTION(simd_or, Or, ALL, bitwise)
METAL_REDUCTION(simd_xor, Xor, ALL, bitwise)
METAL_REDUCTION(simd_prefix_inclusive_sum, Sum, INCLUSIVE, reducible)
METAL_REDUCTION(simd_prefix_exclusive_sum, Sum, EXCLUSIVE, reducible)
METAL_REDUCTION(simd_prefix_inclusive_product, Product, INCLUSIVE, reducible)
METAL_REDUCTION(simd_prefix_exclusive_product, Product, EXCLUSIVE, reducible)
#undef METAL_REDUCTION

class simd_vote {
 public:
  typedef ulong vote_t;
  explicit simd_vote(vote_t votes = 0) : votes(votes) {}
  explicit operator vote_t() const { return votes; }
  bool any() const { return votes != 0; }

 private:
  vote_t votes;
};

inline simd_vote simd_ballot(bool mine, int line = __builtin_LINE()) {
  return simd_vote(metal_model::vote("simd_ballot", mine, line).yes);
}
inline bool simd_any(bool mine, int line = __builtin_LINE()) {
  return metal_model::vote("simd_any", mine, line).yes != 0;
}
inline bool simd_all(bool mine, int line = __builtin_LINE()) {
  simt::Votes v = metal_model::vote("simd_all", mine, line);
  return v.yes == v.all;
}

}  // namespace metal
