"""Reductions over threads, and shuffles; products of 64 rows; vectors of a thread."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.errors import TileError
from tile_tilelang.errors import BadCall, NotInLanguage
from tile_tilelang.running import answering

TARGETS = ["cpu", "cuda:sm_90a", "metal"]


def compiled(program: object, target: str) -> object:
    if target != "cpu":
        pytest.importorskip("tile_emulator")
    return tile.compile(program, target, runtime=None if target == "cpu" else "emulator")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", [(4, 32, 1), (32, 4, 1), (7, 5, 3), (1, 1, 1)])
@pytest.mark.parametrize("along", [(0,), (1,), (0, 2)])
def test_values_of_threads_are_combined(target: str, threads: tuple[int, int, int], along: tuple[int, ...]) -> None:
    @T.prim_func
    def kernel(A: T.Tensor(threads, "int32"), S: T.Tensor(threads, "int32"), G: T.Tensor(threads, "int32")):
        with T.Kernel(1, threads=threads):
            i = T.get_thread_binding(0)
            j = T.get_thread_binding(1)
            ids = i, j, T.get_thread_binding(2)
            axes = [ids[axis] for axis in along]
            value, total, greatest = (T.alloc_local((1,), "int32") for _ in range(3))
            value[0] = A[ids]
            for combine, result in ((lambda x, y: x + y, total), (T.max, greatest)):
                with T.attr(T.comm_reducer(combine, [0]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
                    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), value[0], True, result[0], *axes, dtype="handle"))
            S[ids], G[ids] = total[0], greatest[0]

    a = np.random.default_rng().integers(-1000, 1000, threads).astype("int32")
    s, g = np.full_like(a, 77), np.full_like(a, 77)
    compiled(kernel, target)(a, s, g)
    np.testing.assert_array_equal(s, np.broadcast_to(a.sum(along, keepdims=True), threads))
    np.testing.assert_array_equal(g, np.broadcast_to(a.max(along, keepdims=True), threads))


@pytest.mark.parametrize("wrong", ["size", "condition", "result", "axes", "the function"])
def test_other_reductions_over_threads_are_refused(wrong: str) -> None:
    with pytest.raises(BadCall, match=wrong):

        @T.prim_func
        def kernel(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                i = T.get_thread_binding(0)
                result = T.alloc_local((1,), "int32")
                if wrong != "the function":
                    T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0)
                T.tvm_thread_allreduce(
                    2 if wrong == "size" else 1, A[i], i < 3 if wrong == "condition" else True,
                    i if wrong == "result" else result[0], i + 1 if wrong == "axes" else i,
                )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_shuffles_by_their_old_names(target: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), B: T.Tensor((3, 32), "float32")):
        with T.Kernel(1, threads=32):
            i = T.get_thread_binding(0)
            v = A[i]
            B[0, i] = T.tvm_warp_shuffle(0xFFFFFFFF, v, i ^ 5, 32, 32)
            B[1, i] = T.tvm_warp_shuffle_up(0xFFFFFFFF, v, 3, 8, 32)
            B[2, i] = T.tvm_warp_shuffle_down(0xFFFFFFFF, v, 3, 8, 32)

    a, b = np.random.default_rng().standard_normal(32).astype("float32"), np.full((3, 32), np.nan, "float32")
    compiled(kernel, target)(a, b)
    lane = np.arange(32)
    up, down = np.where(lane % 8 >= 3, lane - 3, lane), np.where(lane % 8 < 5, lane + 3, lane)
    np.testing.assert_array_equal(b, [a[lane ^ 5], a[up], a[down]])


@pytest.mark.parametrize("rows", [64, 128])
def test_a_product_of_64_rows_needs_no_tensor_memory(rows: int) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((rows, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((rows, 64), "float32")
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((rows, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((rows, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.tcgen05_gemm(a, b, c)
            T.copy(c, C)

    assert ("tcgen05" in tile.compile(kernel, "cuda:sm_100a").source) == (rows == 128)
    if rows == 128:
        with pytest.raises(TileError):
            tile.compile(kernel, "cuda:sm_90a")
    else:
        assert "wgmma" in tile.compile(kernel, "cuda:sm_90a").source


def test_the_work_of_a_program_is_counted() -> None:
    @tilelang.jit
    def product(M, N, K):
        @T.prim_func
        def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
                a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(c)
                for k in T.serial(T.ceildiv(K, 32)):
                    T.copy(A[by * 64, k * 32], a)
                    T.copy(B[k * 32, bx * 64], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * 64, bx * 64])

        return main

    with answering():
        from tilelang.carver.arch import CDNA, CUDA
        from tilelang.tools import Analyzer

        found = Analyzer.analysis(product.get_tir(256, 128, 64), CUDA("cuda:sm_90a"))
        assert (found.total_flops, found.total_global_bytes) == (2 * 256 * 128 * 64, 2 * 64 * 384 + 4 * 256 * 128)
        assert (CUDA("cuda:sm_90a").sm_version, CDNA("hip -mcpu=gfx942").platform) == (90, "ROCM")


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_threads_and_bits(target: str) -> None:
    @T.prim_func
    def kernel(A: T.StridedTensor[(64,), (1,), "uint64"], B: T.Tensor((5, 64), "int32"), n: T.int32):
        with T.Kernel(1, threads=64):
            i = T.get_thread_binding(0)
            B[0, i] = T.__ffs(T.__ldg(A, i))
            B[1, i] = T.get_lane_idx(8)
            B[2, i] = T.get_warp_idx(8)
            B[3, i] = T.__ffs(T.cast(A[i], "int32"))
            if i == 0:
                for k in T.unroll(n):
                    B[4, k] = k

    rng = np.random.default_rng()
    a = rng.integers(0, 2**63, 64, dtype="uint64") << rng.integers(0, 64, 64, dtype="uint64")
    a[:3] = 0, 1, 1 << 63
    b = np.full((5, 64), -1, "int32")
    compiled(kernel, target)(a, b, 13)
    lowest = [int(x) & -int(x) for x in a]
    np.testing.assert_array_equal(b[0], [x.bit_length() for x in lowest])
    np.testing.assert_array_equal(b[1], np.arange(64) % 8)
    np.testing.assert_array_equal(b[2], np.arange(64) // 8)
    np.testing.assert_array_equal(b[3], [x.bit_length() if x < 1 << 32 else 0 for x in lowest])
    np.testing.assert_array_equal(b[4], [*range(13), *[-1] * 51])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
def test_vectors_of_a_thread(target: str) -> None:
    @T.prim_func
    def kernel(
        X: T.Tensor((256,), "float32"), H: T.Tensor((256,), "float16"), Y: T.Tensor((256,), "float32"),
        Z: T.Tensor((256,), "float16"), E: T.Tensor((3, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            S = T.alloc_shared((256,), "float32")
            T.sts128(S[t * 4 : t * 4 + 4], T.ldg128(X[t * 4 : t * 4 + 4], pred=t < 40))
            T.sync_threads()
            other = (63 - t) * 4
            v = T.reinterpret(T.lds128(S[other : other + 4]), T.float32x4)
            Y[t * 4 : t * 4 + 4] = v
            E[0, t] = T.extract_lane(v, 2)
            E[1, t] = T.reinterpret(T.ldg32(X[t]), "float32")
            E[2, t] = T.extract_lane(T.float32x2(v[1], 3), 1)
            T.stg64(Z[t * 4 : t * 4 + 4], T.ldg64(H[t * 4 : t * 4 + 4]), pred=t != 3)

    rng = np.random.default_rng()
    x, h = rng.standard_normal(256).astype("float32"), rng.standard_normal(256).astype("float16")
    y, z, e = np.full(256, 7, "float32"), np.full(256, 7, "float16"), np.full((3, 64), 7, "float32")
    compiled(kernel, target)(x, h, y, z, e)
    mirrored = np.where(np.arange(64)[:, None] < 40, x.reshape(64, 4), 0)[::-1]
    np.testing.assert_array_equal(y.reshape(64, 4), mirrored)
    np.testing.assert_array_equal(e, [mirrored[:, 2], x[:64], np.full(64, 3)])
    np.testing.assert_array_equal(z.reshape(64, 4), np.where(np.arange(64)[:, None] != 3, h.reshape(64, 4), 7))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_vectors_that_atomic_additions_return(target: str) -> None:
    @T.prim_func
    def kernel(D: T.Tensor((2, 4), "int32"), V: T.Tensor((8,), "int32"), P: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            P[0:4] = T.atomic_addx4(D[1, 0], V[0:4], return_prev=True)
            P[4:6] = T.atomic_addx2(D[1, 0:2], V[4:6], return_prev=True)
            T.atomic_addx2(D[1, 2], V[6])

    rng = np.random.default_rng()
    d, v, p = rng.integers(-99, 99, (2, 4), "int32"), rng.integers(-99, 99, 8, "int32"), np.zeros(8, "int32")
    before = d.copy()
    compiled(kernel, target)(d, v, p)
    np.testing.assert_array_equal(p, [*before[1], *(before[1] + v[:4])[:2], 0, 0])
    np.testing.assert_array_equal(d, [before[0], before[1] + v[:4] + v[4:]])


WRONG = {
    "elements of 64 bits": lambda A, B: T.ldg64(A[0:4]),
    "an element or a slice": lambda A, B: T.ldg32(A[0] + 1),
    "one dimension": lambda A, B: T.ldg128(B[0:2, 0:2]),
    "0 to 1": lambda A, B: T.extract_lane(T.ldg64(A[0:2]), 2),
    "a vector": lambda A, B: T.extract_lane(A[0], 0),
    "expected 2": lambda A, B: T.float32x2(1, 2, 3),
    "a type of 2 lanes": lambda A, B: T.reinterpret(T.ldg64(A[0:2]), T.float32x4),
    "of 2 lanes": lambda A, B: T.stg128(A[0:4], T.ldg64(A[0:2])),
    "float32x2": lambda A, B: T.alloc_shared((4,), T.float32x2),
}


@pytest.mark.parametrize("reason", WRONG)
def test_other_vectors_are_refused(reason: str) -> None:
    with pytest.raises(TileError, match=reason):

        @T.prim_func
        def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8, 8), "float32")):
            with T.Kernel(1, threads=1):
                WRONG[reason](A, B)

    assert T.float32x2 == "float32x2"
    for other in ("x4", "__fns", "__tilelang_dialect__"):
        with pytest.raises(NotInLanguage, match=other):
            getattr(T, other)


def test_names_of_tvm_that_hosts_use() -> None:
    names: dict = {}
    with answering():
        exec(
            "import tilelang\nfrom tilelang import tvm\n"
            "kind = isinstance(tvm.DataType('int8'), tvm.DataType), isinstance('int8', tvm.DataType)\n"
            "target = tvm.target.Target({'kind': 'hip', 'mcpu': 'gfx942'})\n"
            "config = {tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: 1}\n"
            "with tvm.transform.PassContext(opt_level=3, config=config) as found: pass\n"
            "from tilelang.rocm.target import check_hip_availability, target_is_gfx950\n"
            "from tilelang.language.dtypes import _all_dtypes\n"
            "amd = target_is_gfx950('hip -mcpu=gfx950'), check_hip_availability()\n",
            names,
        )
    assert names["kind"] == (True, False)
    assert names["target"] == "rocm:gfx942"
    assert names["found"].opt_level == 3
    assert names["amd"] == (True, False)
    assert "bfloat16" in names["_all_dtypes"]


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_reductions_into_variables(target: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 8), "float32"), B: T.Tensor((3, 32), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            row = T.alloc_local((8,), "float32")
            total = T.alloc_var("float32")
            most = T.alloc_var("float32", init=0.5)
            for i in T.serial(8):
                row[i] = A[t, i]
            T.reduce_sum(row, total, dim=0)
            T.reduce_max(row, most, dim=0, clear=False)
            B[0, t], B[1, t] = total, most
            T.reduce_sum(row, total, 0, False)
            B[2, t] = total

    a, b = np.random.default_rng().standard_normal((32, 8)).astype("float32"), np.full((3, 32), np.nan, "float32")
    compiled(kernel, target)(a, b)
    expected = [a.sum(1), np.maximum(a.max(1), 0.5), 2 * a.sum(1)]
    np.testing.assert_allclose(b, expected, rtol=1e-5, atol=1e-5)


def test_a_kernel_is_made_of_a_program() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] + 1

    made = tilelang.JITKernel(kernel, out_idx=[1], target="cpu")
    np.testing.assert_array_equal(made(np.arange(32, dtype="float32")), np.arange(1, 33))
    profiler = made.get_profiler()
    assert profiler.do_bench(profiler.func, n_warmup=1, n_repeat=1) > 0
