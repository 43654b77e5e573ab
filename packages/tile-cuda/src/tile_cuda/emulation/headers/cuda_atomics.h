// Atomic functions by their CUDA names.
#pragma once
#include "ptx_memory.h"

#define CUDA_ATOMIC(name, Operation, T) \
  inline T name(T* p, T by) { return ptx::atomic<ptx::Operation, T>(p, by); }
#define CUDA_ATOMIC_32(name, Operation)  \
  CUDA_ATOMIC(name, Operation, int)      \
  CUDA_ATOMIC(name, Operation, unsigned)
CUDA_ATOMIC_32(atomicAdd, Add)
CUDA_ATOMIC(atomicAdd, Add, unsigned long long)
CUDA_ATOMIC(atomicAdd, Add, float)
CUDA_ATOMIC(atomicAdd, Add, double)
CUDA_ATOMIC_32(atomicMin, Min)
CUDA_ATOMIC(atomicMin, Min, long long)
CUDA_ATOMIC(atomicMin, Min, unsigned long long)
CUDA_ATOMIC_32(atomicMax, Max)
CUDA_ATOMIC(atomicMax, Max, long long)
CUDA_ATOMIC(atomicMax, Max, unsigned long long)
CUDA_ATOMIC_32(atomicAnd, And)
CUDA_ATOMIC(atomicAnd, And, unsigned long long)
CUDA_ATOMIC_32(atomicOr, Or)
CUDA_ATOMIC(atomicOr, Or, unsigned long long)
CUDA_ATOMIC_32(atomicXor, Xor)
CUDA_ATOMIC(atomicXor, Xor, unsigned long long)
CUDA_ATOMIC_32(atomicExch, Exch)
CUDA_ATOMIC(atomicExch, Exch, unsigned long long)
CUDA_ATOMIC(atomicExch, Exch, float)
CUDA_ATOMIC(atomicInc, Inc, unsigned)
CUDA_ATOMIC(atomicDec, Dec, unsigned)
#undef CUDA_ATOMIC
#undef CUDA_ATOMIC_32
inline int atomicSub(int* p, int by) { return atomicAdd(p, (int)(0u - (unsigned)by)); }
inline unsigned atomicSub(unsigned* p, unsigned by) { return atomicAdd(p, 0u - by); }

#define CUDA_CAS(T) \
  inline T atomicCAS(T* p, T expected, T fresh) { return ptx::compare_and_swap<T>(p, expected, fresh); }
CUDA_CAS(unsigned short)
CUDA_CAS(int)
CUDA_CAS(unsigned)
CUDA_CAS(unsigned long long)
#undef CUDA_CAS
