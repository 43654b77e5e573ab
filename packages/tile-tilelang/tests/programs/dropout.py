"""Dropout without a mask: counter-based random numbers, repeated in the second, backward launch."""

import numpy as np
import tilelang
import tilelang.language as T

KEPT = 0.75


@tilelang.jit(out_idx=[2])
def dropout(N, block=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), seed: T.int32, Y: T.Tensor((2, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as (bx,):
            for i in T.Parallel(block):
                T.rng_init(seed, bx * block + i, 0)
                Y[0, bx * block + i] = T.if_then_else(T.rng_rand_float() < KEPT, X[bx * block + i] / KEPT, 0.0)
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            for i in T.Parallel(block):
                T.rng_init(seed, bx * block + i, 0)
                Y[1, bx * block + i] = T.if_then_else(T.rng_rand_float() < KEPT, 1.0 / KEPT, 0.0)

    return main


kernel = dropout(5000)
x = np.random.default_rng().uniform(1, 2, 5000).astype("float32")
y = kernel(x, 3)
kept = y[0] != 0
np.testing.assert_array_equal(kept, y[1] != 0)
np.testing.assert_allclose(y[0][kept], x[kept] / KEPT, rtol=1e-6)
assert abs(kept.mean() - KEPT) < 0.05
np.testing.assert_array_equal(y, kernel(x, 3))
assert (y != kernel(x, 4)).any()
print(f"dropout: right, {kept.mean():.3f} kept")
