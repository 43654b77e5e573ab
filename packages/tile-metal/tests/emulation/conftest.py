from pathlib import Path

import pytest

from tile_emulator.compilers import find_compiler
from tile_emulator.errors import HostUnsupported, NoCompiler

WITHOUT_ONE = ("test_rewrite.py",)


def pytest_collection_modifyitems(items):
    """Tests that run kernels need a C++ compiler."""
    try:
        find_compiler()
        return
    except (HostUnsupported, NoCompiler) as error:
        skip = pytest.mark.skip(reason=error.message)
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
