"""A two-pass softmax of rows into the caller's output, timed by do_bench."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.profiler import do_bench


@tilelang.jit
def softmax(M, N, block=64, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=block) as row:
            x = T.alloc_fragment((block,), dtype)
            top, part = T.alloc_fragment((1,), dtype), T.alloc_fragment((1,), dtype)
            best, total = T.alloc_var(dtype, -T.infinity(dtype)), T.alloc_var(dtype, 0.0)
            for k in T.serial(T.ceildiv(N, block)):
                for i in T.Parallel(block):
                    x[i] = T.if_then_else(k * block + i < N, X[row, k * block + i], -T.infinity(dtype))
                T.reduce_max(x, top, dim=0)
                before = T.alloc_var(dtype, best)
                best = T.max(best, top[0])
                for i in T.Parallel(block):
                    x[i] = T.exp(x[i] - best)
                T.reduce_sum(x, part, dim=0)
                total = total * T.exp(before - best) + part[0]
            for k in T.Serial(T.ceildiv(N, block), annotations={"note": 1}):
                for i in T.parallel(block):
                    Y[row, k * block + i] = T.exp(X[row, k * block + i] - best) / total

    return main


kernel = softmax(9, 150)
x, y = np.random.default_rng().standard_normal((9, 150)).astype("float32") * 5, np.full((9, 150), np.nan, "float32")
kernel(x, y)
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def in_place(x, y):
    e = np.exp(x - x.max(1, keepdims=True))
    y[:] = e / e.sum(1, keepdims=True)


kernel.get_profiler(tilelang.TensorSupplyType.Uniform).assert_allclose(in_place, rtol=1e-4, atol=1e-5)
mean = do_bench(lambda: kernel(x, y), warmup=1, rep=2, backend="event", return_mode="mean")
low, high = do_bench(lambda: kernel(x, y), warmup=1, rep=2, quantiles=[0.2, 0.8])
assert mean > 0
assert low <= high
print(f"softmax: right, {mean:.4f} ms")
