"""Launches through MLX: its arguments, and results of the text that it generates."""

import ml_dtypes
import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.errors import launch as errors
from tile_core.errors.launch import DeviceFault, GridTooLarge, TextRefused
from tile_metal.errors import LibraryTooOld, TooManyBuffers, TooManyThreadsPerGroup

from .fake_mlx import Mlx
from .texts import INDEX, Param, adapter, add_some, gemm, gemm_params, kernel, scale, scale_params, tensor, text

pytestmark = pytest.mark.sweep(3)


def f32(mx, *values):
    return mx.array(np.array(values, np.float32))


def ramp(mx, count, dtype=np.float32):
    return mx.array(np.arange(count).astype(dtype))


def scaled(mx, **how):
    return kernel(scale(), scale_params(), adapter(mx), hidden=("n",), **how)


class TestOutputs:
    def test_allocated(self):
        mx = Mlx()
        out = scaled(mx, out_idx=(1,))(ramp(mx, 100), 0.5)
        assert (mx.waits, mx.queued, mx.launches) == (0, 0, [])
        np.testing.assert_array_equal(np.array(out), np.arange(100, dtype=np.float32) / 2)
        (launch,) = mx.launches
        assert (launch.grid, launch.group) == ((128, 1, 1), (32, 1, 1))

    def test_no_array_among_the_arguments(self):
        mx = Mlx()
        made = text("iota", [("x", "int64", "write"), ("first", "int64")], INDEX.format(32) + "  x[i] = first + i;\n",
                    (2, 1, 1), (32, 1, 1))  # fmt: skip
        iota = kernel(made, [tensor("x", 64, dtype="int64", access="write"), Param("first", "scalar", "int64")],
                      adapter(mx), out_idx=(0,))  # fmt: skip
        np.testing.assert_array_equal(np.array(iota(-(2**40))), np.arange(64) - 2**40)

    def test_scalars_of_every_size(self):
        mx = Mlx()
        rng = np.random.default_rng(0)
        a, b = rng.integers(-4, 5, (13, 19)).astype(np.float16), rng.integers(-4, 5, (19, 11)).astype(np.float16)
        product = kernel(gemm(), gemm_params(), adapter(mx), out_idx=(5,), hidden=("k", "m", "n"))
        out = product(mx.array(a), 1.5, True, mx.array(b), -3)
        np.testing.assert_array_equal(np.array(out), (a.astype(np.float32) @ b.astype(np.float32)) * 1.5 - 3)
        assert (mx.launches[0].grid, mx.launches[0].group) == ((16, 16, 1), (8, 8, 1))

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "uint8"])
    def test_element_types(self, dtype):
        mx = Mlx()
        kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
        values = (np.arange(40) % 2).astype(kind)
        call = kernel(scale(dtype), scale_params(dtype), adapter(mx), out_idx=(1,), hidden=("n",))
        out = call(mx.array(values), 1.0)
        assert out.dtype.name == dtype
        np.testing.assert_array_equal(out.numpy(), values)

    def test_float8_is_bytes(self):
        mx = Mlx()
        made = text("copy8", [("a", "float8_e4m3fn", "read"), ("out", "float8_e4m3fn", "write")],
                    INDEX.format(32) + "  out[i] = a[i];\n", (1, 1, 1), (32, 1, 1))  # fmt: skip
        params = [tensor(n, 32, dtype="float8_e4m3fn", access=a) for n, a in (("a", "read"), ("out", "write"))]
        out = kernel(made, params, adapter(mx), out_idx=(1,))(ramp(mx, 32, np.uint8))
        assert out.dtype.name == "uint8"
        np.testing.assert_array_equal(np.array(out), np.arange(32))

    def test_bench_launches_again_with_its_own_outputs(self):
        mx = Mlx(run=False)
        call = scaled(mx, out_idx=(1,))
        call.bench(ramp(mx, 64), 2.0, warmup=2, repeat=1)
        assert {launch.kernel.name.partition("_")[0] for launch in mx.launches} == {"scale"}

    def test_an_output_is_another_kernels_to_write(self):
        mx = Mlx()
        runtime = adapter(mx)
        first = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))
        second = kernel(add_some(), [tensor("a", "n"), tensor("c", "n", access="readwrite")], runtime, hidden=("n",))
        out = first(ramp(mx, 9), 2.0)
        second(ramp(mx, 9), out)
        even = np.arange(9) % 2 == 0
        np.testing.assert_array_equal(np.array(out), np.where(even, 3, 2) * np.arange(9))


class TestSmall:
    @pytest.mark.parametrize("count", [1, 2, 7, 8, 9])
    def test_inputs(self, count):
        mx = Mlx()
        out = scaled(mx, out_idx=(1,))(ramp(mx, count), 3.0)
        np.testing.assert_array_equal(np.array(out), 3 * np.arange(count))
        assert len(mx.launches) == (2 if count < 8 else 1)
        assert all("[[max_total_threads_per_threadgroup(32)]]\n[[kernel]] void" in x.text for x in mx.launches[-1:])

    def test_no_rank(self):
        mx = Mlx()
        body = "  if (thread_position_in_threadgroup.x == 0u) out[0] = a[0];\n"
        made = text("first", [("a", "float32", "read"), ("out", "float32", "write")], body, (1, 1, 1), (32, 1, 1))
        call = kernel(made, [tensor("a"), tensor("out", access="write")], adapter(mx), out_idx=(1,))
        out = call(mx.array(np.array(7, np.float32)))
        assert (out.shape, np.array(out)) == ((), 7)

    @pytest.mark.parametrize("count", [1, 3, 8, 50])
    def test_written(self, count):
        mx = Mlx()
        out = f32(mx, *([9.0] * count))
        scaled(mx)(ramp(mx, count), out, 2.0)
        np.testing.assert_array_equal(np.array(out), 2 * np.arange(count))

    @pytest.mark.parametrize(("count", "strides"), [(8, ("s",)), (9, None), (80, ("s",)), (81, None)])
    def test_not_contiguous(self, count, strides):
        mx = Mlx()
        params = [tensor("a", "n", strides=strides), *scale_params()[1:]]
        out = kernel(scale(), params, adapter(mx), out_idx=(1,), hidden=("n",))(ramp(mx, count)[::2], 3.0)
        np.testing.assert_array_equal(np.array(out), 3 * np.arange(0, count, 2))
        assert mx.copies == 1


class TestInPlace:
    @pytest.mark.parametrize("access", ["readwrite", "write"])
    @pytest.mark.parametrize("count", [5, 40])
    def test_what_is_not_written_stays(self, access, count):
        mx = Mlx()
        call = kernel(add_some(access), [tensor("a", "n"), tensor("c", "n", access=access)], adapter(mx), hidden=("n",))
        start = np.linspace(-1, 1, count).astype(np.float32)
        c = mx.array(start)
        same, earlier = c, c.reshape(-1)
        mx.eval(earlier)
        assert call(ramp(mx, count), c) is None
        expected = start + np.where(np.arange(count) % 2 == 0, np.arange(count), 0).astype(np.float32)
        np.testing.assert_array_equal(np.array(c), expected)
        assert same is c
        np.testing.assert_array_equal(np.array(earlier), start)

    def test_again_and_again_without_waiting(self):
        """Nothing is computed before somebody reads."""
        mx = Mlx()
        call = kernel(add_some(), [tensor("a", "n"), tensor("c", "n", access="readwrite")], adapter(mx), hidden=("n",))
        a, c = ramp(mx, 33), mx.array(np.zeros(33, np.float32))
        for _ in range(3):
            call(a, c)
        assert (mx.waits, mx.queued, mx.launches) == (0, 0, [])
        even = np.arange(33) % 2 == 0
        np.testing.assert_array_equal(np.array(c), 3 * np.arange(33) * even)
        assert len(mx.launches) == 9

    def test_the_double_sees_a_missing_order(self):
        """The copy back follows the kernel only because of the token among its inputs."""
        from tile_metal.runtime.mlx import MlxLauncher

        mx = Mlx()
        call = kernel(add_some(), [tensor("a", "n"), tensor("c", "n", access="readwrite")], adapter(mx), hidden=("n",))
        content = MlxLauncher._content

        tokens = []

        def without_token(self, values, slots, copies, done):
            tokens.append(done[-1])
            return content(self, values, slots, copies, [mx.zeros((1,), mx.uint8)])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MlxLauncher, "_content", without_token)
            c = ramp(mx, 33)
            call(ramp(mx, 33), c)
            with pytest.raises(Exception, match="may still run"):
                mx.eval(c, *tokens)

    def test_an_input_is_not_copied(self):
        mx = Mlx()
        mx.eval(scaled(mx, out_idx=(1,))(ramp(mx, 100)[4:], 0.5))
        assert (len(mx.launches), mx.copies) == (1, 0)

    def test_the_same_array_twice(self):
        mx = Mlx()
        a = ramp(mx, 20)
        with pytest.raises(errors.Overlap):
            scaled(mx)(a, a, 1.0)
        part = a[5:15]  # a value of its own
        scaled(mx)(a[:10], part, 2.0)
        np.testing.assert_array_equal(np.array(part), 2 * np.arange(10))
        np.testing.assert_array_equal(np.array(a), np.arange(20))

    def test_a_view_that_is_not_contiguous(self):
        mx = Mlx()
        params = [tensor("a", "n"), tensor("c", "n", access="readwrite", strides=("s",))]
        c = ramp(mx, 80)[::2]
        kernel(add_some(), params, adapter(mx), hidden=("n",))(ramp(mx, 40), c)
        even = np.arange(40) % 2 == 0
        np.testing.assert_array_equal(np.array(c), np.arange(0, 80, 2) + np.arange(40) * even)

    def test_too_many_elements_to_copy(self):
        mx = Mlx(run=False)
        call = kernel(add_some(), [tensor("a", "m"), tensor("c", "n", access="readwrite")], adapter(mx), hidden=("n",))
        huge = ramp(mx, 8)
        huge.shape = (2**31,)
        with pytest.raises(errors.TooManyElements):
            call(ramp(mx, 8), huge)


class TestEmpty:
    def test_no_blocks(self):
        mx = Mlx()
        out = scaled(mx, out_idx=(1,))(ramp(mx, 0), 0.5)
        assert (out.shape, mx.launches) == ((0,), [])

    def test_some_arrays(self):
        mx = Mlx()
        params = [("a", "float32", "read"), ("b", "float32", "write"), ("c", "float32", "write")]
        made = text("f", params, INDEX.format(32) + "  c[i] = 1.0f;\n", (1, 1, 1), (32, 1, 1))
        call = kernel(made, [tensor("a", "n"), tensor("b", "n", access="write"), tensor("c", 32, access="write")],
                      adapter(mx), out_idx=(1,))  # fmt: skip
        c = ramp(mx, 32)
        b = call(ramp(mx, 0), c)
        assert b.shape == (0,)
        np.testing.assert_array_equal(np.array(c), np.ones(32))
        assert call(ramp(mx, 0), c=c).shape == (0,)


class TestRefusals:
    def test_cpu(self):
        mx = Mlx(device=(1, 0))
        with raises_error(errors.WrongDevice, name="a", found="cpu"):
            scaled(mx, out_idx=(1,))(ramp(mx, 3), 0.5)

    def test_declared_strides(self):
        mx = Mlx()
        params = [tensor("a", "m", "n", strides=(1, "m")), *scale_params()[1:]]
        call = kernel(scale(), params, adapter(mx), out_idx=(1,), hidden=("n",))
        with pytest.raises(errors.StrideMismatch):
            call(ramp(mx, 12).reshape(4, 3).T, 0.5)
        assert mx.launches == []

    # Nothing is compiled or launched before the results are computed.

    def test_a_pipeline_with_less_threads(self):
        """Only an older MLX asks for more than the kernel's head allows."""
        mx = Mlx(limit=16)
        runtime = adapter(mx)
        out = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))(ramp(mx, 8), 0.5)
        with pytest.raises(TooManyThreadsPerGroup, match="of 32 threads; the compiled kernel allows 16"):
            runtime.synchronize()
        assert out.shape == (8,)

    def test_the_compiler(self):
        mx = Mlx(refuse="program_source:3: error: unknown type name 'blah'")
        runtime = adapter(mx)
        out = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))(ramp(mx, 8), 0.5)
        with pytest.raises(TextRefused, match=r"(?s)scale: Metal's compiler, called by MLX.*blah"):
            runtime.synchronize()
        with pytest.raises(RuntimeError, match="blah"):
            mx.eval(out)

    def test_another_failure(self):
        mx = Mlx()
        runtime = adapter(mx)

        def fails(*arrays):
            raise RuntimeError("[METAL] Command buffer execution failed")

        out = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))(ramp(mx, 8), 0.5)
        mx.eval = fails
        with raises_error(DeviceFault, reporter="MLX"):
            runtime.synchronize()
        runtime.synchronize()
        assert out.shape == (8,)

    def test_results_that_nobody_holds_are_not_computed(self):
        mx = Mlx()
        runtime = adapter(mx)
        call = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))
        call(ramp(mx, 8), 0.5)
        kept = call(ramp(mx, 9), 0.5)
        runtime.synchronize()
        assert len(mx.launches) == 1
        assert kept.evaluated

    def test_arrays_of_a_traced_function_are_not_computed(self):
        mx = Mlx()
        runtime = adapter(mx)

        def traced(*arrays):
            raise ValueError("[eval] Attempting to eval an array during function transformations like compile ...")

        out = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))(ramp(mx, 8), 0.5)
        mx.eval = traced
        runtime.synchronize()
        assert not out.evaluated

    def test_grid(self):
        mx = Mlx(run=False)
        made = text("f", [("x", "float32", "write"), ("n", "int32")], INDEX.format(32) + "  x[0] = 1.0f;\n",
                    (1, "n", 1), (32, 2, 1))  # fmt: skip
        call = kernel(made, [tensor("x", 32, access="write"), Param("n", "scalar", "int32")], adapter(mx), out_idx=(0,))
        mx.eval(call(2**30 - 1))
        assert mx.launches[-1].grid == (32, 2**31 - 2, 1)
        with raises_error(GridTooLarge, limit=2147483647, unit="threads", axis="y", found=2147483648):
            call(2**30)

    def test_buffers(self):
        mx = Mlx(run=False)
        params = [(f"a{i}", "float32", "write") for i in range(31)]
        made = text("f", params, "  a0[0] = 1.0f;\n", (1, 1, 1), (32, 1, 1))
        call = kernel(made, [tensor(p[0], 9, access="write") for p in params], adapter(mx))
        with raises_error(TooManyBuffers, found=32):
            call(*(ramp(mx, 9) for _ in params))

    def test_an_old_mlx(self):
        mx = Mlx()
        mx.fast = None
        with raises_error(LibraryTooOld, library="mlx", version="0.32.4", function="fast.metal_kernel"):
            scaled(mx, out_idx=(1,))(ramp(mx, 8), 0.5)


class TestHowItIsAsked:
    @pytest.mark.parametrize(
        ("fast", "version", "system", "requested"),
        [(True, "0.32.0", (15, 0), True), (True, "0.31.2", (15, 0), False), (False, "0.32.0", (15, 0), False),
         (True, "0.32.0", (14, 6), False)],
    )  # fmt: skip
    def test_math(self, fast, version, system, requested):
        """Fast math is requested only if MLX supports it and the text marks exact functions."""
        mx = Mlx(run=False, version=version, system=system)
        call = kernel(scale(fast=fast), scale_params(), adapter(mx), hidden=("n",), out_idx=(1,))
        call(ramp(mx, 8), 1.0)
        assert mx.kernels[-1].options == ({"compile_options": {"math_mode": "fast"}} if requested else {})

    def test_one_kernel_per_form(self):
        mx = Mlx(run=False)
        call = scaled(mx)
        for count in (10, 20, 30):
            out = ramp(mx, count)
            call(ramp(mx, count), out, 0.5)
            mx.eval(out)
        assert [k.name for k in mx.kernels if k.name.startswith("tile")] == ["tile_copy_float32"]
        (own,) = (k for k in mx.kernels if k.name.startswith("scale"))
        assert own.row_contiguous is True

    def test_texts_of_one_entry_have_names_of_their_own(self):
        mx = Mlx(run=False)
        runtime = adapter(mx)
        for made in (scale(), scale(fast=True)):
            kernel(made, scale_params(), runtime, hidden=("n",), out_idx=(1,))(ramp(mx, 8), 1.0)
        names = {k.name for k in mx.kernels}
        assert len(names) == 2
