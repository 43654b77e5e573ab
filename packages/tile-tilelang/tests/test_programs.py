"""Twelve programs in TileLang's style run unchanged, and compile for another vendor's GPU.

They import ``tilelang``, and were written for these tests.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
from tile_tilelang.__main__ import main
from tile_tilelang.errors import NoScript, NotAnswered, NotOnHost
from tile_tilelang.running import answering, run

pytestmark = pytest.mark.sweep(3)

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))


def ours() -> set[str]:
    return {name for name in sys.modules if name.partition(".")[0] == "tilelang"}


def test_there_are_twelve() -> None:
    assert len(PROGRAMS) >= 12
    for path in PROGRAMS:
        assert "import tilelang\n" in path.read_text(encoding="utf-8")
        assert "tile_" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_runs_here_and_compiles_for_sm_90a(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--also", "cuda:sm_90a", str(path)]) == 0
    out, err = capfd.readouterr()
    assert out
    assert "lines for cuda:sm_90a" in err
    assert not ours()


@pytest.mark.parametrize("form", ["explicit", "other_form"])
def test_products_in_tensor_memory(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints its texts' sizes; its kernels are correct in the emulator."""
    pytest.importorskip("tile_emulator")
    path = Path(__file__).with_name("programs_tensor_memory") / "matmul.py"
    program = run(str(path))[form]
    assert capsys.readouterr().out.count("lines") == 2
    kernel = tile.compile(program, "cuda:sm_100a", runtime="emulator")  # type: ignore[arg-type]
    rng = np.random.default_rng()
    a, b = (rng.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for shape in ((260, 192), (136, 192)))
    c = np.full((260, 136), np.nan, ml_dtypes.bfloat16)
    kernel(a, b, c)
    exact = a.astype("float32") @ b.astype("float32").T
    np.testing.assert_array_equal(c.astype("float32"), exact.astype(ml_dtypes.bfloat16).astype("float32"))


def test_pairs_of_blocks_are_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).with_name("programs_tensor_memory") / "matmul.py").read_text(encoding="utf-8")
    script = tmp_path / "pairs.py"
    script.write_text(text.replace("use_2cta=False", "use_2cta=True"), encoding="utf-8")
    assert main([str(script)]) == 1
    assert "use_2cta" in capsys.readouterr().err


@pytest.mark.sweep(12)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_runs_in_a_process_of_its_own(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tile_tilelang", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr


def test_arguments_reach_the_script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, tilelang\nprint(__name__, sys.argv, sys.path[0])\n", encoding="utf-8")
    before = list(sys.argv), list(sys.path)
    assert main([str(script), "--m", "3", "x"]) == 0
    assert capsys.readouterr().out == f"__main__ {[str(script), '--m', '3', 'x']} {tmp_path}\n"
    assert (sys.argv, sys.path) == before


def test_a_programs_check_can_fail(tmp_path: Path) -> None:
    text = PROGRAMS[[p.stem for p in PROGRAMS].index("whole_tiles")].read_text(encoding="utf-8")
    assert text.count("min_val=-0.5") == 1
    script = tmp_path / "wrong.py"
    script.write_text(text.replace("min_val=-0.5", "min_val=-0.4"), encoding="utf-8")
    with pytest.raises(AssertionError):
        main([str(script)])
    assert not ours()


def test_a_refusal_is_shown_with_the_line_of_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "refused.py"
    lines = [
        "import tilelang.language as T",
        "@T.prim_func",
        "def kernel(A: T.Tensor((64,), 'float32')):",
        "    with T.Kernel(1, threads=32):",
        "        T.tcgen05_mma(A, A, A)",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    assert main([str(script)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error[K651] T.tcgen05_mma of TileLang")
    assert f"{script}:5" in said
    assert "write T.gemm(A, B, C)" in said


def test_what_another_target_refuses_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "wide.py"
    lines = [
        "import tilelang",
        "import tilelang.language as T",
        "@T.prim_func",
        "def wide(A: T.Tensor((512, 512), 'float32')):",
        "    with T.Kernel(1, threads=32):",
        "        s = T.alloc_shared((512, 512), 'float32')",
        "        T.copy(A, s)",
        "        T.copy(s, A)",
        "tilelang.compile(wide)",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    assert main(["--target", "cpu", "--also", "cuda:sm_90a", str(script)]) == 1
    assert "wide: [U" in capsys.readouterr().err


def test_a_target_for_all_kernels_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "text.py"
    lines = [
        "import tilelang",
        "import tilelang.language as T",
        "@T.prim_func",
        "def fill(A: T.Tensor((64,), 'float32')):",
        "    with T.Kernel(1, threads=32):",
        "        T.fill(A, 1)",
        "kernel = tilelang.compile(fill, target='cpu')",
        "jitted = tilelang.jit(lambda: fill, target='cpu')",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    assert "__global__" in run(str(script), target="cuda:sm_90a")["kernel"].kernel_source  # type: ignore[attr-defined]
    assert "__global__" not in run(str(script))["kernel"].kernel_source  # type: ignore[attr-defined]


class TestImport:
    def test_only_inside(self) -> None:
        with answering():
            import tilelang
            import tilelang.language as T
            from tilelang.profiler import do_bench

            import tile_tilelang

            assert tilelang is tile_tilelang
            assert T is tile_tilelang.language
            assert do_bench is tile_tilelang.do_bench
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("tilelang")

    def test_what_was_imported_before_is_there_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        other = object()
        monkeypatch.setitem(sys.modules, "tilelang", other)
        with answering():
            assert sys.modules["tilelang"] is not other
        assert sys.modules["tilelang"] is other

    @pytest.mark.parametrize(("module", "remedy"), [("carver", "configs="), ("contrib.nvcc", "tile builds itself")])
    def test_other_modules_are_refused_where_they_are_used(self, module: str, remedy: str) -> None:
        with answering():
            found = importlib.import_module(f"tilelang.{module}")
            with pytest.raises(NotOnHost) as refused:
                found.anything()
        assert remedy in refused.value.help

    def test_unknown_modules_are_refused(self) -> None:
        with answering(), pytest.raises(NotAnswered, match=r"\[S651\] import tilelang\.") as refused:
            importlib.import_module("tilelang.nothing")
        assert "has:" in refused.value.help
        assert isinstance(refused.value, ImportError)

    def test_no_such_script(self, tmp_path: Path) -> None:
        with pytest.raises(NoScript):
            run(str(tmp_path / "none.py"))
