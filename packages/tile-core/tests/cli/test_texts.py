"""Test command output without a device, about targets, and with a full cache."""

from __future__ import annotations

import json

import pytest

KERNEL = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        T.copy(A, B)
"""


def test_run_without_a_device(tile, tmp_path, monkeypatch):
    pytest.importorskip("tile_cuda")
    from tile_core.errors.setup import NoRuntime
    from tile_core.runtime import kernel

    def nothing(adapter, value):
        raise NoRuntime(target="cuda", hint="install it")

    monkeypatch.setattr(kernel, "there", nothing)
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    result = tile("run", path, "--target", "cuda:sm_80")
    assert result.status == 1
    assert "error[S314]: k cannot run here: this machine has no device for cuda:sm_80" in result.err
    assert "--runtime emulator" in result.err
    assert "argument" not in result.err


def test_targets_name_architectures(tile):
    pytest.importorskip("tile_cuda")
    found = {b["name"]: b["architectures"] for b in json.loads(tile("targets", "--load", "--json").out)}
    assert "cuda:sm_80" in found["cuda"]
    assert found["cpu"] == []
    assert "cuda:sm_80" in tile("targets", "--load").out


def test_a_full_cache_is_summarised(tile, monkeypatch, tmp_path):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "emulator"
    folder.mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    for n in range(50):
        (folder / f"{n:064x}.so").write_bytes(b"x" * 100)
    lines = tile("cache", "list").out.splitlines()
    assert sum("emulator" in line for line in lines) <= 2
    assert any("50 files" in line and "4.9 KB" in line for line in lines)
    assert len(tile("cache", "list", "--all").out.splitlines()) > 50
