"""``tile bench``, ``verify``, ``new``, completion and the spinner."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import tile_core as tile_package
import tile_core.language as T
from tile_core.cli import completion, console, prepare, roofline
from tile_core.cli.bench import spread_text
from tile_core.cli.completion import join_words, kernels, target_texts, words_of_bash
from tile_core.errors.cli import BadLevel, FileExists
from tile_core.runtime.bench import Stopwatch, measure
from tile_core.tiling.work import ProgramWork, work_of

PRODUCT = """
    import tile_core.language as T


    def product(M, block=16):
        @T.prim_func
        def gemm(A: T.Tensor((M, M), "float32"), B: T.Tensor((M, M), "float32"), C: T.Tensor((M, M), "float32")):
            with T.Kernel(T.ceildiv(M, block), T.ceildiv(M, block), threads=32) as (bx, by):
                a, b = T.alloc_shared((block, block), "float32"), T.alloc_shared((block, block), "float32")
                c = T.alloc_fragment((block, block), "float32")
                T.clear(c)
                for k in T.serial(M // block):
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block, bx * block])

        return gemm


    def short(M):
        @T.prim_func
        def half(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(A[0 : M // 2], B[0 : M // 2])

        return half
"""


@pytest.fixture
def product(kernel_file):
    return kernel_file(PRODUCT)


class TestBench:
    @pytest.mark.sweep(0.25)
    def test_rates_and_roofline(self, tile, product):
        result = tile("bench", f"{product}:product", "-a", "M=32", "--repeat", "3", "-t", "cpu")
        assert result.status == 0, result.err
        # 2 * 32**3 operations on three tensors of 32 x 32 floats.
        assert "work: 6.554e+04 operations, 12,288 bytes: 5.33 operations per byte" in result.out
        for text in ("FLOP/s", "B/s", "<- limit", "% of compute", "memory  |", "compute |"):
            assert text in result.out or text == "% of compute"
        assert "/ best" not in result.out

    def test_alternatives_by_arguments_and_options(self, tile, product):
        arguments = ("--vary", "block=8,16", "--vary-option", "parallel=true,false", "--repeat", "4", "--json")
        found = json.loads(tile("bench", f"{product}:product", "-a", "M=32", "-t", "cpu", *arguments).out)
        labels = [f"block={b} parallel={p}" for b in (8, 16) for p in (True, False)]
        assert [one["label"] for one in found] == labels
        assert all(len(one["seconds"]["samples"]) == 4 for one in found)
        assert all(one["seconds"]["min"] <= one["seconds"]["median"] <= one["seconds"]["high"] for one in found)
        assert {one["work"]["operations"] for one in found} == {2 * 32**3}
        assert all(one["share"] > 0 for one in found)

    def test_several_files_and_a_page(self, tile, product, tmp_path):
        page = tmp_path / "bench.html"
        arguments = ("-t", "cpu", "--repeat", "2", "--html", page)
        result = tile("bench", f"{product}:product", f"{product}:short", "-a", "M=32", *arguments)
        assert result.status == 0, result.err
        assert "/ best" in result.out
        text = page.read_text(encoding="utf-8")
        assert text.count("<circle") == 1  # the copy has no operations
        assert "third quartile" in text

    def test_a_page_that_cannot_be_written(self, tile, product, tmp_path):
        arguments = ("-a", "M=32", "-t", "cpu", "--repeat", "1", "--html", tmp_path / "none" / "x.html")
        result = tile("bench", f"{product}:product", *arguments)
        assert result.status == 1
        assert "S312" in result.err

    def test_samples_alternate(self):
        order = []
        watches = [Stopwatch(n, lambda n=n: order.append(n), lambda: None, lambda f, k: f() or 1.0) for n in "ab"]
        measure(watches, warmup=0, repeat=3)
        assert "".join(order[2:]) == "abbaab"

    @pytest.mark.parametrize(("low", "high", "text"), [(1e-6, 2e-6, "1 to 2 us"), (9e-4, 1.2e-3, "0.9 to 1.2 ms")])
    def test_spread(self, low, high, text):
        assert spread_text(low, high) == text


class TestWork:
    def test_arithmetic_and_reductions(self):
        @T.prim_func
        def k(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64, 32), "float32")):
            with T.Kernel(4, threads=32) as bx:
                x = T.alloc_fragment((16, 32), "float32")
                top = T.alloc_fragment((16,), "float32")
                T.copy(A[bx * 16, 0], x)
                T.reduce_max(x, top, dim=1)
                for i, j in T.Parallel(16, 32):
                    x[i, j] = (x[i, j] - top[i]) * 2
                T.copy(x, B[bx * 16, 0])

        work = work_of(k, tile_package.compile(k, "cpu").signature, {})
        assert work == ProgramWork({}, 3 * 64 * 32, 2 * 64 * 32 * 4, True)

    def test_a_loop_whose_bounds_are_data(self):
        @T.prim_func
        def k(N: T.Tensor((1,), "int32"), B: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                total = T.alloc_var("float32", 0.0)
                for _ in T.serial(N[0]):
                    total = total + 1.0
                B[0] = total

        work = work_of(k, tile_package.compile(k, "cpu").signature, {})
        assert not work.known
        rates = roofline.Rates("k", work, 1.0, {"bytes": 1.0, "float32": 1.0})
        assert rates.share is None
        assert "depends on data" in roofline.lines(rates)[0]

    def test_symbolic_sizes_and_sparse_products(self):
        n = T.dynamic("n")

        @T.prim_func
        def k(A: T.Tensor((n, 16), "float16"), E: T.Tensor((n, 2), "int16"), C: T.Tensor((n, 16), "float32")):
            with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
                a, e = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 2), "int16")
                b, c = T.alloc_shared((32, 16), "float16"), T.alloc_fragment((16, 16), "float32")
                T.copy(A[bx * 16, 0], a)
                T.copy(E[bx * 16, 0], e)
                T.clear(b)
                T.gemm_sp(a, e, b, c, clear_accum=True)
                T.copy(c, C[bx * 16, 0])

        work = work_of(k, tile_package.compile(k, "cpu").signature, {"n": 48})
        assert work.products == {"float16 2:4": 2 * 48 * 16 * 32}
        assert work.moved == 48 * (32 + 4 + 64)


class TestRoofline:
    WORK = ProgramWork({"float32": 200.0}, 0.0, 10, True)

    def test_the_nearer_limit_counts(self):
        peaks = {"bytes": 100.0, "float32": 400.0}
        rates = roofline.Rates("k", self.WORK, 1.0, peaks)
        assert (rates.limit, rates.share) == ("compute", 0.5)
        slow = roofline.Rates("k", self.WORK, 1.0, {"bytes": 12.5, "float32": 400.0})
        assert (slow.limit, slow.share) == ("memory", 0.8)
        assert any("80% of 12.5" in line or "0.0125 kB/s" in line for line in roofline.lines(slow))

    def test_unknown_peaks(self):
        rates = roofline.Rates("k", self.WORK, 1.0, {})
        assert rates.share is None
        assert "unknown" in roofline.lines(rates)[-1]
        assert roofline.svg([rates]) == ""

    def test_an_unknown_type_leaves_memory(self):
        peaks = {"bytes": 100.0, "float16": 400.0}
        rates = roofline.Rates("k", self.WORK, 1.0, peaks)
        assert rates.limit == "memory"
        assert any("the peak rate for float32 is unknown" in line for line in roofline.lines(rates))


class TestVerify:
    def test_levels_and_special_values(self, tile, product):
        result = tile("verify", f"{product}:product", "-a", "M=32", "-t", "cpu", "--runs", "1", "--seed", "3")
        assert result.status == 0, result.out + result.err
        for level in ("strict", "standard", "fast"):
            assert f"equal   numerics {level}, random values, seed 3" in result.out
            assert f"equal   numerics {level}, special values, seed 3" in result.out
        assert "all 6 runs passed" in result.out

    def test_seeds_are_fresh(self, tile, product):
        arguments = ("-a", "M=16", "-t", "cpu", "--runs", "2", "--level", "standard", "--no-special", "--json")
        seeds = [[r["seed"] for r in json.loads(tile("verify", f"{product}:product", *arguments).out)] for _ in "ab"]
        assert seeds[0][1] == seeds[0][0] + 1
        assert seeds[0] != seeds[1]

    def test_a_defect_has_status_1(self, tile, product):
        arguments = ("-a", "M=32", "-t", "cpu", "--runs", "1", "--level", "standard")
        result = tile("verify", f"{product}:short", *arguments)
        assert result.status == 1
        assert "FAILED  numerics standard, random values" in result.out
        assert "error[K429]" in result.err
        assert tile("verify", f"{product}:short", *arguments, "--allow", "unwritten").status == 0

    def test_a_wrong_level(self, tile, product):
        result = tile("verify", f"{product}:product", "-a", "M=32", "-t", "cpu", "--level", "exact")
        assert result.status == 1
        assert f"error[{BadLevel.code}]" in result.err

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn"])
    def test_special_values_of_a_type(self, dtype):
        from tile_core.abi.signature import Param
        from tile_core.dtypes import dtype as to_dtype

        values = np.ones((64, 64)).astype(to_dtype(dtype).numpy())
        made = prepare._with_special(values, Param("A", "tensor", dtype, (64, 64)), 0).astype("float64")
        assert (values.astype("float64") == 1).all()
        assert np.isnan(made).any()
        assert (made == 0).any()
        assert ((made > 0) & (made < 0.1)).any()
        assert (made == 1).mean() > 0.99

    def test_integers_have_none(self):
        from tile_core.abi.signature import Param

        values = np.ones(8, "int32")
        assert prepare._with_special(values, Param("A", "tensor", "int32", (8,)), 0) is values


class TestNew:
    @pytest.mark.sweep(0.25)
    def test_the_files_run_as_they_are(self, tile, tmp_path, monkeypatch):
        assert tile("new", "scaled_rows", "--folder", tmp_path).status == 0
        run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_scaled_rows.py"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "3 passed" in done.stdout
        done = subprocess.run([sys.executable, "bench_scaled_rows.py"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("median") == 3
        monkeypatch.setattr(sys, "path", [*sys.path])
        arguments = ("-a", "N=64", "-t", "cpu", "--runs", "1", "--level", "standard")
        assert tile("verify", f"{tmp_path / 'scaled_rows.py'}:scaled_rows", *arguments).status == 0

    def test_nothing_is_overwritten(self, tile, tmp_path):
        (tmp_path / "test_rows.py").write_text("mine")
        result = tile("new", "rows", "--folder", tmp_path)
        assert result.status == 1
        assert f"error[{FileExists.code}]" in result.err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["test_rows.py"]

    @pytest.mark.parametrize("name", ["two words", "class", "a-b"])
    def test_a_name_that_python_does_not_have(self, tile, tmp_path, name):
        assert tile("new", name, "--folder", tmp_path).status == 2

    def test_a_folder_that_is_not_there(self, tile, tmp_path):
        result = tile("new", "rows", "--folder", tmp_path / "none")
        assert result.status == 1
        assert "S312" in result.err


class TestCompletion:
    def test_kernels_behind_the_colon(self, product):
        assert kernels(f"{product}:") == [f"{product}:product", f"{product}:short"]
        assert kernels(f"{product}:pr") == [f"{product}:product"]
        assert kernels(f"{product}:x") == []

    def test_python_files_and_folders(self, product):
        (product.parent / "folder").mkdir()
        (product.parent / "notes.txt").write_text("")
        assert kernels(f"{product.parent}/") == [f"{product.parent}/folder/", str(product)]

    def test_targets(self):
        assert {"auto", "cpu"} <= set(target_texts(""))
        assert target_texts("cp") == ["cpu"]
        assert all(text.startswith("cpu:") for text in target_texts("cpu:"))
        assert target_texts("nothing:") == []

    def test_codes(self):
        assert completion.codes("k10") == [f"K10{n}" for n in range(1, 10)]

    @pytest.mark.parametrize(
        ("words", "at", "joined", "position"),
        [
            ("tile run gemm.py : ma", 4, "tile run gemm.py:ma", 2),
            ("tile run gemm.py :", 3, "tile run gemm.py:", 2),
            ("tile run gemm.py : --target cuda : sm", 7, "tile run gemm.py:--target cuda:sm", 3),
            ("tile run gemm.py", 2, "tile run gemm.py", 2),
            ("tile run ", 2, "tile run", 2),
        ],
    )
    def test_words_that_bash_split(self, words, at, joined, position):
        environment = {"_TILE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        join_words(environment)
        assert environment["COMP_WORDS"].strip() == joined
        assert environment["COMP_CWORD"] == str(position)

    def test_the_environment_of_other_commands_stays(self):
        environment = {"COMP_WORDS": "a : b"}
        with words_of_bash(environment):
            pass
        assert environment == {"COMP_WORDS": "a : b"}

    @pytest.mark.sweep(1)
    def test_in_a_shell(self, product):
        environment = {"_TILE_COMPLETE": "complete_bash", "COMP_WORDS": f"tile run {product} : pr", "COMP_CWORD": "4"}
        assert self._complete(environment) == "product"
        environment |= {"COMP_WORDS": "tile run f.py --target cp", "COMP_CWORD": "4"}
        assert self._complete(environment) == "cpu"
        zsh = {"_TILE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"tile run {product}:pr"}
        assert "product" in self._complete(zsh)

    def _complete(self, environment):
        import os

        program = [sys.executable, "-m", "tile_core.cli"]
        done = subprocess.run(program, env={**os.environ, **environment}, capture_output=True, text=True)
        return done.stdout.strip()


class TestSpinner:
    def test_only_on_a_terminal(self, capfd, monkeypatch):
        monkeypatch.setattr(console, "SPINNER_SECONDS", 0.0)
        with console.waiting("working"):
            time.sleep(0.1)
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(("seconds", "shown"), [(0.0, True), (60.0, False)])
    def test_after_a_while(self, monkeypatch, seconds, shown):
        import io

        from rich.console import Console

        output = io.StringIO()
        monkeypatch.setattr(console, "console", lambda stderr=False: Console(file=output, force_terminal=True))
        monkeypatch.setattr(console, "SPINNER_SECONDS", seconds)
        with console.waiting("working"):
            time.sleep(0.3)
        assert ("working" in output.getvalue()) is shown
