"""Forms of TileLang's scripts: schedulers, threads by number, TVM's expressions, suppliers, star imports."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.values.value import Value
from tile_tilelang.dtypes import dtype
from tile_tilelang.errors import NotOnHost
from tile_tilelang.params import params_of
from tile_tilelang.running import answering
from tile_tilelang.sparse_layout import get_e_factor, get_e_replicate_factor


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("swizzle", "column_major", "cluster"), [(1, True, 1), (2, True, 1), (3, False, 1), (2, True, 2)]
)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_a_persistent_scheduler_visits_every_tile_once(target, swizzle, column_major, cluster) -> None:
    rows, columns, blocks = 5, 7, 3

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "int32"), L: T.Tensor((rows * columns, 2), "int32")):
        with T.Kernel(blocks, threads=32) as bx:
            tiles = T.PersistentTileScheduler(
                rows, columns, blocks, swizzle_size=swizzle, column_major=column_major, cluster_size=cluster, name="s"
            )
            tiles.init(bx)
            while tiles.valid():
                for i in T.Parallel(cluster):
                    if tiles.m_idx * cluster + i < rows:
                        A[tiles.m_idx * cluster + i, tiles.n_idx] = tiles.current_iter + 1
                L[tiles.linear_idx, 0] = tiles.m_idx
                L[tiles.linear_idx, 1] = tiles.n_idx
                tiles.next_tile()

    if target != "cpu":
        pytest.importorskip("tile_emulator")
    compiled = importlib.import_module("tile_core").compile(
        kernel, target, runtime=None if target == "cpu" else "emulator"
    )
    a, order = np.zeros((rows, columns), "int32"), np.full((rows * columns, 2), -1, "int32")
    compiled(a, order)
    count = -(-rows // cluster) * columns
    assert sorted({tuple(p) for p in order[:count].tolist()}) == [
        (m, n) for m in range(-(-rows // cluster)) for n in range(columns)
    ]
    assert a.min() == 1
    assert a.max() == -(-count // blocks)
    # The first panel: `swizzle` neighbours across, then the next ones along.
    across = 1 if column_major else 0
    assert order[0, across] == 0
    if swizzle > 1:
        assert order[1, across] == 1
        assert order[swizzle, 1 - across] == 1


def test_threads_by_name_are_values() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.thread_binding(0, 64, thread="threadIdx.x")
            A[tx] = tx // 2 + T.get_warp_group_idx(8)
            for t in T.thread_binding(0, 64, thread="threadIdx.x"):
                B[t] = T.if_then_else(T.shuffle_elect(16), T.get_warp_idx_sync(warp_size=16), -1)

    a, b = np.zeros((2, 64), "int32")
    tilelang.compile(kernel, target="cpu")(a, b)
    threads = np.arange(64)
    np.testing.assert_array_equal(a, threads // 2 + threads // 32)
    np.testing.assert_array_equal(b, np.where(threads % 16 == 0, threads // 16, -1))


def test_expressions_of_tvm_are_those_of_the_language() -> None:
    """Scripts find the language's functions in ``tvm.tirx``; this package and TVM find TVM."""
    names: dict = {"T": T}
    text = """
from tilelang import tvm
from tvm import tirx, DataType
from tvm.tirx import IndexMap

def decode(word: tirx.PrimExpr, at):
    nibble = (word >> (at * tirx.const(4, "uint8"))) & tirx.const(15, "uint8")
    big = tirx.Select(nibble > tirx.const(7, "uint8"), tirx.Cast("int32", nibble) - 16, tirx.Cast("int32", nibble))
    return tirx.Min(tirx.Max(big, -7), 6), tirx.reinterpret("float32", tirx.const(0x3F800000, "uint32"))
"""
    with answering():
        exec(text, names)
        assert names["DataType"]("float16").bits == 16
        assert importlib.import_module("tvm").tirx.PrimExpr is Value
        with pytest.raises(NotOnHost, match=r"tvm\.no_such"):
            names["tvm"].no_such()
    decode = names["decode"]
    assert not hasattr(importlib.import_module("tvm").tirx, "PrimExpr")  # TVM itself is back

    @T.prim_func
    def kernel(A: T.Tensor((16,), "uint8"), B: T.Tensor((2, 16), "int32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(2, 16):
                low, one = decode(A[j], T.cast(i, "uint8"))
                B[i, j] = low
                C[j] = one

    a = np.random.default_rng().integers(0, 256, 16, "uint8")
    b, c = np.zeros((2, 16), "int32"), np.zeros(16, "float32")
    tilelang.compile(kernel, target="cpu")(a, b, c)
    nibbles = np.stack([a & 15, a >> 4]).astype("int32")
    np.testing.assert_array_equal(b, np.clip(np.where(nibbles > 7, nibbles - 16, nibbles), -7, 6))
    assert (c == 1).all()


def test_star_imports_and_suppliers() -> None:
    with answering():
        names: dict = {}
        exec("from tilelang.autotuner import *\nfrom tilelang.language.fp8 import *", names)
    assert names["autotune"] is tilelang.autotune
    assert "determine_fp8_type" in names

    @T.prim_func
    def kernel(X: T.Tensor((8, 4), "float16"), n: T.int32, Y: T.Tensor((8,), "uint8")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                Y[i] = T.cast(X[i, 0], "uint8") + T.cast(n, "uint8")

    x, n, y = params_of(tilelang.compile(kernel, target="cpu").signature)
    assert (x.dtype, list(x.shape), x.name) == (dtype("float16"), [8, 4], "X")
    assert n.is_scalar()
    assert y.is_unsigned()
    assert not any(is_one() for is_one in (x.is_float8, x.is_float4, x.is_boolean, x.is_scalar))
    assert (get_e_factor("float16", "int16"), get_e_factor("float32", "uint8"), get_e_factor("int8", "int32")) == (
        16,
        4,
        32,
    )
    assert [get_e_replicate_factor(t) for t in ("float16", "int8")] == [2, 1]


def test_suppliers_make_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from tile_tilelang.params import KernelParam
    from tile_tilelang.supply import TensorSupplyType, get_tensor_supply

    supply = get_tensor_supply(TensorSupplyType.Integer)
    first, second = (supply(KernelParam(dtype("bfloat16"), [33, 5])) for _ in range(2))
    assert first.dtype == torch.bfloat16
    assert first.shape == (33, 5)
    assert not torch.equal(first, second)


def test_configurations_may_carry_hints() -> None:
    @tilelang.jit(out_idx=[1], target="cpu")
    def copy(n, block=None):
        @T.prim_func
        def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
                T.copy(X[bx * block : bx * block + block], Y[bx * block : bx * block + block])

        return main

    hints, fast = {"tl.disable_tma_lower": True}, {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}
    tune = {"warmup": 0.1, "rep": 0.1}
    assert tilelang.autotune(copy, configs=[{"block": 32, "pass_configs": hints}], **tune)(70).config == {"block": 32}
    assert tilelang.autotune(copy, configs=[{"block": 64, "pass_configs": fast}], **tune)(70).config == {"block": 64}


def test_memory_of_named_scopes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            own = T.alloc_fragment((2,), "int32", "local")
            shared = T.alloc_buffer((8,), "int32", scope="shared")
            own[0] = tx * 3
            shared[tx] = own[0]
            T.sync_threads()
            A[tx] = shared[7 - tx]

    a = np.zeros(8, "int32")
    tilelang.compile(kernel, target="cpu")(a)
    np.testing.assert_array_equal(a, np.arange(7, -1, -1) * 3)


def test_approximations_and_votes_by_name() -> None:
    fast = getattr(T, "__exp")  # a name in a class would be mangled
    assert T.func_attr({"note": 1}) is None

    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "uint64")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            A[tx] = fast(A[tx])
            B[tx] = T.ballot_sync(predicate=tx < 3, mask=0xFFFFFFFF)

    a, b = np.linspace(-3, 3, 32, dtype="float32"), np.zeros(32, "uint64")
    expected = np.exp(a.astype("float64"))
    tilelang.compile(kernel, target="cpu")(a, b)
    np.testing.assert_allclose(a, expected, rtol=1e-6)
    assert b[0] == 7


def test_modules_and_bases_without_a_counterpart_are_refused_where_they_are_used() -> None:
    with answering():
        names: dict = {}
        exec("import tilelang.language.eager.ast as ast\nfrom tilelang.layout import make_other", names)
        for use in ("class Own(ast.BaseBuilder): pass", "list(ast)", "make_other(1)"):
            with pytest.raises(NotOnHost):
                exec(use, names)
