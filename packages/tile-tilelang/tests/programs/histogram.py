"""Explicit threads: a shared-memory histogram, a barrier, atomics, and a reversal per block."""

import numpy as np
import tilelang
import tilelang.language as T

BINS, THREADS = 16, 64


@tilelang.jit(out_idx=[1])
def reversed_blocks(blocks):
    @T.prim_func
    def main(X: T.Tensor((blocks * THREADS,), "int32"), Y: T.Tensor((blocks * THREADS,), "int32")):
        with T.Kernel(blocks, threads=THREADS) as bx:
            held = T.alloc_shared((THREADS,), "int32")
            for t in T.thread_binding(0, THREADS, thread="threadIdx.x"):
                held[t] = X[bx * THREADS + t]
                T.sync_threads()
                Y[bx * THREADS + t] = held[THREADS - 1 - t]

    return main


@tilelang.jit
def histogram(n):
    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), counts: T.Tensor((BINS,), "int32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            T.set_max_nreg(64, 0)
            for i in T.Parallel(128):
                if bx * 128 + i < n:
                    T.atomic_add(counts[T.clamp(X[bx * 128 + i], min_val=0, max_val=BINS - 1)], 1)

    return main


rng = np.random.default_rng()
x = rng.integers(0, 100, 5 * THREADS, dtype="int32")
np.testing.assert_array_equal(reversed_blocks(5)(x), x.reshape(5, THREADS)[:, ::-1].reshape(-1))
x, counts = rng.integers(-4, BINS + 4, 1000, dtype="int32"), np.zeros(BINS, "int32")
histogram(1000)(x, counts)
np.testing.assert_array_equal(counts, np.bincount(np.clip(x, 0, BINS - 1), minlength=BINS))
assert tilelang.cdiv(1000, 128) == 8
print("threads by name: right")
