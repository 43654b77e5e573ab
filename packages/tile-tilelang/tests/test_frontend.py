"""Seeds of reducers, fast functions, variables, declared arguments, requirements of tests."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.errors import TileError
from tile_tilelang import host, testing
from tile_tilelang.errors import BadCall, NotAnswered, NotOfFloats, NotOnHost
from tile_tilelang.running import answering

TARGETS = ["cpu", "cuda:sm_90a", "metal"]
OPERATIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "bitxor": np.bitwise_xor}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_a_seed_is_combined_once_per_epoch(op: str, in_place: bool, target: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((3, 4, 64), "int32"), S: T.Tensor((4,), "int32"), B: T.Tensor((3, 4), "int32")):
        with T.Kernel(1, threads=64):
            total, seed = T.alloc_reducer((4,), "int32", op), T.alloc_fragment((1,), "int32")
            found = T.alloc_fragment((4,), "int32")
            for k in T.serial(3):
                seed[0] = S[k]
                if k < 2:
                    T.reducer_init(total, seed[0])
                    seed[0] = 12345
                    for i, j in T.Parallel(4, 64):
                        T.reducer_update(total[i], A[k, i, j])
                    if in_place:
                        T.finalize_reducer(total)
                        T.copy(total, B[k, :])
                    else:
                        T.finalize_reducer(total, found)
                        T.copy(found, B[k, :])
            T.reducer_init(total)
            for i, j in T.Parallel(4, 64):
                T.reducer_update(total[i], A[2, i, j])
            T.finalize_reducer(total, found)
            T.copy(found, B[2, :])

    if target != "cpu":
        pytest.importorskip("tile_emulator")
    rng = np.random.default_rng()
    a, s = rng.integers(-1000, 1000, (3, 4, 64)).astype("int32"), rng.integers(-1000, 1000, 4).astype("int32")
    b = np.full((3, 4), 7, "int32")
    tile.compile(kernel, target, runtime=None if target == "cpu" else "emulator")(a, s, b)
    expected = OPERATIONS[op].reduce(a, axis=2)
    expected[:2] = OPERATIONS[op](expected[:2], s[:2, None])
    np.testing.assert_array_equal(b, expected)


def test_a_seed_has_the_type_of_its_reducer() -> None:
    with pytest.raises(BadCall, match="does not match reducer"):

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                T.reducer_init(T.alloc_reducer((4,), "float32"), T.float16(1.0))


@pytest.mark.parametrize("form", ["other seed", "branch", "two ends", "loop", "next iteration"])
def test_a_seeded_epoch_begins_and_ends_in_one_block(form: str) -> None:
    @T.macro
    def update(A: object, total: object) -> None:
        for i, j in T.Parallel(4, 64):
            T.reducer_update(total[i], A[i, j])

    with pytest.raises(BadCall, match="different blocks, and has a seed"):

        @T.prim_func
        def kernel(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1, threads=64):
                total = T.alloc_reducer((4,), "int32", "sum")
                if form in ("other seed", "branch"):
                    T.reducer_init(total)
                    if n > 0:
                        T.reducer_init(total, 100)
                    elif form == "other seed":
                        T.reducer_init(total)
                    update(A, total)
                    T.finalize_reducer(total)
                elif form == "two ends":
                    T.reducer_init(total, 100)
                    update(A, total)
                    if n > 0:
                        T.finalize_reducer(total)
                    else:
                        T.finalize_reducer(total)
                else:
                    T.reducer_init(total, 100 if form == "loop" else None)
                    for _k in T.serial(2):
                        update(A, total)
                        T.finalize_reducer(total)
                        T.reducer_init(total, 1000)
                T.copy(total, B)


@pytest.mark.parametrize("name", ["__exp", "__exp10", "__log", "__log2", "__log10", "__tan", "__cos", "__sin"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool", "float8_e4m3fn"])
def test_fast_functions_take_floats_alone(name: str, dtype: str) -> None:
    value, function = T.Var("x", dtype), getattr(T, name)
    assert isinstance(value, T.PrimExpr)
    assert isinstance(value, T.Var)
    if dtype.startswith(("float8", "int", "bool")):
        with pytest.raises(NotOfFloats, match=rf"K655. T\.{name} only supports floating-point inputs, but got {dtype}"):
            function(value)
    else:
        assert function(value).dtype == dtype
    with pytest.raises(TypeError):
        function(2)


def test_names_of_tvm_and_modules_are_refused_where_they_are_missing() -> None:
    with answering():
        names: dict[str, object] = {}
        exec("from tvm import tirx\nimport tilelang", names)
        assert isinstance(T.Var("x", "float32") + 1, names["tirx"].Call)
        assert names["tirx"].Var("p", "handle").name == "p"
        for name in ("layout", "testing", "utils", "profiler"):
            with pytest.raises(NotOnHost, match=f"tilelang.{name}.no_such_name"):
                exec(f"tilelang.{name}.no_such_name()", names)
        with pytest.raises(NotAnswered, match="from tvm import no_such_module"):
            exec("from tvm import no_such_module", names)
    assert tilelang.layout.__name__ == "tile_tilelang.layout"


def test_a_kernel_is_compiled_for_declared_arguments() -> None:
    @tilelang.jit(target="cpu")
    def doubled(A):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], T.float16]
        B, C = T.empty((M, N), "float16"), T.empty((N, M), "float16")
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(M, N):
                B[i, j], C[j, i] = A[i, j] * 2, A[i, j]
        return B, C

    assert doubled.get_tir(T.Tensor((4, 6), "float16")).params[0].shape == (4, 6)
    kernel = doubled.compile(T.Tensor((4, 6), "float16"))
    a = np.arange(24, dtype="float16").reshape(4, 6)
    found = kernel(a)
    assert isinstance(found, list)
    np.testing.assert_array_equal(found[0], a * 2)
    np.testing.assert_array_equal(found[1], a.T)
    with pytest.raises(TileError, match="float16"):
        doubled.compile(T.Tensor((4, 6), "float32"))
    with pytest.raises(TileError, match="the argument is TensorType, declared an array"):
        doubled(T.Tensor((4, 6), "float16"))


@pytest.mark.parametrize(
    ("target", "runs"), [("cpu", False), ("metal", False), ("cuda:sm_90a", True), ("cuda:sm_80", False)]
)
def test_a_compute_capability_is_required_of_nvidia_gpus(target: str, runs: bool) -> None:
    def test() -> None:
        """Compile a kernel."""

    with host.every_target(target):
        (mark,) = testing.requires_cuda_compute_version_ge(9, 0)(test).pytestmark
    assert mark.args == (not runs,)
