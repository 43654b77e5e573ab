"""Whole-tile expressions, a safe value outside of the tensor, a one-sided clamp."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def gated(X, G, b, block: int = 16):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float32"]
    G: T.Tensor[[M, N], "float32"]
    b: T.Tensor[[N], "float32"]
    Y = T.empty(M, N, dtype="float32")
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        x, g, bias = (
            T.alloc_fragment((block, N), "float32"),
            T.alloc_fragment((block, N), "float32"),
            T.alloc_fragment(N, "float32"),
        )
        T.annotate_safe_value({X: 1.0})
        T.copy(X[bx * block, 0], x)
        T.copy(G[bx * block, 0], g)
        T.copy(b, bias)
        x = x * T.sigmoid(g) + bias[None, :]
        for i, j in T.Parallel(block, N):
            x[i, j] = T.clamp(x[i, j], min_val=-0.5)
        T.copy(x, Y[bx * block, 0])
    return Y


rng = np.random.default_rng()
x, g, b = (rng.standard_normal(s).astype("float32") for s in ((37, 48), (37, 48), (48,)))
expected = np.maximum(x / (1 + np.exp(-g.astype("float64"))) + b, -0.5)
np.testing.assert_allclose(gated(x, g, b), expected, rtol=1e-5, atol=1e-5)
print("whole tiles: right")
