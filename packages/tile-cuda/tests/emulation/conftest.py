import importlib.util
import os
import shutil
from pathlib import Path

import pytest

COMPILERS = ("c++", "clang++", "g++")
HAS_COMPILER = (
    bool(os.environ.get("CXX")) or any(map(shutil.which, COMPILERS)) or importlib.util.find_spec("ziglang") is not None
)
WITHOUT_ONE = ("test_asm.py",)


def pytest_collection_modifyitems(items):
    """Tests that run kernels need a C++ compiler."""
    if HAS_COMPILER:
        return
    skip = pytest.mark.skip(reason=f"no C++ compiler: neither CXX nor {', '.join(COMPILERS)} nor the ziglang wheel")
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name not in WITHOUT_ONE:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory):
    """One fresh cache for all tests: the engine is compiled once."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TILE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
