from pathlib import Path

import pytest

from tile_emulator.compilers import find_compiler
from tile_emulator.errors import HostUnsupported, NoCompiler


def pytest_collection_modifyitems(items):
    """Tests that run kernels need a compiler; those of plain Python files do not."""
    try:
        find_compiler()
        return
    except (HostUnsupported, NoCompiler) as error:
        skip = pytest.mark.skip(reason=error.message)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory):
    """One fresh cache for all tests: the engine is compiled once."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TILE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
