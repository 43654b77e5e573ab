"""Test compiled kernels on disk: hits, misses and damaged files."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
from tile_core.errors import TileError
from tile_core.errors.artefacts import CannotClearCache
from tile_core.errors.launch import BadOutIdx, BadSetting
from tile_core.runtime import cache, cache_key
from tile_runtime import knobs
from tile_runtime.files.artefact import from_bytes


@pytest.fixture
def call(toy, scaled):
    """Compile and call with ``n`` elements; returns what the backend did."""

    def compiled(count=8, target="toy:old", options=None, **arguments):
        toy.COUNTS.clear()
        kernel = tile.compile(scaled(**arguments), target, out_idx=-1, options=options)
        x = np.random.default_rng(count).standard_normal(count).astype("float32")
        factor = arguments.get("factor", 2.0)
        np.testing.assert_array_equal(kernel(x), x * np.float32(factor))
        return dict(toy.COUNTS)

    return compiled


COMPILED = {"passes": 1, "text 4": 1, "build": 1, "load": 1}
FOUND = {"load": 1}


class TestFound:
    def test_a_hit_runs_no_pass_emits_no_text_and_builds_nothing(self, call, folder):
        assert call() == COMPILED
        assert call() == FOUND
        assert (cache.STATS.hits, cache.STATS.misses, cache.STATS.stored) == (1, 1, 1)
        assert len(list(folder.iterdir())) == 1

    def test_another_process_finds_it(self, call, process):
        assert call() == COMPILED
        code = (
            "import numpy as np, tile_core as tile, kept_kernels, text_backend\n"
            "kernel = tile.compile(kept_kernels.scaled(), 'toy:old', out_idx=-1)\n"
            "print(kernel(np.ones(8, 'float32'))[0], dict(text_backend.COUNTS))"
        )
        assert process(code, PYTHONHASHSEED="5", TILE_VERIFY_IR="1").strip() == f"2.0 {FOUND}"

    def test_general_forms_are_kept_when_they_are_made(self, call, folder):
        assert call(8) == COMPILED
        assert call(6)["build"] == 1
        assert call(7)["build"] == 1
        assert len(list(folder.iterdir())) == 3
        again = call(7)
        assert "passes" not in again
        assert "build" not in again

    def test_a_found_kernel_is_like_a_compiled_one(self, scaled, toy, tmp_path):
        fresh = tile.compile(scaled(), "toy:old", out_idx=-1)
        found = tile.compile(scaled(), "toy:old", out_idx=-1)
        assert cache.STATS.hits == 1
        toy.COUNTS.clear()
        assert found.source == fresh.source
        assert found.signature == fresh.signature
        assert not toy.COUNTS
        assert "scale" in found.explain()
        assert found.verify(np.arange(7, dtype="float32"))
        assert fresh.export(tmp_path / "a").read_bytes() == found.export(tmp_path / "b").read_bytes()

    def test_jit_looks_on_disk(self, scaled, toy):
        factory = tile.jit(out_idx=-1, target="toy:old")(scaled)
        factory(2.0)
        tile.jit(out_idx=-1, target="toy:old")(scaled)(2.0)
        assert toy.COUNTS["passes"] == 1


class TestNotFound:
    @pytest.mark.parametrize(
        "change", [{"factor": 3.0}, {"n": 8}, {"target": "toy:any"}, {"options": {"level": 2}}, {"factor": -0.5}]
    )
    def test_what_decides_is_in_the_key(self, call, change):
        call()
        assert call(**change) == COMPILED
        assert call() == FOUND

    def test_another_toolchain(self, call, toy):
        call()
        toy.VERSIONS["toolchain"] = "toy compiler 2"
        assert call() == COMPILED

    def test_another_version_of_the_backend(self, call, toy, again):
        call()
        again()
        assert call() == FOUND
        toy.VERSIONS["fingerprint"] = "toy backend 2"
        again()
        assert call() == COMPILED

    def test_another_version_of_the_core(self, call, monkeypatch):
        call()
        monkeypatch.setattr(cache_key, "fingerprint_of", lambda package: "edited")
        assert call() == COMPILED

    def test_out_idx(self, scaled, toy):
        tile.compile(scaled(), "toy:old", out_idx=-1)
        tile.compile(scaled(), "toy:old")
        assert cache.STATS.misses == 2

    def test_turned_off(self, call, folder):
        with tile.disable_cache():
            assert call() == COMPILED
        with knobs.override(disable_cache=True):
            assert call() == COMPILED
        assert not folder.exists()

    def test_dumps_show_every_pass(self, call, scaled, toy, tmp_path):
        call()
        toy.COUNTS.clear()
        tile.compile(scaled(), "toy:old", dump=tmp_path / "dump")
        with knobs.override(dump_dir=tmp_path / "other"):
            call()
        assert list((tmp_path / "dump").iterdir())
        assert list((tmp_path / "other").iterdir())

    def test_a_runtime_that_keeps_nothing(self, call, toy, folder, monkeypatch):
        monkeypatch.setitem(toy.VERSIONS, "toolchain", "")
        call()
        assert not folder.exists()

    def test_a_missing_toolchain_is_said_when_it_is_needed(self, scaled, toy, folder):
        toy.VERSIONS["toolchain"] = None
        with pytest.raises(toy.Toolless):
            tile.compile(scaled(), "toy:old")(np.ones(8, "float32"), np.ones(8, "float32"))

    def test_errors_of_the_kernel_come_first(self, toy, scaled):
        toy.VERSIONS["toolchain"] = None
        with pytest.raises(BadSetting):
            tile.compile(3, "toy:old")
        with pytest.raises(BadOutIdx):
            tile.compile(scaled(), "toy:old", out_idx=0)

    def test_the_cpu_keeps_nothing(self, scaled, folder):
        tile.compile(scaled(), "cpu")
        assert not folder.exists()
        assert cache.STATS.misses == 0


class TestDamage:
    def damaged(self, folder, change):
        (path,) = folder.iterdir()
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize(
        "change",
        [
            lambda b: b"",
            lambda b: b[:100],
            lambda b: b[:-1],
            lambda b: b"x" + b[1:],
            lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :],
            lambda b: b[:200] + b[220:],
            lambda b: b"nothing of the kind" * 30,
        ],
    )
    def test_it_is_dropped_with_a_warning_and_made_again(self, call, folder, change):
        call()
        self.damaged(folder, change)
        with pytest.warns(cache.CacheWarning, match="was damaged .*; the kernel is compiled again"):
            assert call() == COMPILED
        assert cache.STATS.damaged == 1
        assert call() == FOUND

    def test_every_flipped_bit_is_found(self, call, folder):
        call()
        (path,) = folder.iterdir()
        good = path.read_bytes()
        whole = from_bytes(good, path)
        for at in np.random.default_rng(1).integers(0, len(good), 300):
            bad = good[:at] + bytes([good[at] ^ (1 << int(at) % 8)]) + good[at + 1 :]
            try:
                found = from_bytes(bad, path)
            except TileError:
                continue
            # A bit that says nothing, of a date for example.
            assert found.text == whole.text
            assert found.text.built == whole.text.built
            assert found.signature == whole.signature

    def test_the_file_of_another_kernel(self, call, folder):
        call()
        (first,) = folder.iterdir()
        call(factor=3.0)
        (second,) = set(folder.iterdir()) - {first}
        second.replace(first)
        with pytest.warns(cache.CacheWarning, match="another kernel"):
            assert call() == COMPILED

    def test_a_newer_format(self, call, folder, monkeypatch):
        from tile_runtime.files import artefact

        with monkeypatch.context() as patch:
            patch.setattr(artefact, "FORMAT", 99)
            call()
        with pytest.warns(cache.CacheWarning):
            assert call() == COMPILED

    def test_a_folder_that_cannot_be_made(self, call, folder):
        folder.parent.write_text("a file")
        cache._WARNED.clear()
        with pytest.warns(cache.CacheWarning, match="are not kept"):
            assert call() == COMPILED
        assert call() == COMPILED  # and says so once


class TestLocations:
    def test_a_moved_kernel_is_found_with_its_locations(self, toy, tmp_path):
        import kept_kernels

        text = Path(kept_kernels.__file__).read_text(encoding="utf-8")
        found = []
        for name, more in (("a", 0), ("b", 5)):
            (tmp_path / name).mkdir()
            path = tmp_path / name / "moving.py"
            path.write_text("#\n" * more + text, encoding="utf-8")
            names = {"__name__": "moving"}
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
            kernel = tile.compile(names["scaled"](), "toy:old")
            facts = from_bytes(kernel.export(tmp_path / f"{name}.tile").read_bytes(), name).text.facts
            assert (facts.where.file, facts.where.line) == ("moving.py", kernel.signature.where.line)
            assert facts.line_map.where(2) == facts.where
            found.append(facts.where.line)
        assert toy.COUNTS["passes"] == 1
        assert found[1] == found[0] + 5


class TestProcesses:
    @pytest.mark.sweep(0.25)
    def test_two_at_once(self, process, folder):
        """Both compile or find; files are visible as a whole, one per kernel."""
        code = (
            "import numpy as np, tile_core as tile, kept_kernels, text_backend\n"
            "for factor in (2.0, 3.0, 5.0, 7.0):\n"
            "    kernel = tile.compile(kept_kernels.scaled(factor), 'toy:old', out_idx=-1)\n"
            "    for n in (8, 6, 7):\n"
            "        assert (kernel(np.ones(n, 'float32')) == factor).all()\n"
            "print('right')"
        )
        both = [process.start(code) for _ in range(2)]
        for one in both:
            out, err = one.communicate(timeout=120)
            assert (one.returncode, out) == (0, "right\n"), err
        assert len(list(folder.iterdir())) == 4 * 3
        assert all(path.suffix == ".tile" for path in folder.iterdir())


class TestSize:
    def filled(self, folder, sizes):
        folder.mkdir(parents=True)
        for number, size in enumerate(sizes):
            path = folder / (f"{number:064x}" + cache.SUFFIX)
            path.write_bytes(bytes(size))
            os.utime(path, (number + 1, number + 1))
        return sorted(folder.iterdir())

    def test_the_least_recently_used_go_first(self, folder):
        paths = self.filled(folder, [10, 20, 30, 40])
        assert [e.path for e in cache.entries()] == paths
        assert [e.path for e in cache.prune(75)] == paths[:2]
        assert [e.path for e in cache.entries()] == paths[2:]

    def test_by_age(self, folder):
        paths = self.filled(folder, [10, 20, 30])
        os.utime(paths[1])
        assert [e.path for e in cache.prune(1 << 30, max_age=3600)] == [paths[0], paths[2]]

    def test_a_hit_counts_as_use(self, call, folder):
        call()
        (path,) = folder.iterdir()
        os.utime(path, (1, 1))
        call()
        assert time.time() - path.stat().st_mtime < 100

    def test_storing_prunes(self, call, folder, monkeypatch):
        self.filled(folder, [3 << 20, 10])
        with knobs.override(cache_max_mb=1):
            call()
        assert cache.STATS.stored == 1
        assert sorted(e.bytes for e in cache.entries())[0] == 10
        assert len(cache.entries()) == 2

    def test_only_files_of_the_cache_are_touched(self, folder):
        self.filled(folder, [1])
        mine = [folder / "notes.tile", folder.parent / "thesis.txt", folder / ("0" * 64 + ".doc")]
        other = folder.parent / "documents"
        other.mkdir()
        mine.append(other / ("1" * 64 + ".tile"))
        for path in mine:
            path.write_text("mine")
        assert len(cache.clear()) == 1
        assert not cache.entries()
        assert all(path.read_text() == "mine" for path in mine)

    def test_leavings_of_killed_processes_are_swept(self, folder):
        self.filled(folder, [1])
        old, new = folder / "making-1-a", folder / "making-2-b"
        for path in (old, new):
            path.write_bytes(b"half")
        os.utime(old, (1, 1))
        cache.prune(1 << 30)
        assert not old.exists()
        assert new.exists()

    def test_what_cannot_be_removed(self, folder, monkeypatch):
        self.filled(folder, [1])

        def refuse(self, missing_ok=False):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(cache.Path, "unlink", refuse)
        with pytest.raises(CannotClearCache, match=r"S610.*Permission denied"):
            cache.clear()
        assert cache.prune(0) == []


class TestFolder:
    def test_of_the_system(self, monkeypatch, tmp_path):
        monkeypatch.delenv("TILE_CACHE_DIR")
        monkeypatch.setattr(cache.sys, "platform", "linux")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache.root() == tmp_path / "tile"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert cache.root() == cache.Path.home() / ".cache" / "tile"
        monkeypatch.setattr(cache.sys, "platform", "darwin")
        assert cache.root().parts[-3:] == ("Library", "Caches", "tile")
        monkeypatch.setattr(cache.sys, "platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
        assert cache.root() == tmp_path / "tile" / "Cache"
