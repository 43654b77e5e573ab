"""A norm of a runtime number of rows: a named size, and tilelang.compile."""

import numpy as np
import tilelang
import tilelang.language as T

M = T.dynamic("m")
N = 200
BLOCK = 8


@T.prim_func
def rms_norm(X: T.Tensor((M, N), "float32"), W: T.Tensor([N], T.float32), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(M, BLOCK), threads=128) as bx:
        rows = T.alloc_fragment((BLOCK, N), "float32")
        squares = T.alloc_fragment((BLOCK, N), "float32")
        mean = T.alloc_fragment((BLOCK,), "float32")
        T.copy(X[bx * BLOCK, 0], rows)
        for i, j in T.Parallel(BLOCK, N):
            squares[i, j] = rows[i, j] * rows[i, j]
        T.reduce_sum(squares, mean, dim=1)
        for i in T.Parallel(BLOCK):
            mean[i] = T.rsqrt(mean[i] / N + 1e-6)
        for i, j in T.Parallel(BLOCK, N):
            rows[i, j] = rows[i, j] * mean[i] * W[j]
        T.copy(rows, Y[bx * BLOCK, 0])


kernel = tilelang.compile(rms_norm, out_idx=-1, target="auto", execution_backend="cython", verbose=False)
assert kernel.params[0].name == "X"
assert kernel.out_idx == [2]
rng = np.random.default_rng()


def reference(x, w):
    return x / np.sqrt((x.astype("float64") ** 2).mean(1, keepdims=True) + 1e-6) * w


w = rng.standard_normal(N).astype("float32")
for m in (1, 13, 64):
    x = rng.standard_normal((m, N)).astype("float32")
    np.testing.assert_allclose(kernel(x, w), reference(x, w), rtol=1e-5, atol=1e-5)
kernel.get_profiler().assert_allclose(reference, input_tensors=[x, w], rtol=1e-4, atol=1e-4, max_mismatched_ratio=0)
latency = kernel.get_profiler().do_bench(reference, input_tensors=[x, w], warmup=1, rep=1, backend="cudagraph")
print(f"norm: right, NumPy takes {latency:.4f} ms")
