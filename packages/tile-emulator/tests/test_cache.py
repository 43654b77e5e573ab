"""Compiled kernels on disk: found again, never half written, made again when damaged, removed when old."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tile_emulator
from tile_core import knobs
from tile_emulator import cache

from .dialects.mini import floats, run

TEXT = "__global__ void k(float* out, int n) { out[threadIdx.x] = n; }"


@pytest.fixture
def home(tmp_path):
    """A cache of its own."""
    with knobs.override(cache_dir=tmp_path):
        yield tmp_path / "emulator"


def test_a_kernel_is_compiled_once():
    text = TEXT.replace("k(", "once(")
    first, second = (run(text, [floats(32), n]) for n in (1, 2))
    assert (first.stats.cached, second.stats.cached) == (False, True)
    assert second.outputs["out"][0] == 2
    assert not run(text + "\n", [floats(32), 1]).stats.cached
    assert not run(text, [floats(32), 1], checks=()).stats.cached


def test_files_appear_whole(home):
    def make(path):
        path.write_bytes(b"content")
        (path.parent / "scratch.o").write_bytes(b"x")

    with cache.stored("key", make) as (path, found):
        assert not found
        assert path == home / "key.so"
        assert path.read_bytes().startswith(b"content")
    assert [p.name for p in home.iterdir()] == ["key.so"]
    with cache.stored("key", lambda path: pytest.fail("it is there")) as (_, found):
        assert found


def test_nothing_is_left_of_what_failed(home):
    def fail(path):
        path.write_bytes(b"half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"), cache.stored("key", fail):
        pass
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_a_damaged_file_is_made_again(home, damage):
    home.mkdir()
    (home / "key.so").write_bytes(damage)
    with cache.stored("key", lambda path: path.write_bytes(b"good") and None) as (path, found):
        assert not found
        assert path.read_bytes().startswith(b"good")


def test_the_cache_can_be_turned_off(home):
    with (
        knobs.override(disable_cache=True),
        cache.stored("key", lambda p: p.write_bytes(b"x") and None) as (path, found),
    ):
        assert not found
        assert path.exists()
    assert not path.exists()
    assert not home.exists()


def test_the_default_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("TILE_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "tile" / "emulator"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder().parts[-4:] == ("Library", "Caches", "tile", "emulator")


def test_prune_removes_the_oldest(home):
    home.mkdir()
    for age, name in enumerate(("new", "older", "oldest")):
        (home / f"{name}.so").write_bytes(bytes(100))
        os.utime(home / f"{name}.so", (time.time() - 1000 * age,) * 2)
    assert [e.path.stem for e in cache.entries()] == ["oldest", "older", "new"]
    assert [e.path.stem for e in tile_emulator.prune(max_bytes=250)] == ["oldest"]
    assert [e.path.stem for e in tile_emulator.prune(max_age=500)] == ["older"]
    assert tile_emulator.prune() == []


WORK = """
import sys
import numpy as np
from tests.dialects.mini import run
from tests.test_cache import TEXT
print(float(run(TEXT, [np.zeros(32, "float32"), 3]).outputs["out"].sum()))
"""


def test_processes_share_it(tmp_path):
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "TILE_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-c", WORK]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in started] == ["96.0\n", "96.0\n"]
    assert sorted(p.suffix for p in (tmp_path / "emulator").iterdir()) == [".so", ".so"]
