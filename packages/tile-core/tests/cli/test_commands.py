"""The commands, from a command line to what it prints."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tile_core import __version__


class TestApplication:
    def test_help_lists_the_commands(self, tile):
        result = tile("--help")
        assert result.status == 0
        for command in ("demo", "doctor", "targets", "compile", "run", "explain"):
            assert command in result.out

    def test_version(self, tile):
        assert tile("--version").out == f"tile {__version__}\n"

    @pytest.mark.parametrize("arguments", [["compilee"], ["compile"], ["compile", "--no-such-option"]])
    def test_wrong_usage_has_its_own_status(self, tile, arguments):
        result = tile(*arguments)
        assert result.status == 2
        assert "Usage" in result.err

    @pytest.mark.parametrize("arguments", [["--help"], ["targets"], ["compile", "--help"]])
    def test_loads_neither_tvm_nor_a_backend(self, arguments):
        code = (
            "import sys; from tile_core.cli.app import run; run(sys.argv[1:]); "
            "heavy = [m for m in sys.modules if m.split('.')[0] in ('tvm', 'tvm_ffi', 'numpy', 'torch')"
            " or m.startswith('tile_core.cpu')]; print('loaded:', heavy)"
        )
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "loaded: []", done.stdout + done.stderr


class TestTargets:
    def test_table(self, tile):
        result = tile("targets")
        assert result.status == 0
        assert "cpu" in result.out
        assert "tile-core" in result.out

    def test_json_with_load(self, tile):
        found = {b["name"]: b for b in json.loads(tile("targets", "--load", "--json").out)}
        assert found["cpu"]["status"] == "ok"
        assert found["cpu"]["target_kinds"] == ["cpu"]


class TestCompile:
    def test_prints_the_text(self, tile, scale):
        result = tile("compile", scale, "--target", "cpu", "--arg", "N=33")
        assert result.status == 0, result.err
        assert "33" in result.out
        assert "float32" in result.out

    def test_an_argument_changes_the_text(self, tile, scale):
        first = tile("compile", scale, "-a", "N=33").out
        assert tile("compile", scale, "-a", "N=33", "-a", "factor=4.0").out != first

    def test_writes_a_file_and_says_so(self, tile, scale, tmp_path):
        result = tile("compile", scale, "-a", "N=8", "-o", tmp_path / "out.txt")
        assert result.status == 0
        assert result.out == ""
        assert "scaled(" in result.err
        assert "float32" in (tmp_path / "out.txt").read_text(encoding="utf-8")

    def test_dumps_every_pass(self, tile, scale, tmp_path):
        assert tile("compile", scale, "-a", "N=8", "--dump", tmp_path / "dump").status == 0
        names = sorted(p.name for p in (tmp_path / "dump").iterdir())
        assert names[0] == "00-program.txt"
        assert len(names) > 3

    def test_json(self, tile, scale):
        data = json.loads(tile("compile", scale, "-a", "N=8", "--json").out)
        assert data["target"].startswith("cpu:")
        assert [p["name"] for p in data["signature"]["params"]] == ["A", "B", "s"]
        assert data["text"]

    def test_several_launches_are_several_texts(self, tile, tmp_path):
        file = tmp_path / "two.py"
        file.write_text(
            "import tile_core.language as T\n\n\n@T.prim_func\ndef twice(A: T.Tensor((64,), 'float32'), "
            "B: T.Tensor((64,), 'float32'), C: T.Tensor((64,), 'float32')):\n"
            "    with T.Kernel(1, threads=32):\n        T.copy(A, B)\n"
            "    with T.Kernel(2, threads=32):\n        T.copy(B, C)\n"
        )
        result = tile("compile", file, "-t", "cpu")
        assert [line.split(":")[0] for line in result.err.splitlines() if "launch" in line] == [
            "launch 1 of 2", "launch 2 of 2",
        ]  # fmt: skip
        data = json.loads(tile("compile", file, "-t", "cpu", "--json").out)
        assert len(data["texts"]) == 2
        assert data["text"] == "\n\n".join(data["texts"])
        assert all(text in result.out for text in data["texts"])
        assert tile("compile", file, "-t", "cpu", "-o", tmp_path / "out.txt").status == 0
        written = [(tmp_path / f"out.{n}.txt").read_text(encoding="utf-8").rstrip() for n in (1, 2)]
        assert written == [text.rstrip() for text in data["texts"]]
        assert not (tmp_path / "out.txt").exists()

    def test_options_reach_the_backend(self, tile, scale):
        plain = tile("compile", scale, "-a", "N=32", "-t", "cpu", "--option", "generic=true")
        assert plain.status == 0, plain.err
        assert "vectorized" not in plain.out

    def test_compiles_for_a_processor_that_is_not_here(self, tile, scale):
        assert tile("compile", scale, "-a", "N=8", "-t", "cpu:x86-64").status == 0


class TestRun:
    def test_verifies_and_times(self, tile, scale):
        result = tile("run", scale, "-a", "N=5", "-a", "s=1.5", "--seed", "3", "--repeat", "2")
        assert result.status == 0, result.err
        assert "seed 3, m = 131" in result.out
        assert "equal to its reference" in result.out
        assert "time: median" in result.out

    def test_a_runtime_is_chosen_by_name(self, tile, scale):
        arguments = ("run", scale, "-a", "N=5", "-a", "s=1.5", "--repeat", "1", "--runtime")
        assert tile(*arguments, "host").status == 0
        refused = tile(*arguments, "guest")
        assert refused.status == 1
        assert "S202" in refused.err

    def test_json_and_a_size(self, tile, scale):
        result = tile("run", scale, "-a", "N=5", "-a", "s=1.5", "-a", "m=7", "--repeat", "2", "--json")
        data = json.loads(result.out)
        assert data["sizes"] == {"m": 7}
        assert data["verified"][0]["elements"] == 35
        assert data["seconds"]["min"] > 0

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("m", [1, 15, 16, 17])
    def test_sizes_around_a_block(self, tile, scale, m):
        assert tile("run", scale, "-a", "N=5", "-a", "s=1.5", "-a", f"m={m}", "--repeat", "1").status == 0

    def test_outputs_and_options_of_the_decorator_count(self, tile, kernel_file):
        path = kernel_file(
            """
            import tile_core as tile
            import tile_core.language as T

            @tile.jit(out_idx=-1, options={"parallel": False})
            def add(N: int, dtype: str = "int32"):
                @T.prim_func
                def one_more(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
                    with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
                        for i in T.Parallel(32):
                            B[bx * 32 + i] = A[bx * 32 + i] + 1
                return one_more
            """
        )
        result = tile("run", path, "-a", "N=77", "--repeat", "1")
        assert result.status == 0, result.err
        assert "one_more(A: int32(77,)) -> B: int32(77,)" in result.out


JUDGED = """
import numpy as np

import tile_core as tile
import tile_core.language as T


@tile.jit(out_idx=-1)
def copied(N: int, divide: bool = False):
    @T.prim_func
    def copied(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // 16, threads=16) as bx:
            for i in T.Parallel(16):
                B[bx * 16 + i] = A[bx * 16 + i] / (0.0 if divide else 1.0)
    return copied


def right(a):
    return a


def twice(a):
    return np.add(a, a)
"""


class TestJudges:
    @pytest.fixture
    def run(self, tile, kernel_file):
        path = kernel_file(JUDGED)
        return lambda *more, size=48: tile(
            "run",
            f"{path}:copied",
            "-a",
            f"N={size}",
            "--repeat",
            "1",
            *(str(m).replace("HERE", str(path)) for m in more),
        )

    def test_elements_that_are_never_written_are_a_failure(self, run):
        assert run().status == 0
        result = run(size=50)
        assert result.status == 1
        assert "error[K429]" in result.err
        assert "2 of 50 elements are never written, the first at (48,)" in result.err
        data = json.loads(run("--allow", "unwritten", "--json", size=50).out)
        assert data["verified"][0]["unwritten"] == 2

    def test_infinities_are_a_failure(self, run):
        result = run("-a", "divide=true")
        assert result.status == 1
        assert "48 of 48 elements are NaN or infinite" in result.err
        allowed = run("-a", "divide=true", "--allow", "nonfinite")
        assert allowed.status == 0
        assert "allowed: output 'B': 48 of 48" in allowed.out

    def test_a_reference_from_a_file(self, run):
        result = run("--reference", "HERE:right")
        assert result.status == 0, result.err
        assert "equal to right" in result.out
        wrong = run("--reference", "HERE:twice")
        assert wrong.status == 1
        assert "the program or the reference is wrong" in wrong.err
        missing = run("--reference", "HERE:nothing")
        assert missing.status == 1
        assert "error[S306]" in missing.err


class TestExplain:
    def test_text(self, tile, scale):
        result = tile("explain", scale, "-a", "N=8")
        assert result.status == 0, result.err
        assert "T.copy(A[bx * block, 0], A_s)" in result.out
        assert "shared memory: 512 of" in result.out

    def test_json(self, tile, scale):
        data = json.loads(tile("explain", scale, "-a", "N=8", "--json").out)
        assert data["ops"][0]["op"] == "copy"
        assert data["source"][0]["text"].strip() == "@T.prim_func"

    def test_a_page(self, tile, scale, tmp_path):
        result = tile("explain", scale, "-a", "N=8", "--html", str(tmp_path / "page.html"))
        assert result.status == 0, result.err
        assert result.out == ""
        assert "T.copy(A[bx * block, 0], A_s)" in (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "error[S312]" in tile("explain", scale, "-a", "N=8", "--html", str(tmp_path / "none" / "page.html")).err


class TestDemo:
    @pytest.mark.sweep(1)
    def test_compiles_checks_and_compares(self, tile):
        result = tile("demo")
        assert result.status == 0, result.err
        assert "T.gemm(A_s, B_s, C_f)" in result.out
        assert "cpu.gemm.packed" in result.out
        assert "cpu.gemm_sp.rows" in result.out
        assert "passes\n" not in result.out
        assert "all 1,000,000 elements against a float64 reference" in result.out
        assert "ratio" in result.out

    def test_a_wrong_result_is_an_error(self, tile, monkeypatch):
        from tile_core.cli import demo
        from tile_core.runtime.kernel import Kernel

        monkeypatch.setattr(demo, "SIZES", (20, 30, 10))

        right = Kernel.__call__

        def wrong(self, *arrays):
            out = right(self, *arrays)
            out[3, 4] = float("nan")
            return out

        monkeypatch.setattr(Kernel, "__call__", wrong)
        result = tile("demo")
        assert result.status == 1
        assert "error[K430]" in result.err
        assert "(3, 4)" in result.err
