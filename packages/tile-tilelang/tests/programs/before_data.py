"""A kernel that is compiled for its sizes before there is data."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(X, factor: float = 0.5, block: int = 64):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block), M, threads=block) as (bx, by):
        for i in T.Parallel(block):
            Y[by, bx * block + i] = X[by, bx * block + i] * factor
    return Y


kernel = scaled.compile(M=20, N=130, block=32)
x = np.random.default_rng().standard_normal((20, 130)).astype("float32")
np.testing.assert_array_equal(kernel(x), x * np.float32(0.5))
np.testing.assert_array_equal(scaled(x, factor=2.0), x * 2)
print("compiled before there is data: right")
