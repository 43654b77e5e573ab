"""Kernels as functions of tvm-ffi, for libraries that call them without Python."""

import numpy as np

import tile_core as tile
import tile_core.language as T


def test_each_launch_is_a_function():
    n = T.dynamic("n")

    @T.prim_func
    def summed(X: T.Tensor((2 * n,), "float32"), a: T.bfloat16, Y: T.Tensor((n,), "float32")):
        halves = T.alloc_global((n,), "float32")
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                halves[bx * 32 + i] = X[bx * 32 + i] * T.cast(a, "float32")
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                Y[bx * 32 + i] = halves[bx * 32 + i]

    kernel = tile.compile(summed, "cpu")
    x, y, halves = np.arange(10, dtype="float32"), np.empty(5, "float32"), np.empty(5, "float32")
    values = [x, 0x4000, y, halves, *(5 for _ in kernel.hidden)]  # the code of 2.0
    launches = kernel.machine_code()
    assert len(launches) == 2
    for launch in launches:
        launch.function(*[values[i] for i in launch.positions])
    assert y.tolist() == [0, 2, 4, 6, 8]
    assert kernel.wide is not None
    assert kernel.launch_of(wide=True) is not kernel.launch_of(wide=False)


def test_launches_of_text_need_python():
    @T.prim_func
    def copied(X: T.Tensor((4,), "float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = X[i]

    kernel = tile.Kernel(tile.compile(copied, "cpu").signature, lambda x, y: None)
    assert kernel.machine_code() == ()
