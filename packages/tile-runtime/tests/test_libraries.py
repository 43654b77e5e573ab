"""Kernels for the CPU as shared libraries: exported, loaded without TVM, called, refused."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import runtime_kernels as kernels

import tile_core as tile
import tile_core.language as T
import tile_runtime
from tile_runtime.abi.adapter import Built
from tile_runtime.cpu import parallel, processor
from tile_runtime.cpu.loader import NEEDS, make
from tile_runtime.errors.artefacts import ArtefactNotRunnable, MissingBackend
from tile_runtime.errors.launch import DTypeMismatch

ALONE = """
import sys
import numpy as np
import tile_runtime

kernel = tile_runtime.load({path!r})
for m in (1, 15, 16, 33, 200):
    a = np.random.default_rng(m).standard_normal((m, 70)).astype("float32")
    np.testing.assert_array_equal(kernel(a, 3.0), a * np.float32(3))
assert not {{"tvm", "tvm_ffi", "tile_core", "ml_dtypes", "torch"}} & set(sys.modules), sorted(sys.modules)
print(kernel)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    program = kernels.scale(T.dynamic("m"), 70)
    return tile.compile(program, "cpu", out_idx=-1).export(tmp_path_factory.mktemp("file") / "scale.tile")


def loaded(program, folder, out_idx=-1):
    return tile_runtime.load(tile.compile(program, "cpu", out_idx=out_idx).export(folder / "kernel.tile"))


class TestCalls:
    def test_without_tvm_and_the_compiler(self, file):
        command = [sys.executable, "-c", ALONE.format(path=str(file))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("<tile.Kernel scale(A: float32(m, 70), s: float32) -> B: float32(m, 70) for cpu:")

    def test_the_compiler_loads_it_too(self, file, tmp_path):
        kernel = tile.load(file)
        a = np.random.default_rng(0).standard_normal((37, 70)).astype("float32")
        np.testing.assert_array_equal(kernel(a, 0.5), a * np.float32(0.5))
        assert kernel.export(tmp_path / "again").read_bytes() == file.read_bytes()

    def test_arguments_are_checked(self, file):
        with pytest.raises(DTypeMismatch, match="K411"):
            tile_runtime.load(file)(np.zeros((4, 70)), 1.0)

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            ("int8", -7), ("uint8", 200), ("int32", -(2**31)), ("int64", 2**63 - 1), ("uint64", 2**64 - 1),
            ("bool", True), ("float16", 0.333), ("bfloat16", 1.5), ("float32", 1e-30), ("float64", 1 / 3),
        ],
    )  # fmt: skip
    def test_scalars_of_every_kind(self, tmp_path, dtype, value):
        program = kernels.scalars(dtype)
        expected = tile.compile(program, "cpu", out_idx=-1)(value)
        found = loaded(program, tmp_path)(value)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()

    def test_a_loop_that_need_not_end(self, tmp_path):
        a = np.random.default_rng(1).integers(0, 2**31, 8, dtype="int32")
        np.testing.assert_array_equal(loaded(kernels.halving(), tmp_path)(a), [int(x).bit_length() for x in a])

    def test_several_launches(self, tmp_path):
        kernel = loaded(kernels.two_launches(T.dynamic("n")), tmp_path, out_idx=(-2, -1))
        a = np.random.default_rng(2).standard_normal(131).astype("float32")
        b, c = kernel(a)
        np.testing.assert_array_equal(b, a + 1)
        np.testing.assert_array_equal(c, (a + 1) * 2)


class TestRefusals:
    def test_another_processor(self, file, monkeypatch):
        monkeypatch.setattr(processor, "_features", lambda: frozenset({"sse", "sse2"}))
        with pytest.raises(ArtefactNotRunnable, match=r"U601.*its processor may lack"):
            tile_runtime.load(file)

    def test_a_processor_that_cannot_be_read(self, monkeypatch, tmp_path):
        monkeypatch.setattr(processor, "_PROCESSORS", tmp_path / "missing")
        monkeypatch.setattr(processor, "_features", processor._features.__wrapped__)
        assert processor.lacking(["sse2", "avx"]) == ["avx", "sse2"]

    @pytest.mark.parametrize("needs", ["avx512f", "sve"])
    def test_instructions_by_name(self, monkeypatch, needs):
        monkeypatch.setattr(processor, "_features", lambda: frozenset({"avx2", "abm", "avx512vnni"}))
        built = Built("library", "shared library", b"", make("cpu").platform, {NEEDS: f"avx2 lzcnt {needs}"})
        assert make("cpu").refuses(built) == f"its processor may lack {needs}"

    def test_another_system(self):
        reason = make("cpu").refuses(Built("library", "shared library", b"", "plan9-mips"))
        assert reason.startswith("it was linked for plan9-mips, and this is ")

    def test_a_target_without_a_loader(self, file, monkeypatch):
        from tile_runtime import loaders

        monkeypatch.setattr(loaders, "_entries", lambda group: {})
        loaders.loader.cache_clear()
        with pytest.raises(MissingBackend, match="S605"):
            tile_runtime.load(file)
        loaders.loader.cache_clear()


class TestParallelLaunch:
    def test_each_task_runs_once(self):
        pool, seen = parallel._Pool(), []
        assert pool.run(lambda number: seen.append(number) or 0, 7) == 0
        assert sorted(seen) == list(range(7))

    def test_little_work_needs_no_other_threads(self, monkeypatch):
        monkeypatch.setattr(parallel, "_threads", lambda: 2)
        seen = []

        @parallel._TASK
        def task(number, group, captured):
            seen.append(group.contents.tasks)
            time.sleep(0.001)
            return 0

        address = ctypes.cast(task, ctypes.c_void_p).value
        assert parallel._launch(address, None, 0) == 0  # nothing is known of it
        parallel._work[address] = 1e-6
        assert parallel._launch(address, None, 0) == 0  # takes a millisecond, after little work
        assert parallel._launch(address, None, 0) == 0
        assert seen == [2, 2, 1, 2, 2]

    def test_a_failure_is_returned(self):
        assert parallel._Pool().run(lambda number: -1 if number == 3 else 0, 5) == -1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
    def test_a_forked_child_launches(self, file):
        code = (
            f"import os, numpy as np, tile_runtime; kernel = tile_runtime.load({str(file)!r})\n"
            "a = np.ones((99, 70), 'f4'); kernel(a, 2.0); child = os.fork()\n"
            "assert (kernel(a, 2.0) == 2).all()\n"
            "if child: print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
        )
        environment = {**os.environ, "TILE_NUM_THREADS": "3"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        assert done.stdout == "0\n", done.stderr
