"""``tile cache`` and ``tile compile --export``."""

import json
import os

import pytest

from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.abi.signature import Param, Signature
from tile_core.cli.cache import size_text
from tile_core.runtime import cache
from tile_runtime.files.artefact import Artefact, to_bytes

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def filled(folder):
    signature = Signature("scale", (Param("A", "tensor", "float32", ("n",)),))
    text = KernelText("text", LaunchFacts("scale", (), (1, 1, 1), (1, 1, 1)))
    cache.write(KEY, to_bytes(Artefact(signature, "toy:old", "toy", text, key=KEY)))
    cache.write("cd" * 32, b"damaged")
    os.utime(folder / ("cd" * 32 + ".tile"), (1, 1))


def test_path(tile, folder):
    assert tile("cache", "path").out == f"{folder.parent}\n"


def test_list(tile, filled):
    lines = tile("cache", "list").out.splitlines()
    (first,) = [line for line in lines if KEY[:12] in line]
    assert "scale(A: float32(n,))" in first
    assert "toy:old" in first
    assert "just now" in first
    (second,) = [line for line in lines if "cdcdcd" in line]
    assert "damaged" in second
    assert "days ago" in second
    assert lines[-1].startswith("2 files, ")


def test_list_of_nothing(tile):
    assert tile("cache", "list").out.startswith("0 files, 0 bytes, in ")


def test_list_for_programs(tile, filled):
    first, second = json.loads(tile("cache", "list", "--json").out)
    assert (first["kernel"], first["target"], first["key"]) == ("scale(A: float32(n,))", "toy:old", KEY)
    assert (second["kernel"], second["bytes"]) == ("damaged", 7)


def test_prune(tile, filled):
    assert tile("cache", "prune").out == "removed 0 files, 0 bytes\n"
    assert tile("cache", "prune", "--days", "2").out == "removed 1 file, 7 bytes\n"
    assert tile("cache", "prune", "--max-mb", "0").out.startswith("removed 1 file, ")
    assert not cache.entries()
    assert tile("cache", "prune", "--max-mb", "-1").status == 2


def test_clear(tile, filled):
    assert tile("cache", "clear").out.startswith("removed 2 files, ")
    assert not cache.entries()


def test_no_command(tile):
    result = tile("cache")
    assert "prune" in result.out + result.err
    assert tile("cache", "burn").status == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KB"), (3 << 19, "1.5 MB"), (5 << 30, "5.0 GB")],
)
def test_sizes(size, text):
    assert size_text(size) == text


def test_export_of_code_that_calls_this_process(tile, kernel_file, tmp_path):
    path = kernel_file(
        """
        import tile_core.language as T

        @T.prim_func
        def fill(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=8):
                for i in T.Parallel(8):
                    A[i] = T.float32(1)
                T.print(A[0])
        """
    )
    result = tile("compile", path, "--target", "cpu", "--export", tmp_path / "x.tile")
    assert result.status == 1
    assert "U401" in result.err
    assert not (tmp_path / "x.tile").exists()
