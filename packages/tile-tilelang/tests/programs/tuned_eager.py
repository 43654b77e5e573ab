"""An eager kernel that is tuned with the arrays that it is called with."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.autotune(configs={"block": [32, 64], "threads": [64]}, warmup=1, rep=1, ref_prog=lambda x, y: x * 2 + y)
@tilelang.jit
def axpy(X, Y, block: int = 128, threads: int = 128):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y: T.Tensor[[N], T.float32]
    Z = T.empty(N, dtype=T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=threads) as (bx,):
        x, y = T.alloc_fragment((block,), T.float32), T.alloc_fragment((block,), T.float32)
        T.copy(X[bx * block], x)
        T.copy(Y[bx * block], y)
        T.copy(x * 2 + y, Z[bx * block])
    return Z


rng = np.random.default_rng()
x, y = rng.standard_normal((2, 1001)).astype("float32")
np.testing.assert_array_equal(axpy(x, y), x * 2 + y)
kernel = axpy.compile(N=64)
assert kernel.config["block"] in (32, 64)
np.testing.assert_array_equal(kernel(x[:64], y[:64]), x[:64] * 2 + y[:64])
print(f"tuned eager kernel: right, {kernel.config}")
