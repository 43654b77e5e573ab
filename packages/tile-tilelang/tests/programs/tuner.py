"""The tuner without a decorator, over a factory that nothing decorates."""

import numpy as np
import tilelang
import tilelang.language as T
from tilelang.autotuner import AutoTuner

N = 1000


def scale(block=None, threads=None):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[bx * block + i] * 3.0

    return main


tuner = AutoTuner.from_kernel(kernel=scale, configs=[{"block": b, "threads": 128} for b in (128, 256)])
tuner = tuner.set_compile_args(out_idx=[-1], target="auto").set_profile_args(
    supply_type=tilelang.TensorSupplyType.Integer, ref_prog=lambda x: x * 3, skip_check=False
)
best = tuner.run(warmup=1, rep=1)
assert best.config["block"] in (128, 256)
assert best.latency > 0
assert best.ref_latency > 0
x = np.random.default_rng().standard_normal(N).astype("float32")
np.testing.assert_array_equal(best.kernel(x), x * np.float32(3))
print(best.config)
