"""Tests of the language run with the verifier after every pass, and a cache of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("TILE_VERIFY_IR", "1")


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One fresh cache for all tests: the engine is compiled once."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TILE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
