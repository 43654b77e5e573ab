"""Precompiled headers: GCC reads them once, and kernels do not depend on them."""

import subprocess

import pytest

import tile_core as tile
from tile_emulator import build, flags
from tile_emulator.compilers import find_compiler

from .dialects.mini import MINI, floats, run

TEXT = "__global__ void {}(float* out, int n) {{ out[threadIdx.x] = n; }}"
FLAGS = (*flags.FLAGS, *flags.KERNEL_FLAGS)


def value(name, n):
    return float(run(TEXT.format(name), [floats(32), n]).outputs["out"][0])


@pytest.mark.skipif("find_compiler().family != 'gcc'")
def test_gcc_reads_them_once(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(build, "_read", {})
    monkeypatch.setattr(build.Models, "make", lambda self, path, make=build.Models.make: made.append(make(self, path)))
    assert [value(name, 3) for name in ("first", "second")] == [3, 3]
    assert len(made) <= 1  # another test may have come first
    compiler = find_compiler()
    options = build.Models(compiler, MINI.headers, FLAGS).included(tmp_path)
    done = subprocess.run(
        [*compiler.command, *options, "-H", "-fsyntax-only", "-x", "c++", "-"],
        input="", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"! {tmp_path / 'models.h.gch'}" in done.stderr


@pytest.mark.parametrize("harm", ["gone", "empty", "other"])
def test_a_kernel_is_right_without_what_is_kept(harm, tmp_path, monkeypatch):
    class Harmed(dict):
        def __contains__(self, entry):
            return True

        def __missing__(self, entry):
            return tmp_path / harm

    if harm != "gone":
        (tmp_path / harm).write_bytes(b"" if harm == "empty" else b"gpch" + bytes(100))
    monkeypatch.setattr(build, "_read", Harmed())
    assert value(harm, 5) == 5


def test_nothing_is_kept_where_the_cache_is_turned_off(tmp_path):
    with tile.disable_cache():
        build.Models(find_compiler(), MINI.headers, FLAGS).included(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["models.h"]
