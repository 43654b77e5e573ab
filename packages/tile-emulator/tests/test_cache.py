"""Compiled kernels on disk: reused, also across processes, rebuilt without a usable cache."""

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from expected_errors import raises_error

from tile_core.errors.artefacts import NoScratchFolder
from tile_core.runtime import cache
from tile_emulator import build
from tile_emulator.compilers import find_compiler
from tile_emulator.errors import CompilerSlow
from tile_runtime import knobs

from .dialects.mini import floats, run

USUAL = find_compiler()
TEXT = "__global__ void k(float* out, int n) { out[threadIdx.x] = n; }"


@pytest.fixture
def home(tmp_path):
    """A cache of its own."""
    cache._WARNED.clear()
    with knobs.override(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache" / "emulator"


def result(name, n):
    """Return a kernel's result, and whether its library was cached."""
    found = run(TEXT.replace("k(", f"{name}("), [floats(32), n])
    return float(found.outputs["out"][0]), found.stats.cached


def test_a_kernel_is_compiled_once():
    text = TEXT.replace("k(", "once(")
    first, second = (run(text, [floats(32), n]) for n in (1, 2))
    assert (first.stats.cached, second.stats.cached) == (False, True)
    assert second.outputs["out"][0] == 2
    assert not run(text + "\n", [floats(32), 1]).stats.cached
    assert not run(text, [floats(32), 1], checks=()).stats.cached


@pytest.mark.sweep(2)
def test_two_swapped_libraries_are_made_again(home):
    """The checksum of a file covers its name."""
    assert result("a", 1) == (1, False)
    known = set(home.iterdir())
    text = TEXT.replace("out[threadIdx.x] = n", "out[threadIdx.x] = n + 100")
    assert run(text, [floats(32), 1]).outputs["out"][0] == 101
    (other,) = set(home.iterdir()) - known
    for path in known:
        path.write_bytes(other.read_bytes())
    with pytest.warns(cache.CacheWarning, match="does not fit its name"):
        assert result("a", 1) == (1, False)
    assert result("a", 1) == (1, True)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("where", ["/proc/nothing", "a file"])
def test_a_folder_that_cannot_be_written(home, where, tmp_path):
    cache._WARNED.clear()
    if where == "a file":
        where = tmp_path / "a file"
        where.write_text("")
    with knobs.override(cache_dir=Path(where)):
        with pytest.warns(cache.CacheWarning, match="are not kept"):
            assert result(f"unwritable{len(str(where))}", 3) == (3, False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert result(f"unwritable{len(str(where))}", 4) == (4, True)  # in the folder of the process


@pytest.mark.sweep(2)
def test_a_user_without_a_home(monkeypatch, tmp_path):
    monkeypatch.delenv("TILE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", homeless)
    assert cache.root().parent == tmp_path
    assert result("homeless", 5) == (5, False)
    assert result("homeless", 5) == (5, True)


def compiler_that(folder, does, when="*"):
    """Write a program that is the usual compiler, but for calls with some word."""
    path = folder / "compiler"
    path.write_text(f'#!/bin/sh\ncase "$*" in *-dM*) ;; {when}) {does};; esac\nexec {" ".join(USUAL.command)} "$@"\n')
    path.chmod(0o755)
    return str(path)


FULL = f"echo 'ld: final link failed: {build.FULL}' >&2; exit 1"


def is_verdict(path):
    """Whether a file is what the self-test of a compiler found, which is text."""
    return not path.read_bytes().startswith((b"\x7fELF", b"gpch"))


@pytest.mark.sweep(0.25)
def test_a_full_disk(home, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", compiler_that(tmp_path, FULL))
    with pytest.raises(NoScratchFolder, match=f"S611.*{build.FULL}"):
        result("full", 1)
    assert [p for p in home.iterdir() if not is_verdict(p)] == []
    monkeypatch.delenv("CXX")
    assert result("full", 1) == (1, False)


@pytest.mark.sweep(0.25)
@pytest.mark.skipif(USUAL.family != "gcc", reason="only GCC keeps headers")
def test_headers_that_find_no_space_are_read_again(home, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "_read", {})
    monkeypatch.setenv("CXX", compiler_that(tmp_path, FULL, "*c++-header*"))
    assert result("no_headers", 1) == (1, False)
    assert len([p for p in home.iterdir() if not is_verdict(p)]) == 2  # the engine and the kernel
    monkeypatch.delenv("CXX")
    assert result("headers", 1) == (1, False)
    assert len([p for p in home.iterdir() if not is_verdict(p)]) == 5  # and those of another compiler


@pytest.mark.sweep(0.25)
def test_a_compiler_that_does_not_end(home, monkeypatch, tmp_path):
    assert result("in_time", 1) == (1, False)
    lasts = tmp_path / "lasts"
    monkeypatch.setenv("CXX", compiler_that(tmp_path, f"(sleep 100; touch {lasts}) & sleep 1000"))
    begin = time.monotonic()
    with knobs.override(build_seconds=1), raises_error(CompilerSlow, seconds=1):
        result("endless", 1)
    assert time.monotonic() - begin < 50
    children = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert str(lasts) not in children
    monkeypatch.delenv("CXX")
    assert result("endless", 1) == (1, False)


@pytest.mark.sweep(2)
def test_the_cache_can_be_turned_off(home):
    with knobs.override(disable_cache=True):
        assert result("off", 1) == (1, False)
        assert result("off", 1) == (1, False)
    assert not home.exists()


WORK = """
import sys
import numpy as np
from tests.dialects.mini import run
from tests.test_cache import TEXT
print(float(run(TEXT, [np.zeros(32, "float32"), 3]).outputs["out"].sum()))
"""


@pytest.mark.sweep(2)
def test_processes_share_it(tmp_path):
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "TILE_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-c", WORK]

    def kept(processes):
        started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in processes]
        assert [process.communicate(timeout=120)[0] for process in started] == ["96.0\n" for _ in processes]
        return {p.name: p.stat().st_ino for p in (tmp_path / "emulator").iterdir()}

    both = kept(range(2))
    assert {Path(name).suffix for name in both} == {".so"}
    # The kernel, the engine, the test of the compiler, and headers that GCC has read.
    assert len(both) <= 4
    assert kept(range(1)) == both
