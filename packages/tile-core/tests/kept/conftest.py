"""Provide the backend ``text_backend`` and a separate cache for each test."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tile_core.plugins import manager
from tile_core.plugins.discovery import BUILTIN, GROUP
from tile_core.runtime import cache

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "src"
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tvm", "tvm_ffi", "torch"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "STATS", cache.CacheStats())
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def toy(monkeypatch):
    """The backend, installed in this process; its counters begin at zero."""
    monkeypatch.syspath_prepend(str(HERE))
    import text_backend

    _install(monkeypatch)
    for name, value in text_backend.VERSIONS.items():
        monkeypatch.setitem(text_backend.VERSIONS, name, value)
    text_backend.COUNTS.clear()
    return text_backend


@pytest.fixture
def again(monkeypatch):
    """Load the backend anew, as another process would."""
    return lambda: _install(monkeypatch)


def _install(monkeypatch):
    plugins = manager.Plugins([EntryPoint("toy", "text_backend", GROUP), BUILTIN])
    monkeypatch.setattr(manager, "installed", lambda: plugins)


@pytest.fixture
def scaled(toy):
    import kept_kernels

    return kept_kernels.scaled


@pytest.fixture
def process(tmp_path):
    """Start Python with the backend installed as a distribution; returns what it prints."""
    site = tmp_path / "site"
    info = site / "tile_toy-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tile-toy\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ntoy = text_backend\n", encoding="utf-8")

    def start(code, block=False, **variables):
        path = os.pathsep.join([str(site), str(CORE), str(HERE)])
        environ = {k: v for k, v in os.environ.items() if not k.startswith("TILE_") or k == "TILE_CACHE_DIR"}
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", (BLOCKED if block else "") + code],
            env={**environ, "PYTHONPATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(code, block=False, **variables):
        started = start(code, block, **variables)
        out, err = started.communicate(timeout=120)
        assert started.returncode == 0, err
        return out

    run.start = start
    return run
