"""The host interface: keywords, targets, profilers, the tuner, and what each refuses."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from expected_errors import raises_error

import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.dtypes import dtype
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import NoWorkingConfig
from tile_core.errors.sparse import TorchMissing
from tile_tilelang.errors import BadCall, Differs, NotOnHost
from tile_tilelang.host import target_of
from tile_tilelang.supply import inputs_of

SOURCES = sorted((Path(tilelang.__file__).parent).glob("*.py"))


@T.prim_func
def double(X: T.Tensor((50,), "float32"), Y: T.Tensor((50,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(50):
            Y[i] = X[i] * 2.0


@T.prim_func
def grow(X: T.Tensor((T.dynamic("n"),), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            X[i] = X[i] + 1.0


@pytest.mark.parametrize(("is_parser", "most"), [(False, 2800), (True, 620)])
def test_the_package_is_thin(is_parser: bool, most: int) -> None:
    """Lines with code on them: neither empty, nor comments, nor docstrings.

    The interpreter of foreign C++ counts apart from the aliases.
    """
    total = 0
    for path in SOURCES:
        if path.name.startswith("cxx") is not is_parser:
            continue
        text = path.read_text(encoding="utf-8")
        lines = {n for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        total += len(lines)
    assert 0 < total <= most


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("auto", "auto"),
        (None, "auto"),
        ("llvm -mcpu=znver4", "cpu"),
        ("c", "cpu"),
        ("cuda", "cuda"),
        ("cuda -arch=sm_90a", "cuda:sm_90a"),
        ("cuda:sm_80", "cuda:sm_80"),
        ("hip -mcpu=gfx942", "rocm:gfx942"),
        ({"kind": "cuda", "arch": "sm_90a"}, "cuda:sm_90a"),
        (SimpleNamespace(kind=SimpleNamespace(name="llvm"), attrs={"mcpu": "skylake"}), "cpu"),
    ],
)
def test_targets(given: object, found: str) -> None:
    assert target_of(given) == found


def test_a_target_of_another_type_is_refused() -> None:
    with raises_error(BadCall, function="jit", name="target", found="3"):
        tilelang.compile(double, target=3)


class TestCompile:
    def test_keywords_that_mean_nothing_here(self) -> None:
        kernel = tilelang.compile(
            double, out_idx=-1, target="cpu", target_host="c", execution_backend="cython", verbose=True,
            pass_configs={"tl.disable_tma_lower": True, "tl.enable_ptxas_verbose_output": True}, compile_flags=["-O3"],
        )  # fmt: skip
        x = np.random.default_rng().standard_normal(50).astype("float32")
        np.testing.assert_array_equal(kernel(x), x * 2)
        assert kernel.prim_func is kernel.program
        assert [p.name for p in kernel.params] == ["X", "Y"]

    def test_keywords_that_ask_for_something_else_are_refused(self) -> None:
        with raises_error(BadArgument, name="pass_configs"):
            tilelang.compile(double, target="cpu", pass_configs={"tl.no_such": True})
        with raises_error(BadArgument, name="no_such"):
            tilelang.jit(no_such=1)
        with raises_error(BadCall, name="func", found="None"):
            tilelang.compile()

    def test_fast_math_reaches_the_options_of_the_target(self) -> None:
        configs = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}

        @T.prim_func
        def exponential(X: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    X[i] = T.exp(X[i])

        exact, fast = (
            tilelang.compile(exponential, target="cuda:sm_90a", pass_configs=c).kernel_source for c in (None, configs)
        )
        assert exact != fast

        def factory():
            return exponential

        jitted = tilelang.jit(factory, target="cuda:sm_90a", pass_configs=configs)
        assert jitted.get_kernel_source() == fast

    def test_sources(self, capsys: pytest.CaptureFixture[str]) -> None:
        kernel = tilelang.compile(double, target="cpu")
        kernel.show_source()
        assert capsys.readouterr().out.strip() == kernel.get_kernel_source().strip()
        with raises_error(NotOnHost, name="kernel.get_host_source"):
            kernel.get_host_source()
        with raises_error(NotOnHost, name="kernel.export_library") as refused:
            kernel.export_library("x.so")
        assert "kernel.export(path)" in refused.value.help

    def test_several(self) -> None:
        assert len(tilelang.par_compile([double, grow], num_workers=2, target="cpu")) == 2


class TestProfiler:
    kernel = property(lambda self: tilelang.compile(double, out_idx=-1, target="cpu"))

    def test_right_and_wrong_references(self) -> None:
        profiler = self.kernel.get_profiler()
        profiler.assert_allclose(lambda x: x * 2)
        profiler.assert_consistent(repeat=2)
        with pytest.raises(Differs, match=r"\[K654\] double: result 0 .* 50 of 50 elements, at \[\d+\]"):
            profiler.assert_allclose(lambda x: x * 2 + 1)
        with pytest.raises(AssertionError, match="shape"):
            profiler.assert_allclose(lambda x: x[:3])
        with pytest.raises(Differs, match="the kernel has 1, the reference 2"):
            profiler.assert_allclose(lambda x: (x, x))

    @pytest.mark.parametrize(("ratio", "passes"), [(0.01, False), (0.05, True)])
    def test_a_share_of_elements_may_differ(self, ratio: float, passes: bool) -> None:
        def reference(x):
            y = x * 2
            y[7:9] += 1
            return y

        profiler = self.kernel.get_profiler(tilelang.TensorSupplyType.One)
        if passes:
            profiler.assert_allclose(reference, max_mismatched_ratio=ratio)
        else:
            with pytest.raises(Differs, match=r"2 of 50 elements, at \[7\] 2, not 3"):
                profiler.assert_allclose(reference, max_mismatched_ratio=ratio)

    def test_nan_is_equal_to_nan_only(self) -> None:
        x = np.array([np.nan, np.inf] * 25, "float32")
        self.kernel.get_profiler().assert_allclose(lambda x: x * 2, [x], max_mismatched_ratio=0)
        with pytest.raises(Differs):
            self.kernel.get_profiler().assert_allclose(lambda x: np.nan_to_num(x), [x], max_mismatched_ratio=0)

    def test_inputs_of_the_caller_stay_as_they_are(self) -> None:
        def in_place(x):
            x += 1

        kernel, x = tilelang.compile(grow, target="cpu"), np.arange(64, dtype="float32")
        kernel.get_profiler().assert_allclose(in_place, [x], max_mismatched_ratio=0)
        np.testing.assert_array_equal(x, np.arange(64))

    def test_inputs_that_cannot_be_made_are_asked_for(self) -> None:
        with raises_error(BadCall, name="input_tensors", found="missing") as refused:
            tilelang.compile(grow, target="cpu").get_profiler().do_bench()
        assert refused.value.help == "pass input_tensors=[X]"

    @pytest.mark.parametrize("supply", tilelang.TensorSupplyType)
    def test_supplies(self, supply: tilelang.TensorSupplyType) -> None:
        (x,) = inputs_of(self.kernel.kernel, supply)
        assert x.dtype == np.float32
        assert x.shape == (50,)
        if supply.name in ("Zero", "One"):
            assert (x == float(supply.name == "One")).all()
        elif supply.name == "Integer":
            assert (x == np.round(x)).all()
            assert abs(x).max() == 2
        else:
            assert len(set(x.tolist())) > 40
            assert (abs(x).max() <= 1) == (supply.name == "Uniform")

    def test_inputs_are_tensors_of_torch_where_the_program_uses_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A torch double: its inputs, and its types for bits that NumPy lacks."""

        class Tensor:
            def __init__(self, array):
                self.array = array

            def view(self, kind):
                return kind, self.array

        double_of_torch = SimpleNamespace(from_dlpack=Tensor, bfloat16="torch.bfloat16")
        monkeypatch.setitem(sys.modules, "torch", double_of_torch)

        @T.prim_func
        def narrow(X: T.Tensor((50,), "bfloat16"), Y: T.Tensor((50,), "bfloat16")):
            with T.Kernel(1, threads=64):
                T.copy(X, Y)

        (x,) = inputs_of(self.kernel.kernel)
        assert isinstance(x, Tensor)
        assert x.array.dtype == np.float32
        (kind, bits), _ = inputs_of(tilelang.compile(narrow, target="cpu").kernel, tilelang.TensorSupplyType.One)
        assert kind == "torch.bfloat16"
        assert (bits == 0x3F80).all()

    def test_memory_of_a_device_is_that_of_torch(self, monkeypatch) -> None:
        """TileLang's inputs are tensors, also in scripts that do not import torch."""
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.setattr("tile_tilelang.supply.there", lambda adapter, array: SimpleNamespace(array=array))
        monkeypatch.setattr("tile_tilelang.supply._as_torch", lambda array, moved: ("torch", moved(array).array.shape))
        monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
        assert inputs_of(self.kernel.kernel) == (("torch", (50,)),)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        (x,) = inputs_of(self.kernel.kernel)
        assert x.array.shape == (50,)

    @pytest.mark.sweep(1)
    def test_times(self) -> None:
        profiler = self.kernel.get_profiler()
        assert profiler.do_bench(warmup=1, rep=1) > 0
        assert profiler.do_bench(lambda x: x, warmup=1, rep=1, backend="cupti", return_mode="median") > 0
        assert len(profiler.do_bench(n_warmup=1, n_repeat=3, quantiles=[0, 0.5, 1])) == 3
        calls: list[int] = []
        tilelang.do_bench(lambda: calls.append(1), warmup=0.01, rep=0.01)
        assert len(calls) > 3
        with pytest.raises(BadCall, match="backend is 'guess', expected one of event, cupti, cudagraph"):
            profiler.do_bench(backend="guess")
        with pytest.raises(BadCall, match="quantiles"):
            tilelang.do_bench(lambda: None, quantiles=[2])


class TestTuner:
    @staticmethod
    def factory(wrong: int = 0):
        @tilelang.jit(out_idx=[1], target="cpu")
        def scale(n, block=None):
            @T.prim_func
            def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
                    for i in T.Parallel(block):
                        Y[bx * block + i] = X[bx * block + i] * (3.0 if block != wrong else 4.0)

            return main

        return scale

    def test_a_configuration_that_the_reference_disproves_is_never_chosen(self) -> None:
        tune = tilelang.autotune(configs={"block": [32, 64]}, warmup=0.1, rep=0.1, ref_prog=lambda x: x * 3)
        tuned = tune(self.factory(wrong=32))
        assert tuned(100).config == {"block": 64}
        first, second = tuned.tune(100).trials
        assert first.error.startswith("[K654]")
        assert second.seconds is not None
        assert tuned(100).latency == second.seconds * 1e3

    def test_none_works(self) -> None:
        tune = tilelang.autotune(configs=[{"block": 32}], warmup=0.1, rep=0.1, ref_prog=lambda x: x)
        with pytest.raises(NoWorkingConfig, match="K654"):
            tune(self.factory())(100)

    def test_without_checks(self) -> None:
        tune = tilelang.autotune(configs=[{"block": 32}], warmup=0.1, rep=0.1, ref_prog=lambda x: x, skip_check=True)
        assert tune(self.factory())(100).config == {"block": 32}

    def test_an_eager_kernel(self) -> None:
        @tilelang.autotune(configs=[{"block": 32}, {"block": 64}], warmup=0.1, rep=0.1, ref_prog=lambda x: x + 1)
        @tilelang.jit(target="cpu")
        def plus(X, block: int = 16):
            N = T.const("N")
            X: T.Tensor[[N], "float32"]
            Y = T.empty(N, dtype="float32")
            with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
                for i in T.Parallel(block):
                    Y[bx * block + i] = X[bx * block + i] + 1.0
            return Y

        x = np.random.default_rng().standard_normal(77).astype("float32")
        np.testing.assert_array_equal(plus(x), x + 1)
        np.testing.assert_array_equal(plus(x, block=16), x + 1)
        assert plus.compile(N=100).config["block"] in (32, 64)

    def test_configurations_of_the_arguments(self) -> None:
        tune = tilelang.autotune(configs=lambda n: [{"block": n // 2}], warmup=0.1, rep=0.1)
        assert tune(self.factory())(64).config == {"block": 32}

    def test_refusals(self) -> None:
        with raises_error(BadCall, name="func", found="function") as refused:
            tilelang.autotune(configs=[{}])(lambda: None)
        assert refused.value.help == "put @tilelang.autotune above @tilelang.jit"
        with raises_error(BadCall, name="no_such"):
            tilelang.autotune(configs=[{}], no_such=1)


class TestLanguage:
    def test_one_sided_limits(self) -> None:
        @T.prim_func
        def limit(X: T.Tensor((4,), "float32"), I: T.Tensor((4,), "int32")):  # noqa: E741
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    X[i] = T.clamp(T.clamp(X[i], min_val=-1), max_val=2)
                    I[i] = T.clamp(I[i], max_val=3)

        x = np.array([-np.inf, np.nan, 0.5, np.inf], "float32")
        numbers = np.array([-(2**31), 3, 4, 2**31 - 1], "int32")
        tilelang.compile(limit, target="cpu")(x, numbers)
        np.testing.assert_array_equal(x, np.array([-1, np.nan, 0.5, 2], "float32"))
        assert numbers.tolist() == [-(2**31), 3, 3, 3]
        with raises_error(BadArgument, function="clamp"):
            T.clamp(1)
        assert (T.clamp(5, max_val=3), T.align_up(9, 4)) == (3, 12)

    def test_threads_by_name(self) -> None:
        with pytest.raises(BadCall, match=r"T\.thread_binding: the range is 0, 64, expected 0, 32"):

            @T.prim_func
            def kernel(A: T.Tensor((64,), "float32")):
                with T.Kernel(1, threads=32):
                    for t in T.thread_binding(0, 64, thread="threadIdx.x"):
                        A[t] = 0

    def test_a_barrier_of_the_grid_is_two_launches(self) -> None:
        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(2, threads=32) as bx:
                A[bx * 32 : bx * 32 + 32] = bx
                T.sync_grid()
                B[bx * 32 : bx * 32 + 32] = A[32 - bx * 32 : 64 - bx * 32]

        a, b = np.full((2, 64), 9, "float32")
        tilelang.compile(kernel, target="cpu")(a, b)
        np.testing.assert_array_equal(b, [1.0] * 32 + [0.0] * 32)

    def test_types_of_torch(self) -> None:
        """Types are torch's own where it is installed; the error without it."""
        try:
            import torch
        except ImportError:
            with pytest.raises(TorchMissing):
                T.float16.as_torch()
        else:
            assert T.float16.as_torch() is torch.float16
            assert dtype("bfloat16").as_torch() is torch.bfloat16

    def test_layouts(self) -> None:
        shape = (64, 64)
        buffer = SimpleNamespace(shape=shape, dtype="float16")
        assert T.make_swizzled_layout(buffer, k_major=False)(3, 8) == 208
        assert T.make_linear_layout(buffer)(3, 8) == 3 * 64 + 8
        assert T.make_half_bank_swizzled_layout(buffer)(3, 8) != T.make_full_bank_swizzled_layout(buffer)(3, 8)

    def test_helpers(self) -> None:
        assert [tilelang.next_power_of_2(n) for n in (0, 1, 5, 8)] == [1, 1, 8, 8]
        assert tilelang.cdiv(7, 2) == 4
        tilelang.disable_cache()
        assert not tilelang.is_cache_enabled()
        tilelang.enable_cache()
        assert tilelang.is_cache_enabled()

    def test_comparisons(self) -> None:
        tilelang.testing.set_random_seed(3)
        tilelang.testing.torch_assert_close(np.ones(4), np.ones(4) + 1e-4)
        with pytest.raises(Differs, match="4 of 4"):
            tilelang.testing.torch_assert_close(np.ones(4), np.zeros(4))
