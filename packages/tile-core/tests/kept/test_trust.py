"""Test that files which other users can change are not run by default."""

import os
import stat
import warnings

import numpy as np
import pytest

import tile_core as tile
from tile_core.errors.artefacts import UntrustedArtefact
from tile_core.runtime import cache
from tile_runtime import knobs
from tile_runtime.files import trust

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


def facts(mode, user=None, group=None, folder=False):
    kind = stat.S_IFDIR if folder else stat.S_IFREG
    user = os.geteuid() if user is None else user
    group = os.getegid() if group is None else group
    return os.stat_result((kind | mode, 0, 0, 1, user, group, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "user", "group", "folder", "said"),
    [
        (0o644, None, None, False, ""),
        (0o600, 0, 0, False, ""),
        (0o600, 4242, 0, False, "belongs to user 4242"),
        (0o666, None, None, False, "every user"),
        (0o664, None, 4242, False, "group 4242"),
        (0o777, None, None, True, "every user"),
        (0o1777, None, None, True, ""),
        (0o1777, 0, 0, True, ""),
        (0o755, 4242, 0, True, "user 4242"),
    ],
)
def test_who_could_change_it(mode, user, group, folder, said):
    found = trust.doubt_of(facts(mode, user, group, folder))
    assert said in found
    assert bool(said) == bool(found)
    with knobs.override(trust_files=True):
        assert trust.doubt_of(facts(mode, user, group, folder)) == ""


def test_a_path_that_is_not_there(tmp_path):
    assert trust.doubt(tmp_path / "nothing") == ""


def kernel():
    import kept_kernels

    return tile.compile(kept_kernels.scaled(), "toy:old", out_idx=-1)


@pytest.mark.parametrize("which", ["kernels", "root"])
def test_a_cache_that_others_can_write_is_not_used(toy, folder, which):
    kernel()
    os.chmod(folder if which == "kernels" else folder.parent, 0o777)
    toy.COUNTS.clear()
    cache._WARNED.clear()
    with pytest.warns(cache.CacheWarning, match="every user can write to it: .*TILE_TRUST_FILES=1"):
        kernel()
    assert toy.COUNTS["build"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel()  # and says so once
        with knobs.override(trust_files=True):
            kernel()
    assert toy.COUNTS["build"] == 2


def test_a_file_that_others_can_write_is_made_again(toy, folder):
    kernel()
    (path,) = folder.iterdir()
    os.chmod(path, 0o666)
    with pytest.warns(cache.CacheWarning, match="every user"):
        kernel()
    assert toy.COUNTS["build"] == 2


def test_an_artefact_that_others_can_write_is_refused(toy, tmp_path):
    path = kernel().export(tmp_path / "k.tile")
    x = np.ones(8, "float32")
    assert (tile.load(path)(x) == 2).all()
    os.chmod(path, 0o646)
    with pytest.raises(UntrustedArtefact, match=r"(?s)S607.*every user.*TILE_TRUST_FILES=1") as info:
        tile.load(path)
    assert str(path) in str(info.value)
    with knobs.override(trust_files=True):
        assert (tile.load(path)(x) == 2).all()
    os.chmod(path, 0o644)
    os.chmod(tmp_path, 0o777)
    with pytest.raises(UntrustedArtefact):
        tile.load(path)
    os.chmod(tmp_path, 0o1777)
    assert (tile.load(path)(x) == 2).all()


def test_a_home_in_the_name_of_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TILE_CACHE_DIR", "~/kernels")
    assert cache.root() == tmp_path / "kernels"
