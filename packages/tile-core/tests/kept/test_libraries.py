"""Test libraries that runtimes build: atomic, keyed, with a fallback folder."""

import os
import tempfile
import warnings
from pathlib import Path

import pytest

from tile_core.errors.artefacts import NoScratchFolder
from tile_core.runtime import cache, libraries

KIND, KEY, OTHER = "emulator", "0" * 40, "1" * 40


@pytest.fixture
def home(folder):
    cache._WARNED.clear()
    return folder.parent / KIND


def of(content, key=KEY):
    """Store a library; returns its content, whether it was found, and its path."""

    def make(path):
        path.write_bytes(content)
        (path.parent / "scratch.o").write_bytes(b"x")

    with libraries.stored(KIND, key, make) as (path, found):
        return path.read_bytes()[: -libraries._CHECK], found, path


def test_files_appear_whole(home):
    assert of(b"content") == (b"content", False, home / f"{KEY}.so")
    assert [p.name for p in home.iterdir()] == [f"{KEY}.so"]
    assert of(b"not made") == (b"content", True, home / f"{KEY}.so")


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100, "other", "pipe", "folder"])
def test_a_damaged_file_is_made_again_with_a_warning(home, damage):
    of(b"content")
    path = home / f"{KEY}.so"
    if damage == "other":
        path.write_bytes(of(b"other", OTHER)[2].read_bytes())
    elif isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        path.unlink()
        os.mkfifo(path) if damage == "pipe" else path.mkdir()
    if damage == "folder":
        with pytest.warns(cache.CacheWarning):
            assert of(b"again")[:2] == (b"again", False)
        return
    with pytest.warns(cache.CacheWarning, match="damaged"):
        assert of(b"again")[:2] == (b"again", False)
    assert of(b"")[:2] == (b"again", True)


def test_nothing_is_left_of_what_failed(home):
    def fail(path):
        path.write_bytes(b"half")
        raise OSError(28, "no space")

    with pytest.raises(NoScratchFolder, match="no space"), libraries.stored(KIND, KEY, fail):
        pass
    assert list(home.iterdir()) == []


def test_leavings_of_killed_makers_are_swept(home):
    of(b"content")
    for name, age in (("making-1-a", 1), ("making-2-b", None)):
        (home / name).mkdir()
        (home / name / "half.o").write_bytes(b"half")
        if age:
            os.utime(home / name, (age, age))
    cache.prune(1 << 30)
    assert sorted(p.name for p in home.iterdir()) == [f"{KEY}.so", "making-2-b"]


def test_no_folder_at_all(home, monkeypatch):
    home.parent.write_text("a file")
    libraries._of_process.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with pytest.warns(cache.CacheWarning), pytest.raises(NoScratchFolder):
        of(b"content")


def test_the_folder_of_a_process_outlives_its_children(home):
    home.parent.write_text("a file")
    libraries._of_process.cache_clear()
    with pytest.warns(cache.CacheWarning):
        path = of(b"content")[2]
    libraries._forget(str(path.parent), os.getpid() + 1)
    assert path.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of(b"")[:2] == (b"content", True)
    libraries._forget(str(path.parent), os.getpid())
    assert not path.parent.exists()
    libraries._of_process.cache_clear()


def mode_of(path):
    return Path(path).stat().st_mode & 0o777


def test_folders_are_the_users_alone(home):
    before = os.umask(0o002)
    try:
        of(b"content")
    finally:
        os.umask(before)
    assert mode_of(home) == mode_of(home.parent) == 0o700
